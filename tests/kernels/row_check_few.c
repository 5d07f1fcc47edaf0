// SPDX-License-Identifier: Apache-2.0
// Products with few output rows over rows of thousands of bytes, as storage codes have them: rows
// flush with guard pages, aligned and not, sources in one group and in several.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_rng.h"

enum { MOST = 40, MARGIN = 64 };

typedef struct few_case {
  size_t m, k, len, offset; // offset: of the end of every row from its guard page
  bool accumulate;
} few_case;

static bool run_few(row_check *check, const few_case *c, test_rng *rng) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {.allocator = &memory.allocator};
  test_guard x_memory[MOST], y_memory[MOST];
  const uint8_t *x[MOST];
  uint8_t *y[MOST], *want[MOST], a[MOST * MOST];
  const size_t bytes = c->len + c->offset + MARGIN;
  for (size_t j = 0; j < c->k; j++) {
    x_memory[j] = test_guard_new(bytes);
    uint8_t *const row = x_memory[j].end - c->offset - c->len;
    test_rng_fill(rng, row, c->len);
    x[j] = row;
  }
  for (size_t i = 0; i < c->m; i++) {
    y_memory[i] = test_guard_new(bytes);
    y[i] = y_memory[i].end - c->offset - c->len;
    want[i] = row_check_memory(bytes);
    test_rng_fill(rng, y_memory[i].end - bytes, bytes);
    memcpy(want[i], y_memory[i].end - bytes, bytes);
  }
  test_rng_fill(rng, a, c->m * c->k);
  uint8_t *inner[MOST];
  for (size_t i = 0; i < c->m; i++)
    inner[i] = want[i] + MARGIN;
  weft_gemm g = {.m = c->m,
                 .k = c->k,
                 .len = c->len,
                 .a = a,
                 .a_stride = c->k,
                 .x = {.ptr = x},
                 .y = {.ptr = inner},
                 .accumulate = c->accumulate};
  row_check_scalar()->gemm(row_check_scalar(), &exec, &g, 1);
  g.y.ptr = y;
  bool good = check->row->gemm(check->row, &exec, &g, 1) == WEFT_OK;
  for (size_t i = 0; i < c->m; i++) {
    good = good && memcmp(want[i], y_memory[i].end - bytes, bytes) == 0;
    test_guard_free(&y_memory[i]);
    free(want[i]);
  }
  for (size_t j = 0; j < c->k; j++)
    test_guard_free(&x_memory[j]);
  char text[128];
  snprintf(text, sizeof text, "m %zu, k %zu, len %zu, end - %zu%s", c->m, c->k, c->len, c->offset,
           c->accumulate ? ", accumulate" : "");
  return good || row_check_fail(check, "few outputs", text);
}

bool row_check_few_outputs(row_check *check) {
  static const size_t sources[] = {1, 2, 3, 10, 16, 17, 20, 33};
  test_rng rng = test_rng_new(check->seed, 7);
  for (size_t m = 1; m <= 18; m++)
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
      // Emulated rows take one number of sources for each m, every number in turn.
      if (check->step > 1 && (m + s) % 4 != 0)
        continue;
      const few_case c = {.m = m,
                          .k = sources[s],
                          .len = 900 + test_rng_below(&rng, 4000),
                          .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                          .accumulate = test_rng_below(&rng, 3) == 0};
      if (!run_few(check, &c, &rng))
        return false;
      // Whole lines, for stores that need them.
      const few_case aligned = {.m = m, .k = sources[s], .len = 4096 + 64 * (m % 3)};
      if (!run_few(check, &aligned, &rng))
        return false;
      // Long rows of many sources, which rows take in groups unless built to do so sooner.
      const few_case grouped = {.m = m,
                                .k = sources[s],
                                .len = 8192 + test_rng_below(&rng, 2000),
                                .offset = test_rng_below(&rng, 64),
                                .accumulate = m % 2 == 0};
      if (check->step == 1 && sources[s] % 16 == 1 && sources[s] > 16 && (m <= 8 || m == 16) &&
          !run_few(check, &grouped, &rng))
        return false;
    }
  return true;
}
