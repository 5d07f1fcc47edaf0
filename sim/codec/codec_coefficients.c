// SPDX-License-Identifier: Apache-2.0
// The codec of coefficient vectors: it does to the vectors alone what RLNC would do to the
// payloads, so ranks are exact. A segment is a basis of the received subspace in reduced row
// echelon form: one product with the basis reduces a burst, a second one restores the form. A token
// is one byte (whether its vectors are polluted) followed by `count` vectors of n bytes.
#include <string.h>

#include "kernels/gf256.h"
#include "sim/codec/codecs.h"
#include "sim/rng.h"

typedef struct segment {
  weft_sim_held held; // first
  uint32_t made;
  const weft_rng *rng;
  uint16_t *pivot; // (rank) column of row i's leading one, where all other rows have zero
  uint8_t *basis;  // (rank, n); NULL: rank n, or the source
} segment;

static void free_basis(weft_sim_codec *c, segment *s) {
  if (s->basis)
    weft_sim_arena_give(c->arena, s->basis);
  if (s->pivot)
    weft_sim_arena_give(c->arena, s->pivot);
  s->basis = NULL;
  s->pivot = NULL;
}

static void close_segment(void *user, void *opened) {
  weft_sim_codec *c = user;
  if (!opened)
    return;
  free_basis(c, opened);
  weft_sim_arena_give(c->arena, opened);
}

static weft_status new_segment(weft_sim_codec *c, const weft_segment_id *id, const weft_rng *rng,
                               segment **out) {
  segment *s = weft_sim_arena_take(c->arena, sizeof *s, sizeof(void *));
  if (!s)
    return WEFT_E_NOMEM;
  *s = (segment){.held.blocks = (uint16_t)id->blocks, .rng = rng};
  *out = s;
  return WEFT_OK;
}

static weft_status open_source(void *user, const weft_segment_id *id, const uint8_t *data,
                               size_t bytes, const weft_rng *rng, void **out) {
  segment *s;
  (void)data;
  (void)bytes;
  WEFT_TRY(new_segment(user, id, rng, &s));
  s->held.source = true;
  s->held.rank = s->held.blocks;
  s->made = weft_sim_first_packet(user, id);
  *out = s;
  return WEFT_OK;
}

static weft_status open_sink(void *user, const weft_segment_id *id, const weft_rng *rng,
                             void **out) {
  weft_sim_codec *c = user;
  segment *s;
  WEFT_TRY(new_segment(c, id, rng, &s));
  const size_t n = id->blocks;
  s->pivot = weft_sim_arena_take(c->arena, n * sizeof *s->pivot, sizeof(void *));
  s->basis = weft_sim_arena_take(c->arena, n * n, sizeof(void *));
  if (!s->pivot || !s->basis) {
    close_segment(c, s);
    return WEFT_E_NOMEM;
  }
  *out = s;
  return WEFT_OK;
}

// y(m, n) = or ^= a(m, k) * x(k, n)
static void multiply(const weft_sim_codec *c, size_t m, size_t k, size_t n, const uint8_t *a,
                     const uint8_t *x, uint8_t *y, bool accumulate) {
  const weft_gemm gemm = {.m = m,
                          .k = k,
                          .len = n,
                          .a = a,
                          .a_stride = k,
                          .x = {.base = x, .stride = n},
                          .y = {.base = y, .stride = n},
                          .accumulate = accumulate};
  (void)c->row->gemm(c->row, &c->exec, &gemm, 1); // host rows fail only for prepared operands
}

static weft_status make_token(void *user, void *opened, size_t count, void *out, size_t *bytes) {
  weft_sim_codec *c = user;
  segment *s = opened;
  const size_t n = s->held.blocks;
  uint8_t *vectors = (uint8_t *)out + 1;
  if (s->held.rank == 0)
    return WEFT_PENDING;
  *(uint8_t *)out = s->held.polluted || c->pollutes;
  *bytes = 1 + count * n;
  c->made = s;
  if (s->basis) {
    s->rng->fill(s->rng->user, c->work, count * s->held.rank);
    multiply(c, count, s->held.rank, n, c->work, s->basis, vectors, false);
    return WEFT_OK;
  }
  s->rng->fill(s->rng->user, vectors, count * n);
  for (size_t i = 0; i < count && s->held.source; i++)
    if (s->made++ < n) { // each block once, uncoded
      memset(vectors + i * n, 0, n);
      vectors[i * n + s->made - 1] = 1;
    }
  return WEFT_OK;
}

// Eliminates among `count` vectors already reduced by the basis. Moves the innovative rows, in the
// basis's form, to the front and returns their number; pivots[i] is the pivot of row i. *behind:
// how many rows follow the last innovative one.
static size_t eliminate(const weft_sim_codec *c, uint8_t *v, size_t count, size_t n,
                        uint16_t *pivots, size_t *behind) {
  size_t kept = 0;
  *behind = count;
  for (size_t i = 0; i < count; i++) {
    uint8_t *row = v + i * n;
    for (size_t j = 0; j < kept; j++)
      if (row[pivots[j]]) {
        const uint8_t factor = row[pivots[j]];
        multiply(c, 1, 1, n, &factor, v + j * n, row, true);
      }
    size_t pivot = 0;
    while (pivot < n && row[pivot] == 0)
      pivot++;
    if (pivot == n)
      continue;
    uint8_t scaled[WEFT_MAX_BLOCKS];
    multiply(c, 1, 1, n, &weft_gf256_inv[row[pivot]], row, scaled, false);
    memcpy(v + kept * n, scaled, n);
    for (size_t j = 0; j < kept; j++)
      if (v[j * n + pivot]) {
        const uint8_t factor = v[j * n + pivot];
        multiply(c, 1, 1, n, &factor, v + kept * n, v + j * n, true);
      }
    pivots[kept++] = (uint16_t)pivot;
    *behind = count - 1 - i;
  }
  return kept;
}

