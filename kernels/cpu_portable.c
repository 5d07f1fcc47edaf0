// SPDX-License-Identifier: Apache-2.0
// CPU features of an architecture that has no backend rows of its own: none.
#include "kernels/cpu.h"

uint32_t weft_cpu_features(void) { return 0; }
