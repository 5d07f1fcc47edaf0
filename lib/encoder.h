// SPDX-License-Identifier: Apache-2.0
// The encoder's internals.
#ifndef WEFT_LIB_ENCODER_H
#define WEFT_LIB_ENCODER_H

#include "lib/random.h"
#include "lib/segment.h"
#include "weft/rlnc.h"

struct weft_encoder {
  const weft_segment *segment;
  weft_ctx *ctx;
  weft_encoder_options options;
  size_t next_block;  // systematic: the next source block to send; n once all are sent
  uint64_t next_seed; // seeded: the next coded packet's seed
  weft_random random;
};

#endif
