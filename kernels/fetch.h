// SPDX-License-Identifier: Apache-2.0
// Prefetches lines that will be read later, a few at a time, during arithmetic that leaves memory
// idle.
#ifndef WEFT_KERNELS_FETCH_H
#define WEFT_KERNELS_FETCH_H

#include "kernels/backend.h"
#include "kernels/unroll.h"

enum { FETCH_LINE = 64 };

// The position of a walk over the lines of a weft_fetch, row by row.
typedef struct fetch_walk {
  const uint8_t *at;
  size_t left; // bytes left of the row
  size_t row;
  const weft_fetch *all;
} fetch_walk;

static inline void fetch_row(fetch_walk *walk, size_t row) {
  walk->row = row < walk->all->rows ? row : 0; // after the last row from the beginning
  walk->at = walk->all->row[walk->row] + walk->all->begin;
  walk->left = walk->all->bytes;
}

static inline fetch_walk fetch_begin(const weft_fetch *all) {
  fetch_walk walk = {.all = all};
  fetch_row(&walk, 0);
  return walk;
}

// Returns how many lines each of `steps` steps has to fetch.
static inline size_t fetch_each(const weft_fetch *all, size_t steps) {
  const size_t lines = all->rows * (all->bytes / FETCH_LINE);
  return (lines + steps - 1) / (steps ? steps : 1);
}

// Prefetches the next lines into the second-level cache. They may be beyond the end of a row, but
// are not read.
WEFT_INLINE void fetch_lines(fetch_walk *walk, size_t lines) {
  for (size_t i = 0; i < lines; i++)
    __builtin_prefetch(walk->at + i * FETCH_LINE, 0, 2);
  if (walk->left <= lines * FETCH_LINE) {
    fetch_row(walk, walk->row + 1);
    return;
  }
  walk->at += lines * FETCH_LINE;
  walk->left -= lines * FETCH_LINE;
}

#endif
