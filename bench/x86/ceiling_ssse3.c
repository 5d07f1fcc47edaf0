// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 128-bit nibble shuffle. Two shuffles and two XORs per 16 products; without the
// split into nibbles, which all rows that use a source share.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define VEC __m128i
#define SET_BYTES _mm_set1_epi8
#define SET_WORDS _mm_set1_epi64x
#define LOOK_UP(table, n) _mm_shuffle_epi8((table), (n))
#define ADD(sum, p) ((sum) = _mm_xor_si128((sum), (p)))
#include "bench/x86/ceiling_shuffles.h"

void weft_bench_loop_ssse3(size_t iterations) { shuffle_loop(iterations); }
