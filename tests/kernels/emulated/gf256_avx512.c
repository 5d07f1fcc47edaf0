// SPDX-License-Identifier: Apache-2.0
// kernels/x86/gf256_avx512.c once more, on emulated instructions.
#include "tests/kernels/emulated/intrinsics.h"

#define weft_host_avx512 weft_emulated_avx512
#include "kernels/x86/gf256_avx512.c"
