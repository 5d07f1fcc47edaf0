// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 256-bit GFNI technique without AVX-512: an affine transform and an XOR per 32
// products.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define VEC __m256i
#define SET_BYTES _mm256_set1_epi8
#define SET_WORDS _mm256_set1_epi64x
#define MULADD(sum, x, m)                                                                          \
  ((sum) = _mm256_xor_si256((sum), _mm256_gf2p8affine_epi64_epi8((x), (m), 0)))
#include "bench/x86/ceiling_affine.h"

void weft_bench_loop_gfni256(size_t iterations) { affine_loop(iterations); }
