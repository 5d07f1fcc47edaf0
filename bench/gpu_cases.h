// SPDX-License-Identifier: Apache-2.0
// What `weft bench gpu` times: products of the device row, and the library's calls. Each case
// enqueues `repeat` calls and waits once, so that neither launches nor the wait dominate; its
// amounts are those of all the calls.
#ifndef WEFT_BENCH_GPU_CASES_H
#define WEFT_BENCH_GPU_CASES_H

#include "bench/group.h"
#include "weft/weft.h"

typedef struct weft_bench_gpu weft_bench_gpu;

// Returns a context on a device (row: "cuda" or a row's name), or NULL with the status.
weft_bench_gpu *weft_bench_gpu_new(const char *row, size_t device, uint64_t seed,
                                   weft_status *status);
void weft_bench_gpu_free(weft_bench_gpu *gpu);
weft_ctx *weft_bench_gpu_ctx(const weft_bench_gpu *gpu);

// Copies of `bytes` bytes: within the device, between device and pinned memory, one way or both.
int weft_bench_gpu_add_copy(weft_bench_gpu *gpu, weft_bench_group *group, const char *name,
                            weft_mem to, weft_mem from, size_t bytes);
int weft_bench_gpu_add_duplex(weft_bench_gpu *gpu, weft_bench_group *group, size_t bytes);
// The binary tensor cores alone, counted as bytes coded from n blocks. They are measured in turn
// with the products, so that both run at the clock that the card's power limit allows. -1: not on
// this device.
int weft_bench_gpu_add_tensor(weft_bench_gpu *gpu, weft_bench_group *group, size_t n);

// m coded blocks of each of `segments` segments by the row, with prepared operands and coefficients
// on the device; `preparing`: including the preparation of each segment.
int weft_bench_gpu_add_product(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                               size_t m, size_t n, size_t k, bool preparing, int ceiling);
// The library's seeded encoder: m packets of each of `segments` segments, including the expansion
// of the coefficients on the device.
int weft_bench_gpu_add_encode(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                              size_t m, size_t n, size_t k, weft_mem to, int ceiling);
// The product on each of `count` devices at once, with one context and one host thread each. Free
// the crowd after the group.
typedef struct weft_bench_crowd weft_bench_crowd;
weft_bench_crowd *weft_bench_gpu_add_devices(weft_bench_gpu *const *gpus, size_t count,
                                             weft_bench_group *group, size_t m, size_t n, size_t k,
                                             int *index);
void weft_bench_crowd_free(weft_bench_crowd *crowd);
// The row writes to pinned memory itself.
int weft_bench_gpu_add_direct(weft_bench_gpu *gpu, weft_bench_group *group, size_t m, size_t n,
                              size_t k, int ceiling);
// Segments from pinned memory, n packets of each to pinned memory, on several queues: includes
// everything.
int weft_bench_gpu_add_host_to_host(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                                    size_t n, size_t k, int ceiling);
// weft_segments_new from pinned memory, with or without the row's preparation of each.
int weft_bench_gpu_add_upload(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                              size_t n, size_t k, bool preparing, int ceiling);
// weft_decode_batch, including inversion and preprocessing.
int weft_bench_gpu_add_decode(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                              size_t n, size_t k, weft_mem mem, int ceiling);

#endif
