// SPDX-License-Identifier: Apache-2.0
// A matrix over GF(2^8) as the steps of a transform. A product with some matrices, those of
// Reed-Solomon codes among them, takes far fewer multiplications by butterflies than entry by
// entry. A code that knows such a way offers it beside its matrix; the bytes are the same.
#ifndef WEFT_KERNELS_FACTORS_H
#define WEFT_KERNELS_FACTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/memory.h"
#include "weft/status.h"

// On slots, each of which holds a row of bytes.
typedef enum weft_step_kind {
  WEFT_STEP_LOAD,    // slot `to` = row `from` of X
  WEFT_STEP_SET,     // to = c * from, which may be one slot; 0 * from may hold nothing yet
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

// Every row of Y is stored once, in any order; rows of X are loaded in their order.
typedef struct weft_factors {
  size_t slots; // that are used, 1..256
  size_t count;
  const weft_step *steps; // NULL: there are acts alone
  // What it costs: multiplications by anything but 0 and 1, of which so many are sets and adds of
  // the same slot as the step before them; exclusive-ors.
  size_t products, repeated, sums;
  const struct weft_acts *acts; // the same as host techniques execute it; NULL: too long for them
} weft_factors;

// Copies the steps. WEFT_E_NOMEM.
weft_status weft_factors_new(const weft_step *steps, size_t count, size_t slots,
                             const weft_allocator *allocator, weft_factors **out);

// A product by way of another one that has factors. That one is made of some rows of X, and zeros;
// other rows of X are added to rows that it makes, and a small matrix makes rows of Y of these, to
// which others that it makes may be added as they are.
enum { WEFT_NO_ROW = 0xFFFF };
typedef struct weft_detour {
  const uint16_t *row;   // of X, for each row of the known product's X, or WEFT_NO_ROW: zeros
  const uint16_t *added; // of X, to each row of the known product's Y, or WEFT_NO_ROW
  const uint16_t *plus;  // (m) rows of the known product's Y that rows of Y have more, each once
  size_t m, sources;
  const uint8_t *source; // (sources) other rows of the known product's Y, each once
  const uint8_t *a;      // (m, sources), row stride sources
  size_t wide_rows;      // of the largest transform that is one pass where it is executed
} weft_detour;
// For host techniques alone: there are no steps. WEFT_E_UNSUPPORTED: the known one has no acts, or
// such that cannot be gone by so. WEFT_E_NOMEM.
weft_status weft_factors_by_detour(const weft_factors *known, const weft_detour *detour,
                                   const weft_allocator *allocator, weft_factors **out);
void weft_factors_free(weft_factors *factors, const weft_allocator *allocator);

#endif
