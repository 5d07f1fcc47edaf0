// SPDX-License-Identifier: Apache-2.0
// Parity by additive Fourier transforms (after Gao and Mateer, and Lin, Chung and Han's basis).
//
// Shard s lies at the point s, so that points 2^s * c to 2^s * (c + 1) - 1, a block, are a coset of
// the subspace V(s) = {0..2^s - 1}. Its vanishing polynomial S(s) has a constant derivative g(s),
// and is constant on every other coset. So the part of parity that a block Y of data makes in
// another block X of parity, the sum of d(y) / (x + y), is g(s) / S(s)(X + Y), a constant, times
// the values in X of the polynomial that takes the values d in Y. An inverse transform finds that
// polynomial in the basis of products of S, and a transform finds values of what all blocks of data
// have added together; both are butterflies whose factors are W(s) = S(s) / S(s)(2^s).
//
// Blocks meet at the largest size at which that pays, as in a multipole method: the block in
// which data ends and parity begins is halved until its halves can meet. Larger blocks are made of
// the polynomials of their halves, so that all sizes share one inverse transform.
#include "lib/storage/transform.h"

#include <string.h>

enum { LEVELS = 9, NONE = -1, MEETINGS = 2048, STEPS = 8192 };

// Block Y of data, of 2^level points, adds to block X of parity.
typedef struct meeting {
  uint8_t level, x, y;
} meeting;

// How blocks meet: none larger than 2^level_most, and none of parity less than `least` eighths
// full that could be halved instead.
typedef struct layout {
  size_t level_most, least;
} layout;

typedef struct builder {
  const weft_generator *g;
  layout layout;
  size_t slots_most;
  uint8_t vanishing[LEVELS][256]; // S(level) at every point
  uint8_t twiddle[LEVELS][256];   // W(level)
  uint8_t derivative[LEVELS];     // g(level)
  meeting meetings[MEETINGS];
  size_t meeting_count;
  size_t top;                    // the largest level of a meeting
  bool meets[LEVELS][256];       // a block of data, by its first point
  uint8_t column[256], row[256]; // scales of blocks: what entries have in common
  int16_t data[256];             // slots of polynomials of data, by point
  int16_t parity[LEVELS][256];   // and of parity, by level and point
  bool taken[256];               // slots
  size_t slots;
  bool failed;
  size_t count;
  weft_step steps[STEPS];
} builder;

static uint8_t times(const builder *b, uint8_t x, uint8_t y) {
  return weft_gfw_mul(&b->g->field, x, y);
}

static uint8_t over(const builder *b, uint8_t x, uint8_t y) {
  return weft_gfw_div(&b->g->field, x, y);
}

static void fill_polynomials(builder *b) {
  for (size_t x = 0; x < 256; x++)
    b->vanishing[0][x] = (uint8_t)x;
  b->derivative[0] = 1;
  for (size_t s = 0; s < LEVELS - 1; s++) {
    const uint8_t next = b->vanishing[s][(size_t)1 << s]; // at the first point beyond V(s)
    for (size_t x = 0; x < 256; x++) {
      const uint8_t value = b->vanishing[s][x];
      b->vanishing[s + 1][x] = times(b, value, value ^ next);
      b->twiddle[s][x] = over(b, value, next);
    }
    b->derivative[s + 1] = times(b, b->derivative[s], next);
  }
}

// ---------------------------------------------------------------------------------------------
// Which blocks meet

static size_t overlap(size_t begin, size_t end, size_t from, size_t size) {
  const size_t low = from > begin ? from : begin, high = from + size < end ? from + size : end;
  return high > low ? high - low : 0;
}

static size_t data_in(const builder *b, size_t block, size_t level) {
  return overlap(0, b->g->k, block, (size_t)1 << level);
}

static size_t parity_in(const builder *b, size_t block, size_t level) {
  return overlap(b->g->k, b->g->k + b->g->m, block, (size_t)1 << level);
}

