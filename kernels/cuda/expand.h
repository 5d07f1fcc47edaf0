// SPDX-License-Identifier: Apache-2.0
// Coefficients made on the device: seeds to the bytes that the CPU makes of them, and fresh ones.
#ifndef WEFT_KERNELS_CUDA_EXPAND_H
#define WEFT_KERNELS_CUDA_EXPAND_H

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/backend.h"

weft_status weft_cuda_expand(const weft_exec *exec, const weft_expansion *expansion);

#ifdef __cplusplus
}
#endif
#endif
