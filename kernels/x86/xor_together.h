// SPDX-License-Identifier: Apache-2.0
// Chooses which inputs kernels/x86/xor_compiler.c takes together, so that sums of inputs that
// several sums of a pass want are computed once. mask (inputs): a bit for each sum of the pass that
// an input is part of.
#ifndef WEFT_KERNELS_X86_XOR_TOGETHER_H
#define WEFT_KERNELS_X86_XOR_TOGETHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  AT_ONCE = 8, // inputs from which those that go well together are chosen
  TOGETHER = 3 // inputs in registers with AVX2
};
#define NONE SIZE_MAX

static inline unsigned count(unsigned bits) { return (unsigned)__builtin_popcount(bits); }

// --- AVX2: up to three inputs, whose sums of two and three are made in place, one by one ---

// For each combination of up to three inputs a, b and c: the sums that want it.
typedef struct combinations {
  unsigned only[TOGETHER]; // a, b or c alone
  unsigned ab, ac, bc, abc;
} combinations;

static inline combinations combine(const uint32_t *mask, const size_t *x, size_t n) {
  const unsigned a = mask[x[0]], b = n > 1 ? mask[x[1]] : 0, d = n > 2 ? mask[x[2]] : 0;
  return (combinations){.only = {a & ~(b | d), b & ~(a | d), d & ~(a | b)},
                        .ab = a & b & ~d,
                        .ac = a & d & ~b,
                        .bc = b & d & ~a,
                        .abc = a & b & d};
}

static inline unsigned additions(const uint32_t *mask, const size_t *x, size_t n) {
  const combinations w = combine(mask, x, n);
  const bool pair = w.ab || w.abc, with_third = w.ac || w.abc;
  return count(w.only[0] | w.only[1] | w.only[2] | w.ab | w.ac | w.bc | w.abc) + pair + with_third +
         (w.ac && pair) + (w.bc != 0);
}

static inline void swap(size_t *x, size_t i, size_t j) {
  const size_t held = x[i];
  x[i] = x[j];
  x[j] = held;
}

// Chooses x[0] and up to two of the others such that most additions are saved per input, and moves
// them to the front of x. Returns how many.
static inline size_t choose(const uint32_t *mask, size_t *x, size_t n) {
  size_t best_n = 1, best_i = 0, best_j = 0;
  unsigned best = 0; // saved per input, in sixths of an addition
  for (size_t i = 1; i < n; i++) {
    const unsigned own = count(mask[x[0]]) + count(mask[x[i]]);
    const unsigned two = (own - additions(mask, (size_t[]){x[0], x[i]}, 2)) * 3;
    if (two > best) {
      best = two;
      best_n = 2;
      best_i = i;
    }
    for (size_t j = i + 1; j < n; j++) {
      const unsigned of_three = additions(mask, (size_t[]){x[0], x[i], x[j]}, 3);
      const unsigned all = own + count(mask[x[j]]);
      if (all > of_three && (all - of_three) * 2 > best) {
        best = (all - of_three) * 2;
        best_n = 3;
        best_i = i;
        best_j = j;
      }
    }
  }
  if (best_n > 1)
    swap(x, 1, best_i);
  if (best_n > 2)
    swap(x, 2, best_j); // best_j > best_i, so it has not moved
  return best_n;
}

// --- AVX-512: two pairs of inputs and their sums, of which one instruction adds two ---

typedef struct quad {
  size_t x[4];      // inputs, or NONE; 0 and 1 are a pair, 2 and 3 the other
  unsigned mask[4]; // sums that want them
} quad;

static inline unsigned pair_with_others(const quad *q, unsigned pair) {
  const unsigned other = 2 - pair;
  return q->mask[pair] & q->mask[pair + 1] & (q->mask[other] | q->mask[other + 1]);
}

static inline unsigned quad_additions(const quad *q) {
  return count(q->mask[0] | q->mask[1] | q->mask[2] | q->mask[3]) + (pair_with_others(q, 0) != 0) +
         (pair_with_others(q, 2) != 0);
}

// Chooses the best of the three ways to pair four inputs. Returns its number of additions.
static inline unsigned pair_up(const uint32_t *mask, const size_t *x, quad *out) {
  static const uint8_t ways[3][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 3, 1, 2}};
  unsigned best = UINT32_MAX;
  for (size_t way = 0; way < 3; way++) {
    quad q;
    for (size_t i = 0; i < 4; i++) {
      q.x[i] = x[ways[way][i]];
      q.mask[i] = q.x[i] == NONE ? 0 : mask[q.x[i]];
    }
    const unsigned additions = quad_additions(&q);
    if (additions < best) {
      best = additions;
      *out = q;
    }
  }
  return best;
}

// Finds the best way to divide eight inputs into two quads of pairs.
static inline void part(const uint32_t *mask, const size_t *x, quad out[2]) {
  unsigned best = UINT32_MAX;
  for (unsigned set = 1; set < 1u << AT_ONCE; set += 2) { // the quad that x[0] is in
    if (count(set) != 4)
      continue;
    size_t of[2][4], n[2] = {0};
    for (size_t i = 0; i < AT_ONCE; i++) {
      const size_t other = !(set >> i & 1u);
      of[other][n[other]++] = x[i];
    }
    quad q[2];
    const unsigned additions = pair_up(mask, of[0], &q[0]) + pair_up(mask, of[1], &q[1]);
    if (additions >= best)
      continue;
    best = additions;
    memcpy(out, q, sizeof q);
  }
}

#endif
