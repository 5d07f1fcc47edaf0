// SPDX-License-Identifier: Apache-2.0
// GF(2^8) with 0x11D for device code: the tables, made by the compiler, and small arithmetic.
// (kernels/gf256.h holds the host's tables; a kernel cannot link to those.)
#ifndef WEFT_KERNELS_CUDA_GF256_CUH
#define WEFT_KERNELS_CUDA_GF256_CUH

#include <stddef.h>
#include <stdint.h>

enum {
  WEFT_CUDA_LOG_ZERO = 510,  // log of 0 where sums with it must land in zeros
  WEFT_CUDA_EXP_COUNT = 1021 // sums of two logs: 0..508, and 510..1020 with a zero
};

struct weft_cuda_exp_table {
  uint8_t at[1024];
};
struct weft_cuda_log_table {
  uint8_t at[256]; // log of 0 is 255, which no other byte has
};

// exp[i] = 2^i for i < 510 (exp[255] = 1), zeros from 510 on.
constexpr weft_cuda_exp_table weft_cuda_make_exp() {
  weft_cuda_exp_table table = {};
  unsigned power = 1;
  for (int i = 0; i < WEFT_CUDA_LOG_ZERO; i++) {
    table.at[i] = static_cast<uint8_t>(power);
    power = (power << 1) ^ (power & 0x80 ? 0x11Du : 0);
  }
  return table;
}

constexpr weft_cuda_log_table weft_cuda_make_log() {
  weft_cuda_log_table table = {};
  unsigned power = 1;
  for (int i = 0; i < 255; i++) {
    table.at[power] = static_cast<uint8_t>(i);
    power = (power << 1) ^ (power & 0x80 ? 0x11Du : 0);
  }
  table.at[0] = 255;
  return table;
}

// PRMT with its sign mode, which __byte_perm masks away.
__device__ __forceinline__ uint32_t weft_prmt(uint32_t low, uint32_t high, uint32_t selectors) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selectors));
  return bytes;
}

// Doubles each of four bytes: the top bits, spread to whole bytes, choose where 0x1D goes.
__device__ __forceinline__ uint32_t weft_gf256_double4(uint32_t x) {
  const uint32_t carry = weft_prmt(x, 0, 0xba98); // each byte's sign, eight times
  return ((x << 1) & 0xfefefefeu) ^ (carry & 0x1d1d1d1du);
}

#endif
