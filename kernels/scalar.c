// SPDX-License-Identifier: Apache-2.0
// The specification: every product by the definition of the field, one byte after the other. All
// other rows must give these bytes.
#include "kernels/gf256.h"
#include "kernels/host_kernels.h"

static void scalar_panel(const weft_panel *p) {
  for (size_t i = 0; i < p->m; i++)
    for (size_t c = p->begin; c < p->end; c++) {
      uint8_t sum = p->accumulate ? p->y[i][c] : 0;
      for (size_t j = 0; j < p->k; j++)
        sum ^= weft_gf256_mul(p->a[i * p->a_stride + j], p->x[j][c]);
      p->y[i][c] = sum;
    }
}

static void scalar_xor_rows(uint8_t *y, const uint8_t *const *x, size_t k, size_t begin, size_t end,
                            bool accumulate) {
  for (size_t c = begin; c < end; c++) {
    uint8_t sum = accumulate ? y[c] : 0;
    for (size_t j = 0; j < k; j++)
      sum ^= x[j][c];
    y[c] = sum;
  }
}

const weft_host_kernel weft_host_scalar = {.panel = scalar_panel, .xor_rows = scalar_xor_rows};
