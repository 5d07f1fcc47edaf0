// SPDX-License-Identifier: Apache-2.0
// What a live peer goes without while uplinks, or its own link, are too small for the stream.
#ifndef WEFT_PEER_ENGINE_SHORTAGE_H
#define WEFT_PEER_ENGINE_SHORTAGE_H

#include "weft/peer_engine.h"

typedef struct weft_shortage {
  uint8_t forgone : 4; // classes of segments: weft_policy_class() below it
  bool measured : 1;
  bool narrow : 1;    // it is the own link that does not carry them
  bool wary : 1;      // it did not carry as many as were tried last
  bool asks : 1;      // the own link queues: nothing is to be pushed, all that comes is asked for
  uint8_t failed;     // the last eight segments that were not forgone: a bit for each not in time
  uint8_t queued;     // when the last eight segments were due: a bit where the own link queued
  uint8_t crowded;    // likewise: where neighbours' uplinks had no rest
  int8_t in_a_row;    // of those, in time; below 0: so many that say nothing are still to come
  int16_t idle;       // part of the time in which the uplink sent nothing
  uint32_t looked_us; // modulo 2^32
  uint32_t idle_us;   // all of that since then
} weft_shortage;

void weft_shortage_start(weft_engine *engine, int64_t now_us); // the time counts from here
// The uplink rested for so long until now.
void weft_shortage_idle(weft_engine *engine, int64_t rest_us, int64_t now_us);
// The next segment to be played is due.
void weft_shortage_learn(weft_engine *engine, uint64_t segment, bool in_time, int64_t now_us);
// Whether the own uplink has no rest.
bool weft_shortage_full(const weft_engine *engine);
// How all that comes is asked for; NULL: it is pushed.
const weft_policy *weft_shortage_asking(const weft_engine *engine);
// Whether asking for what is missing of a segment does more good than harm. Were everything asked
// for, which is answered before anything is pushed, those near the source would be busy with what
// will be too late, and nothing new would set out.
bool weft_shortage_may_ask(const weft_engine *engine, uint64_t segment);

#endif
