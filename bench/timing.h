// SPDX-License-Identifier: Apache-2.0
// How weft measures time: candidates take turns within one run, so that a change of clock rate or a
// busy neighbour affects all of them, and every repetition's time is kept. A lap is a number of
// consecutive calls.
#ifndef WEFT_BENCH_TIMING_H
#define WEFT_BENCH_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_BENCH_MIN_REPS 9u

// Memory that a candidate reads or writes; a cold run evicts it before each call.
typedef struct weft_bench_region {
  const void *base;
  size_t bytes;
} weft_bench_region;

#define WEFT_BENCH_REGIONS 8u

typedef struct weft_bench_candidate {
  void (*call)(void *user); // does the work once
  void *user;
  // Called before every call, which is then timed individually; must not take more than about twice
  // as long as the call. May be NULL.
  void (*prepare)(void *user);
  void (*before)(void *user), (*after)(void *user); // around a repetition, not timed; may be NULL
  size_t threads;                                   // kept busy by the call
  weft_bench_region regions[WEFT_BENCH_REGIONS];
  size_t region_count;
} weft_bench_candidate;

typedef struct weft_bench_timing {
  size_t reps;  // >= WEFT_BENCH_MIN_REPS
  double rep_s; // least length of a repetition, roughly
  bool cold;    // evict each candidate's regions before every call; only the call is timed
} weft_bench_timing;

// A repetition consists of laps of about a millisecond, or more if it takes more than 0.2 s. Laps
// in which a thread had to wait for its core are dropped, whatever they measured, and repeated
// within twice the repetition's length. If that is not enough, a repetition on one thread counts
// the time that the thread ran instead of the wall clock's (`cpu_timed`); one on several threads,
// or with calls timed individually, is `disturbed`: its round is used for no ratio.
typedef struct weft_bench_samples {
  size_t reps;
  size_t calls;     // per lap
  size_t laps;      // run in all repetitions
  size_t dropped;   // of these laps
  size_t cpu_timed; // repetitions
  size_t disturbed; // repetitions
  double *seconds;  // (reps): time of one call, averaged over the repetition
  bool *usable;     // (reps): not disturbed
} weft_bench_samples;

// Fills samples[count]; round r of every candidate is measured before round r + 1 of any. Told to
// stop (bench/stop.h), it ends early, with the complete rounds: `reps` may be 0.
void weft_bench_measure(const weft_bench_timing *timing, const weft_bench_candidate *candidates,
                        size_t count, weft_bench_samples *samples);
void weft_bench_samples_free(weft_bench_samples *samples);

double weft_bench_now_s(void); // monotonic

#endif
