// SPDX-License-Identifier: Apache-2.0
// CPU features as a set: backend rows name those they need, detection returns those the machine
// has.
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

// Returns the features of this CPU whose registers the operating system saves on a context switch.
uint32_t weft_cpu_features(void);

// Returns one feature's name ("avx2"), or NULL for a bit that is not a feature.
const char *weft_cpu_feature_name(uint32_t feature);

// Bytes of a core's first two levels of data caches, as the system reports them; 0: it does not.
typedef struct weft_cpu_caches {
  size_t first, second;
} weft_cpu_caches;
weft_cpu_caches weft_cpu_caches_told(void);

#endif
