// SPDX-License-Identifier: Apache-2.0
// Warm-up, calibration, interleaved repetitions. See timing.h and docs/performance.md.
#define _GNU_SOURCE // RUSAGE_THREAD
#include "bench/timing.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/buffers.h"

// A thread that lost more than this share of a repetition to others was disturbed.
#define LOST_SHARE 0.02
// A cold repetition times each call by itself; more calls than this would only flush longer.
#define COLD_CALLS 16u

static double clock_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double weft_bench_now_s(void) { return clock_s(CLOCK_MONOTONIC); }

static long preemptions(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

// Evicts the candidate's memory from every cache level.
static void evict(const weft_bench_candidate *candidate) {
#if defined(__x86_64__)
  for (size_t i = 0; i < candidate->region_count; i++) {
    const char *const base = candidate->regions[i].base;
    for (size_t at = 0; at < candidate->regions[i].bytes; at += 64)
      _mm_clflush(base + at);
  }
  _mm_mfence();
#else
  // Without an instruction for it: stream through more than a cache holds.
  enum { SWEEP_BYTES = 256 << 20 };
  static volatile unsigned char *sweep;
  (void)candidate;
  if (!sweep)
    sweep = weft_bench_alloc(SWEEP_BYTES, 1);
  for (size_t at = 0; at < SWEEP_BYTES; at += 64)
    sweep[at]++;
#endif
}

static double time_calls(const weft_bench_candidate *candidate, size_t calls) {
  const double start = weft_bench_now_s();
  for (size_t i = 0; i < calls; i++)
    candidate->call(candidate->user);
  return weft_bench_now_s() - start;
}

static double time_cold_calls(const weft_bench_candidate *candidate, size_t calls) {
  double sum = 0;
  for (size_t i = 0; i < calls; i++) {
    evict(candidate);
    sum += time_calls(candidate, 1);
  }
  return sum;
}

// Warms up, and finds how many calls fill a repetition.
static size_t calibrate(const weft_bench_timing *timing, const weft_bench_candidate *candidate) {
  if (timing->cold) {
    const double once = time_cold_calls(candidate, 2) / 2;
    const double wanted = once > 0 ? timing->rep_s / once : COLD_CALLS;
    return wanted >= COLD_CALLS ? COLD_CALLS : wanted < 1 ? 1 : (size_t)wanted;
  }
  size_t calls = 1;
  for (;;) {
    const double elapsed = time_calls(candidate, calls);
    if (elapsed >= timing->rep_s / 4) {
      const double wanted = timing->rep_s / (elapsed / (double)calls);
      return wanted < 1 ? 1 : (size_t)(wanted + 0.999);
    }
    const double factor = elapsed > 0 ? timing->rep_s / 2 / elapsed : 16;
    calls *= factor > 16 ? 16 : factor < 2 ? 2 : (size_t)factor;
  }
}

// One repetition; says whether others had the core meanwhile. One thread's loss is the wall time
// that it did not run; several wait for each other, so there only preemption counts.
static double repetition(const weft_bench_timing *timing, const weft_bench_candidate *candidate,
                         size_t calls, bool *disturbed) {
  const long preempted = preemptions();
  const double cpu = clock_s(CLOCK_THREAD_CPUTIME_ID);
  const double start = weft_bench_now_s();
  const double timed =
      timing->cold ? time_cold_calls(candidate, calls) : time_calls(candidate, calls);
  const double wall = weft_bench_now_s() - start;
  const double lost = wall - (clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu);
  *disturbed = candidate->threads > 1 ? preemptions() != preempted : lost > LOST_SHARE * wall;
  return timed / (double)calls;
}

void weft_bench_measure(const weft_bench_timing *timing, const weft_bench_candidate *candidates,
                        size_t count, weft_bench_samples *samples) {
  for (size_t c = 0; c < count; c++)
    samples[c] = (weft_bench_samples){
        .reps = timing->reps,
        .calls = calibrate(timing, &candidates[c]),
        .seconds = weft_bench_alloc(timing->reps, sizeof(double)),
    };
  for (size_t rep = 0; rep < timing->reps; rep++)
    for (size_t i = 0; i < count; i++) {
      const size_t c = (i + rep) % count; // another one begins each round
      bool disturbed = true;
      for (;;) {
        samples[c].seconds[rep] = repetition(timing, &candidates[c], samples[c].calls, &disturbed);
        if (!disturbed || samples[c].repeated >= timing->retry_reps)
          break;
        samples[c].repeated++;
      }
      samples[c].disturbed += disturbed;
    }
}

void weft_bench_samples_free(weft_bench_samples *samples) {
  free(samples->seconds);
  samples->seconds = NULL;
}
