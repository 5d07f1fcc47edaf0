// SPDX-License-Identifier: Apache-2.0
// The panel product of every vector technique, written once. A technique's file defines its vectors
// (below) before it includes this file, and gets tile_panel, tile_difference and tile_xor_rows.
//
// A tile is TILE_ROWS output rows by TILE_VECS vectors of columns, kept in registers while all
// sources stream by: one load of a source feeds TILE_ROWS rows, one load of a coefficient feeds
// TILE_VECS vectors. A single output row has no such reuse and is bound by reading: there each pass
// adds several sources (STREAM_SOURCES) to a short run of the output. A single source has none
// either; its panel is in fan.h.
//
// The including file defines:
//   VEC_BYTES; vec (a vector); src (a prepared source vector); con (a prepared coefficient)
//   vec_zero, vec_load, vec_store, vec_xor
//   vec_load_end, vec_load_own_end(row, end, n), vec_store_end(row, end, n, v): the last n bytes,
//     n < VEC_BYTES, before column `end`, at the same position in the vector in all three. The
//     first is for sources and may read [0, end), the others are for outputs and touch only
//     [end - n, end)
//   src_make(vec), con_make(coefficient), mac(acc, src, con)
//   VEC_TERNARY if vec_xor3 adds two vectors to a third in one instruction
//   mac2(acc, src, con, src, con) and TILE_PAIRS 1 if two sources are better merged than added one
//     by one
//   TILE_MADE 1, TILE_MADE_BYTES, src_store(to, src), src_load(from) if a packed source is prepared
//     once rather than for each tile
//   optionally TILE_CHUNK, how many sources are straight-line code, and mac_row(acc, src, con,
//     vecs), which multiplies all vectors of a row in an order of its own
//   optionally SPARE_SRC(vec), a src_make for where few registers are in use, of one or few rows
//   TILE_ROWS (at most 12), TILE_VECS, STREAM_SOURCES (even), and what fan.h asks for
// docs/performance/cpu-kernels.md says what was tried.
#ifndef WEFT_KERNELS_TILE_H
#define WEFT_KERNELS_TILE_H

#include "kernels/backend.h"
#include "kernels/fan.h"
#include "kernels/fetch.h"
#include "kernels/unroll.h"

#ifndef TILE_MADE
#define TILE_MADE 0
#define TILE_MADE_BYTES VEC_BYTES
#endif
#ifndef TILE_CHUNK
#define TILE_CHUNK 1
WEFT_INLINE void mac_row(vec *acc, const src *s, con c, const size_t vecs) {
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] = mac(acc[v], s[v], c);
}
#endif

#ifndef SPARE_SRC
#define SPARE_SRC(x) src_make(x)
#endif

enum {
  STREAM_COLUMNS = 4096,
  STREAM_FROM = 4 * TILE_VECS * VEC_BYTES, // bytes; a shorter row is a few tiles of one output row
  XOR_VECS = 4,
  XOR_SOURCES = 7,
  PACK_OUTPUTS = 32
};

// `part` is 0 for whole vectors, else how many bytes are left before the panel's end.
WEFT_INLINE vec tile_load(const weft_panel *p, const uint8_t *row, size_t column, size_t part) {
  return part ? vec_load_end(row, p->end, part) : vec_load(row + column);
}

WEFT_INLINE vec tile_load_own(const weft_panel *p, const uint8_t *row, size_t column, size_t part) {
  return part ? vec_load_own_end(row, p->end, part) : vec_load(row + column);
}

WEFT_INLINE void tile_store(const weft_panel *p, uint8_t *row, size_t column, size_t part, vec v) {
  if (part)
    vec_store_end(row, p->end, part, v);
  else
    vec_store(row + column, v);
}

// Where the coefficients of a tile's rows are. With many rows the compiler would keep a pointer for
// each and spill some; three opaque ones plus multiples of the stride suffice.
typedef struct tile_coefficients {
  const uint8_t *first[3];
  size_t stride;
} tile_coefficients;

WEFT_INLINE tile_coefficients tile_coefficients_at(const uint8_t *a, size_t stride,
                                                   const size_t rows) {
  tile_coefficients c = {{a, a, a}, stride};
  if (rows > 4) {
    c.first[1] = a + 4 * stride;
    __asm__("" : "+r"(c.first[0]), "+r"(c.first[1]));
  }
  if (rows > 8) {
    c.first[2] = a + 8 * stride;
    __asm__("" : "+r"(c.first[2]));
  }
  return c;
}

