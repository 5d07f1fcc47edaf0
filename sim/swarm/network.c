// SPDX-License-Identifier: Apache-2.0
// Moves bursts from engine to engine: the sender's uplink, the path, losses, the receiver's
// downlink.
#include <string.h>

#include "sim/swarm/internal.h"

static uint64_t uplink_rate(const weft_sim_share *share, const weft_sim_peer *p) {
  const weft_sim_parameters *o = &share->swarm->parameters;
  const weft_sim_class *class = &o->classes[p->class_index];
  if (p->id == 0)
    return o->source_line_bits_per_s ? o->source_line_bits_per_s : o->source_bits_per_s;
  return class->line_bits_per_s ? class->line_bits_per_s : class->up_bits_per_s;
}

// --- Out

// Makes room for a message that leaves now. WEFT_OK with *out NULL: the uplink's queue is full, and
// the message is lost.
static weft_status post(weft_sim_share *share, weft_sim_peer *p, const weft_sim_contact *to,
                        uint32_t kind, size_t bytes, size_t wire_bytes, int64_t now_us,
                        void **out) {
  const weft_sim_swarm *swarm = share->swarm;
  *out = NULL;
  const int64_t left_us = weft_sim_link_queue(&p->up, uplink_rate(share, p),
                                              swarm->parameters.queue_us, wire_bytes, now_us);
  if (left_us < 0)
    return WEFT_OK;
  const weft_sim_message message = {.time_us = left_us + to->delay_us,
                                    .destination = to->peer,
                                    .source = p->id,
                                    .sequence = p->sequence++,
                                    .bytes = (uint32_t)bytes,
                                    .kind = kind,
                                    .word = (uint32_t)wire_bytes};
  share->totals.messages++;
  *out = weft_sim_send(share->lane, &message);
  weft_sim_second *second = weft_sim_now(share, now_us);
  *(p->id ? &second->peer_bytes : &second->source_bytes) += wire_bytes;
  p->sent_bytes += wire_bytes;
  return *out ? WEFT_OK : WEFT_E_NOMEM;
}

static bool is_data(const uint8_t *datagram) { return datagram[1] <= WEFT_PACKET_SPARSE; }

// Corrupts a byte of a packet's payload, for a polluter. Tokens have a flag for that instead.
static void spoil(const weft_sim_share *share, weft_sim_peer *p, uint8_t *datagram, size_t bytes) {
  const size_t back = weft_sim_rng_below(&p->link_rng, share->swarm->parameters.block_bytes);
  datagram[bytes - 1 - back] ^= (uint8_t)(1 + weft_sim_rng_below(&p->link_rng, 255));
}

static void count_lost(weft_sim_share *share, const uint8_t *datagram, size_t bytes) {
  weft_sim_totals *t = &share->totals;
  if (!is_data(datagram)) {
    t->lost_control++;
    t->lost_control_bytes += bytes;
    return;
  }
  const size_t payload = share->swarm->parameters.block_bytes;
  t->lost_packets++;
  t->lost_payload_bytes += payload;
  t->lost_header_bytes += bytes - payload;
}

static void count_lost_tokens(weft_sim_share *share, size_t count, size_t wire_bytes) {
  const size_t payload = count * share->swarm->parameters.block_bytes;
  share->totals.lost_packets += count;
  share->totals.lost_payload_bytes += payload;
  share->totals.lost_header_bytes += wire_bytes > payload ? wire_bytes - payload : 0;
}

static void lose_on_way(weft_sim_share *share, size_t wire_bytes) {
  weft_sim_now(share, share->begin_us)->lost_bytes += wire_bytes;
}

// Counts what a full uplink queue dropped: the engine counted it as sent, but it never left.
static void count_unsent(weft_sim_share *share, const weft_sim_peer *p, size_t packets,
                         size_t control_bytes, size_t wire_bytes) {
  weft_sim_totals *t = &share->totals;
  const size_t payload = packets * share->swarm->parameters.block_bytes;
  t->unsent_packets += packets;
  t->unsent_payload_bytes += payload;
  t->unsent_control_bytes += control_bytes;
  t->unsent_header_bytes += wire_bytes - payload - control_bytes;
  t->source_unsent_bytes += p->id ? 0 : wire_bytes;
}

weft_status weft_sim_send_by(weft_sim_share *share, weft_sim_peer *peer, const weft_sim_contact *to,
                             uint32_t kind, const void *content, size_t bytes, size_t wire_bytes,
                             int64_t now_us) {
  void *room;
  WEFT_TRY(post(share, peer, to, kind, bytes, wire_bytes, now_us, &room));
  if (!room)
    return WEFT_OK;
  share->totals.handshake_bytes += wire_bytes;
  share->totals.source_handshake_bytes += peer->id ? 0 : wire_bytes;
  if (bytes)
    memcpy(room, content, bytes);
  return WEFT_OK;
}

