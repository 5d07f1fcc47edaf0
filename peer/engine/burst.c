// SPDX-License-Identifier: Apache-2.0
// Coded bursts, at the engine's pace: what was requested first, then what the policy picks.
#include "peer/engine/internal.h"

// Books the uplink for these bytes; fractions of a microsecond are carried over. The engine is
// woken a millisecond or so late: that time is not lost, or a busy uplink would never be full.
void weft_pace_spend(weft_engine *e, size_t bytes, int64_t now_us) {
  enum { LATE_US = 4000 };
  const uint64_t rate = e->self.upload_bits_per_s;
  if (e->pace_us < now_us - LATE_US) {
    weft_shortage_idle(e, now_us - LATE_US - e->pace_us, now_us);
    e->pace_us = now_us - LATE_US;
    e->pace_rest = 0;
  }
  if (rate == 0)
    return;
  const uint64_t work =
      (uint64_t)(bytes + e->options->datagram_overhead) * 8u * 1000000u + e->pace_rest;
  e->pace_us += (int64_t)(work / rate);
  e->pace_rest = work % rate;
}

weft_policy_view weft_engine_view(const weft_engine *e, int64_t now_us) {
  const bool paced = weft_is_paced(e) && !e->self.source;
  const uint64_t first = weft_loads(e) || e->rereads ? 0 : e->tail;
  const uint64_t end = weft_loads(e) ? weft_window_total(e) : e->tail + e->window;
  return (weft_policy_view){.now_us = now_us,
                            .salt = e->salt,
                            .source = e->self.source,
                            .live = weft_is_live(e),
                            .bulk = e->options->mode == WEFT_MODE_BULK,
                            .first = first,
                            .missing = e->missing,
                            .count = (size_t)(end - first),
                            .window = e->window,
                            .horizon = e->rumour > e->horizon ? e->rumour : e->horizon,
                            .play = paced || weft_is_live(e) ? e->play : e->released,
                            .segment_us = paced ? weft_segment_us(e) : 0,
                            .lag_us = weft_is_live(e) ? weft_lag_us(e) : 0,
                            .forgone = e->shortage.forgone,
                            .segments = e->held,
                            .number = e->number,
                            .neighbours = e->used,
                            .neighbour = e->policy_view,
                            .batch_max = e->options->batch,
                            .engine = e,
                            .blocks_stride = e->blocks_stride,
                            .blocks = e->blocks};
}

static bool choice_valid(const weft_engine *e, const weft_policy_choice *choice) {
  return choice->neighbour < e->used && e->policy_view[choice->neighbour].open &&
         weft_window_has(e, choice->segment) && weft_window_slot(e, choice->segment)->segment &&
         choice->count >= 1 && choice->count <= e->options->batch &&
         (choice->mask || !e->codec->has); // blocks are sent by number
}

// Sets the numbers of the blocks to send.
static void name_blocks(const weft_engine *e, const weft_policy_choice *choice) {
  size_t i = 0;
  for (unsigned b = 0; b < 64 && i < choice->count; b++)
    if (choice->mask >> b & 1)
      e->scratch->packets[i++].index = choice->base + b;
}

static weft_status make_datagrams(weft_engine *e, const weft_policy_choice *choice,
                                  weft_burst *out) {
  weft_engine_scratch *scratch = e->scratch;
  const weft_batch batch = {.count = choice->count,
                            .packets = scratch->packets,
                            .coefficients = scratch->coefficients,
                            .coefficients_stride = e->options->blocks,
                            .payload_rows = scratch->payload_rows};
  if (e->codec->has)
    name_blocks(e, choice);
  WEFT_TRY(e->codec->make(e->codec->user, weft_window_slot(e, choice->segment)->segment, &batch));
  for (size_t i = 0; i < choice->count; i++) {
    weft_packet packet = scratch->packets[i];
    const size_t k = packet.id.block_bytes;
    const size_t bytes = weft_packet_session_bytes(&packet.id, packet.mode);
    uint8_t *start = scratch->payload_rows[i] - (bytes - k);
    size_t written;
    packet.payload = NULL; // it lies behind the header already
    WEFT_TRY(weft_packet_write_session(&packet, start, bytes, &written));
    scratch->datagrams[i] = (weft_datagram){.data = start, .bytes = bytes};
    e->statistics.sent_header_bytes += bytes - k;
    e->statistics.sent_payload_bytes += k;
    out->wire_bytes += bytes;
  }
  out->count = choice->count;
  return WEFT_OK;
}

static weft_status make_token(weft_engine *e, const weft_policy_choice *choice, weft_burst *out) {
  const weft_segment_id id = {.stream = e->options->stream,
                              .segment = choice->segment,
                              .blocks = weft_window_held(e, choice->segment)->blocks,
                              .block_bytes = e->options->block_bytes};
  WEFT_TRY(e->codec->make_token(e->codec->user, weft_window_slot(e, choice->segment)->segment,
                                choice->count, e->scratch->token, &out->token_bytes));
  const size_t each = e->codec->token_packet_bytes(e->codec->user, &id, e->self.source);
  const size_t header = each > id.block_bytes ? each - id.block_bytes : 0;
  e->statistics.sent_header_bytes += choice->count * header;
  e->statistics.sent_payload_bytes += choice->count * (each - header);
  out->token = e->scratch->token;
  out->token_count = choice->count;
  out->wire_bytes = choice->count * each;
  return WEFT_OK;
}

