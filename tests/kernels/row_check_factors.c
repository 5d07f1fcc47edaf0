// SPDX-License-Identifier: Apache-2.0
// Products by factors (kernels/factors.h) against the same products entry by entry, with
// rows flush with guard pages, whether the technique would choose factors for them or not.
#include <stdio.h>

#include "kernels/host_steps.h"
#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_steps.h"

_Static_assert((int)TEST_STEPS_ROWS <= (int)ROW_CHECK_ROWS, "rows of any steps fit");

// `fail`: the allocation that fails, counted from 1; 0: none.
static bool run(row_check *check, const test_steps *steps, const row_check_shape *c, long fail,
                test_rng *rng) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_factors *factors = NULL;
  if (weft_factors_new(steps->step, steps->count, steps->slots, &memory.allocator, &factors) !=
      WEFT_OK)
    return row_check_fail(check, "factors", "no memory");
  weft_exec exec = {.allocator = &memory.allocator};
  row_check_rows rows;
  row_check_rows_new(&rows, c, rng);
  weft_gemm g = row_check_rows_product(&rows, c, steps->a);
  // The row as it is, but that every matrix is worth its factors.
  weft_host_kernel kernel = *check->row->host;
  weft_backend row = *check->row;
  kernel.steps_product = kernel.steps_sum = kernel.steps_entry = 0;
  kernel.steps_past = c->len % 64 == 0 ? 0 : SIZE_MAX; // stores past the caches take aligned rows
  row.host = &kernel;
  g.factors = factors;
  test_allocator scarce;
  test_allocator_init(&scarce, fail);
  exec.allocator = &scarce.allocator;
  const bool done = row.gemm(&row, &exec, &g, 1) == WEFT_OK;
  weft_factors_free(factors, &memory.allocator);
  char text[160];
  snprintf(text, sizeof text,
           "m %zu, k %zu, %zu steps on %zu slots, len %zu, end - %zu%s, fail %ld", steps->m,
           steps->k, steps->count, steps->slots, c->len, c->offset,
           c->accumulate ? ", accumulate" : "", fail);
  return (row_check_rows_end(&rows) && done) || row_check_fail(check, "factors", text);
}

// A bit for each kind of wide transform (kernels/host_steps.h): its rows, its direction, whether an
// inverse one has zero constants or a forward one makes rows of Y, and what becomes of results.
static uint32_t kinds_of(const test_steps *steps) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_factors *factors = NULL;
  uint32_t kinds = 0;
  if (weft_factors_new(steps->step, steps->count, steps->slots, &memory.allocator, &factors) !=
      WEFT_OK)
    return 0;
  for (size_t a = 0; factors->acts && a < factors->acts->count; a++) {
    const weft_act *act = &factors->acts->act[a], *last = act + act->wide / 4;
    if (!act->wide)
      continue;
    const bool forward = act->kind == WEFT_ACT_FORWARD4;
    const bool special = forward ? last->out[0] >= WEFT_PLACE_Y
                                 : act->c[0] == 0 && act->c[2] == 0 && last->c[0] == 0;
    const size_t end = !last->joins ? 0 : !forward && last->more[0] == WEFT_PLACE_ZERO ? 1 : 2;
    kinds |= 1u << (act->wide / 16u + (forward ? 2u : 0) + (special ? 4u : 0) + 8u * end);
  }
  weft_factors_free(factors, &memory.allocator);
  return kinds;
}

static bool takes_wide(const row_check *check) {
  return check->row->host && check->row->host->wide_rows > 0;
}

// Transforms that a technique takes as one: every kind of them comes by, or the steps are no test.
static bool run_transforms(row_check *check, test_rng *rng) {
  enum { ROUNDS = 8, TRIES = 4000 };
  static test_steps steps;
  const int all = 2 * (2 * 3 + 2 * 2); // forward ones are never scaled alone
  const size_t most = check->step > 1 ? 200 : 500;
  uint32_t seen = 0;
  for (size_t try = 0; try < TRIES && (try < ROUNDS || __builtin_popcount(seen) < all); try++) {
    const size_t k = 1 + test_rng_below(rng, TEST_STEPS_ROWS), m = 1 + test_rng_below(rng, 40);
    test_steps_transforms(rng, k, m, 33 + test_rng_below(rng, TEST_STEPS_SLOTS - 32), &steps);
    const uint32_t kinds = kinds_of(&steps);
    if (try >= ROUNDS && !(kinds & ~seen))
      continue;
    seen |= kinds;
    // Rows on lines, which may be stored past the caches, apart from them, and with a tail.
    row_check_shape c = {.m = m, .k = k, .len = 64 * (32 + test_rng_below(rng, most))};
    if (!run(check, &steps, &c, 0, rng))
      return false;
    c.offset = 1 + test_rng_below(rng, 63);
    if (!run(check, &steps, &c, 0, rng))
      return false;
    c.len += 1 + test_rng_below(rng, 63);
    if (!run(check, &steps, &c, 0, rng))
      return false;
  }
  if (__builtin_popcount(seen) == all)
    return true;
  char text[64];
  snprintf(text, sizeof text, "%d kinds of transforms, for %d", __builtin_popcount(seen), all);
  return row_check_fail(check, "factors", text);
}

bool row_check_factors(row_check *check) {
  enum { ROUNDS = 48 };
  static test_steps steps;
  test_rng rng = test_rng_new(check->seed, 9);
  for (size_t round = 0; round < ROUNDS; round++) {
    const size_t k = 1 + test_rng_below(&rng, round % 3 ? 24 : TEST_STEPS_ROWS);
    const size_t m = 1 + test_rng_below(&rng, round % 5 ? 16 : 40);
    const size_t slots = 4 + test_rng_below(&rng, TEST_STEPS_SLOTS - 3);
    test_steps_random(&rng, k, m, slots, test_rng_below(&rng, 120), &steps);
    if (check->step > 1 && round % check->step != 0)
      continue;
    const size_t part = round % 2 ? 64 : 1,
                 len = 1900 + test_rng_below(&rng, round % 4 ? 4000 : 20000);
    const row_check_shape c = {.m = m,
                               .k = k,
                               .len = len / part * part,
                               .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                               .accumulate = round % 6 == 5};
    if (!run(check, &steps, &c, round % 16 == 7, &rng))
      return false;
  }
  return !takes_wide(check) || run_transforms(check, &rng);
}
