// SPDX-License-Identifier: Apache-2.0
// Opens sessions with the round trips that real peers need (docs/session.md), repeating what is
// lost: who is admitted, and who is given other addresses instead.
#include <string.h>

#include "sim/swarm/internal.h"

// --- The initiator

static weft_sim_dial *dial_of(weft_sim_peer *p, uint32_t other) {
  for (size_t i = 0; i < WEFT_SIM_DIALS; i++)
    if (p->dials[i].peer == other)
      return &p->dials[i];
  return NULL;
}

// Returns the message's share of handshake-bytes, in proportion to the real handshake.
static size_t wire_bytes(const weft_sim_share *share, uint32_t kind) {
  static const uint16_t shares[] = {
      [WEFT_SIM_INIT] = 220,   [WEFT_SIM_RETRY] = 56,    [WEFT_SIM_INIT_COOKIE] = 220,
      [WEFT_SIM_ACCEPT] = 260, [WEFT_SIM_CONFIRM] = 224, [WEFT_SIM_OPENED] = 56,
      [WEFT_SIM_REFUSE] = 56,  [WEFT_SIM_MEET] = 78};
  enum { ALL = 220 + 56 + 220 + 260 + 224 + 56 };
  return (size_t)share->swarm->parameters.handshake_bytes * shares[kind] / ALL;
}

static weft_status say(weft_sim_share *share, weft_sim_peer *p, uint32_t to, uint32_t kind,
                       int64_t now_us) {
  return weft_sim_send_plain(share, p, to, kind, NULL, 0, wire_bytes(share, kind), now_us);
}

// Sends the next message of a dial, or repeats the last one.
static weft_status step(weft_sim_share *share, weft_sim_peer *p, weft_sim_dial *dial, uint32_t kind,
                        int64_t now_us) {
  const int64_t twice_us = 2 * dial->wait_us;
  dial->wait_us = dial->step != kind                 ? WEFT_SIM_AGAIN_US
                  : twice_us < WEFT_SIM_AGAIN_MAX_US ? twice_us
                                                     : WEFT_SIM_AGAIN_MAX_US;
  dial->step = kind;
  dial->again_us = now_us + dial->wait_us;
  if (dial->again_us < p->own_us)
    p->own_us = dial->again_us;
  return say(share, p, dial->peer, kind, now_us);
}

// Like a node, leaves sessions free for callers (peer/runtime/node_room.c).
static bool may_dial(const weft_sim_share *share, const weft_sim_peer *p) {
  size_t count = p->degree;
  for (size_t i = 0; i < WEFT_SIM_DIALS; i++)
    count += p->dials[i].peer != WEFT_SIM_NOBODY;
  return count < share->swarm->parameters.neighbours_max + WEFT_SIM_SPARE;
}

// Announces a dial through the tracker, which the dialled peer knows: the delay of two paths. The
// tracker's uplink and losses are not modelled.
static weft_status ask_to_meet(weft_sim_share *share, weft_sim_peer *p, uint32_t other,
                               int64_t now_us) {
  const weft_sim_contact contact = {
      .peer = other,
      .delay_us = 2 * (uint32_t)weft_sim_delay_us(&share->swarm->model, p->id, other)};
  return weft_sim_send_by(share, p, &contact, WEFT_SIM_MEET, NULL, 0,
                          wire_bytes(share, WEFT_SIM_MEET), now_us);
}

weft_status weft_sim_dial_to(weft_sim_share *share, weft_sim_peer *peer,
                             const weft_peer_address *address, bool calls_back, int64_t now_us) {
  uint32_t other;
  memcpy(&other, address->bytes, sizeof other);
  weft_sim_dial *dial = may_dial(share, peer) ? dial_of(peer, WEFT_SIM_NOBODY) : NULL;
  bool refused = other == peer->id || !dial || dial_of(peer, other) ||
                 weft_sim_number_of(share, peer, other) != SIZE_MAX;
  for (size_t i = 0; i < WEFT_SIM_BANS; i++)
    refused = refused || peer->banned[i] == other;
  if (refused) {
    weft_engine_dial_failed(peer->engine, address);
    return WEFT_OK;
  }
  *dial = (weft_sim_dial){
      .peer = other, .step = WEFT_SIM_REFUSE, .until_us = now_us + WEFT_SIM_DIAL_US};
  if (!calls_back && share->swarm->parameters.topology == WEFT_SIM_TRACKER)
    WEFT_TRY(ask_to_meet(share, peer, other, now_us));
  return step(share, peer, dial, WEFT_SIM_INIT, now_us);
}

weft_status weft_sim_dial_timers(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us) {
  for (size_t i = 0; i < WEFT_SIM_DIALS; i++) {
    weft_sim_dial *dial = &peer->dials[i];
    if (dial->peer == WEFT_SIM_NOBODY)
      continue;
    if (dial->until_us <= now_us) {
      const weft_peer_address address = weft_sim_address(dial->peer);
      dial->peer = WEFT_SIM_NOBODY;
      weft_engine_dial_failed(peer->engine, &address);
    } else if (dial->again_us <= now_us) {
      WEFT_TRY(step(share, peer, dial, dial->step, now_us));
    }
  }
  return WEFT_OK;
}

