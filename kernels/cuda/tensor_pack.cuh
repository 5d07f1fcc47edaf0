// SPDX-License-Identifier: Apache-2.0
// The epilogue of the binary tensor product: accumulators, whose bit 0 is a bit of the product, to
// bytes of coded blocks, and their way to memory. Every instruction here is taken from the tensor
// cores' time, since both share the register file.
#ifndef WEFT_KERNELS_CUDA_TENSOR_PACK_CUH
#define WEFT_KERNELS_CUDA_TENSOR_PACK_CUH

#include "kernels/cuda/tensor_layout.h"

// Two accumulators to a word: pair[8 * g + b] holds bit b of the bytes at s = 0 and, 16 bits up,
// s = 1 of coded block 4g + q. A sum is at most 8 * 256, so halves do not meet.
template <int Count>
__device__ __forceinline__ void weft_tensor_pairs(uint32_t (&pair)[Count / 2],
                                                  const uint32_t (&d)[Count],
                                                  const weft_tensor_powers &power) {
#pragma unroll
  for (int i = 0; i < Count / 4; i++) {
    pair[2 * i] = d[4 * i + 2] * power.p16 + d[4 * i];
    pair[2 * i + 1] = d[4 * i + 3] * power.p16 + d[4 * i + 1];
  }
}

// Bits of a where mask has ones, of b elsewhere: one LOP3, which also drops what is not selected.
__device__ __forceinline__ uint32_t weft_tensor_select(uint32_t mask, uint32_t a, uint32_t b) {
  uint32_t out;
  asm("lop3.b32 %0, %1, %2, %3, 0xe2;" : "=r"(out) : "r"(a), "r"(mask), "r"(b));
  return out;
}

// The bytes at s = 0 and 1 of group g: in the low halves of the bytes, low nibbles in bytes 0 and
// 1 and high ones in 2 and 3. The other halves hold what is left of the sums.
template <int Count>
__device__ __forceinline__ uint32_t weft_tensor_nibbles(const uint32_t (&pair)[Count], int g,
                                                        const weft_tensor_powers &power) {
  uint32_t bits[4];
#pragma unroll
  for (int b = 0; b < 4; b++)
    bits[b] = __byte_perm(pair[8 * g + b], pair[8 * g + b + 4], 0x6420);
  const uint32_t low = weft_tensor_select(0x01010101u, bits[0], bits[1] * power.p1);
  const uint32_t high = weft_tensor_select(0x01010101u, bits[2], bits[3] * power.p1);
  return weft_tensor_select(0x03030303u, low, high * power.p2);
}

// The nibbles of both tiles of a pair to four adjacent bytes.
__device__ __forceinline__ uint32_t weft_tensor_word(uint32_t tile0, uint32_t tile1,
                                                     const weft_tensor_powers &power) {
  const uint32_t high = __byte_perm(tile0, tile1, 0x7632) * power.p4;
  return weft_tensor_select(0x0f0f0f0fu, __byte_perm(tile0, tile1, 0x5410), high);
}

// Words of Count coded blocks, 4 rows apart from `row` on, at byte `at` of each.
template <int Count>
__device__ __forceinline__ void weft_tensor_store(const weft_tensor_batch &batch,
                                                  const weft_tensor_job &job, uint32_t row,
                                                  uint32_t at, const uint32_t (&word)[Count]) {
  if (batch.y_words && at + 4 <= batch.len && row + 4 * (Count - 1) < batch.m) {
    uint8_t *to = job.y + row * batch.y_stride + at;
    const size_t step = 4 * batch.y_stride;
    uint32_t old[Count];
#pragma unroll
    for (int g = 0; g < Count; g++)
      old[g] = batch.accumulate ? *reinterpret_cast<const uint32_t *>(to + g * step) : 0;
#pragma unroll
    for (int g = 0; g < Count; g++)
      *reinterpret_cast<uint32_t *>(to + g * step) = old[g] ^ word[g];
    return;
  }
#pragma unroll
  for (int g = 0; g < Count; g++) {
    if (row + 4 * g >= batch.m)
      return;
    uint8_t *to = batch.y_ptr ? batch.y_ptr[row + 4 * g] : job.y + (row + 4 * g) * batch.y_stride;
    uint32_t value = word[g];
    for (uint32_t i = at; i < at + 4 && i < batch.len; i++, value >>= 8)
      to[i] = static_cast<uint8_t>(batch.accumulate ? to[i] ^ value : value);
  }
}

#endif
