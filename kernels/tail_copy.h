// SPDX-License-Identifier: Apache-2.0
// Tails of rows, shorter than a vector, for vectors without byte masks. A technique's file includes
// this after it defines VEC_BYTES, vec, vec_load and vec_store. A source is read as the last whole
// vector before the end, unless the row is shorter than that; an output is read and written
// byte-exactly through the stack, since the bytes before it may belong to another thread.
#ifndef WEFT_KERNELS_TAIL_COPY_H
#define WEFT_KERNELS_TAIL_COPY_H

#include <string.h>

static inline vec vec_load_own_end(const uint8_t *row, size_t end, size_t n) {
  uint8_t copy[VEC_BYTES] = {0};
  memcpy(copy + VEC_BYTES - n, row + end - n, n);
  return vec_load(copy);
}

static inline vec vec_load_end(const uint8_t *row, size_t end, size_t n) {
  return end >= VEC_BYTES ? vec_load(row + end - VEC_BYTES) : vec_load_own_end(row, end, n);
}

static inline void vec_store_end(uint8_t *row, size_t end, size_t n, vec v) {
  uint8_t copy[VEC_BYTES];
  vec_store(copy, v);
  memcpy(row + end - n, copy + VEC_BYTES - n, n);
}

#endif