weft_status weft_sim_send_plain(weft_sim_share *share, weft_sim_peer *peer, uint32_t to,
                                uint32_t kind, const void *content, size_t bytes, size_t wire_bytes,
                                int64_t now_us) {
  const weft_sim_contact contact = {
      .peer = to, .delay_us = (uint32_t)weft_sim_delay_us(&share->swarm->model, peer->id, to)};
  return weft_sim_send_by(share, peer, &contact, kind, content, bytes, wire_bytes, now_us);
}

static weft_status send_tokens(weft_sim_share *share, weft_sim_peer *p, const weft_sim_contact *to,
                               const weft_burst *burst, size_t wire_bytes, int64_t now_us) {
  const weft_sim_token_head head = {.segment = burst->segment,
                                    .count = (uint32_t)burst->token_count,
                                    .bytes = (uint32_t)burst->token_bytes};
  void *room;
  WEFT_TRY(post(share, p, to, WEFT_SIM_TOKEN, sizeof head + burst->token_bytes, wire_bytes, now_us,
                &room));
  if (!room) {
    count_lost_tokens(share, burst->token_count, wire_bytes);
    count_unsent(share, p, burst->token_count, 0, wire_bytes);
    return WEFT_OK;
  }
  memcpy(room, &head, sizeof head);
  uint8_t *token = (uint8_t *)room + sizeof head;
  memcpy(token, burst->token, burst->token_bytes);
  weft_sim_token_address(p->polluter ? &share->polluted_code : &share->code, token,
                         burst->neighbour);
  return WEFT_OK;
}

static weft_status send_datagrams(weft_sim_share *share, weft_sim_peer *p,
                                  const weft_sim_contact *to, const weft_burst *burst,
                                  int64_t now_us) {
  size_t total = 0;
  for (size_t i = 0; i < burst->count; i++)
    total += burst->datagrams[i].bytes;
  const size_t head = (1 + burst->count) * sizeof(uint32_t);
  const size_t overhead = share->swarm->parameters.overhead_bytes;
  const size_t wire = total + burst->count * overhead;
  void *room;
  WEFT_TRY(post(share, p, to, WEFT_SIM_BURST, head + total, wire, now_us, &room));
  if (!room) {
    for (size_t i = 0; i < burst->count; i++) {
      const weft_datagram *d = &burst->datagrams[i];
      const bool data = is_data(d->data);
      count_lost(share, d->data, d->bytes);
      count_unsent(share, p, data, data ? 0 : d->bytes, d->bytes + overhead);
    }
    return WEFT_OK;
  }
  uint32_t *lengths = room;
  uint8_t *to_bytes = (uint8_t *)room + head;
  *lengths++ = (uint32_t)burst->count;
  for (size_t i = 0; i < burst->count; i++) {
    const weft_datagram *d = &burst->datagrams[i];
    lengths[i] = (uint32_t)d->bytes;
    memcpy(to_bytes, d->data, d->bytes);
    if (p->polluter && is_data(to_bytes))
      spoil(share, p, to_bytes, d->bytes);
    to_bytes += d->bytes;
  }
  return WEFT_OK;
}

weft_status weft_sim_transmit(weft_sim_share *share, weft_sim_peer *peer, const weft_burst *burst,
                              int64_t now_us) {
  const weft_sim_contact *to = &weft_sim_contacts(share, peer)[burst->neighbour];
  if (to->peer == WEFT_SIM_NOBODY)
    return WEFT_OK;
  if (burst->token_count) {
    size_t wire = burst->wire_bytes + burst->token_count * share->swarm->parameters.overhead_bytes;
    for (size_t i = 0; i < burst->count; i++)
      wire -= burst->datagrams[i].bytes; // these are sent separately
    WEFT_TRY(send_tokens(share, peer, to, burst, wire, now_us));
  }
  return burst->count ? send_datagrams(share, peer, to, burst, now_us) : WEFT_OK;
}

// --- In

void weft_sim_lose(weft_sim_share *share, const weft_sim_message *message, bool unheard) {
  share->totals.unheard_bytes += unheard ? message->word : 0;
  lose_on_way(share, message->word);
  const uint32_t kind = message->kind & ~(uint32_t)WEFT_SIM_PASSED;
  if (kind == WEFT_SIM_TOKEN) {
    const weft_sim_token_head *head = weft_sim_content(message);
    count_lost_tokens(share, head->count, message->word);
  } else if (kind == WEFT_SIM_BURST) {
    const uint32_t *lengths = weft_sim_content(message);
    const uint8_t *at = (const uint8_t *)(lengths + 1 + *lengths);
    for (uint32_t i = 0; i < *lengths; at += lengths[1 + i++])
      if (lengths[1 + i])
        count_lost(share, at, lengths[1 + i]);
  }
}

