// SPDX-License-Identifier: Apache-2.0
// Every row that runs here, and every emulated one, against the specification.
#include <stdlib.h>

#include "tests/kernels/emulated/emulated_rows.h"
#include "tests/kernels/row_check.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "tests/support/test_rows.h"

// Emulated instructions are slow: they take one case in so many.
enum { EMULATED_STEP = 16 };

static size_t native_rows(void) {
  size_t rows = 0;
  while (test_host_row(rows))
    rows++;
  return rows;
}

static void check_row(size_t index, bool (*passes)(row_check *)) {
  const size_t native = native_rows();
  row_check check = {.row = index < native ? test_host_row(index)
                                           : &weft_emulated_rows[index - native],
                     .seed = test_seed(),
                     .step = index < native ? 1 : EMULATED_STEP};
  ck_assert_msg(passes(&check), "%s", check.failure);
}

START_TEST(lengths) { check_row((size_t)_i, row_check_lengths); }
END_TEST

START_TEST(shapes) { check_row((size_t)_i, row_check_shapes); }
END_TEST

START_TEST(threads) { check_row((size_t)_i, row_check_threads); }
END_TEST

START_TEST(prepared) { check_row((size_t)_i, row_check_prepared); }
END_TEST

START_TEST(inverses) { check_row((size_t)_i, row_check_inverses); }
END_TEST

START_TEST(xorm) { check_row((size_t)_i, row_check_xorm); }
END_TEST

int main(void) {
  const int rows = (int)(native_rows() + weft_emulated_row_count);
  Suite *suite = suite_create("rows");
  TCase *cases = tcase_create("alone");
  tcase_add_loop_test(cases, lengths, 0, rows);
  tcase_add_loop_test(cases, shapes, 0, rows);
  tcase_add_loop_test(cases, prepared, 0, rows);
  tcase_add_loop_test(cases, inverses, 0, rows);
  suite_add_tcase(suite, cases);
  TCase *shared = tcase_create("threads"); // rows_threads_test runs these alone
  tcase_add_loop_test(shared, threads, 0, rows);
  tcase_add_loop_test(shared, xorm, 0, rows);
  suite_add_tcase(suite, shared);
  return test_main(suite);
}
