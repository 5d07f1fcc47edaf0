// SPDX-License-Identifier: Apache-2.0
// What the engine sends: control messages that are due, then coded bursts at its pace. Nothing is
// queued: each burst is made when it is asked for.
#include "peer/engine/internal.h"

// --- Control messages

static size_t make_hello(weft_engine *e, weft_neighbour *n, int64_t now_us) {
  const weft_hello hello = {.answer_wanted = n->hello_due,
                            .stream = e->options.stream,
                            .blocks = (uint16_t)e->options.blocks,
                            .window = (uint16_t)e->options.window,
                            .block_bytes = e->options.block_bytes,
                            .stamps = weft_neighbour_stamps(n, now_us)};
  if (n->hello_due)
    n->hello_us = now_us;
  n->hello_due = n->answer_due = false;
  return weft_hello_write(&hello, e->control);
}

static size_t make_map(weft_engine *e, weft_neighbour *n, int64_t now_us) {
  uint64_t end = e->tail + e->options.window;
  if (e->end_known && end > weft_window_total(e))
    end = weft_window_total(e);
  const uint16_t count = e->missing < end ? (uint16_t)(end - e->missing) : 0;
  for (uint16_t i = 0; i < count; i++)
    e->ranks[i] = e->held[(e->missing + i) % e->options.window].rank;
  const weft_map map = {.end_known = e->end_known,
                        .first = e->missing,
                        .horizon = e->horizon,
                        .end_bytes = e->end_bytes,
                        .stamps = weft_neighbour_stamps(n, now_us),
                        .degree = (uint16_t)e->degree,
                        .count = count};
  n->map_due = false;
  n->map_us = now_us;
  n->told = e->version;
  return weft_map_write(&map, e->ranks, e->control);
}

static size_t make_brake(weft_engine *e, weft_neighbour *n) {
  for (uint64_t s = e->tail;; s++) { // brakes_due says that there is one
    bool *due = &n->brake_due[s % e->options.window];
    if (!*due)
      continue;
    *due = false;
    n->brakes_due--;
    return weft_brake_write(s, e->control);
  }
}

// The control message that is due to the neighbour; 0 if none.
static size_t make_control(weft_engine *e, weft_neighbour *n, int64_t now_us) {
  if (n->state == WEFT_NEIGHBOUR_GREETING || n->state == WEFT_NEIGHBOUR_OPEN) {
    if (n->hello_due || n->answer_due)
      return make_hello(e, n, now_us);
  }
  if (n->state != WEFT_NEIGHBOUR_OPEN)
    return 0;
  if (n->bye_due) {
    n->bye_due = false;
    return weft_bye_write(WEFT_BYE_FINISHED, e->control);
  }
  if (n->brakes_due)
    return make_brake(e, n);
  return n->map_due ? make_map(e, n, now_us) : 0;
}

// --- Pace

// The uplink is busy with these bytes; parts of a microsecond are carried on.
static void pace(weft_engine *e, size_t bytes, int64_t now_us) {
  const uint64_t rate = e->self.upload_bits_per_s;
  if (e->pace_us < now_us) {
    e->pace_us = now_us;
    e->pace_rest = 0;
  }
  if (rate == 0)
    return;
  const uint64_t work = (uint64_t)bytes * 8u * 1000000u + e->pace_rest;
  e->pace_us += (int64_t)(work / rate);
  e->pace_rest = work % rate;
}

// --- Coded bursts

static bool choice_valid(const weft_engine *e, const weft_policy_choice *choice) {
  return choice->neighbour < e->options.neighbours_max && e->policy_view[choice->neighbour].open &&
         weft_window_has(e, choice->segment) && weft_window_slot(e, choice->segment)->segment &&
         choice->count >= 1 && choice->count <= e->options.batch;
}

static weft_status make_burst(weft_engine *e, const weft_policy_choice *choice, int64_t now_us,
                              weft_burst *out) {
  const weft_batch batch = {.count = choice->count,
                            .packets = e->packets,
                            .coefficients = e->coefficients,
                            .coefficients_stride = e->options.blocks,
                            .payload_rows = e->payload_rows};
  WEFT_TRY(e->codec.make(e->codec.user, weft_window_slot(e, choice->segment)->segment, &batch));
  size_t total = 0;
  for (size_t i = 0; i < choice->count; i++) {
    weft_packet packet = e->packets[i];
    const size_t k = packet.id.block_bytes;
    const size_t bytes = weft_packet_session_bytes(&packet.id, packet.mode);
    uint8_t *start = e->payload_rows[i] - (bytes - k);
    size_t written;
    packet.payload = NULL; // it lies behind the header already
    WEFT_TRY(weft_packet_write_session(&packet, start, bytes, &written));
    e->datagrams[i] = (weft_datagram){.data = start, .bytes = bytes};
    e->statistics.sent_header_bytes += bytes - k;
    e->statistics.sent_payload_bytes += k;
    total += bytes;
  }
  e->statistics.sent_packets += choice->count;
  pace(e, total, now_us);
  weft_flight_add(e, &e->neighbours[choice->neighbour],
                  &(weft_flight){.at_us = e->pace_us,
                                 .segment = choice->segment,
                                 .count = (uint16_t)choice->count});
  *out = (weft_burst){
      .neighbour = choice->neighbour, .count = choice->count, .datagrams = e->datagrams};
  return WEFT_OK;
}

static weft_status next_burst(weft_engine *e, int64_t now_us, weft_burst *out) {
  if (e->idle || e->pace_us > now_us)
    return WEFT_PENDING;
  const weft_policy_view view = {.now_us = now_us,
                                 .first = e->tail,
                                 .count = e->options.window,
                                 .window = e->options.window,
                                 .segments = e->held,
                                 .neighbours = e->options.neighbours_max,
                                 .neighbour = e->policy_view,
                                 .batch_max = e->options.batch};
  weft_policy_choice choice;
  if (!e->policy.pick(e->policy.user, &view, &e->rng, &choice)) {
    e->idle = true;
    return WEFT_PENDING;
  }
  return choice_valid(e, &choice) ? make_burst(e, &choice, now_us, out) : WEFT_E_ARGUMENT;
}

weft_status weft_engine_output(weft_engine *e, int64_t now_us, weft_burst *out) {
  for (size_t i = 0; i < e->options.neighbours_max; i++) {
    const size_t bytes = make_control(e, &e->neighbours[i], now_us);
    if (bytes == 0)
      continue;
    e->statistics.sent_control++;
    e->statistics.sent_control_bytes += bytes;
    pace(e, bytes, now_us);
    e->datagrams[0] = (weft_datagram){.data = e->control, .bytes = bytes};
    *out = (weft_burst){.neighbour = i, .count = 1, .datagrams = e->datagrams};
    return WEFT_OK;
  }
  return e->farewell ? WEFT_PENDING : next_burst(e, now_us, out);
}
