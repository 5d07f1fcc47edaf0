// SPDX-License-Identifier: Apache-2.0
// Checks the sum of two sources times a column, added to many rows, by rows with their own method
// for it: any number of rows, whole or in runs of columns, flush with guard pages.
#include <stdio.h>

#include "tests/kernels/row_check_internal.h"

// Expects what a product of both sources gives, with every coefficient twice.
static bool run(row_check *check, const row_check_shape *c, size_t cut, test_rng *rng) {
  uint8_t column[ROW_CHECK_ROWS], pairs[2 * ROW_CHECK_ROWS];
  test_rng_fill(rng, column, c->m);
  for (size_t i = 0; i < c->m; i++)
    pairs[2 * i] = pairs[2 * i + 1] = column[i];
  row_check_rows rows;
  row_check_rows_new(&rows, c, rng);
  const weft_gemm g = row_check_rows_product(&rows, c, pairs);
  const size_t ends[] = {0, cut, c->len};
  for (size_t part = 0; part < 2; part++) {
    const weft_panel panel =
        weft_panel_of(c->m, 2, ends[part], ends[part + 1], column, 1, rows.x, g.y.ptr, true);
    if (ends[part] < ends[part + 1])
      check->row->host->difference(&panel);
  }
  char text[128];
  snprintf(text, sizeof text, "m %zu, len %zu cut at %zu, end - %zu%s", c->m, c->len, cut,
           c->offset, c->uneven ? ", uneven" : "");
  return row_check_rows_end(&rows) || row_check_fail(check, "difference", text);
}

bool row_check_difference(row_check *check) {
  enum { ROUNDS = 400, ROWS = 18, SHORT = 300, LONG = 5000 };
  if (!check->row->host || !check->row->host->difference)
    return true;
  test_rng rng = test_rng_new(check->seed, 13);
  for (size_t round = 0; round < ROUNDS / check->step; round++) {
    const row_check_shape c = {.m = 1 + round % ROWS,
                               .k = 2,
                               .len = 1 + test_rng_below(&rng, round % 4 ? SHORT : LONG),
                               .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                               .accumulate = true,
                               .uneven = test_rng_below(&rng, 2)};
    const size_t cut = test_rng_below(&rng, 2) * test_rng_below(&rng, c.len);
    if (!run(check, &c, cut, &rng))
      return false;
  }
  // Longer than what stays in a cache while several passes go over it.
  const row_check_shape long_one = {
      .m = 9, .k = 2, .len = 600 * 1024 + 130, .offset = 3, .accumulate = true, .uneven = true};
  return check->step > 1 || run(check, &long_one, 0, &rng);
}
