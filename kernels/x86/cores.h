// SPDX-License-Identifier: Apache-2.0
// Recognises AMD's last two cores: what suits their caches was measured, and CPUID does not report
// it.
#ifndef WEFT_KERNELS_X86_CORES_H
#define WEFT_KERNELS_X86_CORES_H

#include <stdbool.h>

// Zen 4, and Zen 3, which has no AVX-512.
static inline bool core_is_zen4(void) { return __builtin_cpu_is("amdfam19h"); }

// Zen 5 or later: compilers of its time have no name for it.
static inline bool core_is_zen5(void) {
  return __builtin_cpu_is("amd") && !__builtin_cpu_is("amdfam17h") && !core_is_zen4();
}

#endif
