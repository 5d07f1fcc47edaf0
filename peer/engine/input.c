// SPDX-License-Identifier: Apache-2.0
// Handles incoming datagrams.
#include <string.h>

#include "peer/engine/internal.h"

static weft_status take_hello(weft_engine *e, size_t index, const weft_hello *hello,
                              int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  const weft_engine_options *own = e->options;
  if (hello->stream != own->stream || hello->blocks != own->blocks ||
      hello->block_bytes != own->block_bytes)
    return WEFT_E_FOREIGN;
  weft_neighbour_heard(n, &hello->stamps, now_us);
  if (hello->answer_wanted && weft_answer_allowed(e, index, now_us)) {
    weft_neighbour_due(e, index, WEFT_DUE_ANSWER);
    e->clocks[index].told = e->version - 1; // what it was told before may not have come
  }
  if (n->state == WEFT_NEIGHBOUR_GREETING) {
    weft_neighbour_open(e, index, now_us);
    weft_neighbour_range(e, index, 0, hello->window);
    for (uint64_t s = e->horizon > 2 ? e->horizon - 2 : 0; s < e->horizon; s++)
      weft_manifest_offer(e, index, s); // so that it learns the stream's time
  }
  return WEFT_OK;
}

// Asks a neighbour for the manifest of the newest segment that it claims to know of, which gives
// the stream's time. That may be a lie: one at a time, and of its own claim alone, so that it costs
// little and hides no true one.
static void ask_newest(weft_engine *e, size_t index, uint64_t horizon, int64_t now_us) {
  const weft_neighbour *n = &e->neighbours[index];
  if (!(weft_play_lacks_time(e) || (e->options->trust && weft_play_pressed(e, horizon))) ||
      horizon <= (e->started ? e->horizon : 0))
    return;
  for (size_t i = 0; i < n->ask_count && e->started; i++)
    if (n->asks[i].request.kind == WEFT_REQUEST_MANIFEST)
      return;
  weft_request_send(e, index,
                    &(weft_request){.segment = horizon - 1, .kind = WEFT_REQUEST_MANIFEST}, now_us);
}

// Takes what a map says about the end of the stream. With trust that is only a reason to ask for
// its manifest. A source knows better.
static weft_status take_end(weft_engine *e, size_t index, const weft_map *map, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  const bool learns = map->end_known && !e->self.source;
  if (learns && !e->options->trust) {
    const bool news = !e->end_known;
    WEFT_TRY(weft_window_learn_end(e, map->end_bytes));
    if (news && weft_window_total(e) > 0) // its last segment exists: a newcomer knows no other
      weft_play_learn(e, weft_window_total(e) - 1, now_us);
  }
  if (e->end_known && map->horizon > weft_window_total(e))
    return WEFT_E_FOREIGN;     // past the end
  if (learns && !e->end_known) // asked again if the answer was lost
    weft_request_send(
        e, index,
        &(weft_request){.segment = WEFT_MESSAGE_MAX_SEGMENT, .kind = WEFT_REQUEST_MANIFEST},
        now_us);
  ask_newest(e, index, map->horizon, now_us);
  n->knows_end = n->knows_end || map->end_known;
  return WEFT_OK;
}

static void take_entries(weft_engine *e, weft_neighbour *n, const weft_map *map, bool jumped) {
  for (size_t i = 0; i < map->count; i++) {
    const uint64_t s = map->first + i;
    weft_policy_want *want = weft_neighbour_want(e, n, s);
    if (!want)
      continue;
    // A peer that does not know the end takes a short segment for a full one.
    const bool shaped = n->knows_end || weft_window_blocks(e, s) == e->options->blocks;
    const uint16_t rank = shaped ? weft_map_rank(map, i) : 0;
    // Maps may overtake each other, but ranks never fall. After a jump, though, the neighbour may
    // have discarded what it had.
    if (jumped && (n->blocks || rank < want->rank))
      weft_neighbour_clear(e, n, s);
    want->vain = want->vain && rank <= want->rank;
    want->rank = (rank > want->rank ? rank : want->rank) & WEFT_WANT_RANK;
    want->helpers = weft_map_helpers(map, i) & WEFT_MAP_HELPERS_MAX;
    if (weft_map_spent(map, i) && weft_window_has(e, s))
      want->common = weft_window_held(e, s)->rank;
    if (n->blocks && map->bitmaps) {
      uint8_t *to = n->blocks + (weft_place(e, s)) * e->blocks_stride;
      for (size_t b = 0; b < e->blocks_stride; b++)
        to[b] |= map->entries[i * map->entry_bytes + b];
    }
    weft_want_refresh(e, want, s);
  }
}

