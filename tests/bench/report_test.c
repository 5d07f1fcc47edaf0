// SPDX-License-Identifier: Apache-2.0
// Whole runs of `weft bench` on tiny shapes: a report must name its origin and contain every
// repetition, its figures must follow from them, and wrong arguments must be refused.
#define _GNU_SOURCE // lstat
#include <check.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "bench/bench.h"
#include "kernels/device.h"
#include "tests/bench/whole_run.h"
#include "tests/support/test_main.h"

START_TEST(rlnc_report) {
  whole_run_paths();
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "rlnc", "--quick", "--rep-ms", "1", "--n", "8,16",
                                 "--k", "130", "--isal", "", "--json", whole_run_path[0], NULL}),
      0);
  ck_assert_uint_eq(whole_run_check(whole_run_path[0], "recode-one"), 2);
  char part[300];
  snprintf(part, sizeof part, "%s.part", whole_run_path[0]);
  ck_assert_int_ne(access(part, F_OK), 0); // only a stopped run leaves one
  whole_run_remove_paths();
}
END_TEST

// Without permission to create files in the report's folder, the report is still written.
START_TEST(a_report_in_a_folder_of_others) {
  whole_run_paths();
  whole_run_remove_paths();
  const char *const folder = whole_run_path[0];
  char report[300];
  snprintf(report, sizeof report, "%s/report.json", folder);
  ck_assert_int_eq(mkdir(folder, 0755), 0);
  FILE *const before = fopen(report, "w");
  ck_assert(before && fclose(before) == 0 && chmod(folder, 0555) == 0);
  const pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) { // drop root's rights, which would let it in
    struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}};
    if (syscall(SYS_capset, &version, none) != 0)
      _exit(99);
    _exit(whole_run((const char *[]){"weft bench", "rlnc", "--quick", "--rep-ms", "1", "--n", "8",
                                     "--k", "64", "--operations", "encode", "--isal", "", "--json",
                                     report, NULL}));
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ck_assert_uint_ge(whole_run_check(report, "encode"), 1);
  ck_assert(chmod(folder, 0755) == 0 && unlink(report) == 0 && rmdir(folder) == 0);
}
END_TEST

// If FILE.part is a link, its target is not written, and FILE does not become a link.
START_TEST(what_is_beside_a_report_is_replaced) {
  whole_run_paths();
  char part[300];
  struct stat about;
  snprintf(part, sizeof part, "%s.part", whole_run_path[0]);
  ck_assert_int_eq(symlink(whole_run_path[1], part), 0);
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "rlnc", "--quick", "--rep-ms", "1",
                                              "--n", "8", "--k", "64", "--operations", "encode",
                                              "--isal", "", "--json", whole_run_path[0], NULL}),
                   0);
  ck_assert(lstat(whole_run_path[0], &about) == 0 && S_ISREG(about.st_mode));
  ck_assert(lstat(whole_run_path[1], &about) == 0 && about.st_size == 0);
  ck_assert_int_ne(lstat(part, &about), 0);
  whole_run_remove_paths();
}
END_TEST

START_TEST(cold_report) {
  whole_run_paths();
  char json[300];
  snprintf(json, sizeof json, "--json=%s", whole_run_path[0]);
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "rlnc", "--quick", "--rep-ms", "1", "--n", "8",
                                 "--k", "1K", "--cold", "--small-pages", "--operations",
                                 "encode,decode-batch,recode-one", "--isal", "", json, NULL}),
      0);
  ck_assert_uint_eq(whole_run_check(whole_run_path[0], "decode-batch"), 1);
  ck_assert_uint_eq(whole_run_check(whole_run_path[0], "recode-one"), 1);
  ck_assert_uint_eq(whole_run_check(whole_run_path[0], "recode"), 0);
  whole_run_remove_paths();
}
END_TEST