WEFT_INLINE uint8_t tile_coefficient(tile_coefficients c, const size_t r, const size_t rows,
                                     size_t j) {
  return rows > 4 ? c.first[r / 4][r % 4 * c.stride + j] : c.first[0][r * c.stride + j];
}

// Loads source j, which is already prepared where `made` is set.
WEFT_INLINE void tile_source(const weft_panel *p, size_t j, size_t column, const size_t vecs,
                             const size_t part, const bool made, src *s) {
  (void)made;
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
#if TILE_MADE
    if (made) {
      s[v] = src_load(p->x[j] + v * TILE_MADE_BYTES);
      continue;
    }
#endif
    s[v] = src_make(tile_load(p, p->x[j], column + v * VEC_BYTES, part));
  }
}

// Adds the products of `count` sources from j on to the sums of a tile.
WEFT_INLINE void tile_add(const weft_panel *p, const uint8_t *a, size_t j, const size_t count,
                          const size_t rows, size_t column, const size_t vecs, const size_t part,
                          const bool made, vec acc[][TILE_VECS]) {
  WEFT_UNROLL for (size_t u = 0; u < count; u++) {
    src s[TILE_VECS];
    tile_source(p, j + u, column, vecs, part, made, s);
    const tile_coefficients near = tile_coefficients_at(a + j + u, p->a_stride, rows);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++)
        mac_row(acc[r], s, con_make(tile_coefficient(near, r, rows, 0)), vecs);
  }
}

// Computes output rows [row, row + rows) x vecs vectors from `column`. Inlined for each constant
// rows and vecs.
WEFT_INLINE void tile(const weft_panel *p, size_t row, const size_t rows, size_t column,
                      const size_t vecs, const size_t part, const bool made) {
  vec acc[TILE_ROWS][TILE_VECS];
  const uint8_t *const a = p->a + row * p->a_stride;
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
      acc[r][v] = p->accumulate ? tile_load_own(p, p->y[row + r], column + v * VEC_BYTES, part)
                                : vec_zero();
    }
  }
  size_t j = 0;
#if TILE_PAIRS
  for (; j + 2 <= p->k; j += 2) {
    src s[TILE_VECS], t[TILE_VECS];
    tile_source(p, j, column, vecs, part, made, s);
    tile_source(p, j + 1, column, vecs, part, made, t);
    const tile_coefficients near = tile_coefficients_at(a + j, p->a_stride, rows);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      const con c = con_make(tile_coefficient(near, r, rows, 0));
      const con d = con_make(tile_coefficient(near, r, rows, 1));
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[r][v] = mac2(acc[r][v], s[v], c, t[v], d);
    }
  }
#endif
#if TILE_CHUNK > 1
  for (; j + TILE_CHUNK <= p->k; j += TILE_CHUNK)
    tile_add(p, a, j, TILE_CHUNK, rows, column, vecs, part, made, acc);
#endif
  for (; j < p->k; j++)
    tile_add(p, a, j, 1, rows, column, vecs, part, made, acc);
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++)
        tile_store(p, p->y[row + r], column + v * VEC_BYTES, part, acc[r][v]);
  }
}

// Computes all output rows of one column of tiles.
WEFT_INLINE void tile_column(const weft_panel *p, size_t column, const size_t vecs,
                             const size_t part, const bool made) {
  size_t row = 0;
  for (; row + TILE_ROWS <= p->m; row += TILE_ROWS)
    tile(p, row, TILE_ROWS, column, vecs, part, made);
#if TILE_ROWS > 4
  for (; row + 4 <= p->m; row += 4)
    tile(p, row, 4, column, vecs, part, made);
#endif
#if TILE_ROWS > 2
  for (; row + 2 <= p->m; row += 2)
    tile(p, row, 2, column, vecs, part, made);
#endif
  for (; row < p->m; row++)
    tile(p, row, 1, column, vecs, part, made);
}

