// SPDX-License-Identifier: Apache-2.0
// What the policies of receivers that ask have in common: how a live source gets a segment out, and
// when it may be asked.
#ifndef WEFT_PEER_ENGINE_POLICY_SEED_H
#define WEFT_PEER_ENGINE_POLICY_SEED_H

#include "weft/peer_policy.h"

// pick: the live source gives as many packets of each new segment as it has blocks, once, to
// anybody who wants them; uncoded, every block. Nobody else gives anything unasked.
bool weft_policy_seed(void *user, const weft_policy_view *view, const weft_rng *rng,
                      weft_policy_choice *out);

// Whether the source may be asked for a segment: live, once a third of its time is over. Before
// that others are asked, or all would ask the source for all that is new, since nobody else has it.
bool weft_policy_source_in_turn(const weft_policy_view *view, uint64_t segment);

#endif
