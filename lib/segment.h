// SPDX-License-Identifier: Apache-2.0
// A segment's internals, for the encoder.
#ifndef WEFT_LIB_SEGMENT_H
#define WEFT_LIB_SEGMENT_H

#include <stdatomic.h>

#include "lib/ctx.h"
#include "weft/rlnc.h"

typedef struct weft_segment_group weft_segment_group;

struct weft_segment {
  weft_ctx *ctx;
  weft_segment_id id;
  weft_const_rows blocks;    // (n, k), where the context's row reads them; last block padded
  const uint8_t **ptr;       // (n) blocks in host memory, else NULL
  uint8_t *owned;            // host memory: a copy of all blocks, or the padding; or NULL
  void *device;              // device memory: a copy of all blocks
  weft_operand *operand;     // the blocks in the row's own layout, if it has one
  weft_segment_group *group; // the group that it was created in, or NULL
};

// Segments created together share one block of device memory.
struct weft_segment_group {
  atomic_size_t left; // segments not yet freed
  void *device;       // (count, n, k), rows one after the other
  weft_segment segments[];
};

#endif
