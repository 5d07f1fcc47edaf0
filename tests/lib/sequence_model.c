// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/sequence_model.h"

#include <string.h>

uint8_t model_times(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned bit = 0; bit < 8; bit++)
    product ^= ((unsigned)b >> bit & 1u) * ((unsigned)a << bit);
  for (unsigned bit = 15; bit-- > 8;)
    product ^= (product >> bit & 1u) * (0x11Du << (bit - 8));
  return (uint8_t)product;
}

// row ^= factor * other
static void add_times(uint8_t *row, uint8_t factor, const uint8_t *other, size_t count) {
  static uint8_t times[256][256]; // filled for a factor when first needed
  if (factor == 0)
    return;
  if (!times[factor][1])
    for (unsigned x = 0; x < 256; x++)
      times[factor][x] = model_times(factor, (uint8_t)x);
  for (size_t i = 0; i < count; i++)
    row[i] ^= times[factor][other[i]];
}

void model_combine(const uint8_t *vector, const uint8_t *data, size_t n, size_t k, uint8_t *out) {
  memset(out, 0, k);
  for (size_t i = 0; i < n; i++)
    add_times(out, vector[i], data + i * k, k);
}

// Reduces a vector by the span; returns the first nonzero column of the rest, or n.
static size_t reduce(const model_span *span, const uint8_t *vector, uint8_t *left) {
  size_t first = 0;
  memcpy(left, vector, span->n);
  for (size_t c = 0; c < span->n; c++)
    if (span->there[c])
      add_times(left, left[c], span->row[c], span->n);
  while (first < span->n && left[first] == 0)
    first++;
  return first;
}

bool model_span_has(const model_span *span, const uint8_t *vector) {
  uint8_t left[MODEL_BLOCKS];
  return reduce(span, vector, left) == span->n;
}

bool model_span_add(model_span *span, const uint8_t *vector) {
  uint8_t left[MODEL_BLOCKS], inverse = 1;
  const size_t first = reduce(span, vector, left);
  if (first == span->n)
    return false;
  while (model_times(inverse, left[first]) != 1)
    inverse++;
  memset(span->row[first], 0, span->n);
  add_times(span->row[first], inverse, left, span->n);
  for (size_t p = 0; p < span->n; p++)
    if (span->there[p])
      add_times(span->row[p], span->row[p][first], span->row[first], span->n);
  span->there[first] = true;
  span->rank++;
  return true;
}

// The reduced form of a span is unique, and in it a unit vector that the span contains is a row.
bool model_span_has_unit(const model_span *span, size_t index) {
  if (!span->there[index])
    return false;
  for (size_t c = index + 1; c < span->n; c++)
    if (span->row[index][c] != 0)
      return false;
  return true;
}
