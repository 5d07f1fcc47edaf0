// SPDX-License-Identifier: Apache-2.0
// Products by their definitions (kernels/backend.h), a byte at a time. The row `scalar` is no judge
// of what it shares with the others: the driver that cuts products into panels.
#include <string.h>

#include "tests/kernels/row_check_internal.h"

uint8_t row_check_times(unsigned a, unsigned b) {
  unsigned sum = 0;
  for (; b; b >>= 1, a <<= 1) {
    a = a & 0x100 ? a ^ 0x11D : a;
    sum ^= b & 1 ? a : 0;
  }
  return (uint8_t)sum;
}

void row_check_define_gemm(const weft_gemm *g) {
  static uint8_t times[256][256];
  if (!times[1][1])
    for (unsigned a = 0; a < 256; a++)
      for (unsigned x = 0; x < 256; x++)
        times[a][x] = row_check_times(a, x);
  for (size_t i = 0; i < g->m; i++) {
    uint8_t *const y = weft_row(&g->y, i);
    if (!g->accumulate && g->len > 0)
      memset(y, 0, g->len);
    for (size_t j = 0; j < g->k; j++) {
      const uint8_t *const by = times[g->a[i * g->a_stride + j]], *x = weft_const_row(&g->x, j);
      for (size_t c = 0; c < g->len; c++)
        y[c] ^= by[x[c]];
    }
  }
}

// Byte b of packet (i, l) of a group adds up byte b of all packets (j, c) whose bit is set.
void row_check_define_xorm(const weft_xorm *o) {
  const size_t packet = o->packet_bytes, group = o->w * packet;
  for (size_t at = 0; at < o->len; at += group)
    for (size_t out = 0; out < o->m * o->w; out++) {
      uint8_t *const y = weft_row(&o->y, out / o->w) + at + out % o->w * packet;
      if (!o->accumulate)
        memset(y, 0, packet);
      for (size_t in = 0; in < o->k * o->w; in++)
        for (size_t b = 0; b < packet && o->bits[out * o->bits_stride + in]; b++)
          y[b] ^= weft_const_row(&o->x, in / o->w)[at + in % o->w * packet + b];
    }
}
