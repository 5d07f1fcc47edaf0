// SPDX-License-Identifier: Apache-2.0
// Products of four bytes at once by PRMT: the tables of a coefficient, and the selectors that four
// bytes are in them (nibble_prmt.cu explains the three tables).
#ifndef WEFT_KERNELS_CUDA_NIBBLES_CUH
#define WEFT_KERNELS_CUDA_NIBBLES_CUH

#include "kernels/cuda/gf256.cuh"

// c * 2^i for each i.
__device__ __forceinline__ void weft_nibble_powers(uint32_t (&power)[8], uint32_t c) {
  power[0] = c;
#pragma unroll
  for (int i = 1; i < 8; i++)
    power[i] = ((power[i - 1] << 1) ^ (power[i - 1] & 0x80 ? 0x11Du : 0)) & 255;
}

// Products by 0..7 in the low and in the high nibble, two words each; and what the fourth bits of
// the low and the high nibble, or of both, add to them.
struct weft_nibble_tables {
  uint4 nibbles;
  uint32_t fourth;
};

__device__ __forceinline__ weft_nibble_tables weft_nibble_tables_of(const uint32_t (&power)[8]) {
  uint32_t table[4];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const uint32_t *p = power + 4 * half;
    table[2 * half] = p[0] << 8 | p[1] << 16 | (p[0] ^ p[1]) << 24;
    table[2 * half + 1] = table[2 * half] ^ p[2] * 0x01010101u;
  }
  return {make_uint4(table[0], table[1], table[2], table[3]),
          power[3] << 8 | power[7] << 16 | (power[3] ^ power[7]) << 24};
}

// The selectors of four bytes for the three tables, each in the low half of its register.
struct weft_selectors {
  uint32_t low, high, fourth;
};

__device__ __forceinline__ weft_selectors weft_select(uint32_t word) {
  const uint32_t low = word & 0x07070707u, high = (word >> 4) & 0x07070707u;
  const uint32_t fourth = ((word >> 3) & 0x01010101u) | ((word >> 6) & 0x02020202u);
  return {weft_prmt(low | low >> 4, 0, 0x4420), weft_prmt(high | high >> 4, 0, 0x4420),
          weft_prmt(fourth | fourth >> 4, 0, 0x4420)};
}

#endif