// Draws whether a datagram to a peer is lost at one of two places.
typedef bool loses(const weft_sim_share *share, weft_sim_peer *p);

// Lost on the path: it does not use the peer's downlink.
static bool loses_on_path(const weft_sim_share *share, weft_sim_peer *p) {
  return weft_sim_loses(share->swarm->parameters.loss, 1, NULL, &p->link_rng);
}

// Lost at the peer's own end: it has passed the downlink.
static bool loses_at_end(const weft_sim_share *share, weft_sim_peer *p) {
  const weft_sim_class *class = &share->swarm->parameters.classes[p->class_index];
  return p->id && weft_sim_loses(class->loss, class->burst, &p->bad, &p->link_rng);
}

// Removes the lost packets from a token; returns how many bytes they were on the wire.
static size_t thin_tokens(weft_sim_share *share, weft_sim_peer *p, weft_sim_message *m,
                          loses *lost_here) {
  weft_sim_token_head head;
  uint8_t *token = (uint8_t *)(m + 1) + sizeof head;
  memcpy(&head, m + 1, sizeof head);
  uint64_t lost = 0;
  for (size_t i = 0; i < head.count; i++)
    lost |= (uint64_t)lost_here(share, p) << i;
  if (!lost)
    return 0;
  const size_t gone = (size_t)__builtin_popcountll(lost);
  const size_t bytes = gone == head.count ? m->word : m->word / head.count * gone;
  count_lost_tokens(share, gone, bytes);
  head.bytes = (uint32_t)weft_sim_token_lose(&share->code, token, head.bytes, head.count, lost);
  head.count -= (uint32_t)gone;
  memcpy(m + 1, &head, sizeof head);
  return bytes;
}

// The same for datagrams, each of which leaves a length of 0.
static size_t thin_datagrams(weft_sim_share *share, weft_sim_peer *p, weft_sim_message *m,
                             loses *lost_here) {
  uint32_t *lengths = (uint32_t *)(void *)(m + 1);
  const uint32_t count = *lengths++;
  uint8_t *at = (uint8_t *)(lengths + count), *to = at;
  size_t bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t length = lengths[i];
    if (length && lost_here(share, p)) {
      count_lost(share, at, length);
      bytes += length + share->swarm->parameters.overhead_bytes;
      lengths[i] = 0;
    } else {
      memmove(to, at, length);
      to += length;
    }
    at += length;
  }
  return bytes;
}

// Removes from a message what is lost at one place; false: nothing is left.
static bool survives(weft_sim_share *share, weft_sim_peer *p, weft_sim_message *m,
                     loses *lost_here) {
  const uint32_t kind = m->kind & ~(uint32_t)WEFT_SIM_PASSED;
  size_t bytes;
  if (kind == WEFT_SIM_TOKEN)
    bytes = thin_tokens(share, p, m, lost_here);
  else if (kind == WEFT_SIM_BURST)
    bytes = thin_datagrams(share, p, m, lost_here);
  else
    bytes = lost_here(share, p) ? m->word : 0;
  if (bytes)
    lose_on_way(share, bytes);
  m->word -= (uint32_t)bytes;
  return bytes == 0 || m->word > 0;
}

int64_t weft_sim_pass_downlink(weft_sim_share *share, weft_sim_peer *peer,
                               weft_sim_message *message) {
  const weft_sim_parameters *o = &share->swarm->parameters;
  if (message->kind & WEFT_SIM_PASSED)
    return message->time_us;
  if (peer->state == WEFT_SIM_ONLINE && !survives(share, peer, message, loses_on_path))
    return -1;
  if (peer->state == WEFT_SIM_ONLINE && peer->id == 0)
    return message->time_us;
  int64_t passed_us = -1;
  if (peer->state == WEFT_SIM_ONLINE)
    passed_us = weft_sim_link_queue(&peer->down, o->classes[peer->class_index].down_bits_per_s,
                                    o->queue_us, message->word, message->time_us);
  if (passed_us < 0)
    weft_sim_lose(share, message, peer->state != WEFT_SIM_ONLINE);
  return passed_us;
}

