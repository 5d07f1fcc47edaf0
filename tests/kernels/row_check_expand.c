// SPDX-License-Identifier: Apache-2.0
// Checks coefficients of seeds against their definition (docs/wire.md): ChaCha20 of RFC 8439, one
// block at a time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"

enum { ROWS_MOST = 150, K_MOST = 1030, UNTOUCHED = 0xA5 };

static uint32_t rotated(uint32_t x, unsigned bits) { return x << bits | x >> (32 - bits); }

static void quarter(uint32_t *x, unsigned a, unsigned b, unsigned c, unsigned d) {
  static const unsigned bits[4] = {16, 12, 8, 7};
  for (unsigned half = 0; half < 4; half += 2) {
    x[a] += x[b];
    x[d] = rotated(x[d] ^ x[a], bits[half]);
    x[c] += x[d];
    x[b] = rotated(x[b] ^ x[c], bits[half + 1]);
  }
}

static void define_block(const weft_seed *seed, uint32_t counter, uint32_t out[16]) {
  const uint64_t key[4] = {seed->stream, seed->segment, seed->seed, 0};
  const char text[] = "expand 32-byte kLibsodiumDRG";
  uint32_t in[16];
  for (unsigned i = 0; i < 4; i++)
    in[i] = (uint32_t)text[4 * i] | (uint32_t)text[4 * i + 1] << 8 |
            (uint32_t)text[4 * i + 2] << 16 | (uint32_t)text[4 * i + 3] << 24;
  for (unsigned i = 0; i < 8; i++)
    in[4 + i] = (uint32_t)(key[i / 2] >> (32 * (i % 2)));
  in[12] = counter;
  for (unsigned i = 4; i < 7; i++)
    in[9 + i] = (uint32_t)text[4 * i] | (uint32_t)text[4 * i + 1] << 8 |
                (uint32_t)text[4 * i + 2] << 16 | (uint32_t)text[4 * i + 3] << 24;
  memcpy(out, in, sizeof in);
  for (unsigned round = 0; round < 20; round++)
    for (unsigned i = 0; i < 4; i++) {
      const unsigned turn = round % 2;
      quarter(out, i, 4 + (i + turn) % 4, 8 + (i + 2 * turn) % 4, 12 + (i + 3 * turn) % 4);
    }
  for (unsigned i = 0; i < 16; i++)
    out[i] += in[i];
}

static void define(const weft_seed *seed, size_t k, uint8_t *out) {
  uint32_t block[16];
  for (size_t j = 0; j < k; j++) {
    if (j % 32 == 0)
      define_block(seed, (uint32_t)(j / 32), block);
    const uint32_t u = block[j % 32 / 2] >> (16 * (j % 2)) & 0xffff;
    out[j] = (uint8_t)(1 + (u * 255 >> 16));
  }
}

static weft_seed random_seed(test_rng *rng) {
  weft_seed seed;
  test_rng_fill(rng, &seed, sizeof seed);
  if (test_rng_below(rng, 3) == 0) // the seeds wrap around
    seed.seed = UINT64_MAX - test_rng_below(rng, 4);
  return seed;
}

// Checks an expansion whose last row ends at a guard page.
static bool run(row_check *check, weft_expansion *e, weft_pool *pool, test_rng *rng) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {.allocator = &memory.allocator, .pool = pool};
  weft_seed seeds[ROWS_MOST];
  for (size_t i = 0; i < e->count; i++)
    seeds[i] = random_seed(rng);
  e->first = random_seed(rng);
  e->seeds = test_rng_below(rng, 2) ? seeds : NULL;
  const size_t bytes = (e->count - 1) * e->out_stride + e->k;
  test_guard guard = test_guard_new(bytes);
  e->out = guard.end - bytes;
  memset(e->out, UNTOUCHED, bytes);
  uint8_t *const want = row_check_memory(bytes);
  memset(want, UNTOUCHED, bytes);
  for (size_t i = 0; i < e->count; i++) {
    weft_seed seed = e->seeds ? seeds[i] : e->first;
    seed.seed += e->seeds ? 0 : i;
    define(&seed, e->k, want + i * e->out_stride);
  }
  const bool good =
      check->row->expand(check->row, &exec, e) == WEFT_OK && memcmp(e->out, want, bytes) == 0;
  free(want);
  test_guard_free(&guard);
  char text[120];
  snprintf(text, sizeof text, "%zu rows of %zu, stride %zu, seeds %s, %zu threads", e->count, e->k,
           e->out_stride, e->seeds ? "given" : "counting up", weft_pool_threads(pool));
  return good || row_check_fail(check, "expand", text);
}

static bool refuses(row_check *check, const weft_expansion *e) {
  const weft_exec exec = {0};
  return check->row->expand(check->row, &exec, e) == WEFT_E_UNSUPPORTED ||
         row_check_fail(check, "expand", "what it has not was not refused");
}

bool row_check_expand(row_check *check) {
  enum { ROUNDS = 300 };
  uint8_t out[1];
  const weft_expansion dense = {.count = 1, .k = 1, .out = out, .out_stride = 1};
  weft_expansion fresh = dense, sparse = dense;
  fresh.fresh = true;
  sparse.density_q16 = 1;
  if (!check->row->host->expand)
    return refuses(check, &dense);
  if (!refuses(check, &fresh) || !refuses(check, &sparse))
    return false;
  test_rng rng = test_rng_new(check->seed, 13);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_pool *pool = NULL;
  if (weft_pool_new(&pool, 3, &memory.allocator) != WEFT_OK)
    return row_check_fail(check, "expand", "no pool");
  bool good = true;
  for (size_t round = 0; round < ROUNDS && good; round += check->step) {
    const bool large = round % 16 == 0;
    weft_expansion e = {.count = 1 + test_rng_below(&rng, large ? ROWS_MOST : 12),
                        .k = 1 + test_rng_below(&rng, large ? K_MOST : 200)};
    e.out_stride = e.k + test_rng_below(&rng, 3) * test_rng_below(&rng, 40);
    good = run(check, &e, round % 2 ? pool : NULL, &rng);
  }
  weft_pool_free(pool);
  return good;
}
