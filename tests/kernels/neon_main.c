// SPDX-License-Identifier: Apache-2.0
// The checks of rows_test.c for 64-bit Arm, as a static program without Check, run under emulation:
// every row that the chip supports, with a fraction of the cases; rows that work byte by byte are
// also tested natively, and run fewer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/row_check.h"
#include "tests/support/test_rng.h"

enum { STEP = 16, STEP_BYTEWISE = 128 };

static bool check_row(const weft_backend *row) {
  static bool (*const checks[])(row_check *) = {
      row_check_products, row_check_lengths,  row_check_shapes,    row_check_few_outputs,
      row_check_bits,     row_check_code,     row_check_factors,   row_check_threads,
      row_check_prepared, row_check_inverses, row_check_eliminate, row_check_xorm,
      row_check_spread,   row_check_rebuild,  row_check_expand,    row_check_difference};
  row_check check = {
      .row = row, .seed = test_seed(), .step = row->align == 1 ? STEP_BYTEWISE : STEP};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    if (!checks[i](&check)) {
      printf("%s\n", check.failure);
      return false;
    }
  printf("row %s: as scalar\n", row->name);
  return true;
}

int main(void) {
  const weft_machine machine = {.cpu = weft_cpu_features()};
  bool good = true, neon = false;
  for (size_t i = 0; i < weft_backend_count; i++)
    if (weft_backend_runs_on(&weft_backends[i], &machine)) {
      good = check_row(&weft_backends[i]) && good;
      neon = neon || strcmp(weft_backends[i].name, "neon") == 0;
    }
  if (!neon)
    printf("the row neon is missing\n");
  return good && neon ? EXIT_SUCCESS : EXIT_FAILURE;
}
