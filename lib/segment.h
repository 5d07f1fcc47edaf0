// SPDX-License-Identifier: Apache-2.0
// Inside of a segment, for the encoder.
#ifndef WEFT_LIB_SEGMENT_H
#define WEFT_LIB_SEGMENT_H

#include <stdatomic.h>

#include "lib/ctx.h"
#include "weft/rlnc.h"

typedef struct weft_segment_group weft_segment_group;

struct weft_segment {
  weft_ctx *ctx;
  weft_segment_id id;
  weft_const_rows blocks;    // (n, k), where the context's row reads them; the last one padded
  const uint8_t **ptr;       // (n) blocks in host memory, else NULL
  uint8_t *owned;            // host memory: a copy of all blocks, or padding; may be NULL
  void *device;              // device memory: a copy of all blocks
  weft_operand *operand;     // the row's own layout of them, where it has one
  weft_segment_group *group; // that it was made in, or NULL
};

// Segments that are made together share a block of device memory.
struct weft_segment_group {
  atomic_size_t left; // segments not yet freed
  void *device;       // (count, n, k), rows one after the other
  weft_segment segments[];
};

#endif
