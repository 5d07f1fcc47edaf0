// SPDX-License-Identifier: Apache-2.0
// What the device's units can do, and which driver it runs on.
#ifndef WEFT_BENCH_GPU_CEILINGS_H
#define WEFT_BENCH_GPU_CEILINGS_H

#include <jansson.h>

#include "weft/context.h"

json_t *weft_bench_gpu_ceilings(weft_ctx *ctx); // name: rate per second; null without CUDA
json_t *weft_bench_gpu_driver(void);            // its version, or null
// Queues `launches` of the binary tensor ceiling: bit products of one, or 0 where there is none.
// `room`: device memory, WEFT_BENCH_TENSOR_ROOM bytes.
double weft_bench_gpu_queue_tensor(void *stream, void *room, int launches);
enum { WEFT_BENCH_TENSOR_ROOM = 1 << 20 };

#endif
