// SPDX-License-Identifier: Apache-2.0
// The parity matrix of a code on consecutive points as additive Fourier transforms.
#ifndef WEFT_LIB_STORAGE_TRANSFORM_H
#define WEFT_LIB_STORAGE_TRANSFORM_H

#include "kernels/factors.h"
#include "lib/storage/generator.h"

// The parity matrix of a generator over GF(2^8) as steps on at most `slots_most` slots: of the ways
// that are known the one with the least work; of the generator's allocator. WEFT_E_UNSUPPORTED:
// points that are not 0, 1, 2 and so on, or no way in so few slots. WEFT_E_NOMEM.
weft_status weft_transform_new(const weft_generator *generator, size_t slots_most,
                               weft_factors **out);

// What a program costs: multiplications by anything but 1, and exclusive-ors.
typedef struct weft_transform_work {
  size_t products, sums;
} weft_transform_work;
weft_transform_work weft_transform_count(const weft_factors *factors);

#endif
