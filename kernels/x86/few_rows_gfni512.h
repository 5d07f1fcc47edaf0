// SPDX-License-Identifier: Apache-2.0
// The panel product of row gfni512 for few output rows: storage codes, and small batches of
// packets. gf256_gfni512.c includes this after tile.h, which handles what is too small for it.
//
// Few outputs leave little arithmetic for each byte that is read, so reading is what counts. Many
// sources are taken FEW_GROUP at a time over a run of columns, which keeps the number of streams
// below what hardware prefetching follows, and the number of lines below what a set of the cache
// holds if shards are a power of two apart. Sums of earlier groups wait in a scratch, and while a
// group's run is worked on, the next one is prefetched. Where the hardware follows any stride,
// sources are visited from both ends in turn (zigzag.h), or more of them are taken at once by
// straight-line code (few_products_gfni512.h). Coefficients are expanded to matrices once, in the
// order of use: one load instead of two for each. What fits no cache is stored past them.
// docs/performance/storage-few-rows.md says what was tried.
#ifndef WEFT_KERNELS_X86_FEW_ROWS_GFNI512_H
#define WEFT_KERNELS_X86_FEW_ROWS_GFNI512_H

#include "kernels/backend.h"
#include "kernels/fetch.h"
#include "kernels/gf256.h"
#include "kernels/unroll.h"
#include "kernels/x86/cores.h"
#include "kernels/x86/few_choices_gfni512.h"
#include "kernels/x86/few_products_gfni512.h"
#include "kernels/x86/vec_avx512.h"
#include "kernels/zigzag.h"

typedef struct few_work {
  const weft_panel *panel;
  const uint8_t *const *x; // (k), the panel's sources in the order of use
  const uint64_t *matrix;  // (k, m), in the same order
  size_t at_once;          // sources
  size_t run;              // columns
  size_t ahead;            // columns to prefetch ahead if there is only one group
  bool past;               // results are stored past the caches
  bool streams;            // sources are taken by straight-line code
  fetch_walk *walk;        // through panel->fetch,
  size_t each;             // of which so many lines are prefetched with each pair of sources
} few_work;

// The sources of one group, and what is prefetched meanwhile.
typedef struct few_group {
  size_t first, count;
  const uint8_t *const *next; // (count) rows
  size_t next_at;             // column of `next` that goes with the run's first column
} few_group;

static few_group few_group_at(const few_work *w, size_t first, size_t column, size_t end) {
  const size_t k = w->panel->k, left = k - first;
  few_group g = {.first = first, .count = left < w->at_once ? left : w->at_once};
  const uint8_t *const *const x = w->x;
  g.next = x;
  if (g.count == k) { // may be past the end of a row, but is not read
    g.next_at = column + w->ahead;
  } else if (g.count < left) {
    g.next = x + (left - g.count < g.count ? k - g.count : first + g.count);
    g.next_at = column;
  } else { // of the next run; in the last one, of this run again
    g.next_at = column + w->run < end ? column + w->run : column;
  }
  return g;
}

WEFT_INLINE void few_store(uint8_t *y, vec v, const bool past) {
  if (past)
    vec_store_past(y, v);
  else
    vec_store(y, v);
}

// Computes columns [column, stop) of all `rows` output rows from all sources. Nothing is decided
// inside the loop: with two rows that would take as long as the products.
WEFT_INLINE void few_alone(const few_work *w, size_t column, size_t stop, const size_t rows,
                           const size_t vecs, const few_fetching fetching, const bool past,
                           const bool streams) {
  const uint8_t *const *const x = w->x;
  const uint64_t *const matrix = w->matrix;
  uint8_t *const *const y = w->panel->y;
  const size_t k = w->panel->k;
  few_columns at = {.stride = rows, .shift = w->ahead, .walk = w->walk, .each = w->each};
  for (; column < stop; column += vecs * VEC_BYTES) {
    vec acc[16];
    WEFT_UNROLL for (size_t i = 0; i < rows * vecs; i++) acc[i] = vec_zero();
    at.column = column;
    if (streams)
      few_add_streams(acc, x, k, matrix, rows, vecs, fetching, &at);
    else
      few_add(acc, x, k, matrix, x, rows, vecs, fetching, &at);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++)
          few_store(y[r] + column + v * VEC_BYTES, acc[r * vecs + v], past);
    }
  }
}

