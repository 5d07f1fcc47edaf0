// SPDX-License-Identifier: Apache-2.0
// Copies between rows of ordinary memory and dense pinned memory. One core copies less than a bus
// carries, so all of a pool's threads copy what is long enough.
#ifndef WEFT_LIB_ROWS_COPY_H
#define WEFT_LIB_ROWS_COPY_H

#include "kernels/backend.h"
#include "kernels/pool.h"

// Bytes [at, at + bytes) of dense rows `to`, which lie in dense memory at `from`.
typedef struct weft_delivery {
  struct weft_delivery *next;
  weft_rows to;
  size_t row_bytes;
  size_t at, bytes;
  const uint8_t *from;
} weft_delivery;

// Copies bytes [at, at + bytes) of rows to dense memory.
void weft_rows_gather(weft_pool *pool, uint8_t *to, const weft_const_rows *from, size_t row_bytes,
                      size_t at, size_t bytes);
// Copies everything in the list to its rows.
void weft_rows_deliver(weft_pool *pool, const weft_delivery *first);

#endif