static void hash_bytes(weft_sim_peer *p, const uint8_t *bytes, size_t length) {
  uint64_t word;
  for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
    memcpy(&word, bytes, sizeof word);
    p->hash = weft_sim_mix(p->hash ^ word);
  }
  word = length;
  memcpy(&word, bytes, length);
  p->hash = weft_sim_mix(p->hash + word);
}

static weft_status take_tokens(weft_sim_share *share, weft_sim_peer *p, size_t from,
                               const weft_sim_message *m, int64_t now_us) {
  weft_sim_token_head head;
  uint8_t *token = (uint8_t *)weft_sim_content(m) + sizeof head;
  memcpy(&head, weft_sim_content(m), sizeof head);
  hash_bytes(p, token, head.bytes < 64 ? head.bytes : 64);
  share->totals.packets += head.count;
  weft_sim_codec *code = p->polluter ? &share->polluted_code : &share->code;
  weft_sim_token_arrive(code, token, from);
  code->surplus = 0;
  const weft_status status =
      weft_engine_input_token(p->engine, from, head.segment, head.count, token, head.bytes, now_us);
  share->surplus_segment = head.segment;
  share->surplus = code->surplus;
  return weft_sim_is_failure(status) ? status : WEFT_OK;
}

static weft_status take_datagrams(weft_sim_share *share, weft_sim_peer *p, size_t from,
                                  const weft_sim_message *m, int64_t now_us) {
  const uint32_t *lengths = weft_sim_content(m);
  const uint32_t count = *lengths++;
  const uint8_t *at = (const uint8_t *)(lengths + count);
  for (uint32_t i = 0; i < count; at += lengths[i++]) {
    if (lengths[i] == 0) // lost
      continue;
    hash_bytes(p, at, lengths[i] < 64 ? lengths[i] : 64);
    share->totals.packets += is_data(at);
    const weft_status status = weft_engine_input(p->engine, from, at, lengths[i], now_us);
    if (weft_sim_is_failure(status))
      return status;
  }
  return WEFT_OK;
}

// Whether the message has coded packets, which then belong to one segment; fills in `out`.
static bool data_of(const weft_sim_share *share, const weft_sim_message *message,
                    weft_sim_trace *out) {
  if ((message->kind & ~(uint32_t)WEFT_SIM_PASSED) == WEFT_SIM_TOKEN) {
    const weft_sim_token_head *head = weft_sim_content(message);
    out->packets = head->count;
    out->segment = head->segment;
    return true;
  }
  const weft_sim_parameters *o = &share->swarm->parameters;
  const uint32_t *lengths = weft_sim_content(message);
  uint32_t bytes = 0; // of the first that was not lost
  out->packets = 0;
  for (uint32_t i = *lengths; i > 0; i--) {
    bytes = lengths[i] ? lengths[i] : bytes;
    out->packets += lengths[i] > 0;
  }
  weft_packet first;
  if (weft_packet_parse_session((const uint8_t *)(lengths + 1 + *lengths), bytes, o->seed,
                                o->block_bytes, &first) != WEFT_OK)
    return false;
  out->segment = first.id.segment;
  return true;
}

weft_status weft_sim_arrive(weft_sim_share *share, weft_sim_peer *peer, weft_sim_message *message,
                            int64_t now_us) {
  const weft_sim_message m = *message;
  peer->hash = weft_sim_mix(peer->hash + (uint64_t)now_us * 3 + m.source);
  peer->hash ^= weft_sim_mix(m.sequence);
  share->totals.events++;
  uint64_t *received_bytes = &share->viewers[peer - share->peers].received_bytes;
  if ((m.kind & ~(uint32_t)WEFT_SIM_PASSED) <= WEFT_SIM_MEET) {
    if (!survives(share, peer, message, loses_at_end))
      return WEFT_OK;
    *received_bytes += message->word;
    return weft_sim_take_handshake(share, peer, message, now_us);
  }
  const size_t from = weft_sim_number_of(share, peer, m.source);
  if (from == SIZE_MAX) {
    weft_sim_lose(share, message, true);
    return WEFT_OK;
  }
  if (!survives(share, peer, message, loses_at_end))
    return WEFT_OK;
  *received_bytes += message->word;
  weft_sim_trace note = {
      .time_us = now_us, .peer = peer->id, .other = m.source, .kind = WEFT_SIM_TRACE_DATA};
  if (peer->sampled && m.source < share->swarm->parameters.sampled &&
      data_of(share, message, &note))
    weft_sim_note(share, &note);
  return (m.kind & ~(uint32_t)WEFT_SIM_PASSED) == WEFT_SIM_TOKEN
             ? take_tokens(share, peer, from, message, now_us)
             : take_datagrams(share, peer, from, message, now_us);
}
