// SPDX-License-Identifier: Apache-2.0
// The table of calls through which the peer's engine codes: it knows ranks and packets, never bytes
// of a code. weft ships the RLNC codec; others can be handed in from outside.
#ifndef WEFT_PEER_CODEC_H
#define WEFT_PEER_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/packet.h"
#include "weft/peer_rng.h"
#include "weft/rlnc.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// One codec may serve several engines of one thread. `segment` is what open_* returned.
typedef struct weft_codec {
  const char *name;
  void *user; // passed to every call
  // A segment whose `bytes` bytes are known, at the source. The data is copied. rng may be kept.
  weft_status (*open_source)(void *user, const weft_segment_id *id, const uint8_t *data,
                             size_t bytes, const weft_rng *rng, void **out);
  // A segment that packets will fill. rng may be kept: coefficients must come from it, so that the
  // same inputs give the same packets.
  weft_status (*open_sink)(void *user, const weft_segment_id *id, const weft_rng *rng, void **out);
  void (*close)(void *user, void *segment);
  // WEFT_OK: rank rose by one. WEFT_DEPENDENT: nothing new. Anything else: nothing changed.
  weft_status (*add)(void *user, void *segment, const weft_packet *packet);
  size_t (*rank)(void *user, const void *segment); // 0..n; n: complete
  // Makes batch->count packets from what is held: payloads into batch->payload_rows, the rest into
  // batch->packets. WEFT_PENDING at rank 0.
  weft_status (*make)(void *user, void *segment, const weft_batch *batch);
  // Copies bytes of a complete segment.
  weft_status (*read)(void *user, void *segment, size_t offset, size_t bytes, uint8_t *out);
  size_t (*memory_bytes)(void *user, const weft_segment_id *id); // of one open segment, at most
} weft_codec;

// RLNC with real bytes. The source sends each block once as it is, then packets that name a seed;
// everyone else recodes into packets that carry their vector.
typedef struct weft_codec_rlnc {
  weft_ctx *ctx;   // must outlive the codec
  bool coded_only; // the source does not send blocks as they are
} weft_codec_rlnc;

// The table for `rlnc`, which must stay where it is.
weft_codec weft_codec_rlnc_table(weft_codec_rlnc *rlnc);

#ifdef __cplusplus
}
#endif
#endif
