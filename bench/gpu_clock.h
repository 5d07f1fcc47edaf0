// SPDX-License-Identifier: Apache-2.0
// The clock and power of CUDA's first GPU, as its management library tells them.
#ifndef WEFT_BENCH_GPU_CLOCK_H
#define WEFT_BENCH_GPU_CLOCK_H

#include <stdbool.h>

typedef struct weft_bench_gpu_clock {
  unsigned mhz;                // of the multiprocessors
  unsigned watts;              // a mean over the last second or so
  unsigned long long throttle; // reasons, as NVML numbers them: 4 is the power cap; 0 or 1: none
} weft_bench_gpu_clock;

// False where the library (libnvidia-ml.so.1) or a device is not there, or does not answer.
bool weft_bench_gpu_clock_read(weft_bench_gpu_clock *out);

#endif