// Adds a PACE at the end of a burst: packets of one length come first, so that one send call can
// take them all.
static void add_pace(weft_engine *e, size_t index, size_t packets, int64_t now_us,
                     weft_burst *out) {
  weft_neighbour *n = &e->neighbours[index];
  weft_ledbat_sent(e, n, packets, now_us);
  if (!e->options->congestion)
    return;
  const size_t bytes = weft_pace_put(n, now_us, e->scratch->control);
  e->scratch->datagrams[out->count++] =
      (weft_datagram){.data = e->scratch->control, .bytes = bytes};
  out->wire_bytes += bytes;
  e->statistics.sent_control++;
  e->statistics.sent_control_bytes += bytes;
}

static weft_status make_burst(weft_engine *e, const weft_policy_choice *choice, int64_t now_us,
                              weft_burst *out) {
  *out = (weft_burst){.neighbour = choice->neighbour,
                      .datagrams = e->scratch->datagrams,
                      .segment = choice->segment};
  WEFT_TRY(e->codec->make_token ? make_token(e, choice, out) : make_datagrams(e, choice, out));
  e->statistics.sent_packets += choice->count;
  weft_window_held(e, choice->segment)->sent += (uint32_t)choice->count;
  add_pace(e, choice->neighbour, choice->count, now_us, out);
  weft_pace_spend(e, out->wire_bytes + choice->count * e->options->datagram_overhead, now_us);
  weft_neighbour *n = &e->neighbours[choice->neighbour];
  n->spoke_us = now_us;
  weft_neighbour_expect(e, choice->neighbour, e->pace_us);
  weft_share_give(e, n, choice->count);
  weft_flight_add(e, n, e->pace_us, choice->segment, choice->count);
  if (e->options->congestion)
    weft_neighbour_timer(e, choice->neighbour);
  return WEFT_OK;
}

// Moves `play` past what a live source made longer ago than the playback lag: no peer plays that
// any more.
static void pass_over_old(weft_engine *e, int64_t now_us) {
  const int64_t lag_us = weft_lag_us(e);
  e->play = e->play < e->tail ? e->tail : e->play;
  while (e->play < e->horizon && weft_window_slot(e, e->play)->made_us + lag_us <= now_us)
    e->play++;
}

// Whether less of the segment has been sent than others need to have it, small losses included;
// limits the choice to that.
static bool is_new(const weft_engine *e, weft_policy_choice *choice) {
  if (!weft_window_has(e, choice->segment))
    return false;
  const weft_policy_segment *held = weft_window_held(e, choice->segment);
  const size_t enough = held->blocks + 1u + held->blocks / 32u;
  if (held->sent >= enough)
    return false;
  choice->count = choice->count < enough - held->sent ? choice->count : enough - held->sent;
  return true;
}

static weft_status choose(weft_engine *e, int64_t now_us, weft_policy_choice *choice) {
  const weft_policy *policy = e->options->policy;
  const bool live_source = e->self.source && weft_is_live(e);
  if (live_source)
    pass_over_old(e, now_us);
  const bool push_first = live_source && policy->pick;
  if (!push_first && e->owed_count && weft_owed_next(e, true, choice, now_us))
    return WEFT_OK;
  if (e->due_count)
    return WEFT_PENDING; // a manifest goes before what is owed
  const weft_policy_view view = weft_engine_view(e, now_us);
  const bool picked = policy->pick && policy->pick(policy->user, &view, &e->self.rng, choice);
  // A live source gets each new segment into the swarm before it answers requests, or all peers
  // would request everything; but no more of it than that, or what was lost of an older one would
  // never come.
  weft_policy_choice owed;
  if (push_first && !(picked && is_new(e, choice)) && e->owed_count &&
      weft_owed_next(e, true, &owed, now_us)) {
    *choice = owed;
    return WEFT_OK;
  }
  if (e->due_count)
    return WEFT_PENDING;
  if (picked) {
    if (!choice_valid(e, choice))
      return WEFT_E_ARGUMENT;
    const size_t most = weft_ledbat_burst(e, &e->neighbours[choice->neighbour]);
    choice->count = choice->count < most ? choice->count : most;
    return WEFT_OK;
  }
  if (e->owed_count && weft_owed_next(e, false, choice, now_us))
    return WEFT_OK; // beyond any fair share, but nothing else wants the uplink
  e->idle = e->due_count == 0;
  return WEFT_PENDING;
}

weft_status weft_burst_next(weft_engine *e, int64_t now_us, weft_burst *out) {
  if (e->idle || e->pace_us > now_us)
    return WEFT_PENDING;
  weft_policy_choice choice = {0};
  WEFT_TRY(choose(e, now_us, &choice));
  if (weft_manifest_offer(e, choice.neighbour, choice.segment))
    return WEFT_PENDING; // the manifest goes first; then the choice is made again
  return make_burst(e, &choice, now_us, out);
}
