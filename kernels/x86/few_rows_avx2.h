// SPDX-License-Identifier: Apache-2.0
// The panel product of row avx2 for few output rows: storage codes, and small batches of packets.
// gf256_avx2.c includes this after tile.h, which keeps what is too small or too large for it.
//
// A product takes two shuffles and two exclusive-ors whatever is done, so everything else counts.
// Coefficients become their tables once, in the order of use, so that a loop over columns finds
// them behind one pointer instead of looking each up; and rows are blocked by up to five, never
// such that one row remains, because splitting a source costs the same for one row as for five.
// Many sources are taken FEW_GROUP at a time over a run of columns, as in few_rows_gfni512.h and
// for its reason: shards that lie a power of two apart share few sets of the caches; and sources
// are visited from both ends in turn (zigzag.h). docs/performance/storage-few-rows.md says what was
// tried.
#ifndef WEFT_KERNELS_X86_FEW_ROWS_AVX2_H
#define WEFT_KERNELS_X86_FEW_ROWS_AVX2_H

#include <string.h>

#include "kernels/backend.h"
#include "kernels/gf256.h"
#include "kernels/unroll.h"
#include "kernels/x86/vec_avx2.h"
#include "kernels/zigzag.h"

enum {
  FEW_ROWS = 16,       // outputs, at most
  FEW_PRODUCTS = 1024, // coefficients, at most: their tables take 32 KiB
  FEW_TABLE = 32,      // bytes
  FEW_VECS = 2,        // a line
  FEW_STEP = FEW_VECS * VEC_BYTES,
  FEW_COLUMNS = 1024,         // in shorter rows the tables do not pay,
  FEW_COLUMNS_OF_MANY = 2048, // nor in these where sources are many and rows not three,
  FEW_GROUPED = 8192,         // nor groups in rows shorter than this
  FEW_AT_ONCE = 16,           // more sources than this are many, and taken in groups
  FEW_GROUP = 8,              // sources
  FEW_RUN = 8192,             // bytes of all output rows in a run of columns
  FEW_AHEAD = 256             // columns to fetch ahead
};

// `count` sources brought into some output rows. Sums so far come from `from`, and from nowhere
// where that is NULL.
typedef struct few_pass {
  const uint8_t *tables; // (count, stride), of the first row
  size_t stride;         // bytes from a source's tables to the next one's
  const uint8_t *const *x;
  size_t count;
  uint8_t *const *from; // rows, of which column from_at belongs to the first of the pass
  uint8_t *const *to;
  size_t from_at, to_at;
  size_t begin, end; // columns of the sources
} few_pass;

// Inlined for each constant rows and sums.
WEFT_INLINE void few_columns(const few_pass *w, const size_t rows, const bool sums) {
  const uint8_t *const *const stop = w->x + w->count;
  const size_t stride = w->stride;
  uint8_t *to[5];
  const uint8_t *from[5];
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    to[r] = w->to[r] + w->to_at;
    from[r] = sums ? w->from[r] + w->from_at : NULL;
  }
  const size_t columns = w->end - w->begin;
  for (size_t column = 0; column < columns; column += FEW_STEP) {
    vec acc[5][FEW_VECS];
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < FEW_VECS; v++) acc[r][v] =
          sums ? vec_load(from[r] + column + v * VEC_BYTES) : vec_zero();
    }
    const uint8_t *near = w->tables;
    const uint8_t *const *x = w->x;
    do {
      const uint8_t *const at = *x++ + w->begin + column;
      src s[FEW_VECS];
      WEFT_UNROLL for (size_t v = 0; v < FEW_VECS; v++) s[v] =
          src_make(vec_load(at + v * VEC_BYTES));
      __builtin_prefetch(at + FEW_AHEAD); // past the end of a row at times, but that is no read
      WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
        const con c = con_load(near + r * FEW_TABLE);
        WEFT_UNROLL for (size_t v = 0; v < FEW_VECS; v++) acc[r][v] = mac(acc[r][v], s[v], c);
      }
      near += stride;
    } while (x != stop);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < FEW_VECS; v++)
          vec_store(to[r] + column + v * VEC_BYTES, acc[r][v]);
    }
  }
}

#define FEW_BLOCK(rows)                                                                            \
  __attribute__((noinline)) static void few_block_##rows(const few_pass *w) {                      \
    if (w->from)                                                                                   \
      few_columns(w, rows, true);                                                                  \
    else                                                                                           \
      few_columns(w, rows, false);                                                                 \
  }
FEW_BLOCK(1)
FEW_BLOCK(2)
FEW_BLOCK(3)
FEW_BLOCK(4)
FEW_BLOCK(5)

