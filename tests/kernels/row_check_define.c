// SPDX-License-Identifier: Apache-2.0
// Computes products by their definitions (kernels/backend.h), a byte at a time. The row `scalar`
// cannot check the driver that divides products into panels, as it shares it with the other rows.
#include <stdlib.h>
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

// Returns all products by a.
static const uint8_t *products_of(uint8_t a) {
  static uint8_t times[256][256];
  if (!times[1][1])
    for (unsigned c = 0; c < 256; c++)
      for (unsigned x = 0; x < 256; x++)
        times[c][x] = row_check_times(c, x);
  return times[a];
}

void row_check_define_gemm(const weft_gemm *g) {
  for (size_t i = 0; i < g->m; i++) {
    uint8_t *const y = weft_row(&g->y, i);
    if (!g->accumulate && g->len > 0)
      memset(y, 0, g->len);
    for (size_t j = 0; j < g->k; j++) {
      const uint8_t *const by = products_of(g->a[i * g->a_stride + j]);
      const uint8_t *const x = weft_const_row(&g->x, j);
      for (size_t c = 0; c < g->len; c++)
        y[c] ^= by[x[c]];
    }
  }
}

// Byte b of packet (i, l) of a group is the sum of bytes b of all packets (j, c) whose bit is set.
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

// Eliminates without dividing: row r becomes a[c][c] * row r + a[r][c] * row c.
bool row_check_is_regular(const uint8_t *matrix, size_t k) {
  uint8_t *const a = memcpy(row_check_memory(k * k), matrix, k * k);
  bool regular = true;
  for (size_t c = 0; c < k && regular; c++) {
    size_t pivot = c;
    while (pivot < k && a[pivot * k + c] == 0)
      pivot++;
    regular = pivot < k;
    for (size_t j = 0; j < k && regular; j++) {
      const uint8_t held = a[c * k + j];
      a[c * k + j] = a[pivot * k + j];
      a[pivot * k + j] = held;
    }
    for (size_t r = c + 1; r < k && regular; r++) {
      const uint8_t *const own = products_of(a[c * k + c]), *const other =
                                                                products_of(a[r * k + c]);
      for (size_t j = 0; j < k; j++)
        a[r * k + j] = own[a[r * k + j]] ^ other[a[c * k + j]];
    }
  }
  free(a);
  return regular;
}
