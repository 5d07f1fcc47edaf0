// SPDX-License-Identifier: Apache-2.0
// Rows `mul-*`: the ladder of ways to multiply two bytes, from a loop over the bits to tables of
// growing size, each a row of its own that works byte by byte. They exist for comparison
// (GPU-RSCode's slides; `weft bench mul`); the compiler is kept from turning them into vector loops
// (see BUILD).
//
// The slides' samples have mistakes that are not repeated here: the loop must test the top bit
// before the shift, the two half tables are separate tables, and Q in the refinements is 255, the
// order of the generator, so that exp[255] = exp[0] = 1 and 1021 entries include the zeros.
#include <string.h>

#include "kernels/gf256.h"
#include "kernels/host_kernels.h"
#include "kernels/xor_words.h"

// Russian peasant: add the doubled a for each set bit of b.
static inline uint8_t peasant(uint8_t a, uint8_t b) {
  unsigned x = a, product = 0;
  for (unsigned rest = b; rest != 0; rest >>= 1) {
    if (rest & 1u)
      product ^= x;
    const unsigned carry = x & 0x80u;
    x <<= 1;
    if (carry)
      x ^= WEFT_GF256_POLY;
  }
  return (uint8_t)product;
}

// All 65,536 products.
static inline uint8_t full_table(uint8_t a, uint8_t b) { return weft_gf256_product[a][b]; }

// Two tables of 256 x 16: a by the lower and by the upper half of b.
static inline uint8_t half_tables(uint8_t a, uint8_t b) {
  return weft_gf256_nibble[a][b & 15u] ^ weft_gf256_nibble[a][16u + (b >> 4)];
}

static inline unsigned sum_of_logs(uint8_t a, uint8_t b) {
  return (unsigned)weft_gf256_log[a] + weft_gf256_log[b];
}

// exp of the sum modulo 255, 255 entries; tests for zero.
static inline uint8_t exp_modulo(uint8_t a, uint8_t b) {
  return a && b ? weft_gf256_exp[sum_of_logs(a, b) % 255u] : 0;
}

// The modulo by AND and shift: 256 entries, since a result of 255 may stay.
static inline uint8_t exp_fold(uint8_t a, uint8_t b) {
  const unsigned sum = sum_of_logs(a, b);
  return a && b ? weft_gf256_exp[(sum & 255u) + (sum >> 8)] : 0;
}

// No modulo: exp written twice, 510 entries.
static inline uint8_t exp_doubled(uint8_t a, uint8_t b) {
  return a && b ? weft_gf256_exp[sum_of_logs(a, b)] : 0;
}

// No test for zero either: log 0 is 510, and any sum with it finds a zero among 1021 entries.
static inline uint8_t exp_branch_free(uint8_t a, uint8_t b) {
  return weft_gf256_exp_zero[weft_gf256_log_zero[a] + weft_gf256_log_zero[b]];
}

// y(m, len) = or ^= A * X and y[i] = a[i] * b[i], both by `multiply`.
#define LADDER_ROW(name, multiply)                                                                 \
  static void name##_panel(const weft_panel *p) {                                                  \
    for (size_t i = 0; i < p->m; i++) {                                                            \
      uint8_t *const y = p->y[i];                                                                  \
      if (!p->accumulate)                                                                          \
        memset(y + p->begin, 0, p->end - p->begin);                                                \
      for (size_t j = 0; j < p->k; j++) {                                                          \
        const uint8_t a = p->a[i * p->a_stride + j];                                               \
        const uint8_t *const x = p->x[j];                                                          \
        for (size_t c = p->begin; c < p->end; c++)                                                 \
          y[c] ^= multiply(a, x[c]);                                                               \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void name##_pairs(uint8_t *y, const uint8_t *a, const uint8_t *b, size_t len) {           \
    for (size_t i = 0; i < len; i++)                                                               \
      y[i] = multiply(a[i], b[i]);                                                                 \
  }                                                                                                \
  const weft_host_kernel weft_host_mul_##name = {                                                  \
      .panel = name##_panel, .xor_rows = weft_xor_words, .pairs = name##_pairs};

LADDER_ROW(peasant, peasant)
LADDER_ROW(full_table, full_table)
LADDER_ROW(half_tables, half_tables)
LADDER_ROW(exp_modulo, exp_modulo)
LADDER_ROW(exp_fold, exp_fold)
LADDER_ROW(exp_doubled, exp_doubled)
LADDER_ROW(exp_branch_free, exp_branch_free)
