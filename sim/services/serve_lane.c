// SPDX-License-Identifier: Apache-2.0
// The server's one lane: which products it starts and when, when they are done, and how their
// packets reach the clients. While the lane is busy no product is started, so requests gather as in
// a real event loop.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <poll.h>
#include <string.h>

#include "sim/core/reserve.h"
#include "sim/services/serving.h"

void weft_sim_fill_segment(const weft_sim_serving *s, uint64_t segment, uint8_t *out) {
  weft_sim_rng rng = {.state = weft_sim_draw(s->p->seed, 100, segment, 0)};
  for (size_t i = 0; i < s->segment_bytes; i += sizeof(uint64_t)) {
    const uint64_t word = weft_sim_rng_next(&rng);
    memcpy(out + i, &word, s->segment_bytes - i < sizeof word ? s->segment_bytes - i : sizeof word);
  }
}

weft_status weft_sim_push_segment(weft_sim_serving *s, int64_t now_us) {
  const weft_segment_id id = weft_sim_segment_id(s, s->segments);
  weft_sim_fill_segment(s, s->segments++, s->data);
  WEFT_TRY(weft_server_push(s->server, &id, s->data, s->segment_bytes, now_us,
                            now_us + s->p->lag_us + 4 * s->segment_us));
  for (uint32_t c = 1; c <= s->p->peers; c++) {
    if (s->out->viewers[c - 1].came && now_us < s->model.leave_us[c])
      WEFT_TRY(weft_sim_agenda_put(&s->agenda, now_us + s->p->lag_us, WEFT_SIM_DUE, c,
                                   (uint32_t)(s->segments - 1)));
    if (s->clients[c].waiting) {
      s->clients[c].waiting = false;
      WEFT_TRY(weft_sim_agenda_put(&s->agenda, now_us, WEFT_SIM_ASK, c, 0));
    }
  }
  const int64_t next_us = now_us + s->segment_us;
  return next_us <= s->p->duration_us
             ? weft_sim_agenda_put(&s->agenda, next_us, WEFT_SIM_NEW_SEGMENT, 0, 0)
             : WEFT_OK;
}

static size_t pending_packets(weft_sim_serving *s) {
  weft_server_stats stats;
  weft_server_get_stats(s->server, &stats);
  const size_t held = stats.segment_bytes + stats.ready_bytes;
  s->server_bytes_most = held > s->server_bytes_most ? held : s->server_bytes_most;
  return stats.pending_packets;
}

weft_status weft_sim_plan_coding(weft_sim_serving *s, int64_t now_us) {
  if (pending_packets(s) == 0)
    return WEFT_OK;
  int64_t at_us = weft_server_deadline(s->server);
  at_us = at_us > s->free_us ? at_us : s->free_us;
  at_us = at_us > now_us ? at_us : now_us;
  if (s->code_us <= at_us)
    return WEFT_OK;
  s->code_us = at_us;
  return weft_sim_agenda_put(&s->agenda, at_us, WEFT_SIM_CODE, 0, 0);
}

// Records how long a request took until at_us. Nothing counts after the run's end.
static weft_status note(const weft_sim_serving *s, weft_sim_times *times, int64_t asked_us,
                        int64_t at_us) {
  if (at_us > s->p->duration_us)
    return WEFT_OK;
  WEFT_TRY(weft_sim_reserve(&times->ms, &times->room, times->count, 1, sizeof *times->ms));
  times->ms[times->count++] = (double)(at_us - asked_us) / 1000;
  return WEFT_OK;
}

// Handles a packet at the client, or its loss. Nothing counts after the run's end.
static weft_status arrive(weft_sim_serving *s, const weft_server_packet *packet, bool lost,
                          int64_t at_us) {
  const uint32_t number = (uint32_t)packet->client;
  const weft_sim_client *c = &s->clients[number];
  weft_sim_totals *t = &s->out->result.totals;
  const size_t wire = packet->bytes + s->p->overhead_bytes;
  if (at_us > s->p->duration_us)
    return WEFT_OK;
  if (lost) {
    t->lost_packets++;
    weft_sim_second_of(s, at_us)->lost_bytes += wire;
    return WEFT_OK;
  }
  if (packet->segment != c->segment || !c->decoder)
    return WEFT_OK;
  const weft_status status = weft_decoder_add_datagram(c->decoder, packet->datagram, packet->bytes);
  if (status != WEFT_OK && status != WEFT_DEPENDENT)
    return status;
  s->out->viewers[number - 1].received_bytes += wire;
  t->packets++;
  t->peers.received_packets++;
  t->peers.received_innovative += status == WEFT_OK;
  t->peers.received_dependent += status == WEFT_DEPENDENT;
  return WEFT_OK;
}

// Sends through the server's uplink; packets that still wait there when the run ends are not
// counted. < 0: its queue was full.
static int64_t leave(weft_sim_serving *s, const weft_server_packet *packet, size_t wire,
                     int64_t ready_us) {
  const weft_sim_parameters *p = s->p;
  weft_engine_statistics *source = &s->out->result.totals.source;
  const int64_t left_us =
      weft_sim_link_queue(&s->up, p->source_bits_per_s, p->queue_us, wire, ready_us);
  if (left_us >= 0 && left_us <= p->duration_us) {
    source->sent_packets++;
    source->sent_payload_bytes += p->block_bytes;
    source->sent_header_bytes += packet->bytes - p->block_bytes;
    weft_sim_second_of(s, left_us)->source_bytes += wire;
  }
  return left_us;
}