// Five ratios are reported for each number of threads; none may be dropped for lack of room.
START_TEST(every_ratio_of_many_threads) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench",
                                              "rlnc",
                                              "--quick",
                                              "--rep-ms",
                                              "1",
                                              "--n",
                                              "8",
                                              "--k",
                                              "130",
                                              "--rows",
                                              "best",
                                              "--operations",
                                              "encode,decode-multi",
                                              "--threads",
                                              "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
                                              "--isal",
                                              "",
                                              "--json",
                                              whole_run_path[0],
                                              NULL}),
                   0);
  json_t *const root = json_load_file(whole_run_path[0], 0, NULL);
  const json_t *const group = json_array_get(json_object_get(root, "groups"), 0);
  const json_t *ratio = NULL;
  size_t many = 0, r = 0;
  json_array_foreach(json_object_get(group, "ratios"), r, ratio) many +=
      strcmp(json_string_value(json_object_get(ratio, "name")),
             "encode: full block / partitioned block") == 0;
  ck_assert_uint_eq(many, 15);
  json_decref(root);
  whole_run_remove_paths();
}
END_TEST

START_TEST(mul_report) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "mul", "--quick", "--rep-ms", "1",
                                              "--n", "8", "--k", "200", "--m", "3", "--isal", "",
                                              "--json", whole_run_path[0], NULL}),
                   0);
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "gemm"), 3);
  whole_run_remove_paths();
}
END_TEST

START_TEST(storage_report) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "storage", "--quick", "--rep-ms", "1",
                                              "--operations", "small,update,threads", "--shapes",
                                              "5+3", "--bytes", "3K", "--threads", "1,2", "--json",
                                              whole_run_path[0], NULL}),
                   0);
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "encode"), 3);
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "recover"), 2);
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "add delta"), 1);
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "storage", "--quick", "--rep-ms", "1",
                                              "--operations", "crs", "--shapes", "4+2", "--bytes",
                                              "4K", "--json", whole_run_path[0], NULL}),
                   0);
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "encode"), 2);
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "storage", "--quick", "--rep-ms", "1",
                                              "--operations", "crs-update", "--shapes", "4+2",
                                              "--bytes", "4Ki", "--json", whole_run_path[0], NULL}),
                   0);
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "add delta"), 2);
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "progress"), 2);
  // Not a multiple of 16 bytes, for which Jerasure ends the program.
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "storage", "--quick", "--rep-ms", "1",
                                 "--operations", "encode", "--shapes", "4+2", "--bytes", "1001",
                                 "--json", whole_run_path[0], NULL}),
      0);
  ck_assert_uint_ge(whole_run_check(whole_run_path[0], "recover"), 1);
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "storage", "--quick", "--bytes", "4i", NULL}), 2);
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "storage", "--shapes", "4x2",
                                              "--operations", "update", NULL}),
                   2);
  whole_run_remove_paths();
}
END_TEST

// Other libraries code one part per thread, for any number of threads, even if the last part is a
// few bytes longer or Jerasure does not accept its size.
START_TEST(storage_of_many_threads) {
  static const char *const counts[][2] = {{"8320", "65"}, {"4097", "1,64"}};
  whole_run_paths();
  for (size_t i = 0; i < 2; i++) {
    ck_assert_int_eq(whole_run((const char *[]){"weft bench", "storage", "--quick", "--rep-ms", "1",
                                                "--operations", "threads", "--shapes", "4+2",
                                                "--bytes", counts[i][0], "--threads", counts[i][1],
                                                "--json", whole_run_path[0], NULL}),
                     0);
    ck_assert_uint_ge(whole_run_check(whole_run_path[0], "encode"), i + 1);
  }
  whole_run_remove_paths();
}
END_TEST

