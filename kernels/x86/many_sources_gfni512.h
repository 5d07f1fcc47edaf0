// SPDX-License-Identifier: Apache-2.0
// Few output rows of row gfni512 from many sources: runs of columns are copied, tile by tile, into
// a buffer while the run before is multiplied. A tile's lines are then contiguous wherever the
// sources are, all sources are added up in registers, and no copy waits for a product. Sources that
// share no sets of a cache are multiplied in place. few_rows_gfni512.h includes this;
// docs/performance/storage-many-sources.md says what was tried.
#ifndef WEFT_KERNELS_X86_MANY_SOURCES_GFNI512_H
#define WEFT_KERNELS_X86_MANY_SOURCES_GFNI512_H

enum {
  MANY_TILE = 2 * VEC_BYTES, // columns of a tile
  MANY_APART = 128,          // bytes between a buffer's tiles, to keep them in different sets
  MANY_FETCHED = 4,          // sources from what is copied to what is prefetched
  MANY_RUNS = 8,             // minimum number of runs
  MANY_ROWS = 12,            // minimum number of outputs: copies are too much of less work,
  MANY_LONG_ROWS = 9,        // but not with long rows, whose lines would be fetched repeatedly;
  MANY_PACKED = 32,          // from so many on packed tiles (tile.h) are as fast in near caches
  MANY_MOST = 4 * FEW_ROWS   // maximum number of outputs, in parts of FEW_ROWS
};

// Tests set smaller values, to get here with short rows.
#ifndef MANY_NEAR
#define MANY_NEAR ((size_t)6 << 20) // bytes of all rows up to which a buffer fits the first level
#define MANY_LONG 65536             // bytes of a row
#define MANY_NEAR_BUFFER 16384      // bytes, about
#define MANY_FAR_BUFFER 131072
#endif

// The layout of a buffer: columns of a run, or 0 if sources are better multiplied in place; bytes
// from one tile, and from one source, to the next; and bytes in all.
typedef struct many_layout {
  size_t run, tile, source, bytes;
  bool far; // rows are more than a near cache holds
} many_layout;

// Returns whether rows are so many, and so long, that copies pay.
static bool many_pays(size_t m, size_t columns, size_t row_bytes, bool far) {
  const bool whole_tiles = m % TILE_ROWS == 0 && columns < FEW_GROUPED; // as tile.h has them
  if (row_bytes >= MANY_LONG)
    return m >= MANY_LONG_ROWS && m <= MANY_MOST && (far || m < MANY_PACKED);
  return m >= MANY_ROWS && m <= FEW_ROWS && !whole_tiles;
}

static many_layout many_layout_of(size_t m, size_t k, size_t columns, size_t row_bytes) {
  const bool far = (m + k) * row_bytes > MANY_NEAR;
  if (k <= FEW_AT_ONCE || k > FEW_SOURCES || !many_pays(m, columns, row_bytes, far))
    return (many_layout){0};
  const size_t most = far ? MANY_FAR_BUFFER : MANY_NEAR_BUFFER;
  // The first run is copied while nothing is multiplied, so there should be several.
  const size_t wanted = most / k < columns / MANY_RUNS ? most / k : columns / MANY_RUNS;
  const size_t tiles = wanted > MANY_TILE ? wanted / MANY_TILE : 1;
  many_layout l = {.run = tiles * MANY_TILE, .far = far};
  if (far) { // a tile is read as a single stream
    l.tile = k * MANY_TILE + MANY_APART;
    l.source = MANY_TILE;
    l.bytes = tiles * l.tile;
  } else { // a source is written as a single stream
    l.tile = MANY_TILE;
    l.source = l.run;
    l.bytes = k * l.run;
  }
  return l;
}

// For weft_host_kernel: two buffers.
static size_t many_scratch(size_t m, size_t k, size_t columns, size_t row_bytes) {
  return columns < FEW_COLUMNS ? 0 : 2 * many_layout_of(m, k, columns, row_bytes).bytes;
}

// Returns whether sources are to be copied and the panel's scratch suffices: it may be for another
// shape, of more sources.
static bool many_fits(const weft_panel *p) {
  const size_t bytes = many_scratch(p->m, p->k, p->end - p->begin, p->row_bytes);
  return bytes > 0 && bytes <= p->scratch_bytes;
}

// A run that is copied.
typedef struct many_run {
  const uint8_t *const *x; // (k)
  size_t k, tile, source;  // tile and source as in many_layout
  size_t columns;
  size_t column, next; // where it begins, and where the one after it does
  uint8_t *buffer;
} many_run;

// The progress of a copy: `from` is copied to the tile at `to`, `far` is prefetched.
typedef struct many_copy {
  const uint8_t *from, *far;
  uint8_t *to;
  size_t left;   // columns left of the source's run; 0: everything is copied
  size_t source; // kept in memory, since it rarely changes
} many_copy;

