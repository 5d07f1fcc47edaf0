// SPDX-License-Identifier: Apache-2.0
// Executes acts (host_steps.h), written once for all vector techniques. A technique's file includes
// this after tile.h, whose vectors and products it uses. Columns are taken in strips, short enough
// that slots stay in the second-level cache and long enough that rows of X are read page by page:
// strips that fit the first-level cache can be half as fast
// (docs/performance/storage-transforms-gains.md).
#ifndef WEFT_KERNELS_STEPS_H
#define WEFT_KERNELS_STEPS_H

#include "kernels/host_steps.h"
#include "kernels/unroll.h"

enum {
  STEPS_VECS = 2, // vectors of each row that an act works on at once
  STEPS_STEP = STEPS_VECS * VEC_BYTES,
  STEPS_FETCH = 8,             // rows to prefetch ahead
  STEPS_PAST_CACHES = 16 << 20 // bytes of X and Y that no cache holds
};

// A technique whose arithmetic leaves memory idle says on which processors it pays to prefetch the
// rows that are read next where no cache holds them; Intel's get slower by it.
#ifndef STEPS_FETCHES
#define STEPS_FETCHES false
#endif

static inline bool steps_fetch(const weft_strip *strip) { return strip->past && STEPS_FETCHES; }

// An act on `width` bytes of its rows.
typedef struct act_rows {
  const uint8_t *in[4];
  uint8_t *out[4];
  const uint8_t *more[4];
  uint8_t c[4];
  const uint8_t *fetch[4]; // rows that will be read soon, where `fetches`
  bool fetches;
  bool past;    // results are stored past the caches
  size_t width; // bytes
} act_rows;

WEFT_INLINE void act_inverse(vec *a, vec *b, con c, const bool zero) {
  *b = vec_xor(*b, *a);
  if (!zero)
    *a = mac(*a, src_make(*b), c);
}

WEFT_INLINE void act_forward(vec *a, vec *b, con c, const bool zero) {
  if (!zero)
    *a = mac(*a, src_make(*b), c);
  *b = vec_xor(*b, *a);
}

WEFT_INLINE void act_load(const act_rows *r, const size_t rows, size_t column,
                          vec x[][STEPS_VECS]) {
  if (r->fetches)
    WEFT_UNROLL for (size_t i = 0; i < rows; i++) {
      WEFT_UNROLL for (size_t line = 0; line < STEPS_STEP; line += 64) __builtin_prefetch(
          r->fetch[i] + column + line, 0, 2); // may be beyond a row, but does not read
    }
  WEFT_UNROLL for (size_t i = 0; i < rows; i++) {
    WEFT_UNROLL for (size_t v = 0; v < STEPS_VECS; v++) x[i][v] =
        vec_load(r->in[i] + column + v * VEC_BYTES);
  }
}

WEFT_INLINE void act_store(const act_rows *r, const size_t rows, size_t column,
                           vec x[][STEPS_VECS]) {
  WEFT_UNROLL for (size_t i = 0; i < rows; i++) {
    WEFT_UNROLL for (size_t v = 0; v < STEPS_VECS; v++) if (r->past)
        vec_store_past(r->out[i] + column + v * VEC_BYTES, x[i][v]);
    else vec_store(r->out[i] + column + v * VEC_BYTES, x[i][v]);
  }
}

// How an act joins the results of its butterflies with other rows.
typedef enum act_join_kind {
  ACT_ALONE, // not at all
  ACT_JOINED,
  ACT_SUMMED // of forward butterflies, with c[3] = 1: no product
} act_join_kind;

// Adds rows to c times the results of inverse butterflies, or c times the rows to those of forward
// ones.
WEFT_INLINE void act_join(const act_rows *r, const size_t rows, size_t column, con c,
                          const act_join_kind joins, const bool inverse, vec x[][STEPS_VECS]) {
  WEFT_UNROLL for (size_t i = 0; i < rows; i++) {
    WEFT_UNROLL for (size_t v = 0; v < STEPS_VECS; v++) {
      const vec more = vec_load(r->more[i] + column + v * VEC_BYTES);
      if (joins == ACT_SUMMED)
        x[i][v] = vec_xor(x[i][v], more);
      else
        x[i][v] = inverse ? mac(more, src_make(x[i][v]), c) : mac(x[i][v], src_make(more), c);
    }
  }
}

