// SPDX-License-Identifier: Apache-2.0
// Products by factors (kernels/factors.h) against the same products entry by entry on scalar, with
// rows flush with guard pages, whether the technique would choose factors for them or not.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_steps.h"

enum { MARGIN = 64 };

typedef struct factored_case {
  size_t len, offset; // of the end of every row from its guard page
  bool accumulate;
  long fail; // allocation that fails, counted from 1; 0: none
} factored_case;

static bool run(row_check *check, const test_steps *steps, const factored_case *c, test_rng *rng) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_factors *factors = NULL;
  if (weft_factors_new(steps->step, steps->count, steps->slots, &memory.allocator, &factors) !=
      WEFT_OK)
    return row_check_fail(check, "factors", "no memory");
  test_guard x_memory[TEST_STEPS_ROWS], y_memory[TEST_STEPS_ROWS];
  const uint8_t *x[TEST_STEPS_ROWS];
  uint8_t *y[TEST_STEPS_ROWS], *want[TEST_STEPS_ROWS], *inner[TEST_STEPS_ROWS];
  const size_t bytes = c->len + c->offset + MARGIN;
  for (size_t j = 0; j < steps->k; j++) {
    x_memory[j] = test_guard_new(bytes);
    uint8_t *const row = x_memory[j].end - c->offset - c->len;
    test_rng_fill(rng, row, c->len);
    x[j] = row;
  }
  for (size_t i = 0; i < steps->m; i++) {
    y_memory[i] = test_guard_new(bytes);
    y[i] = y_memory[i].end - c->offset - c->len;
    want[i] = row_check_memory(bytes);
    test_rng_fill(rng, y_memory[i].end - bytes, bytes);
    memcpy(want[i], y_memory[i].end - bytes, bytes);
    inner[i] = want[i] + MARGIN;
  }
  weft_gemm g = {.m = steps->m,
                 .k = steps->k,
                 .len = c->len,
                 .a = steps->a,
                 .a_stride = steps->k,
                 .x = {.ptr = x},
                 .y = {.ptr = inner},
                 .accumulate = c->accumulate};
  weft_exec exec = {.allocator = &memory.allocator};
  row_check_scalar()->gemm(row_check_scalar(), &exec, &g, 1);
  // The row as it is, but that every matrix is worth its factors.
  weft_host_kernel kernel = *check->row->host;
  weft_backend row = *check->row;
  kernel.steps_product = kernel.steps_sum = 0;
  row.host = &kernel;
  g.y.ptr = y;
  g.factors = factors;
  test_allocator scarce;
  test_allocator_init(&scarce, c->fail);
  exec.allocator = &scarce.allocator;
  bool good = row.gemm(&row, &exec, &g, 1) == WEFT_OK;
  for (size_t i = 0; i < steps->m; i++) {
    good = good && memcmp(want[i], y_memory[i].end - bytes, bytes) == 0;
    test_guard_free(&y_memory[i]);
    free(want[i]);
  }
  for (size_t j = 0; j < steps->k; j++)
    test_guard_free(&x_memory[j]);
  weft_factors_free(factors, &memory.allocator);
  char text[160];
  snprintf(text, sizeof text,
           "m %zu, k %zu, %zu steps on %zu slots, len %zu, end - %zu%s, fail %ld", steps->m,
           steps->k, steps->count, steps->slots, c->len, c->offset,
           c->accumulate ? ", accumulate" : "", c->fail);
  return good || row_check_fail(check, "factors", text);
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
    const factored_case c = {.len = 1900 + test_rng_below(&rng, round % 4 ? 4000 : 20000),
                             .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                             .accumulate = round % 6 == 5,
                             .fail = round % 16 == 7};
    if (!run(check, &steps, &c, &rng))
      return false;
  }
  return true;
}
