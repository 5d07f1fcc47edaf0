// SPDX-License-Identifier: Apache-2.0
// GF(2^w): tables, the weight of an element's bit matrix, and Gauss-Jordan inversion.
#include "lib/storage/gfw.h"

#include <string.h>

bool weft_gfw_init(weft_gfw *field, unsigned w) {
  static const unsigned polynomial[WEFT_GFW_MAX + 1] = {0,    0,    0x7,  0xB,  0x13,
                                                        0x25, 0x43, 0x89, 0x11D};
  if (w < WEFT_GFW_MIN || w > WEFT_GFW_MAX)
    return false;
  memset(field, 0, sizeof *field);
  field->w = w;
  field->order = (1u << w) - 1;
  unsigned x = 1;
  for (unsigned i = 0; i < field->order; i++) {
    for (unsigned at = i; at < 3 * field->order; at += field->order)
      field->exp[at] = (uint8_t)x;
    field->log[x] = (uint8_t)i;
    x <<= 1;
    if (x >> w)
      x ^= polynomial[w];
  }
  field->exp[3 * field->order] = 1;
  return true;
}

unsigned weft_gfw_ones(const weft_gfw *field, uint8_t element) {
  unsigned ones = 0;
  for (unsigned x = 0; x < field->w; x++)
    ones += (unsigned)__builtin_popcount(weft_gfw_mul(field, element, (uint8_t)(1u << x)));
  return ones;
}

static void swap_rows(uint8_t *a, uint8_t *b, size_t n) {
  for (size_t c = 0; c < n; c++) {
    const uint8_t kept = a[c];
    a[c] = b[c];
    b[c] = kept;
  }
}

bool weft_gfw_invert(const weft_gfw *field, uint8_t *a, uint8_t *out, size_t n) {
  memset(out, 0, n * n);
  for (size_t i = 0; i < n; i++)
    out[i * n + i] = 1;
  for (size_t column = 0; column < n; column++) {
    size_t pivot = column;
    while (pivot < n && !a[pivot * n + column])
      pivot++;
    if (pivot == n)
      return false;
    if (pivot != column) {
      swap_rows(a + pivot * n, a + column * n, n);
      swap_rows(out + pivot * n, out + column * n, n);
    }
    const uint8_t inverse = weft_gfw_div(field, 1, a[column * n + column]);
    for (size_t c = 0; c < n; c++) {
      a[column * n + c] = weft_gfw_mul(field, inverse, a[column * n + c]);
      out[column * n + c] = weft_gfw_mul(field, inverse, out[column * n + c]);
    }
    for (size_t r = 0; r < n; r++) {
      const uint8_t factor = a[r * n + column];
      if (r == column || !factor)
        continue;
      weft_gfw_add_row(field, a + r * n, a + column * n, factor, n);
      weft_gfw_add_row(field, out + r * n, out + column * n, factor, n);
    }
  }
  return true;
}
