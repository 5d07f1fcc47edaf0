// SPDX-License-Identifier: Apache-2.0
// The panel product for few output rows (storage codes, and small batches of packets) of techniques
// with 16 registers or tables of nibbles. A technique's file includes this after tile.h, which
// handles what is too small or too large for it, and defines, in addition to what tile.h asks for:
//   FEW_TABLE: bytes of a coefficient's table; few_table(c): where it is
//   few_row(acc, src, table, begin, vecs): multiplies all vectors of a source by the coefficient
//     with that table; the products begin a row's sums or are added to them
//   FEW_BLOCK_ROWS: maximum number of rows of a block, 5 or 6; 5 by default
//
// The cost of a product itself is fixed, so everything else counts. Coefficients are expanded to
// their tables once, in the order of use, so that a loop over columns finds them through one
// pointer instead of looking each up. Rows are computed in blocks, never leaving a single row,
// because reading and splitting a source cost the same for one row as for five. Three or four
// sources (a chunk) are straight-line code, and the first ones begin the sums; if there are few,
// all of them are. Each sum is added up in its own order: merged as a tree, the sums of four rows
// take more registers than there are. Many sources are taken FEW_GROUP at a time over a run of
// columns, for the same reason as in few_rows_gfni512.h: shards that are a power of two apart share
// few sets of the caches, which slows few rows from nine sources on. Sources are visited from both
// ends in turn (zigzag.h). docs/performance/storage-few-rows.md says what was tried.
#ifndef WEFT_KERNELS_FEW_ROWS_TABLES_H
#define WEFT_KERNELS_FEW_ROWS_TABLES_H

#include <string.h>

#include "kernels/backend.h"
#include "kernels/gf256.h"
#include "kernels/unroll.h"
#include "kernels/zigzag.h"

#ifndef FEW_BLOCK_ROWS
#define FEW_BLOCK_ROWS 5 // maximum number of outputs of a block
#endif
enum {
  FEW_ROWS = 16,       // maximum number of outputs
  FEW_PRODUCTS = 1024, // maximum number of coefficients: their tables take up to 32 KiB
  FEW_VECS = 2,
  FEW_LINE = 64,
  FEW_STEP = FEW_VECS * VEC_BYTES,
  FEW_COLUMNS = 1024,         // in shorter rows the tables do not pay,
  FEW_COLUMNS_OF_MANY = 2048, // nor below this with many sources, unless outputs are three,
  FEW_GROUPED = 8192,         // and below this groups do not pay
  FEW_AT_ONCE = 16,           // more sources than this are many, and taken in groups
  FEW_GROUP = 8,              // sources
  FEW_CROWDED_ROWS = 3,       // maximum number of outputs for which few_crowded makes groups
  FEW_WHOLE = 6,              // maximum number of sources that are all straight-line code
  FEW_SPARE = 3,              // in which maximum number of outputs have registers to spare
  FEW_RUN = 8192,             // bytes of all output rows in a run of columns
  FEW_AHEAD = 256             // columns to fetch ahead
};

// One pass: `count` sources multiplied into some output rows. The sums so far are in `from`; NULL:
// there are none.
typedef struct few_pass {
  const uint8_t *tables; // (count, rows)
  const uint8_t *const *x;
  size_t count;
  uint8_t *const *from; // rows, whose column from_at belongs to the pass's first column
  uint8_t *const *to;
  size_t from_at, to_at;
  size_t begin, end; // columns of the sources
} few_pass;

// Sources of a chunk, as measured.
WEFT_INLINE size_t few_chunk(size_t rows) { return rows == 3 ? 3 : 4; }