// Inlined for each constant zero0 and zero2, which say that c[0] and c[2] are 0.
WEFT_INLINE void act_inverse4(const act_rows *r, const bool zero0, const bool zero2,
                              const act_join_kind joins) {
  const con c3 = con_make(r->c[3]), c0 = con_make(r->c[0]), c1 = con_make(r->c[1]),
            c2 = con_make(r->c[2]);
  for (size_t column = 0; column < r->width; column += STEPS_STEP) {
    vec x[4][STEPS_VECS];
    act_load(r, 4, column, x);
    WEFT_UNROLL for (size_t v = 0; v < STEPS_VECS; v++) {
      act_inverse(&x[0][v], &x[1][v], c0, zero0);
      act_inverse(&x[2][v], &x[3][v], c1, false);
      act_inverse(&x[0][v], &x[2][v], c2, zero2);
      act_inverse(&x[1][v], &x[3][v], c2, zero2);
    }
    if (joins)
      act_join(r, 4, column, c3, joins, true, x);
    act_store(r, 4, column, x);
  }
}

WEFT_INLINE void act_forward4(const act_rows *r, const bool zero0, const bool zero2,
                              const act_join_kind joins) {
  const con c3 = con_make(r->c[3]), c0 = con_make(r->c[0]), c1 = con_make(r->c[1]),
            c2 = con_make(r->c[2]);
  for (size_t column = 0; column < r->width; column += STEPS_STEP) {
    vec x[4][STEPS_VECS];
    act_load(r, 4, column, x);
    WEFT_UNROLL for (size_t v = 0; v < STEPS_VECS; v++) {
      act_forward(&x[0][v], &x[2][v], c2, zero2);
      act_forward(&x[1][v], &x[3][v], c2, zero2);
      act_forward(&x[0][v], &x[1][v], c0, zero0);
      act_forward(&x[2][v], &x[3][v], c1, false);
    }
    if (joins)
      act_join(r, 4, column, c3, joins, false, x);
    act_store(r, 4, column, x);
  }
}

WEFT_INLINE void act_two(const act_rows *r, const bool inverse, const act_join_kind joins) {
  const con c = con_make(r->c[0]), c3 = con_make(r->c[3]);
  for (size_t column = 0; column < r->width; column += STEPS_STEP) {
    vec x[2][STEPS_VECS];
    act_load(r, 2, column, x);
    WEFT_UNROLL for (size_t v = 0; v < STEPS_VECS; v++) if (inverse)
        act_inverse(&x[0][v], &x[1][v], c, false);
    else act_forward(&x[0][v], &x[1][v], c, false);
    if (joins)
      act_join(r, 2, column, c3, joins, inverse, x);
    act_store(r, 2, column, x);
  }
}

// out = in[0] ^ c * in[1], or c * in[0].
WEFT_INLINE void act_product(const act_rows *r, const size_t inputs, const bool one) {
  const con c = con_make(r->c[0]);
  for (size_t column = 0; column < r->width; column += STEPS_STEP) {
    vec x[2][STEPS_VECS];
    act_load(r, inputs, column, x);
    WEFT_UNROLL for (size_t v = 0; v < STEPS_VECS; v++) {
      const vec from = x[inputs - 1][v];
      const vec sum = inputs == 2 ? x[0][v] : vec_zero();
      x[0][v] = one ? vec_xor(sum, from) : mac(sum, src_make(from), c);
    }
    act_store(r, 1, column, x);
  }
}

WEFT_INLINE void act_inverses(uint8_t kind, const act_rows *r, const act_join_kind joins) {
  const bool zero0 = r->c[0] == 0, zero2 = r->c[2] == 0;
  if (kind == WEFT_ACT_INVERSE)
    act_two(r, true, joins);
  else if (!zero0)
    act_inverse4(r, false, false, joins);
  else
    zero2 ? act_inverse4(r, true, true, joins) : act_inverse4(r, true, false, joins);
}

WEFT_INLINE void act_forwards(uint8_t kind, const act_rows *r, const act_join_kind joins) {
  const bool zero0 = r->c[0] == 0, zero2 = r->c[2] == 0;
  if (kind == WEFT_ACT_FORWARD)
    act_two(r, false, joins);
  else if (!zero0)
    act_forward4(r, false, false, joins);
  else
    zero2 ? act_forward4(r, true, true, joins) : act_forward4(r, true, false, joins);
}

// Returns whether an act writes only rows of Y, all aligned to vectors.
static bool act_past(const weft_act *act, const act_rows *r) {
  for (size_t i = 0; i < weft_act_outputs(act); i++)
    if (act->out[i] < WEFT_PLACE_Y || (uintptr_t)r->out[i] % VEC_BYTES)
      return false;
  return true;
}

static void act_run(const weft_act *act, const act_rows *r) {
  const bool one = act->c[0] == 1;
  switch (act->kind) {
  case WEFT_ACT_SET:
    one ? act_product(r, 1, true) : act_product(r, 1, false);
    break;
  case WEFT_ACT_ADD:
    one ? act_product(r, 2, true) : act_product(r, 2, false);
    break;
  case WEFT_ACT_INVERSE:
  case WEFT_ACT_INVERSE4:
    act->joins ? act_inverses(act->kind, r, ACT_JOINED) : act_inverses(act->kind, r, ACT_ALONE);
    break;
  default:
    if (!act->joins)
      act_forwards(act->kind, r, ACT_ALONE);
    else
      act->c[3] == 1 ? act_forwards(act->kind, r, ACT_SUMMED)
                     : act_forwards(act->kind, r, ACT_JOINED);
  }
}

