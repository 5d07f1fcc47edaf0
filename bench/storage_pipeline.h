// SPDX-License-Identifier: Apache-2.0
// Stripes in host memory that a device processes in pieces, with a number of streams in turn, as in
// PErasure's Algorithm 4 and G-CRS's Algorithm 2; and each step of that alone. For the papers'
// figures, where pieces, streams and memory are parameters; lib/ chooses its own.
#ifndef WEFT_BENCH_STORAGE_PIPELINE_H
#define WEFT_BENCH_STORAGE_PIPELINE_H

#include "bench/storage.h"
#include "weft/storage.h"

enum { WEFT_BENCH_STREAMS = 10 };

typedef enum weft_bench_step {
  WEFT_BENCH_STEP_IN = 1,
  WEFT_BENCH_STEP_COMPUTE = 2,
  WEFT_BENCH_STEP_OUT = 4,
  WEFT_BENCH_STEP_TRANSFERS = WEFT_BENCH_STEP_IN | WEFT_BENCH_STEP_OUT,
  WEFT_BENCH_STEP_ALL = 7
} weft_bench_step;

typedef struct weft_bench_pipeline weft_bench_pipeline;

// Returns a pipeline with random shards in `mem` (PINNED, or HOST: pageable) and `device_bytes` on
// a device, with a context of this row.
weft_bench_pipeline *weft_bench_pipeline_new(const weft_bench_storage_run *run, const char *row,
                                             weft_mem mem, size_t shards, size_t shard_bytes,
                                             size_t device_bytes);
// Frees its codes and plans as well; the groups with its cases must be freed before. Accepts NULL.
void weft_bench_pipeline_free(weft_bench_pipeline *pipeline);

// Makes a code on the pipeline's context.
weft_code *weft_bench_pipeline_code(weft_bench_pipeline *pipeline, const char *name, size_t k,
                                    size_t m, size_t w);

// What one case does with a stripe.
typedef struct weft_bench_piecework {
  weft_code *code;
  size_t lost;        // data shards to recover; 0: encode
  size_t bytes;       // of a shard; rounded down to whole units of the code
  size_t piece_bytes; // of a shard, likewise rounded
  size_t streams;
  weft_bench_step steps;
  size_t repeat; // stripes per call
  const char *variant;
} weft_bench_piecework;

// Checks all steps on both ends of every shard, and adds the case. Returns -1 if the row does not
// support such a code.
int weft_bench_pipeline_add(weft_bench_pipeline *pipeline, weft_bench_group *group,
                            const weft_bench_piecework *work, int ceiling);
// Adds a copy in device memory, whose bytes count as if k of k + m were data.
int weft_bench_pipeline_add_dram(weft_bench_pipeline *pipeline, weft_bench_group *group, size_t k,
                                 size_t m);
#endif
