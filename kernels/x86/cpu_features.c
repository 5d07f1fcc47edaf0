// SPDX-License-Identifier: Apache-2.0
// CPU features of x86: CPUID says what the chip can do, XGETBV which registers the operating system
// keeps across a context switch; a feature counts only with both.
#include "kernels/cpu.h"

#include <cpuid.h>
#include <stdbool.h>

enum {
  XCR0_YMM = 0x06,    // SSE and AVX state
  XCR0_ZMM = 0xE6,    // the same, plus mask registers and both halves of the ZMM state
  LEAF1_SSSE3 = 9,    // ecx
  LEAF1_OSXSAVE = 27, // ecx
  LEAF1_AVX = 28,     // ecx
  LEAF1_SSE2 = 26,    // edx
  LEAF7_AVX2 = 5,     // ebx
  LEAF7_AVX512F = 16, // ebx
  LEAF7_AVX512BW = 30,
  LEAF7_AVX512VL = 31,
  LEAF7_AVX512VBMI = 1, // ecx
  LEAF7_AVX512VBMI2 = 6,
  LEAF7_GFNI = 8,
};

static bool bit(unsigned word, unsigned index) { return (word >> index) & 1u; }

static unsigned enabled_state(void) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

uint32_t weft_cpu_features(void) {
  unsigned a, b, c, d;
  uint32_t found = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return 0;
  if (bit(d, LEAF1_SSE2))
    found |= WEFT_CPU_SSE2;
  if (bit(c, LEAF1_SSSE3))
    found |= WEFT_CPU_SSSE3;
  const unsigned state = bit(c, LEAF1_OSXSAVE) ? enabled_state() : 0;
  const bool ymm = bit(c, LEAF1_AVX) && (state & XCR0_YMM) == XCR0_YMM;
  const bool zmm = ymm && (state & XCR0_ZMM) == XCR0_ZMM;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return found;
  if (ymm && bit(b, LEAF7_AVX2))
    found |= WEFT_CPU_AVX2;
  if (zmm && bit(b, LEAF7_AVX512F))
    found |= WEFT_CPU_AVX512F;
  if (zmm && bit(b, LEAF7_AVX512BW))
    found |= WEFT_CPU_AVX512BW;
  if (zmm && bit(b, LEAF7_AVX512VL))
    found |= WEFT_CPU_AVX512VL;
  if (zmm && bit(c, LEAF7_AVX512VBMI))
    found |= WEFT_CPU_AVX512VBMI;
  if (zmm && bit(c, LEAF7_AVX512VBMI2))
    found |= WEFT_CPU_AVX512VBMI2;
  if (bit(c, LEAF7_GFNI))
    found |= WEFT_CPU_GFNI;
  return found;
}
