// SPDX-License-Identifier: Apache-2.0
// The ceiling loop of techniques that look up nibbles, for vectors of any width. A technique's file
// defines VEC, SET_BYTES, SET_WORDS, LOOK_UP(table, n) and ADD(sum, p), then includes this.
#ifndef WEFT_BENCH_X86_CEILING_SHUFFLES_H
#define WEFT_BENCH_X86_CEILING_SHUFFLES_H

#include <stddef.h>

#define OPAQUE4(a, b, c, d) __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d))

// Sixteen vector products per iteration. Each group of four shuffles is kept between other shuffles
// and their sums: of the orders tried with 32 bytes, a Zen 3 starts the most instructions per cycle
// with this one, 3.6 instead of 3.2.
static inline void shuffle_loop(size_t iterations) {
  VEC l = SET_BYTES(3), h = SET_BYTES(5);
  VEC a = SET_WORDS(0x0102040810204081), b = SET_WORDS(0x1122448811224488);
  VEC s0 = l, s1 = h, s2 = a, s3 = b, q0 = a, q1 = b, q2 = l, q3 = h;
  for (size_t i = 0; i < iterations; i++)
    for (int step = 0; step < 4; step++) {
      OPAQUE4(l, h, a, b);
      VEC p0 = LOOK_UP(a, l), p1 = LOOK_UP(b, l), p2 = LOOK_UP(a, h), p3 = LOOK_UP(b, h);
      OPAQUE4(p0, p1, p2, p3);
      ADD(s0, q0), ADD(s1, q1), ADD(s2, q2), ADD(s3, q3);
      OPAQUE4(s0, s1, s2, s3);
      OPAQUE4(l, h, a, b);
      q0 = LOOK_UP(a, l), q1 = LOOK_UP(b, l), q2 = LOOK_UP(a, h), q3 = LOOK_UP(b, h);
      OPAQUE4(q0, q1, q2, q3);
      ADD(s0, p0), ADD(s1, p1), ADD(s2, p2), ADD(s3, p3);
      OPAQUE4(s0, s1, s2, s3);
    }
  __asm__ volatile("" : : "x"(s0), "x"(s1), "x"(s2), "x"(s3));
}

#endif