static weft_status take_map(weft_engine *e, size_t index, const weft_map *map, int64_t now_us) {
  enum { UNSETTLED_MAPS = 15 };
  weft_neighbour *n = &e->neighbours[index];
  if (n->state == WEFT_NEIGHBOUR_GREETING)
    return WEFT_E_STATE; // its HELLO was lost: ours is repeated until answered
  // What is signed is no rumour: a source that knows of fewer segments, by more than late maps
  // explain, has lost its memory and counts from 0.
  n->anew =
      n->is_source && weft_is_live(e) && e->options->trust && map->horizon + e->window < e->horizon;
  WEFT_TRY(take_end(e, index, map, now_us));
  weft_window_hear_horizon(e, map->horizon, now_us);
  weft_neighbour_heard(n, &map->stamps, now_us);
  weft_flight_forget(e, n, now_us - n->round_trip_us);
  e->policy_view[index].suppliers = map->suppliers;
  n->full = map->full;
  e->policy_view[index].forgone = map->forgone;
  e->policy_view[index].narrow = map->narrow;
  e->policy_view[index].maps++;
  if (n->mapped && (int16_t)(uint16_t)(map->epoch - n->epoch) < 0)
    return WEFT_OK; // from before it jumped
  const bool first_word = !n->mapped, jumped = !first_word && map->epoch != n->epoch;
  const uint64_t end = map->first + map->count;
  if (jumped && n->accept_end > n->first)
    n->unsettled = UNSETTLED_MAPS;
  else if (n->unsettled)
    n->unsettled--;
  if (jumped && n->accept_end > end)
    n->accept_end = end; // nothing is known past it
  if (jumped || !n->mapped || map->first >= n->first)
    weft_neighbour_range(e, index, map->first, end);
  n->epoch = map->epoch;
  n->mapped = true;
  n->oldest = map->back == WEFT_MAP_BACK_ALL ? 0 : map->first - map->back;
  weft_neighbour_show(e, n);
  if (!e->started && !weft_is_live(e)) {
    e->started = true;
    weft_window_jump(e, n->oldest);
    weft_neighbour_due(e, index, WEFT_DUE_MAP);
  }
  take_entries(e, n, map, jumped);
  weft_wait_heard(e, index, first_word, now_us);
  e->idle = e->ask_idle = false;
  weft_neighbour_show(e, n);
  weft_loads_tell(e, index, now_us);
  weft_window_advance(e);
  return WEFT_OK;
}

// Takes a BRAKE. One that the map of a jump overtook may be about something discarded since; what
// is still true of it, the next map repeats.
static void take_brake(weft_engine *e, size_t index, uint64_t segment) {
  weft_neighbour *n = &e->neighbours[index];
  weft_policy_want *want = weft_neighbour_want(e, n, segment);
  if (!want || n->unsettled)
    return;
  want->rank = weft_window_blocks(e, segment) & WEFT_WANT_RANK;
  if (n->blocks)
    memset(n->blocks + (weft_place(e, segment)) * e->blocks_stride, 0xFF, e->blocks_stride);
  weft_want_refresh(e, want, segment);
  e->idle = e->ask_idle = false; // others may be served instead
  weft_window_advance(e);
}

// Takes a farewell. FINISHED counts only in bulk, and only from a neighbour that this peer, being
// complete, does not need: otherwise the neighbour would keep its place, be asked for nothing and
// never be checked for silence. A neighbour that only gave up on us can be dialled again.
static void take_bye(weft_engine *e, size_t index, weft_bye_reason reason) {
  weft_neighbour *n = &e->neighbours[index];
  const bool complete = e->end_known && e->missing >= weft_window_total(e);
  if (reason != WEFT_BYE_FINISHED || weft_is_paced(e) || !complete) {
    weft_neighbour_drop(e, index,
                        reason == WEFT_BYE_REPLACED ? WEFT_LOST_REPLACED : WEFT_LOST_LEFT);
    return;
  }
  n->state = WEFT_NEIGHBOUR_FINISHED;
  n->finished = true;
  weft_neighbour_show(e, n);
  weft_neighbour_timer(e, index);
  weft_window_advance(e);
}

static weft_status take_packet(weft_engine *e, size_t index, const weft_packet *packet,
                               const uint8_t *datagram, size_t bytes, int64_t now_us) {
  const weft_engine_arrival arrival = {.segment = packet->id.segment,
                                       .blocks = packet->id.blocks,
                                       .count = 1,
                                       .packet = packet,
                                       .datagram = datagram,
                                       .bytes = bytes};
  if (e->codec->make_token)
    return WEFT_E_FOREIGN; // this stream has no packets with payloads
  return weft_data_take(e, index, &arrival, now_us);
}

