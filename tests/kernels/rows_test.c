// SPDX-License-Identifier: Apache-2.0
// Checks every row that this machine can run, and every emulated one, against the specification.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/emulated/emulated_rows.h"
#include "tests/kernels/row_check.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "tests/support/test_rows.h"

// Emulated instructions are slow: their rows run one case in so many.
enum { EMULATED_STEP = 16 };

static void check_row(size_t index, bool (*passes)(row_check *)) {
  const size_t native = test_host_row_count();
  row_check check = {.row = index < native ? test_host_row(index)
                                           : &weft_emulated_rows[index - native],
                     .seed = test_seed(),
                     .step = index < native ? 1 : EMULATED_STEP};
  ck_assert_msg(passes(&check), "%s", check.failure);
}

// WEFT_BACKEND must name a row that this machine can run, as for the library; every row is tested
// regardless.
START_TEST(the_forced_row_is_there) {
  const char *forced = getenv("WEFT_BACKEND");
  if (!forced || strncmp(forced, "cuda", 4) == 0) // device rows: tests/cuda
    return;
  const weft_machine machine = {.cpu = weft_cpu_features()};
  const weft_backend *row = NULL;
  const weft_status status = weft_backend_select(&machine, WEFT_MEM_HOST, forced, &row);
  ck_assert_msg(status == WEFT_OK, "WEFT_BACKEND=%s: %s", forced, weft_status_text(status));
}
END_TEST

// Prints which compiled rows are not tested natively, and what they need.
static void print_absent_rows(void) {
  const weft_machine machine = {.cpu = weft_cpu_features()};
  for (size_t i = 0; i < weft_backend_count; i++) {
    const weft_backend *row = &weft_backends[i];
    if (row->mem != WEFT_MEM_HOST || weft_backend_runs_on(row, &machine))
      continue;
    printf("skipped, not on this machine: row %s needs", row->name);
    for (unsigned bit = 0; bit < 32; bit++)
      if ((row->cpu & ~machine.cpu) >> bit & 1)
        printf(" %s", weft_cpu_feature_name(1u << bit));
    printf("\n");
  }
  fflush(stdout); // before Check forks
}

START_TEST(products) { check_row((size_t)_i, row_check_products); }
END_TEST

START_TEST(lengths) { check_row((size_t)_i, row_check_lengths); }
END_TEST

START_TEST(shapes) { check_row((size_t)_i, row_check_shapes); }
END_TEST

START_TEST(few_outputs) { check_row((size_t)_i, row_check_few_outputs); }
END_TEST

START_TEST(large) { check_row((size_t)_i, row_check_large); }
END_TEST

START_TEST(bits) { check_row((size_t)_i, row_check_bits); }
END_TEST

START_TEST(code) { check_row((size_t)_i, row_check_code); }
END_TEST

START_TEST(spread) { check_row((size_t)_i, row_check_spread); }
END_TEST

START_TEST(difference) { check_row((size_t)_i, row_check_difference); }
END_TEST

START_TEST(expand) { check_row((size_t)_i, row_check_expand); }
END_TEST

START_TEST(rebuilding) { check_row((size_t)_i, row_check_rebuild); }
END_TEST

START_TEST(factors) { check_row((size_t)_i, row_check_factors); }
END_TEST

START_TEST(large_shared) { check_row((size_t)_i, row_check_large_shared); }
END_TEST

START_TEST(threads) { check_row((size_t)_i, row_check_threads); }
END_TEST

START_TEST(prepared) { check_row((size_t)_i, row_check_prepared); }
END_TEST

START_TEST(inverses) { check_row((size_t)_i, row_check_inverses); }
END_TEST

START_TEST(eliminations) { check_row((size_t)_i, row_check_eliminate); }
END_TEST

START_TEST(xorm) { check_row((size_t)_i, row_check_xorm); }
END_TEST

int main(void) {
  const int rows = (int)(test_host_row_count() + weft_emulated_row_count);
  print_absent_rows();
  Suite *suite = suite_create("rows");
  TCase *cases = tcase_create("alone");
  tcase_add_test(cases, the_forced_row_is_there);
  tcase_add_loop_test(cases, products, 0, rows);
  tcase_add_loop_test(cases, lengths, 0, rows);
  tcase_add_loop_test(cases, shapes, 0, rows);
  tcase_add_loop_test(cases, few_outputs, 0, rows);
  tcase_add_loop_test(cases, large, 0, rows);
  tcase_add_loop_test(cases, bits, 0, rows);
  tcase_add_loop_test(cases, code, 0, rows);
  tcase_add_loop_test(cases, spread, 0, rows);
  tcase_add_loop_test(cases, difference, 0, rows);
  tcase_add_loop_test(cases, rebuilding, 0, rows);
  tcase_add_loop_test(cases, factors, 0, rows);
  tcase_add_loop_test(cases, prepared, 0, rows);
  tcase_add_loop_test(cases, inverses, 0, rows);
  tcase_add_loop_test(cases, eliminations, 0, rows);
  suite_add_tcase(suite, cases);
  TCase *shared = tcase_create("threads"); // rows_threads_test runs these alone
  tcase_add_loop_test(shared, threads, 0, rows);
  tcase_add_loop_test(shared, large_shared, 0, rows);
  tcase_add_loop_test(shared, expand, 0, rows);
  tcase_add_loop_test(shared, xorm, 0, rows);
  suite_add_tcase(suite, shared);
  return test_main(suite);
}
