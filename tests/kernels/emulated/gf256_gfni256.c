// SPDX-License-Identifier: Apache-2.0
// kernels/x86/gf256_gfni256.c compiled with emulated instructions.
#include "kernels/host_kernels.h"
#include "tests/kernels/emulated/intrinsics.h"

// Compiled code would run on the machine itself.
#define weft_xor_compile_avx2 NULL

#define weft_host_gfni256 weft_emulated_gfni256
#include "kernels/x86/gf256_gfni256.c"
