// SPDX-License-Identifier: Apache-2.0
// Sets up each code's points and scales, and the parity matrix they define.
#include "lib/storage/generator.h"

#include <string.h>

// Submatrices tried before a code without a proof of MDS is rejected; takes a few hundredths of a
// second.
#define MDS_BUDGET ((size_t)1 << 18)
#define LINE ((size_t)64) // bytes of a cache line

static uint8_t difference(const weft_generator *g, size_t a, size_t b) {
  return a == g->infinite || b == g->infinite ? 1 : g->point[a] ^ g->point[b];
}

// Assigns points first, first + 1, ... to `count` shards from `shard` on.
static void count_points(weft_generator *g, size_t shard, size_t count, size_t first) {
  for (size_t i = 0; i < count; i++)
    g->point[shard + i] = (uint8_t)(first + i);
}

// Sets the scales of Lagrange interpolation from the points of the data shards.
static void set_vandermonde(weft_generator *g) {
  count_points(g, 0, g->k + g->m, 0);
  for (size_t s = 0; s < g->k + g->m; s++) {
    uint8_t product = 1;
    for (size_t j = 0; j < g->k; j++)
      if (j != s)
        product = weft_gfw_mul(&g->field, product, difference(g, s, j));
    g->scale[s] = weft_gfw_div(&g->field, 1, product);
  }
}

// Scales the columns so that the first parity row is all ones.
static void level_first_row(weft_generator *g) {
  for (size_t j = 0; j < g->k; j++)
    g->scale[j] = difference(g, g->k, j);
}

static void set_reed_sol_van(weft_generator *g) {
  count_points(g, 0, g->k + g->m, 0);
  if (!g->m)
    return;
  g->infinite = g->k + g->m - 1;
  level_first_row(g);
  for (size_t i = 0; i < g->m; i++) // scale the rows so that the first column is all ones
    g->scale[g->k + i] = weft_gfw_div(&g->field, g->scale[0], difference(g, g->k + i, 0));
}

// P is the plain sum, so its point is infinite; Q has point 0, and 1 / (0 + 2^-j) = 2^j.
static void set_p_q(weft_generator *g, const uint8_t *second_row) {
  g->infinite = g->k;
  g->point[g->k + 1] = 0;
  for (size_t j = 0; j < g->k; j++)
    g->point[j] = weft_gfw_div(&g->field, 1, second_row[j]);
}

static void set_raid6(weft_generator *g) {
  uint8_t power[WEFT_SHARDS_MAX];
  for (size_t j = 0; j < g->k; j++)
    power[j] = g->field.exp[j % g->field.order];
  set_p_q(g, power);
}

static void set_cauchy_orig(weft_generator *g) {
  count_points(g, g->k, g->m, 0);
  count_points(g, 0, g->k, g->m);
}

// For m = 2, Jerasure's table lists the elements by the number of ones in their bit matrices,
// smaller elements first in a tie.
static void set_cauchy_good_pair(weft_generator *g) {
  uint8_t best[WEFT_SHARDS_MAX];
  size_t found = 0;
  for (unsigned ones = 1; found < g->k; ones++)
    for (unsigned element = 1; element <= g->field.order && found < g->k; element++)
      if (weft_gfw_ones(&g->field, (uint8_t)element) == ones)
        best[found++] = (uint8_t)element;
  set_p_q(g, best);
}

// Counts the ones of a row divided by `divisor`; ones[e] is the count for element e.
static unsigned row_ones(const weft_generator *g, const uint8_t *ones, const uint8_t *row,
                         uint8_t divisor) {
  unsigned sum = 0;
  for (size_t j = 0; j < g->k; j++)
    sum += ones[weft_gfw_div(&g->field, row[j], divisor)];
  return sum;
}

static void set_cauchy_good(weft_generator *g) {
  if (g->m == 2) {
    set_cauchy_good_pair(g);
    return;
  }
  set_cauchy_orig(g);
  if (g->m)
    level_first_row(g);
  uint8_t ones[WEFT_SHARDS_MAX] = {0};
  for (unsigned element = 1; element <= g->field.order; element++)
    ones[element] = (uint8_t)weft_gfw_ones(&g->field, (uint8_t)element);
  for (size_t i = 1; i < g->m; i++) { // use the divisor with the fewest ones; 1 in a tie
    uint8_t row[WEFT_SHARDS_MAX];
    for (size_t j = 0; j < g->k; j++)
      row[j] = weft_gfw_div(&g->field, g->scale[j], difference(g, g->k + i, j));
    unsigned fewest = row_ones(g, ones, row, 1);
    for (size_t j = 0; j < g->k; j++) {
      const unsigned sum = row_ones(g, ones, row, row[j]);
      if (sum < fewest) {
        fewest = sum;
        g->scale[g->k + i] = row[j];
      }
    }
  }
}

// Sets points and scales; returns false for codes that have none.
static bool set_points(weft_generator *g, weft_generator_kind kind) {
  g->infinite = WEFT_SHARDS_MAX;
  memset(g->scale, 1, sizeof g->scale);
  switch (kind) {
  case WEFT_GENERATOR_VANDERMONDE:
    set_vandermonde(g);
    return true;
  case WEFT_GENERATOR_CAUCHY:
    count_points(g, 0, g->k + g->m, 0);
    return true;
  case WEFT_GENERATOR_REED_SOL_VAN:
    set_reed_sol_van(g);
    return true;
  case WEFT_GENERATOR_RAID6:
    set_raid6(g);
    return true;
  case WEFT_GENERATOR_CAUCHY_ORIG:
    set_cauchy_orig(g);
    return true;
  case WEFT_GENERATOR_CAUCHY_GOOD:
    set_cauchy_good(g);
    return true;
  case WEFT_GENERATOR_ISAL_RS:
  case WEFT_GENERATOR_PAR1:
    break;
  }
  return false;
}