static void meet(builder *b, size_t level, size_t x, size_t y) {
  if (b->meeting_count == MEETINGS) {
    b->failed = true;
    return;
  }
  b->meetings[b->meeting_count++] = (meeting){(uint8_t)level, (uint8_t)x, (uint8_t)y};
  b->meets[level][y] = true;
  b->top = level > b->top ? level : b->top;
}

// Block x of parity takes what data from `from` on, up to its own, makes in it: as a whole, or in
// halves; and then its halves what data in it makes in them.
static void divide(builder *b, size_t level, size_t x, size_t from) {
  const size_t size = (size_t)1 << level, k = b->g->k, full = parity_in(b, x, level);
  if (!full || b->failed)
    return;
  const bool sparse = 8 * full <= b->layout.least * size;
  if (level == 0 || (level <= b->layout.level_most && !sparse)) {
    for (; from < x && from < k; from += size)
      meet(b, level, x, from);
    if (x >= k)
      return;
    from = x;
  }
  divide(b, level - 1, x, from);
  divide(b, level - 1, x + size / 2, from);
}

// Whether polynomials of the block of this level that `point` is in are wanted, of this level or
// larger.
static bool wanted(const builder *b, size_t level, size_t point) {
  for (size_t s = level; s <= b->top; s++)
    if (b->meets[s][point >> s << s])
      return true;
  return false;
}

static uint8_t most_common(const uint8_t *values, size_t count) {
  uint8_t seen[256] = {0}, best = values[0];
  for (size_t i = 0; i < count; i++)
    if (++seen[values[i]] > seen[best])
      best = values[i];
  return best;
}

// What scales of a block have in common goes into the constants of its meetings; the rest is
// multiplied shard by shard.
static void share_scales(builder *b) {
  const size_t k = b->g->k, n = k + b->g->m;
  const size_t size = (size_t)1 << b->top;
  for (size_t y = 0; y < k; y += size)
    memset(b->column + y, most_common(b->g->scale + y, data_in(b, y, b->top)), size);
  for (size_t level = b->top + 1; level-- > 0;)
    for (size_t i = 0; i < b->meeting_count; i++) {
      const meeting *one = &b->meetings[i];
      const size_t first = one->x < k ? k : one->x, end = first + parity_in(b, one->x, level);
      if (one->level == level && !b->row[first] && end <= n)
        memset(b->row + first, most_common(b->g->scale + first, end - first), end - first);
    }
}

// ---------------------------------------------------------------------------------------------
// Steps

static void step(builder *b, weft_step_kind kind, int to, int from, uint8_t c) {
  if (b->failed || b->count == STEPS || to < 0 || from < 0) {
    b->failed = true;
    return;
  }
  b->steps[b->count++] = (weft_step){(uint8_t)kind, (uint8_t)to, (uint8_t)from, c};
}

static int16_t take(builder *b) {
  size_t slot = 0;
  while (slot < b->slots_most && b->taken[slot])
    slot++;
  if (slot == b->slots_most) {
    b->failed = true;
    return 0;
  }
  b->taken[slot] = true;
  b->slots = slot + 1 > b->slots ? slot + 1 : b->slots;
  return (int16_t)slot;
}

static void give(builder *b, int16_t *slot) {
  if (*slot != NONE)
    b->taken[*slot] = false;
  *slot = NONE;
}

static int16_t copy(builder *b, int16_t from, uint8_t c) {
  const int16_t to = take(b);
  step(b, WEFT_STEP_SET, to, from, c);
  return to;
}

static void scale(builder *b, int16_t slot, uint8_t c) {
  if (c != 1)
    step(b, WEFT_STEP_SET, slot, slot, c);
}

// One coefficient of a block of data, c times of which go to `to`. moves: nobody else wants it.
static void add_coefficient(builder *b, int16_t *to, int16_t *from, uint8_t c, bool moves) {
  if (*to != NONE)
    step(b, WEFT_STEP_ADD, *to, *from, c);
  else if (moves) {
    *to = *from;
    *from = NONE;
    scale(b, *to, c);
  } else
    *to = copy(b, *from, c);
}

