// SPDX-License-Identifier: Apache-2.0
// How weft measures time: candidates are run in turn within one run, so that a change of the clock
// rate or a busy neighbour meets all of them, and every repetition's time is kept.
#ifndef WEFT_BENCH_TIMING_H
#define WEFT_BENCH_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_BENCH_MIN_REPS 9u

// Memory that a candidate reads or writes: what a cold run evicts before each call.
typedef struct weft_bench_region {
  const void *base;
  size_t bytes;
} weft_bench_region;

#define WEFT_BENCH_REGIONS 8u

typedef struct weft_bench_candidate {
  void (*call)(void *user); // does the work once
  void *user;
  // Before every call, which is then timed by itself; at most twice as long as that. May be NULL.
  void (*prepare)(void *user);
  void (*before)(void *user), (*after)(void *user); // a repetition, not timed; may be NULL
  size_t threads;                                   // that the call keeps busy
  weft_bench_region regions[WEFT_BENCH_REGIONS];
  size_t region_count;
} weft_bench_candidate;

typedef struct weft_bench_timing {
  size_t reps;  // >= WEFT_BENCH_MIN_REPS
  double rep_s; // a repetition lasts at least about this long
  bool cold;    // evict each candidate's regions before every call; only the call is timed
} weft_bench_timing;

// A repetition is made of laps of about a millisecond, longer where it takes more than 0.2 s. Laps
// in which a thread had to wait for its core are dropped, whatever they measured, and run again
// within twice the repetition's length. When that is not enough, one thread's repetition counts the
// time that the thread ran instead of the wall clock's (`cpu_timed`); that of several threads, or
// of calls that are timed each by itself, is `disturbed`: its round enters no ratio.
typedef struct weft_bench_samples {
  size_t reps;
  size_t calls;     // in a lap
  size_t laps;      // run, in all repetitions
  size_t dropped;   // of them
  size_t cpu_timed; // repetitions
  size_t disturbed; // repetitions
  double *seconds;  // (reps): time of one call, averaged over the repetition
  bool *usable;     // (reps): not disturbed
} weft_bench_samples;

// Fills samples[count]; round r of every candidate is measured before round r + 1 of any.
void weft_bench_measure(const weft_bench_timing *timing, const weft_bench_candidate *candidates,
                        size_t count, weft_bench_samples *samples);
void weft_bench_samples_free(weft_bench_samples *samples);

double weft_bench_now_s(void); // monotonic

#endif
