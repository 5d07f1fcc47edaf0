// SPDX-License-Identifier: Apache-2.0
// NVML, opened at run time and spoken to by the few names that are needed.
#define _GNU_SOURCE // dlopen in older C libraries' headers
#include "bench/gpu_clock.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { CLOCK_SM = 1 };

static struct {
  int (*start)(void);
  int (*by_index)(unsigned index, void **device);
  int (*clock)(void *device, int kind, unsigned *mhz);
  int (*power)(void *device, unsigned *milliwatts);
  int (*reasons)(void *device, unsigned long long *reasons);
  void *device;
  bool tried, there;
} nvml;

// Pointers to functions and to data are of one size where there is dlsym.
static bool find(void *library, const char *name, void *slot) {
  void *const at = dlsym(library, name);
  memcpy(slot, &at, sizeof at);
  return at != NULL;
}

static bool open_library(void) {
  void *const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return library && find(library, "nvmlInit_v2", &nvml.start) &&
         find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.by_index) &&
         find(library, "nvmlDeviceGetClockInfo", &nvml.clock) &&
         find(library, "nvmlDeviceGetPowerUsage", &nvml.power) &&
         find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.reasons) &&
         nvml.start() == 0 && nvml.by_index(0, &nvml.device) == 0;
}

bool weft_bench_gpu_clock_read(weft_bench_gpu_clock *out) {
  if (!nvml.tried) {
    nvml.tried = true;
    nvml.there = open_library();
  }
  unsigned milliwatts = 0;
  if (!nvml.there || nvml.clock(nvml.device, CLOCK_SM, &out->mhz) != 0 ||
      nvml.power(nvml.device, &milliwatts) != 0 || nvml.reasons(nvml.device, &out->throttle) != 0)
    return false;
  out->watts = milliwatts / 1000;
  return true;
}
