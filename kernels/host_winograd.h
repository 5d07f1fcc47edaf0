// SPDX-License-Identifier: Apache-2.0
// Large products as seven, instead of eight, of half the size in each direction (Strassen, in
// Winograd's form).
#ifndef WEFT_KERNELS_HOST_WINOGRAD_H
#define WEFT_KERNELS_HOST_WINOGRAD_H

#include "kernels/backend.h"

enum { WEFT_WINOGRAD_COLUMNS = 1024 }; // with fewer at a time it does not pay

static inline bool weft_host_winograd_pays(const weft_host_kernel *kernel, size_t m, size_t k) {
  const size_t mh = m / 2, kh = k / 2;
  return kernel->winograd_half && mh > 0 && kh > 0 &&
         2 * mh * kh >= kernel->winograd_half * (mh + kh);
}

// Multiplies columns [begin, ...) and returns where it stopped: at `begin` if saving a product does
// not pay for the additional sums, or there is no memory for them.
size_t weft_host_winograd(const weft_host_kernel *kernel, const weft_allocator *allocator,
                          const weft_gemm *gemm, size_t begin, size_t end);

#endif