// Adds one group's products to the sums so far, columns [column, stop) of output rows
// [row, row + rows).
WEFT_INLINE void few_tiles(const few_work *w, const few_group *g, size_t row, const size_t rows,
                           const size_t vecs, const few_fetching fetching, size_t column,
                           size_t stop, uint8_t *sums) {
  const weft_panel *const p = w->panel;
  const size_t m = p->m, count = g->count, run = w->run;
  const bool begins = g->first == 0, ends = g->first + count == p->k;
  const bool accumulate = p->accumulate, past = w->past;
  const uint64_t *const matrix = w->matrix + g->first * m + row;
  const uint8_t *const *const x = w->x + g->first;
  const uint8_t *const *const next = g->next;
  uint8_t *const *const y = p->y + row;
  few_columns at = {.stride = m, .shift = g->next_at - column, .walk = w->walk, .each = w->each};
  uint8_t *sum = sums + row * run;
  for (; column < stop; column += vecs * VEC_BYTES, sum += vecs * VEC_BYTES) {
    vec acc[16];
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
        if (!begins)
          acc[r * vecs + v] = vec_load(sum + r * run + v * VEC_BYTES);
        else
          acc[r * vecs + v] = accumulate ? vec_load(y[r] + column + v * VEC_BYTES) : vec_zero();
      }
    }
    at.column = column;
    few_add(acc, x, count, matrix, next, rows, vecs, fetching, &at);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
        if (!ends)
          vec_store(sum + r * run + v * VEC_BYTES, acc[r * vecs + v]);
        else
          few_store(y[r] + column + v * VEC_BYTES, acc[r * vecs + v], past);
      }
    }
  }
}

// Computes columns [begin, end), run by run, group by group.
WEFT_INLINE void few_block(const few_work *w, size_t row, const size_t rows, const size_t vecs,
                           few_fetching fetching, size_t begin, size_t end, uint8_t *sums) {
  const weft_panel *const p = w->panel;
  if (w->at_once == p->k && rows == p->m && !p->accumulate) {
    if (rows <= FEW_STREAMED_ROWS && w->streams)
      w->past ? few_alone(w, begin, end, rows, vecs, FEW_NEXT, true, true)
              : few_alone(w, begin, end, rows, vecs, FEW_NOTHING, false, true);
    else if (fetching == FEW_NOTHING)
      few_alone(w, begin, end, rows, vecs, FEW_NOTHING, false, false);
    else if (fetching == FEW_ASKED)
      w->past ? few_alone(w, begin, end, rows, vecs, FEW_ASKED, true, false)
              : few_alone(w, begin, end, rows, vecs, FEW_ASKED, false, false);
    else
      w->past ? few_alone(w, begin, end, rows, vecs, FEW_NEXT, true, false)
              : few_alone(w, begin, end, rows, vecs, FEW_NEXT, false, false);
    return;
  }
  const size_t run = w->at_once == p->k ? end - begin : w->run;
  for (size_t column = begin; column < end; column += run) {
    const size_t stop = end - column < run ? end : column + run;
    for (size_t first = 0; first < p->k; first += w->at_once) {
      const few_group g = few_group_at(w, first, column, end);
      if (fetching == FEW_NOTHING)
        few_tiles(w, &g, row, rows, vecs, FEW_NOTHING, column, stop, sums);
      else if (fetching == FEW_ASKED)
        few_tiles(w, &g, row, rows, vecs, FEW_ASKED, column, stop, sums);
      else
        few_tiles(w, &g, row, rows, vecs, FEW_NEXT, column, stop, sums);
    }
  }
}

#define FEW_BLOCK(rows, vecs)                                                                      \
  static void few_block_##rows(const few_work *w, size_t row, few_fetching fetching, size_t begin, \
                               size_t end, uint8_t *sums) {                                        \
    few_block(w, row, rows, vecs, fetching, begin, end, sums);                                     \
  }
