// SPDX-License-Identifier: Apache-2.0
// Coefficients made on the device: seeds to the bytes that the CPU makes of them, and fresh ones.
#ifndef WEFT_KERNELS_CUDA_EXPAND_H
#define WEFT_KERNELS_CUDA_EXPAND_H

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/backend.h"

// What a coded packet's coefficients follow from; the 32-byte key is these and a zero, as u64
// little-endian each.
typedef struct weft_cuda_seed {
  uint64_t stream, segment, seed;
} weft_cuda_seed;

typedef struct weft_cuda_expansion {
  size_t count, k;
  const weft_cuda_seed *seeds; // (count), device memory, or NULL: fresh coefficients
  uint8_t key[32];             // of fresh coefficients: random, used for one call only
  uint16_t density_q16;        // 0: dense, every coefficient nonzero; else nonzero with d / 65536
  uint8_t *out;                // (count, k), device memory, row stride out_stride bytes
  size_t out_stride;
} weft_cuda_expansion;

weft_status weft_cuda_expand(const weft_exec *exec, const weft_cuda_expansion *expansion);

#ifdef __cplusplus
}
#endif
#endif
