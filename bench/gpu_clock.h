// SPDX-License-Identifier: Apache-2.0
// The clock and power of CUDA's first GPU, as its management library (NVML) reports them.
#ifndef WEFT_BENCH_GPU_CLOCK_H
#define WEFT_BENCH_GPU_CLOCK_H

#include <stdbool.h>

typedef struct weft_bench_gpu_clock {
  unsigned mhz;                // of the multiprocessors
  unsigned watts;              // mean over the last second or so
  unsigned long long throttle; // reasons, numbered as by NVML: 4 is the power cap; 0 or 1: none
} weft_bench_gpu_clock;

// Returns false if the library (libnvidia-ml.so.1) or a device is missing or does not answer.
bool weft_bench_gpu_clock_read(weft_bench_gpu_clock *out);

#endif
