// SPDX-License-Identifier: Apache-2.0
// Equal tasks for a pool's threads: a number of arithmetic steps each, without memory accesses.
#ifndef WEFT_BENCH_POOL_CASES_H
#define WEFT_BENCH_POOL_CASES_H

#include <stddef.h>
#include <stdint.h>

#include "bench/machine.h"

enum { WEFT_BENCH_TASKS = 56 }; // divides evenly among 2, 4, 7, 8, 14 or 28 threads

// Returns how many steps a thread makes per second.
double weft_bench_steps_per_s(void);

// A pool and a job for it.
typedef struct weft_bench_tasks weft_bench_tasks;

// Starts the pool's threads on CPUs of their own and keeps the caller on the first one.
weft_bench_tasks *weft_bench_tasks_new(const weft_bench_machine *machine, size_t threads,
                                       uint64_t steps);
void weft_bench_tasks_free(weft_bench_tasks *tasks);
// Runs one job: WEFT_BENCH_TASKS tasks of that many steps.
void weft_bench_tasks_run(void *tasks);
// Ends the program unless every job so far has done every task once. Returns what it compared.
const char *weft_bench_tasks_check(const weft_bench_tasks *tasks);

#endif
