// SPDX-License-Identifier: Apache-2.0
// Recovery matrices: in closed form where shards have points, by elimination elsewhere; and the
// check that a matrix without such a proof is MDS.
//
// Closed form. Let F(z) = sum of d(j) / (z + y(j)), so that parity i is F(x(i)). With E the data
// shards that are absent, P the parity shards in their place, G = F * prod(E: z + y) / prod(P: z +
// x) has poles only at the shards that are present and none of their residues names an absent one,
// so its partial fractions give G, hence F, at every other point.
#include "lib/storage/generator.h"

#include <string.h>

// Which shards are present, and where among the k inputs.
typedef struct survey {
  size_t absent, stand_ins;             // |E| and |P|, equal in a valid request
  uint8_t absent_id[WEFT_SHARDS_MAX];   // E, data shards
  uint8_t stand_in_id[WEFT_SHARDS_MAX]; // P, parity shards
  uint16_t position[WEFT_SHARDS_MAX];   // of shard s in `in`, or ABSENT
} survey;

#define ABSENT UINT16_MAX

static weft_status take_survey(const weft_generator *g, const uint8_t *in, survey *s) {
  memset(s->position, 0xff, (g->k + g->m) * sizeof s->position[0]);
  s->absent = s->stand_ins = 0;
  for (size_t c = 0; c < g->k; c++) {
    if (in[c] >= g->k + g->m || s->position[in[c]] != ABSENT)
      return WEFT_E_ARGUMENT;
    s->position[in[c]] = (uint16_t)c;
    if (in[c] >= g->k)
      s->stand_in_id[s->stand_ins++] = in[c];
  }
  for (size_t j = 0; j < g->k; j++)
    if (s->position[j] == ABSENT)
      s->absent_id[s->absent++] = (uint8_t)j;
  return WEFT_OK;
}

// Four sums of logarithms in a word, which may be added and taken away as one number as long as
// each ends up within its 16 bits.
#define FOUR(lane) ((lane)*UINT64_C(0x0001000100010001))

// Brings sums closer to the order, of which they are modulo, and which they may end at instead of
// 0. Three foldings bring any 16 bits of w = 8 there, and what smaller w have.
static uint64_t fold(uint64_t sums, uint64_t order, unsigned w) {
  return (sums & FOUR(order)) + ((sums >> w) & FOUR(UINT64_C(0xffff) >> w));
}

// log of every shard's factor: its scale, its differences from E, over those from P. For all of a
// word, needed or not.
static void weigh(const weft_generator *g, const survey *s, uint64_t *restrict weight) {
  const size_t words = weft_generator_words(g);
  const uint64_t order = g->field.order;
  const unsigned w = g->field.w;
  const uint64_t *const scale = g->logarithms + (g->k + g->m) * words;
  // At most 128 absent ones, so that no sum exceeds 128 * 255 * 2 + 255 = 65535.
  for (size_t t = 0; t < words; t++)
    weight[t] = FOUR(s->absent * order) + scale[t];
  for (size_t e = 0; e < s->absent; e++) {
    const uint64_t *const add = g->logarithms + s->absent_id[e] * words;
    const uint64_t *const take = g->logarithms + s->stand_in_id[e] * words;
    for (size_t t = 0; t < words; t++)
      weight[t] += add[t] - take[t];
  }
  for (size_t t = 0; t < words; t++)
    weight[t] = fold(fold(fold(weight[t], order, w), order, w), order, w);
}

// exp(weight of each input - weight of the shard - log of their difference) for all k inputs.
static void fill_row(const weft_generator *g, const uint8_t *in, size_t shard,
                     const uint64_t *weight, uint8_t *restrict row) {
  const size_t words = weft_generator_words(g);
  const uint64_t order = g->field.order;
  const uint64_t *const take = g->logarithms + shard * words;
  const uint8_t *const exp = g->field.exp;
  uint16_t own, sum[WEFT_SHARDS_MAX];
  memcpy(&own, (const uint8_t *)weight + shard * sizeof own, sizeof own);
  for (size_t t = 0; t < words; t++) {
    const uint64_t four = fold(FOUR(2 * order - own) + weight[t] - take[t], order, g->field.w);
    memcpy(sum + 4 * t, &four, sizeof four);
  }
  for (size_t c = 0; c < g->k; c++)
    row[c] = exp[sum[in[c]]];
}

