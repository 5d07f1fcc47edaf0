// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L // mkstemp
#include "tests/bench/whole_run.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

char whole_run_path[2][256];

void whole_run_paths(void) {
  const char *const folder = getenv("TEST_TMPDIR");
  for (int i = 0; i < 2; i++) {
    snprintf(whole_run_path[i], sizeof whole_run_path[i], "%.200s/report-XXXXXX",
             folder ? folder : "/tmp");
    const int file = mkstemp(whole_run_path[i]);
    ck_assert_int_ge(file, 0);
    close(file);
  }
}

void whole_run_remove_paths(void) {
  unlink(whole_run_path[0]);
  unlink(whole_run_path[1]);
}

int whole_run(const char *const *arguments) {
  char *argv[32] = {0};
  int argc = 0;
  for (; arguments[argc]; argc++) {
    argv[argc] = strdup(arguments[argc]);
    ck_assert_ptr_nonnull(argv[argc]);
  }
  const int status = weft_bench_main(argc, argv);
  for (int i = 0; i < argc; i++)
    free(argv[i]);
  return status;
}

double whole_run_number(const json_t *object, const char *key) {
  const json_t *const value = json_object_get(object, key);
  ck_assert_msg(json_is_number(value), "no number '%s'", key);
  return json_number_value(value);
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Checks that the median rate follows from the repetitions, whose number is odd.
static void check_case(const json_t *entry) {
  const json_t *const seconds = json_object_get(entry, "seconds_per_call");
  const size_t reps = json_array_size(seconds);
  const char *const id = json_string_value(json_object_get(entry, "id"));
  ck_assert_ptr_nonnull(id);
  ck_assert_msg(reps >= 9 && reps % 2 == 1, "%s has %zu repetitions", id, reps);
  double *const sorted = calloc(reps, sizeof(double));
  for (size_t i = 0; i < reps; i++)
    sorted[i] = json_number_value(json_array_get(seconds, i));
  qsort(sorted, reps, sizeof(double), ascending);
  ck_assert_msg(sorted[0] > 0, "%s took no time", id);
  const json_t *const amounts = json_object_get(entry, "amount_per_call");
  const json_t *const rates = json_object_get(entry, "gigabytes_per_second");
  ck_assert_uint_gt(json_object_size(amounts), 0);
  const char *metric = NULL;
  json_t *amount = NULL;
  json_object_foreach((json_t *)(uintptr_t)amounts, metric, amount) {
    const double expected = json_number_value(amount) / sorted[reps / 2] * 1e-9;
    const double got = whole_run_number(json_object_get(rates, metric), "median");
    ck_assert_msg(got > expected * 0.999 && got < expected * 1.001, "%s: %s is %g, not %g", id,
                  metric, got, expected);
  }
  free(sorted);
}

static double number_or_0(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static void check_amount(const json_t *entry, const char *metric, double expected) {
  const double got = number_or_0(json_object_get(entry, "amount_per_call"), metric);
  ck_assert_msg(got > expected * (1 - 1e-8) && got < expected * (1 + 1e-8), "%s: %s is %g, not %g",
                json_string_value(json_object_get(entry, "id")), metric, got, expected);
}

// Checks the amounts: n sources of k bytes, m outputs, and one product per source and output. An
// update has one source, a recovery as many outputs as lost shards, and decoding as many as
// sources.
static void check_amounts(const json_t *entry) {
  static const char *const known[] = {
      "encode",       "encode-fresh", "encode-seeded", "encode-one",      "recode", "recode-one",
      "decode-eager", "decode-batch", "decode-multi",  "decode-deferred", "gemm",   "recover",
      "progress",     "verify",       "add delta",     "update"};
  const char *const operation = json_string_value(json_object_get(entry, "operation"));
  size_t i = 0;
  while (i < sizeof known / sizeof *known && strcmp(operation, known[i]) != 0)
    i++;
  if (i == sizeof known / sizeof *known)
    return;
  const double n = whole_run_number(entry, "n"), k = whole_run_number(entry, "k");
  const double m = whole_run_number(entry, "m");
  const bool update = strcmp(operation, "add delta") == 0 || strcmp(operation, "update") == 0;
  const double sources = update ? 1 : n;
  const double outputs = strcmp(operation, "recover") == 0 && n < m ? n : m;
  check_amount(entry, "output", outputs * k);
  check_amount(entry, "input", (strncmp(operation, "decode", 6) == 0 ? m : sources) * k);
  // Operations with XORs have none.
  if (json_object_get(json_object_get(entry, "amount_per_call"), "products"))
    check_amount(entry, "products", sources * outputs * k);
}

// Returns the case with this id in a group if there is exactly one, else NULL.
static const json_t *the_case(const json_t *group, const char *id) {
  const json_t *found = NULL;
  size_t c = 0;
  json_t *entry = NULL;
  json_array_foreach(json_object_get(group, "cases"), c, entry) {
    if (strcmp(json_string_value(json_object_get(entry, "id")), id) != 0)
      continue;
    if (found)
      return NULL;
    found = entry;
  }
  return found;
}

// Checks that a quotient of rates is the median of the quotients of the rounds. All nine rounds
// count: fewer undisturbed ones are too few, and then all are taken. `times`: multiplier of the
// second rate.
static void check_quotient(const json_t *quotient, const json_t *of, const json_t *over,
                           const char *metric, double times) {
  const json_t *const a = json_object_get(of, "seconds_per_call");
  const json_t *const b = json_object_get(over, "seconds_per_call");
  double quotients[9];
  if (json_array_size(a) != 9)
    return;
  const double amounts = number_or_0(json_object_get(of, "amount_per_call"), metric) /
                         number_or_0(json_object_get(over, "amount_per_call"), metric);
  for (size_t i = 0; i < 9; i++)
    quotients[i] = amounts / times * json_number_value(json_array_get(b, i)) /
                   json_number_value(json_array_get(a, i));
  qsort(quotients, 9, sizeof *quotients, ascending);
  const double got = whole_run_number(quotient, "median");
  ck_assert_msg(got > quotients[4] * 0.999 && got < quotients[4] * 1.001,
                "%s over %s is %g, not %g", json_string_value(json_object_get(of, "id")),
                json_string_value(json_object_get(over, "id")), got, quotients[4]);
}

static void check_quotients(const json_t *group) {
  size_t i = 0;
  json_t *entry = NULL;
  json_array_foreach(json_object_get(group, "cases"), i, entry) {
    const json_t *const share = json_object_get(entry, "share_of_ceiling");
    if (!share || json_object_get(share, "or_ceiling")) // the lower of two ceilings, round by round
      continue;
    const char *const metric = json_string_value(json_object_get(share, "metric"));
    const json_t *const over =
        the_case(group, json_string_value(json_object_get(share, "ceiling")));
    // Threads share the output bandwidth; arithmetic is per core.
    const double times = strcmp(metric, "output") == 0 ? 1 : whole_run_number(entry, "threads");
    if (over)
      check_quotient(share, entry, over, metric, times);
  }
  json_array_foreach(json_object_get(group, "ratios"), i, entry) {
    const json_t *const of = the_case(group, json_string_value(json_object_get(entry, "of")));
    const json_t *const over = the_case(group, json_string_value(json_object_get(entry, "over")));
    if (of && over)
      check_quotient(entry, of, over, json_string_value(json_object_get(entry, "metric")), 1);
  }
}

size_t whole_run_check(const char *file, const char *operation) {
  json_error_t error;
  json_t *const root = json_load_file(file, 0, &error);
  ck_assert_msg(root != NULL, "%s: %s", file, error.text);
  static const char *const keys[] = {"command", "date",   "commit",  "compiler", "flags",
                                     "seed",    "method", "machine", "took_s"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    ck_assert_msg(json_object_get(root, keys[i]) != NULL, "the report lacks '%s'", keys[i]);
  size_t w = 0;
  json_t *word = NULL;
  json_array_foreach(json_object_get(root, "command"), w, word) ck_assert_msg(
      strchr(json_string_value(word), '/') == NULL, "%s names a place", json_string_value(word));
  ck_assert_uint_gt(
      strlen(json_string_value(json_object_get(json_object_get(root, "machine"), "cpu"))), 0);
  size_t found = 0, g = 0, c = 0;
  json_t *group = NULL, *entry = NULL;
  json_array_foreach(json_object_get(root, "groups"), g, group) {
    json_array_foreach(json_object_get(group, "cases"), c, entry) {
      check_case(entry);
      check_amounts(entry);
      found += strcmp(json_string_value(json_object_get(entry, "operation")), operation) == 0;
    }
    check_quotients(group);
  }
  json_decref(root);
  return found;
}
