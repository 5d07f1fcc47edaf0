// SPDX-License-Identifier: Apache-2.0
// Indexes a Cauchy-like matrix (cauchy_steps.h) by point: which points are sources, which are
// targets, and their scales.
#ifndef WEFT_LIB_STORAGE_CAUCHY_POINTS_H
#define WEFT_LIB_STORAGE_CAUCHY_POINTS_H

#include <stdbool.h>

#include "lib/storage/cauchy_steps.h"

enum { WEFT_NO_POINT = -1 };

typedef struct weft_cauchy_points {
  int16_t source_at[WEFT_POINTS], target_at[WEFT_POINTS]; // index by point, or WEFT_NO_POINT
  uint16_t sources_before[WEFT_POINTS + 1], targets_before[WEFT_POINTS + 1];
  int16_t infinite_source, infinite_target; // or WEFT_NO_POINT
  size_t levels; // log2 of the aligned block of points that holds all of them
  // Source scales have the form s (a + y), so they are replaced by 1, and the sum of all sources
  // times sum_scale is added to each target.
  bool levelled;
  uint8_t sum_scale[WEFT_POINTS];    // by target
  uint8_t source_scale[WEFT_POINTS]; // by point; 1 where levelled
  uint8_t target_scale[WEFT_POINTS]; // by point; where levelled, includes the factor (a + x)
} weft_cauchy_points;

void weft_cauchy_points_set(weft_cauchy_points *points, const weft_gfw *field,
                            const weft_cauchy_matrix *matrix);

static inline size_t weft_sources_in(const weft_cauchy_points *p, size_t block, size_t level) {
  return (size_t)(p->sources_before[block + ((size_t)1 << level)] - p->sources_before[block]);
}

static inline size_t weft_targets_in(const weft_cauchy_points *p, size_t block, size_t level) {
  return (size_t)(p->targets_before[block + ((size_t)1 << level)] - p->targets_before[block]);
}

#endif