static void solve_by_points(const weft_generator *g, const survey *s, const uint8_t *in,
                            const uint8_t *out, size_t count, uint8_t *matrix) {
  uint64_t weight[WEFT_SHARDS_MAX / 4];
  if (g->m) // else nothing is absent, and there are no logarithms
    weigh(g, s, weight);
  for (size_t r = 0; r < count; r++) {
    uint8_t *row = matrix + r * g->k;
    if (s->position[out[r]] != ABSENT) {
      memset(row, 0, g->k);
      row[s->position[out[r]]] = 1;
    } else {
      fill_row(g, in, out[r], weight, row);
    }
  }
}

// row(k) of a data shard that is absent, from the inverse of parity[P][E].
static void absent_row(const weft_generator *g, const survey *s, const uint8_t *in,
                       const uint8_t *inverse, size_t e, uint8_t *row) {
  for (size_t c = 0; c < g->k; c++) {
    uint8_t sum = 0;
    for (size_t p = 0; p < s->stand_ins; p++) {
      const uint8_t factor = inverse[e * s->absent + p];
      if (in[c] < g->k)
        sum ^= weft_gfw_mul(&g->field, factor,
                            g->parity[(size_t)(s->stand_in_id[p] - g->k) * g->k + in[c]]);
      else if (in[c] == s->stand_in_id[p])
        sum ^= factor;
    }
    row[c] = sum;
  }
}

// row(k) of a parity shard that is absent: its own row, absent data shards replaced by theirs.
static void parity_row(const weft_generator *g, const survey *s, const uint8_t *in,
                       const uint8_t *rebuilt, size_t shard, uint8_t *row) {
  const uint8_t *own = g->parity + (shard - g->k) * g->k;
  for (size_t c = 0; c < g->k; c++) {
    uint8_t sum = in[c] < g->k ? own[in[c]] : 0;
    for (size_t e = 0; e < s->absent; e++)
      sum ^= weft_gfw_mul(&g->field, own[s->absent_id[e]], rebuilt[e * g->k + c]);
    row[c] = sum;
  }
}

static weft_status eliminate(const weft_generator *g, const survey *s, const uint8_t *in,
                             const uint8_t *out, size_t count, uint8_t *matrix, uint8_t *work) {
  const size_t e = s->absent;
  uint8_t *square = work, *inverse = work + e * e, *rebuilt = work + 2 * e * e; // (e, k)
  for (size_t p = 0; p < e; p++)
    for (size_t j = 0; j < e; j++)
      square[p * e + j] = g->parity[(size_t)(s->stand_in_id[p] - g->k) * g->k + s->absent_id[j]];
  if (!weft_gfw_invert(&g->field, square, inverse, e))
    return WEFT_E_SINGULAR;
  for (size_t j = 0; j < e; j++)
    absent_row(g, s, in, inverse, j, rebuilt + j * g->k);
  for (size_t r = 0; r < count; r++) {
    uint8_t *row = matrix + r * g->k;
    if (s->position[out[r]] != ABSENT) {
      memset(row, 0, g->k);
      row[s->position[out[r]]] = 1;
    } else if (out[r] >= g->k) {
      parity_row(g, s, in, rebuilt, out[r], row);
    } else {
      const uint8_t *at = memchr(s->absent_id, out[r], e);
      memcpy(row, rebuilt + (size_t)(at - s->absent_id) * g->k, g->k);
    }
  }
  return WEFT_OK;
}

static weft_status check_outputs(const weft_generator *g, const uint8_t *out, size_t count) {
  for (size_t r = 0; r < count; r++)
    if (out[r] >= g->k + g->m)
      return WEFT_E_ARGUMENT;
  return WEFT_OK;
}

