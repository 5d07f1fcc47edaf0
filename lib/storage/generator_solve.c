// SPDX-License-Identifier: Apache-2.0
// Computes recovery matrices: in closed form where shards have points, otherwise by elimination.
// Also checks whether a matrix without a proof is MDS.
//
// Closed form. Let F(z) = sum of d(j) / (z + y(j)), so that parity i is F(x(i)). With E the absent
// data shards and P the parity shards in their place, G = F * prod(E: z + y) / prod(P: z + x) has
// poles only at the shards that are present, and none of its residues involves an absent one, so
// its partial fractions give G, hence F, at every other point.
#include "lib/storage/generator.h"

#include <string.h>

// Which shards are present, and which data shards are absent.
typedef struct survey {
  bool present[WEFT_SHARDS_MAX];
  uint8_t data[WEFT_SHARDS_MAX];   // E
  uint8_t parity[WEFT_SHARDS_MAX]; // P
  weft_absence absence;            // both
} survey;

static weft_status take_survey(const weft_generator *g, const uint8_t *in, survey *s) {
  memset(s->present, 0, (g->k + g->m) * sizeof s->present[0]);
  size_t absent = 0, stand_ins = 0; // equal in a valid request
  for (size_t c = 0; c < g->k; c++) {
    if (in[c] >= g->k + g->m || s->present[in[c]])
      return WEFT_E_ARGUMENT;
    s->present[in[c]] = true;
    if (in[c] >= g->k)
      s->parity[stand_ins++] = in[c];
  }
  for (size_t j = 0; j < g->k; j++)
    if (!s->present[j])
      s->data[absent++] = (uint8_t)j;
  s->absence = (weft_absence){.count = absent, .data = s->data, .parity = s->parity};
  return WEFT_OK;
}

// Eight sums of logarithms, added and folded at once, in GNU C vectors: registers where the
// processor has them, otherwise split up by the compiler. Written and read in pieces of the same
// size, because sums are read soon after they are written.
typedef uint16_t eight __attribute__((vector_size(16)));

static eight eight_at(const uint16_t *lanes) {
  eight v;
  memcpy(&v, lanes, sizeof v);
  return v;
}

static void put_eight(uint16_t *lanes, eight v) { memcpy(lanes, &v, sizeof v); }

// Partly reduces sums modulo the order (2^w - 1). Two folds bring anything below 4^w into the range
// from 0 to the order, which stands for 0 too.
static eight fold(eight sums, uint16_t order, unsigned w) { return (sums & order) + (sums >> w); }

// Computes the log, from 0 to the order, of every shard's factor: its scale, times its differences
// from E, over those from P. For all shards, needed or not.
static void weigh(const weft_generator *g, const weft_absence *a, uint16_t *weight) {
  const size_t lanes = weft_generator_lanes(g);
  const unsigned w = g->field.w;
  const uint16_t order = (uint16_t)g->field.order, offset = (uint16_t)(a->count * order);
  const uint16_t *const log = g->logarithms, *const scale = log + (g->k + g->m) * lanes;
  for (size_t t = 0; t < lanes; t += 8) {
    eight sums = eight_at(scale + t) + offset;
    for (size_t e = 0; e < a->count; e++)
      sums += eight_at(log + a->parity[e] * lanes + t) - eight_at(log + a->data[e] * lanes + t);
    put_eight(weight + t, fold(fold(sums, order, w), order, w));
  }
}

enum { ROWS = 4 }; // rows filled at once

// Entries are exp(weight of the input + log of 1 / difference - weight of the output shard).
static void fill_rows(const weft_generator *g, const uint16_t *weight, const uint8_t *in,
                      const uint8_t *shard, uint8_t *const *row) {
  const size_t k = g->k, lanes = weft_generator_lanes(g);
  const uint16_t *log[ROWS];
  const uint8_t *exp[ROWS];
  uint16_t sum[ROWS][WEFT_SHARDS_MAX];
  for (size_t i = 0; i < ROWS; i++) {
    log[i] = g->logarithms + shard[i] * lanes;
    exp[i] = g->field.exp + g->field.order - weight[shard[i]];
  }
  for (size_t t = 0; t < lanes; t += 8)
    for (size_t i = 0; i < ROWS; i++)
      put_eight(sum[i] + t, eight_at(weight + t) + eight_at(log[i] + t));
  for (size_t c = 0; c < k; c++) {
    const size_t s = in[c];
    for (size_t i = 0; i < ROWS; i++)
      row[i][c] = exp[i][sum[i][s]];
  }
}

void weft_generator_solve_absence(const weft_generator *g, const weft_absence *absence,
                                  const uint8_t *in, const uint8_t *out, size_t count,
                                  uint8_t *matrix) {
  uint16_t weight[WEFT_SHARDS_MAX];
  weigh(g, absence, weight);
  for (size_t r = 0; r < count; r += ROWS) {
    uint8_t shard[ROWS], *row[ROWS];
    for (size_t i = 0; i < ROWS; i++) { // if there are fewer, repeat the last one
      const size_t at = r + i < count ? r + i : count - 1;
      shard[i] = out[at];
      row[i] = matrix + at * g->k;
    }
    fill_rows(g, weight, in, shard, row);
  }
}

weft_status weft_generator_weigh(const weft_generator *g, const uint8_t *in, uint8_t *scale) {
  survey s;
  uint16_t weight[WEFT_SHARDS_MAX];
  WEFT_TRY(take_survey(g, in, &s));
  weigh(g, &s.absence, weight);
  for (size_t i = 0; i < g->k + g->m; i++)
    scale[i] = g->field.exp[weight[i]];
  return WEFT_OK;
}

