// SPDX-License-Identifier: Apache-2.0
// kernels/x86/gf256_gfni256.c once more, on emulated instructions.
#include "tests/kernels/emulated/intrinsics.h"

#define weft_host_gfni256 weft_emulated_gfni256
#include "kernels/x86/gf256_gfni256.c"
