// SPDX-License-Identifier: Apache-2.0
// Stripes in host memory that a device works on in pieces, a number of streams in turn, as
// PErasure's Algorithm 4 and G-CRS's Algorithm 2 have it; and each step of that by itself. For the
// figures of papers, whose pieces, streams and memory are parameters; lib/ chooses its own.
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

// Random shards in `mem` (PINNED, or HOST: pageable) and `device_bytes` on a device whose context
// has this row.
weft_bench_pipeline *weft_bench_pipeline_new(const weft_bench_storage_run *run, const char *row,
                                             weft_mem mem, size_t shards, size_t shard_bytes,
                                             size_t device_bytes);
// Codes and plans made for it go with it; the groups of its cases go first. Accepts NULL.
void weft_bench_pipeline_free(weft_bench_pipeline *pipeline);

// A code on the pipeline's context.
weft_code *weft_bench_pipeline_code(weft_bench_pipeline *pipeline, const char *name, size_t k,
                                    size_t m, size_t w);

// What one case does with a stripe.
typedef struct weft_bench_piecework {
  weft_code *code;
  size_t lost;        // data shards that are recovered; 0: encodes
  size_t bytes;       // of a shard; whole units of the code are taken
  size_t piece_bytes; // of a shard, likewise
  size_t streams;
  weft_bench_step steps;
  size_t repeat; // stripes of a call
  const char *variant;
} weft_bench_piecework;

// Checks it, all steps on both ends of every shard, and adds it. -1 when the row does not take such
// a code.
int weft_bench_pipeline_add(weft_bench_pipeline *pipeline, weft_bench_group *group,
                            const weft_bench_piecework *work, int ceiling);
// A copy in device memory, its bytes as if k of k + m were data.
int weft_bench_pipeline_add_dram(weft_bench_pipeline *pipeline, weft_bench_group *group, size_t k,
                                 size_t m);
#endif
