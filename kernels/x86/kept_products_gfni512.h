// SPDX-License-Identifier: Apache-2.0
// Products of row gfni512 whose matrices all stay in registers: a few sources into a few rows, such
// as (4, 2) and (6, 3), each shape as code of its own. A column takes no loads but its sources',
// and a call neither copies matrices nor runs through a loop over sources, which short rows would
// notice. few_rows_gfni512.h includes this; docs/performance/storage-few-rows.md has what it gains.
#ifndef WEFT_KERNELS_X86_KEPT_PRODUCTS_GFNI512_H
#define WEFT_KERNELS_X86_KEPT_PRODUCTS_GFNI512_H

enum {
  KEPT_MATRICES = 20, // which leaves registers for sums, two sources and their products
  KEPT_ROWS = 4,
  KEPT_SOURCES = 10
};

// Tests set less, so as to come by.
#ifndef KEPT_FIRST
#define KEPT_FIRST 32768 // bytes of all rows that the first cache holds,
// and a near one, where sources are at most KEPT_NEAR_SOURCES. Not measured but on Zen 4.
#define KEPT_NEAR (core_is_zen4() ? (size_t)1 << 20 : 0)
#endif
enum { KEPT_NEAR_SOURCES = 6 };

// Which source is taken as the at-th: pairs from both ends in turn (zigzag.h).
WEFT_INLINE size_t kept_source(size_t at, const size_t k) {
  return at / 2 < k / 2 ? 2 * weft_zigzag(at / 2, k / 2) + at % 2 : at;
}

// A vector of columns. Inlined for constant k and rows, as what calls it.
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
#define KEPT_UP_TO_5(of)                                                                           \
  of(2, 1) of(3, 1) of(4, 1) of(5, 1) of(2, 2) of(3, 2) of(4, 2) of(5, 2) of(2, 3) of(3, 3)        \
      of(4, 3) of(5, 3) of(2, 4) of(3, 4) of(4, 4) of(5, 4)
#define KEPT_MORE(of)                                                                              \
  of(6, 1) of(7, 1) of(8, 1) of(9, 1) of(10, 1) of(6, 2) of(7, 2) of(8, 2) of(9, 2) of(10, 2)      \
      of(6, 3)
KEPT_UP_TO_5(KEPT)
KEPT_MORE(KEPT)
#undef KEPT

static bool kept_fits(const weft_panel *p) {
  const size_t columns = p->end - p->begin, bytes = (p->m + p->k) * columns;
  return p->m <= KEPT_ROWS && p->k - 2 <= KEPT_SOURCES - 2 && p->m * p->k <= KEPT_MATRICES &&
         !p->accumulate && !p->fetch &&
         (bytes <= KEPT_FIRST || (bytes <= KEPT_NEAR && p->k <= KEPT_NEAR_SOURCES));
}

// A panel that fits.
static void kept_panel(const weft_panel *p) {
#define KEPT_ENTRY(k, rows) [k][rows] = kept_##k##_##rows,
  static void (*const of[KEPT_SOURCES + 1][KEPT_ROWS + 1])(const weft_panel *, size_t) = {
      KEPT_UP_TO_5(KEPT_ENTRY) KEPT_MORE(KEPT_ENTRY)};
#undef KEPT_ENTRY
  const size_t part = (p->end - p->begin) % VEC_BYTES;
  of[p->k][p->m](p, p->end - part);
  if (part)
    tile_column(p, p->end - part, 1, part, false);
}

#endif
