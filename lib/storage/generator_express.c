// SPDX-License-Identifier: Apache-2.0
// Expresses shards in terms of others, for any matrix: codes that are not MDS, where the number of
// shards alone does not decide whether they suffice.
//
// Let E be the data shards that are not among the inputs. The rows of the input parity shards,
// restricted to E, are brought to reduced echelon form, each augmented with the combination of
// parity shards that it is made of. A shard follows from the inputs if its part in E is a sum of
// these rows. Sparse rows go first, so that a local parity shard is used where it suffices, and the
// others are not needed.
#include "lib/storage/generator.h"

#include <string.h>

typedef struct elimination {
  const weft_generator *g;
  const uint8_t *in;
  size_t inputs;
  size_t absent, parities;            // e and p: data shards in E, parity shards among the inputs
  uint8_t data[WEFT_SHARDS_MAX];      // (e) the elements of E
  uint8_t column[WEFT_SHARDS_MAX];    // (p) indices in `in`, sparse rows first
  int16_t pivot_row[WEFT_SHARDS_MAX]; // (e) the row whose pivot is this column, or NONE
  uint8_t *rows;                      // (p, e + p): a parity shard's row in E, and its combination
  uint8_t *sum;                       // (e + p): what is left of a shard, and its combination
} elimination;

enum { NONE = -1 };

static const uint8_t *parity_of(const elimination *s, size_t shard) {
  return s->g->parity + (shard - s->g->k) * s->g->k;
}

static size_t entries(const elimination *s, size_t shard) {
  size_t count = 0;
  for (size_t j = 0; j < s->g->k; j++)
    count += parity_of(s, shard)[j] != 0;
  return count;
}

static weft_status survey(elimination *s) {
  const size_t k = s->g->k, n = k + s->g->m;
  bool present[WEFT_SHARDS_MAX] = {false};
  size_t weight[WEFT_SHARDS_MAX];
  for (size_t c = 0; c < s->inputs; c++) {
    const size_t shard = s->in[c];
    if (shard >= n || present[shard])
      return WEFT_E_ARGUMENT;
    present[shard] = true;
    if (shard < k)
      continue;
    const size_t entries_of = entries(s, shard);
    size_t at = s->parities++;
    for (; at > 0 && weight[at - 1] > entries_of; at--) {
      weight[at] = weight[at - 1];
      s->column[at] = s->column[at - 1];
    }
    weight[at] = entries_of;
    s->column[at] = (uint8_t)c;
  }
  for (size_t j = 0; j < k; j++)
    if (!present[j])
      s->data[s->absent++] = (uint8_t)j;
  return WEFT_OK;
}

static void reduce(elimination *s) {
  const weft_gfw *const field = &s->g->field;
  const size_t e = s->absent, width = e + s->parities;
  for (size_t t = 0; t < e; t++)
    s->pivot_row[t] = NONE;
  for (size_t r = 0; r < s->parities; r++) {
    uint8_t *const row = s->rows + r * width;
    memset(row, 0, width);
    for (size_t t = 0; t < e; t++)
      row[t] = parity_of(s, s->in[s->column[r]])[s->data[t]];
    row[e + r] = 1;
    for (size_t t = 0; t < e; t++)
      if (s->pivot_row[t] != NONE)
        weft_gfw_add_row(field, row, s->rows + (size_t)s->pivot_row[t] * width, row[t], width);
    size_t pivot = 0;
    while (pivot < e && !row[pivot])
      pivot++;
    if (pivot == e)
      continue; // linearly dependent
    const uint8_t scale = weft_gfw_div(field, 1, row[pivot]);
    for (size_t i = 0; i < width; i++)
      row[i] = weft_gfw_mul(field, scale, row[i]);
    for (size_t t = 0; t < e; t++)
      if (s->pivot_row[t] != NONE) {
        uint8_t *const other = s->rows + (size_t)s->pivot_row[t] * width;
        weft_gfw_add_row(field, other, row, other[pivot], width);
      }
    s->pivot_row[pivot] = (int16_t)r;
  }
}

// Adds made[r] times each input parity shard r to row(inputs), and the data shards among the inputs
// with the coefficients that cancel their part in it.
static void add_parities(const elimination *s, const uint8_t *made, uint8_t *row) {
  for (size_t r = 0; r < s->parities; r++) {
    const uint8_t factor = made[r], *const parity = parity_of(s, s->in[s->column[r]]);
    row[s->column[r]] ^= factor;
    for (size_t c = 0; factor && c < s->inputs; c++)
      if (s->in[c] < s->g->k)
        row[c] ^= weft_gfw_mul(&s->g->field, factor, parity[s->in[c]]);
  }
}

// Writes a shard as a combination of the inputs. Its part in E must be a sum of the reduced rows;
// its other data shards are inputs.
static weft_status express_one(const elimination *s, size_t shard, uint8_t *row) {
  const size_t k = s->g->k, e = s->absent, width = e + s->parities;
  uint8_t *const sum = s->sum;
  memset(row, 0, s->inputs);
  memset(sum, 0, width);
  for (size_t c = 0; c < s->inputs; c++)
    if (s->in[c] == shard) {
      memset(row, 0, s->inputs);
      row[c] = 1;
      return WEFT_OK;
    } else if (shard >= k && s->in[c] < k) {
      row[c] = parity_of(s, shard)[s->in[c]];
    }
  for (size_t t = 0; t < e; t++)
    sum[t] = shard < k ? s->data[t] == shard : parity_of(s, shard)[s->data[t]];
  for (size_t t = 0; t < e; t++)
    if (s->pivot_row[t] != NONE)
      weft_gfw_add_row(&s->g->field, sum, s->rows + (size_t)s->pivot_row[t] * width, sum[t], width);
  for (size_t t = 0; t < e; t++)
    if (sum[t])
      return WEFT_E_SINGULAR;
  add_parities(s, sum + e, row);
  return WEFT_OK;
}

weft_status weft_generator_express(const weft_generator *g, const uint8_t *in, size_t inputs,
                                   const uint8_t *out, size_t count, uint8_t *matrix) {
  elimination s = {.g = g, .in = in, .inputs = inputs};
  WEFT_TRY(survey(&s));
  for (size_t r = 0; r < count; r++)
    if (out[r] >= g->k + g->m)
      return WEFT_E_ARGUMENT;
  const weft_allocator *const allocator = g->allocator;
  const size_t width = s.absent + s.parities;
  s.rows = allocator->alloc(allocator->user, (s.parities + 1) * width + 1, 64);
  if (!s.rows)
    return WEFT_E_NOMEM;
  s.sum = s.rows + s.parities * width;
  reduce(&s);
  weft_status status = WEFT_OK;
  for (size_t r = 0; r < count && status == WEFT_OK; r++)
    status = express_one(&s, out[r], matrix + r * inputs);
  allocator->free(allocator->user, s.rows);
  return status;
}
