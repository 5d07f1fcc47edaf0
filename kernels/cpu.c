// SPDX-License-Identifier: Apache-2.0
// Names of CPU features, and cache sizes. Features are detected per architecture: x86/, arm/,
// cpu_portable.c.
#include "kernels/cpu.h"

#include <unistd.h>

const char *weft_cpu_feature_name(uint32_t feature) {
  switch (feature) {
  case WEFT_CPU_SSE2:
    return "sse2";
  case WEFT_CPU_SSSE3:
    return "ssse3";
  case WEFT_CPU_AVX2:
    return "avx2";
  case WEFT_CPU_AVX512F:
    return "avx512f";
  case WEFT_CPU_AVX512BW:
    return "avx512bw";
  case WEFT_CPU_AVX512VL:
    return "avx512vl";
  case WEFT_CPU_GFNI:
    return "gfni";
  case WEFT_CPU_AVX512VBMI:
    return "avx512vbmi";
  case WEFT_CPU_AVX512VBMI2:
    return "avx512vbmi2";
  case WEFT_CPU_NEON:
    return "neon";
  default:
    return NULL;
  }
}

#ifdef _SC_LEVEL2_CACHE_SIZE
static size_t told(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? (size_t)bytes : 0;
}

weft_cpu_caches weft_cpu_caches_told(void) {
  return (weft_cpu_caches){.first = told(_SC_LEVEL1_DCACHE_SIZE),
                           .second = told(_SC_LEVEL2_CACHE_SIZE)};
}
#else
weft_cpu_caches weft_cpu_caches_told(void) { return (weft_cpu_caches){0, 0}; }
#endif
