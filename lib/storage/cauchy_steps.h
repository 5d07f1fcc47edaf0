// SPDX-License-Identifier: Apache-2.0
// Products with Cauchy-like matrices, as butterflies: parity of a code whose shards have points,
// and whatever rebuilds them.
#ifndef WEFT_LIB_STORAGE_CAUCHY_STEPS_H
#define WEFT_LIB_STORAGE_CAUCHY_STEPS_H

#include "lib/storage/gfw.h"
#include "lib/storage/step_list.h"

enum { WEFT_POINTS = 256, WEFT_POINT_INFINITE = WEFT_POINTS };

// (targets, sources): source_scale[j] / (target_scale[i] * (target[i] + source[j])); a difference
// with infinity counts as 1. All points differ.
typedef struct weft_cauchy_matrix {
  size_t sources, targets;
  uint16_t source[WEFT_POINTS], target[WEFT_POINTS];
  uint8_t source_scale[WEFT_POINTS], target_scale[WEFT_POINTS]; // nonzero
} weft_cauchy_matrix;

// Where values come from and go to. Values of arrays that are given pass to the steps, or from
// them.
typedef struct weft_cauchy_ends {
  const weft_multiple *from;  // (sources); NULL: rows of X, loaded in order
  size_t rows;                // of X; sources behind them are zeros. 0: every source is a row
  weft_multiple *to;          // (targets); NULL: rows of Y, stored
  const weft_multiple *added; // (targets), zero or added to what is stored; NULL: nothing is
  // How blocks met in a product of the like, or 0, where that is to be found out and left here;
  // NULL: that is of no use.
  uint8_t *layout;
} weft_cauchy_ends;

// Working memory; initialised for a field, serves any number of products.
typedef struct weft_cauchy_writer weft_cauchy_writer;
size_t weft_cauchy_writer_bytes(void);
void weft_cauchy_writer_init(weft_cauchy_writer *writer, const weft_gfw *field);

// Writes down the product: of the ways that are known the one with the least work. False: none in
// so many slots, or rows of X would not be loaded in order; then the list is as it was.
bool weft_cauchy_steps(weft_cauchy_writer *writer, const weft_cauchy_matrix *matrix,
                       const weft_cauchy_ends *ends, weft_step_list *list);

#endif
