// SPDX-License-Identifier: Apache-2.0
// `weft bench storage`: erasure codes compared with their bounds and with other libraries.
//
// The comparison consists of parts, which --operations names. In its cases n is the number of data
// shards, k the bytes of a shard and m the number of parity shards, as everywhere in weft bench (n
// sources of k bytes make m outputs). "GB/s of data" is the input of a case.
#ifndef WEFT_BENCH_STORAGE_H
#define WEFT_BENCH_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/group.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/peers/storage_peer.h"
#include "kernels/backend.h"

#define WEFT_BENCH_STORAGE_PEERS 8u
#define WEFT_BENCH_STORAGE_SHAPES 32u // at most, in --shapes

typedef struct weft_bench_storage_run {
  weft_bench_options options;
  weft_bench_machine machine;
  weft_bench_report report;
  const weft_backend *row; // the host row being measured
  weft_bench_storage_peer *peers[WEFT_BENCH_STORAGE_PEERS];
  size_t peer_count;
} weft_bench_storage_run;

// k data and m parity shards.
typedef struct weft_bench_sizes_of_code {
  size_t k, m;
} weft_bench_sizes_of_code;

// Returns how many shapes it wrote: those of --shapes, otherwise `preset`.
size_t weft_bench_storage_shapes(const weft_bench_storage_run *run,
                                 const weft_bench_sizes_of_code *preset, size_t preset_count,
                                 weft_bench_sizes_of_code *out, size_t capacity);

// The parts; host parts are in storage_parts.c.
void weft_bench_storage_encode(weft_bench_storage_run *run);
void weft_bench_storage_small(weft_bench_storage_run *run);
void weft_bench_storage_layout(weft_bench_storage_run *run);
void weft_bench_storage_update(weft_bench_storage_run *run);
void weft_bench_storage_crs(weft_bench_storage_run *run);
void weft_bench_storage_crs_update(weft_bench_storage_run *run);
void weft_bench_storage_threads(weft_bench_storage_run *run);
void weft_bench_storage_parity(weft_bench_storage_run *run);

#endif
