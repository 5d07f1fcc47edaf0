// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 256-bit GFNI technique: an affine transform per 32 products, and a three-way XOR
// (AVX-512VL) for every two transforms.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define VEC __m256i
#define SET_BYTES _mm256_set1_epi8
#define SET_WORDS _mm256_set1_epi64x
#define MUL(x, m) _mm256_gf2p8affine_epi64_epi8((x), (m), 0)
#define ADD(sum, a, b) ((sum) = _mm256_ternarylogic_epi64((sum), (a), (b), 0x96))
#include "bench/x86/ceiling_ternary.h"

void weft_bench_loop_gfni256_ternary(size_t iterations) { ternary_loop(iterations); }
