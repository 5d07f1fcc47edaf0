// SPDX-License-Identifier: Apache-2.0
// Products of storage codes on a device: few outputs, few inputs, long rows. Each entry answers
// WEFT_E_UNSUPPORTED for shapes that it does not take, and then has enqueued nothing.
#ifndef WEFT_KERNELS_CUDA_STORAGE_H
#define WEFT_KERNELS_CUDA_STORAGE_H

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/backend.h"

enum {
  WEFT_STORAGE_SOURCES = 64, // inputs of one launch of the tensor kernel
  WEFT_STORAGE_OUTPUTS = 32  // outputs of it
};

// Y = A * X on rows as they lie, by binary tensor cores with the transpose inside the kernel.
// Any m and k, in panels; A in host memory.
weft_status weft_storage_tensor(const weft_exec *exec, const weft_gemm *gemm);

// The same as a straight-line kernel of its own over bits, where that has been found worth
// compiling (nvrtc.h). A in host memory.
weft_status weft_storage_program_gemm(const weft_exec *exec, const weft_gemm *gemm);

// Whether `count` products like this one are storage products: few outputs of few, long rows.
bool weft_storage_suits(const weft_gemm *gemm, size_t count);
// Such a product by the quicker of both ways, as measured.
weft_status weft_storage_gemm(const weft_exec *exec, const weft_gemm *gemm);

// Y = bits * X on packets as a kernel of its own, likewise. The first *done_groups groups of every
// shard are computed; the few after them are the caller's.
weft_status weft_storage_program_xorm(const weft_exec *exec, const weft_xorm *xorm,
                                      size_t *done_groups);

#ifdef __cplusplus
}
#endif
#endif
