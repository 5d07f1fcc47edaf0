// SPDX-License-Identifier: Apache-2.0
// Tasks of known length.
#include "bench/pool_cases.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/timing.h"
#include "kernels/pool.h"

struct weft_bench_tasks {
  weft_pool *pool;
  uint64_t steps;                  // of each task
  uint64_t jobs;                   // run so far
  uint64_t sums[WEFT_BENCH_TASKS]; // results of each task, added up over all jobs
};

// Each step depends on the one before (Knuth's MMIX generator), so all take the same time.
static uint64_t chain(uint64_t x, uint64_t steps) {
  for (uint64_t i = 0; i < steps; i++)
    x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return x;
}

double weft_bench_steps_per_s(void) {
  enum { STEPS = 100000, TRIES = 20 };
  volatile uint64_t kept = 1;
  double best_s = 0;
  for (int i = 0; i < TRIES; i++) {
    const double start = weft_bench_now_s();
    kept = chain(kept, STEPS);
    const double took_s = weft_bench_now_s() - start;
    if (i == 0 || took_s < best_s)
      best_s = took_s;
  }
  return STEPS / best_s;
}

weft_bench_tasks *weft_bench_tasks_new(const weft_bench_machine *machine, size_t threads,
                                       uint64_t steps) {
  weft_bench_tasks *const tasks = weft_bench_alloc(1, sizeof *tasks);
  tasks->steps = steps;
  weft_bench_pin_workers(machine, threads);
  weft_bench_must("pool", weft_pool_new(&tasks->pool, threads, &weft_bench_allocator));
  weft_bench_pin(machine, 0);
  return tasks;
}

void weft_bench_tasks_free(weft_bench_tasks *tasks) {
  weft_pool_free(tasks->pool);
  free(tasks);
}

static void run_task(void *user, size_t index) {
  weft_bench_tasks *const tasks = user;
  tasks->sums[index] += chain(index, tasks->steps);
}

void weft_bench_tasks_run(void *user) {
  weft_bench_tasks *const tasks = user;
  tasks->jobs++;
  weft_pool_run(tasks->pool, WEFT_BENCH_TASKS, run_task, tasks);
}

const char *weft_bench_tasks_check(const weft_bench_tasks *tasks) {
  for (size_t i = 0; i < WEFT_BENCH_TASKS; i++)
    if (tasks->sums[i] != tasks->jobs * chain(i, tasks->steps)) {
      fprintf(stderr, "weft bench pool: task %zu of %zu threads was not done once in each job\n", i,
              weft_pool_threads(tasks->pool));
      exit(WEFT_BENCH_WRONG);
    }
  return "every task done once in each job";
}