// Multiplies vectors of one source into all rows; the products begin the sums or are added to them.
WEFT_INLINE void few_source(const uint8_t *at, const uint8_t *tables, const size_t rows,
                            const bool begins, const bool spare, vec acc[][FEW_VECS]) {
  src s[FEW_VECS];
  WEFT_UNROLL for (size_t v = 0; v < FEW_VECS; v++) {
    const vec x = vec_load(at + v * VEC_BYTES);
    s[v] = spare ? SPARE_SRC(x) : src_make(x);
  }
  WEFT_UNROLL for (size_t line = 0; line < FEW_STEP; line += FEW_LINE)
      __builtin_prefetch(at + FEW_AHEAD + line); // may be past a row's end, but does not read
  WEFT_UNROLL for (size_t r = 0; r < rows; r++)
      few_row(acc[r], s, tables + r * FEW_TABLE, begins, FEW_VECS);
}

WEFT_INLINE void few_sources(const uint8_t *const *x, size_t column, const uint8_t *tables,
                             const size_t count, const size_t rows, const bool begin,
                             const bool spare, vec acc[][FEW_VECS]) {
  WEFT_UNROLL for (size_t j = 0; j < count; j++)
      few_source(x[j] + column, tables + j * rows * FEW_TABLE, rows, begin && j == 0, spare, acc);
}

// Inlined for each constant rows and first. The first `first` sources begin the sums, and whole
// chunks follow. If `first` is 0, earlier sums are continued, and what is left over beyond whole
// chunks is taken one by one.
WEFT_INLINE void few_columns(const few_pass *w, const size_t rows, const size_t first) {
  const size_t chunk = few_chunk(rows);
  const uint8_t *const *const stop = w->x + w->count;
  const uint8_t *const *const chunks = w->x + (first ? first : w->count % chunk);
  uint8_t *to[FEW_BLOCK_ROWS];
  const uint8_t *from[FEW_BLOCK_ROWS];
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    to[r] = w->to[r] + w->to_at;
    from[r] = first ? NULL : w->from[r] + w->from_at;
  }
  const size_t columns = w->end - w->begin;
  for (size_t at = 0; at < columns; at += FEW_STEP) {
    const size_t column = w->begin + at;
    const uint8_t *tables = w->tables;
    const uint8_t *const *x = w->x;
    vec acc[FEW_BLOCK_ROWS][FEW_VECS];
    if (first) {
      few_sources(x, column, tables, first, rows, true, false, acc);
      x += first;
      tables += first * rows * FEW_TABLE;
    } else {
      WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
        WEFT_UNROLL for (size_t v = 0; v < FEW_VECS; v++) acc[r][v] =
            vec_load(from[r] + at + v * VEC_BYTES);
      }
      for (; x != chunks; x++, tables += rows * FEW_TABLE)
        few_sources(x, column, tables, 1, rows, false, false, acc);
    }
    for (; x != stop; x += chunk, tables += chunk * rows * FEW_TABLE)
      few_sources(x, column, tables, chunk, rows, false, false, acc);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < FEW_VECS; v++)
          vec_store(to[r] + at + v * VEC_BYTES, acc[r][v]);
    }
  }
}

// Inlined for each constant rows and count: all sources at once, with their pointers in registers.
WEFT_INLINE void few_whole(const few_pass *w, const size_t rows, const size_t count) {
  const uint8_t *const tables = w->tables;
  const uint8_t *x[FEW_WHOLE];
  uint8_t *to[FEW_BLOCK_ROWS];
  WEFT_UNROLL for (size_t j = 0; j < count; j++) x[j] = w->x[j] + w->begin;
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) to[r] = w->to[r] + w->to_at;
  const size_t columns = w->end - w->begin;
  for (size_t at = 0; at < columns; at += FEW_STEP) {
    vec acc[FEW_BLOCK_ROWS][FEW_VECS];
    few_sources(x, at, tables, count, rows, true, rows <= FEW_SPARE, acc);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < FEW_VECS; v++)
          vec_store(to[r] + at + v * VEC_BYTES, acc[r][v]);
    }
  }
}

