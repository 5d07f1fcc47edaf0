// SPDX-License-Identifier: Apache-2.0
// Writes products with Cauchy-like matrices as butterfly steps: the parity of a code whose shards
// have points (generator.h), and the recovery of its shards.
#ifndef WEFT_LIB_STORAGE_CAUCHY_STEPS_H
#define WEFT_LIB_STORAGE_CAUCHY_STEPS_H

#include "lib/storage/gfw.h"
#include "lib/storage/step_list.h"

enum { WEFT_POINTS = 256, WEFT_POINT_INFINITE = WEFT_POINTS };

// A matrix (targets, sources) with entries source_scale[j] / (target_scale[i] * (target[i] +
// source[j])); a difference with infinity counts as 1. All points differ.
typedef struct weft_cauchy_matrix {
  size_t sources, targets;
  uint16_t source[WEFT_POINTS], target[WEFT_POINTS];
  uint8_t source_scale[WEFT_POINTS], target_scale[WEFT_POINTS]; // nonzero
} weft_cauchy_matrix;

// Where values come from and go to. Values in the arrays given here change owner: `from` and
// `added` are consumed by the steps, `to` is produced by them.
typedef struct weft_cauchy_ends {
  const weft_multiple *from;  // (sources); NULL: rows of X, loaded in order
  size_t rows;                // of X; sources beyond them are zeros. 0: every source is a row
  weft_multiple *to;          // (targets); NULL: rows of Y, stored
  const weft_multiple *added; // (targets), each zero or added to what is stored; NULL: nothing
  // How blocks met in an earlier product of the same shape; 0: find out and store it here. NULL:
  // the layout cannot be reused.
  uint8_t *layout;
} weft_cauchy_ends;

// Working memory; once initialised for a field it serves any number of products.
typedef struct weft_cauchy_writer weft_cauchy_writer;
size_t weft_cauchy_writer_bytes(void);
void weft_cauchy_writer_init(weft_cauchy_writer *writer, const weft_gfw *field);

// Appends the steps of the product to `list`, using the cheapest of the known ways. Returns false
// if none fits into the list's slots, or if rows of X would not be loaded in order; the list is
// then unchanged.
bool weft_cauchy_steps(weft_cauchy_writer *writer, const weft_cauchy_matrix *matrix,
                       const weft_cauchy_ends *ends, weft_step_list *list);

#endif
