// SPDX-License-Identifier: Apache-2.0
// The RLNC codec of a peer that catches up: packets are kept as they came, and full segments
// decoded many in one call (weft_decode_batch: on the context's threads or its device), on a thread
// beside the main loop.
#ifndef WEFT_PEER_CODEC_GATHER_H
#define WEFT_PEER_CODEC_GATHER_H

#include "weft/peer_codec.h"

typedef struct weft_gatherer weft_gatherer;

// The context must outlive it. Errors: WEFT_E_NOMEM.
weft_status weft_gatherer_new(weft_ctx *ctx, weft_gatherer **out);
// From now on batches are decoded within the call, not beside it: the same run, bit for bit. Before
// the first batch.
void weft_gatherer_stay(weft_gatherer *gatherer);
void weft_gatherer_free(weft_gatherer *gatherer); // accepts NULL; all segments are closed before
// For receivers: it opens no segments of a source, and has no checksums.
weft_codec weft_gatherer_table(weft_gatherer *gatherer);

#endif
