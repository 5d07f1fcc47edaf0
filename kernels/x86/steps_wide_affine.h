// SPDX-License-Identifier: Apache-2.0
// Wide transforms, of 16 or 8 rows, for techniques that multiply by GF2P8AFFINEQB and have enough
// registers for them: all levels of butterflies in one pass, whereas acts on four rows take one
// pass for every two levels. steps.h includes this. Rows of X and Y are found through pointers,
// slots at constant distances: loading their pointers would take as long as the butterflies.
#ifndef WEFT_KERNELS_X86_STEPS_WIDE_AFFINE_H
#define WEFT_KERNELS_X86_STEPS_WIDE_AFFINE_H

enum { WIDE_ROWS = 16 };

// What is done with results. Those of an inverse transform are stored, multiplied (WIDE_SCALED), or
// multiplied and added to what the slots hold (WIDE_ADDED). To those of a forward transform rows
// may be added, multiplied (WIDE_ADDED) or unchanged (WIDE_SUMMED).
typedef enum wide_end { WIDE_STORED, WIDE_SCALED, WIDE_ADDED, WIDE_SUMMED, WIDE_ENDINGS } wide_end;

// An inverse transform reads any rows and leaves its results in slots; a forward one reads slots
// and writes any rows, possibly after adding rows of `more`.
typedef struct wide_rows {
  const uint8_t *in[WIDE_ROWS], *more[WIDE_ROWS];
  uint8_t *out[WIDE_ROWS];
  uint8_t *slot;         // the first slot
  uint64_t first[4][3];  // matrices of act->c[0..2] for the first two levels' fours,
  uint64_t second[4][3]; // and for the last levels' fours or twos
  uint64_t scale;
  size_t width;            // bytes
  const weft_fetch *fetch; // rows that are read next, to prefetch; NULL: none
  size_t ahead;            // how many bytes ahead the same rows are prefetched; 0: not at all
} wide_rows;

WEFT_INLINE void wide_butterfly(vec *a, vec *b, const uint64_t *c, const bool inverse,
                                const bool zero) {
  if (inverse)
    *b = vec_xor(*b, *a);
  if (!zero)
    *a = vec_xor(*a, product(*b, con_of(*c)));
  if (!inverse)
    *b = vec_xor(*b, *a);
}

// Computes two levels on rows [0], [step], [2 * step], [3 * step]. `zero`: c[0] and c[2] are 0.
WEFT_INLINE void wide_four(vec *x, const size_t step, const uint64_t *c, const bool inverse,
                           const bool zero) {
  if (!inverse) {
    wide_butterfly(x, x + 2 * step, c + 2, false, zero);
    wide_butterfly(x + step, x + 3 * step, c + 2, false, zero);
  }
  wide_butterfly(x, x + step, c, inverse, zero);
  wide_butterfly(x + 2 * step, x + 3 * step, c + 1, inverse, false);
  if (inverse) {
    wide_butterfly(x, x + 2 * step, c + 2, true, zero);
    wide_butterfly(x + step, x + 3 * step, c + 2, true, zero);
  }
}

// Computes all levels on `fours` times four rows at x, which are `vecs` vectors apart.
WEFT_INLINE void wide_levels(const wide_rows *r, vec *x, const size_t fours, const size_t vecs,
                             const bool inverse, const bool zero) {
  // In an inverse transform the first fours are neighbouring rows, in a forward one the last.
  WEFT_UNROLL for (size_t i = 0; i < fours; i++)
      wide_four(x + (inverse ? 4 * i : i) * vecs, (inverse ? 1 : fours) * vecs, r->first[i],
                inverse, zero && i == 0);
  WEFT_UNROLL for (size_t i = 0; i < 4; i++) {
    vec *const at = x + (inverse ? i : fours * i) * vecs;
    const size_t step = (inverse ? 4 : 1) * vecs;
    if (fours == 4)
      wide_four(at, step, r->second[i], inverse, zero);
    else
      wide_butterfly(at, at + step, r->second[i], inverse, zero);
  }
}

