// SPDX-License-Identifier: Apache-2.0
// Packets that arrive at decoders on a device: elimination on the CPU, then copies to their slots.
#ifndef WEFT_LIB_DECODER_LAND_H
#define WEFT_LIB_DECODER_LAND_H

#include <stdatomic.h>

#include "lib/decoder.h"

// The items of a call grouped by decoder, in their order.
typedef struct weft_by_decoder {
  weft_decoder **decoders; // each once
  size_t count;
  uint32_t *next; // (items) the decoder's next item, or WEFT_NO_ITEM
} weft_by_decoder;

// The result of adding a packet.
typedef struct weft_landing {
  weft_status status;
  uint32_t slot; // when WEFT_OK
} weft_landing;

typedef struct weft_adding {
  weft_arrival *arrivals;
  size_t count;
  weft_mem mem;
  weft_by_decoder by;
  // For devices. Results are grouped by decoder: arrivals of different decoders are interleaved,
  // and cache lines written by several threads would bounce between cores.
  weft_landing *landings;  // (count) those of decoder d start at first_landing[d]
  uint32_t *first_landing; // (count)
  size_t most_blocks;      // the largest n
  bool begun;              // elimination has begun
  // Pinned copies of what the device cannot read in place as one piece: vectors and, for payloads
  // in host memory, the payloads behind them. If those would be more than a queue stages at a time:
  // of the vectors alone, in ordinary memory.
  bool in_slices;
  uint8_t *staged;
  size_t staged_stride;
  weft_device_piece *pieces; // pinned
  atomic_size_t piece_count;
} weft_adding;

// Adds all arrivals to decoders on a device; most_bytes: the largest k. If it fails once `begun`,
// the decoders must drop what they have accepted.
weft_status weft_decoders_land(weft_adding *a, weft_call *call, size_t most_bytes);

#endif