weft_status weft_generator_solve_by_elimination(const weft_generator *g, const uint8_t *in,
                                                const uint8_t *out, size_t count, uint8_t *matrix) {
  survey s;
  WEFT_TRY(take_survey(g, in, &s));
  WEFT_TRY(check_outputs(g, out, count));
  const weft_allocator *allocator = g->allocator;
  const size_t bytes = s.absent * (2 * s.absent + g->k);
  uint8_t *work = allocator->alloc(allocator->user, bytes ? bytes : 1, 64);
  if (!work)
    return WEFT_E_NOMEM;
  const weft_status status = eliminate(g, &s, in, out, count, matrix, work);
  allocator->free(allocator->user, work);
  return status;
}

weft_status weft_generator_solve(const weft_generator *g, const uint8_t *in, const uint8_t *out,
                                 size_t count, uint8_t *matrix) {
  if (!g->by_points)
    return weft_generator_solve_by_elimination(g, in, out, count, matrix);
  survey s;
  WEFT_TRY(take_survey(g, in, &s));
  WEFT_TRY(check_outputs(g, out, count));
  solve_by_points(g, &s, in, out, count, matrix);
  return WEFT_OK;
}

// ---------------------------------------------------------------------------------------------

// No matrix larger than this can be proved within any budget, so larger ones are not started.
#define MINOR_MAX 24u

typedef struct minors {
  const weft_gfw *field;
  const uint8_t *matrix; // row stride k
  size_t k;
  size_t budget;
  size_t row[MINOR_MAX], column[MINOR_MAX];
} minors;

static bool is_regular(const minors *s, size_t n) {
  uint8_t square[MINOR_MAX * MINOR_MAX], inverse[MINOR_MAX * MINOR_MAX];
  for (size_t r = 0; r < n; r++)
    for (size_t c = 0; c < n; c++)
      square[r * n + c] = s->matrix[s->row[r] * s->k + s->column[c]];
  return weft_gfw_invert(s->field, square, inverse, n);
}

// Steps `set` to the next n-element subset of 0..limit-1 in lexicographic order.
static bool next_subset(size_t *set, size_t n, size_t limit) {
  for (size_t i = n; i-- > 0;)
    if (set[i] < limit - n + i) {
      set[i]++;
      for (size_t j = i + 1; j < n; j++)
        set[j] = set[j - 1] + 1;
      return true;
    }
  return false;
}

static void first_subset(size_t *set, size_t n) {
  for (size_t i = 0; i < n; i++)
    set[i] = i;
}

// All n x n minors of the first `rows` rows and `columns` columns that use the newest of them.
static weft_status try_minors(minors *s, size_t rows, size_t columns, size_t n, bool newest_row) {
  size_t *fixed = newest_row ? s->row : s->column, *free_set = newest_row ? s->column : s->row;
  const size_t fixed_limit = (newest_row ? rows : columns) - 1;
  const size_t free_limit = newest_row ? columns : rows;
  first_subset(fixed, n - 1);
  fixed[n - 1] = fixed_limit;
  do {
    first_subset(free_set, n);
    do {
      if (s->budget-- == 0)
        return WEFT_E_UNSUPPORTED;
      if (!is_regular(s, n))
        return WEFT_E_SINGULAR;
    } while (next_subset(free_set, n, free_limit));
  } while (n > 1 && next_subset(fixed, n - 1, fixed_limit));
  return WEFT_OK;
}

weft_status weft_matrix_check_mds(const weft_gfw *field, const uint8_t *matrix, size_t m, size_t k,
                                  size_t budget) {
  minors s = {.field = field, .matrix = matrix, .k = k, .budget = budget};
  for (size_t rows = 0, columns = 0; rows < m || columns < k;) {
    const bool grow_row = rows < m && (rows <= columns || columns == k);
    *(grow_row ? &rows : &columns) += 1;
    const size_t largest = rows < columns ? rows : columns;
    if (largest > MINOR_MAX)
      return WEFT_E_UNSUPPORTED;
    for (size_t n = 1; n <= largest; n++)
      WEFT_TRY(try_minors(&s, rows, columns, n, grow_row));
  }
  return WEFT_OK;
}
