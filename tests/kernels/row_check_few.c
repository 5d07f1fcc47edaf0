// SPDX-License-Identifier: Apache-2.0
// Products with few output rows over rows of thousands of bytes, as storage codes have them: rows
// flush with guard pages, aligned and not, sources in one group and in several.
#include <stdio.h>

#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"

static bool run_few(row_check *check, const row_check_shape *c, test_rng *rng) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {.allocator = &memory.allocator};
  row_check_rows rows;
  uint8_t a[ROW_CHECK_ROWS * ROW_CHECK_ROWS];
  row_check_rows_new(&rows, c, rng);
  test_rng_fill(rng, a, c->m * c->k);
  const weft_gemm g = row_check_rows_product(&rows, c, a, &exec);
  const bool done = check->row->gemm(check->row, &exec, &g, 1) == WEFT_OK;
  char text[128];
  snprintf(text, sizeof text, "m %zu, k %zu, len %zu, end - %zu%s", c->m, c->k, c->len, c->offset,
           c->accumulate ? ", accumulate" : "");
  return (row_check_rows_end(&rows) && done) || row_check_fail(check, "few outputs", text);
}

bool row_check_few_outputs(row_check *check) {
  static const size_t sources[] = {1, 2, 3, 10, 16, 17, 20, 33};
  test_rng rng = test_rng_new(check->seed, 7);
  for (size_t m = 1; m <= 18; m++)
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
      // Emulated rows take one number of sources for each m, every number in turn.
      if (check->step > 1 && (m + s) % 4 != 0)
        continue;
      const row_check_shape c = {.m = m,
                                 .k = sources[s],
                                 .len = 900 + test_rng_below(&rng, 4000),
                                 .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                                 .accumulate = test_rng_below(&rng, 3) == 0};
      if (!run_few(check, &c, &rng))
        return false;
      // Whole lines, for stores that need them.
      const row_check_shape aligned = {.m = m, .k = sources[s], .len = 4096 + 64 * (m % 3)};
      if (!run_few(check, &aligned, &rng))
        return false;
      // Long rows of many sources, which rows take in groups unless built to do so sooner.
      const row_check_shape grouped = {.m = m,
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
