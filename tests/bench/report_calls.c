// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L // mkstemp
#include "tests/bench/report_calls.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

char report_path[2][256];

void report_paths_make(void) {
  const char *const folder = getenv("TEST_TMPDIR");
  for (int i = 0; i < 2; i++) {
    snprintf(report_path[i], sizeof report_path[i], "%.200s/report-XXXXXX",
             folder ? folder : "/tmp");
    const int file = mkstemp(report_path[i]);
    ck_assert_int_ge(file, 0);
    close(file);
  }
}

void report_paths_remove(void) {
  unlink(report_path[0]);
  unlink(report_path[1]);
}

int report_bench(const char *const *arguments) {
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
