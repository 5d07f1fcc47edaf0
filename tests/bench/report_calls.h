// SPDX-License-Identifier: Apache-2.0
// Runs of `weft bench` in this process, and files for their reports.
#ifndef WEFT_TESTS_BENCH_REPORT_CALLS_H
#define WEFT_TESTS_BENCH_REPORT_CALLS_H

extern char report_path[2][256];

void report_paths_make(void);
void report_paths_remove(void);

// Its exit code. Arguments end with NULL.
int report_bench(const char *const *arguments);

#endif
