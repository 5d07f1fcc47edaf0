// SPDX-License-Identifier: Apache-2.0
// A codec that wraps another and measures what coding costs. The caller provides the clock, because
// neither the engine nor the simulation may read one.
#ifndef WEFT_SIM_CODEC_TIMED_H
#define WEFT_SIM_CODEC_TIMED_H

#include "weft/peer_codec.h"

typedef struct weft_codec_cost {
  uint64_t bytes; // of payload made or read
  uint64_t nanoseconds;
} weft_codec_cost;

typedef struct weft_codec_timed {
  const weft_codec *inner;
  uint64_t (*clock_ns)(void *user);
  void *user;
  weft_codec_cost make;   // encoding at a source, recoding elsewhere
  weft_codec_cost decode; // taking packets and reading the decoded data
} weft_codec_timed;

// Returns the table for `timed`, which must not move while it is in use.
weft_codec weft_codec_timed_table(weft_codec_timed *timed);

#endif