#define FEW_BLOCK(rows, first)                                                                     \
  __attribute__((noinline)) static void few_block_##rows##_##first(const few_pass *w) {            \
    few_columns(w, rows, first);                                                                   \
  }
#define FEW_BLOCKS_3(rows)                                                                         \
  FEW_BLOCK(rows, 0) FEW_BLOCK(rows, 1) FEW_BLOCK(rows, 2) FEW_BLOCK(rows, 3)
#define FEW_BLOCKS_4(rows) FEW_BLOCKS_3(rows) FEW_BLOCK(rows, 4)
FEW_BLOCKS_4(2)
FEW_BLOCKS_3(3)
FEW_BLOCKS_4(4)
FEW_BLOCKS_4(5)
#if FEW_BLOCK_ROWS > 5
FEW_BLOCKS_4(6)
#endif

// Indexed by rows, and by the number of sources that begin the sums.
#define FEW_NAMES_3(rows)                                                                          \
  few_block_##rows##_0, few_block_##rows##_1, few_block_##rows##_2, few_block_##rows##_3
#define FEW_NAMES_4(rows) FEW_NAMES_3(rows), few_block_##rows##_4
static void (*const few_functions[FEW_BLOCK_ROWS + 1][5])(const few_pass *) = {
    [2] = {FEW_NAMES_4(2)}, [3] = {FEW_NAMES_3(3)}, [4] = {FEW_NAMES_4(4)}, [5] = {FEW_NAMES_4(5)},
#if FEW_BLOCK_ROWS > 5
    [6] = {FEW_NAMES_4(6)},
#endif
};

#define FEW_ALL(rows, count)                                                                       \
  __attribute__((noinline)) static void few_all_##rows##_##count(const few_pass *w) {              \
    few_whole(w, rows, count);                                                                     \
  }
#define FEW_ALL_4(rows) FEW_ALL(rows, 2) FEW_ALL(rows, 3) FEW_ALL(rows, 4)
#define FEW_ALL_6(rows) FEW_ALL_4(rows) FEW_ALL(rows, 5) FEW_ALL(rows, 6)
FEW_ALL_6(2)
FEW_ALL_6(3)
FEW_ALL_4(4)
FEW_ALL_4(5)

// Indexed by rows, and by sources; NULL where chunks are as fast.
#define FEW_ALL_NAMES_4(rows) NULL, NULL, few_all_##rows##_2, few_all_##rows##_3, few_all_##rows##_4
#define FEW_ALL_NAMES_6(rows) FEW_ALL_NAMES_4(rows), few_all_##rows##_5, few_all_##rows##_6
static void (*const few_alls[FEW_BLOCK_ROWS + 1][FEW_WHOLE + 1])(const few_pass *) = {
    [2] = {FEW_ALL_NAMES_6(2)},
    [3] = {FEW_ALL_NAMES_6(3)},
    [4] = {FEW_ALL_NAMES_4(4)},
    [5] = {FEW_ALL_NAMES_4(5)}};

static void few_block(const few_pass *w, size_t rows) {
  if (!w->from && w->count <= FEW_WHOLE && few_alls[rows][w->count])
    few_alls[rows][w->count](w);
  else
    few_functions[rows][w->from ? 0 : (w->count - 1) % few_chunk(rows) + 1](w);
}

// Returns the number of output rows of the next block when `left` are left.
static size_t few_rows_of(size_t left) {
#if FEW_BLOCK_ROWS > 5
  static const uint8_t rows[11] = {0, 1, 2, 3, 4, 5, 6, 4, 4, 5, 5};
  return left < 11 ? rows[left] : 6;
#else
  static const uint8_t rows[12] = {0, 1, 2, 3, 4, 5, 3, 4, 4, 5, 5, 4};
  return left < 12 ? rows[left] : 4;
#endif
}

