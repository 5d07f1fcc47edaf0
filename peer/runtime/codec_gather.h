// SPDX-License-Identifier: Apache-2.0
// The RLNC codec of a peer that is catching up. It keeps packets as they arrive and decodes many
// full segments in one call (weft_decode_batch, on the context's threads or its device), on a
// thread of its own. The segments of one such call are a run.
#ifndef WEFT_PEER_CODEC_GATHER_H
#define WEFT_PEER_CODEC_GATHER_H

#include "weft/peer_codec.h"

typedef struct weft_gatherer weft_gatherer;

// The context must outlive it. Errors: WEFT_E_NOMEM.
weft_status weft_gatherer_new(weft_ctx *ctx, weft_gatherer **out);
// Makes batches decode inside the call, not on the thread, so that runs are reproducible bit for
// bit. Call it before the first batch.
void weft_gatherer_stay(weft_gatherer *gatherer);
void weft_gatherer_free(weft_gatherer *gatherer); // accepts NULL; close all segments first
// Returns the codec, for receivers only: it opens no source segments and has no checksums.
weft_codec weft_gatherer_table(weft_gatherer *gatherer);

#endif