// Inverts a(count, count) in place, without row exchanges. Returns false if a pivot is zero.
static bool invert(uint8_t *a, size_t count) {
  for (size_t k = 0; k < count; k++) {
    uint8_t *row = a + k * count;
    if (row[k] == 0)
      return false;
    const uint8_t *by = weft_gf256_product[weft_gf256_inv[row[k]]];
    row[k] = 1;
    for (size_t i = 0; i < count; i++)
      row[i] = by[row[i]];
    for (size_t j = 0; j < count; j++) {
      uint8_t *other = a + j * count;
      if (j == k || other[k] == 0)
        continue;
      by = weft_gf256_product[other[k]];
      other[k] = 0;
      for (size_t i = 0; i < count; i++)
        other[i] ^= by[row[i]];
    }
  }
  return true;
}

// Does the same into `out` with one inverse and one product. This works when each row's pivot is
// the next column that is not zero in all rows, as nearly always with random vectors. Otherwise
// returns false and writes nothing.
static bool eliminate_at_once(const weft_sim_codec *c, const uint8_t *v, size_t count, size_t n,
                              uint16_t *pivots, uint8_t *out) {
  uint8_t any[WEFT_MAX_BLOCKS], square[WEFT_SIM_TOKEN_PACKETS * WEFT_SIM_TOKEN_PACKETS];
  memcpy(any, v, n);
  for (size_t i = 1; i < count; i++)
    for (size_t at = 0; at < n; at++)
      any[at] |= v[i * n + at];
  size_t columns = 0;
  for (size_t at = 0; at < n && columns < count; at++)
    if (any[at])
      pivots[columns++] = (uint16_t)at;
  if (columns < count)
    return false;
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < count; j++)
      square[i * count + j] = v[i * n + pivots[j]];
  if (!invert(square, count))
    return false;
  multiply(c, count, count, n, square, v, out, false);
  return true;
}

static weft_status add_token(void *user, void *opened, size_t count, const void *bytes,
                             size_t length, size_t *innovative) {
  weft_sim_codec *c = user;
  segment *s = opened;
  const size_t n = s->held.blocks, r = s->held.rank;
  *innovative = 0;
  if (count > c->batch || length != 1 + count * n)
    return WEFT_E_MALFORMED;
  if (!s->basis)
    return WEFT_DEPENDENT;
  uint8_t *v = c->work, *factors = c->work + c->batch * n;
  uint16_t pivots[WEFT_SIM_TOKEN_PACKETS];
  memcpy(v, (const uint8_t *)bytes + 1, count * n);
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < r; j++)
      factors[i * r + j] = v[i * n + s->pivot[j]];
  multiply(c, count, r, n, factors, s->basis, v, true);
  uint8_t *rows = s->basis + r * n; // where the new rows will stand
  size_t kept = count, behind = 0;
  if (count > n - r || !eliminate_at_once(c, v, count, n, pivots, rows)) {
    kept = eliminate(c, v, count, n, pivots, &behind);
    memcpy(rows, v, kept * n);
  }
  if (kept == 0)
    return WEFT_DEPENDENT;
  for (size_t j = 0; j < r; j++)
    for (size_t i = 0; i < kept; i++)
      factors[j * kept + i] = s->basis[j * n + pivots[i]];
  multiply(c, r, kept, n, factors, rows, s->basis, true);
  memcpy(s->pivot + r, pivots, kept * sizeof *pivots);
  s->held.rank = (uint16_t)(r + kept);
  s->held.polluted = s->held.polluted || *(const uint8_t *)bytes;
  *innovative = kept;
  if (s->held.rank == n) { // the span is now everything: make_token draws random vectors
    c->surplus = behind;
    free_basis(c, s);
  }
  return WEFT_OK;
}

static bool verify_token(void *user, const void *bytes, size_t length) {
  (void)user;
  return length > 0 && *(const uint8_t *)bytes == 0;
}

static size_t memory_bytes(void *user, const weft_segment_id *id) {
  (void)user;
  return sizeof(segment) + id->blocks * (id->blocks + sizeof(uint16_t));
}

weft_codec weft_sim_codec_coefficients_table(weft_sim_codec *codec) {
  weft_codec table = weft_sim_held_table(codec);
  table.name = "coefficients";
  table.open_source = open_source;
  table.open_sink = open_sink;
  table.close = close_segment;
  table.memory_bytes = memory_bytes;
  table.token_bytes_max = 1 + codec->batch * codec->blocks;
  table.make_token = make_token;
  table.add_token = add_token;
  table.verify_token = verify_token;
  return table;
}
