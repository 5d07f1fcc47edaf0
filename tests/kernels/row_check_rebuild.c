// SPDX-License-Identifier: Apache-2.0
// Checks rows that determine themselves how to rebuild a loss, for random points, scales and
// losses: which shards they read, and whether the sums are the lost shards. All at guard pages.
#include <stdio.h>
#include <string.h>

#include "kernels/gf256.h"
#include "tests/kernels/row_check_internal.h"

enum {
  BYTES = 8, // of a shard: a wrong entry is missed once in 2^64
  SHARDS = WEFT_LOSS_SHARDS
};

typedef struct shards {
  uint8_t byte[SHARDS][BYTES];
} shards;

typedef struct loss {
  weft_point_code code;
  uint64_t lost, wanted;
} loss;

// Chooses distinct points and nonzero scales; the entries beyond the shards are garbage.
static void choose_points(test_rng *rng, size_t n, uint8_t *point, uint8_t *scale) {
  uint8_t all[256];
  for (size_t i = 0; i < 256; i++)
    all[i] = (uint8_t)i;
  for (size_t i = 0; i < SHARDS; i++) {
    const size_t at = i + test_rng_below(rng, 256 - i);
    const uint8_t z = all[at];
    all[at] = all[i];
    all[i] = point[i] = z;
    scale[i] = (uint8_t)(i < n ? 1 + test_rng_below(rng, 255) : test_rng_below(rng, 256));
  }
}

static uint64_t choose_shards(test_rng *rng, uint64_t among, size_t count) {
  uint64_t chosen = 0;
  for (size_t found = 0; found < count;) {
    const uint64_t bit = UINT64_C(1) << test_rng_below(rng, 64);
    found += (among & bit & ~chosen) != 0;
    chosen |= among & bit;
  }
  return chosen;
}

// Parity i of data d is the sum of scale[j] d(j) / (scale[k + i] (point[k + i] + point[j])).
static void encode(const weft_point_code *c, shards *s) {
  for (size_t p = c->k; p < c->k + c->m; p++) {
    memset(s->byte[p], 0, BYTES);
    for (size_t j = 0; j < c->k; j++) {
      const uint8_t under = row_check_times(c->scale[p], c->point[p] ^ c->point[j]);
      const uint8_t entry = row_check_times(c->scale[j], weft_gf256_inv[under]);
      for (size_t b = 0; b < BYTES; b++)
        s->byte[p][b] ^= row_check_times(entry, s->byte[j][b]);
    }
  }
}

// Lists the shards to read, followed by the wanted ones.
static size_t expected_ids(const loss *l, uint8_t *ids) {
  size_t count = 0;
  for (size_t i = 0; i < l->code.k + l->code.m && count < l->code.k; i++)
    if (!(l->lost >> i & 1))
      ids[count++] = (uint8_t)i;
  for (size_t i = 0; i < l->code.k + l->code.m; i++)
    if (l->wanted >> i & 1)
      ids[count++] = (uint8_t)i;
  return count;
}

static bool rebuilds(const loss *l, const shards *s, const uint8_t *ids, const uint8_t *matrix) {
  uint8_t expected[2 * SHARDS];
  const size_t count = expected_ids(l, expected);
  if (memcmp(ids, expected, count) != 0)
    return false;
  for (size_t r = 0; r < count - l->code.k; r++)
    for (size_t b = 0; b < BYTES; b++) {
      uint8_t sum = 0;
      for (size_t c = 0; c < l->code.k; c++)
        sum ^= row_check_times(matrix[r * l->code.k + c], s->byte[ids[c]][b]);
      if (sum != s->byte[ids[l->code.k + r]][b])
        return false;
    }
  return true;
}

static bool run(row_check *check, size_t k, size_t m, test_rng *rng) {
  const uint64_t all = ~UINT64_C(0) >> (SHARDS - k - m);
  const size_t lost = test_rng_below(rng, m + 1), wanted = test_rng_below(rng, lost + 1);
  test_guard point = test_guard_new(SHARDS), scale = test_guard_new(SHARDS);
  test_guard ids = test_guard_new(k + wanted + SHARDS);
  test_guard matrix = test_guard_new(wanted * k + SHARDS);
  const weft_point_code code = {
      .k = k, .m = m, .point = point.end - SHARDS, .scale = scale.end - SHARDS};
  choose_points(rng, k + m, point.end - SHARDS, scale.end - SHARDS);
  loss l = {.code = code, .lost = choose_shards(rng, all, lost)};
  l.wanted = choose_shards(rng, l.lost, wanted);
  shards s;
  test_rng_fill(rng, s.byte[0], k * BYTES);
  encode(&code, &s);
  uint8_t *const ids_at = ids.end - (k + wanted + SHARDS);
  uint8_t *const matrix_at = matrix.end - (wanted * k + SHARDS);
  check->row->host->rebuild(&code, l.lost, l.wanted, ids_at, matrix_at);
  const bool good = rebuilds(&l, &s, ids_at, matrix_at);
  test_guard_free(&point);
  test_guard_free(&scale);
  test_guard_free(&ids);
  test_guard_free(&matrix);
  if (good)
    return true;
  char text[160];
  snprintf(text, sizeof text, "%zu + %zu, lost %016llx, wanted %016llx", k, m,
           (unsigned long long)l.lost, (unsigned long long)l.wanted);
  return row_check_fail(check, "rebuild", text);
}

bool row_check_rebuild(row_check *check) {
  enum { ROUNDS = 2000 };
  test_rng rng = test_rng_new(check->seed, 11);
  if (!check->row->host->rebuild)
    return true;
  for (size_t round = 0; round < ROUNDS; round += check->step) {
    const size_t n = round % 8 == 0 ? SHARDS : 1 + test_rng_below(&rng, SHARDS);
    const size_t k = 1 + test_rng_below(&rng, n);
    if (!run(check, k, n - k, &rng))
      return false;
  }
  return true;
}
