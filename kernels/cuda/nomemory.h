// SPDX-License-Identifier: Apache-2.0
// A bound for the bench, not a product: see nomemory.cu.
#ifndef WEFT_KERNELS_CUDA_NOMEMORY_H
#define WEFT_KERNELS_CUDA_NOMEMORY_H

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/backend.h"

// Takes the time of the loop-based product without reading A or X; what it writes to Y means
// nothing. A is in device memory; X is dense, aligned to 16, its length a multiple of 512.
weft_status weft_cuda_nomemory_gemm(const weft_exec *exec, const weft_gemm *gemm);

#ifdef __cplusplus
}
#endif
#endif
