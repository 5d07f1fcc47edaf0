// SPDX-License-Identifier: Apache-2.0
// Warm-up, calibration, interleaved repetitions. See timing.h and docs/performance/method.md.
#define _POSIX_C_SOURCE 200809L // clock_gettime, opendir
#include "bench/timing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/buffers.h"
#include "bench/stop.h"

// A lap is disturbed if threads waited for a core during more than this share of it.
#define LOST_SHARE 0.02
#define LAP_S 1e-3
#define LAPS_MAX 1024u // per repetition; longer laps if that is too few
// Stack offsets that laps use in turn: a whole page, in steps that keep the alignment.
#define OFFSET_STEP 192u
#define OFFSETS 64u
// A repetition may take this many times its length to find undisturbed laps; longer with several
// threads, because there is no other way to obtain their time.
#define PATIENCE 2
#define PATIENCE_THREADS 5
// A cold repetition flushes before each call, which takes longer than the call, so it is shorter.
#define COLD_SHARE 0.25

static double clock_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double weft_bench_now_s(void) { return clock_s(CLOCK_MONOTONIC); }

// Returns how long threads of this process have waited for a core, according to the kernel; without
// its statistics, one second for each involuntary context switch.
static double waited_s(void) {
  double waited_ns = 0;
  bool known = false;
  DIR *const tasks = opendir("/proc/self/task");
  for (const struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
    char path[64];
    unsigned long long ran = 0, waited = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", task->d_name);
    FILE *const file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
    if (!file)
      continue;
    if (fscanf(file, "%llu %llu", &ran, &waited) == 2) {
      waited_ns += (double)waited;
      known = true;
    }
    fclose(file);
  }
  if (tasks)
    closedir(tasks);
  if (known)
    return waited_ns * 1e-9;
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_nivcsw : 0;
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
  // Without an instruction for this, stream through more than a cache holds.
  enum { SWEEP_BYTES = 256 << 20 };
  static volatile unsigned char *sweep;
  (void)candidate;
  if (!sweep)
    sweep = weft_bench_alloc(SWEEP_BYTES, 1);
  for (size_t at = 0; at < SWEEP_BYTES; at += 64)
    sweep[at]++;
#endif
}

