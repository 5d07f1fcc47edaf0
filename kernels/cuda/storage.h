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
// compiling (nvrtc.h). A in host memory. `count` products that are alike in all but their rows, by
// one launch; WEFT_E_UNSUPPORTED for none, or more than weft_storage_program_stripes.
weft_status weft_storage_program_gemm(const weft_exec *exec, const weft_gemm *gemms, size_t count);
// The most of them.
size_t weft_storage_program_stripes(size_t k, size_t m);

// Whether `count` products like this one are storage products: few outputs of few, long rows.
bool weft_storage_suits(const weft_gemm *gemm, size_t count);
// The first *done of `count` products by the quicker of both ways, as measured: the first one,
// which suits, and those after it that differ from it in their rows alone.
weft_status weft_storage_gemm(const weft_exec *exec, const weft_gemm *gemms, size_t count,
                              size_t *done);

// Y = bits * X on packets as a kernel of its own, likewise.
weft_status weft_storage_program_xorm(const weft_exec *exec, const weft_xorm *xorms, size_t count);

#ifdef __cplusplus
}

// The bits of all row addresses of a product: what divides this, they are all aligned to.
static inline uintptr_t weft_storage_address_bits(const weft_const_rows &x, size_t k,
                                                  const weft_rows &y, size_t m) {
  uintptr_t bits = 0;
  for (size_t j = 0; j < k; j++)
    bits |= reinterpret_cast<uintptr_t>(weft_const_row(&x, j));
  for (size_t i = 0; i < m; i++)
    bits |= reinterpret_cast<uintptr_t>(weft_row(&y, i));
  return bits;
}
#endif
#endif
