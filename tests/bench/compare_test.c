// SPDX-License-Identifier: Apache-2.0
// `weft bench compare`: what it reports about two files of results, and which it cannot read.
#define _POSIX_C_SOURCE 200809L // dup2
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "bench/bench.h"
#include "tests/bench/whole_run.h"
#include "tests/support/test_main.h"

// Returns what the comparison prints; the caller frees it.
static char *compared(const char *first, const char *second, int expected) {
  char output[300];
  snprintf(output, sizeof output, "%s.out", whole_run_path[0]);
  fflush(stdout);
  const int terminal = dup(STDOUT_FILENO);
  ck_assert_ptr_nonnull(freopen(output, "w", stdout));
  const int status = whole_run((const char *[]){"weft bench", "compare", first, second, NULL});
  fflush(stdout);
  ck_assert_int_ge(dup2(terminal, STDOUT_FILENO), 0);
  close(terminal);
  ck_assert_int_eq(status, expected);
  FILE *const file = fopen(output, "r");
  ck_assert_ptr_nonnull(file);
  char *const text = calloc(1, 65536);
  ck_assert_uint_lt(fread(text, 1, 65535, file), 65535);
  fclose(file);
  unlink(output);
  return text;
}

static void compare_says(const char *first, const char *second, const char *const *wanted) {
  char *const text = compared(first, second, 0);
  for (; *wanted; wanted++)
    ck_assert_msg(strstr(text, *wanted) != NULL, "no '%s' in:\n%s", *wanted, text);
  free(text);
}

// Writes a report of two cases with known times: nine repetitions around `first_s` and `second_s`
// seconds, and a share of the ceiling. The second case is left out if its time is 0.
static void write_report(const char *file, const char *commit, double first_s, double second_s,
                         double share) {
  json_t *const cases = json_array();
  for (int c = 0; c < (second_s > 0 ? 2 : 1); c++) {
    json_t *const seconds = json_array();
    for (int i = 0; i < 9; i++)
      json_array_append_new(seconds, json_real((c == 0 ? first_s : second_s) * (1 + i / 1000.0)));
    json_array_append_new(cases, json_pack("{s:s, s:o, s:{s:f}}", "id", c == 0 ? "one" : "two",
                                           "seconds_per_call", seconds, "share_of_ceiling",
                                           "median", share));
  }
  json_t *const root = json_pack("{s:i, s:s, s:[{s:s, s:o}]}", "schema", 1, "commit", commit,
                                 "groups", "title", "shape", "cases", cases);
  ck_assert_int_eq(json_dump_file(root, file, 0), 0);
  json_decref(root);
}

// Gives the second case the id of the first, as operations on several segments have.
static void repeat_id(const char *file) {
  json_t *const root = json_load_file(file, 0, NULL);
  json_t *const group = json_array_get(json_object_get(root, "groups"), 0);
  json_t *const second = json_array_get(json_object_get(group, "cases"), 1);
  ck_assert_int_eq(json_object_set_new(second, "id", json_string("one")), 0);
  ck_assert_int_eq(json_dump_file(root, file, 0), 0);
  json_decref(root);
}

START_TEST(compare_says_what_changed) {
  whole_run_paths();
  write_report(whole_run_path[0], "aaa", 2e-3, 5e-3, 0.5);
  write_report(whole_run_path[1], "bbb", 1e-3, 5e-3, 0.75);
  compare_says(whole_run_path[0], whole_run_path[1],
               (const char *[]){"commit: aaa -> bbb\n", "  one ", "x2.000, apart by 98.4 %",
                                "share of ceiling 50.0 % -> 75.0 %\n",
                                "1 changed, 1 not separable, 0 without counterpart\n", NULL});
  compare_says(whole_run_path[1], whole_run_path[0], // slower: the reverse comparison
               (const char *[]){"x0.500, apart by 98.4 %", "1 changed, 1 not separable", NULL});
  char *const text = compared(whole_run_path[0], whole_run_path[1], 0);
  ck_assert_msg(strstr(text, "two") == NULL, "a case that is the same is listed:\n%s", text);
  free(text);
  write_report(whole_run_path[1], "aaa", 2.001e-3, 0,
               0.5); // the ranges overlap; the second case is missing
  compare_says(whole_run_path[0], whole_run_path[1],
               (const char *[]){"  only in the first: two\n",
                                "0 changed, 1 not separable, 1 without counterpart\n", NULL});
  compare_says(whole_run_path[1], whole_run_path[0],
               (const char *[]){"  only in the second: two\n",
                                "0 changed, 1 not separable, 1 without counterpart\n", NULL});
  write_report(whole_run_path[1], "bbb", 1e-3, 5e-3, 0.75);
  repeat_id(whole_run_path[0]);
  repeat_id(whole_run_path[1]);
  compare_says(whole_run_path[0], whole_run_path[1],
               (const char *[]){"1 changed, 1 not separable, 0 without counterpart\n", NULL});
  whole_run_remove_paths();
}
END_TEST

START_TEST(compare_reports) {
  whole_run_paths();
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "mul", "--quick", "--rep-ms", "1", "--rows",
                                 "scalar", "--n", "4", "--k", "64", "--m", "1", "--isal", "",
                                 "--json", whole_run_path[0], NULL}),
      0);
  compare_says(whole_run_path[0], whole_run_path[0],
               (const char *[]){"0 changed, ", " 0 without counterpart\n", NULL});
  FILE *const spoilt = fopen(whole_run_path[1], "w");
  ck_assert_ptr_nonnull(spoilt);
  fputs("{\"schema\": 1, \"groups\": [", spoilt);
  fclose(spoilt);
  free(compared(whole_run_path[0], whole_run_path[1], WEFT_BENCH_IO));
  write_report(whole_run_path[1], "aaa", 1e-3, 0, 0.5);
  json_t *const other = json_load_file(whole_run_path[1], 0, NULL);
  json_object_set_new(other, "schema", json_integer(99));
  ck_assert_int_eq(json_dump_file(other, whole_run_path[1], 0), 0);
  json_decref(other);
  free(compared(whole_run_path[0], whole_run_path[1], WEFT_BENCH_IO));
  whole_run_remove_paths();
}
END_TEST

// Without times there is nothing to compare, which must not look like "nothing changed".
START_TEST(compare_of_no_times) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "banks", "--quick", "--json",
                                              whole_run_path[0], NULL}),
                   0);
  free(compared(whole_run_path[0], whole_run_path[0], WEFT_BENCH_IO));
  whole_run_remove_paths();
}
END_TEST

START_TEST(compare_servers) {
  whole_run_paths();
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "server", "--quick", "--rep-ms", "1", "--threads",
                                 "1", "--operations", "closed", "--json", whole_run_path[0], NULL}),
      0);
  compare_says(whole_run_path[0], whole_run_path[0],
               (const char *[]){"0 changed, ", " 0 without counterpart\n", NULL});
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "serve"), 6); // more where there is a device
  whole_run_remove_paths();
}
END_TEST

int main(void) {
  Suite *const suite = suite_create("bench/compare");
  TCase *const tests = tcase_create("compare");
  tcase_add_test(tests, compare_says_what_changed);
  tcase_add_test(tests, compare_reports);
  tcase_add_test(tests, compare_of_no_times);
  tcase_add_test(tests, compare_servers);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
