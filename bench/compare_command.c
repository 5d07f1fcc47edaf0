// SPDX-License-Identifier: Apache-2.0
// `weft bench compare A.json B.json`: what changed beyond noise. A case changed if the ranges of
// its repetitions do not overlap. If the core ran at another speed, the shares of the ceilings show
// whether the code changed or the machine.
#define _POSIX_C_SOURCE 200809L // S_ISDIR
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/commands.h"
#include "bench/provenance.h"
#include "bench/stats.h"
#include "tools/printable.h"

static json_t *load(const char *file) {
  json_error_t error;
  struct stat about;
  if (stat(file, &about) == 0 && S_ISDIR(about.st_mode)) { // else taken for an empty file
    weft_print(stderr, "weft bench compare: %s: %s\n", file, strerror(EISDIR));
    return NULL;
  }
  json_t *const root = json_load_file(file, 0, &error);
  if (!root) {
    if (error.line > 0)
      weft_print(stderr, "weft bench compare: %s: %s (line %d)\n", file, error.text, error.line);
    else
      weft_print(stderr, "weft bench compare: %s\n", error.text); // this text names the file
    return NULL;
  }
  if (json_integer_value(json_object_get(root, "schema")) != WEFT_BENCH_SCHEMA ||
      !json_is_array(json_object_get(root, "groups"))) {
    weft_print(stderr, "weft bench compare: %s is not a report of this version of weft bench\n",
               file);
    json_decref(root);
    return NULL;
  }
  return root;
}

static const char *text_at(const json_t *object, const char *key) {
  const char *const text = json_string_value(json_object_get(object, key));
  return text ? text : "unknown";
}

// Prints in what the two runs differ, because that may explain any change.
static void print_differences(const json_t *a, const json_t *b) {
  static const char *const keys[] = {"commit", "compiler", "flags"};
  static const char *const machine_keys[] = {"cpu", "system"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strcmp(text_at(a, keys[i]), text_at(b, keys[i])) != 0)
      weft_print(stdout, "%s: %s -> %s\n", keys[i], text_at(a, keys[i]), text_at(b, keys[i]));
  const json_t *const machine_a = json_object_get(a, "machine");
  const json_t *const machine_b = json_object_get(b, "machine");
  for (size_t i = 0; i < sizeof machine_keys / sizeof *machine_keys; i++)
    if (strcmp(text_at(machine_a, machine_keys[i]), text_at(machine_b, machine_keys[i])) != 0)
      weft_print(stdout, "machine: %s -> %s\n", text_at(machine_a, machine_keys[i]),
                 text_at(machine_b, machine_keys[i]));
}

// Returns the nth case, from 0, with this id in the groups of this title; NULL if there is none.
// Ids repeat: a read of the same size in two groups, the same operation on more segments within
// one.
static const json_t *find_case(const json_t *root, const char *title, const char *id, size_t nth) {
  size_t g = 0, c = 0;
  json_t *group = NULL, *entry = NULL;
  json_array_foreach(json_object_get(root, "groups"), g, group) {
    if (strcmp(text_at(group, "title"), title) != 0)
      continue;
    json_array_foreach(json_object_get(group, "cases"), c, entry) {
      if (strcmp(text_at(entry, "id"), id) == 0 && nth-- == 0)
        return entry;
    }
  }
  return NULL;
}

// Returns the other report's case at the same position among the cases of its id.
static const json_t *find_counterpart(const json_t *root, const json_t *other, const char *title,
                                      const json_t *entry) {
  const char *const id = text_at(entry, "id");
  size_t nth = 0;
  while (find_case(root, title, id, nth) != entry)
    nth++;
  return find_case(other, title, id, nth);
}

// Returns false if the case has no times.
static bool times_of(const json_t *entry, weft_bench_spread *out) {
  const json_t *const seconds = json_object_get(entry, "seconds_per_call");
  const size_t count = json_array_size(seconds);
  if (count == 0)
    return false;
  double *const values = weft_bench_alloc(count, sizeof(double));
  for (size_t i = 0; i < count; i++)
    values[i] = json_number_value(json_array_get(seconds, i));
  *out = weft_bench_spread_of(values, count);
  free(values);
  return out->min > 0;
}

static void print_share(const json_t *a, const json_t *b) {
  const json_t *const share_a = json_object_get(a, "share_of_ceiling");
  const json_t *const share_b = json_object_get(b, "share_of_ceiling");
  if (share_a && share_b)
    printf("; share of ceiling %.1f %% -> %.1f %%",
           100 * json_number_value(json_object_get(share_a, "median")),
           100 * json_number_value(json_object_get(share_b, "median")));
  printf("\n");
}

typedef struct case_counts {
  size_t changed, same, missing;
} case_counts;

// Lists cases that `root` has and `other` lacks, or has without times.
static void list_missing(const json_t *root, const json_t *other, const char *which,
                         case_counts *tally) {
  size_t g = 0, c = 0;
  json_t *group = NULL, *entry = NULL;
  weft_bench_spread time;
  json_array_foreach(json_object_get(root, "groups"), g, group) {
    json_array_foreach(json_object_get(group, "cases"), c, entry) {
      const json_t *const counterpart =
          find_counterpart(root, other, text_at(group, "title"), entry);
      if (!times_of(entry, &time) || (counterpart && times_of(counterpart, &time)))
        continue;
      weft_print(stdout, "  only in the %s: %s\n", which, text_at(entry, "id"));
      tally->missing++;
    }
  }
}

static void compare_case(const char *title, const json_t *root_a, const json_t *a,
                         const json_t *root_b, case_counts *tally) {
  const char *const id = text_at(a, "id");
  const json_t *const b = find_counterpart(root_a, root_b, title, a);
  weft_bench_spread time_a, time_b;
  if (!b || !times_of(a, &time_a) || !times_of(b, &time_b))
    return;
  if (!weft_bench_ranges_apart(&time_a, &time_b)) {
    tally->same++;
    return;
  }
  tally->changed++;
  // In speeds: higher is better.
  weft_print(stdout, "  %-48s x%.3f, apart by %.1f %%", id, time_a.median / time_b.median,
             100 * (time_b.median < time_a.median ? time_a.min / time_b.max - 1
                                                  : time_b.min / time_a.max - 1));
  print_share(a, b);
}

int weft_bench_compare_command(int argc, char **argv) {
  const bool help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
  if (argc != 3) {
    fprintf(help ? stdout : stderr, "usage: weft bench compare A.json B.json\n");
    return help ? 0 : WEFT_BENCH_USAGE;
  }
  json_t *const a = load(argv[1]), *const b = load(argv[2]);
  case_counts tally = {0, 0, 0};
  if (a && b) {
    size_t g = 0, c = 0;
    json_t *group = NULL, *entry = NULL;
    print_differences(a, b);
    printf("speed of the second over the first, where the ranges of the repetitions lie apart:\n");
    json_array_foreach(json_object_get(a, "groups"), g, group) {
      json_array_foreach(json_object_get(group, "cases"), c, entry)
          compare_case(text_at(group, "title"), a, entry, b, &tally);
    }
    list_missing(a, b, "first", &tally);
    list_missing(b, a, "second", &tally);
    printf("%zu changed, %zu not separable, %zu without counterpart\n", tally.changed, tally.same,
           tally.missing);
  }
  const bool compared = tally.changed + tally.same + tally.missing > 0;
  if (a && b && !compared)
    fprintf(stderr, "weft bench compare: neither report has a case with times\n");
  const int failed = compared ? 0 : WEFT_BENCH_IO;
  json_decref(a);
  json_decref(b);
  return failed;
}
