// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_steps.h"

#include <string.h>

enum { ROWS = 256, SumsMost = 20, RowsMost = 10 };

static uint8_t times(uint8_t a, uint8_t b) {
  unsigned product = 0, x = a;
  for (; b; b >>= 1) {
    product ^= b & 1u ? x : 0;
    x = x << 1 ^ (x & 0x80u ? 0x11Du : 0);
  }
  return (uint8_t)product;
}

static void add(uint8_t *to, const uint8_t *from, uint8_t c, size_t k) {
  for (size_t j = 0; j < k; j++)
    to[j] ^= times(c, from[j]);
}

static void set(uint8_t *to, const uint8_t *from, uint8_t c, size_t k) {
  for (size_t j = 0; j < k; j++)
    to[j] = times(c, from[j]);
}

bool test_steps_matrix(const weft_step *steps, size_t count, size_t slots, size_t k, size_t m,
                       uint8_t *a) {
  static uint8_t value[ROWS][ROWS]; // of each slot, as a combination of rows of X
  bool held[ROWS] = {false}, stored[ROWS] = {false};
  size_t loaded = 0, done = 0;
  for (size_t i = 0; i < count; i++) {
    const weft_step *s = &steps[i];
    const bool loads = s->kind == WEFT_STEP_LOAD, stores = s->kind == WEFT_STEP_STORE;
    const bool both = !loads && !stores && s->kind != WEFT_STEP_SET;
    const bool zeros = s->kind == WEFT_STEP_SET && s->c == 0; // the slot may be unset
    if ((!stores && s->to >= slots) ||
        (!loads && (s->from >= slots || (!held[s->from] && !zeros))) ||
        (both && (!held[s->to] || s->to == s->from)))
      return false;
    uint8_t *to = value[s->to], *from = value[s->from];
    switch ((weft_step_kind)s->kind) {
    case WEFT_STEP_LOAD:
      if (s->from != loaded++ || loaded > k)
        return false;
      memset(to, 0, k);
      to[s->from] = 1;
      break;
    case WEFT_STEP_SET:
      set(to, from, s->c, k);
      break;
    case WEFT_STEP_ADD:
      add(to, from, s->c, k);
      break;
    case WEFT_STEP_INVERSE:
      add(from, to, 1, k);
      add(to, from, s->c, k);
      break;
    case WEFT_STEP_FORWARD:
      add(to, from, s->c, k);
      add(from, to, 1, k);
      break;
    case WEFT_STEP_STORE:
      if (s->to >= m || stored[s->to])
        return false;
      stored[s->to] = true;
      memcpy(a + s->to * k, from, k);
      done++;
      break;
    }
    if (!stores)
      held[s->to] = true;
  }
  return done == m;
}

typedef struct writer {
  test_rng *rng;
  test_steps *out;
  bool held[TEST_STEPS_SLOTS];
  size_t held_count, loaded, stored;
} writer;

static uint8_t constant(writer *w) {
  const size_t kind = test_rng_below(w->rng, 5);
  return kind < 2 ? (uint8_t)kind : (uint8_t)test_rng_next(w->rng);
}

static void put(writer *w, weft_step_kind kind, size_t to, size_t from, uint8_t c) {
  w->out->step[w->out->count++] = (weft_step){(uint8_t)kind, (uint8_t)to, (uint8_t)from, c};
  if (kind == WEFT_STEP_STORE || w->held[to])
    return;
  w->held[to] = true;
  w->held_count++;
}

// Picks `count` different slots that hold something.
static void pick(writer *w, size_t *slots, size_t count) {
  for (size_t i = 0; i < count; i++) {
    bool again;
    do {
      slots[i] = test_rng_below(w->rng, w->out->slots);
      again = !w->held[slots[i]];
      for (size_t j = 0; j < i; j++)
        again = again || slots[j] == slots[i];
    } while (again);
  }
}