// Output rows of the next block when `left` are left.
static size_t few_rows_of(size_t left) {
  static const uint8_t rows[12] = {0, 1, 2, 3, 4, 5, 3, 4, 4, 5, 5, 4};
  return left < 12 ? rows[left] : 4;
}

// All output rows of one run of columns, from one group of sources; later blocks find the sources
// in the cache.
static void few_blocks(const few_pass *all, size_t m) {
  static void (*const blocks[6])(const few_pass *) = {[1] = few_block_1,
                                                      [2] = few_block_2,
                                                      [3] = few_block_3,
                                                      [4] = few_block_4,
                                                      [5] = few_block_5};
  few_pass w = *all;
  for (size_t row = 0, rows; row < m; row += rows) {
    rows = few_rows_of(m - row);
    blocks[rows](&w);
    w.tables += rows * FEW_TABLE;
    w.to += rows;
    w.from = w.from ? w.from + rows : NULL;
  }
}

// Columns [column, stop), group by group: sums wait in `rows`, near one another, until the last.
static void few_groups(const weft_panel *p, const uint8_t *const *x, const uint8_t *tables,
                       size_t at_once, uint8_t *const *rows, size_t column, size_t stop) {
  const size_t stride = p->m * FEW_TABLE;
  for (size_t first = 0, count; first < p->k; first += count) {
    const size_t left = p->k - first;
    count = left < at_once ? left : at_once;
    const bool begins = first == 0, ends = count == left;
    const few_pass w = {.tables = tables + first * stride,
                        .stride = stride,
                        .x = x + first,
                        .count = count,
                        .from = !begins         ? rows
                                : p->accumulate ? p->y
                                                : NULL,
                        .from_at = begins ? column : 0,
                        .to = ends ? p->y : rows,
                        .to_at = ends ? column : 0,
                        .begin = column,
                        .end = stop};
    few_blocks(&w, p->m);
  }
}

// Pointers and tables (sources, outputs) of one group, in the order of use.
static void few_tables(const weft_panel *p, size_t first, size_t count, const uint8_t **x,
                       uint8_t *tables) {
  for (size_t at = 0; at < count; at++) {
    const size_t source = first + weft_zigzag(at, count);
    uint8_t *const to = tables + (first + at) * p->m * FEW_TABLE;
    x[first + at] = p->x[source];
    for (size_t i = 0; i < p->m; i++)
      memcpy(to + i * FEW_TABLE, weft_gf256_nibble[p->a[i * p->a_stride + source]], FEW_TABLE);
  }
}

static void few_panel(const weft_panel *p) {
  _Alignas(64) uint8_t tables[FEW_PRODUCTS * FEW_TABLE];
  _Alignas(64) uint8_t sums[FEW_RUN];
  uint8_t *rows[FEW_ROWS];
  const uint8_t *x[FEW_PRODUCTS / 2];
  const size_t end = p->end - (p->end - p->begin) % FEW_STEP;
  const bool grouped = p->k > FEW_AT_ONCE && end - p->begin >= FEW_GROUPED;
  const size_t groups = grouped ? (p->k + FEW_GROUP - 1) / FEW_GROUP : 1;
  const size_t at_once = (p->k + groups - 1) / groups;
  size_t run = end - p->begin;
  if (groups > 1 || few_rows_of(p->m) != p->m)
    run = FEW_RUN / p->m / FEW_STEP * FEW_STEP;
  for (size_t i = 0; i < p->m; i++)
    rows[i] = sums + (groups > 1 ? i * run : 0);
  for (size_t first = 0; first < p->k; first += at_once)
    few_tables(p, first, p->k - first < at_once ? p->k - first : at_once, x, tables);
  for (size_t column = p->begin; column < end; column += run)
    few_groups(p, x, tables, at_once, rows, column, end - column < run ? end : column + run);
  const size_t part = (p->end - end) % VEC_BYTES;
  if (p->end - end >= VEC_BYTES)
    tile_column(p, end, 1, 0);
  if (part)
    tile_column(p, p->end - part, 1, part);
}

static bool few_pays(size_t m, size_t k, size_t columns) {
  if (m < 2 || m > FEW_ROWS || k < 2 || k * m > FEW_PRODUCTS || columns < FEW_COLUMNS)
    return false;
  if (k <= FEW_AT_ONCE || columns >= FEW_GROUPED)
    return true;
  return 2 * k * m <= FEW_PRODUCTS && (m == 3 || columns >= FEW_COLUMNS_OF_MANY);
}

static void few_or_tile_panel(const weft_panel *p) {
  if (few_pays(p->m, p->k, p->end - p->begin))
    few_panel(p);
  else
    tile_panel(p);
}

#endif