static weft_status take_message(weft_engine *e, size_t index, const weft_message *m,
                                const uint8_t *datagram, size_t bytes, int64_t now_us) {
  if (m->kind == WEFT_MESSAGE_DATA)
    return take_packet(e, index, &m->as.data, datagram, bytes, now_us);
  e->statistics.received_control++;
  e->statistics.received_control_bytes += bytes;
  switch (m->kind) {
  case WEFT_MESSAGE_HELLO:
    return take_hello(e, index, &m->as.hello, now_us);
  case WEFT_MESSAGE_MAP:
    return take_map(e, index, &m->as.map, now_us);
  case WEFT_MESSAGE_BRAKE:
    take_brake(e, index, m->as.brake);
    return WEFT_OK;
  case WEFT_MESSAGE_BYE:
    take_bye(e, index, m->as.bye);
    return WEFT_OK;
  case WEFT_MESSAGE_PACE:
    weft_pace_took(e, index, &m->as.pace, now_us);
    return WEFT_OK;
  case WEFT_MESSAGE_ACK:
    if (e->options->congestion)
      weft_ledbat_acked(e, index, &m->as.ack, now_us);
    return WEFT_OK;
  case WEFT_MESSAGE_MANIFEST:
    return weft_manifest_take(e, index, &m->as.manifest, now_us);
  case WEFT_MESSAGE_CHECKSUM:
    return weft_checksum_take(e, index, &m->as.checksum, now_us);
  case WEFT_MESSAGE_REVEALED:
    weft_revealed_take(e, index, &m->as.revealed, now_us);
    return WEFT_OK;
  case WEFT_MESSAGE_REQUEST:
    weft_requests_take(e, index, &m->as.requests, now_us);
    return WEFT_OK;
  case WEFT_MESSAGE_REFER:
    weft_refer_take(e, index, &m->as.refer, now_us);
    return WEFT_OK;
  case WEFT_MESSAGE_MEET:
    weft_meet_take(e, index, &m->as.meet, now_us);
    return WEFT_OK;
  case WEFT_MESSAGE_DATA:
    break;
  }
  return WEFT_E_MALFORMED;
}

static bool known(const weft_engine *e, size_t neighbour) {
  return e->neighbours[neighbour].state != WEFT_NEIGHBOUR_FREE &&
         e->neighbours[neighbour].state != WEFT_NEIGHBOUR_LOST;
}

static bool refused(weft_engine *e, weft_status status, size_t bytes) {
  if (status != WEFT_E_VERSION && status != WEFT_E_MALFORMED && status != WEFT_E_FOREIGN)
    return false;
  e->statistics.refused++;
  e->statistics.refused_bytes += bytes;
  return true;
}

weft_status weft_engine_input(weft_engine *e, size_t neighbour, const uint8_t *datagram,
                              size_t bytes, int64_t now_us) {
  if (neighbour >= e->options->neighbours_max || !datagram)
    return WEFT_E_ARGUMENT;
  if (!known(e, neighbour))
    return WEFT_E_STATE;
  weft_neighbour *from = &e->neighbours[neighbour];
  weft_message message;
  const weft_status parsed = weft_message_parse(
      datagram, bytes, e->options->stream, e->options->blocks, e->options->block_bytes, &message);
  const weft_status status =
      parsed == WEFT_OK ? take_message(e, neighbour, &message, datagram, bytes, now_us) : parsed;
  if (refused(e, status, bytes) || !known(e, neighbour))
    return status;
  weft_neighbour_spoke(e, neighbour, now_us);
  if (e->farewell && message.kind != WEFT_MESSAGE_BYE &&
      now_us - from->brake_us >= WEFT_TIMER(e, brake_us, 20000)) {
    from->brake_us = now_us;
    from->bye = e->leaving ? from->bye : WEFT_BYE_FINISHED; // it may have greeted since
    if (from->state == WEFT_NEIGHBOUR_OPEN)
      weft_neighbour_due(e, neighbour, WEFT_DUE_BYE);
  }
  if (message.kind != WEFT_MESSAGE_DATA || e->clocks[neighbour].timer_us <= now_us)
    weft_neighbour_timer(e, neighbour);
  return status;
}

weft_status weft_engine_input_token(weft_engine *e, size_t neighbour, uint64_t segment,
                                    size_t count, const void *token, size_t bytes, int64_t now_us) {
  if (neighbour >= e->options->neighbours_max || !e->codec->make_token || !token ||
      bytes > e->codec->token_bytes_max || count == 0 || count > UINT16_MAX)
    return WEFT_E_ARGUMENT;
  if (!known(e, neighbour))
    return WEFT_E_STATE;
  const weft_engine_arrival arrival = {.segment = segment,
                                       .blocks = weft_window_blocks(e, segment),
                                       .count = count,
                                       .token = token,
                                       .bytes = bytes};
  const weft_status status = weft_data_take(e, neighbour, &arrival, now_us);
  if (!refused(e, status, bytes) && known(e, neighbour))
    weft_neighbour_spoke(e, neighbour, now_us);
  return status;
}
