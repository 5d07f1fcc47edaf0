// SPDX-License-Identifier: Apache-2.0
// A scene is one stripe with everything that is measured on it: bounds, weft's calls and other
// libraries', all on the same shards.
#ifndef WEFT_BENCH_STORAGE_CASES_H
#define WEFT_BENCH_STORAGE_CASES_H

#include "bench/storage.h"

typedef struct weft_bench_scene weft_bench_scene;

// Random data shards in one piece of memory, one behind the other, as a file's stripe lies in
// memory; min(k, m) of them are lost in recoveries. The title is the group's.
weft_bench_scene *weft_bench_scene_new(weft_bench_storage_run *run, const char *title, size_t k,
                                       size_t m, size_t bytes);
// Cases that are added from now on are of the same shards weft_code_stride apart.
void weft_bench_scene_lay_apart(weft_bench_scene *scene);
// Measures the group, if it has a case of weft's, and frees everything.
void weft_bench_scene_run(weft_bench_scene *scene);
// Measures shortly, prints and records nothing, frees everything: the seconds of one call of the
// last case, or 0 where there is none.
double weft_bench_scene_try(weft_bench_scene *scene);

weft_bench_group *weft_bench_scene_group(weft_bench_scene *scene);

// What bounds the cases that are added from now on: the row's arithmetic, and loading k shards and
// storing m, or for an update loading one shard and m more, and storing m; this is also what bounds
// encoding one shard after the other.
void weft_bench_scene_add_bounds(weft_bench_scene *scene, bool update);

// How weft does something.
typedef struct weft_bench_own {
  weft_bench_storage_operation operation;
  const char *code; // as for weft_code_options
  size_t w, packet_bytes;
  size_t threads;      // 0: one
  bool cached;         // recovery: the plan is in the cache; otherwise it is made in each call
  bool uncompiled;     // CRS: by a program or by blocks, not by machine code
  const char *variant; // for the table; lives as long as the scene
} weft_bench_own;

// Add a case, checked with the scalar row; its index, or -1 where there is none (a peer that lacks
// the operation).
int weft_bench_scene_add_own(weft_bench_scene *scene, const weft_bench_own *own);
// threads > 1: the shards' columns are shared among threads, as a user of the library would.
int weft_bench_scene_add_peer(weft_bench_scene *scene, const weft_bench_storage_peer *peer,
                              weft_bench_storage_operation operation, size_t w, size_t packet_bytes,
                              size_t threads);

// A printf that lives as long as the scene.
__attribute__((format(printf, 2, 3))) const char *weft_bench_scene_text(weft_bench_scene *scene,
                                                                        const char *format, ...);

#endif
