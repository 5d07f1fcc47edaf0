// SPDX-License-Identifier: Apache-2.0
// What makes parity, and what rebuilds shards, as steps of additive Fourier transforms.
#ifndef WEFT_LIB_STORAGE_TRANSFORM_H
#define WEFT_LIB_STORAGE_TRANSFORM_H

#include <stdatomic.h>

#include "kernels/factors.h"
#include "lib/storage/generator.h"
#include "lib/storage/step_list.h"

// Who executes the steps.
typedef struct weft_transform_for {
  size_t slots_most;
  weft_step_prices prices;
  size_t entry_saves; // what an entry of a small matrix costs less than its steps
  size_t together;    // outputs of a small matrix that are made at once
  bool fills;         // takes zeros for data that is not there: butterflies in fours cost it less
  bool hurried;       // leaves out ways that are hardly ever better
  bool early; // rather scales values when they are first made than rows when they are stored
} weft_transform_for;

// Techniques of the host, which make panels of small matrices; and kernels made for a device, which
// have slots in registers and count exclusive-ors of words.
extern const weft_transform_for weft_transform_for_host, weft_transform_for_device;

// What recoveries of one code have found out for each other: by how many parity shards stand in for
// data, how blocks met best; 0: nobody knows yet. Zeros at first.
typedef struct weft_transform_memory {
  atomic_uchar layout[WEFT_SHARDS_MAX + 1];
} weft_transform_memory;

// The matrix of weft_generator_solve over GF(2^8) as steps: of the ways that are known the one with
// the least work; of the generator's allocator. No shard of `out` may be in `in`. `memory` may be
// NULL, else it is the code's, for one `who`.
// WEFT_E_UNSUPPORTED: a code without points, or no way in so few slots. WEFT_E_ARGUMENT,
// WEFT_E_NOMEM.
weft_status weft_transform_new(const weft_generator *generator, const uint8_t *in,
                               const uint8_t *out, size_t count, const weft_transform_for *who,
                               weft_transform_memory *memory, weft_factors **factors);

// Whether a recovery is the detour by encoding as it is: losses are so many and so scattered that
// steps of their own would be no less work.
bool weft_transform_is_detour(const weft_generator *generator, const uint8_t *in,
                              const uint8_t *out, size_t count);

// Such a recovery, by encoding's factors, for techniques of the host whose transforms of up to
// wide_rows rows are one pass: acts alone, in a sixth of the time that steps take. `matrix` is
// weft_generator_solve's. WEFT_E_UNSUPPORTED: it is none, or these factors do not do. WEFT_E_NOMEM.
weft_status weft_transform_by_encoding(const weft_generator *generator, const weft_factors *encode,
                                       const uint8_t *in, const uint8_t *out, size_t count,
                                       const uint8_t *matrix, size_t wide_rows,
                                       weft_factors **factors);

#endif
