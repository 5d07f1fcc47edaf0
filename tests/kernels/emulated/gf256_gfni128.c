// SPDX-License-Identifier: Apache-2.0
// kernels/x86/gf256_gfni128.c compiled with emulated instructions.
#include "kernels/host_kernels.h"
#include "tests/kernels/emulated/intrinsics.h"

#define weft_host_gfni128 weft_emulated_gfni128
#include "kernels/x86/gf256_gfni128.c"
