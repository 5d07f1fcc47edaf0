// SPDX-License-Identifier: Apache-2.0
// Few output rows of row gfni512 from many sources: runs of columns are copied, tile by tile, into
// a buffer of their own while the run before is multiplied. A tile's lines then follow each other
// wherever the sources lie, all sources are added up in registers, and no copy waits for a product.
// Sources that share no sets of a cache are multiplied where they lie.
// few_rows_gfni512.h includes this; docs/performance/storage-many-sources.md says what was tried.
#ifndef WEFT_KERNELS_X86_MANY_SOURCES_GFNI512_H
#define WEFT_KERNELS_X86_MANY_SOURCES_GFNI512_H

enum {
  MANY_TILE = 2 * VEC_BYTES, // columns of a tile
  MANY_APART = 128,          // bytes between a buffer's tiles: these would share sets of the cache
  MANY_FETCHED = 4,          // sources from what is copied to what is fetched
  MANY_RUNS = 8,             // at least
  MANY_ROWS = 12,            // at least: copies are too large a part of less work,
  MANY_LONG_ROWS = 9,        // but not where rows are long, so that other ways fetch lines anew;
  MANY_PACKED = 32,          // and at least, which packed tiles take as well where caches are near
  MANY_MOST = 4 * FEW_ROWS   // at most, in parts of FEW_ROWS
};

// Tests set less, so as to come by.
#ifndef MANY_NEAR
#define MANY_NEAR ((size_t)6 << 20) // bytes of all rows up to which a buffer fits the first cache
#define MANY_LONG 65536             // bytes of a row
#define MANY_NEAR_BUFFER 16384      // bytes, about
#define MANY_FAR_BUFFER 131072
#endif

// How a buffer lies: columns of a run, or 0 where sources are better taken as they lie; bytes from
// one tile, and from one source, to the next.
typedef struct many_layout {
  size_t run, tile, source, bytes;
  bool far; // more than a near cache holds
} many_layout;

// Whether rows are as many, and as long, as copies pay for.
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
  // The first run's copy is beside nothing, so that there are to be several.
  const size_t wanted = most / k < columns / MANY_RUNS ? most / k : columns / MANY_RUNS;
  const size_t tiles = wanted > MANY_TILE ? wanted / MANY_TILE : 1;
  many_layout l = {.run = tiles * MANY_TILE, .far = far};
  if (far) { // a tile is read as one stream
    l.tile = k * MANY_TILE + MANY_APART;
    l.source = MANY_TILE;
    l.bytes = tiles * l.tile;
  } else { // a source is written as one
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

// Scratch may be another shape's, of more sources.
static bool many_fits(const weft_panel *p) {
  const size_t bytes = many_scratch(p->m, p->k, p->end - p->begin, p->row_bytes);
  return bytes > 0 && bytes <= p->scratch_bytes;
}

// A run that is copied.
typedef struct many_run {
  const uint8_t *const *x; // (k)
  size_t k, tile, source;  // as many_layout has them
  size_t columns;
  size_t column, next; // where it begins, and the one after it
  uint8_t *buffer;
} many_run;

// How far that is: `from` goes into the tile at `to`, `far` is fetched.
typedef struct many_copy {
  const uint8_t *from, *far;
  uint8_t *to;
  size_t left;   // columns of the source's run; 0: all is copied
  size_t source; // in memory, since it changes seldom
} many_copy;

typedef struct many_work {
  const weft_panel *panel;
  const uint64_t *matrix; // (k / 2, m, 2) and, of an odd source, (m)
  many_layout layout;
  size_t end; // of the columns
  bool past;  // results are stored past the caches
  bool apart; // sources are not copied: one run
} many_work;

// The source's run from its first column on; nothing after the last source.
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
                    .next = left > columns ? column + columns : column, // or what is there
                    .buffer = buffer};
}

// One tile's columns of one source. `now` is a part of `state` in registers. What is fetched may
// lie past the end of a row, but that is no read.
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
  // Or the compiler keeps two of them in a vector, which the loads then wait for.
  __asm__("" : "+r"(now->from), "+r"(now->far), "+r"(now->to));
  if (__builtin_expect(now->left == 0, 0)) {
    state->source++;
    many_source(run, state);
    *now = *state;
  }
}

// One tile of `rows` output rows, and a step for every two sources: two blocks of rows or more take
// as many as there are. Inlined for each constant rows, past and apart.
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
    near -= row; // of the odd source the words lie one by one
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

// The run at `column` in `buffer`, output rows [row, row + rows).
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

// Copies and none are functions apart: what a compiler keeps in registers changes with both in one.
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

// All output rows of the run at `column`.
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

// Of two sources side by side.
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

// Columns [begin, end), whole tiles, of sources where they lie.
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
  many_blocks(&w, p->begin, p->x[0], &none, &copy); // nothing is read there
}

// Columns [begin, end), whole tiles, run by run.
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
