// SPDX-License-Identifier: Apache-2.0
// Coded packets that come in: which neighbours may send them, what they are good for, and what
// happens when a segment is full.
#include "peer/engine/internal.h"

enum { ALERT_US = 60000000 }; // how long nothing unverified is mixed after a polluted segment

// Takes a packet that is of no use, through no fault of the sender's. If the segment is complete,
// the sender is sent another BRAKE, in case that was lost.
static weft_status useless(weft_engine *e, size_t index, const weft_engine_arrival *a,
                           int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  const bool has = weft_window_has(e, a->segment);
  const weft_slot *slot = weft_window_slot(e, a->segment);
  if (a->segment >= e->tail && has && !slot->complete && !slot->skipped) {
    e->statistics.received_dependent += a->count;
    return WEFT_DEPENDENT;
  }
  e->statistics.received_late += a->count;
  if (now_us - n->brake_us >= WEFT_TIMER(e, brake_us, 20000)) {
    n->brake_us = now_us;
    if (has)
      weft_neighbour_mark(e, index, a->segment, WEFT_MARK_BRAKE, WEFT_DUE_BRAKES);
    else
      weft_neighbour_due(e, index, WEFT_DUE_MAP);
  }
  return WEFT_DEPENDENT;
}

static void count_bytes(weft_engine *e, const weft_engine_arrival *a) {
  const size_t k = e->options->block_bytes;
  const weft_segment_id id = {.stream = e->options->stream,
                              .segment = a->segment,
                              .blocks = a->blocks,
                              .block_bytes = (uint32_t)k};
  const size_t each =
      a->packet ? a->bytes : e->codec->token_packet_bytes(e->codec->user, &id, false);
  e->statistics.received_packets += a->count;
  e->statistics.received_payload_bytes += a->count * k;
  e->statistics.received_header_bytes += a->count * (each > k ? each - k : 0);
}

size_t weft_data_rank(const weft_engine *e, const void *opened) {
  return opened ? e->codec->rank(e->codec->user, opened) : 0;
}

weft_status weft_data_add(weft_engine *e, void **into, const weft_engine_arrival *a,
                          size_t *innovative) {
  const weft_segment_id id = {.stream = e->options->stream,
                              .segment = a->segment,
                              .blocks = a->blocks,
                              .block_bytes = e->options->block_bytes};
  *innovative = 0;
  if (!*into)
    WEFT_TRY(e->codec->open_sink(e->codec->user, &id, &e->self.rng, into));
  if (!a->packet)
    return e->codec->add_token(e->codec->user, *into, a->count, a->token, a->bytes, innovative);
  const weft_status status = e->codec->add(e->codec->user, *into, a->packet);
  *innovative = status == WEFT_OK;
  return status;
}

// Updates what neighbours and the policy may know of the rank.
void weft_data_show_rank(weft_engine *e, uint64_t segment, int64_t now_us) {
  const weft_slot *slot = weft_window_slot(e, segment);
  weft_policy_segment *held = weft_window_held(e, segment);
  const size_t rank = weft_data_rank(e, slot->segment), tried = weft_data_rank(e, slot->trial);
  // A spoilt trial says nothing of how much is missing.
  const size_t all = tried > rank && !slot->tried ? tried : rank;
  const bool dubious = e->options->trust && !weft_checksums_on(e) && now_us < e->alert_until_us;
  held->rank = dubious ? 0 : (uint16_t)rank;
  held->received = (uint16_t)(all < held->blocks ? all : held->blocks);
}

// --- A full segment

// Discards the segment, which then comes from one neighbour at a time that claims to have verified
// it.
static void fail(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const uint16_t solo = slot->solo;
  weft_slot_close(e, slot);
  slot->failed = true;
  slot->solo = WEFT_NO_NEIGHBOUR;
  e->alert_until_us = now_us + ALERT_US;
  weft_data_show_rank(e, segment, now_us);
  for (uint64_t s = e->tail; s < e->tail + e->window; s++)
    if (weft_window_has(e, s) && !weft_window_slot(e, s)->complete)
      weft_data_show_rank(e, s, now_us);
  if (solo != WEFT_NO_NEIGHBOUR && !e->neighbours[solo].is_source)
    weft_neighbour_ban(e, solo);
  e->ask_us = now_us; // look for another at once
  weft_engine_changed(e);
}

void weft_data_full(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  if (!e->options->trust) {
    weft_window_complete(e, segment, now_us);
    return;
  }
  if (!slot->manifest) {
    e->ask_us = now_us;
    return;
  }
  if (weft_gather_take(e, segment, now_us))
    return;
  bool matches = false;
  if (weft_manifest_check(e, segment, &matches) != WEFT_OK) {
    weft_requests_again(e, now_us); // no memory
    return;
  }
  if (matches) {
    weft_window_complete(e, segment, now_us);
    return;
  }
  e->statistics.hash_failures++;
  fail(e, segment, now_us);
}