typedef struct many_work {
  const weft_panel *panel;
  const uint64_t *matrix; // (k / 2, m, 2), then, for an odd source, (m)
  many_layout layout;
  size_t end; // of the columns
  bool past;  // results are stored past the caches
  bool apart; // sources are not copied, and there is one run
} many_work;

// Starts copying c->source; stops the copy after the last source.
__attribute__((noinline)) static void many_source(const many_run *run, many_copy *c) {
  if (c->source == run->k) {
    c->left = 0;
    return;
  }
  const size_t far = c->source + MANY_FETCHED;
  c->from = run->x[c->source] + run->column;
  c->far = far < run->k ? run->x[far] + run->column : run->x[far - run->k] + run->next;
  c->to = run->buffer + c->source * run->source;
  c->left = run->columns;
}

static many_run many_run_at(const many_work *w, size_t column, uint8_t *buffer) {
  const size_t left = w->end - column, columns = w->layout.run;
  return (many_run){.x = w->panel->x,
                    .k = w->panel->k,
                    .tile = w->layout.tile,
                    .source = w->layout.source,
                    .columns = left < columns ? left : columns,
                    .column = column,
                    .next = left > columns ? column + columns : column, // or this one again
                    .buffer = buffer};
}

// Copies one tile's columns of one source. `now` is `state` in registers, except for its source.
// What is prefetched may be past the end of a row, but is not read.
WEFT_INLINE void many_step(const many_run *run, many_copy *now, many_copy *state) {
  if (now->left == 0)
    return;
  vec_store(now->to, vec_load(now->from));
  vec_store(now->to + VEC_BYTES, vec_load(now->from + VEC_BYTES));
  __builtin_prefetch(now->far);
  __builtin_prefetch(now->far + VEC_BYTES);
  now->from += MANY_TILE;
  now->far += MANY_TILE;
  now->to += run->tile;
  now->left -= MANY_TILE;
  // Otherwise the compiler keeps two of them in a vector, which the loads then wait for.
  __asm__("" : "+r"(now->from), "+r"(now->far), "+r"(now->to));
  if (__builtin_expect(now->left == 0, 0)) {
    state->source++;
    many_source(run, state);
    *now = *state;
  }
}

// Multiplies one tile into `rows` output rows, with a step of the copy for every two sources: two
// or more blocks of rows make all the steps that there are. Inlined for each constant rows, past
// and apart.
WEFT_INLINE void many_tile(const weft_panel *p, size_t row, const size_t rows, size_t column,
                           const uint64_t *near, const uint8_t *tile, const many_run *run,
                           many_copy *now, many_copy *state, const bool past, const bool apart) {
  const size_t k = p->k, pair = 2 * p->m, source = run->source;
  uint8_t *const *const y = p->y + row;
  vec acc[8][2];
  if (p->accumulate) {
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < 2; v++) acc[r][v] =
          vec_load(y[r] + column + v * VEC_BYTES);
    }
  } else {
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      WEFT_UNROLL for (size_t v = 0; v < 2; v++) acc[r][v] = vec_zero();
    }
  }
  size_t j = 0;
  for (; j + 2 <= k; j += 2, near += pair, tile += 2 * source) {
    const uint8_t *const one = apart ? p->x[j] + column : tile;
    const uint8_t *const two = apart ? p->x[j + 1] + column : tile + source;
    const vec s[2] = {vec_load(one), vec_load(one + VEC_BYTES)};
    const vec t[2] = {vec_load(two), vec_load(two + VEC_BYTES)};
    if (!apart)
      many_step(run, now, state);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      const con c = con_of(near[2 * r]);
      const con d = con_of(near[2 * r + 1]);
      WEFT_UNROLL for (size_t v = 0; v < 2; v++) acc[r][v] =
          vec_xor3(acc[r][v], product(s[v], c), product(t[v], d));
    }
  }
  if (j < k) {
    near -= row; // the odd source's words are not in pairs
    const uint8_t *const one = apart ? p->x[j] + column : tile;
    if (!apart)
      many_step(run, now, state);
    WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
      const con c = con_of(near[r]);
      WEFT_UNROLL for (size_t v = 0; v < 2; v++) acc[r][v] =
          vec_xor(acc[r][v], product(vec_load(one + v * VEC_BYTES), c));
    }
  }
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    WEFT_UNROLL for (size_t v = 0; v < 2; v++)
        few_store(y[r] + column + v * VEC_BYTES, acc[r][v], past);
  }
}

// Multiplies the run at `column` in `buffer` into output rows [row, row + rows).
WEFT_INLINE void many_tiles(const many_work *w, size_t row, const size_t rows, size_t column,
                            const uint8_t *buffer, const many_run *run, many_copy *state,
                            const bool past, const bool apart) {
  const size_t left = w->end - column;
  const size_t stop = column + (left < w->layout.run ? left : w->layout.run);
  many_copy now = *state; // in registers
  for (; column < stop; column += MANY_TILE, buffer += run->tile)
    many_tile(w->panel, row, rows, column, w->matrix + 2 * row, buffer, run, &now, state, past,
              apart);
  now.source = state->source;
  *state = now;
}

