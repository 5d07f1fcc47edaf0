// SPDX-License-Identifier: Apache-2.0
// kernels/x86/gf256_gfni512.c compiled with emulated instructions.
#include "kernels/host_kernels.h"
#include "tests/kernels/emulated/intrinsics.h"

// Compiled code would run on the machine itself.
#define weft_xor_compile_avx512 NULL

#define FEW_COLUMNS 1024
#define FEW_GROUPED 1024
#define FEW_COLUMNS_AT_ONCE(p) ((p)->apart ? 512 : 768)
#define KEPT_FIRST 4096
#define KEPT_NEAR 20000
#define FEW_CACHED 40000
#define FEW_AHEAD 512
#define FEW_FOLLOWS (total % 256 == 0) // some of both
#define FEW_FOLLOWED_AHEAD 256
#define FEW_STREAMED (k % 3 != 0)
#define FEW_STREAMED_FROM(m) ((m) <= FEW_DEMANDING ? 60000 : 90000)
#define FEW_ENTRIES                                                                                \
  { 8, 8, 8, 7, 5, 8, 3, 4, 6, 5, 60000 }
#define FEW_PAST_CACHE 80000
#define FEW_THIRD_LEVEL 120000
#define FEW_CROWDED true
#define FEW_WIDER(quiet) (!(quiet) && p->m % 2)
#define FEW_SHORT(m, k) ((k) % 3 != 0)
#define FEW_ONE_BLOCK(rows) ((rows) % 2)
#define FEW_APART(p) (!(p)->fetch && (p)->k % 2 == (p)->m % 2)
#define STEPS_STAGES true
#define STEPS_STAGED 256
#define STEPS_AHEAD 128
#define MANY_NEAR 60000
#define MANY_LONG 2000
#define MANY_NEAR_BUFFER 4096
#define MANY_FAR_BUFFER 9000
#define weft_host_gfni512 weft_emulated_gfni512
#include "kernels/x86/gf256_gfni512.c"
