// SPDX-License-Identifier: Apache-2.0
// The ceiling loop of techniques with one affine transform per product and one three-way XOR for
// every two products, for vectors of any width. A technique's file defines VEC, SET_BYTES,
// SET_WORDS, MUL(x, m) and ADD(sum, a, b), then includes this.
#ifndef WEFT_BENCH_X86_CEILING_TERNARY_H
#define WEFT_BENCH_X86_CEILING_TERNARY_H

#include <stddef.h>

#define OPAQUE4(a, b, c, d) __asm__ volatile("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d))

// Thirty-two vector products per iteration.
static inline void ternary_loop(size_t iterations) {
  VEC x0 = SET_BYTES(3), x1 = SET_BYTES(5), x2 = SET_BYTES(9), x3 = SET_BYTES(17);
  VEC m0 = SET_WORDS(0x0102040810204081), m1 = SET_WORDS(0x1122448811224488);
  VEC m2 = SET_WORDS(0x3162448c18224680), m3 = SET_WORDS(0x5102440a19214083);
  VEC s0 = x0, s1 = x1, s2 = x2, s3 = x3, s4 = x0, s5 = x1, s6 = x2, s7 = x3;
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

#endif
