// SPDX-License-Identifier: Apache-2.0
// The names of CPU features. Detection is per architecture: x86/, arm/, cpu_portable.c.
#include "kernels/cpu.h"

#include <stddef.h>

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
