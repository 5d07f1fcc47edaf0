// SPDX-License-Identifier: Apache-2.0
// The products of which few_rows_gfni512.h makes columns: sources are multiplied and added to sums
// in registers, by loops over sources or by straight-line code, where each source has instructions
// of its own.
//
// Hardware prefetching learns the stride of each load instruction. In a loop over sources that is
// the distance from one source to the next, which says nothing about what is read next, and what it
// then fetches is useless; in straight-line code each load proceeds along its own source. Zen 5
// learns strides of any length, and there the speed of recovering evenly spaced shards depended on
// which ones were lost (docs/performance/storage-few-rows.md).
#ifndef WEFT_KERNELS_X86_FEW_PRODUCTS_GFNI512_H
#define WEFT_KERNELS_X86_FEW_PRODUCTS_GFNI512_H

#include "kernels/fetch.h"
#include "kernels/unroll.h"
#include "kernels/x86/vec_avx512.h"

enum { FEW_STREAMS = 32 }; // maximum number of sources as straight-line code

// What is prefetched while sources are multiplied: nothing, the next sources, or weft_panel.fetch.
typedef enum few_fetching { FEW_NOTHING, FEW_NEXT, FEW_ASKED } few_fetching;

// What all products of some columns have in common.
typedef struct few_columns {
  size_t column;
  size_t stride;    // from the matrices of one source to those of the next
  size_t shift;     // FEW_NEXT: columns from what is worked on to what is prefetched
  fetch_walk *walk; // FEW_ASKED: through weft_panel.fetch,
  size_t each;      // of which so many lines are prefetched with each pair of sources
} few_columns;

// Adds the products of two sources to acc(rows, vecs). Inlined for each constant rows, vecs and
// fetching, like all functions below.
WEFT_INLINE void few_pair(vec *acc, const uint8_t *const *x, const uint64_t *near,
                          const uint8_t *const *next, const size_t rows, const size_t vecs,
                          const few_fetching fetching, const few_columns *at) {
  vec s[2], t[2];
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
    s[v] = vec_load(x[0] + at->column + v * VEC_BYTES);
    t[v] = vec_load(x[1] + at->column + v * VEC_BYTES);
    if (fetching == FEW_NEXT) {
      __builtin_prefetch(next[0] + at->shift + at->column + v * VEC_BYTES);
      __builtin_prefetch(next[1] + at->shift + at->column + v * VEC_BYTES);
    }
  }
  if (fetching == FEW_ASKED)
    fetch_lines(at->walk, at->each);
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    const con c = con_of(near[r]);
    const con d = con_of(near[at->stride + r]);
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[r * vecs + v] =
        vec_xor3(acc[r * vecs + v], product(s[v], c), product(t[v], d));
  }
}

// The same for one source.
WEFT_INLINE void few_single(vec *acc, const uint8_t *const *x, const uint64_t *near,
                            const uint8_t *const *next, const size_t rows, const size_t vecs,
                            const few_fetching fetching, const few_columns *at) {
  vec s[2];
  WEFT_UNROLL for (size_t v = 0; v < vecs; v++) {
    s[v] = vec_load(x[0] + at->column + v * VEC_BYTES);
    if (fetching == FEW_NEXT)
      __builtin_prefetch(next[0] + at->shift + at->column + v * VEC_BYTES);
  }
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    const con c = con_of(near[r]);
    WEFT_UNROLL for (size_t v = 0; v < vecs; v++) acc[r * vecs + v] =
        vec_xor(acc[r * vecs + v], product(s[v], c));
  }
}

// The same for `count` sources.
WEFT_INLINE void few_add(vec *acc, const uint8_t *const *x, size_t count, const uint64_t *near,
                         const uint8_t *const *next, const size_t rows, const size_t vecs,
                         const few_fetching fetching, const few_columns *at) {
  size_t j = 0;
  for (; j + 2 <= count; j += 2, near += 2 * at->stride)
    few_pair(acc, x + j, near, next + j, rows, vecs, fetching, at);
  if (j < count)
    few_single(acc, x + j, near, next + j, rows, vecs, fetching, at);
}

#define FEW_STREAM(pair)                                                                           \
  case (pair) + 1:                                                                                 \
    few_pair(acc, x + 2 * (pair), near + 2 * (pair)*at->stride, x + 2 * (pair), rows, vecs,        \
             fetching, at);                                                                        \
    __attribute__((fallthrough));

// The same for at most FEW_STREAMS sources, as straight-line code that is entered at the last pair.
WEFT_INLINE void few_add_streams(vec *acc, const uint8_t *const *x, size_t count,
                                 const uint64_t *near, const size_t rows, const size_t vecs,
                                 const few_fetching fetching, const few_columns *at) {
  const size_t odd = count - 1;
  if (count % 2)
    few_single(acc, x + odd, near + odd * at->stride, x + odd, rows, vecs, fetching, at);
  switch (count / 2) {
    FEW_STREAM(15)
    FEW_STREAM(14)
    FEW_STREAM(13)
    FEW_STREAM(12)
    FEW_STREAM(11)
    FEW_STREAM(10)
    FEW_STREAM(9)
    FEW_STREAM(8)
    FEW_STREAM(7)
    FEW_STREAM(6)
    FEW_STREAM(5)
    FEW_STREAM(4)
    FEW_STREAM(3)
    FEW_STREAM(2)
    FEW_STREAM(1)
    FEW_STREAM(0)
  default:;
  }
}
#undef FEW_STREAM

#endif
