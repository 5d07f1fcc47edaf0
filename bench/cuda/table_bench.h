// SPDX-License-Identifier: Apache-2.0
// Ceilings of the device, measured beside the rows, in operations (or bytes) per second.
#ifndef WEFT_BENCH_CUDA_TABLE_BENCH_H
#define WEFT_BENCH_CUDA_TABLE_BENCH_H

#ifdef __cplusplus
extern "C" {
#endif
#include <stddef.h>

typedef struct bench_timing {
  double median_s, min_s, max_s;
} bench_timing;

enum { BENCH_REPS_MAX = 101 };
// Times `call` with device events: one warm-up, then `reps` runs, 1 to BENCH_REPS_MAX.
bench_timing bench_time(void *stream, int reps, void (*call)(void *user), void *user);

// Of the current device.
int bench_multiprocessors(void);

enum { BENCH_CEILINGS = 6 };
// Runs ceiling number i and gives its name and rate.
const char *bench_ceiling(void *stream, int i, double *rate);

// Enqueues one pass over `bytes` bytes with `rounds` rounds of four LOP3s on each 16; without
// memory it does the arithmetic alone. 0 when the launch failed.
int bench_overlap(void *stream, const void *from, void *to, size_t bytes, int rounds, int memory);

// Stripes of k + m rows of `bytes`, one after the other.
typedef struct bench_mix {
  void *rows;
  size_t bytes; // of a row, a multiple of 16 KiB
  unsigned k, m, stripes;
} bench_mix;
// Enqueues reading k rows and writing m of each stripe, as often as `passes` says, by one launch:
// what memory takes for such a mix.
int bench_mix_all(void *stream, const bench_mix *mix, unsigned passes);
// The same once for stripe number i, by a launch that begins while the one before it ends, and
// waits for it only in the end.
int bench_mix_one(void *stream, const bench_mix *mix, unsigned i);

#ifdef __cplusplus
}
#endif
#endif
