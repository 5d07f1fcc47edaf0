// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 256-bit nibble shuffle, and 256-bit reads. Two shuffles and two XORs per 32
// products; without the split into nibbles, which all rows that use a source share.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define VEC __m256i
#define SET_BYTES _mm256_set1_epi8
#define SET_WORDS _mm256_set1_epi64x
#define LOOK_UP(table, n) _mm256_shuffle_epi8((table), (n))
#define ADD(sum, p) ((sum) = _mm256_xor_si256((sum), (p)))
#include "bench/x86/ceiling_shuffles.h"

void weft_bench_loop_avx2(size_t iterations) { shuffle_loop(iterations); }

#define ZERO _mm256_setzero_si256
#define XOR(a, b) _mm256_xor_si256((a), (b))
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), (v))
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), (v))
#define CEILING(what) weft_bench_##what##_avx2
#include "bench/x86/ceiling_memory.h"