// Adds results of butterflies to other slots, or rows of X to the results: immediately, as in
// transforms, or almost.
static void put_results(writer *w, const size_t *s, size_t count, bool inverse) {
  const uint8_t c = constant(w);
  const bool sets = test_rng_below(w->rng, 3) == 0, drops = test_rng_below(w->rng, 4) > 0;
  for (size_t i = 0; i < count; i++) {
    const size_t other = test_rng_below(w->rng, w->out->slots);
    const uint8_t factor = test_rng_below(w->rng, 16) ? c : constant(w);
    if (!inverse && w->loaded < w->out->k && other != s[i]) {
      put(w, WEFT_STEP_LOAD, other, w->loaded++, 1);
      put(w, WEFT_STEP_ADD, s[i], other, factor);
    } else if (sets) {
      put(w, WEFT_STEP_SET, test_rng_below(w->rng, 2) ? s[i] : other, s[i], factor);
    } else if (w->held[other] && other != s[i]) {
      put(w, WEFT_STEP_ADD, other, s[i], factor);
    }
  }
  for (size_t i = 0; i < count && inverse && drops; i++)
    put(w, WEFT_STEP_SET, s[i], s[i], 0);
}

// Two levels of butterflies on four slots, as in transforms or almost.
static void put_four(writer *w) {
  size_t s[4];
  pick(w, s, 4);
  const bool inverse = test_rng_below(w->rng, 2), alike = test_rng_below(w->rng, 4) > 0;
  const weft_step_kind kind = inverse ? WEFT_STEP_INVERSE : WEFT_STEP_FORWARD;
  const uint8_t shared = constant(w), other = alike ? shared : constant(w);
  const size_t first = inverse ? 1 : 2, second = inverse ? 2 : 1;
  put(w, kind, s[0], s[first], inverse ? constant(w) : shared);
  put(w, kind, s[second], s[3], inverse ? constant(w) : other);
  put(w, kind, s[0], s[second], inverse ? shared : constant(w));
  if (test_rng_below(w->rng, 8) == 0)
    put(w, WEFT_STEP_ADD, s[1], s[0], constant(w));
  put(w, kind, s[first], s[3], inverse ? other : constant(w));
  if (test_rng_below(w->rng, 2))
    put_results(w, s, test_rng_below(w->rng, 8) ? 4 : 3, inverse);
}

// Sums of the same slots in several others, some of which are stored at once: a product entry by
// entry; or almost, with an output that is also a source, occurs twice, or has other terms.
static void put_sums(writer *w) {
  size_t from[SumsMost];
  const size_t most = w->held_count < SumsMost ? w->held_count : SumsMost;
  const size_t terms = 2 + test_rng_below(w->rng, most - 1);
  const size_t rows = 1 + test_rng_below(w->rng, RowsMost);
  const bool adds = test_rng_below(w->rng, 2);
  pick(w, from, terms);
  for (size_t i = 0, to = 0; i < rows; i++) {
    to = test_rng_below(w->rng, 3) ? test_rng_below(w->rng, w->out->slots) : to;
    const bool set = !(adds && w->held[to]);
    for (size_t t = test_rng_below(w->rng, 16) == 0; t < terms; t++)
      if (set && (t == 0 || !w->held[to]))
        put(w, WEFT_STEP_SET, to, from[t], constant(w));
      else if (from[t] != to)
        put(w, WEFT_STEP_ADD, to, from[t], constant(w));
    if (w->held[to] && w->stored < w->out->m && test_rng_below(w->rng, 2))
      put(w, WEFT_STEP_STORE, w->stored++, to, 1);
  }
}

// How a transform differs from those of codes, if at all.
typedef enum oddity {
  ODD_ORDER,   // two of its slots are exchanged
  ODD_LEVEL,   // four of its values are scaled between two levels
  ODD_FACTOR,  // some results of one group have another factor
  ODD_SET,     // one result sets a slot, others are added to slots
  ODD_DROPPED, // one result is dropped
  ODD_NOT = 12 // most do not differ
} oddity;

typedef struct transform {
  size_t rows;
  uint8_t slot[16]; // of its values
  bool inverse, zero;
  size_t odd, which; // the odd result, or the first odd slot or value
} transform;

