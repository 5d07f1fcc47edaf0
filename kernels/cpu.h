// SPDX-License-Identifier: Apache-2.0
// CPU features as a set: rows name the ones they need, detection returns the ones there are.
#ifndef WEFT_KERNELS_CPU_H
#define WEFT_KERNELS_CPU_H

#include <stddef.h>
#include <stdint.h>

enum {
  WEFT_CPU_SSE2 = 1u << 0,
  WEFT_CPU_SSSE3 = 1u << 1,
  WEFT_CPU_AVX2 = 1u << 2,
  WEFT_CPU_AVX512F = 1u << 3,
  WEFT_CPU_AVX512BW = 1u << 4,
  WEFT_CPU_AVX512VL = 1u << 5,
  WEFT_CPU_GFNI = 1u << 6,
  WEFT_CPU_NEON = 1u << 7,
  WEFT_CPU_AVX512VBMI = 1u << 8,
  WEFT_CPU_AVX512VBMI2 = 1u << 9,
};

// The features of this CPU that the operating system also saves on a context switch.
uint32_t weft_cpu_features(void);

// One feature's name ("avx2"), or NULL for a bit that is none.
const char *weft_cpu_feature_name(uint32_t feature);

// Bytes of a core's first two levels of data caches; 0: the system does not tell.
typedef struct weft_cpu_caches {
  size_t first, second;
} weft_cpu_caches;
weft_cpu_caches weft_cpu_caches_told(void);

#endif