// Inlined for each constant.
WEFT_INLINE void wide_inverse(const wide_rows *r, const size_t fours, const size_t vecs,
                              const bool zero, const bool fetches, const wide_end end) {
  uint8_t *const slot = r->slot;
  const bool next = fetches && r->fetch, ahead = fetches && !r->fetch;
  fetch_walk walk = {0};
  if (next)
    walk = fetch_begin(r->fetch);
  for (size_t column = 0; column < r->width; column += vecs * VEC_BYTES) {
    vec x[WIDE_ROWS];
    WEFT_UNROLL for (size_t i = 0; i < 4 * fours; i++) {
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++) x[i * vecs + v] =
          vec_load(r->in[i] + column + v * VEC_BYTES);
    }
    if (ahead) // may be beyond a row, but does not read
      WEFT_UNROLL for (size_t i = 0; i < 4 * fours; i++) {
        WEFT_UNROLL for (size_t v = 0; v < vecs; v++)
            __builtin_prefetch(r->in[i] + column + v * VEC_BYTES + r->ahead);
      }
    if (next)
      fetch_lines(&walk, 4 * fours * vecs * VEC_BYTES / FETCH_LINE);
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) wide_levels(r, x + v, fours, vecs, true, zero);
    const con scale = con_of(r->scale);
    WEFT_UNROLL for (size_t i = 0; i < 4 * fours; i++) {
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
        uint8_t *const to = slot + i * WEFT_ACT_STRIDE + column + v * VEC_BYTES;
        vec result = x[i * vecs + v];
        if (end != WIDE_STORED)
          result = product(result, scale);
        if (end == WIDE_ADDED)
          result = vec_xor(result, vec_load(to));
        vec_store(to, result);
      }
    }
  }
}

WEFT_INLINE void wide_forward(const wide_rows *r, const size_t fours, const size_t vecs,
                              const bool past, const wide_end end) {
  const uint8_t *const slot = r->slot;
  for (size_t column = 0; column < r->width; column += vecs * VEC_BYTES) {
    vec x[WIDE_ROWS];
    WEFT_UNROLL for (size_t i = 0; i < 4 * fours; i++) {
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++) x[i * vecs + v] =
          vec_load(slot + i * WEFT_ACT_STRIDE + column + v * VEC_BYTES);
    }
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) wide_levels(r, x + v, fours, vecs, false, false);
    const con scale = con_of(r->scale);
    WEFT_UNROLL for (size_t i = 0; i < 4 * fours; i++) {
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
        uint8_t *const to = r->out[i] + column + v * VEC_BYTES;
        vec result = x[i * vecs + v];
        if (end != WIDE_STORED) {
          const vec more = vec_load(r->more[i] + column + v * VEC_BYTES);
          result = vec_xor(result, end == WIDE_SUMMED ? more : product(more, scale));
        }
        if (past)
          vec_store_past(to, result);
        else
          vec_store(to, result);
      }
    }
  }
}

#define WIDE_INVERSE(rows, vecs, zero, fetches, end)                                               \
  static __attribute__((noinline)) void wide_inverse_##rows##_##zero##_##fetches##_##end(          \
      const wide_rows *r) {                                                                        \
    wide_inverse(r, (rows) / 4, vecs, zero, fetches, end);                                         \
  }
#define WIDE_INVERSES(rows, vecs, zero, fetches)                                                   \
  WIDE_INVERSE(rows, vecs, zero, fetches, WIDE_STORED)                                             \
  WIDE_INVERSE(rows, vecs, zero, fetches, WIDE_SCALED)                                             \
  WIDE_INVERSE(rows, vecs, zero, fetches, WIDE_ADDED)
#define WIDE_FORWARD(rows, vecs, past, end)                                                        \
  static __attribute__((noinline)) void wide_forward_##rows##_##past##_##end(const wide_rows *r) { \
    wide_forward(r, (rows) / 4, vecs, past, end);                                                  \
  }
#define WIDE_ALL(rows, vecs)                                                                       \
  WIDE_INVERSES(rows, vecs, 0, 0)                                                                  \
  WIDE_INVERSES(rows, vecs, 0, 1)                                                                  \
  WIDE_INVERSES(rows, vecs, 1, 0)                                                                  \
  WIDE_INVERSES(rows, vecs, 1, 1)                                                                  \
  WIDE_FORWARD(rows, vecs, 0, WIDE_STORED)                                                         \
  WIDE_FORWARD(rows, vecs, 0, WIDE_ADDED)                                                          \
  WIDE_FORWARD(rows, vecs, 0, WIDE_SUMMED)                                                         \
  WIDE_FORWARD(rows, vecs, 1, WIDE_STORED)                                                         \
  WIDE_FORWARD(rows, vecs, 1, WIDE_ADDED)                                                          \
  WIDE_FORWARD(rows, vecs, 1, WIDE_SUMMED)

