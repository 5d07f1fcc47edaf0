// SPDX-License-Identifier: Apache-2.0
// Jobs timed one by one, each right behind another or after a pause. timing.h drops laps in which a
// thread waited for its core; here threads that sleep have to wait, which is part of what is asked
// for. So nothing is dropped, and a repetition's figure is the median of its jobs.
#ifndef WEFT_BENCH_JOBS_H
#define WEFT_BENCH_JOBS_H

#include <stddef.h>

#include "bench/timing.h"

typedef struct weft_bench_job {
  void (*call)(void *user);
  void *user;
  double pause_s; // that the caller is busy with nothing before each; 0: none
  // Results, of each repetition:
  double *median_s; // (reps) of its jobs
  double *most_s;   // (reps) what nine in ten of them took at most
  size_t jobs;      // timed, in all
} weft_bench_job;

// Measures jobs[count]; round r of every job before round r + 1 of any. Pauses count to the length
// of a repetition, which has 20 jobs at least.
void weft_bench_jobs_measure(const weft_bench_timing *timing, weft_bench_job *jobs, size_t count);
void weft_bench_job_free(weft_bench_job *job); // its results

#endif