// --- Arrivals

// Whether a packet of the segment from this neighbour may be used at all.
static bool admitted(const weft_engine *e, const weft_slot *slot, size_t index, int64_t now_us) {
  const weft_neighbour *n = &e->neighbours[index];
  if (!slot->failed || n->is_source)
    return true;
  // What it sent before the request may not have been verified there.
  return slot->solo == index && now_us >= slot->solo_us + n->round_trip_us;
}

static weft_status take_into(weft_engine *e, size_t index, const weft_engine_arrival *a,
                             int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  weft_slot *slot = weft_window_slot(e, a->segment);
  size_t innovative;
  if (weft_checksums_on(e) && !slot->failed) {
    WEFT_TRY(weft_held_take(e, index, a, &innovative, now_us));
  } else {
    const weft_status status = weft_data_add(e, &slot->segment, a, &innovative);
    if (status != WEFT_OK && status != WEFT_DEPENDENT)
      return status;
    e->statistics.received_innovative += innovative;
    e->statistics.received_dependent += a->count - innovative;
    weft_policy_want *want = weft_neighbour_want(e, n, a->segment);
    if (want) // it has what came from it
      weft_want_common(want, innovative);
  }
  if (innovative < a->count) // it then has nothing else new, but for one chance in 256
    n->marks[weft_place(e, a->segment)] |= WEFT_MARK_SPENT;
  if (innovative == 0)
    return WEFT_DEPENDENT;
  n->received_innovative += innovative;
  e->progress += (uint32_t)innovative;
  if (!weft_is_paced(e))
    e->gain_us = now_us;
  if (e->blocks)
    e->codec->has(e->codec->user, slot->segment,
                  e->blocks + (weft_place(e, a->segment)) * e->blocks_stride);
  return WEFT_OK;
}

// Adds a packet to its segment, if it is of use there. *taken: the decoder took it.
static weft_status take(weft_engine *e, size_t index, const weft_engine_arrival *a, bool *taken,
                        int64_t now_us) {
  const uint64_t segment = a->segment;
  const bool has = weft_window_has(e, segment);
  const uint32_t blocks = weft_window_blocks(e, segment);
  *taken = false;
  if (segment < e->tail)
    return useless(e, index, a, now_us);
  // A short segment is the stream's last; until that is known its shape cannot be trusted.
  const bool nothing_to_learn = e->self.source && (!has || !weft_window_slot(e, segment)->complete);
  if (!has || nothing_to_learn || !e->started || a->blocks != blocks) {
    e->statistics.received_outside += a->count;
    if (has && !nothing_to_learn && e->started && e->options->trust &&
        weft_requests_room(e->options))
      weft_request_manifest(e, segment, now_us); // which gives its shape
    return WEFT_DEPENDENT;
  }
  const weft_slot *slot = weft_window_slot(e, segment);
  if (slot->complete || slot->skipped || !admitted(e, slot, index, now_us))
    return useless(e, index, a, now_us);
  const weft_status status = take_into(e, index, a, now_us);
  *taken = status == WEFT_OK || status == WEFT_DEPENDENT;
  if (!*taken) // the machine's fault, or no packet of this codec: it counts as lost
    e->statistics.received_packets -= a->count;
  return status;
}

weft_status weft_data_take(weft_engine *e, size_t index, const weft_engine_arrival *a,
                           int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  const uint64_t segment = a->segment;
  const bool has = weft_window_has(e, segment), late = segment < e->tail;
  const uint32_t blocks = weft_window_blocks(e, segment);
  const bool shape_known = e->end_known || (has && weft_window_slot(e, segment)->manifest);
  if (!late && (a->blocks > blocks || (shape_known && a->blocks != blocks)))
    return WEFT_E_FOREIGN;
  count_bytes(e, a);
  n->gave_us = now_us;
  n->received_packets += a->count;
  const bool asked = weft_request_answered(e, index, segment, a->count, a->packet, now_us);
  bool taken;
  const weft_status status = take(e, index, a, &taken, now_us);
  if (!taken) {
    if (asked)
      weft_request_unmet(e, segment, a->packet);
    return status;
  }
  weft_slot *slot = weft_window_slot(e, segment);
  if (slot->trial)
    weft_held_try(e, segment, now_us);
  if (slot->complete)
    return WEFT_OK;
  weft_data_show_rank(e, segment, now_us);
  weft_policy_want *want = weft_neighbour_want(e, n, segment);
  if (want)
    want->vain = status == WEFT_DEPENDENT;
  if (status == WEFT_DEPENDENT)
    return status;
  weft_window_hear_horizon(e, segment + 1, now_us);
  weft_engine_changed(e);
  if (weft_data_rank(e, slot->segment) == blocks)
    weft_data_full(e, segment, now_us);
  return WEFT_OK;
}
