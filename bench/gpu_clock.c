// SPDX-License-Identifier: Apache-2.0
// NVML and the driver, opened at run time through the few functions needed. NVML counts all GPUs of
// the machine; only the driver knows which of them is CUDA's first, the one that the benches use.
#define _GNU_SOURCE // dlopen in older C libraries' headers
#include "bench/gpu_clock.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { CLOCK_SM = 1 };

static struct {
  int (*start)(void);
  int (*by_bus)(const char *bus, void **device);
  int (*clock)(void *device, int kind, unsigned *mhz);
  int (*power)(void *device, unsigned *milliwatts);
  int (*reasons)(void *device, unsigned long long *reasons);
  void *device;
  bool tried, there;
} nvml;

// Pointers to functions and to data have the same size wherever dlsym exists.
static bool find(void *library, const char *name, void *slot) {
  void *const at = dlsym(library, name);
  memcpy(slot, &at, sizeof at);
  return at != NULL;
}

// Returns the bus address of CUDA's first device, such as "0000:41:00.0".
static bool find_bus(char *bus, int bytes) {
  int (*start)(unsigned flags), (*at)(int *device, int index), (*bus_of)(char *, int, int);
  int device = 0;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library && find(library, "cuInit", &start) && find(library, "cuDeviceGet", &at) &&
         find(library, "cuDeviceGetPCIBusId", &bus_of) && start(0) == 0 && at(&device, 0) == 0 &&
         bus_of(bus, bytes, device) == 0;
}

static bool open_library(void) {
  char bus[32];
  void *const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return library && find(library, "nvmlInit_v2", &nvml.start) &&
         find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_bus) &&
         find(library, "nvmlDeviceGetClockInfo", &nvml.clock) &&
         find(library, "nvmlDeviceGetPowerUsage", &nvml.power) &&
         find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.reasons) &&
         nvml.start() == 0 && find_bus(bus, sizeof bus) && nvml.by_bus(bus, &nvml.device) == 0;
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
