// SPDX-License-Identifier: Apache-2.0
// Runs `weft bench` in the test's process, and checks what every report must contain.
#ifndef WEFT_TESTS_BENCH_WHOLE_RUN_H
#define WEFT_TESTS_BENCH_WHOLE_RUN_H

#include <stddef.h>

#include <jansson.h>

// Two paths for reports, in the test's own folder.
extern char whole_run_path[2][256];
void whole_run_paths(void);
void whole_run_remove_paths(void);

// Runs `weft bench` in this process and returns its exit status. `arguments` ends with NULL.
int whole_run(const char *const *arguments);

// Returns a number, which must be present.
double whole_run_number(const json_t *object, const char *key);
// Loads a report and checks all of it; returns the number of cases with this operation.
size_t whole_run_check(const char *file, const char *operation);

#endif
