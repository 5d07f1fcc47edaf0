// SPDX-License-Identifier: Apache-2.0
// Whole runs of `weft bench`, and what every report must hold.
#ifndef WEFT_TESTS_BENCH_WHOLE_RUN_H
#define WEFT_TESTS_BENCH_WHOLE_RUN_H

#include <stddef.h>

#include <jansson.h>

// Two files for reports, in the test's own folder.
extern char whole_run_path[2][256];
void whole_run_paths(void);
void whole_run_remove_paths(void);

// Runs it in this process. Arguments end with NULL.
int whole_run(const char *const *arguments);

// A number that must be there.
double whole_run_number(const json_t *object, const char *key);
// Loads a report and checks all of it; returns how many cases have this operation.
size_t whole_run_check(const char *file, const char *operation);

#endif