// Adds the products of `sources` rows of x to y over [begin, end), whole vectors only.
WEFT_INLINE void stream_pass(uint8_t *y, const uint8_t *a, const uint8_t *const *x,
                             const size_t sources, size_t begin, size_t end, bool accumulate) {
  con c[STREAM_SOURCES];
  const uint8_t *row[STREAM_SOURCES];
  WEFT_UNROLL for (size_t s = 0; s < sources; s++) {
    c[s] = con_make(a[s]);
    row[s] = x[s];
  }
  for (size_t column = begin; column < end; column += VEC_BYTES) {
    vec acc = accumulate ? vec_load(y + column) : vec_zero();
    size_t s = 0;
#if TILE_PAIRS
    WEFT_UNROLL for (; s + 2 <= sources; s += 2) acc =
        mac2(acc, src_make(vec_load(row[s] + column)), c[s],
             src_make(vec_load(row[s + 1] + column)), c[s + 1]);
#endif
    WEFT_UNROLL for (; s < sources; s++) acc = mac(acc, SPARE_SRC(vec_load(row[s] + column)), c[s]);
    vec_store(y + column, acc);
  }
}

// Computes one output row, whole vectors of [begin, end). Not inlined, as is packed_columns, so
// that neither pays for the registers and the large frame of the other.
__attribute__((noinline)) static void stream_row(const weft_panel *p, size_t begin, size_t end) {
  for (size_t column = begin; column < end; column += STREAM_COLUMNS) {
    const size_t stop = end - column < STREAM_COLUMNS ? end : column + STREAM_COLUMNS;
    bool accumulate = p->accumulate;
    size_t j = 0;
    for (; j + STREAM_SOURCES <= p->k; j += STREAM_SOURCES, accumulate = true)
      stream_pass(p->y[0], p->a + j, p->x + j, STREAM_SOURCES, column, stop, accumulate);
    for (; j + 2 <= p->k; j += 2, accumulate = true)
      stream_pass(p->y[0], p->a + j, p->x + j, 2, column, stop, accumulate);
    for (; j < p->k; j++, accumulate = true)
      stream_pass(p->y[0], p->a + j, p->x + j, 1, column, stop, accumulate);
  }
}

WEFT_INLINE void pack_source(uint8_t *to, vec v) {
#if TILE_MADE
  src_store(to, src_make(v));
#else
  vec_store(to, v);
#endif
}

// Computes all output rows of all whole columns of tiles, on copies of the sources. Rows of a large
// segment are far apart, often by a power of two: the lines of one column then share few sets of
// the caches and would be fetched again for each tile.
__attribute__((noinline)) static size_t packed_columns(const weft_panel *p, size_t column,
                                                       size_t whole) {
  enum { WIDTH = TILE_VECS * VEC_BYTES, EACH = TILE_VECS * TILE_MADE_BYTES };
  _Alignas(64) uint8_t pack[WEFT_PACK_ROWS * EACH];
  const uint8_t *x[WEFT_PACK_ROWS];
  uint8_t *y[WEFT_PANEL_ROWS];
  weft_panel tiles = *p;
  tiles.begin = 0;
  tiles.end = WIDTH;
  tiles.x = x;
  tiles.y = y;
  for (size_t j = 0; j < p->k; j++)
    x[j] = pack + j * EACH;
  for (; whole - column >= WIDTH; column += WIDTH) {
    for (size_t j = 0; j < p->k; j++)
      WEFT_UNROLL for (size_t v = 0; v < TILE_VECS; v++) pack_source(
          pack + j * EACH + v * TILE_MADE_BYTES, vec_load(p->x[j] + column + v * VEC_BYTES));
    for (size_t i = 0; i < p->m; i++)
      y[i] = p->y[i] + column;
    tile_column(&tiles, 0, TILE_VECS, 0, TILE_MADE);
  }
  return column;
}

// Computes all output rows of all whole columns of tiles, and prefetches some lines of p->fetch
// after each column.
__attribute__((noinline)) static size_t fetching_columns(const weft_panel *p, size_t column,
                                                         size_t whole) {
  enum { WIDTH = TILE_VECS * VEC_BYTES };
  const size_t each = fetch_each(p->fetch, (whole - column) / WIDTH);
  fetch_walk walk = fetch_begin(p->fetch);
  for (; whole - column >= WIDTH; column += WIDTH) {
    tile_column(p, column, TILE_VECS, 0, false);
    fetch_lines(&walk, each);
  }
  return column;
}