FEW_BLOCK(2, 2)
FEW_BLOCK(3, 2)
FEW_BLOCK(4, 2)
FEW_BLOCK(5, 2)
FEW_BLOCK(6, 2)
FEW_BLOCK(7, 2)
FEW_BLOCK(8, 2)
FEW_BLOCK(9, 1)
FEW_BLOCK(10, 1)
FEW_BLOCK(11, 1)
FEW_BLOCK(12, 1)
FEW_BLOCK(13, 1)
FEW_BLOCK(14, 1)
FEW_BLOCK(15, 1)
FEW_BLOCK(16, 1)

// Returns the number of output rows of the next block, of two vectors of columns, when `left` >= 2
// are left: one row never remains.
static size_t few_paired_rows(size_t left) {
  return left <= FEW_PAIRED ? left : left == FEW_PAIRED + 1 ? left - 3 : FEW_PAIRED;
}

// Returns the number of output rows of the next block.
static size_t few_rows_of(size_t left) {
  const bool one = left == FEW_ROWS || (left < FEW_ROWS && FEW_ONE_BLOCK(left));
  return one ? left : few_paired_rows(left);
}

// Returns how often few_add takes a pair of sources.
static size_t few_pairs(const weft_panel *p, size_t columns) {
  size_t steps = 0;
  for (size_t row = 0, rows; row < p->m; row += rows) {
    rows = few_rows_of(p->m - row);
    steps += columns / (rows > FEW_PAIRED ? VEC_BYTES : 2 * VEC_BYTES);
  }
  return steps * (p->k / 2);
}

// Computes all output rows; those after the first block find a run's sources in the cache.
static void few_blocks(const few_work *w, few_fetching fetching, size_t begin, size_t end,
                       uint8_t *sums) {
  static void (*const blocks[FEW_ROWS + 1])(const few_work *, size_t, few_fetching, size_t, size_t,
                                            uint8_t *) = {
      NULL,         NULL,         few_block_2,  few_block_3,  few_block_4,  few_block_5,
      few_block_6,  few_block_7,  few_block_8,  few_block_9,  few_block_10, few_block_11,
      few_block_12, few_block_13, few_block_14, few_block_15, few_block_16};
  const size_t m = w->panel->m;
  const bool one = few_rows_of(m) == m;
  const size_t run = one ? end - begin : w->run;
  for (size_t column = begin; column < end; column += run) {
    const size_t stop = end - column < run ? end : column + run;
    for (size_t row = 0, rows; row < m; row += rows) {
      rows = few_rows_of(m - row);
      blocks[rows](w, row, row == 0 || fetching == FEW_ASKED ? fetching : FEW_NOTHING, column, stop,
                   sums);
    }
  }
}

// Expands the coefficients of all sources, in their own order, to matrices.
static void few_matrices(const weft_panel *p, uint64_t *matrix) {
  const size_t m = p->m;
  for (size_t i = 0; i < m; i++) {
    const uint8_t *const a = p->a + i * p->a_stride;
    uint64_t *at = matrix + i;
    size_t j = 0;
    for (; j + 2 <= p->k; j += 2, at += 2 * m) { // by two: loop overhead would be half the work
      at[0] = weft_gf256_affine[a[j]];
      at[m] = weft_gf256_affine[a[j + 1]];
    }
    if (j < p->k)
      *at = weft_gf256_affine[a[j]];
  }
}

// Writes pointers and matrices of `count` neighbouring sources; two at a time take little longer
// than one.
WEFT_INLINE void few_expand(const weft_panel *p, size_t source, const size_t count,
                            const uint8_t **x, uint64_t *matrix) {
  const size_t m = p->m;
  const uint8_t *a = p->a + source;
  WEFT_UNROLL for (size_t j = 0; j < count; j++) x[j] = p->x[source + j];
  for (size_t i = 0; i < m; i++, a += p->a_stride)
    WEFT_UNROLL for (size_t j = 0; j < count; j++) matrix[j * m + i] = weft_gf256_affine[a[j]];
}

