// SPDX-License-Identifier: Apache-2.0
// What a run of `weft bench` leaves when it is stopped or cannot write: all that it had measured.
#define _GNU_SOURCE // kill, prlimit
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "bench/bench.h"
#include "tests/bench/whole_run.h"
#include "tests/support/test_main.h"

// Counts the groups of a report; 0: there is no file, or it is no report.
static size_t groups_in(const char *part) {
  json_t *const root = json_load_file(part, 0, NULL);
  const size_t groups = json_array_size(json_object_get(root, "groups"));
  json_decref(root);
  return groups;
}

static pid_t run_in_child(const char *const *arguments) {
  const pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child > 0)
    return child;
  ck_assert_ptr_nonnull(freopen("/dev/null", "w", stdout));
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGINT, SIG_DFL); // not the runner's, which kills the group of its tests
  _exit(whole_run(arguments));
}

static pid_t run_of_nine_groups(void) {
  return run_in_child((const char *[]){"weft bench", "rlnc", "--quick", "--rep-ms", "1", "--reps",
                                       "9", "--n", "8,9,10,11,12,13,14,15,16", "--k", "130",
                                       "--isal", "", "--json", whole_run_path[0], NULL});
}

static size_t wait_for_groups(const char *part) {
  size_t groups = 0;
  for (int i = 0; i < 6000 && groups == 0; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    groups = groups_in(part);
  }
  ck_assert_uint_ge(groups, 1);
  return groups;
}

// A run killed in its second group has left the first group in FILE.part next to its report.
START_TEST(a_killed_run_keeps_what_it_measured) {
  whole_run_paths();
  char part[300];
  snprintf(part, sizeof part, "%s.part", whole_run_path[0]);
  const pid_t child = run_of_nine_groups();
  wait_for_groups(part);
  ck_assert_int_eq(kill(child, SIGKILL), 0);
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  ck_assert_uint_ge(groups_in(part), 1); // never a truncated report
  unlink(part);
  whole_run_remove_paths();
}
END_TEST

// A run that finds the disk full leaves what it had written, and the previous contents of FILE.
START_TEST(a_full_disk_costs_nothing_that_was_written) {
  whole_run_paths();
  char part[300];
  struct stat about;
  snprintf(part, sizeof part, "%s.part", whole_run_path[0]);
  FILE *const before = fopen(whole_run_path[0], "w");
  ck_assert(before && fputs("{}", before) >= 0 && fclose(before) == 0);
  const pid_t child = run_of_nine_groups();
  const size_t groups = wait_for_groups(part);
  ck_assert_int_eq(stat(part, &about), 0);
  const struct rlimit full = {.rlim_cur = (rlim_t)about.st_size, .rlim_max = RLIM_INFINITY};
  ck_assert_int_eq(prlimit(child, RLIMIT_FSIZE, &full, NULL), 0);
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == WEFT_BENCH_IO);
  ck_assert_uint_ge(groups_in(part), groups);
  ck_assert(stat(whole_run_path[0], &about) == 0 && about.st_size == 2);
  unlink(part);
  whole_run_remove_paths();
}
END_TEST

// Counts the results of a report whose single group is not complete until its end.
static size_t cases_in(const char *part) {
  json_t *const root = json_load_file(part, 0, NULL);
  const json_t *const group = json_array_get(json_object_get(root, "groups"), 0);
  const size_t cases = json_array_size(json_object_get(group, "cases"));
  json_decref(root);
  return cases;
}

// The last part of each run takes far longer than its first, whose results are there when it is
// killed.
START_TEST(a_killed_run_keeps_each_result) {
  whole_run_paths();
  const char *const runs[][12] = {
      {"weft bench", "sim", "--quick", "--operations", "rank", "--m", "50,20000", "--json",
       whole_run_path[0], NULL},
      {"weft bench", "server", "--quick", "--rep-ms", "200", "--threads", "1", "--operations",
       "closed", "--json", whole_run_path[0], NULL},
  };
  char part[300];
  snprintf(part, sizeof part, "%s.part", whole_run_path[0]);
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    const pid_t child = run_in_child(runs[i]);
    for (int wait = 0; wait < 6000 && cases_in(part) == 0; wait++)
      nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_msg(cases_in(part) > 0, "%s kept nothing", runs[i][1]);
    unlink(part);
  }
  whole_run_remove_paths();
}
END_TEST

// Stops a run of one group by Ctrl-C. Returns how many repetitions FILE.part says that it has.
static json_int_t interrupt_after(time_t seconds, const char *part) {
  const pid_t child = run_in_child(
      (const char *[]){"weft bench", "rlnc", "--quick", "--rep-ms", "1", "--reps", "9999", "--n",
                       "8", "--k", "130", "--isal", "", "--json", whole_run_path[0], NULL});
  nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
  ck_assert_int_eq(kill(child, SIGINT), 0);
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  json_t *const root = json_load_file(part, 0, NULL);
  const json_t *const group = json_array_get(json_object_get(root, "groups"), 0);
  const json_t *const one = json_array_get(json_object_get(group, "cases"), 0);
  const json_int_t rounds = json_integer_value(json_object_get(group, "stopped_after_repetitions"));
  ck_assert_uint_eq(json_array_size(json_object_get(one, "seconds_per_call")), (size_t)rounds);
  json_decref(root);
  return rounds;
}

// Ctrl-C in the first group leaves its complete repetitions, marked as such, and ends the program
// as the signal does.
START_TEST(an_interrupted_run_keeps_its_repetitions) {
  whole_run_paths();
  char part[300];
  snprintf(part, sizeof part, "%s.part", whole_run_path[0]);
  json_int_t rounds = 0;
  for (time_t seconds = 1; seconds < 60 && rounds == 0; seconds *= 2) // a machine may be slow
    rounds = interrupt_after(seconds, part);
  ck_assert(rounds >= 1 && rounds < 9999);
  unlink(part);
  whole_run_remove_paths();
}
END_TEST

int main(void) {
  Suite *const suite = suite_create("bench/stopped");
  TCase *const tests = tcase_create("stopped");
  tcase_set_timeout(tests, 150);
  tcase_add_test(tests, a_killed_run_keeps_what_it_measured);
  tcase_add_test(tests, a_full_disk_costs_nothing_that_was_written);
  tcase_add_test(tests, a_killed_run_keeps_each_result);
  tcase_add_test(tests, an_interrupted_run_keeps_its_repetitions);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
