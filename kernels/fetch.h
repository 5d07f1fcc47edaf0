// SPDX-License-Identifier: Apache-2.0
// Asks for lines that will be read later, a few at a time, beside arithmetic that leaves the memory
// idle.
#ifndef WEFT_KERNELS_FETCH_H
#define WEFT_KERNELS_FETCH_H

#include "kernels/backend.h"
#include "kernels/unroll.h"

enum { FETCH_LINE = 64 };

// Where a walk over the lines of a weft_fetch is, row by row.
typedef struct fetch_walk {
  const uint8_t *at;
  size_t left; // bytes of the row
  size_t row;
  const weft_fetch *all;
} fetch_walk;

static inline void fetch_row(fetch_walk *walk, size_t row) {
  walk->row = row < walk->all->rows ? row : 0; // all were asked for: once more
  walk->at = walk->all->row[walk->row] + walk->all->begin;
  walk->left = walk->all->bytes;
}

static inline fetch_walk fetch_begin(const weft_fetch *all) {
  fetch_walk walk = {.all = all};
  fetch_row(&walk, 0);
  return walk;
}

// How many lines a step is to ask for where there are so many steps.
static inline size_t fetch_each(const weft_fetch *all, size_t steps) {
  const size_t lines = all->rows * (all->bytes / FETCH_LINE);
  return (lines + steps - 1) / (steps ? steps : 1);
}

// Into the second-level cache; beyond the end of a row at times, but that is no read.
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
