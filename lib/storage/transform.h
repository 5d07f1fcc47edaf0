// SPDX-License-Identifier: Apache-2.0
// What makes parity, and what rebuilds shards, as steps of additive Fourier transforms.
#ifndef WEFT_LIB_STORAGE_TRANSFORM_H
#define WEFT_LIB_STORAGE_TRANSFORM_H

#include "kernels/factors.h"
#include "lib/storage/generator.h"
#include "lib/storage/step_list.h"

// The matrix of weft_generator_solve over GF(2^8) as steps on at most `slots_most` slots: of the
// ways that are known the one with the least work; of the generator's allocator. No shard of `out`
// may be in `in`. WEFT_E_UNSUPPORTED: a code without points, or no way in so few slots.
// WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_transform_new(const weft_generator *generator, const uint8_t *in,
                               const uint8_t *out, size_t count, size_t slots_most,
                               weft_factors **factors);

// The same for techniques of the host: in the slots that they take, and with the small matrix at
// the third of a product and a sum that an entry costs where they make panels of its steps.
weft_status weft_transform_for_host(const weft_generator *generator, const uint8_t *in,
                                    const uint8_t *out, size_t count, weft_factors **factors);

weft_step_work weft_transform_count(const weft_factors *factors);

#endif
