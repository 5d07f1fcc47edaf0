// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 512-bit GFNI technique: an affine transform per 64 products, and a three-way XOR
// for every two transforms.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define VEC __m512i
#define SET_BYTES _mm512_set1_epi8
#define SET_WORDS _mm512_set1_epi64
#define MUL(x, m) _mm512_gf2p8affine_epi64_epi8((x), (m), 0)
#define ADD(sum, a, b) ((sum) = _mm512_ternarylogic_epi64((sum), (a), (b), 0x96))
#include "bench/x86/ceiling_ternary.h"

void weft_bench_loop_gfni512(size_t iterations) { ternary_loop(iterations); }