// Sends one packet: it is lost, or goes into the client's decoder with its time of arrival.
static weft_status deliver(weft_sim_serving *s, const weft_server_packet *packet,
                           int64_t ready_us) {
  const weft_sim_parameters *p = s->p;
  const uint32_t number = (uint32_t)packet->client;
  weft_sim_client *c = &s->clients[number];
  const size_t wire = packet->bytes + p->overhead_bytes;
  const weft_sim_class *class = &p->classes[weft_sim_class_of(&s->model, number)];
  const int64_t left_us = leave(s, packet, wire, ready_us);
  const bool on_path = weft_sim_loses(p->loss, 1, NULL, &c->rng); // always both draws
  const bool at_end = weft_sim_loses(class->loss, class->burst, &c->bad, &c->rng);
  const bool left = left_us >= 0;
  const int64_t there_us = (left ? left_us : ready_us) + weft_sim_delay_us(&s->model, 0, number);
  int64_t at_us = -1;
  if (left && !on_path) // what the path loses does not use up the downlink
    at_us = weft_sim_link_queue(&c->down, class->down_bits_per_s, p->queue_us, wire, there_us);
  const bool lost = on_path || at_end || at_us < 0;
  at_us = at_us < 0 ? there_us : at_us;
  c->coming--;
  c->came = c->came || !lost;
  c->last_us = c->last_us > at_us ? c->last_us : at_us;
  if (left)
    WEFT_TRY(arrive(s, packet, lost, at_us));
  if (c->coming == 0) { // the last packet of the request
    if (c->came)
      WEFT_TRY(note(s, &s->out->answers, c->asked_us, c->last_us));
    return weft_sim_agenda_put(&s->agenda, c->last_us, WEFT_SIM_ASK, number, 0);
  }
  return WEFT_OK;
}

// Counts the lane as busy for `us` from free_us on, split by seconds and cut at the run's end.
static void count_coding(weft_sim_serving *s, double us) {
  const double left_us = (double)(s->p->duration_us - s->free_us);
  us = fmin(us, fmax(left_us, 0));
  s->busy_us += us;
  for (int64_t at_us = s->free_us; us > 0;) {
    const int64_t next_us = (at_us / 1000000 + 1) * 1000000;
    const double here_us = us < (double)(next_us - at_us) ? us : (double)(next_us - at_us);
    weft_sim_served_of(s, at_us)->coding_us += here_us;
    us -= here_us;
    at_us = next_us;
  }
}

// Hands out packets; those of a product become available together, when it is done.
static weft_status hand_out(weft_sim_serving *s, size_t count) {
  for (size_t i = 0; i < count;) {
    size_t end = i + 1;
    while (end < count && s->taken[end].lease == s->taken[i].lease)
      end++;
    const double us = (double)((end - i) * s->p->block_bytes) * 1e6 / s->rate;
    count_coding(s, us);
    s->free_us += (int64_t)llround(us);
    s->products++;
    s->packets += end - i;
    weft_sim_served *served = weft_sim_served_of(s, s->free_us);
    served->products++;
    served->packets += end - i;
    for (; i < end; i++) {
      WEFT_TRY(s->taken[i].status);
      weft_sim_client *c = &s->clients[s->taken[i].client];
      if (c->coming == 1)
        WEFT_TRY(note(s, &s->out->codings, c->asked_us, s->free_us));
      WEFT_TRY(deliver(s, &s->taken[i], s->free_us));
    }
  }
  return WEFT_OK;
}

// Hands out the `left` packets of everything that was started. Keeps an incomplete product until
// the rest comes, because what is ready at a given time depends on how fast this machine codes.
static weft_status drain(weft_sim_serving *s, size_t left) {
  for (size_t held = 0; left > 0;) {
    size_t count = 0;
    WEFT_TRY(weft_server_take(s->server, s->taken + held, WEFT_SIM_TAKE, &count));
    if (count == 0) {
      struct pollfd wait = {.fd = weft_server_fd(s->server), .events = POLLIN};
      if (poll(&wait, 1, WEFT_SIM_WAIT_MS) == 0)
        return WEFT_E_STATE;
      continue;
    }
    held += count;
    left -= count;
    size_t whole = held;
    while (left > 0 && whole > 0 && s->taken[whole - 1].lease == s->taken[held - 1].lease)
      whole--;
    const weft_status status = hand_out(s, whole);
    weft_server_release(s->server, s->taken, whole);
    WEFT_TRY(status);
    held -= whole;
    memmove(s->taken, s->taken + whole, held * sizeof *s->taken);
  }
  return WEFT_OK;
}

weft_status weft_sim_code(weft_sim_serving *s, int64_t now_us) {
  s->code_us = INT64_MAX;
  s->free_us = s->free_us > now_us ? s->free_us : now_us;
  if (s->free_us == now_us) {
    const size_t before = pending_packets(s);
    WEFT_TRY(weft_server_process(s->server, now_us));
    WEFT_TRY(drain(s, before - pending_packets(s)));
  }
  return weft_sim_plan_coding(s, now_us);
}
