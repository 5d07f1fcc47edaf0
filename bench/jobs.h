// SPDX-License-Identifier: Apache-2.0
// Jobs timed individually, each right after another or after a pause. timing.h drops laps in which
// a thread waited for its core. Here the wake-up of sleeping threads is part of what is measured,
// so nothing is dropped, and a repetition's figure is the median of its jobs.
#ifndef WEFT_BENCH_JOBS_H
#define WEFT_BENCH_JOBS_H

#include <stddef.h>

#include "bench/timing.h"

typedef struct weft_bench_job {
  void (*call)(void *user);
  void *user;
  double pause_s; // for which the caller is busy elsewhere before each job; 0: none
  // Results, for each repetition:
  double *median_s; // (reps) of its jobs
  double *most_s;   // (reps) 0.9 quantile of its jobs
  size_t jobs;      // jobs timed in all
} weft_bench_job;

// Measures jobs[count]; every job has its round r before any has round r + 1. Pauses count towards
// the length of a repetition, which has at least 20 jobs.
void weft_bench_jobs_measure(const weft_bench_timing *timing, weft_bench_job *jobs, size_t count);
void weft_bench_job_free(weft_bench_job *job); // its results

#endif
