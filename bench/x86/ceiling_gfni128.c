// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 128-bit GFNI technique without AVX: an affine transform and an XOR per 16
// products.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define VEC __m128i
#define SET_BYTES _mm_set1_epi8
#define SET_WORDS _mm_set1_epi64x
#define MULADD(sum, x, m) ((sum) = _mm_xor_si128((sum), _mm_gf2p8affine_epi64_epi8((x), (m), 0)))
#include "bench/x86/ceiling_affine.h"

void weft_bench_loop_gfni128(size_t iterations) { affine_loop(iterations); }