int64_t weft_sim_dial_time(const weft_sim_peer *peer) {
  int64_t next = WEFT_SIM_NEVER;
  for (size_t i = 0; i < WEFT_SIM_DIALS; i++) {
    const weft_sim_dial *dial = &peer->dials[i];
    if (dial->peer == WEFT_SIM_NOBODY)
      continue;
    next = dial->until_us < next ? dial->until_us : next;
    next = dial->again_us < next ? dial->again_us : next;
  }
  return next;
}

// --- Both sides: a session without room for a neighbour passes on other addresses

static weft_status refuse(weft_sim_share *share, weft_sim_peer *p, uint32_t other, int64_t now_us) {
  uint8_t text[WEFT_DATAGRAM_MAX];
  const size_t bytes = weft_engine_refusal(p->engine, NULL, text);
  return weft_sim_send_plain(share, p, other, WEFT_SIM_REFUSE, text, bytes,
                             wire_bytes(share, WEFT_SIM_REFUSE) + bytes, now_us);
}

// Handles the first message over a session, which opens it at the initiator.
static weft_status take_opened(weft_sim_share *share, weft_sim_peer *p, const weft_sim_message *m,
                               int64_t now_us) {
  weft_sim_dial *dial = dial_of(p, m->source);
  size_t number = weft_sim_number_of(share, p, m->source);
  if (dial)
    dial->peer = WEFT_SIM_NOBODY;
  if (dial && number == SIZE_MAX) {
    const weft_status status = weft_sim_add_neighbour(share, p, m->source, true, now_us, &number);
    if (status == WEFT_E_STATE) // full in the meantime
      return m->bytes ? WEFT_OK : refuse(share, p, m->source, now_us);
    WEFT_TRY(status);
  }
  if (m->bytes == 0 || number == SIZE_MAX)
    return WEFT_OK;
  const weft_status refused =
      weft_engine_input(p->engine, number, weft_sim_content(m), m->bytes, now_us);
  return weft_sim_is_failure(refused) ? refused : WEFT_OK;
}

// --- The responder, which keeps no state before CONFIRM

// Whether the peer admits another. Behind a NAT it admits only peers that it dials itself, and not
// even those if one of the two NATs is symmetric: its port is not the one that the other side
// expects. Without a stream it admits nobody.
static bool lets_in(const weft_sim_share *share, weft_sim_peer *p, uint32_t other) {
  const weft_sim_model *model = &share->swarm->model;
  if (!p->has_stream)
    return false;
  for (size_t i = 0; i < WEFT_SIM_BANS; i++)
    if (p->banned[i] == other)
      return false;
  return !p->nat || (dial_of(p, other) && !weft_sim_symmetric_nat(model, p->id) &&
                     !weft_sim_symmetric_nat(model, other));
}

static weft_status take_confirm(weft_sim_share *share, weft_sim_peer *p, uint32_t other,
                                int64_t now_us) {
  size_t number = weft_sim_number_of(share, p, other);
  if (number == SIZE_MAX) {
    const weft_status status = weft_sim_add_neighbour(share, p, other, false, now_us, &number);
    if (status == WEFT_E_STATE)
      return refuse(share, p, other, now_us);
    WEFT_TRY(status);
  }
  weft_sim_dial *own = dial_of(p, other);
  if (own && own->step != WEFT_SIM_CONFIRM)
    own->peer = WEFT_SIM_NOBODY; // both dialled: one session is enough
  return say(share, p, other, WEFT_SIM_OPENED, now_us);
}

weft_status weft_sim_take_handshake(weft_sim_share *share, weft_sim_peer *peer,
                                    const weft_sim_message *message, int64_t now_us) {
  const uint32_t other = message->source, kind = message->kind & ~(uint32_t)WEFT_SIM_PASSED;
  if (kind == WEFT_SIM_OPENED || kind == WEFT_SIM_REFUSE)
    return take_opened(share, peer, message, now_us);
  if (kind == WEFT_SIM_RETRY || kind == WEFT_SIM_ACCEPT) {
    const bool retry = kind == WEFT_SIM_RETRY;
    weft_sim_dial *dial = dial_of(peer, other);
    if (!dial || dial->step != (retry ? WEFT_SIM_INIT : WEFT_SIM_INIT_COOKIE))
      return WEFT_OK; // answered already
    return step(share, peer, dial, retry ? WEFT_SIM_INIT_COOKIE : WEFT_SIM_CONFIRM, now_us);
  }
  if (kind == WEFT_SIM_MEET) {
    const weft_peer_address caller = weft_sim_address(other);
    weft_engine_call(peer->engine, &caller, now_us);
    return WEFT_OK;
  }
  if (!lets_in(share, peer, other))
    return WEFT_OK;
  if (kind == WEFT_SIM_CONFIRM)
    return take_confirm(share, peer, other, now_us);
  return say(share, peer, other, kind == WEFT_SIM_INIT ? WEFT_SIM_RETRY : WEFT_SIM_ACCEPT, now_us);
}
