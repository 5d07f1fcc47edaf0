// SPDX-License-Identifier: Apache-2.0
// Multiplies one source, or the sum of two, into many rows: an update of one shard, from the
// difference or from its old and new bytes, or a step of elimination. tile.h includes this, which
// uses its vectors, src_make, con_make and mac, and provides fan_out. A technique with too few
// registers for six rows defines FAN_ROWS 4 and FAN_VECS 1.
//
// Nothing but the source is reused, so only reading and storing the rows counts:
// - Rows are often a power of two apart, and a load waits for an earlier store that shares its low
//   address bits. So FAN_VECS vectors of every row are loaded before any is stored; two, since in
//   rows that begin within a cache line neighbouring vectors have half a line in common.
// - Coefficients stay in registers while the columns stream by.
// - More rows than FAN_ROWS take several passes, the last two of about equal size. Each reads the
//   source again, which is little compared with the rows. Doing all passes over one run of columns
//   before the next would cost more, as hardware prefetching starts over in each row; it pays only
//   for two long sources.
// docs/performance/storage-updates.md says what else was tried.
#ifndef WEFT_KERNELS_FAN_H
#define WEFT_KERNELS_FAN_H

#include "kernels/backend.h"
#include "kernels/unroll.h"

#ifndef FAN_ROWS
#define FAN_ROWS 6
#define FAN_VECS 2
#endif
enum {
  FAN_STEP = FAN_VECS * VEC_BYTES, // bytes
  FAN_NEAR = 512 * 1024,           // columns of two sources that caches keep from pass to pass
  FAN_RUN = 32 * 1024              // of longer ones, columns that all passes do before the next
};

// Loads one vector of the source: x[0], or x[0] + x[1].
WEFT_INLINE src fan_source(const uint8_t *const *x, const size_t sources, size_t column) {
  const vec first = vec_load(x[0] + column);
  return src_make(sources > 1 ? vec_xor(first, vec_load(x[1] + column)) : first);
}

WEFT_INLINE void fan_vecs(const uint8_t *const *x, const size_t sources, uint8_t *const *y,
                          const con *c, size_t column, const size_t rows, const bool accumulate) {
  src s[FAN_VECS];
  vec sum[FAN_ROWS][FAN_VECS];
  WEFT_UNROLL for (size_t v = 0; v < FAN_VECS; v++) s[v] =
      fan_source(x, sources, column + v * VEC_BYTES);
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    WEFT_UNROLL for (size_t v = 0; v < FAN_VECS; v++) sum[r][v] =
        mac(accumulate ? vec_load(y[r] + column + v * VEC_BYTES) : vec_zero(), s[v], c[r]);
  }
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    WEFT_UNROLL for (size_t v = 0; v < FAN_VECS; v++)
        vec_store(y[r] + column + v * VEC_BYTES, sum[r][v]);
  }
}

// Computes output rows [row, row + rows) over whole steps [begin, end). Inlined for each constant
// rows, sources and accumulate.
WEFT_INLINE void fan_pass(const weft_panel *p, size_t row, const size_t rows, const size_t sources,
                          size_t begin, size_t end, const bool accumulate) {
  con c[FAN_ROWS];
  uint8_t *y[FAN_ROWS];
  WEFT_UNROLL for (size_t r = 0; r < rows; r++) {
    c[r] = con_make(p->a[(row + r) * p->a_stride]);
    y[r] = p->y[row + r];
  }
  const uint8_t *const x[2] = {p->x[0], sources > 1 ? p->x[1] : NULL};
  for (size_t column = begin; column < end; column += FAN_STEP)
    fan_vecs(x, sources, y, c, column, rows, accumulate);
}

#define FAN(rows)                                                                                  \
  __attribute__((noinline)) static void fan_##rows(const weft_panel *p, size_t row, size_t begin,  \
                                                   size_t end) {                                   \
    if (p->k > 1)                                                                                  \
      fan_pass(p, row, rows, 2, begin, end, true);                                                 \
    else if (p->accumulate)                                                                        \
      fan_pass(p, row, rows, 1, begin, end, true);                                                 \
    else                                                                                           \
      fan_pass(p, row, rows, 1, begin, end, false);                                                \
  }
FAN(1)
FAN(2)
FAN(3)
FAN(4)
#if FAN_ROWS > 4
FAN(5)
FAN(6)
#endif
#undef FAN

static void (*const fan_passes[FAN_ROWS + 1])(const weft_panel *, size_t row, size_t, size_t) = {
    NULL,  fan_1, fan_2, fan_3, fan_4,
#if FAN_ROWS > 4
    fan_5, fan_6,
#endif
};

// Computes more rows than one pass takes.
static void fan_out_wide(const weft_panel *p, size_t begin, size_t end) {
  size_t row = 0, rows;
  for (; p->m - row > FAN_ROWS; row += rows) {
    rows = p->m - row < 2 * FAN_ROWS ? (p->m - row + 1) / 2 : FAN_ROWS;
    fan_passes[rows](p, row, begin, end);
  }
  fan_passes[p->m - row](p, row, begin, end);
}

// Multiplies one source, or the sum of two that is then added to the outputs; whole steps of
// [begin, end).
static void fan_out(const weft_panel *p, size_t begin, size_t end) {
  if (p->m <= FAN_ROWS) {
    fan_passes[p->m](p, 0, begin, end);
    return;
  }
  const size_t run = p->k > 1 && end - begin > FAN_NEAR ? FAN_RUN : end - begin;
  for (; begin < end; begin += run)
    fan_out_wide(p, begin, end - begin < run ? end : begin + run);
}

#endif