// If fewer shards are lost than there are parity shards, storing all parity shards is no bound.
START_TEST(what_bounds_a_recovery) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "storage", "--quick", "--rep-ms", "1",
                                              "--operations", "encode", "--shapes", "2+6,6+2",
                                              "--bytes", "4K", "--isal", "", "--jerasure", "",
                                              "--json", whole_run_path[0], NULL}),
                   0);
  json_t *const root = json_load_file(whole_run_path[0], 0, NULL), *group = NULL, *entry = NULL;
  size_t g = 0, c = 0, recoveries = 0;
  json_array_foreach(json_object_get(root, "groups"), g, group) {
    json_array_foreach(json_object_get(group, "cases"), c, entry) {
      if (strcmp(json_string_value(json_object_get(entry, "operation")), "recover") != 0)
        continue;
      const json_t *const share = json_object_get(entry, "share_of_ceiling");
      const char *const alone = json_string_value(json_object_get(share, "ceiling"));
      const bool streams =
          json_object_get(share, "or_ceiling") || (alone && strstr(alone, "streams"));
      ck_assert_int_eq(streams, g == 1);
      recoveries++;
    }
  }
  ck_assert_uint_eq(recoveries, 4);
  json_decref(root);
  whole_run_remove_paths();
}
END_TEST

// Whether a run prints these words; its exit status must be the expected one.
static bool tells(const char *const *arguments, const char *words, int expected) {
  whole_run_paths();
  const int screen = dup(STDOUT_FILENO);
  ck_assert_int_ge(screen, 0);
  fflush(stdout);
  FILE *const file = fopen(whole_run_path[0], "w+");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(dup2(fileno(file), STDOUT_FILENO), STDOUT_FILENO);
  ck_assert_int_eq(whole_run(arguments), expected);
  fflush(stdout);
  ck_assert_int_eq(dup2(screen, STDOUT_FILENO), STDOUT_FILENO);
  close(screen);
  rewind(file);
  char line[512];
  bool told = false;
  while (!told && fgets(line, sizeof line, file))
    told = strstr(line, words) != NULL;
  fclose(file);
  whole_run_remove_paths();
  return told;
}

// What was requested but is not measured is named.
START_TEST(what_is_left_out) {
  static const char *const file = "libm.so.6"; // opens, but has none of their functions
  const char *const library[] = {"weft bench",
                                 "storage",
                                 "--quick",
                                 "--rep-ms",
                                 "1",
                                 "--shapes",
                                 "4+2",
                                 "--bytes",
                                 "1K",
                                 "--operations",
                                 "encode",
                                 "--isal",
                                 "libm.so.6:avx2",
                                 "--jerasure",
                                 file,
                                 "--klauspost",
                                 file,
                                 NULL};
  ck_assert(tells(library, "isa-l is left out: libm.so.6 has no gf_gen_cauchy1_matrix", 0));
  ck_assert(tells(library, "jerasure is left out: libm.so.6 has no reed_sol_", 0));
  ck_assert(tells(library, "klauspost is left out: libm.so.6 has no weft_klauspost_new", 0));
  const char *const products[] = {"weft bench", "rlnc", "--quick", "--rep-ms", "1",  "--n",
                                  "8",          "--k",  "64",      "--isal",   file, NULL};
  ck_assert(tells(products, "isa-l is left out: libm.so.6 has no ec_init_tables", 0));
  static const char *const parts[] = {"crs", "crs-update", "parity"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    const char *const odd[] = {
        "weft bench", "storage",    "--quick", "--rep-ms",     "1",      "--shapes",
        "4+2",        "--bytes",    "100",     "--threads",    "1",      "--isal",
        "",           "--jerasure", "",        "--operations", parts[i], NULL};
    ck_assert_msg(tells(odd, "w = 8 is left out: no packet size divides shards of 100 bytes",
                        strcmp(parts[i], "parity") == 0 ? 0 : WEFT_BENCH_USAGE), // nothing else
                  "%s says nothing", parts[i]);
  }
}
END_TEST

// A link is kept, and its target is created if missing.
START_TEST(a_report_through_a_link) {
  whole_run_paths();
  whole_run_remove_paths();
  const char *const file = whole_run_path[0], *const link = whole_run_path[1];
  ck_assert_int_eq(symlink(file, link), 0);
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "rlnc", "--operations", "no-such",
                                              "--json", link, NULL}),
                   WEFT_BENCH_USAGE);
  struct stat about;
  ck_assert(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
  ck_assert_int_ne(access(file, F_OK), 0);
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "rlnc", "--quick", "--rep-ms", "1",
                                              "--n", "8", "--k", "64", "--operations", "encode",
                                              "--isal", "", "--json", link, NULL}),
                   0);
  ck_assert(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
  ck_assert_uint_ge(whole_run_check(file, "encode"), 1);
  whole_run_remove_paths();
}
END_TEST