// All levels of butterflies of `rows` values from `first` on, neighbours first or last. Constants
// of the first block are sometimes 0, as in codes.
static void put_levels(writer *w, const transform *t, size_t first, size_t rows) {
  const size_t half = rows / 2;
  const bool zero = t->zero && first == 0 && test_rng_below(w->rng, 8);
  const uint8_t c = zero ? 0 : (uint8_t)test_rng_next(w->rng);
  if (rows == 1)
    return;
  for (size_t level = 0; level < 2; level++)
    if (t->inverse == (level == 0)) {
      put_levels(w, t, first, half);
      put_levels(w, t, first + half, half);
    } else {
      for (size_t i = 0; i < half; i++)
        put(w, t->inverse ? WEFT_STEP_INVERSE : WEFT_STEP_FORWARD, t->slot[first + i],
            t->slot[first + half + i], c);
    }
  for (size_t i = 0; i < 4 && rows == 4 && t->odd == ODD_LEVEL && first == t->which / 4 * 4; i++)
    put(w, WEFT_STEP_SET, t->slot[first + i], t->slot[first + i], 3);
}

// Sets slots from `to` on to the results of an inverse transform, or adds the results to them.
static void put_inverse_end(writer *w, const transform *t, size_t to) {
  const bool sets = test_rng_below(w->rng, 2);
  const uint8_t c = (uint8_t)(1 + test_rng_below(w->rng, 255));
  for (size_t i = 0; i < t->rows; i++) {
    const bool odd = i == t->which;
    const uint8_t factor = t->odd == ODD_FACTOR && i % 4 == t->which % 4 ? c ^ 1 : c;
    const bool set = sets || !w->held[to + i] || (odd && t->odd == ODD_SET);
    if (!odd || t->odd != ODD_DROPPED)
      put(w, set ? WEFT_STEP_SET : WEFT_STEP_ADD, to + i, t->slot[i], factor);
  }
  for (size_t i = 0; i < t->rows; i++)
    put(w, WEFT_STEP_SET, t->slot[i], t->slot[i], 0);
}

// Adds rows of X to the results of a forward transform, and stores them.
static void put_forward_end(writer *w, const transform *t, size_t spare) {
  const bool once = test_rng_below(w->rng, 2);
  const uint8_t c = (uint8_t)(1 + (once ? 0 : test_rng_below(w->rng, 255)));
  const bool adds = test_rng_below(w->rng, 2) && w->out->k - w->loaded >= t->rows,
             stores = test_rng_below(w->rng, 2) && w->out->m - w->stored >= t->rows;
  for (size_t i = 0; i < t->rows; i++) {
    const bool apart = t->odd == ODD_FACTOR && i * 4 / t->rows == t->which * 4 / t->rows;
    if (adds && (i != t->which || t->odd != ODD_DROPPED)) {
      put(w, WEFT_STEP_LOAD, spare, w->loaded++, 1);
      put(w, WEFT_STEP_ADD, t->slot[i], spare, apart ? c ^ 1 : c);
    }
    if (stores)
      put(w, WEFT_STEP_STORE, w->stored++, t->slot[i], 1);
  }
}

