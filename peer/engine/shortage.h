// SPDX-License-Identifier: Apache-2.0
// What a live peer goes without while uplinks, or its own link, are too small for the stream. To
// forgo c classes is to want segments of the classes below c (weft_policy_class) last, or not at
// all, so that the others are complete.
#ifndef WEFT_PEER_ENGINE_SHORTAGE_H
#define WEFT_PEER_ENGINE_SHORTAGE_H

#include "weft/peer_engine.h"

typedef struct weft_shortage {
  uint8_t forgone : 4; // how many classes of segments are forgone
  bool measured : 1;
  bool narrow : 1; // because its own link does not carry them, not for want of uplinks
  bool wary : 1;   // its link did not carry the last increase: be slow to try another
  bool asks : 1;   // its own link queues: nothing is to be pushed to it, and it requests everything
  uint8_t failed;  // the last eight segments that were not forgone: a bit for each that was late
  uint8_t queued;  // the last eight due times: a bit for each at which its own link queued
  uint8_t crowded; // likewise: a bit where neighbours' uplinks had no spare capacity
  int8_t in_a_row; // segments in time, in a row; below 0: how many are still to be ignored
  int16_t idle;    // fraction of the time in which the uplink sent nothing, in 1/1024
  uint32_t looked_us; // when that was last evaluated, modulo 2^32
  uint32_t idle_us;   // idle time since then
} weft_shortage;

void weft_shortage_start(weft_engine *engine, int64_t now_us); // idle time is counted from now on
// Counts an idle period of the uplink that ended now.
void weft_shortage_idle(weft_engine *engine, int64_t rest_us, int64_t now_us);
// Learns from a segment that is due whether it is in time.
void weft_shortage_learn(weft_engine *engine, uint64_t segment, bool in_time, int64_t now_us);
// Whether this peer's uplink has no spare capacity.
bool weft_shortage_full(const weft_engine *engine);
// The policy that requests everything; NULL: packets are pushed.
const weft_policy *weft_shortage_asking(const weft_engine *engine);
// Whether requesting what is missing of a segment does more good than harm. Requests are answered
// before anything is pushed, so if everything were requested, peers near the source would be busy
// with what will be late, and nothing new would begin to spread.
bool weft_shortage_may_ask(const weft_engine *engine, uint64_t segment);

#endif
