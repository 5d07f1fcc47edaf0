// SPDX-License-Identifier: Apache-2.0
// A scene is one stripe with everything that is measured on it: bounds, weft's calls and those of
// other libraries, all on the same shards.
#ifndef WEFT_BENCH_STORAGE_CASES_H
#define WEFT_BENCH_STORAGE_CASES_H

#include "bench/storage.h"

typedef struct weft_bench_scene weft_bench_scene;

// Returns a scene with random data shards one after another in one piece of memory, like a file's
// stripe; min(k, m) of them are lost in recoveries. The title is the group's.
weft_bench_scene *weft_bench_scene_new(weft_bench_storage_run *run, const char *title, size_t k,
                                       size_t m, size_t bytes);
// Cases added from now on use copies of the shards that are weft_code_stride apart.
void weft_bench_scene_lay_apart(weft_bench_scene *scene);
// Measures the group, if it has a case of weft's, and frees everything.
void weft_bench_scene_run(weft_bench_scene *scene);
// Measures briefly, without printing or recording anything, and frees everything. Returns the
// seconds of one call of the last case, or 0 if there is none.
double weft_bench_scene_try(weft_bench_scene *scene);

weft_bench_group *weft_bench_scene_group(weft_bench_scene *scene);

// Adds the bounds of the cases added from now on: the row's arithmetic, and the traffic of loading
// k shards and storing m. For an update, and for encoding one shard after another, it is loading
// one shard, and loading and storing m more.
void weft_bench_scene_add_bounds(weft_bench_scene *scene, bool update);

// How weft does an operation.
typedef struct weft_bench_own {
  weft_bench_storage_operation operation;
  const char *code; // as for weft_code_options
  size_t w, packet_bytes;
  size_t threads;      // 0: one
  bool cached;         // recovery: the plan is cached; otherwise each call makes it
  bool uncompiled;     // CRS: by XOR program or blocks of bits, not machine code
  const char *variant; // for the table; lives as long as the scene
} weft_bench_own;

// Add a case, checked with the scalar row. Return its index, or -1 if there is none (a peer lacks
// the operation).
int weft_bench_scene_add_own(weft_bench_scene *scene, const weft_bench_own *own);
// threads > 1: threads share the shards' columns, as the library's users would arrange it.
int weft_bench_scene_add_peer(weft_bench_scene *scene, const weft_bench_storage_peer *peer,
                              weft_bench_storage_operation operation, size_t w, size_t packet_bytes,
                              size_t threads);

// Formats a text that lives as long as the scene.
__attribute__((format(printf, 2, 3))) const char *weft_bench_scene_text(weft_bench_scene *scene,
                                                                        const char *format, ...);

#endif
