// SPDX-License-Identifier: Apache-2.0
// Copies between rows of ordinary memory and dense pinned memory. One core copies less than a bus
// carries, so all of a pool's threads copy what is long enough.
#ifndef WEFT_LIB_ROWS_COPY_H
#define WEFT_LIB_ROWS_COPY_H

#include "kernels/backend.h"
#include "kernels/pool.h"

// Bytes [at, at + bytes) of rows, in a list of such.
typedef struct weft_rows_part {
  struct weft_rows_part *next;
  size_t row_bytes, at, bytes;
} weft_rows_part;

typedef struct weft_gathering {
  weft_rows_part part; // of `from`
  weft_const_rows from;
  uint8_t *to; // dense
} weft_gathering;

typedef struct weft_delivery {
  weft_rows_part part; // of `to`
  weft_rows to;
  const uint8_t *from; // dense
} weft_delivery;

// Copies everything in the list to dense memory. part.next leads to other gatherings.
void weft_rows_gather(weft_pool *pool, const weft_gathering *first);
// Copies everything in the list to its rows. part.next leads to other deliveries.
void weft_rows_deliver(weft_pool *pool, const weft_delivery *first);

#endif