// A report that cannot be written is noticed at the start: nothing is measured, no table printed.
START_TEST(unwritable_report) {
  whole_run_paths();
  char folder[300];
  snprintf(folder, sizeof folder, "%s.missing/report.json", whole_run_path[0]);
  static const char *const comparisons[] = {"rlnc", "mul", "ceilings", "gpu", "server"};
  for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
    for (int f = 0; f < 2; f++)
      ck_assert_int_eq(whole_run((const char *[]){"weft bench", comparisons[i], "--quick", "--json",
                                                  f == 0 ? folder : "/", NULL}),
                       WEFT_BENCH_IO);
  // The contents of a file are kept until there is something to replace them.
  FILE *const kept = fopen(whole_run_path[0], "w");
  ck_assert_ptr_nonnull(kept);
  fputs("kept", kept);
  fclose(kept);
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "rlnc", "--rows", "no-such-row",
                                              "--json", whole_run_path[0], NULL}),
                   WEFT_BENCH_USAGE);
  char text[8] = "";
  FILE *const again = fopen(whole_run_path[0], "r");
  ck_assert_ptr_nonnull(again);
  ck_assert_ptr_nonnull(fgets(text, sizeof text, again));
  fclose(again);
  ck_assert_str_eq(text, "kept");
  whole_run_remove_paths();
}
END_TEST

// Bank conflicts that follow without a simulation: with 32 tables each lane has its own bank; 16
// tables of bytes suffice for 16 lanes, and give two of 32 lanes one bank, where they read one word
// or two. Gibraltar's 2.92 is for words.
START_TEST(bank_conflicts) {
  static const struct {
    const char *layout;
    int lanes;
    double low, high;
  } known[] = {{"words x 32", 16, 1, 1},
               {"words x 32", 32, 1, 1},
               {"bytes x 16", 16, 1, 1},
               {"bytes x 16", 32, 1.99, 2},
               {"words", 16, 2.89, 2.95}};
  whole_run_paths();
  ck_assert_int_eq(
      whole_run((const char *[]){"weft bench", "banks", "--json", whole_run_path[0], NULL}), 0);
  json_t *const root = json_load_file(whole_run_path[0], 0, NULL);
  const json_t *const groups = json_object_get(root, "groups");
  ck_assert_uint_eq(json_object_size(json_object_get(root, "method")), 1); // it measures no times
  const json_t *const cases = json_object_get(json_array_get(groups, 0), "cases"), *entry = NULL;
  size_t found = 0, c = 0, r = 0;
  json_array_foreach(cases, c, entry) {
    const json_t *const turns = json_object_get(entry, "conflicts_per_lookup"), *turn = NULL;
    ck_assert_uint_ge(json_array_size(turns), 9);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
      if (strcmp(json_string_value(json_object_get(entry, "layout")), known[i].layout) != 0 ||
          (int)whole_run_number(entry, "lanes") != known[i].lanes)
        continue;
      found++;
      json_array_foreach(turns, r, turn) {
        const double value = json_number_value(turn);
        ck_assert_msg(value >= known[i].low && value <= known[i].high, "%s, %d lanes: %g",
                      known[i].layout, known[i].lanes, value);
      }
    }
  }
  ck_assert_uint_eq(found, sizeof known / sizeof *known);
  json_decref(root);
  whole_run_remove_paths();
}
END_TEST