// Separate functions with and without copies: with both in one the compiler would allocate
// registers differently.
#define MANY_BLOCK(rows, kind, apart)                                                              \
  static void many_##kind##_##rows(const many_work *w, size_t row, size_t column,                  \
                                   const uint8_t *buffer, const many_run *run, many_copy *copy) {  \
    if (w->past)                                                                                   \
      many_tiles(w, row, rows, column, buffer, run, copy, true, apart);                            \
    else                                                                                           \
      many_tiles(w, row, rows, column, buffer, run, copy, false, apart);                           \
  }
#define MANY_BLOCKS(kind, apart)                                                                   \
  MANY_BLOCK(2, kind, apart)                                                                       \
  MANY_BLOCK(3, kind, apart)                                                                       \
  MANY_BLOCK(4, kind, apart)                                                                       \
  MANY_BLOCK(5, kind, apart)                                                                       \
  MANY_BLOCK(6, kind, apart)                                                                       \
  MANY_BLOCK(7, kind, apart)                                                                       \
  MANY_BLOCK(8, kind, apart)
MANY_BLOCKS(copied, false)
MANY_BLOCKS(apart, true)

// Computes all output rows of the run at `column`.
static void many_blocks(const many_work *w, size_t column, const uint8_t *buffer,
                        const many_run *run, many_copy *copy) {
#define MANY_KIND(kind)                                                                            \
  {                                                                                                \
    NULL, NULL, many_##kind##_2, many_##kind##_3, many_##kind##_4, many_##kind##_5,                \
        many_##kind##_6, many_##kind##_7, many_##kind##_8                                          \
  }
  static void (*const blocks[2][FEW_PAIRED + 1])(const many_work *, size_t, size_t, const uint8_t *,
                                                 const many_run *, many_copy *) = {
      MANY_KIND(copied), MANY_KIND(apart)};
#undef MANY_KIND
  const size_t m = w->panel->m;
  for (size_t row = 0, rows; row < m; row += rows) {
    rows = few_paired_rows(m - row);
    blocks[w->apart][rows](w, row, column, buffer, run, copy);
  }
}

static void many_copy_rest(const many_run *run, many_copy *copy) {
  many_copy now = *copy;
  while (now.left > 0)
    many_step(run, &now, copy);
  copy->left = 0;
}

// Expands coefficients to matrices, those of two sources side by side.
static void many_matrices(const weft_panel *p, uint64_t *matrix) {
  const size_t even = p->k & ~(size_t)1;
  for (size_t i = 0; i < p->m; i++) {
    const uint8_t *const a = p->a + i * p->a_stride;
    uint64_t *at = matrix + 2 * i;
    for (size_t j = 0; j < even; j += 2, at += 2 * p->m) {
      at[0] = weft_gf256_affine[a[j]];
      at[1] = weft_gf256_affine[a[j + 1]];
    }
    if (even < p->k)
      matrix[even * p->m + i] = weft_gf256_affine[a[even]];
  }
}

// Multiplies columns [begin, end), whole tiles, of sources in place.
static void many_apart(const weft_panel *p, uint64_t *matrix, size_t end, bool past) {
  many_matrices(p, matrix);
  const many_work w = {.panel = p,
                       .matrix = matrix,
                       .layout = {.run = end - p->begin},
                       .end = end,
                       .past = past,
                       .apart = true};
  const many_run none = {0};
  many_copy copy = {0};
  many_blocks(&w, p->begin, p->x[0], &none, &copy); // x[0] in place of a buffer, which is not read
}

// Multiplies columns [begin, end), whole tiles, run by run.
static void many_panel(const weft_panel *p, uint64_t *matrix, size_t end, bool past) {
  many_matrices(p, matrix);
  const many_work w = {.panel = p,
                       .matrix = matrix,
                       .layout = many_layout_of(p->m, p->k, p->end - p->begin, p->row_bytes),
                       .end = end,
                       .past = past};
  uint8_t *now = p->scratch, *then = now + w.layout.bytes;
  many_run run = many_run_at(&w, p->begin, now);
  many_copy copy = {0};
  many_source(&run, &copy);
  many_copy_rest(&run, &copy);
  for (size_t column = p->begin; column < end; column += w.layout.run) {
    const size_t stop = end - column < w.layout.run ? end : column + w.layout.run;
    if (stop < end) { // else nothing is left to copy
      run = many_run_at(&w, stop, then);
      copy.source = 0;
      many_source(&run, &copy);
    }
    many_blocks(&w, column, now, &run, &copy);
    many_copy_rest(&run, &copy);
    uint8_t *const done = now;
    now = then;
    then = done;
  }
}

#endif