// Brings the polynomial of a block of data to those of the blocks that it meets.
static void add_to_parity(builder *b, size_t level, size_t y) {
  const bool stays = wanted(b, level + 1, y);
  uint8_t x[256], constant[256];
  size_t met = 0;
  for (size_t i = 0; i < b->meeting_count && b->meets[level][y]; i++) {
    const meeting *one = &b->meetings[i];
    if (one->level != level || one->y != y)
      continue;
    const uint8_t shared = over(b, b->column[y], b->row[one->x < b->g->k ? b->g->k : one->x]);
    x[met] = one->x;
    constant[met++] =
        times(b, shared, over(b, b->derivative[level], b->vanishing[level][one->x ^ y]));
  }
  for (size_t q = 0; q < (size_t)1 << level; q++) {
    int16_t *from = &b->data[y + q];
    for (size_t i = 0; i < met && *from != NONE; i++)
      add_coefficient(b, &b->parity[level][x[i] + q], from, constant[i], i + 1 == met && !stays);
    if (!stays)
      give(b, from);
  }
}

// The polynomial of a pair of coefficients of both halves; the upper half may be zero.
static void join(builder *b, int16_t *low, int16_t *high, uint8_t w) {
  if (*high != NONE)
    step(b, WEFT_STEP_INVERSE, *low, *high, w);
  else if (*low != NONE && w == 1) {
    *high = *low;
    *low = NONE;
  } else if (*low != NONE) {
    *high = copy(b, *low, 1);
    scale(b, *low, w ^ 1);
  }
}

static void rise(builder *b, size_t level, size_t y) {
  const size_t half = ((size_t)1 << level) / 2;
  if (b->failed || !data_in(b, y, level))
    return;
  if (level == 0) {
    b->data[y] = take(b);
    step(b, WEFT_STEP_LOAD, b->data[y], (int)y, 1);
    scale(b, b->data[y], over(b, b->g->scale[y], b->column[y]));
  } else {
    rise(b, level - 1, y);
    rise(b, level - 1, y + half);
    if (!wanted(b, level, y))
      return;
    for (size_t q = 0; q < half; q++)
      join(b, &b->data[y + q], &b->data[y + half + q], b->twiddle[level - 1][y]);
  }
  add_to_parity(b, level, y);
}

// What a larger block gives to one of its halves.
static void hand_down(builder *b, size_t level, size_t x, int16_t slot) {
  int16_t *own = &b->parity[level][x];
  if (*own != NONE) {
    step(b, WEFT_STEP_ADD, slot, *own, 1);
    give(b, own);
  }
  *own = slot;
}

// One pair of coefficients of block x of `level` becomes one of each half that has parity.
static void part(builder *b, size_t level, size_t x, size_t q) {
  const size_t half = ((size_t)1 << level) / 2;
  const bool low = parity_in(b, x, level - 1), high = parity_in(b, x + half, level - 1);
  const uint8_t w = b->twiddle[level - 1][x];
  int16_t p = b->parity[level][x + q], r = b->parity[level][x + half + q];
  if (p == NONE) {
    b->failed = b->failed || r != NONE;
    return;
  }
  if (r == NONE && low && high)
    r = copy(b, p, 1);
  else if (r != NONE && low && high)
    step(b, WEFT_STEP_FORWARD, p, r, w);
  else if (r != NONE) {
    step(b, WEFT_STEP_ADD, p, r, low ? w : w ^ 1);
    give(b, &r);
  }
  if (low)
    hand_down(b, level - 1, x + q, p);
  if (high)
    hand_down(b, level - 1, x + half + q, low ? r : p);
}