// Indexed by rows / 8 - 1; by whether constants are 0 and whether rows are prefetched, or whether
// stores go past the caches; and by wide_end.
typedef void wide_transform(const wide_rows *r);
#define WIDE_ENDS(rows, zero, fetches)                                                             \
  {                                                                                                \
    wide_inverse_##rows##_##zero##_##fetches##_WIDE_STORED,                                        \
        wide_inverse_##rows##_##zero##_##fetches##_WIDE_SCALED,                                    \
        wide_inverse_##rows##_##zero##_##fetches##_WIDE_ADDED                                      \
  }
#define WIDE_INVERSE_TABLE(rows)                                                                   \
  {                                                                                                \
    {WIDE_ENDS(rows, 0, 0), WIDE_ENDS(rows, 0, 1)}, {                                              \
      WIDE_ENDS(rows, 1, 0), WIDE_ENDS(rows, 1, 1)                                                 \
    }                                                                                              \
  }
#define WIDE_FORWARD_TABLE(rows)                                                                   \
  {                                                                                                \
    {wide_forward_##rows##_0_WIDE_STORED, NULL, wide_forward_##rows##_0_WIDE_ADDED,                \
     wide_forward_##rows##_0_WIDE_SUMMED},                                                         \
        {wide_forward_##rows##_1_WIDE_STORED, NULL, wide_forward_##rows##_1_WIDE_ADDED,            \
         wide_forward_##rows##_1_WIDE_SUMMED},                                                     \
  }

#if STEPS_WIDE == 16
WIDE_ALL(8, 2)
WIDE_ALL(16, 1)
static wide_transform *const wide_inverses[][2][2][WIDE_ENDINGS] = {WIDE_INVERSE_TABLE(8),
                                                                    WIDE_INVERSE_TABLE(16)};
static wide_transform *const wide_forwards[][2][WIDE_ENDINGS] = {WIDE_FORWARD_TABLE(8),
                                                                 WIDE_FORWARD_TABLE(16)};
#else
WIDE_ALL(8, 1)
static wide_transform *const wide_inverses[][2][2][WIDE_ENDINGS] = {WIDE_INVERSE_TABLE(8)};
static wide_transform *const wide_forwards[][2][WIDE_ENDINGS] = {WIDE_FORWARD_TABLE(8)};
#endif

#ifndef STEPS_STAGES
#define STEPS_STAGES false
#define STEPS_STAGED 1024 // columns
#define STEPS_AHEAD 0
#endif
enum { WIDE_WAYS = 12, WIDE_APART = STEPS_STAGED + 64 };

// Returns whether more results than a set of the first-level cache has ways would be in the same
// set.
static bool wide_collides(const wide_rows *r, size_t rows) {
  enum { LINE = 64, WAY_BYTES = 64 * LINE }; // a way has one line of each set
  size_t same = 0;
  for (size_t i = 0; i < rows; i++)
    same += ((uintptr_t)r->out[i] ^ (uintptr_t)r->out[0]) % WAY_BYTES / LINE == 0;
  return same > WIDE_WAYS;
}

// Collects such results in a buffer, from which each row's are copied together.
static __attribute__((noinline)) void wide_forward_staged(const wide_rows *r, size_t rows,
                                                          wide_transform *forward) {
  _Alignas(64) uint8_t buffer[WIDE_ROWS * WIDE_APART];
  wide_rows part = *r;
  for (size_t i = 0; i < rows; i++)
    part.out[i] = buffer + i * WIDE_APART;
  for (size_t column = 0; column < r->width; column += part.width) {
    part.width = r->width - column < STEPS_STAGED ? r->width - column : STEPS_STAGED;
    forward(&part);
    for (size_t i = 0; i < rows; i++)
      for (size_t at = 0; at < part.width; at += VEC_BYTES)
        vec_store(r->out[i] + column + at, vec_load(part.out[i] + at));
    part.slot += part.width;
    for (size_t i = 0; i < rows; i++)
      part.more[i] += part.width;
  }
}

// Returns whether an act begins a transform that is done in one pass. Past the caches, storing half
// a line of each of eight rows in turn is slower than whole lines of four.
static bool wide_takes(const weft_strip *strip, const weft_act *act) {
  const bool lines = VEC_BYTES == 64 || act->kind == WEFT_ACT_INVERSE4 || !strip->past;
  return act->wide > 0 && act->wide <= STEPS_WIDE && lines;
}

// Returns the last row of X that an inverse transform reads, or SIZE_MAX.
static size_t last_row(const weft_act *act, size_t fours) {
  size_t last = SIZE_MAX;
  for (size_t i = 0; i < fours; i++)
    for (size_t j = 0; j < 4; j++)
      if (act[i].in[j] >= WEFT_PLACE_X)
        last = act[i].in[j] - (size_t)WEFT_PLACE_X;
  return last;
}

// Finds the rows of a transform, and its matrices. Inlined for each constant fours and inverse.
// Returns whether its results may be stored past the caches.
WEFT_INLINE bool wide_places(const weft_act *act, uint8_t *const *place, const size_t fours,
                             const bool inverse, bool past, wide_rows *r) {
  const weft_act *const last = act + fours; // four of them
  WEFT_UNROLL for (size_t i = 0; i < fours; i++) {
    WEFT_UNROLL for (size_t j = 0; j < 4; j++) {
      const size_t from = inverse ? 4 * i + j : i + fours * j;
      const size_t to = inverse ? j + 4 * i : fours * j + i; // of last[j], its operand i
      r->in[from] = place[act[i].in[j]];
      r->out[to] = place[last[j].out[i]];
      r->more[to] = place[last[j].more[i]];
    }
  }
  if (past)
    for (size_t i = 0; i < fours; i++)
      for (size_t j = 0; j < 4; j++)
        past = past && last[j].out[i] >= WEFT_PLACE_Y &&
               (uintptr_t)place[last[j].out[i]] % VEC_BYTES == 0;
  WEFT_UNROLL for (size_t i = 0; i < 4; i++) {
    WEFT_UNROLL for (size_t c = 0; c < 3; c++) {
      if (i < fours)
        r->first[i][c] = weft_gf256_affine[act[i].c[c]];
      r->second[i][c] = weft_gf256_affine[last[i].c[c]];
    }
  }
  return past;
}

// Executes the acts from `act` on that are one transform (host_wide.c).
__attribute__((noinline)) static void wide_run(const weft_strip *strip, const weft_act *act,
                                               uint8_t *const *place, size_t width, size_t column) {
  const bool inverse = act->kind == WEFT_ACT_INVERSE4;
  const size_t fours = act->wide / 4u;
  const weft_act *const last = act + fours; // four of them
  wide_rows r;                              // all of it at once would be cleared by `rep stos`
  r.scale = weft_gf256_affine[last->c[3]];
  r.width = width;
  r.fetch = NULL;
  bool past;
  if (inverse)
    past = fours == 4 ? wide_places(act, place, 4, true, strip->past, &r)
                      : wide_places(act, place, 2, true, strip->past, &r);
  else
    past = fours == 4 ? wide_places(act, place, 4, false, strip->past, &r)
                      : wide_places(act, place, 2, false, strip->past, &r);
  // Prefetches as many rows as it reads; after the last rows come the first ones of the next strip.
  const size_t next = steps_fetch(strip) ? last_row(act, fours) + 1 : 0;
  const bool turns = next >= strip->k;
  const size_t row = turns ? 0 : next, there = strip->k - row;
  const weft_fetch fetch = {.row = strip->x + row,
                            .rows = there < act->wide ? there : act->wide,
                            .begin = turns ? column + strip->width : column,
                            .bytes = width};
  if (next > 0)
    r.fetch = &fetch;
  r.ahead = strip->past ? STEPS_AHEAD : 0;
  r.slot = inverse ? r.out[0] : place[act->in[0]];
  const bool zero = act->c[0] == 0 && act->c[2] == 0 && last->c[0] == 0 && last->c[2] == 0;
  wide_end end = WIDE_STORED;
  if (last->joins && inverse)
    end = last->more[0] != WEFT_PLACE_ZERO ? WIDE_ADDED : WIDE_SCALED;
  else if (last->joins)
    end = last->c[3] == 1 ? WIDE_SUMMED : WIDE_ADDED;
  if (inverse)
    wide_inverses[fours / 4][zero][r.fetch || r.ahead][end](&r);
  else if (STEPS_STAGES && !past && wide_collides(&r, 4 * fours))
    wide_forward_staged(&r, 4 * fours, wide_forwards[fours / 4][false][end]);
  else
    wide_forwards[fours / 4][past][end](&r);
}

#endif