START_TEST(wrong_arguments) {
  static const char *const wrong[][6] = {
      {"weft bench", "nothing", NULL},
      {"weft bench", "rlnc", "--reps", "8", NULL},
      {"weft bench", "rlnc", "--k", "0", NULL},
      {"weft bench", "rlnc", "--k", "12x", NULL},
      {"weft bench", "rlnc", "--rows", "no-such-row", NULL},
      {"weft bench", "rlnc", "--rows", "", NULL},
      {"weft bench", "mul", "--rows", "no-such-row", NULL},
      {"weft bench", "mul", "--rows", "scalar,,logexp", NULL},
      {"weft bench", "mul", "--rows", "neon,avx2", NULL}, // no machine has both
      {"weft bench", "mul", "--unknown", NULL},
      {"weft bench", "mul", "--threads", "2", NULL}, // belong to other comparisons
      {"weft bench", "rlnc", "--shapes", "4+2", NULL},
      {"weft bench", "storage", "--codes", "cauchy", NULL},       // it was ignored
      {"weft bench", "storage", "--rows", "scalar,scalar", NULL}, // it measures one row
      {"weft bench", "sim", "--cold", NULL},
      {"weft bench", "gpu", "--cold", NULL}, // none of these evicts caches
      {"weft bench", "peer", "--cold", NULL},
      {"weft bench", "server", "--cold", NULL},
      {"weft bench", "storage", "--cold", "--operations=gpu-rs", NULL},
      {"weft bench", "sim", "--m", "30000", "--operations=bytes", NULL},  // none so large
      {"weft bench", "peer", "--operations=code", "--rows", "udp", NULL}, // none is both
      {"weft bench", "storage", "--m", "7", NULL},                        // these do not use it
      {"weft bench", "storage", "--m=7", "--operations=encode", NULL},
      {"weft bench", "storage", "--m=7", "--operations=gpu-rs", "--shapes=3+2", NULL},
      {"weft bench", "sim", "--reps", "65", NULL}, // it silently measured 64
      {"weft bench", "server", "--reps", "65", NULL},
      {"weft bench", "rlnc", "--operations", "encode,no-such", NULL},
      {"weft bench", "sim", "--operations", "no-such", NULL},
      {"weft bench", "server", "--operations", "no-such", NULL},
      {"weft bench", "peer", "--operations", "flood,no-such", NULL},
      {"weft bench", "gpu", "--operations", "no-such", NULL},
      {"weft bench", "mul", "surplus", NULL},
      {"weft bench", "compare", "one", NULL},
      {"weft bench", "rlnc", "--n", "1025", NULL},
      {"weft bench", "rlnc", "--k", "2M", NULL},
      {"weft bench", "rlnc", "--k", "18014398509481985K", NULL}, // 2^64 + 1024
      {"weft bench", "rlnc", "--threads", "5000", NULL},
      {"weft bench", "rlnc", "--quick=1", NULL},
      {"weft bench", "rlnc", "--reps", NULL},
      {"weft bench", "peer", "--rows", "no-such", NULL},
      {"weft bench", "peer", "--n", "32,64", NULL}, // it measures one n
      {"weft bench", "server", "--rows", "no-such", NULL},
      {"weft bench", "server", "--rows", "scalar", NULL}, // not a device row
      {"weft bench", "server", "--rows", "", NULL},
      {"weft bench", "gpu", "--rows", "no-such", NULL},
      {"weft bench", "gpu", "--rows", "scalar", NULL},
      {"weft bench", "gpu", "--rows", "", NULL},
      {"weft bench", "gpu", "--rows", "cuda,cuda", NULL}, // it measures one row
      {"weft bench", "peer", "--rows", "", NULL},
      {"weft bench", "rlnc", "--operations", "", NULL},
      {"weft bench", "storage", "--operations", "", NULL},
      {"weft bench", "storage", "--shapes", "", NULL},
      {"weft bench", "storage", "--shapes", "-5+6", NULL},
      {"weft bench", "storage", "--shapes", "4+-2", NULL},
      {"weft bench", "storage", "--shapes", // more than it can measure
       "1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+"
       "1,"
       "1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1,1+1",
       NULL},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ck_assert_msg(whole_run(wrong[i]) == 2, "arguments %zu were accepted", i);
}
END_TEST

// A kind is selected by its name in the table.
START_TEST(kinds_of_packets) {
  whole_run_paths();
  ck_assert_int_eq(whole_run((const char *[]){"weft bench", "peer", "--quick", "--rep-ms", "1",
                                              "--operations", "all", "--rows", "relay one burst",
                                              "--json", whole_run_path[0], NULL}),
                   0);
  json_t *const root = json_load_file(whole_run_path[0], 0, NULL);
  const json_t *const group = json_array_get(json_object_get(root, "groups"), 0);
  const json_t *const cases = json_object_get(group, "cases");
  ck_assert_uint_eq(json_array_size(cases), 1);
  ck_assert_str_eq(json_string_value(json_object_get(json_array_get(cases, 0), "variant")),
                   "relay one burst");
  json_decref(root);
  whole_run_remove_paths();
}
END_TEST

// If no device has the requested row, measuring the host alone is refused.
START_TEST(a_device_row_asked_for_is_not_left_out) {
  if (weft_device_count() > 0)
    return;
  const char *const asked[] = {"weft bench", "server", "--rows", "cuda", "--quick", NULL};
  ck_assert_int_eq(whole_run(asked), WEFT_BENCH_MACHINE);
  const char *const part[] = {"weft bench", "server", "--operations", "crossover", "--quick", NULL};
  ck_assert_int_eq(whole_run(part), WEFT_BENCH_MACHINE);
}
END_TEST

// A part that depends on the closed loop's peak measures that peak as well.
START_TEST(a_part_of_the_server_alone) {
  static const char *const parts[] = {"paced", "peers"};
  whole_run_paths();
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    ck_assert_int_eq(whole_run((const char *[]){"weft bench", "server", "--quick", "--rep-ms", "1",
                                                "--threads", "1", "--operations", parts[i],
                                                "--json", whole_run_path[0], NULL}),
                     0);
    json_t *const root = json_load_file(whole_run_path[0], 0, NULL);
    const json_t *const list = json_object_get(json_object_get(root, "server"), parts[i]);
    ck_assert_msg(json_array_size(list) > 0, "%s alone measured nothing", parts[i]);
    const char *const clock =
        json_string_value(json_object_get(json_object_get(root, "method"), "clock"));
    ck_assert_ptr_nonnull(strstr(clock, "threads placed by the system"));
    for (size_t e = 0; e < json_array_size(list); e++) {
      const json_t *const rate = json_object_get(json_array_get(list, e), "gigabytes_per_second");
      const json_t *const median = json_is_object(rate) ? json_object_get(rate, "median") : rate;
      ck_assert_msg(json_number_value(median) > 0, "%s: entry %zu has no rate", parts[i], e);
    }
    json_decref(root);
  }
  whole_run_remove_paths();
}
END_TEST