// Writes those of one group; its pairs, which few_add takes together, are ordered from both ends in
// turn.
static void few_order(const weft_panel *p, size_t first, size_t count, const uint8_t **x,
                      uint64_t *matrix) {
  const size_t pairs = count / 2;
  for (size_t at = 0; at < pairs; at++)
    few_expand(p, first + 2 * weft_zigzag(at, pairs), 2, x + first + 2 * at,
               matrix + (first + 2 * at) * p->m);
  if (count % 2)
    few_expand(p, first + count - 1, 1, x + first + count - 1, matrix + (first + count - 1) * p->m);
}

#include "kernels/x86/many_sources_gfni512.h"

// Returns whether this many sources and rows may be taken at once, sources in their own order.
static bool few_streamed(size_t m, size_t k, size_t total) {
  const size_t most = m <= FEW_DEMANDING && total > FEW_THIRD_LEVEL ? FEW_FOLLOWED : FEW_STREAMS;
  return FEW_STREAMED && k <= most && m <= FEW_STREAMED_ROWS && few_rows_of(m) == m;
}

// Returns whether sources of short rows are better taken in groups as large as possible than by
// tiles, which read only two lines of a source at a time.
static bool few_short(size_t m, size_t k) {
  return FEW_SHORT(m, k) && m <= FEW_STREAMED_ROWS && k <= FEW_SOURCES;
}

// Returns whether one column of all sources is in a single set of the first-level cache, and
// sources are more than its ways.
static bool few_crowded(const weft_panel *p) {
  enum { WAYS = 8, REACH = 4096 }; // addresses that far apart share a set
  const uintptr_t first = (uintptr_t)p->x[0];
  return FEW_CROWDED && p->k > WAYS && ((uintptr_t)p->x[p->k / 2] - first) % REACH == 0 &&
         ((uintptr_t)p->x[p->k - 1] - first) % REACH == 0;
}

// Decides how sources that are not copied are taken: all at once or in groups, and by a loop or by
// straight-line code, which is for results that are stored past the caches and for what is not
// prefetched. Results that would be stored past them, but are not aligned, are computed in groups
// where lines crowd a set.
static few_fetching few_decide(few_work *w, size_t total) {
  const weft_panel *const p = w->panel;
  const bool grouped = p->k > FEW_AT_ONCE, near = total <= FEW_PAST_CACHE;
  const bool crowded = few_crowded(p), quiet = crowded && p->m < FEW_STREAMED_ROWS;
  const bool cached = total <= FEW_CACHED || (quiet && near && (grouped || p->m <= FEW_DEMANDING));
  const bool far = w->past && total > FEW_CACHED && total > FEW_STREAMED_FROM(p->m);
  const bool streamed = few_streamed(p->m, p->k, total) && !(crowded && p->m < FEW_DEMANDING) &&
                        (far || near || !FEW_CROWDED);
  const bool brief = p->end - p->begin < FEW_GROUPED && few_short(p->m, p->k);
  const size_t group = brief ? FEW_STREAMS : near && FEW_WIDER(quiet) ? 2 * FEW_GROUP : FEW_GROUP;
  const size_t groups = grouped && !streamed ? (p->k + group - 1) / group : 1;
  w->at_once = (p->k + groups - 1) / groups;
  w->streams = streamed && !p->fetch && !p->accumulate && (far || (crowded && cached && grouped));
  return p->fetch ? FEW_ASKED : cached ? FEW_NOTHING : FEW_NEXT;
}

