// SPDX-License-Identifier: Apache-2.0
// The product that all of ISA-L's calls are reduced to here.
#ifndef WEFT_INTEGRATIONS_ISAL_PRODUCT_H
#define WEFT_INTEGRATIONS_ISAL_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"

// Returns the backend row that computes. If there is none, ends the program: ISA-L's calls cannot
// fail.
const weft_backend *weft_isal_row(void);

// Y(m, len) = A(m, k) * X(k, len), or Y ^= A * X. a(m, k) has row stride a_stride.
typedef struct weft_isal_product {
  size_t len, k, m;
  const uint8_t *a;
  size_t a_stride;
  const uint8_t *const *x;
  uint8_t *const *y;
  bool accumulate;
} weft_isal_product;

void weft_isal_multiply(const weft_isal_product *product);

#endif
