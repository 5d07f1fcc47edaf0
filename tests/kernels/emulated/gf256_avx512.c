// SPDX-License-Identifier: Apache-2.0
// kernels/x86/gf256_avx512.c compiled with emulated instructions.
#include "kernels/host_kernels.h"
#include "tests/kernels/emulated/intrinsics.h"

// Compiled code would run on the machine itself.
#define weft_xor_compile_avx512 NULL

#define weft_host_avx512 weft_emulated_avx512
#include "kernels/x86/gf256_avx512.c"
