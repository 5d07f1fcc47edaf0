// SPDX-License-Identifier: Apache-2.0
// Fair shares of the uplink. Claiming to lack something costs a neighbour nothing: one that claims
// to lack everything, and requests it all the time, would have the whole uplink. So no neighbour
// gets more than it can need, and its requests go before what is pushed to others only within a
// fixed part of the uplink. Each neighbour has two buckets for that, filled and emptied at
// intervals.
#include "peer/engine/internal.h"

enum {
  LOSSES = 2, // half of the packets may be lost
  SEEKS = 2,  // windows that a neighbour may get at once, on demand
  PARTS = 4,  // one in so many parts of the uplink is for the requests of one neighbour
  AHEAD = 4,  // segments that are answered at once
  SEGMENT_LEAST_US = 100,
  FETCHED_US = 100000 // bulk, as if it played: LOSSES segments may be loaded for a neighbour in
                      // each such time
};

// --- What a neighbour can need

// Whether that is bounded: a live stream's segments come at their pace, and on demand they are due
// by the clock. A stream that plays faster than this is not limited.
static bool bounded(const weft_engine *e) {
  return weft_is_live(e) ||
         (weft_is_paced(e) && weft_timed_by_rate(e) && weft_segment_us(e) >= SEGMENT_LEAST_US);
}

static uint64_t segment_packets(const weft_engine *e) {
  return LOSSES * (uint64_t)e->options->blocks;
}

// What a newcomer lacks at once: live, what is still to be played; otherwise a window, and one more
// in case it seeks.
static uint64_t most_credit(const weft_engine *e) {
  const uint64_t live = e->horizon > e->play ? e->horizon - e->play + 1 : 1;
  const uint64_t all = SEEKS * (uint64_t)e->window;
  const uint64_t packets = (weft_is_live(e) && live < all ? live : all) * segment_packets(e);
  return packets < UINT16_MAX ? packets : UINT16_MAX;
}

// What came to be needed since the last look. In bulk, credit for loading otherwise rises only with
// what is sent to a neighbour: the few segments here are for one that gets what was loaded for it
// from others.
static uint64_t new_packets(const weft_engine *e, int64_t now_us) {
  const uint64_t each = segment_packets(e);
  if (weft_is_live(e))
    return (uint32_t)(e->horizon - e->share_horizon) * each;
  if (weft_is_paced(e) && !bounded(e))
    return 0;
  const uint64_t segment_us = weft_is_paced(e) ? (uint64_t)weft_segment_us(e) : FETCHED_US;
  const uint64_t now = (uint64_t)now_us, before = (uint64_t)e->share_us;
  return now / segment_us * each + now % segment_us * each / segment_us -
         (before / segment_us * each + before % segment_us * each / segment_us);
}

bool weft_share_sated(const weft_engine *e, const weft_neighbour *n) {
  return n->credit == 0 && bounded(e);
}

// A session costs little, so a newcomer gets what was left in its place: it is the lowest free one,
// and a peer that keeps reconnecting mostly gets its own.
void weft_share_start(const weft_engine *e, weft_neighbour *n, const weft_neighbour *before) {
  const uint16_t most = (uint16_t)most_credit(e);
  const bool first = before->generation == 0;
  n->credit = first ? most : before->credit;
  n->load_credit = first ? most : before->load_credit;
}

// Whether a segment may be loaded for a neighbour: that is reading, hashing and signing it. A
// stream that plays too fast to be limited is not limited here, either.
bool weft_share_load(const weft_engine *e, weft_neighbour *n) {
  const uint32_t blocks = e->options->blocks;
  if (weft_is_paced(e) && !bounded(e))
    return true;
  if (n->load_credit < blocks)
    return false; // tried again at its next map
  n->load_credit = (uint16_t)(n->load_credit - blocks);
  return true;
}

static uint16_t filled(uint16_t bucket, uint64_t more, uint64_t most) {
  return (uint16_t)(bucket + more < most ? bucket + more : most);
}

void weft_share_give(weft_engine *e, weft_neighbour *n, size_t packets) {
  const bool before = weft_share_sated(e, n);
  n->credit = (uint16_t)(n->credit > packets ? n->credit - packets : 0);
  if (!weft_is_paced(e)) // bulk has no clock: loads keep to what is sent
    n->load_credit = filled(n->load_credit, LOSSES * (uint64_t)packets, most_credit(e));
  if (!before && weft_share_sated(e, n))
    e->sated++;
}

// --- Whose turn it is

// Whether the neighbour's requests go first. Where receivers request everything, they are answered
// by turns; where it is pushed to them, they request what is urgent.
bool weft_share_in_turn(const weft_engine *e, const weft_neighbour *n) {
  return e->options->policy->ask || e->self.upload_bits_per_s == 0 ||
         n->answered < AHEAD * e->options->blocks;
}

void weft_share_answer(const weft_engine *e, weft_neighbour *n, size_t packets) {
  const size_t answered = n->answered + packets, most = (AHEAD + 1) * e->options->blocks;
  n->answered = (uint16_t)(answered < most ? answered : most);
}

// How many packets a neighbour's part of the uplink took since the last look.
static uint64_t parted_packets(const weft_engine *e, int64_t now_us) {
  const uint64_t bits = PARTS * 8u * weft_coded_bytes(e), rate = e->self.upload_bits_per_s;
  const uint64_t packet_us = rate ? bits * 1000000u / rate : 0;
  return packet_us ? (uint64_t)now_us / packet_us - (uint64_t)e->share_us / packet_us : UINT16_MAX;
}

// --- Time

int64_t weft_share_deadline(const weft_engine *e) {
  const bool none = weft_is_live(e) && e->share_horizon == (uint32_t)e->horizon;
  return e->sated && !none ? e->share_us + weft_ask_every(e) : WEFT_ENGINE_NEVER;
}

void weft_share_look(weft_engine *e, int64_t now_us) {
  if (now_us - e->share_us < weft_ask_every(e))
    return;
  const uint64_t most = most_credit(e), more = new_packets(e, now_us);
  const uint64_t answered = parted_packets(e, now_us);
  e->share_us = now_us;
  e->share_horizon = (uint32_t)e->horizon;
  e->sated = 0;
  for (size_t i = 0; i < e->used; i++) {
    weft_neighbour *n = &e->neighbours[i];
    const bool before = weft_share_sated(e, n);
    n->answers = 0;
    n->answered = (uint16_t)(n->answered > answered ? n->answered - answered : 0);
    n->credit = filled(n->credit, more, most);
    n->load_credit = filled(n->load_credit, more, most);
    if (weft_share_sated(e, n)) {
      e->sated++;
    } else if (before) {
      e->idle = false;
      weft_neighbour_show(e, n);
    }
  }
}