// Returns where an act's operands are, and the rows of X that are read STEPS_FETCH rows later;
// after the last row the next strip begins with the first ones.
static act_rows act_places(const weft_act *act, const weft_strip *strip, uint8_t *const *place) {
  act_rows r = {.fetches = act->reads};
  for (size_t i = 0; i < 4; i++) {
    const bool more_of_x = act->joins && act->more[i] >= WEFT_PLACE_X;
    const size_t read = more_of_x ? act->more[i] : act->in[i];
    r.in[i] = place[act->in[i]];
    r.out[i] = place[act->out[i]];
    r.more[i] = place[act->more[i]];
    r.fetch[i] = place[read];
    if (!act->reads || read < WEFT_PLACE_X)
      continue;
    const size_t next = read - WEFT_PLACE_X + STEPS_FETCH;
    r.fetch[i] = next < strip->k ? place[WEFT_PLACE_X + next]
                                 : place[WEFT_PLACE_X + next % strip->k] + strip->width;
  }
  for (size_t i = 0; i < 4; i++)
    r.c[i] = act->c[i];
  return r;
}

// Multiplies a panel, meanwhile prefetching the next strip's rows from column `next` on.
static void act_panel(const weft_strip *strip, const weft_act_panel *panel, uint8_t *const *place,
                      size_t width, size_t next) {
  const uint16_t *operand = strip->acts->operands + panel->operand;
  const uint8_t *x[WEFT_ACT_ROWS];
  uint8_t *y[WEFT_ACT_ROWS];
  bool apart = true; // if all sources are slots
  for (size_t j = 0; j < panel->k; j++) {
    apart = apart && *operand < WEFT_PLACE_ZERO;
    x[j] = place[*operand++];
  }
  bool past = strip->past;
  for (size_t i = 0; i < panel->m; i++) {
    past = past && *operand >= WEFT_PLACE_Y;
    y[i] = place[*operand++];
  }
  const weft_fetch fetch = {
      .row = strip->x, .rows = strip->k, .begin = next, .bytes = strip->width};
  strip->panel(&(weft_panel){.m = panel->m,
                             .k = panel->k,
                             .end = width,
                             .row_bytes = width,
                             .a = strip->acts->a + panel->entry,
                             .a_stride = panel->k,
                             .x = x,
                             .y = y,
                             .accumulate = panel->accumulate,
                             .apart = apart,
                             .fetch = steps_fetch(strip) && next < strip->end ? &fetch : NULL,
                             .past = past});
}

#if STEPS_WIDE
#include "kernels/x86/steps_wide_affine.h"
#endif

// Returns the width of the strip at *column. What is less than a multiple of WEFT_ACT_STEP at the
// end of all columns is computed with as many of the columns before it as are missing, again.
static size_t steps_width(const weft_strip *strip, size_t *column) {
  const size_t left = strip->end - *column;
  if (left >= strip->width)
    return strip->width;
  const size_t whole = left - left % WEFT_ACT_STEP,
               width = whole == left ? left : whole + WEFT_ACT_STEP;
  if (width > strip->end - strip->begin)
    return whole;
  *column = strip->end - width;
  return width;
}

static void steps_run(const weft_strip *strip) {
  const weft_acts *acts = strip->acts;
  uint8_t *place[WEFT_PLACES];
  for (size_t s = 0; s < acts->slots; s++)
    place[s] = strip->scratch + s * WEFT_ACT_STRIDE;
  place[WEFT_PLACE_ZERO] = strip->scratch + acts->slots * WEFT_ACT_STRIDE;
  for (size_t column = strip->begin, width; column < strip->end; column += width) {
    width = steps_width(strip, &column);
    for (size_t j = 0; j < strip->k; j++) // read only
      place[WEFT_PLACE_X + j] = (uint8_t *)(uintptr_t)(strip->x[j] + column);
    for (size_t i = 0; i < strip->m; i++)
      place[WEFT_PLACE_Y + i] = strip->y[i] + column;
    for (size_t a = 0; a < acts->count; a++) {
      const weft_act *act = &acts->act[a];
      if (act->kind == WEFT_ACT_PANEL) {
        act_panel(strip, &acts->panels[act->in[0]], place, width, column + strip->width);
        continue;
      }
#if STEPS_WIDE
      if (wide_takes(strip, act)) {
        wide_run(strip, act, place, width, column);
        a += act->wide / 4u + 3;
        continue;
      }
#endif
      act_rows r = act_places(act, strip, place);
      r.width = width;
      r.past = strip->past && act_past(act, &r);
      act_run(act, &r);
    }
  }
  if (strip->past)
    vec_fence();
}

#endif
