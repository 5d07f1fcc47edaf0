// SPDX-License-Identifier: Apache-2.0
// Storage codes on a device: parts of `weft bench storage`.
#ifndef WEFT_BENCH_STORAGE_GPU_H
#define WEFT_BENCH_STORAGE_GPU_H

#include "bench/storage.h"
#include "weft/weft.h"

void weft_bench_storage_gpu_rs(weft_bench_storage_run *run);     // resident shards, bytes
void weft_bench_storage_gpu_crs(weft_bench_storage_run *run);    // resident shards, packets
void weft_bench_storage_gpu_crs8(weft_bench_storage_run *run);   // packets, w = 8
void weft_bench_storage_gpu_rows(weft_bench_storage_run *run);   // every published technique
void weft_bench_storage_gpu_host(weft_bench_storage_run *run);   // from and to host memory
void weft_bench_storage_gpu_device(weft_bench_storage_run *run); // device, driver, ceilings
// Encoding, and the same shards' bytes read and written without any arithmetic, for a model of
// encoding's time: k = 1..45, m = 1..4, w = 4..8 (storage_model.c).
void weft_bench_storage_gpu_model(weft_bench_storage_run *run);
// Short recoveries with matrices made on the CPU or on the device (storage_inverse.c).
void weft_bench_storage_gpu_inverse(weft_bench_storage_run *run);
// From and to host memory by 1, 2, 4, ... devices together (storage_devices.c).
void weft_bench_storage_gpu_devices(weft_bench_storage_run *run);
enum { WEFT_BENCH_COPY_BYTES = 512 << 20, WEFT_BENCH_COPIES = 8 };
// Adds copies of that size in device memory, that many of them queued, as the bound of a code with
// k + m shards: their bytes count as if k of k + m were data.
int weft_bench_storage_add_copy(weft_bench_group *group, weft_ctx *ctx, weft_queue *queue,
                                uint8_t *to, const uint8_t *from, size_t k, size_t m);

#endif
