// SPDX-License-Identifier: Apache-2.0
// Whole runs of `weft bench decoder` and `weft bench pool` on tiny shapes: the cases of their
// reports, and that the figures follow from the times.
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "bench/bench.h"
#include "kernels/backend.h"
#include "kernels/cpu.h"
#include "tests/bench/whole_run.h"
#include "tests/support/test_main.h"

START_TEST(the_parts_of_a_decoder) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "decoder", "--quick", "--rep-ms", "1",
                                              "--n", "4,9", "--k", "130", "--rows", "best,scalar",
                                              "--seed", "1", "--json", whole_run_path[0], NULL}),
                   0);
  static const char *const operations[] = {"eliminate", "reduce", "decode-deferred", "recode-one"};
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    ck_assert_uint_eq(whole_run_check(whole_run_path[0], operations[i]), 4);
  json_t *const root = json_load_file(whole_run_path[0], 0, NULL), *group = NULL, *entry = NULL;
  size_t g = 0, c = 0;
  json_array_foreach(json_object_get(root, "groups"), g, group) {
    json_array_foreach(json_object_get(group, "cases"), c, entry) {
      const char *const operation = json_string_value(json_object_get(entry, "operation"));
      if (strcmp(operation, "eliminate") == 0 || strcmp(operation, "reduce") == 0)
        ck_assert_str_eq(json_string_value(json_object_get(entry, "checked")),
                         "all bytes equal the source");
    }
  }
  json_decref(root);
  whole_run_remove_paths();
}
END_TEST

static size_t host_rows(void) {
  const weft_machine here = {.cpu = weft_cpu_features()};
  size_t rows = 0;
  for (size_t i = 0; i < weft_backend_count; i++)
    rows += weft_backends[i].mem == WEFT_MEM_HOST && weft_backend_runs_on(&weft_backends[i], &here);
  return rows;
}

// No row is dropped, however many this machine has: not of all, and not of a longer list.
START_TEST(every_row) {
  whole_run_paths();
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "decoder", "--quick", "--rep-ms", "1", "--n", "4",
                                 "--k", "64", "--rows", "all", "--json", whole_run_path[0], NULL}),
      0);
  ck_assert_uint_eq(whole_run_check(whole_run_path[0], "reduce"), host_rows());
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "rlnc", "--quick", "--rep-ms", "1", "--n", "4",
                                 "--k", "64", "--threads", "1", "--rows", "all", "--isal", "",
                                 "--json", whole_run_path[0], NULL}),
      0);
  ck_assert_uint_eq(whole_run_check(whole_run_path[0], "recode-one"), host_rows());
  char list[40 * sizeof "scalar,"] = "";
  for (int i = 0; i < 40; i++)
    strcat(list, "scalar,");
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "mul", "--quick", "--rep-ms", "1",
                                              "--n", "2", "--k", "64", "--m", "1", "--rows", list,
                                              "--isal", "", "--json", whole_run_path[0], NULL}),
                   0);
  ck_assert_uint_eq(whole_run_check(whole_run_path[0], "gemm"), 40);
  whole_run_remove_paths();
}
END_TEST

// Returns the share of the busiest thread: each of the 56 tasks runs on one thread, a product is
// divided.
static double share_of(const json_t *entry) {
  const size_t threads = (size_t)whole_run_number(entry, "threads");
  return json_object_get(entry, "task_us") ? (double)((56 + threads - 1) / threads) / 56
                                           : 1 / (double)threads;
}

static const json_t *reps_of(const json_t *entry, const char *key) {
  const json_t *const all = json_object_get(entry, key);
  ck_assert_uint_eq(json_array_size(all), 9);
  return all;
}

static void check_job(const json_t *first, const json_t *entry) {
  const json_t *const one = reps_of(first, "seconds_per_call");
  const json_t *const median = reps_of(entry, "seconds_per_call");
  const json_t *const most = reps_of(entry, "nine_in_ten_seconds");
  const json_t *const share = reps_of(entry, "share_seconds");
  for (size_t i = 0; i < 9; i++) {
    const double share_s = json_number_value(json_array_get(one, i)) * share_of(entry);
    ck_assert_double_gt(json_number_value(json_array_get(median, i)), 0);
    ck_assert_double_ge(json_number_value(json_array_get(most, i)),
                        json_number_value(json_array_get(median, i)));
    ck_assert_double_eq_tol(json_number_value(json_array_get(share, i)), share_s, share_s * 1e-6);
  }
  ck_assert_uint_eq((size_t)whole_run_number(json_object_get(entry, "over_share"), "rounds"), 9);
  ck_assert_double_ge(whole_run_number(entry, "jobs"), 9 * 20);
}