static void few_panel(const weft_panel *p) {
  uint64_t matrix[FEW_SOURCES * FEW_ROWS];
  _Alignas(64) uint8_t sums[FEW_RUN];
  const uint8_t *x[FEW_SOURCES];
  const size_t columns = p->end - p->begin, end = p->end - columns % FEW_STEP;
  const size_t total = (p->k + p->m) * p->row_bytes;
  const bool apart = FEW_APART(p), many = apart || many_fits(p);
  const bool follows = FEW_FOLLOWS && !many;
  few_work w = {.panel = p,
                .matrix = matrix,
                .run = FEW_RUN / p->m / FEW_STEP * FEW_STEP,
                .ahead = follows ? FEW_FOLLOWED_AHEAD : FEW_AHEAD,
                .past = total > FEW_PAST_CACHE || p->past};
  fetch_walk walk;
  if (p->fetch) {
    walk = fetch_begin(p->fetch);
    w.walk = &walk;
    w.each = fetch_each(p->fetch, few_pairs(p, end - p->begin));
  }
  for (size_t i = 0; i < p->m; i++)
    w.past = w.past && ((uintptr_t)p->y[i] + p->begin) % VEC_BYTES == 0;
  const few_fetching fetching = many ? FEW_NOTHING : few_decide(&w, total);
  const bool ordered = follows && !w.streams && p->k > 4; // two pairs are already in that order
  w.x = ordered ? x : p->x;
  if (!ordered && !many)
    few_matrices(p, matrix);
  else if (!many)
    for (size_t first = 0; first < p->k; first += w.at_once)
      few_order(p, first, p->k - first < w.at_once ? p->k - first : w.at_once, x, matrix);
  if (apart)
    many_apart(p, matrix, end, w.past);
  else if (many)
    many_panel(p, matrix, end, w.past);
  else
    few_blocks(&w, fetching, p->begin, end, sums);
  if (w.past)
    vec_fence();
  const size_t part = (p->end - end) % VEC_BYTES;
  if (p->end - end >= VEC_BYTES)
    tile_column(p, end, 1, 0, false);
  if (part)
    tile_column(p, p->end - part, 1, part, false);
}

// Computes more rows than registers and matrices hold: in parts of about equal size, each with
// copies of its own.
static void few_parts(const weft_panel *p) {
  weft_panel part = *p;
  const size_t parts = (p->m + FEW_ROWS - 1) / FEW_ROWS;
  for (size_t row = 0, at = 0; at < parts; at++, row += part.m) {
    part.m = (p->m - row) / (parts - at);
    part.a = p->a + row * p->a_stride;
    part.y = p->y + row;
    few_panel(&part);
  }
}

// Returns whether expanding all coefficients to matrices pays.
static bool few_pays(const weft_panel *p) {
  const size_t columns = p->end - p->begin;
  if (p->m < 2 || p->k < 2 || p->k > FEW_SOURCES)
    return false;
  if (p->k <= FEW_AT_ONCE && p->m <= FEW_ROWS)
    return columns >= FEW_COLUMNS_AT_ONCE(p);
  const bool any = columns >= FEW_GROUPED || few_short(p->m, p->k);
  return columns >= FEW_COLUMNS && (many_fits(p) || (p->m <= FEW_ROWS && any));
}

static void few_or_tile_panel(const weft_panel *p) {
  if (kept_fits(p))
    kept_panel(p);
  else if (!few_pays(p))
    tile_panel(p);
  else if (p->m > FEW_ROWS)
    few_parts(p);
  else
    few_panel(p);
}

static size_t few_entry(size_t m, size_t k, size_t row_bytes) {
  const few_entries e = FEW_ENTRIES;
  const many_layout l = many_layout_of(m, k, FEW_GROUPED, row_bytes);
  const size_t total = (m + k) * row_bytes;
  const bool far = total > e.far_from, brief = row_bytes > 0 && row_bytes < FEW_GROUPED;
  const bool streamed = few_streamed(m, k, total);
  const size_t near_entry = streamed ? e.streamed : e.few;
  const size_t far_entry = k > FEW_FOLLOWED ? e.lost : e.followed;
  if (brief && !streamed && e.short_few && m <= FEW_STREAMED_ROWS)
    return few_short(m, k) ? e.short_few : e.short_tiles;
  if (brief && e.short_many && (m > FEW_ROWS || l.run > 0))
    return e.short_many;
  if (m > FEW_ROWS)
    return e.wide;
  if (l.run > 0)
    return far ? e.far : e.near;
  if (row_bytes == 0) // unknown: steps may pay at some length
    return near_entry > far_entry ? near_entry : far_entry;
  return far && !(streamed && k > FEW_FOLLOWED && total <= FEW_THIRD_LEVEL) ? far_entry
                                                                            : near_entry;
}

#endif
