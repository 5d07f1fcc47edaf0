// SPDX-License-Identifier: Apache-2.0
// A device with memory for some stripes, and cases of storage codes on it: calls through the
// library, each with a bound, and each checked before it is timed.
#ifndef WEFT_BENCH_STORAGE_DEVICE_SCENE_H
#define WEFT_BENCH_STORAGE_DEVICE_SCENE_H

#include "bench/gpu_clock.h"
#include "bench/storage_gpu.h"

enum {
  WEFT_BENCH_SHARD = 10 << 20,
  WEFT_BENCH_STRIPE_SHARDS = 61, // at most
  // Room for two stripes of any shape, so that no stripe is cached when its turn comes, and no call
  // writes what the call before wrote: such calls do not overlap.
  WEFT_BENCH_DEVICE_SCENE_SHARDS = 2 * WEFT_BENCH_STRIPE_SHARDS,
  WEFT_BENCH_HOST_SHARD = 64 << 20,
  WEFT_BENCH_DEVICE_SCENE_PLANS = 64
};

// One device context with the memory of its stripes.
typedef struct weft_bench_device_scene {
  weft_ctx *ctx;
  weft_ctx *judge; // for DEVICE memory: a context with another row, to check results
  weft_queue *queue, *other;
  weft_mem mem;
  size_t most; // number of shards
  size_t shard_bytes;
  uint8_t *memory, *from, *to;
  weft_plan *plans[WEFT_BENCH_DEVICE_SCENE_PLANS]; // of its cases
  size_t plan_count;
} weft_bench_device_scene;

// What a case calls.
typedef struct weft_bench_device_scene_case {
  weft_bench_device_scene *scene;
  weft_code *code;
  weft_plan *plan; // NULL: encode
  // In different memory; used in turn, or all in one call.
  weft_stripe stripe[WEFT_BENCH_DEVICE_SCENE_SHARDS / 2];
  size_t stripes, at_once, calls;
  double warm_s;  // before each repetition: duration of the same calls; below 0: rest
  unsigned reads; // of the clock, one after each repetition
  weft_bench_gpu_clock low, high;
  char variant[128];
} weft_bench_device_scene_case;

// Returns a scene with random bytes in `shards` shards of DEVICE or PINNED memory, for a backend
// row.
weft_bench_device_scene *weft_bench_device_scene_new(const weft_bench_storage_run *run,
                                                     const char *row, weft_mem mem, size_t shards,
                                                     size_t shard_bytes);
void weft_bench_device_scene_free(weft_bench_device_scene *scene);

weft_code *weft_bench_device_scene_code(weft_bench_device_scene *scene,
                                        const weft_code_options *options);

// Returns a case that encodes every stripe that fits the scene's memory. On a device its calls move
// as many bytes as WEFT_BENCH_COPIES copies.
weft_bench_device_scene_case *weft_bench_device_scene_case_new(weft_bench_device_scene *scene,
                                                               weft_code *code);
// Writes other bytes where a case's results go, so that missing writes are detected.
void weft_bench_device_scene_spoil(const weft_bench_device_scene_case *c, const uint8_t *lost,
                                   size_t count);
// Runs the case once, checks its bytes, and adds it to the group, which then owns it.
int weft_bench_device_scene_add(weft_bench_group *group, weft_bench_device_scene_case *c,
                                const char *operation, int ceiling);

// Adds the bound of a code with k + m shards on the device: copies of as many bytes.
int weft_bench_device_scene_copy(weft_bench_device_scene *scene, weft_bench_group *group, size_t k,
                                 size_t m);
// The best that the bus can do for a case: k shards in and m out, at once or one after the other.
void weft_bench_device_scene_duplex(void *a_case);
void weft_bench_device_scene_one_engine(void *a_case);

#endif
