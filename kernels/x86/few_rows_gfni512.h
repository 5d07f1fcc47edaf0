// SPDX-License-Identifier: Apache-2.0
// The panel product of row gfni512 for few output rows: storage codes, and small batches of
// packets. gf256_gfni512.c includes this after tile.h, which keeps what is too small for it.
//
// Few outputs leave little arithmetic for each byte that is read, so reading decides. Sources are
// taken FEW_GROUP at a time over a run of columns, which keeps the number of streams below what the
// hardware follows; sums of earlier groups wait in a scratch that the first-level cache holds; and
// while a run is worked on, the next group's is fetched. Coefficients are expanded to matrices
// once, in the order of use: one load instead of two for each. What fits no cache is stored past
// them. docs/performance.md says what was tried.
#ifndef WEFT_KERNELS_X86_FEW_ROWS_GFNI512_H
#define WEFT_KERNELS_X86_FEW_ROWS_GFNI512_H

#include "kernels/backend.h"
#include "kernels/gf256.h"
#include "kernels/unroll.h"
#include "kernels/x86/vec_avx512.h"

enum {
  FEW_ROWS = 16,      // outputs, at most
  FEW_SOURCES = 256,  // at most
  FEW_COLUMNS = 1024, // in shorter rows the matrices do not pay
  FEW_GROUP = 8,      // sources at a time, when there are more than FEW_AT_ONCE
  FEW_AT_ONCE = 16,
  FEW_RUN = 2048, // columns at a time
  FEW_STEP = 2 * VEC_BYTES,
  FEW_AHEAD = 512, // bytes of a row, where there is but one group
};

// Bytes of all rows: what the second-level cache serves unasked, and from where on results are
// stored past the caches. Tests set less, so as to come by.
#ifndef FEW_CACHED
#define FEW_CACHED ((size_t)3 << 19)
#define FEW_PAST_CACHE ((size_t)4 << 20)
#endif

// Columns [0, bytes) of some output rows: from(rows) or zero, plus matrix(k, rows) * x(k).
typedef struct few_pass {
  size_t k, bytes;
  const uint64_t *matrix; // row stride `stride`
  size_t stride;
  const uint8_t *const *x;
  size_t x_at; // columns of x, from, y and next begin here
  uint8_t *const *from;
  size_t from_at;
  uint8_t *const *y;
  size_t y_at;
  const uint8_t *const *next; // (k) rows to fetch
  size_t next_at;
  bool past;
} few_pass;

WEFT_INLINE void few_store(const few_pass *p, uint8_t *y, vec v) {
  if (p->past)
    _mm512_stream_si512((__m512i *)(void *)y, v);
  else
    vec_store(y, v);
}

// Inlined for each constant rows, ahead.
WEFT_INLINE void few_tiles(const few_pass *p, const size_t rows, const bool ahead) {
  for (size_t column = 0; column < p->bytes; column += FEW_STEP) {
    vec acc[8][2];
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < 2; v++) acc[r][v] =
          p->from ? vec_load(p->from[r] + p->from_at + column + v * VEC_BYTES) : vec_zero();
    }
    const uint64_t *near = p->matrix, *far = near + p->stride;
    size_t j = 0;
    for (; j + 2 <= p->k; j += 2, near = far + p->stride, far = near + p->stride) {
      const uint8_t *const x = p->x[j] + p->x_at + column;
      const uint8_t *const z = p->x[j + 1] + p->x_at + column;
      const vec s[2] = {vec_load(x), vec_load(x + VEC_BYTES)};
      const vec t[2] = {vec_load(z), vec_load(z + VEC_BYTES)};
      if (ahead) {
        const size_t at = p->next_at + column;
        __builtin_prefetch(p->next[j] + at);
        __builtin_prefetch(p->next[j] + at + VEC_BYTES);
        __builtin_prefetch(p->next[j + 1] + at);
        __builtin_prefetch(p->next[j + 1] + at + VEC_BYTES);
      }
      WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
        const vec c = _mm512_set1_epi64((long long)near[r]);
        const vec d = _mm512_set1_epi64((long long)far[r]);
        WEFT_UNROLL for (size_t v = 0; v < 2; v++) acc[r][v] =
            vec_xor3(acc[r][v], product(s[v], c), product(t[v], d));
      }
    }
    if (j < p->k) {
      const uint8_t *const x = p->x[j] + p->x_at + column;
      const vec s[2] = {vec_load(x), vec_load(x + VEC_BYTES)};
      if (ahead) {
        __builtin_prefetch(p->next[j] + p->next_at + column);
        __builtin_prefetch(p->next[j] + p->next_at + column + VEC_BYTES);
      }
      WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
        const vec c = _mm512_set1_epi64((long long)near[r]);
        WEFT_UNROLL for (size_t v = 0; v < 2; v++) acc[r][v] = vec_xor(acc[r][v], product(s[v], c));
      }
    }
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < 2; v++)
          few_store(p, p->y[r] + p->y_at + column + v * VEC_BYTES, acc[r][v]);
    }
  }
}

WEFT_INLINE void few_ahead_or_not(const few_pass *p, const size_t rows) {
  if (p->next)
    few_tiles(p, rows, true);
  else
    few_tiles(p, rows, false);
}

static void few_pass_2(const few_pass *p) { few_ahead_or_not(p, 2); }
static void few_pass_3(const few_pass *p) { few_ahead_or_not(p, 3); }
static void few_pass_4(const few_pass *p) { few_ahead_or_not(p, 4); }
static void few_pass_6(const few_pass *p) { few_ahead_or_not(p, 6); }
static void few_pass_8(const few_pass *p) { few_ahead_or_not(p, 8); }

