// SPDX-License-Identifier: Apache-2.0
// Meeting behind NATs. A NAT lets in only what comes from addresses that something was sent to, so
// a peer behind one cannot be called unless both call each other at nearly the same time. A
// neighbour that told of a peer is also the peer's neighbour, and tells it which peer is calling.
#include "peer/engine/internal.h"

enum {
  CALL_AFTER_US = 300000, // three round trips: peers that can be reached are neighbours by then
  MOST_CALLS = 4
};

void weft_meet_lost(weft_engine *e, size_t index) {
  for (size_t i = 0; i < e->candidate_count; i++)
    if (e->candidates[i].teller == index)
      e->candidates[i].teller = WEFT_NO_NEIGHBOUR;
  for (size_t i = 0; i < e->used; i++)
    if (e->neighbours[i].caller == index)
      e->neighbours[i].caller = WEFT_NO_NEIGHBOUR;
}

// --- The caller: asks the neighbour that told of the address

void weft_meet_dialled(weft_engine *e, weft_candidate *candidate) {
  if (candidate->teller == WEFT_NO_NEIGHBOUR)
    return;
  candidate->meet = true;
  weft_neighbour_due(e, candidate->teller, WEFT_DUE_MEET);
}

size_t weft_meet_put(weft_engine *e, size_t index, uint8_t *out) {
  weft_peer_address called[WEFT_MEET_MAX];
  size_t count = 0;
  for (size_t i = 0; i < e->candidate_count; i++) {
    weft_candidate *candidate = &e->candidates[i];
    if (!candidate->meet || candidate->teller != index)
      continue;
    candidate->meet = false;
    if (count < WEFT_MEET_MAX)
      called[count++] = candidate->address;
  }
  return count ? weft_refer_write(WEFT_MESSAGE_MEET, 0, called, count, out) : 0;
}

// --- Between them: tells the peer that is called

// Announces a caller to the neighbour that it calls. One at a time will do: it is told at once.
static void introduce(weft_engine *e, const weft_peer_address *called, size_t caller) {
  const weft_neighbour *found = weft_neighbour_at(e, called);
  const size_t index = found ? (size_t)(found - e->neighbours) : caller;
  if (index == caller || found->state != WEFT_NEIGHBOUR_OPEN || found->doubtful)
    return;
  e->neighbours[index].caller = (uint16_t)caller;
  weft_neighbour_due(e, index, WEFT_DUE_CALL);
}

size_t weft_call_put(weft_engine *e, size_t index, uint8_t *out) {
  const size_t caller = e->neighbours[index].caller;
  e->neighbours[index].caller = WEFT_NO_NEIGHBOUR;
  return caller == WEFT_NO_NEIGHBOUR ? 0
                                     : weft_refer_write(WEFT_MESSAGE_MEET, WEFT_MEET_CALL,
                                                        &e->neighbours[caller].address, 1, out);
}

// --- The called peer: calls back

// Finds a candidate's place for a caller. Anybody's word could make us call others, and displace
// known addresses: so few callers wait at once, and they replace only addresses that were called
// already, and never the source's.
static weft_candidate *place(weft_engine *e, const weft_peer_address *caller) {
  weft_candidate *known = weft_candidate_at(e, caller);
  size_t calls = 0, spent = SIZE_MAX;
  for (size_t i = 0; i < e->candidate_count; i++) {
    const weft_candidate *c = &e->candidates[i];
    calls += c->calls;
    const bool was_called = c->failures || c->gone || c->after_us > 0;
    if (spent == SIZE_MAX && !c->calls && !c->source && was_called)
      spent = i;
  }
  if (known || calls >= MOST_CALLS)
    return calls < MOST_CALLS ? known : NULL;
  if (e->candidate_count == e->options->addresses_max && spent == SIZE_MAX)
    return NULL;
  if (e->candidate_count == e->options->addresses_max)
    weft_candidate_forget(e, spent);
  return weft_candidate_add(e, caller) ? &e->candidates[e->candidate_count - 1] : NULL;
}

void weft_engine_call(weft_engine *e, const weft_peer_address *caller, int64_t now_us) {
  if (e->farewell || e->options->addresses_max == 0 || caller->length == 0 ||
      caller->length > WEFT_PEER_ADDRESS_BYTES || weft_neighbour_at(e, caller))
    return;
  weft_candidate *candidate = place(e, caller);
  if (!candidate || candidate->dialling || candidate->calls)
    return; // repeating it must not put the call off
  candidate->calls = e->called = true;
  candidate->after_us = now_us + CALL_AFTER_US;
}

void weft_meet_take(weft_engine *e, size_t index, const weft_refer *meet, int64_t now_us) {
  const uint8_t *at = meet->addresses;
  const bool calls = meet->flags & WEFT_MEET_CALL;
  if (!calls &&
      (e->neighbours[index].address.length == 0 || !weft_answer_allowed(e, index, now_us)))
    return;
  for (size_t i = 0; i < meet->count; i++) {
    const weft_peer_address address = weft_refer_next(&at);
    if (calls)
      weft_engine_call(e, &address, now_us);
    else
      introduce(e, &address, index);
  }
}

int64_t weft_meet_deadline(const weft_engine *e) {
  int64_t at_us = WEFT_ENGINE_NEVER;
  for (size_t i = 0; i < e->candidate_count && e->called; i++)
    if (e->candidates[i].calls && e->candidates[i].after_us < at_us)
      at_us = e->candidates[i].after_us;
  return at_us;
}

void weft_meet_tick(weft_engine *e, int64_t now_us) {
  if (now_us < weft_meet_deadline(e))
    return;
  const bool room = e->degree < e->options->neighbours_max;
  e->dial_us = now_us;
  e->called = false;
  for (size_t i = 0; i < e->candidate_count; i++) {
    weft_candidate *c = &e->candidates[i];
    c->calls = c->calls && room;
    e->called = e->called || (c->calls && c->after_us > now_us);
    e->calling = e->calling || (c->calls && c->after_us <= now_us);
  }
}
