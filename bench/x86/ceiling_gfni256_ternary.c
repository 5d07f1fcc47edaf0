// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 256-bit GFNI technique: an affine transform per 32 products, and one three-way
// XOR (AVX-512VL) for two of them.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

#define OPAQUE4(a, b, c, d) __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d))
#define MUL(x, m) _mm256_gf2p8affine_epi64_epi8((x), (m), 0)
#define ADD(sum, a, b) ((sum) = _mm256_ternarylogic_epi64((sum), (a), (b), 0x96))

void weft_bench_loop_gfni256_ternary(size_t iterations) {
  __m256i x0 = _mm256_set1_epi8(3), x1 = _mm256_set1_epi8(5);
  __m256i x2 = _mm256_set1_epi8(9), x3 = _mm256_set1_epi8(17);
  __m256i m0 = _mm256_set1_epi64x(0x0102040810204081), m1 = _mm256_set1_epi64x(0x1122448811224488);
  __m256i m2 = _mm256_set1_epi64x(0x3162448c18224680), m3 = _mm256_set1_epi64x(0x5102440a19214083);
  __m256i s0 = x0, s1 = x1, s2 = x2, s3 = x3, s4 = x0, s5 = x1, s6 = x2, s7 = x3;
  OPAQUE4(m0, m1, m2, m3);
  for (size_t i = 0; i < iterations; i++)
    for (int step = 0; step < 2; step++) {
      OPAQUE4(x0, x1, x2, x3);
      ADD(s0, MUL(x0, m0), MUL(x1, m0));
      ADD(s1, MUL(x0, m1), MUL(x1, m1));
      ADD(s2, MUL(x0, m2), MUL(x1, m2));
      ADD(s3, MUL(x0, m3), MUL(x1, m3));
      ADD(s4, MUL(x2, m0), MUL(x3, m0));
      ADD(s5, MUL(x2, m1), MUL(x3, m1));
      ADD(s6, MUL(x2, m2), MUL(x3, m2));
      ADD(s7, MUL(x2, m3), MUL(x3, m3));
    }
  __asm__ volatile("" : : "v"(s0), "v"(s1), "v"(s2), "v"(s3), "v"(s4), "v"(s5), "v"(s6), "v"(s7));
}
