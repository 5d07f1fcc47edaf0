// SPDX-License-Identifier: Apache-2.0
// Ceilings of the device, measured together with the rows, in operations (or bytes) per second.
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
// Runs ceiling number i; returns its name and rate.
const char *bench_ceiling(void *stream, int i, double *rate);

// Enqueues one pass over `bytes` bytes with `rounds` rounds of four LOP3s on each 16 bytes; if
// `memory` is 0, the arithmetic alone. Returns 0 if the launch failed.
int bench_overlap(void *stream, const void *from, void *to, size_t bytes, int rounds, int memory);

// Stripes of k + m rows of `bytes` bytes, one after the other.
typedef struct bench_mix {
  void *rows;
  size_t bytes; // of a row, a multiple of 16 KiB
  unsigned k, m, stripes;
} bench_mix;
// Enqueues, in one launch, `passes` passes that read k rows and write m of each stripe: the memory
// traffic of such an encoder.
int bench_mix_all(void *stream, const bench_mix *mix, unsigned passes);
// The same once for stripe i. The launch begins while the one before it ends, and waits for that
// one only at its own end.
int bench_mix_one(void *stream, const bench_mix *mix, unsigned i);

#ifdef __cplusplus
}
#endif
#endif
