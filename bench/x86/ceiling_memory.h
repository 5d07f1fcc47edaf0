// SPDX-License-Identifier: Apache-2.0
// The ceilings of reading, writing, writing past the caches and changing in place, for vectors of
// any width. A technique's file defines VEC, ZERO(), XOR(a, b), LOAD(p), STORE(p, v), STREAM(p, v)
// and CEILING(what), which gives a loop's public name, then includes this.
#ifndef WEFT_BENCH_X86_CEILING_MEMORY_H
#define WEFT_BENCH_X86_CEILING_MEMORY_H

#include "bench/ceiling_loops.h"

#define VEC_BYTES sizeof(VEC)
// Otherwise the compiler knows that v is zero and turns the loop into a call of memset.
#define OPAQUE(v) __asm__ volatile("" : "+v"(v))

void CEILING(read)(const uint8_t *data, size_t bytes) {
  VEC s0 = ZERO(), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * VEC_BYTES <= bytes; i += 4 * VEC_BYTES) {
    s0 = XOR(s0, LOAD(data + i));
    s1 = XOR(s1, LOAD(data + i + VEC_BYTES));
    s2 = XOR(s2, LOAD(data + i + 2 * VEC_BYTES));
    s3 = XOR(s3, LOAD(data + i + 3 * VEC_BYTES));
  }
  __asm__ volatile("" : : "v"(s0), "v"(s1), "v"(s2), "v"(s3));
  weft_bench_read_portable(data + i, bytes - i);
}

void CEILING(write)(uint8_t *data, size_t bytes) {
  VEC v = ZERO();
  size_t i = 0;
  OPAQUE(v);
  for (; i + VEC_BYTES <= bytes; i += VEC_BYTES)
    STORE(data + i, v);
  weft_bench_write_portable(data + i, bytes - i);
}

void CEILING(stream)(uint8_t *data, size_t bytes) {
  const VEC v = ZERO();
  const size_t head = -(uintptr_t)data % VEC_BYTES;
  size_t i = head < bytes ? head : bytes;
  weft_bench_write_portable(data, i);
  for (; i + VEC_BYTES <= bytes; i += VEC_BYTES)
    STREAM(data + i, v);
  weft_bench_write_portable(data + i, bytes - i);
}

void CEILING(change)(uint8_t *data, size_t bytes) {
  VEC v = ZERO();
  size_t i = 0;
  OPAQUE(v);
  for (; i + VEC_BYTES <= bytes; i += VEC_BYTES)
    STORE(data + i, XOR(v, LOAD(data + i)));
  weft_bench_change_portable(data + i, bytes - i);
}

#endif
