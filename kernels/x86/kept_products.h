// SPDX-License-Identifier: Apache-2.0
// Kept products, whose matrices all stay in registers: a few sources into a few rows, such as
// (4, 2) and (6, 3), with code of its own for each shape. A column loads nothing but its sources,
// and a call neither copies matrices nor loops over sources, which short rows would notice. The
// GFNI techniques include this after tile.h and define, in addition to what that asks for:
//   KEPT_SHAPES(of): of(k, rows) for each shape; KEPT_SOURCES, KEPT_ROWS, KEPT_MATRICES: the maxima
//     of a shape, for which registers also have room for the sums, two sources and their products
//   KEPT_NEAR: bytes of all rows that a near cache holds; between the first-level cache and this
//     only shapes of at most KEPT_NEAR_SOURCES sources are kept
// docs/performance/storage-few-rows.md says what it gains.
#ifndef WEFT_KERNELS_X86_KEPT_PRODUCTS_H
#define WEFT_KERNELS_X86_KEPT_PRODUCTS_H

#include "kernels/backend.h"
#include "kernels/unroll.h"
#include "kernels/zigzag.h"

#ifndef KEPT_FIRST       // tests set less, to get past it with short rows
#define KEPT_FIRST 32768 // bytes of all rows that the first-level cache holds
#endif
enum { KEPT_NEAR_SOURCES = 6 };

// Returns which source is taken as the at-th: pairs from both ends in turn (zigzag.h).
WEFT_INLINE size_t kept_source(size_t at, const size_t k) {
  return at / 2 < k / 2 ? 2 * weft_zigzag(at / 2, k / 2) + at % 2 : at;
}

// Computes a vector of columns. Inlined for constant k and rows, like its caller.
WEFT_INLINE void kept_column(const uint8_t *const *x, uint8_t *const *y, size_t at,
                             const con *matrix, const size_t k, const size_t rows) {
  vec sum[KEPT_ROWS];
  WEFT_UNROLL for (size_t j = 0; j + 1 < k; j += 2) {
    const vec s = vec_load(x[j] + at), t = vec_load(x[j + 1] + at);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      const con c = matrix[j * rows + r], d = matrix[(j + 1) * rows + r];
      sum[r] = j == 0 ? vec_xor(product(s, c), product(t, d)) : mac2(sum[r], s, c, t, d);
    }
  }
  if (k % 2) {
    const vec s = vec_load(x[k - 1] + at);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) sum[r] =
        mac(sum[r], s, matrix[(k - 1) * rows + r]);
  }
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) vec_store(y[r] + at, sum[r]);
}

WEFT_INLINE void kept_columns(const weft_panel *p, size_t end, const size_t k, const size_t rows) {
  const uint8_t *x[KEPT_SOURCES];
  uint8_t *y[KEPT_ROWS];
  con matrix[KEPT_MATRICES];
  WEFT_UNROLL for (size_t j = 0; j < k; j++) {
    const size_t source = kept_source(j, k);
    x[j] = p->x[source];
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) matrix[j * rows + r] =
        con_make(p->a[r * p->a_stride + source]);
  }
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) y[r] = p->y[r];
  for (size_t at = p->begin; at < end; at += VEC_BYTES)
    kept_column(x, y, at, matrix, k, rows);
}

#define KEPT(k, rows)                                                                              \
  static void kept_##k##_##rows(const weft_panel *p, size_t end) { kept_columns(p, end, k, rows); }
KEPT_SHAPES(KEPT)
#undef KEPT

#define KEPT(k, rows) [k][rows] = kept_##k##_##rows,
static void (*const kept_shapes[KEPT_SOURCES + 1][KEPT_ROWS + 1])(const weft_panel *,
                                                                  size_t) = {KEPT_SHAPES(KEPT)};
#undef KEPT

static bool kept_fits(const weft_panel *p) {
  const size_t bytes = (p->m + p->k) * (p->end - p->begin);
  return p->m <= KEPT_ROWS && p->k <= KEPT_SOURCES && kept_shapes[p->k][p->m] && !p->accumulate &&
         !p->fetch && (bytes <= KEPT_FIRST || (bytes <= KEPT_NEAR && p->k <= KEPT_NEAR_SOURCES));
}

// Computes a panel for which kept_fits is true.
static void kept_panel(const weft_panel *p) {
  const size_t part = (p->end - p->begin) % VEC_BYTES;
  kept_shapes[p->k][p->m](p, p->end - part);
  if (part)
    tile_column(p, p->end - part, 1, part, false);
}

#endif
