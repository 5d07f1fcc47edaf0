// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 512-bit nibble shuffle, and 512-bit reads. Two shuffles and a three-way XOR per 64
// products; without the split into nibbles, which all rows that use a source share.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define OPAQUE4(a, b, c, d) __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d))
#define MULADD(sum, low, high, tl, th)                                                             \
  ((sum) = _mm512_ternarylogic_epi64((sum), _mm512_shuffle_epi8((tl), (low)),                      \
                                     _mm512_shuffle_epi8((th), (high)), 0x96))

void weft_bench_loop_avx512(size_t iterations) {
  __m512i l0 = _mm512_set1_epi8(3), h0 = _mm512_set1_epi8(5);
  __m512i l1 = _mm512_set1_epi8(9), h1 = _mm512_set1_epi8(7);
  __m512i a0 = _mm512_set1_epi64(0x0102040810204081), b0 = _mm512_set1_epi64(0x1122448811224488);
  __m512i a1 = _mm512_set1_epi64(0x3162448c18224680), b1 = _mm512_set1_epi64(0x5102440a19214083);
  __m512i a2 = _mm512_set1_epi64(0x4102440810204084), b2 = _mm512_set1_epi64(0x2122448811224485);
  __m512i a3 = _mm512_set1_epi64(0x6162448c18224681), b3 = _mm512_set1_epi64(0x7102440a19214082);
  __m512i s0 = l0, s1 = l1, s2 = l0, s3 = l1, s4 = h0, s5 = h1, s6 = h0, s7 = h1;
  OPAQUE4(a0, b0, a1, b1);
  OPAQUE4(a2, b2, a3, b3);
  for (size_t i = 0; i < iterations; i++)
    for (int step = 0; step < 4; step++) {
      OPAQUE4(l0, h0, l1, h1);
      MULADD(s0, l0, h0, a0, b0);
      MULADD(s1, l0, h0, a1, b1);
      MULADD(s2, l0, h0, a2, b2);
      MULADD(s3, l0, h0, a3, b3);
      MULADD(s4, l1, h1, a0, b0);
      MULADD(s5, l1, h1, a1, b1);
      MULADD(s6, l1, h1, a2, b2);
      MULADD(s7, l1, h1, a3, b3);
    }
  __asm__ volatile("" : : "v"(s0), "v"(s1), "v"(s2), "v"(s3), "v"(s4), "v"(s5), "v"(s6), "v"(s7));
}

#define VEC __m512i
#define ZERO _mm512_setzero_si512
#define XOR(a, b) _mm512_xor_si512((a), (b))
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512((p), (v))
#define STREAM(p, v) _mm512_stream_si512((void *)(p), (v))
#define CEILING(what) weft_bench_##what##_avx512
#include "bench/x86/ceiling_memory.h"
