// SPDX-License-Identifier: Apache-2.0
// Factors: a matrix over GF(2^8) as the steps of a transform. Products with some matrices, those of
// Reed-Solomon codes among them, take far fewer multiplications by butterflies than entry by entry.
// A code that knows such steps offers them along with its matrix; both produce the same bytes.
#ifndef WEFT_KERNELS_FACTORS_H
#define WEFT_KERNELS_FACTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/memory.h"
#include "weft/status.h"

// A step is one operation on slots, each of which holds a row of bytes.
typedef enum weft_step_kind {
  WEFT_STEP_LOAD,    // slot `to` = row `from` of X
  WEFT_STEP_SET,     // to = c * from, possibly the same slot; if c is 0, `from` may be unset
  WEFT_STEP_ADD,     // to ^= c * from
  WEFT_STEP_INVERSE, // butterfly: from ^= to, then to ^= c * from
  WEFT_STEP_FORWARD, // butterfly: to ^= c * from, then from ^= to
  WEFT_STEP_STORE    // row `to` of Y = or ^= slot `from`
} weft_step_kind;

typedef struct weft_step {
  uint8_t kind, to, from, c;
} weft_step;

static inline bool weft_step_is_butterfly(const weft_step *step) {
  return step->kind == WEFT_STEP_INVERSE || step->kind == WEFT_STEP_FORWARD;
}

static inline bool weft_step_is_product(const weft_step *step) {
  return step->kind == WEFT_STEP_SET || step->kind == WEFT_STEP_ADD;
}

// Every row of Y is stored once, in any order; rows of X are loaded in order.
typedef struct weft_factors {
  size_t slots; // number used, 1..256
  size_t count;
  const weft_step *steps; // NULL: there are only acts
  // The cost: multiplications by constants other than 0 and 1; those of them that set or add from
  // the same slot as the step before; exclusive-ors.
  size_t products, repeated, sums;
  const struct weft_acts *acts; // the steps as host techniques execute them; NULL: too many
} weft_factors;

// Copies the steps. WEFT_E_NOMEM.
weft_status weft_factors_new(const weft_step *steps, size_t count, size_t slots,
                             const weft_allocator *allocator, weft_factors **out);

// A detour computes a product via another one whose factors are known. The known product is applied
// to some rows of X, and zeros for the others; further rows of X are added to rows of its result,
// and a small matrix turns these sums into rows of Y, to which other rows of the known product's
// result may be added unchanged.
enum { WEFT_NO_ROW = 0xFFFF };
typedef struct weft_detour {
  const uint16_t *row;   // of X, for each row of the known product's X; WEFT_NO_ROW: zeros
  const uint16_t *added; // of X, to each row of the known product's Y; WEFT_NO_ROW: none
  const uint16_t *plus;  // (m) of the known product's Y, to each row of Y, each once; likewise
  size_t m, sources;
  const uint8_t *source; // (sources) rows of the known product's Y that `a` multiplies, each once
  const uint8_t *a;      // (m, sources), row stride sources
  size_t wide_rows;      // of the largest transform that the executing technique does in one pass
} weft_detour;
// Makes factors of a detour, for host techniques only: there are no steps. Errors:
// WEFT_E_UNSUPPORTED: the known product has no acts, or its acts cannot be reused like this;
// WEFT_E_NOMEM.
weft_status weft_factors_by_detour(const weft_factors *known, const weft_detour *detour,
                                   const weft_allocator *allocator, weft_factors **out);
void weft_factors_free(weft_factors *factors, const weft_allocator *allocator);

#endif
