// SPDX-License-Identifier: Apache-2.0
// The speed limits of a device's units, and the driver's version.
#ifndef WEFT_BENCH_GPU_CEILINGS_H
#define WEFT_BENCH_GPU_CEILINGS_H

#include <jansson.h>

#include "weft/context.h"

json_t *weft_bench_gpu_ceilings(weft_ctx *ctx); // name: rate per second; null without CUDA
json_t *weft_bench_gpu_driver(void);            // its version, or null
// Queues `launches` launches of the binary tensor ceiling; returns the bit products of one, or 0 if
// the device has none. `room`: device memory, WEFT_BENCH_TENSOR_ROOM bytes.
double weft_bench_gpu_queue_tensor(void *stream, void *room, int launches);
enum { WEFT_BENCH_TENSOR_ROOM = 1 << 20 };

#endif
