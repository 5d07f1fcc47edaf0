// SPDX-License-Identifier: Apache-2.0
// The loop-based multiplication of Shojania & Li, written once for all vector widths: walk the bits
// of the coefficient, double the source vector in the field at each step, add it where the bit is
// set, stop when no bit is left. LOOP_VECS vectors share the walk.
//
// The including file defines vec and its functions as for tile.h, and vec_double(v): 2 * v.
#ifndef WEFT_KERNELS_LOOP_TILE_H
#define WEFT_KERNELS_LOOP_TILE_H

#include <string.h>

#include "kernels/backend.h"
#include "kernels/unroll.h"

enum { LOOP_VECS = 4 };

WEFT_INLINE void multiply_add(vec *acc, vec *x, const size_t vecs, unsigned a) {
  while (a) {
    if (a & 1)
      WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] = vec_xor(acc[v], x[v]);
    a >>= 1;
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) x[v] = vec_double(x[v]);
  }
}

WEFT_INLINE void loop_tile(const weft_panel *p, size_t row, size_t column, const size_t vecs) {
  vec acc[LOOP_VECS], x[LOOP_VECS];
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[v] =
      p->accumulate ? vec_load(p->y[row] + column + v * VEC_BYTES) : vec_zero();
  for (size_t j = 0; j < p->k; j++) {
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) x[v] = vec_load(p->x[j] + column + v * VEC_BYTES);
    multiply_add(acc, x, vecs, p->a[row * p->a_stride + j]);
  }
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++)
      vec_store(p->y[row] + column + v * VEC_BYTES, acc[v]);
}

static void loop_tail(const weft_panel *p, size_t row, size_t n) {
  vec acc = p->accumulate ? vec_load_own_end(p->y[row], p->end, n) : vec_zero();
  for (size_t j = 0; j < p->k; j++) {
    vec x = vec_load_end(p->x[j], p->end, n);
    multiply_add(&acc, &x, 1, p->a[row * p->a_stride + j]);
  }
  vec_store_end(p->y[row], p->end, n, acc);
}

static void loop_panel(const weft_panel *p) {
  const size_t part = (p->end - p->begin) % VEC_BYTES;
  const size_t whole = p->end - part;
  for (size_t row = 0; row < p->m; row++) {
    size_t column = p->begin;
    for (; whole - column >= LOOP_VECS * VEC_BYTES; column += LOOP_VECS * VEC_BYTES)
      loop_tile(p, row, column, LOOP_VECS);
    for (; column < whole; column += VEC_BYTES)
      loop_tile(p, row, column, 1);
    if (part)
      loop_tail(p, row, part);
  }
}

#endif