// A run that is refused early, after checking that the report can be written, leaves no file.
START_TEST(a_run_that_is_refused_leaves_no_report) {
  whole_run_paths();
  whole_run_remove_paths();
  ck_assert_int_eq(
      whole_run((const char *const[]){"weft bench", "rlnc", "--json", whole_run_path[0],
                                      "--operations", "no-such", NULL}),
      2);
  ck_assert_int_ne(access(whole_run_path[0], F_OK), 0);
}
END_TEST

int main(void) {
  Suite *const suite = suite_create("bench/report");
  TCase *const tests = tcase_create("report");
  tcase_add_test(tests, rlnc_report);
  tcase_add_test(tests, a_report_in_a_folder_of_others);
  tcase_add_test(tests, what_is_beside_a_report_is_replaced);
  tcase_add_test(tests, cold_report);
  tcase_add_test(tests, every_ratio_of_many_threads);
  tcase_add_test(tests, mul_report);
  tcase_add_test(tests, storage_report);
  tcase_add_test(tests, storage_of_many_threads);
  tcase_add_test(tests, what_bounds_a_recovery);
  tcase_add_test(tests, what_is_left_out);
  tcase_add_test(tests, a_report_through_a_link);
  tcase_add_test(tests, unwritable_report);
  tcase_add_test(tests, bank_conflicts);
  tcase_add_test(tests, wrong_arguments);
  tcase_add_test(tests, kinds_of_packets);
  tcase_add_test(tests, a_device_row_asked_for_is_not_left_out);
  tcase_add_test(tests, a_part_of_the_server_alone);
  tcase_add_test(tests, a_run_that_is_refused_leaves_no_report);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
