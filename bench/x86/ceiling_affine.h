// SPDX-License-Identifier: Apache-2.0
// The ceiling loop of techniques with one affine transform and one XOR per product, for vectors of
// any width. A technique's file defines VEC, SET_BYTES, SET_WORDS and MULADD(sum, x, m), then
// includes this.
#ifndef WEFT_BENCH_X86_CEILING_AFFINE_H
#define WEFT_BENCH_X86_CEILING_AFFINE_H

#include <stddef.h>

// Used on the sums as well, to end a step: otherwise the compiler forms all products first and
// spills.
#define OPAQUE2(a, b) __asm__ volatile("" : "+x"(a), "+x"(b))
#define OPAQUE4(a, b, c, d) __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d))

// Thirty-two vector products per iteration.
static inline void affine_loop(size_t iterations) {
  VEC x0 = SET_BYTES(3), x1 = SET_BYTES(5);
  VEC m0 = SET_WORDS(0x0102040810204081), m1 = SET_WORDS(0x1122448811224488);
  VEC m2 = SET_WORDS(0x3162448c18224680), m3 = SET_WORDS(0x5102440a19214083);
  VEC s0 = x0, s1 = x1, s2 = x0, s3 = x1, s4 = x0, s5 = x1, s6 = x0, s7 = x1;
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

#endif
