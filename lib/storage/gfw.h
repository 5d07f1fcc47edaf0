// SPDX-License-Identifier: Apache-2.0
// GF(2^w), w = 2..8, one symbol at a time: for building the matrices of codes. Rows of bytes are
// multiplied by the kernels, never here.
#ifndef WEFT_LIB_STORAGE_GFW_H
#define WEFT_LIB_STORAGE_GFW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_GFW_MIN 2u
#define WEFT_GFW_MAX 8u

typedef struct weft_gfw {
  unsigned w;
  unsigned order;   // 2^w - 1, of the multiplicative group
  uint8_t exp[768]; // exp[i] = 2^i for 0 <= i <= 3 * order
  uint8_t log[256]; // log[0] is 0, so that 0 counts as the element 1
} weft_gfw;

// Initialises the field, with Jerasure's polynomials: 7, B, 13, 25, 43, 89, 11D hex. Returns false
// if w is out of range.
bool weft_gfw_init(weft_gfw *field, unsigned w);

static inline uint8_t weft_gfw_mul(const weft_gfw *field, uint8_t a, uint8_t b) {
  return a && b ? field->exp[(unsigned)field->log[a] + field->log[b]] : 0;
}

// b != 0
static inline uint8_t weft_gfw_div(const weft_gfw *field, uint8_t a, uint8_t b) {
  return a ? field->exp[field->log[a] + field->order - field->log[b]] : 0;
}

// row(n) += factor * from(n), rows of a matrix
static inline void weft_gfw_add_row(const weft_gfw *field, uint8_t *row, const uint8_t *from,
                                    uint8_t factor, size_t n) {
  for (size_t i = 0; factor && i < n; i++)
    row[i] ^= weft_gfw_mul(field, factor, from[i]);
}

// Counts the ones in the w x w bit matrix of multiplication by `element`: its cost in a CRS code.
unsigned weft_gfw_ones(const weft_gfw *field, uint8_t element);

// Inverts the n x n matrix `a` (dense, destroyed) into `out`; returns false if it is singular.
bool weft_gfw_invert(const weft_gfw *field, uint8_t *a, uint8_t *out, size_t n);

#endif