// A transform of 8 or 16 slots, separate from the slots that it is added to.
static void put_transform(writer *w) {
  transform t = {.rows = w->out->slots >= 33 && test_rng_below(w->rng, 2) ? 16 : 8,
                 .inverse = test_rng_below(w->rng, 2),
                 .odd = test_rng_below(w->rng, ODD_NOT)};
  const size_t spare = w->out->slots - 1, room = spare - 2 * t.rows;
  const size_t to = test_rng_below(w->rng, room + 1);
  const size_t from = to + t.rows + test_rng_below(w->rng, room + 1 - to);
  t.zero = t.inverse && test_rng_below(w->rng, 2);
  t.which = test_rng_below(w->rng, t.rows - 1);
  for (size_t i = 0; i < t.rows; i++)
    t.slot[i] = (uint8_t)((t.inverse ? from : to) + i);
  if (t.odd == ODD_ORDER) {
    t.slot[t.which]++;
    t.slot[t.which + 1]--;
  }
  for (size_t i = 0; i < t.rows; i++) {
    const size_t slot = t.slot[i];
    if (t.inverse && w->loaded < w->out->k && test_rng_below(w->rng, 6))
      put(w, WEFT_STEP_LOAD, slot, w->loaded++, 1);
    else if (t.inverse ? test_rng_below(w->rng, 2) : !w->held[slot])
      put(w, WEFT_STEP_SET, slot, slot, 0);
    if (!w->held[slot])
      put(w, WEFT_STEP_SET, slot, slot, 0);
  }
  put_levels(w, &t, 0, t.rows);
  if (!t.inverse)
    put_forward_end(w, &t, spare);
  else if (test_rng_below(w->rng, 3))
    put_inverse_end(w, &t, to);
}

static void put_any(writer *w) {
  size_t s[2];
  const size_t choice = test_rng_below(w->rng, 12);
  if (choice >= 8 && w->held_count >= 3) {
    put_sums(w);
  } else if (choice < 3 && w->held_count >= 4) {
    put_four(w);
  } else if (choice == 3) { // zeros
    s[0] = test_rng_below(w->rng, w->out->slots);
    put(w, WEFT_STEP_SET, s[0], s[0], 0);
  } else if (choice < 5 || choice >= 8 || w->held_count < 2) {
    pick(w, s, 1);
    put(w, WEFT_STEP_SET, test_rng_below(w->rng, w->out->slots), s[0], constant(w));
  } else {
    static const weft_step_kind kinds[] = {WEFT_STEP_ADD, WEFT_STEP_INVERSE, WEFT_STEP_FORWARD};
    pick(w, s, 2);
    put(w, kinds[choice - 5], s[0], s[1], constant(w));
    if (choice > 5 && test_rng_below(w->rng, 2))
      put_results(w, s, 2, choice == 6);
  }
}

static void fill(test_rng *rng, size_t k, size_t m, size_t slots, size_t work, bool transforms,
                 test_steps *out) {
  enum { WorkMost = (SumsMost + 1) * RowsMost };
  writer w = {.rng = rng, .out = out};
  out->k = k;
  out->m = m;
  out->slots = slots;
  out->count = 0;
  while (w.loaded < k || w.stored < m) {
    const bool room = out->count + WorkMost + (k - w.loaded) + (m - w.stored) <= TEST_STEPS_MAX;
    if (room && transforms && test_rng_below(rng, 2))
      put_transform(&w);
    else if (w.loaded < k && (!w.held_count || !room || test_rng_below(rng, work + k) < k))
      put(&w, WEFT_STEP_LOAD, test_rng_below(rng, slots), w.loaded++, 1);
    else if (w.stored < m && (!room || test_rng_below(rng, work + m) < m)) {
      size_t slot;
      pick(&w, &slot, 1);
      put(&w, WEFT_STEP_STORE, w.stored++, slot, 1);
    } else
      put_any(&w);
  }
  test_steps_matrix(out->step, out->count, slots, k, m, out->a);
}

void test_steps_random(test_rng *rng, size_t k, size_t m, size_t slots, size_t work,
                       test_steps *out) {
  fill(rng, k, m, slots, work, false, out);
}

void test_steps_transforms(test_rng *rng, size_t k, size_t m, size_t slots, test_steps *out) {
  enum { Work = 8 };
  fill(rng, k, m, slots, Work, true, out);
}

void test_steps_bits(const uint8_t *a, size_t m, size_t k, uint8_t *bits) {
  enum { W = 8 };
  for (size_t i = 0; i < m * k; i++)
    for (unsigned x = 0; x < W; x++) {
      const uint8_t column = times(a[i], (uint8_t)(1u << x));
      for (size_t l = 0; l < W; l++)
        bits[(W * (i / k) + l) * W * k + W * (i % k) + x] = (uint8_t)(column >> l & 1u);
    }
}
