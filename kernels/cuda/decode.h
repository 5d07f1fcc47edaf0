// SPDX-License-Identifier: Apache-2.0
// Decoding as the paper does it, for comparison with a batch of inversions followed by the product:
// Gauss-Jordan elimination on augmented matrices. No rows of the table; the bench calls them.
#ifndef WEFT_KERNELS_CUDA_DECODE_H
#define WEFT_KERNELS_CUDA_DECODE_H

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/backend.h"

typedef enum weft_cuda_pivoting {
  WEFT_CUDA_PIVOT_SCAN,      // one thread looks for the pivot; factors are read where they lie
  WEFT_CUDA_PIVOT_ATOMIC_MIN // all threads do, with atomicMin (5.4.2); factors are cached (5.4.3)
} weft_cuda_pivoting;

// One segment: X = inverse(C) * Y. Every block reduces its own copy of C beside its columns of Y.
typedef struct weft_cuda_decode {
  size_t k, len;             // 1 <= k <= 256
  const uint8_t *c;          // (k, k), dense, device memory
  const uint8_t *y;          // (k, len) coded blocks, device memory, row stride y_stride
  uint8_t *x;                // (k, len) source blocks, device memory, row stride x_stride
  size_t y_stride, x_stride; // bytes, multiples of 4, rows aligned to 4
  uint8_t *singular;         // device memory: 1 where C has no inverse, else 0
  weft_cuda_pivoting pivoting;
} weft_cuda_decode;
weft_status weft_cuda_decode_single(const weft_exec *exec, const weft_cuda_decode *decode);

// Batch inversion as [C | I], one matrix per block, `per_sm` (1 or 2) blocks per multiprocessor
// (the paper's Fig. 9). k is a multiple of 4, at most 128; device memory.
weft_status weft_cuda_invert_augmented(const weft_exec *exec, const weft_invert *invert,
                                       unsigned per_sm, weft_cuda_pivoting pivoting);

#ifdef __cplusplus
}
#endif
#endif