static void check_table(const json_t *group, const char *operation) {
  static const int threads[] = {1, 1, 2, 2, 3, 3}, pauses[] = {0, 50, 0, 50, 0, 50};
  const json_t *const cases = json_object_get(group, "cases"), *entry = NULL;
  size_t c = 0;
  ck_assert_uint_eq(json_array_size(cases), 6);
  json_array_foreach(cases, c, entry) {
    ck_assert_str_eq(json_string_value(json_object_get(entry, "operation")), operation);
    ck_assert_double_eq(whole_run_number(entry, "threads"), threads[c]);
    ck_assert_double_eq(whole_run_number(entry, "pause_us"), pauses[c]);
    check_job(json_array_get(cases, 0), entry);
  }
}

// One thread is always measured, even if not requested, as shares are relative to it.
START_TEST(jobs_of_a_pool) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "pool", "--quick", "--rep-ms", "1",
                                              "--threads", "2,3", "--pauses", "50", "--n", "8",
                                              "--k", "130", "--json", whole_run_path[0], NULL}),
                   0);
  json_t *const root = json_load_file(whole_run_path[0], 0, NULL);
  const json_t *const groups = json_object_get(root, "groups");
  ck_assert_uint_eq(json_array_size(groups), 2);
  check_table(json_array_get(groups, 0), "tasks");
  check_table(json_array_get(groups, 1), "encode");
  json_decref(root);
  whole_run_remove_paths();
}
END_TEST

START_TEST(one_kind_of_job) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "pool", "--quick", "--rep-ms", "1",
                                              "--threads", "1", "--pauses", "9", "--operations",
                                              "tasks", "--json", whole_run_path[0], NULL}),
                   0);
  json_t *const root = json_load_file(whole_run_path[0], 0, NULL);
  const json_t *const groups = json_object_get(root, "groups");
  ck_assert_uint_eq(json_array_size(groups), 1);
  ck_assert_uint_eq(json_array_size(json_object_get(json_array_get(groups, 0), "cases")), 2);
  json_decref(root);
  whole_run_remove_paths();
}
END_TEST

START_TEST(wrong_arguments) {
  static const char *const wrong[][5] = {
      {"weft bench", "decoder", "--n", "1025", NULL},
      {"weft bench", "decoder", "--k", "0", NULL},
      {"weft bench", "decoder", "--rows", "no-such-row", NULL},
      {"weft bench", "decoder", "--threads", "2", NULL}, // it runs on one thread
      {"weft bench", "decoder", "--cold", NULL},         // undefined for a decoder
      {"weft bench", "decoder", "--pauses", "50", NULL},
      {"weft bench", "decoder", "surplus", NULL},
      {"weft bench", "pool", "--n", "64,128", NULL}, // it measures a single n
      {"weft bench", "pool", "--rows", "scalar,scalar", NULL},
      {"weft bench", "pool", "--rows", "all", NULL},
      {"weft bench", "pool", "--rows", "", NULL},
      {"weft bench", "pool", "--threads", "0", NULL},
      {"weft bench", "pool", "--threads", "5000", NULL},
      {"weft bench", "pool", "--pauses", "0", NULL}, // that is measured anyway
      {"weft bench", "pool", "--pauses", "100001", NULL},
      {"weft bench", "pool", "--pauses", "3ms", NULL},
      {"weft bench", "pool", "--operations", "tasks,no-such", NULL},
      {"weft bench", "pool", "--cold", NULL},
      {"weft bench", "pool", "--reps", "8", NULL},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ck_assert_msg(whole_run(wrong[i]) == WEFT_BENCH_USAGE, "arguments %zu were accepted", i);
}
END_TEST

int main(void) {
  Suite *const suite = suite_create("bench/parts");
  TCase *const tests = tcase_create("parts");
  tcase_add_test(tests, the_parts_of_a_decoder);
  tcase_add_test(tests, every_row);
  tcase_add_test(tests, jobs_of_a_pool);
  tcase_add_test(tests, one_kind_of_job);
  tcase_add_test(tests, wrong_arguments);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