// Clears the upper halves of vector registers. While they are in use, SSE code takes several times
// as long, and not all libraries clear them: Jerasure after ISA-L 2.30 had a quarter of its rate on
// a Zen 5.
static void empty_upper_halves(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx"))
    __asm__ volatile("vzeroupper"
                     :
                     :
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

static double time_calls(const weft_bench_candidate *candidate, size_t calls) {
  empty_upper_halves();
  const double start = weft_bench_now_s();
  for (size_t i = 0; i < calls; i++)
    candidate->call(candidate->user);
  return weft_bench_now_s() - start;
}

// Whether each call is timed individually, because something precedes it that must not count.
static bool times_each(const weft_bench_timing *timing, const weft_bench_candidate *candidate) {
  return timing->cold || candidate->prepare;
}

static double time_each_call(const weft_bench_timing *timing, const weft_bench_candidate *candidate,
                             size_t calls) {
  double sum = 0;
  for (size_t i = 0; i < calls; i++) {
    if (candidate->prepare)
      candidate->prepare(candidate->user);
    if (timing->cold)
      evict(candidate);
    sum += time_calls(candidate, 1);
  }
  return sum;
}

static double time_lap(const weft_bench_timing *timing, const weft_bench_candidate *candidate,
                       size_t calls) {
  return times_each(timing, candidate) ? time_each_call(timing, candidate, calls)
                                       : time_calls(candidate, calls);
}

static double length_wanted_s(const weft_bench_timing *timing) {
  return timing->cold ? timing->rep_s * COLD_SHARE : timing->rep_s;
}

// Returns the wanted length of a lap: long enough for LAPS_MAX laps to make a repetition even if
// most are disturbed. A cold run times each call individually, so its laps need no minimum.
static double lap_wanted_s(const weft_bench_timing *timing) {
  const double share = length_wanted_s(timing) * PATIENCE_THREADS / LAPS_MAX;
  return share > LAP_S || timing->cold ? share : LAP_S;
}

// Warms up for about half a repetition, and finds how many calls fill a lap; includes the time of
// `prepare`, but not of eviction.
static size_t calibrate(const weft_bench_timing *timing, const weft_bench_candidate *candidate) {
  const double start = weft_bench_now_s(), lap_s = lap_wanted_s(timing);
  double best = 0;
  for (size_t calls = 1; weft_bench_now_s() - start < timing->rep_s / 2;) {
    const double before = weft_bench_now_s();
    const double timed = time_lap(timing, candidate, calls);
    const double each = (timing->cold ? timed : weft_bench_now_s() - before) / (double)calls;
    if (best == 0 || (each > 0 && each < best))
      best = each;
    if (best * (double)calls < lap_s / 2)
      calls *= 2;
  }
  return best > 0 && best < lap_s ? (size_t)(lap_s / best + 0.5) : 1;
}

// Makes the calls at a stack position that varies from lap to lap. The position varies between
// processes, and one run in ten was an eighth slower throughout, which the spread within a run
// would not show.
__attribute__((noinline)) static double time_somewhere(const weft_bench_timing *timing,
                                                       const weft_bench_candidate *candidate,
                                                       size_t calls, size_t offset) {
  volatile char *const shift = __builtin_alloca(offset + 16);
  shift[0] = 0;
  const double seconds = time_lap(timing, candidate, calls);
  shift[offset] = 0; // the shift must outlive the calls
  return seconds;
}

typedef struct lap {
  double wall_s, cpu_s; // of the calls alone; cpu_s: time that the calling thread ran
  double whole_s;       // including what is not timed
  double lost_s;        // how long threads of this process waited for a core
  bool disturbed;
} lap;

static lap run_lap(const weft_bench_timing *timing, const weft_bench_candidate *candidate,
                   size_t calls, size_t offset) {
  // One thread's own clock shows what it lost; several threads also wait for each other.
  const double waited = candidate->threads > 1 ? waited_s() : 0;
  // Reading the kernel's statistics takes longer than workers poll for another job. Since
  // consecutive calls are to be measured, the call that wakes the workers does not count.
  const bool each = times_each(timing, candidate);
  if (candidate->threads > 1 && !each)
    time_calls(candidate, 1);
  const double cpu = clock_s(CLOCK_THREAD_CPUTIME_ID);
  const double start = weft_bench_now_s();
  const double timed = time_somewhere(timing, candidate, calls, offset);
  const double wall = weft_bench_now_s() - start;
  const double ran = clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu;
  return (lap){
      .wall_s = timed,
      // A loss before a call, for example in a flush, cannot be distinguished from one during the
      // call.
      .cpu_s = each || ran > timed ? timed : ran,
      .whole_s = wall,
      .lost_s = candidate->threads > 1 ? waited_s() - waited : wall - ran,
  };
}

// Marks the last lap if it lost time, and as many laps before as the loss reaches back: the kernel
// records a thread's wait when it ends, and meanwhile other threads may have done the work of
// several laps.
static void mark_disturbed(lap *laps, size_t count) {
  double lost_s = laps[count - 1].lost_s;
  if (lost_s <= LOST_SHARE * laps[count - 1].whole_s)
    return;
  for (size_t i = count; i-- > 0 && lost_s > 0; lost_s -= laps[i].whole_s)
    laps[i].disturbed = true;
}

typedef struct lap_sum {
  double wall_s, cpu_s;
  size_t laps;
} lap_sum;

static lap_sum sum_of(const lap *laps, size_t count, bool disturbed_too) {
  lap_sum sum = {0, 0, 0};
  for (size_t i = 0; i < count; i++)
    if (disturbed_too || !laps[i].disturbed) {
      sum.wall_s += laps[i].wall_s;
      sum.cpu_s += laps[i].cpu_s;
      sum.laps++;
    }
  return sum;
}

// Adds laps until the undisturbed ones make a repetition; returns the time of one call. With
// several threads the last lap only reveals what the one before lost.
static double repetition(const weft_bench_timing *timing, const weft_bench_candidate *candidate,
                         weft_bench_samples *samples, bool *usable) {
  const bool by_wall = candidate->threads > 1 || times_each(timing, candidate);
  const size_t extra = candidate->threads > 1 ? 1 : 0;
  const double patience_s = timing->rep_s * (by_wall ? PATIENCE_THREADS : PATIENCE);
  const double wanted_s = length_wanted_s(timing);
  const double start = weft_bench_now_s();
  lap laps[LAPS_MAX];
  lap_sum clean = {0, 0, 0};
  size_t count = 0;
  while (count < LAPS_MAX &&
         (count <= extra || (clean.wall_s < wanted_s && weft_bench_now_s() - start < patience_s))) {
    laps[count++] =
        run_lap(timing, candidate, samples->calls, samples->laps++ % OFFSETS * OFFSET_STEP);
    mark_disturbed(laps, count);
    clean = sum_of(laps, count - (count > extra ? extra : 0), false);
  }
  const lap_sum all = sum_of(laps, count - extra, true);
  if (clean.wall_s >= wanted_s / 4) {
    samples->dropped += all.laps - clean.laps;
    return clean.wall_s / (double)(clean.laps * samples->calls);
  }
  *usable = !by_wall;
  samples->disturbed += by_wall;
  samples->cpu_timed += !by_wall;
  return (by_wall ? all.wall_s : all.cpu_s) / (double)(all.laps * samples->calls);
}

// Measures every candidate once. Returns false if it was told to stop before the last one.
static bool measure_round(const weft_bench_timing *timing, const weft_bench_candidate *candidates,
                          size_t count, size_t rep, weft_bench_samples *samples) {
  for (size_t i = 0; i < count; i++) {
    if (weft_bench_stop_asked())
      return false;
    const size_t c = (i + rep) % count; // each round begins with another one
    samples[c].usable[rep] = true;
    if (candidates[c].before)
      candidates[c].before(candidates[c].user);
    samples[c].seconds[rep] =
        repetition(timing, &candidates[c], &samples[c], &samples[c].usable[rep]);
    if (candidates[c].after)
      candidates[c].after(candidates[c].user);
  }
  return true;
}

void weft_bench_measure(const weft_bench_timing *timing, const weft_bench_candidate *candidates,
                        size_t count, weft_bench_samples *samples) {
  for (size_t c = 0; c < count; c++)
    samples[c] = (weft_bench_samples){
        .calls = weft_bench_stop_asked() ? 1 : calibrate(timing, &candidates[c]),
        .seconds = weft_bench_alloc(timing->reps, sizeof(double)),
        .usable = weft_bench_alloc(timing->reps, sizeof(bool)),
    };
  size_t reps = 0;
  while (reps < timing->reps && measure_round(timing, candidates, count, reps, samples))
    reps++;
  for (size_t c = 0; c < count; c++)
    samples[c].reps = reps;
}

void weft_bench_samples_free(weft_bench_samples *samples) {
  free(samples->seconds);
  free(samples->usable);
  samples->seconds = NULL;
  samples->usable = NULL;
}
