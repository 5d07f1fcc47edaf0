// SPDX-License-Identifier: Apache-2.0
// Factors of parity and recovery matrices: the steps of additive Fourier transforms. An act
// (kernels/factors.h) is such a transform, or a small matrix, as the host techniques execute it.
#ifndef WEFT_LIB_STORAGE_TRANSFORM_H
#define WEFT_LIB_STORAGE_TRANSFORM_H

#include <stdatomic.h>

#include "kernels/factors.h"
#include "lib/storage/generator.h"
#include "lib/storage/step_list.h"

// What executes the steps, and what they cost there.
typedef struct weft_transform_for {
  size_t slots_most;
  weft_step_prices prices;
  size_t entry_saves; // how much less an entry of a small matrix costs than its steps
  size_t together;    // outputs of a small matrix that are computed at once
  bool fills;         // fills in zeros for missing data: butterflies in fours cost it less
  bool hurried;       // skips ways that are hardly ever better
  bool early;         // scales values when they are first made rather than when stored
} weft_transform_for;

// The host's techniques, which compute panels with small matrices; and kernels generated for a
// device, which keep slots in registers and count XORs in words.
extern const weft_transform_for weft_transform_for_host, weft_transform_for_device;

// What recoveries of one code learn for each other: for each number of parity shards that stand in
// for data, the best layout of blocks found; 0: not known yet. Initially all zeros.
typedef struct weft_transform_memory {
  atomic_uchar layout[WEFT_SHARDS_MAX + 1];
} weft_transform_memory;

// Writes the matrix of weft_generator_solve over GF(2^8) as steps, using the cheapest of the known
// ways. The result comes from the generator's allocator. No shard of `out` may be in `in`. `memory`
// may be NULL; otherwise it belongs to the code, and to one `who`. WEFT_E_UNSUPPORTED: the code has
// no points, or no way fits into the slots. WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_transform_new(const weft_generator *generator, const uint8_t *in,
                               const uint8_t *out, size_t count, const weft_transform_for *who,
                               weft_transform_memory *memory, weft_factors **factors);

// Whether a recovery is best done by the detour through encoding (weft_transform_by_encoding):
// losses are so many and so scattered that steps of their own would be no less work.
bool weft_transform_is_detour(const weft_generator *generator, const uint8_t *in,
                              const uint8_t *out, size_t count);

// Makes the factors of such a recovery from those of encoding, for host techniques whose transforms
// of up to wide_rows rows are one pass. Builds acts only, in a sixth of the time that steps take.
// `matrix` is weft_generator_solve's. WEFT_E_UNSUPPORTED: the recovery is not such a detour, or
// these factors cannot be used for it. WEFT_E_NOMEM.
weft_status weft_transform_by_encoding(const weft_generator *generator, const weft_factors *encode,
                                       const uint8_t *in, const uint8_t *out, size_t count,
                                       const uint8_t *matrix, size_t wide_rows,
                                       weft_factors **factors);

#endif