// Writes the row of a shard that is itself an input.
static void unit_row(const uint8_t *in, size_t k, uint8_t shard, uint8_t *row) {
  const uint8_t *const at = memchr(in, shard, k);
  memset(row, 0, k);
  row[at - in] = 1;
}

static void solve_by_points(const weft_generator *g, const survey *s, const uint8_t *in,
                            const uint8_t *out, size_t count, uint8_t *matrix) {
  if (g->m) // otherwise nothing is absent, and there are no logarithms
    weft_generator_solve_absence(g, &s->absence, in, out, count, matrix);
  for (size_t r = 0; r < count; r++)
    if (s->present[out[r]])
      unit_row(in, g->k, out[r], matrix + r * g->k);
}

// Writes row(k) of an absent data shard, from the inverse of parity[P][E].
static void absent_row(const weft_generator *g, const survey *s, const uint8_t *in,
                       const uint8_t *inverse, size_t e, uint8_t *row) {
  for (size_t c = 0; c < g->k; c++) {
    uint8_t sum = 0;
    for (size_t p = 0; p < s->absence.count; p++) {
      const uint8_t factor = inverse[e * s->absence.count + p];
      if (in[c] < g->k)
        sum ^= weft_gfw_mul(&g->field, factor,
                            g->parity[(size_t)(s->absence.parity[p] - g->k) * g->k + in[c]]);
      else if (in[c] == s->absence.parity[p])
        sum ^= factor;
    }
    row[c] = sum;
  }
}

// Writes row(k) of an absent parity shard: its own row, with absent data shards replaced by their
// rows.
static void parity_row(const weft_generator *g, const survey *s, const uint8_t *in,
                       const uint8_t *rebuilt, size_t shard, uint8_t *row) {
  const uint8_t *own = g->parity + (shard - g->k) * g->k;
  for (size_t c = 0; c < g->k; c++) {
    uint8_t sum = in[c] < g->k ? own[in[c]] : 0;
    for (size_t e = 0; e < s->absence.count; e++)
      sum ^= weft_gfw_mul(&g->field, own[s->absence.data[e]], rebuilt[e * g->k + c]);
    row[c] = sum;
  }
}

static weft_status eliminate(const weft_generator *g, const survey *s, const uint8_t *in,
                             const uint8_t *out, size_t count, uint8_t *matrix, uint8_t *work) {
  const size_t e = s->absence.count;
  uint8_t *square = work, *inverse = work + e * e, *rebuilt = work + 2 * e * e; // (e, k)
  for (size_t p = 0; p < e; p++)
    for (size_t j = 0; j < e; j++)
      square[p * e + j] =
          g->parity[(size_t)(s->absence.parity[p] - g->k) * g->k + s->absence.data[j]];
  if (!weft_gfw_invert(&g->field, square, inverse, e))
    return WEFT_E_SINGULAR;
  for (size_t j = 0; j < e; j++)
    absent_row(g, s, in, inverse, j, rebuilt + j * g->k);
  for (size_t r = 0; r < count; r++) {
    uint8_t *row = matrix + r * g->k;
    if (s->present[out[r]]) {
      unit_row(in, g->k, out[r], row);
    } else if (out[r] >= g->k) {
      parity_row(g, s, in, rebuilt, out[r], row);
    } else {
      const uint8_t *at = memchr(s->absence.data, out[r], e);
      memcpy(row, rebuilt + (size_t)(at - s->absence.data) * g->k, g->k);
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
  const size_t bytes = s.absence.count * (2 * s.absence.count + g->k);
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

// No larger matrix can be proved within any budget, so larger ones are not tried.
#define MINOR_MAX 24u

typedef struct minors {
  const weft_gfw *field;
  const uint8_t *matrix; // row stride k
  size_t k;
  size_t budget;
  uint8_t row[MINOR_MAX], column[MINOR_MAX];
} minors;

static bool is_regular(const minors *s, size_t n) {
  uint8_t square[MINOR_MAX * MINOR_MAX], inverse[MINOR_MAX * MINOR_MAX];
  for (size_t r = 0; r < n; r++)
    for (size_t c = 0; c < n; c++)
      square[r * n + c] = s->matrix[s->row[r] * s->k + s->column[c]];
  return weft_gfw_invert(s->field, square, inverse, n);
}

void weft_first_subset(uint8_t *set, size_t n) {
  for (size_t i = 0; i < n; i++)
    set[i] = (uint8_t)i;
}

bool weft_next_subset(uint8_t *set, size_t n, size_t limit) {
  for (size_t i = n; i-- > 0;)
    if (set[i] < limit - n + i) {
      set[i]++;
      for (size_t j = i + 1; j < n; j++)
        set[j] = (uint8_t)(set[j - 1] + 1);
      return true;
    }
  return false;
}

// Tries all n x n minors of the first `rows` rows and `columns` columns that use the newest row or
// column.
static weft_status try_minors(minors *s, size_t rows, size_t columns, size_t n, bool newest_row) {
  uint8_t *fixed = newest_row ? s->row : s->column, *free_set = newest_row ? s->column : s->row;
  const size_t fixed_limit = (newest_row ? rows : columns) - 1;
  const size_t free_limit = newest_row ? columns : rows;
  weft_first_subset(fixed, n - 1);
  fixed[n - 1] = (uint8_t)fixed_limit;
  do {
    weft_first_subset(free_set, n);
    do {
      if (s->budget-- == 0)
        return WEFT_E_UNSUPPORTED;
      if (!is_regular(s, n))
        return WEFT_E_SINGULAR;
    } while (weft_next_subset(free_set, n, free_limit));
  } while (n > 1 && weft_next_subset(fixed, n - 1, fixed_limit));
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