// Output rows of the next pass when `left` >= 2 are left: never such that one remains.
static size_t few_rows_of(size_t left) {
  static const uint8_t rows[10] = {0, 0, 2, 3, 4, 3, 6, 4, 8, 6};
  return left < 10 ? rows[left] : 8;
}

// All output rows of one group's run; the rows after the first find the sources in the cache.
static void few_group(const few_pass *group, size_t m) {
  static void (*const passes[9])(const few_pass *) = {
      NULL, NULL, few_pass_2, few_pass_3, few_pass_4, NULL, few_pass_6, NULL, few_pass_8};
  few_pass p = *group;
  for (size_t row = 0, rows; row < m; row += rows) {
    rows = few_rows_of(m - row);
    p.matrix = group->matrix + row;
    p.from = group->from ? group->from + row : NULL;
    p.y = group->y + row;
    passes[rows](&p);
    p.next = NULL; // fetched once
  }
}

// Chooses what to fetch while sources [first, first + pass->k) are worked on.
static void few_fetch(const weft_panel *p, few_pass *pass, bool ahead, size_t first, size_t end) {
  const size_t after = first + pass->k;
  if (!ahead)
    return;
  if (pass->k == p->k) { // past the end of a row at times, but that is no read
    pass->next = p->x;
    pass->next_at = pass->x_at + FEW_AHEAD;
  } else if (after < p->k) {
    pass->next = p->x + (p->k - after < pass->k ? p->k - pass->k : after);
    pass->next_at = pass->x_at;
  } else if (pass->x_at + FEW_RUN < end) {
    pass->next = p->x;
    pass->next_at = pass->x_at + FEW_RUN;
  }
}

// Whole steps of columns [begin, end) of all output rows.
static void few_columns(const weft_panel *p, const uint64_t *matrix, size_t begin, size_t end) {
  _Alignas(64) uint8_t scratch[FEW_ROWS * FEW_RUN];
  uint8_t *sums[FEW_ROWS];
  const size_t total = (p->k + p->m) * (end - begin);
  const bool ahead = total > FEW_CACHED;
  bool past = total > FEW_PAST_CACHE;
  for (size_t i = 0; i < p->m; i++) {
    sums[i] = scratch + i * FEW_RUN;
    past = past && ((uintptr_t)p->y[i] + begin) % VEC_BYTES == 0;
  }
  const size_t groups = p->k > FEW_AT_ONCE ? (p->k + FEW_GROUP - 1) / FEW_GROUP : 1;
  const size_t at_once = (p->k + groups - 1) / groups;
  for (size_t column = begin; column < end; column += FEW_RUN) {
    const size_t bytes = end - column < FEW_RUN ? end - column : FEW_RUN;
    for (size_t first = 0; first < p->k; first += at_once) {
      const size_t k = p->k - first < at_once ? p->k - first : at_once;
      const bool last = first + k == p->k;
      few_pass pass = {.k = k,
                       .bytes = bytes,
                       .matrix = matrix + first * p->m,
                       .stride = p->m,
                       .x = p->x + first,
                       .x_at = column,
                       .y = last ? p->y : sums,
                       .y_at = last ? column : 0,
                       .past = last && past};
      if (first > 0)
        pass.from = sums;
      else if (p->accumulate) {
        pass.from = p->y;
        pass.from_at = column;
      }
      few_fetch(p, &pass, ahead, first, end);
      few_group(&pass, p->m);
    }
  }
  if (past)
    _mm_sfence();
}

static void few_panel(const weft_panel *p) {
  uint64_t matrix[FEW_SOURCES * FEW_ROWS];
  const size_t end = p->end - (p->end - p->begin) % FEW_STEP;
  for (size_t j = 0; j < p->k; j++)
    for (size_t i = 0; i < p->m; i++)
      matrix[j * p->m + i] = weft_gf256_affine[p->a[i * p->a_stride + j]];
  few_columns(p, matrix, p->begin, end);
  const size_t part = (p->end - end) % VEC_BYTES;
  if (p->end - end >= VEC_BYTES)
    tile_column(p, end, 1, 0);
  if (part)
    tile_column(p, p->end - part, 1, part);
}

// One source into several rows that exist: row by row, so that there are two streams.
static void few_fan(const weft_panel *p) {
  enum { RUN = 4096, VECS = 8 };
  const size_t end = p->end - (p->end - p->begin) % (VECS * VEC_BYTES);
  for (size_t run = p->begin; run < end; run += RUN) {
    const size_t stop = end - run < RUN ? end : run + RUN;
    for (size_t i = 0; i < p->m; i++) {
      const vec c = _mm512_set1_epi64((long long)weft_gf256_affine[p->a[i * p->a_stride]]);
      for (size_t column = run; column < stop; column += VECS * VEC_BYTES) {
        const uint8_t *const x = p->x[0] + column;
        uint8_t *const y = p->y[i] + column;
        WEFT_UNROLL for (size_t v = 0; v < VECS; v++)
            vec_store(y + v * VEC_BYTES, vec_xor(vec_load(y + v * VEC_BYTES),
                                                 product(vec_load(x + v * VEC_BYTES), c)));
      }
    }
  }
  weft_panel rest = *p;
  rest.begin = end;
  if (end < p->end)
    tile_panel(&rest);
}

static void few_or_tile_panel(const weft_panel *p) {
  const bool few =
      p->m >= 2 && p->m <= FEW_ROWS && p->k <= FEW_SOURCES && p->end - p->begin >= FEW_COLUMNS;
  if (few && p->k > 1)
    few_panel(p);
  else if (few && p->accumulate)
    few_fan(p);
  else
    tile_panel(p);
}

#endif
