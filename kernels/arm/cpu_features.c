// SPDX-License-Identifier: Apache-2.0
// CPU features of 64-bit Arm, as the kernel reports them.
#include "kernels/cpu.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

uint32_t weft_cpu_features(void) { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) ? WEFT_CPU_NEON : 0; }