// Multiplies a group of sources, from source `first` of k on, into all output rows of one run of
// columns. `all` has the tables of all sources; later blocks find the sources in the cache.
static void few_blocks(const few_pass *all, size_t m, size_t k, size_t first) {
  few_pass w = *all;
  for (size_t row = 0, rows; row < m; row += rows) {
    rows = few_rows_of(m - row);
    w.tables = all->tables + (row * k + first * rows) * FEW_TABLE;
    few_block(&w, rows);
    w.to += rows;
    w.from = w.from ? w.from + rows : NULL;
  }
}

// Computes columns [column, stop), group by group: until the last, sums wait in `rows`, which are
// close together.
static void few_groups(const weft_panel *p, const uint8_t *const *x, const uint8_t *tables,
                       size_t at_once, uint8_t *const *rows, size_t column, size_t stop) {
  for (size_t first = 0, count; first < p->k; first += count) {
    const size_t left = p->k - first;
    count = left < at_once ? left : at_once;
    const bool begins = first == 0, ends = count == left;
    const few_pass w = {.tables = tables,
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
    few_blocks(&w, p->m, p->k, first);
  }
}

// Writes the pointers of one group's sources in the order of use, and their tables: block by block
// of rows, source by source, row by row.
static void few_tables(const weft_panel *p, size_t first, size_t count, const uint8_t **x,
                       uint8_t *tables) {
  for (size_t at = 0; at < count; at++) {
    const size_t source = first + weft_zigzag(at, count);
    const uint8_t *const a = p->a + source;
    x[first + at] = p->x[source];
    for (size_t row = 0, rows; row < p->m; row += rows) {
      rows = few_rows_of(p->m - row);
      uint8_t *const to = tables + (row * p->k + (first + at) * rows) * FEW_TABLE;
      for (size_t i = 0; i < rows; i++)
        memcpy(to + i * FEW_TABLE, few_table(a[(row + i) * p->a_stride]), FEW_TABLE);
    }
  }
}

// Returns whether lines of more sources than a group are in one set of the first-level cache: what
// is loaded for one column then evicts what is for the next. With more rows a column takes so long
// that this does not show, or groups make it slower ((10, 4) with gfni256).
static bool few_crowded(const weft_panel *p) {
  enum { APART = 4096 };
  size_t close = 0;
  if (p->m > FEW_CROWDED_ROWS || p->k <= FEW_GROUP)
    return false;
  for (size_t j = 0; j < p->k; j++)
    close += ((uintptr_t)p->x[j] - (uintptr_t)p->x[0]) % APART < FEW_LINE;
  return close > FEW_GROUP;
}

static void few_panel(const weft_panel *p) {
  _Alignas(64) uint8_t tables[FEW_PRODUCTS * FEW_TABLE];
  _Alignas(64) uint8_t sums[FEW_RUN];
  uint8_t *rows[FEW_ROWS];
  const uint8_t *x[FEW_PRODUCTS / 2];
  const size_t end = p->end - (p->end - p->begin) % FEW_STEP;
  const bool grouped = (p->k > FEW_AT_ONCE && end - p->begin >= FEW_GROUPED) || few_crowded(p);
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
    tile_column(p, end, 1, 0, false);
  if (part)
    tile_column(p, p->end - part, 1, part, false);
}

static bool few_pays(size_t m, size_t k, size_t columns) {
  if (m < 2 || m > FEW_ROWS || k < 2 || k * m > FEW_PRODUCTS || columns < FEW_COLUMNS)
    return false;
  if (k <= FEW_AT_ONCE || columns >= FEW_GROUPED)
    return true;
  return 2 * k * m <= FEW_PRODUCTS && (m == 3 || columns >= FEW_COLUMNS_OF_MANY);
}

// Only tiles prefetch p->fetch, which gains more than few_panel would.
static void few_or_tile_panel(const weft_panel *p) {
  if (!p->fetch && few_pays(p->m, p->k, p->end - p->begin))
    few_panel(p);
  else
    tile_panel(p);
}

#endif
