// SPDX-License-Identifier: Apache-2.0
// Ceiling of the 128-bit GFNI technique without AVX: an affine transform and an XOR for each 16
// products.
#include <immintrin.h>

#include "bench/ceiling_loops.h"

// On the sums too: it ends a step, so that the compiler does not form all products first and spill.
#define OPAQUE2(a, b) __asm__ volatile("" : "+x"(a), "+x"(b))
#define OPAQUE4(a, b, c, d) __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d))
#define MULADD(sum, x, m) ((sum) = _mm_xor_si128((sum), _mm_gf2p8affine_epi64_epi8((x), (m), 0)))

void weft_bench_loop_gfni128(size_t iterations) {
  __m128i x0 = _mm_set1_epi8(3), x1 = _mm_set1_epi8(5);
  __m128i m0 = _mm_set1_epi64x(0x0102040810204081), m1 = _mm_set1_epi64x(0x1122448811224488);
  __m128i m2 = _mm_set1_epi64x(0x3162448c18224680), m3 = _mm_set1_epi64x(0x5102440a19214083);
  __m128i s0 = x0, s1 = x1, s2 = x0, s3 = x1, s4 = x0, s5 = x1, s6 = x0, s7 = x1;
  OPAQUE4(m0, m1, m2, m3);
  for (size_t i = 0; i < iterations; i++)
    for (int step = 0; step < 4; step++) {
      OPAQUE2(x0, x1);
      MULADD(s0, x0, m0);
      MULADD(s1, x0, m1);
      MULADD(s2, x0, m2);
      MULADD(s3, x0, m3);
      MULADD(s4, x1, m0);
      MULADD(s5, x1, m1);
      MULADD(s6, x1, m2);
      MULADD(s7, x1, m3);
      OPAQUE4(s0, s1, s2, s3);
      OPAQUE4(s4, s5, s6, s7);
    }
  __asm__ volatile("" : : "x"(s0), "x"(s1), "x"(s2), "x"(s3), "x"(s4), "x"(s5), "x"(s6), "x"(s7));
}
