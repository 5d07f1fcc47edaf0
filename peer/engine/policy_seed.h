// SPDX-License-Identifier: Apache-2.0
// What policies whose receivers send requests share: how a live source gets a segment out, and when
// it may be asked.
#ifndef WEFT_PEER_ENGINE_POLICY_SEED_H
#define WEFT_PEER_ENGINE_POLICY_SEED_H

#include "weft/peer_policy.h"

// pick: a live source sends as many packets of each new segment as it has blocks, once, to any
// neighbours that want them; uncoded, every block. Nothing else is sent without a request.
bool weft_policy_seed(void *user, const weft_policy_view *view, const weft_rng *rng,
                      weft_policy_choice *out);

// Whether the source may be asked for a segment: live, once a third of the segment's time has
// passed. Before that, only the source has it, and all would ask it for everything new.
bool weft_policy_source_in_turn(const weft_policy_view *view, uint64_t segment);

#endif
