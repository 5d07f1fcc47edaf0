// SPDX-License-Identifier: Apache-2.0
// Single jobs and the pauses before them.
#include "bench/jobs.h"

#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/stats.h"

enum { JOBS_MIN = 20, JOBS_MAX = 65536 }; // per repetition

#define MOST 0.9

// Busy-waits, like a caller that works on something else meanwhile.
static void pause_for(double seconds) {
  const double start = weft_bench_now_s();
  while (seconds > 0 && weft_bench_now_s() - start < seconds)
    ;
}

static double time_job(const weft_bench_job *job) {
  pause_for(job->pause_s);
  const double start = weft_bench_now_s();
  job->call(job->user);
  return weft_bench_now_s() - start;
}

static void repetition(const weft_bench_timing *timing, weft_bench_job *job, size_t rep,
                       double *each) {
  size_t count = 0;
  (void)time_job(job); // not counted: it follows another candidate's jobs
  const double start = weft_bench_now_s();
  while (count < JOBS_MAX && (count < JOBS_MIN || weft_bench_now_s() - start < timing->rep_s))
    each[count++] = time_job(job);
  job->median_s[rep] = weft_bench_spread_of(each, count).median;
  job->most_s[rep] = weft_bench_quantile_of(each, count, MOST);
  job->jobs += count;
}

void weft_bench_jobs_measure(const weft_bench_timing *timing, weft_bench_job *jobs, size_t count) {
  double *const each = weft_bench_alloc(JOBS_MAX, sizeof *each);
  for (size_t j = 0; j < count; j++) {
    jobs[j].median_s = weft_bench_alloc(timing->reps, sizeof(double));
    jobs[j].most_s = weft_bench_alloc(timing->reps, sizeof(double));
    jobs[j].jobs = 0;
  }
  for (size_t rep = 0; rep < timing->reps; rep++)
    for (size_t i = 0; i < count; i++) // each round begins with another one
      repetition(timing, &jobs[(i + rep) % count], rep, each);
  free(each);
}

void weft_bench_job_free(weft_bench_job *job) {
  free(job->median_s), free(job->most_s);
  job->median_s = job->most_s = NULL;
}