static void tile_panel(const weft_panel *p) {
  const size_t part = (p->end - p->begin) % VEC_BYTES;
  const size_t whole = p->end - part;
  size_t column = p->begin;
  if (p->k == 1) {
    column = whole - (whole - column) % FAN_STEP;
    fan_out(p, p->begin, column);
    for (; column < whole; column += VEC_BYTES)
      tile_column(p, column, 1, 0, false);
  } else if (p->m == 1 && whole - column >= STREAM_FROM) {
    stream_row(p, column, whole);
  } else {
    if (p->packed && p->m >= PACK_OUTPUTS)
      column = packed_columns(p, column, whole);
    if (p->fetch)
      column = fetching_columns(p, column, whole);
    for (; whole - column >= TILE_VECS * VEC_BYTES; column += TILE_VECS * VEC_BYTES)
      tile_column(p, column, TILE_VECS, 0, false);
    for (; column < whole; column += VEC_BYTES)
      tile_column(p, column, 1, 0, false);
  }
  if (part)
    tile_column(p, whole, 1, part, false);
}

WEFT_INLINE void xor_tile(uint8_t *y, const uint8_t *const *x, size_t k, size_t column,
                          const size_t vecs, size_t end, const size_t part, bool accumulate) {
  const weft_panel ends = {.end = end};
  vec acc[XOR_VECS];
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] =
      accumulate ? tile_load_own(&ends, y, column + v * VEC_BYTES, part) : vec_zero();
  size_t j = 0;
#ifdef VEC_TERNARY
  for (; j + 2 <= k; j += 2) {
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] =
        vec_xor3(acc[v], tile_load(&ends, x[j], column + v * VEC_BYTES, part),
                 tile_load(&ends, x[j + 1], column + v * VEC_BYTES, part));
  }
#endif
  for (; j < k; j++) {
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] =
        vec_xor(acc[v], tile_load(&ends, x[j], column + v * VEC_BYTES, part));
  }
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++)
      tile_store(&ends, y, column + v * VEC_BYTES, part, acc[v]);
}

// Inlined for each constant k. Sources are added one after the other, since a line of one may evict
// a line of another. Returns the column after the last.
WEFT_INLINE size_t xor_columns(uint8_t *y, const uint8_t *const *x, const size_t k, size_t column,
                               size_t end) {
  const uint8_t *from[XOR_SOURCES];
  WEFT_UNROLL for (size_t j = 0; j < k; j++) from[j] = x[j];
  for (; end - column >= XOR_VECS * VEC_BYTES; column += XOR_VECS * VEC_BYTES)
    xor_tile(y, from, k, column, XOR_VECS, end, 0, false);
  return column;
}

// Few sources, as in most steps of XOR programs: without a loop over them.
static size_t xor_few(uint8_t *y, const uint8_t *const *x, size_t k, size_t column, size_t end) {
  switch (k) {
  case 2:
    return xor_columns(y, x, 2, column, end);
  case 3:
    return xor_columns(y, x, 3, column, end);
  case 4:
    return xor_columns(y, x, 4, column, end);
  case 5:
    return xor_columns(y, x, 5, column, end);
  case 6:
    return xor_columns(y, x, 6, column, end);
  case 7:
    return xor_columns(y, x, 7, column, end);
  default:
    return column;
  }
}

static void tile_xor_rows(uint8_t *y, const uint8_t *const *x, size_t k, size_t begin, size_t end,
                          bool accumulate) {
  const size_t part = (end - begin) % VEC_BYTES;
  const size_t whole = end - part;
  size_t column = begin;
  if (!accumulate)
    column = xor_few(y, x, k, column, whole);
  for (; whole - column >= XOR_VECS * VEC_BYTES; column += XOR_VECS * VEC_BYTES)
    xor_tile(y, x, k, column, XOR_VECS, end, 0, accumulate);
  for (; column < whole; column += VEC_BYTES)
    xor_tile(y, x, k, column, 1, end, 0, accumulate);
  if (part)
    xor_tile(y, x, k, column, 1, end, part, accumulate);
}

// Multiplies the sum of two sources into many rows. At the end, where less than a step of fan.h is
// left, the sum is computed first.
static void tile_difference(const weft_panel *p) {
  const size_t rest = (p->end - p->begin) % FAN_STEP, whole = p->end - rest;
  fan_out(p, p->begin, whole);
  if (!rest)
    return;
  _Alignas(64) uint8_t sum[FAN_STEP];
  const uint8_t *const both[2] = {p->x[0] + whole, p->x[1] + whole}, *const one = sum;
  uint8_t *y[WEFT_PANEL_ROWS];
  for (size_t i = 0; i < p->m; i++)
    y[i] = p->y[i] + whole;
  tile_xor_rows(sum, both, 2, 0, rest, false);
  const weft_panel last =
      weft_panel_of(p->m, 1, 0, rest, p->a, p->a_stride, &one, y, p->accumulate);
  tile_panel(&last);
}

#endif