static void descend(builder *b, size_t level, size_t x) {
  const size_t k = b->g->k, half = ((size_t)1 << level) / 2;
  if (b->failed || !parity_in(b, x, level))
    return;
  if (level == 0) {
    scale(b, b->parity[0][x], over(b, b->row[x], b->g->scale[x]));
    step(b, WEFT_STEP_STORE, (int)(x - k), b->parity[0][x], 1);
    give(b, &b->parity[0][x]);
    return;
  }
  for (size_t q = 0; q < half; q++)
    part(b, level, x, q);
  descend(b, level - 1, x);
  descend(b, level - 1, x + half);
}

// ---------------------------------------------------------------------------------------------

weft_transform_work weft_transform_count(const weft_factors *factors) {
  weft_transform_work work = {0, 0};
  for (size_t i = 0; i < factors->count; i++) {
    const weft_step *one = &factors->steps[i];
    const bool moves = one->kind == WEFT_STEP_LOAD || one->kind == WEFT_STEP_STORE;
    const bool butterfly = one->kind == WEFT_STEP_INVERSE || one->kind == WEFT_STEP_FORWARD;
    work.products += !moves && one->c > 1;
    work.sums += butterfly;
    work.sums += (butterfly || one->kind == WEFT_STEP_ADD) && one->c > 0;
  }
  return work;
}

// The steps of one layout; false if it does not do.
static bool build(builder *b, size_t levels) {
  b->failed = false;
  b->meeting_count = b->top = b->slots = b->count = 0;
  memset(b->meets, 0, sizeof b->meets);
  memset(b->column, 0, sizeof b->column);
  memset(b->row, 0, sizeof b->row);
  memset(b->taken, 0, sizeof b->taken);
  for (size_t x = 0; x < 256; x++)
    b->data[x] = NONE;
  for (size_t s = 0; s < LEVELS; s++)
    memcpy(b->parity[s], b->data, sizeof b->data);
  divide(b, levels, 0, 0);
  if (b->failed)
    return false;
  share_scales(b);
  for (size_t y = 0; y < b->g->k; y += (size_t)1 << b->top)
    rise(b, b->top, y);
  descend(b, levels, 0);
  return !b->failed;
}

static size_t work_of(const builder *b) {
  const weft_factors factors = {.count = b->count, .steps = b->steps};
  const weft_transform_work work = weft_transform_count(&factors);
  return 2 * work.products + work.sums;
}

static weft_status best(builder *b, weft_factors **out) {
  const weft_generator *g = b->g;
  size_t levels = 0, rows = 0, least = SIZE_MAX;
  layout found = {0, 0};
  while ((size_t)1 << levels < g->k + g->m)
    levels++;
  while ((size_t)1 << rows < g->m)
    rows++;
  // Blocks of about as many points as there is parity.
  for (size_t level = rows > 2 ? rows - 2 : 1; level < levels && level <= rows + 1; level++)
    for (size_t eighths = 2; eighths <= 6; eighths += 2) {
      b->layout = (layout){level, eighths};
      if (build(b, levels) && work_of(b) < least) {
        least = work_of(b);
        found = b->layout;
      }
    }
  b->layout = found;
  if (least == SIZE_MAX || !build(b, levels))
    return WEFT_E_UNSUPPORTED;
  return weft_factors_new(b->steps, b->count, b->slots, g->allocator, out);
}

weft_status weft_transform_new(const weft_generator *g, size_t slots_most, weft_factors **out) {
  *out = NULL;
  if (!g->by_points || g->field.w != 8 || g->infinite != WEFT_SHARDS_MAX || !g->m ||
      slots_most > 256)
    return WEFT_E_UNSUPPORTED;
  for (size_t s = 0; s < g->k + g->m; s++)
    if (g->point[s] != s)
      return WEFT_E_UNSUPPORTED;
  builder *b = g->allocator->alloc(g->allocator->user, sizeof *b, _Alignof(builder));
  if (!b)
    return WEFT_E_NOMEM;
  b->g = g;
  b->slots_most = slots_most;
  fill_polynomials(b);
  const weft_status status = best(b, out);
  g->allocator->free(g->allocator->user, b);
  return status;
}
