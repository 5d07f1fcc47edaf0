// SPDX-License-Identifier: Apache-2.0
// Median, spread, and the rule that refuses a ratio.
#include <check.h>

#include "bench/stats.h"
#include "tests/support/test_main.h"

static const bool all[3] = {true, true, true};

START_TEST(median_and_range) {
  const double odd[] = {5, 1, 9, 3, 7}, even[] = {4, 1, 3, 2};
  const weft_bench_spread a = weft_bench_spread_of(odd, 5), b = weft_bench_spread_of(even, 4);
  ck_assert_double_eq(a.median, 5);
  ck_assert_double_eq(a.min, 1);
  ck_assert_double_eq(a.max, 9);
  ck_assert_double_eq(b.median, 2.5);
  ck_assert_double_eq(odd[0], 5); // the values keep their order
}
END_TEST

START_TEST(quantiles) {
  const double values[] = {5, 1, 10, 3, 7, 2, 8, 9, 4, 6}, one[] = {3};
  ck_assert_double_eq(weft_bench_quantile_of(values, 10, 0.9), 9);
  // 8 would be exceeded by two values
  ck_assert_double_eq(weft_bench_quantile_of(values, 10, 0.85), 9);
  ck_assert_double_eq(weft_bench_quantile_of(values, 10, 1), 10);
  ck_assert_double_eq(weft_bench_quantile_of(values, 9, 0.5), 5);
  ck_assert_double_eq(weft_bench_quantile_of(one, 1, 0.9), 3);
  ck_assert_double_eq(values[0], 5); // the values keep their order
}
END_TEST

// A ratio is computed per round, so that a disturbance of both candidates cancels out.
START_TEST(ratio_is_of_rounds) {
  const double a[] = {10, 30, 10}, b[] = {5, 15, 5};
  const weft_bench_ratio ratio = weft_bench_ratio_of(a, all, b, all, 3, 3);
  ck_assert_double_eq(ratio.spread.min, 2);
  ck_assert_double_eq(ratio.spread.max, 2);
  ck_assert(ratio.separable);
}
END_TEST

START_TEST(noise_refuses_a_ratio) {
  const double a[] = {1.00, 1.02, 1.10}, b[] = {1, 1, 1};
  ck_assert(!weft_bench_ratio_of(a, all, b, all, 3, 3).separable); // 2 % apart, 10 % wide
  const double c[] = {1.20, 1.21, 1.25};
  ck_assert(weft_bench_ratio_of(c, all, b, all, 3, 3).separable); // 21 % apart, 5 % wide
  ck_assert(!weft_bench_ratio_of(b, all, b, all, 3, 3).separable);
}
END_TEST

START_TEST(disturbed_rounds_are_left_out) {
  const double a[] = {2, 2, 9}, b[] = {1, 1, 1};
  const bool usable[] = {true, true, false};
  const weft_bench_ratio ratio = weft_bench_ratio_of(a, all, b, usable, 3, 2);
  ck_assert_uint_eq(ratio.rounds, 2);
  ck_assert_double_eq(ratio.spread.max, 2);
  ck_assert(ratio.separable);
  ck_assert(!weft_bench_ratio_of(a, all, b, usable, 3, 3).separable); // too few rounds
}
END_TEST

START_TEST(ranges) {
  const weft_bench_spread a = {2, 1, 3}, b = {5, 3.5, 6}, c = {3, 2.5, 4};
  ck_assert(weft_bench_ranges_apart(&a, &b));
  ck_assert(weft_bench_ranges_apart(&b, &a));
  ck_assert(!weft_bench_ranges_apart(&a, &c));
}
END_TEST

int main(void) {
  Suite *const suite = suite_create("bench/stats");
  TCase *const tests = tcase_create("stats");
  tcase_add_test(tests, median_and_range);
  tcase_add_test(tests, quantiles);
  tcase_add_test(tests, ratio_is_of_rounds);
  tcase_add_test(tests, noise_refuses_a_ratio);
  tcase_add_test(tests, disturbed_rounds_are_left_out);
  tcase_add_test(tests, ranges);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