static void matrix_from_points(weft_generator *g) {
  for (size_t i = 0; i < g->m; i++)
    for (size_t j = 0; j < g->k; j++)
      g->parity[i * g->k + j] =
          weft_gfw_div(&g->field, g->scale[j],
                       weft_gfw_mul(&g->field, g->scale[g->k + i], difference(g, g->k + i, j)));
}

// Fills in the logarithms from which recovery matrices are computed by sums.
static void fill_logarithms(weft_generator *g) {
  const size_t n = g->k + g->m, lanes = weft_generator_lanes(g);
  for (size_t a = 0; a <= n; a++) {
    uint16_t row[WEFT_SHARDS_MAX] = {0};
    for (size_t b = 0; b < n; b++)
      row[b] = a < n ? (uint16_t)(g->field.order - g->field.log[difference(g, a, b)])
                     : g->field.log[g->scale[b]];
    memcpy(g->logarithms + a * lanes, row, lanes * sizeof *row);
  }
}

static void matrix_from_powers(weft_generator *g, weft_generator_kind kind) {
  const weft_gfw *field = &g->field;
  for (size_t i = 0; i < g->m; i++)
    for (size_t j = 0; j < g->k; j++) {
      const size_t power = kind == WEFT_GENERATOR_ISAL_RS ? i * j : field->log[j + 1] * i;
      g->parity[i * g->k + j] = field->exp[power % field->order];
    }
}

// Checks ISAL_RS and PAR1 for MDS. Both are made of powers of distinct nonzero nodes. Three rows
// (or, with nodes 2^i, three columns) with exponents 0, 1, 2 are always regular, since squaring is
// one-to-one; other sizes are checked by trial.
static weft_status check_powers(const weft_generator *g, weft_generator_kind kind) {
  if (g->m <= 3 || (kind == WEFT_GENERATOR_ISAL_RS && g->k <= 3 && g->m <= g->field.order))
    return WEFT_OK;
  return weft_matrix_check_mds(&g->field, g->parity, g->m, g->k, MDS_BUDGET);
}

weft_status weft_generator_init(weft_generator *g, weft_generator_kind kind, size_t k, size_t m,
                                unsigned w, const weft_allocator *allocator) {
  memset(g, 0, sizeof *g);
  if (!weft_gfw_init(&g->field, w) || k == 0 || k > g->field.order + 1u ||
      m > g->field.order + 1u - k)
    return WEFT_E_ARGUMENT;
  if (kind == WEFT_GENERATOR_RAID6 && m != 2)
    return WEFT_E_ARGUMENT;
  g->k = k;
  g->m = m;
  g->allocator = allocator;
  g->by_points = set_points(g, kind);
  if (!m)
    return WEFT_OK;
  const size_t matrix = (m * k + LINE - 1) / LINE * LINE;
  const size_t logarithms =
      g->by_points ? (k + m + 1) * weft_generator_lanes(g) * sizeof(uint16_t) : 0;
  g->parity = allocator->alloc(allocator->user, matrix + logarithms, LINE);
  if (!g->parity)
    return WEFT_E_NOMEM;
  if (g->by_points) {
    g->logarithms = (uint16_t *)(void *)(g->parity + matrix);
    fill_logarithms(g);
    matrix_from_points(g);
    return WEFT_OK;
  }
  matrix_from_powers(g, kind);
  const weft_status status = check_powers(g, kind);
  if (status != WEFT_OK)
    weft_generator_clear(g);
  return status;
}

weft_status weft_generator_init_own(weft_generator *g, const uint8_t *parity, size_t k, size_t m,
                                    const weft_allocator *allocator) {
  memset(g, 0, sizeof *g);
  if (!weft_gfw_init(&g->field, 8) || k == 0 || k > WEFT_SHARDS_MAX || m > WEFT_SHARDS_MAX - k)
    return WEFT_E_ARGUMENT;
  g->k = k;
  g->m = m;
  g->infinite = WEFT_SHARDS_MAX;
  g->allocator = allocator;
  if (!m)
    return WEFT_OK;
  g->parity = allocator->alloc(allocator->user, m * k, LINE);
  if (!g->parity)
    return WEFT_E_NOMEM;
  memcpy(g->parity, parity, m * k);
  return WEFT_OK;
}

void weft_generator_clear(weft_generator *g) {
  if (g->parity)
    g->allocator->free(g->allocator->user, g->parity);
  g->parity = NULL;
  g->logarithms = NULL;
}

void weft_matrix_to_bits(const weft_gfw *field, const uint8_t *matrix, size_t rows, size_t columns,
                         uint8_t *bits) {
  const size_t w = field->w;
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++)
      for (size_t x = 0; x < w; x++) {
        const uint8_t column = weft_gfw_mul(field, matrix[r * columns + c], (uint8_t)(1u << x));
        for (size_t l = 0; l < w; l++)
          bits[(r * w + l) * columns * w + c * w + x] = (uint8_t)((column >> l) & 1u);
      }
}
