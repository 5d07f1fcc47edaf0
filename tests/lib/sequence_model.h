// SPDX-License-Identifier: Apache-2.0
// The model that sequences of calls are checked against, written from the definitions: products in
// GF(2^8) bit by bit, and the span of a set of vectors.
#ifndef WEFT_TESTS_LIB_SEQUENCE_MODEL_H
#define WEFT_TESTS_LIB_SEQUENCE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_BLOCKS = 200 }; // at most

typedef struct model_span {
  size_t n, rank;
  // Reduced row echelon form: row p begins with a one in column p, which is zero in all other rows.
  uint8_t row[MODEL_BLOCKS][MODEL_BLOCKS];
  bool there[MODEL_BLOCKS];
} model_span;

uint8_t model_times(uint8_t a, uint8_t b);
// out(k) = vector(n) * data(n, k)
void model_combine(const uint8_t *vector, const uint8_t *data, size_t n, size_t k, uint8_t *out);

bool model_span_has(const model_span *span, const uint8_t *vector);
bool model_span_add(model_span *span, const uint8_t *vector); // true: it was innovative
bool model_span_has_unit(const model_span *span, size_t index);

#endif
