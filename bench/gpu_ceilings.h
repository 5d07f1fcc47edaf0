// SPDX-License-Identifier: Apache-2.0
// What the device's units can do, and which driver it runs on.
#ifndef WEFT_BENCH_GPU_CEILINGS_H
#define WEFT_BENCH_GPU_CEILINGS_H

#include <jansson.h>

#include "weft/context.h"

json_t *weft_bench_gpu_ceilings(weft_ctx *ctx); // name: rate per second; null without CUDA
json_t *weft_bench_gpu_driver(void);            // its version, or null

#endif
