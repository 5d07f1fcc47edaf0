// SPDX-License-Identifier: Apache-2.0
// The streaming server in virtual time. The server object is the library's; what is modelled is
// when its one lane has coded what it started: products one after the other at a given rate. While
// that lane is busy no product is started, so requests gather as they do in a real event loop.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model.h"
#include "sim/services/agenda.h"
#include "sim/services/services.h"
#include "weft/server.h"
#include "weft/weft.h"

enum { STREAM = 1, TAKE = 4096, WAIT_MS = 10000 };
enum { NEW_SEGMENT, JOIN, ASK, REQUEST, CODE, DUE }; // kinds of entries

// What a client is at with one segment; it is at one at a time.
typedef struct client {
  weft_decoder *decoder;
  uint64_t segment;
  uint32_t asked, coming;    // packets of this segment, all; asked for and still to be coded
  uint32_t request;          // packets in the request under way
  int64_t asked_us, last_us; // the request; the newest arrival that it had
  int64_t started_us;        // of this segment
  weft_sim_link down;
  weft_sim_rng rng;
  bool bad, waiting; // waiting: for a segment that is not there yet
} client;

typedef struct serving {
  const weft_sim_service_options *options;
  const weft_sim_parameters *p;
  weft_sim_model model;
  weft_ctx *ctx;
  weft_server *server;
  weft_sim_agenda agenda;
  weft_sim_service *out;
  client *clients; // (peers + 1)
  uint8_t *data;   // (n * k) of a segment, and as much for what a client decoded
  size_t segment_bytes;
  uint64_t segments;                    // that the server has had
  int64_t segment_us, free_us, code_us; // free_us: the lane is; code_us: the soonest CODE entry
  _Atomic int64_t now_us;               // as the server's clock has it
  double busy_us, rate;
  weft_sim_link up;
  weft_server_packet *taken;
  double *answers, *codings; // milliseconds of each request
  size_t answer_count, coding_count, capacity;
  uint64_t products, packets, requests, again;
  crypto_generichash_state *hash; // libsodium wants it aligned to 64 bytes
} serving;

static void fill(const serving *s, uint64_t segment, uint8_t *out) {
  weft_sim_rng rng = {.state = weft_sim_draw(s->p->seed, 100, segment, 0)};
  for (size_t i = 0; i < s->segment_bytes; i += sizeof(uint64_t)) {
    const uint64_t word = weft_sim_rng_next(&rng);
    memcpy(out + i, &word, s->segment_bytes - i < sizeof word ? s->segment_bytes - i : sizeof word);
  }
}

static weft_segment_id id_of(const serving *s, uint64_t segment) {
  return (weft_segment_id){.stream = STREAM,
                           .segment = segment,
                           .blocks = s->p->blocks,
                           .block_bytes = s->p->block_bytes};
}

static weft_sim_second *second_of(const serving *s, int64_t at_us) {
  const size_t second = (size_t)(at_us / 1000000), last = s->out->result.second_count - 1;
  return &s->out->seconds[second < last ? second : last];
}

// --- The server

// For the server no time passes while it codes: what it starts must not depend on this machine.
static int64_t server_clock_us(void *user) {
  serving *s = user;
  return s->now_us;
}

static weft_status push(serving *s, int64_t now_us) {
  const weft_segment_id id = id_of(s, s->segments);
  fill(s, s->segments++, s->data);
  WEFT_TRY(weft_server_push(s->server, &id, s->data, s->segment_bytes, now_us,
                            now_us + s->p->lag_us + 4 * s->segment_us));
  for (uint32_t c = 1; c <= s->p->peers; c++)
    if (s->clients[c].waiting) {
      s->clients[c].waiting = false;
      WEFT_TRY(weft_sim_agenda_put(&s->agenda, now_us, ASK, c, 0));
    }
  const int64_t next_us = now_us + s->segment_us;
  return next_us <= s->p->duration_us ? weft_sim_agenda_put(&s->agenda, next_us, NEW_SEGMENT, 0, 0)
                                      : WEFT_OK;
}

static weft_status plan_coding(serving *s, int64_t now_us) {
  weft_server_stats stats;
  weft_server_get_stats(s->server, &stats);
  if (stats.pending_packets == 0)
    return WEFT_OK;
  int64_t at_us = weft_server_deadline(s->server);
  at_us = at_us > s->free_us ? at_us : s->free_us;
  at_us = at_us > now_us ? at_us : now_us;
  if (s->code_us <= at_us)
    return WEFT_OK;
  s->code_us = at_us;
  return weft_sim_agenda_put(&s->agenda, at_us, CODE, 0, 0);
}

static void note(double *values, size_t *count, size_t capacity, int64_t us) {
  if (*count < capacity)
    values[(*count)++] = (double)us / 1000;
}

// One packet leaves: lost, or in the client's decoder, with the time when it will be there.
static weft_status deliver(serving *s, const weft_server_packet *packet, int64_t ready_us) {
  const weft_sim_parameters *p = s->p;
  const uint32_t number = (uint32_t)packet->client;
  client *c = &s->clients[number];
  weft_sim_totals *t = &s->out->result.totals;
  const size_t wire = packet->bytes + p->overhead_bytes, header = packet->bytes - p->block_bytes;
  const weft_sim_class *class = &p->classes[weft_sim_class_of(&s->model, number)];
  const int64_t left_us = weft_sim_link_send(&s->up, p->source_bits_per_s, wire, ready_us);
  c->coming--;
  t->source.sent_packets++;
  t->source.sent_payload_bytes += p->block_bytes;
  t->source.sent_header_bytes += header;
  second_of(s, left_us)->source_bytes += wire;
  const bool lost = weft_sim_loses(p->loss, 1, NULL, &c->rng) |
                    weft_sim_loses(class->loss, class->burst, &c->bad, &c->rng);
  const int64_t at_us = weft_sim_link_send(&c->down, class->down_bits_per_s, wire,
                                           left_us + weft_sim_delay_us(&s->model, 0, number));
  c->last_us = at_us;
  if (lost) {
    t->lost_packets++;
    second_of(s, at_us)->lost_bytes += wire;
  } else if (packet->segment == c->segment && c->decoder) {
    const weft_status status =
        weft_decoder_add_datagram(c->decoder, packet->datagram, packet->bytes);
    if (status != WEFT_OK && status != WEFT_DEPENDENT)
      return status;
    t->packets++;
    t->peers.received_packets++;
    t->peers.received_innovative += status == WEFT_OK;
    t->peers.received_dependent += status == WEFT_DEPENDENT;
  }
  if (c->coming == 0) { // the last of what was asked for
    note(s->answers, &s->answer_count, s->capacity, at_us - c->asked_us);
    return weft_sim_agenda_put(&s->agenda, at_us, ASK, number, 0);
  }
  return WEFT_OK;
}

// Takes what is ready; a product's packets are there when it is done as a whole.
static weft_status hand_out(serving *s, size_t count) {
  for (size_t i = 0; i < count;) {
    size_t end = i + 1;
    while (end < count && s->taken[end].lease == s->taken[i].lease)
      end++;
    const double us = (double)((end - i) * s->p->block_bytes) * 1e6 / s->rate;
    s->busy_us += us;
    s->free_us += (int64_t)llround(us);
    s->products++;
    s->packets += end - i;
    for (; i < end; i++) {
      WEFT_TRY(s->taken[i].status);
      client *c = &s->clients[s->taken[i].client];
      if (c->coming == 1)
        note(s->codings, &s->coding_count, s->capacity, s->free_us - c->asked_us);
      WEFT_TRY(deliver(s, &s->taken[i], s->free_us));
    }
  }
  return WEFT_OK;
}

static weft_status drain(serving *s) {
  for (;;) {
    size_t count = 0;
    WEFT_TRY(weft_server_take(s->server, s->taken, TAKE, &count));
    if (count > 0) {
      const weft_status status = hand_out(s, count);
      weft_server_release(s->server, s->taken, count);
      WEFT_TRY(status);
      continue;
    }
    weft_server_stats stats;
    weft_server_get_stats(s->server, &stats);
    if (stats.ready_bytes == 0) // nothing was started that is not handed out
      return WEFT_OK;
    struct pollfd wait = {.fd = weft_server_fd(s->server), .events = POLLIN};
    if (poll(&wait, 1, WAIT_MS) == 0)
      return WEFT_E_STATE;
  }
}

static weft_status code(serving *s, int64_t now_us) {
  s->code_us = INT64_MAX;
  s->free_us = s->free_us > now_us ? s->free_us : now_us;
  if (s->free_us == now_us) {
    WEFT_TRY(weft_server_process(s->server, now_us));
    WEFT_TRY(drain(s));
  }
  return plan_coding(s, now_us);
}

// --- Clients

static weft_status compare(serving *s, client *c, weft_sim_viewer *v) {
  uint8_t *got = s->data + s->segment_bytes;
  WEFT_TRY(weft_decoder_read(c->decoder, 0, s->segment_bytes, got));
  fill(s, c->segment, s->data);
  v->delivered_bytes += s->segment_bytes;
  if (memcmp(got, s->data, s->segment_bytes) == 0)
    return WEFT_OK;
  for (size_t i = 0; i < s->segment_bytes; i++)
    v->wrong_bytes += got[i] != s->data[i];
  return WEFT_OK;
}

static weft_status begin(serving *s, uint32_t number, int64_t now_us) {
  client *c = &s->clients[number];
  const weft_segment_id id = id_of(s, c->segment);
  const weft_decoder_options how = {.id = id};
  c->asked = 0;
  c->started_us = now_us;
  // Due a lag after the segment was there, or the client.
  const int64_t there_us = (int64_t)c->segment * s->segment_us;
  const int64_t from_us =
      there_us > s->model.arrive_us[number] ? there_us : s->model.arrive_us[number];
  WEFT_TRY(
      weft_sim_agenda_put(&s->agenda, from_us + s->p->lag_us, DUE, number, (uint32_t)c->segment));
  return weft_decoder_new(s->ctx, &how, &c->decoder);
}

static weft_status finish(serving *s, uint32_t number, int64_t now_us) {
  client *c = &s->clients[number];
  weft_sim_viewer *v = &s->out->viewers[number - 1];
  WEFT_TRY(compare(s, c, v));
  uint8_t line[24];
  const uint64_t words[3] = {number, c->segment, (uint64_t)c->last_us};
  memcpy(line, words, sizeof line);
  crypto_generichash_update(s->hash, line, sizeof line);
  if (v->startup_us < 0) {
    v->startup_us = now_us - v->joined_us;
    v->lag_us = now_us - (int64_t)c->segment * s->segment_us;
  }
  v->innovative += s->p->blocks;
  weft_decoder_free(c->decoder);
  c->decoder = NULL;
  c->segment++;
  return WEFT_OK;
}

// Everything that was asked for has come, or was lost: on with this segment or the next.
static weft_status ask(serving *s, uint32_t number, int64_t now_us) {
  client *c = &s->clients[number];
  if (now_us >= s->model.leave_us[number]) {
    weft_decoder_free(c->decoder);
    c->decoder = NULL;
    s->out->viewers[number - 1].left = true;
    s->out->viewers[number - 1].left_us = s->model.leave_us[number];
    return WEFT_OK;
  }
  if (c->decoder && weft_decoder_complete(c->decoder))
    WEFT_TRY(finish(s, number, now_us));
  if (!c->decoder) {
    if (c->segment >= s->segments) {
      c->waiting = true;
      return WEFT_OK;
    }
    WEFT_TRY(begin(s, number, now_us));
  }
  const uint32_t lacks = s->p->blocks - (uint32_t)weft_decoder_rank(c->decoder);
  c->request = lacks < s->p->ask_packets ? lacks : s->p->ask_packets;
  c->request = c->request ? c->request : 1;
  // A client takes a segment in its time, not faster: later requests wait for their part of it.
  const int64_t part_us = (int64_t)((double)s->segment_us * 0.9 * c->asked / s->p->blocks);
  int64_t at_us = c->started_us + part_us;
  at_us = c->asked < s->p->blocks && at_us > now_us ? at_us : now_us;
  s->again += c->asked >= s->p->blocks;
  c->asked += c->request;
  c->asked_us = at_us;
  return weft_sim_agenda_put(&s->agenda, at_us + weft_sim_delay_us(&s->model, 0, number), REQUEST,
                             number, 0);
}

static weft_status take_request(serving *s, uint32_t number, int64_t now_us) {
  client *c = &s->clients[number];
  const weft_server_request want = {STREAM, c->segment, number, c->request};
  size_t accepted = 0;
  const weft_status status = weft_server_request_many(s->server, &want, 1, now_us, &accepted);
  s->requests++;
  if (status == WEFT_E_FOREIGN) { // expired: the newest one then
    weft_decoder_free(c->decoder);
    c->decoder = NULL;
    c->segment = s->segments - 1;
    return weft_sim_agenda_put(&s->agenda, now_us, ASK, number, 0);
  }
  WEFT_TRY(status);
  c->coming = c->request;
  return plan_coding(s, now_us);
}

static void due(serving *s, uint32_t number, uint64_t segment, int64_t now_us) {
  weft_sim_viewer *v = &s->out->viewers[number - 1];
  if (now_us >= s->model.leave_us[number])
    return;
  const bool there = s->clients[number].segment > segment;
  v->due++;
  v->in_time += there;
  v->skipped += !there;
  second_of(s, now_us)->due++;
  second_of(s, now_us)->in_time += there;
}

static weft_status join(serving *s, uint32_t number, int64_t now_us) {
  weft_sim_viewer *v = &s->out->viewers[number - 1];
  client *c = &s->clients[number];
  v->came = true;
  v->joined_us = now_us;
  c->rng.state = weft_sim_draw(s->p->seed, 200, number, 0);
  c->segment = s->segments ? s->segments - 1 : 0;
  return ask(s, number, now_us);
}

static weft_status happen(serving *s, const weft_sim_entry *e) {
  switch (e->kind) {
  case NEW_SEGMENT:
    return push(s, e->time_us);
  case JOIN:
    return join(s, e->who, e->time_us);
  case ASK:
    return ask(s, e->who, e->time_us);
  case REQUEST:
    return take_request(s, e->who, e->time_us);
  case CODE:
    return s->code_us == e->time_us ? code(s, e->time_us) : WEFT_OK;
  default:
    due(s, e->who, e->what, e->time_us);
    return WEFT_OK;
  }
}

// --- The run

// How fast this machine codes: the best of some products of 1,024 packets.
static weft_status measure(serving *s) {
  enum { PACKETS = 1024, ROUNDS = 5, OTHER = 2 };
  weft_segment_id id = id_of(s, 0);
  id.stream = OTHER;
  fill(s, 0, s->data);
  WEFT_TRY(weft_server_push(s->server, &id, s->data, s->segment_bytes, 0, s->p->gather_us + 1));
  for (int round = 0; round < ROUNDS; round++) {
    const weft_server_request want = {OTHER, 0, 0, PACKETS};
    size_t accepted, seen = 0, count;
    const int64_t start_us = s->options->clock_us(s->options->user);
    WEFT_TRY(weft_server_request_many(s->server, &want, 1, 0, &accepted));
    WEFT_TRY(weft_server_process(s->server, s->p->gather_us));
    while (seen < PACKETS) {
      struct pollfd wait = {.fd = weft_server_fd(s->server), .events = POLLIN};
      if (poll(&wait, 1, WAIT_MS) == 0)
        return WEFT_E_STATE;
      WEFT_TRY(weft_server_take(s->server, s->taken, TAKE, &count));
      weft_server_release(s->server, s->taken, count);
      seen += count;
    }
    const int64_t us = s->options->clock_us(s->options->user) - start_us;
    const double rate = (double)PACKETS * s->p->block_bytes * 1e6 / (double)(us > 0 ? us : 1);
    s->rate = rate > s->rate ? rate : s->rate;
  }
  return WEFT_OK;
}

static weft_status start(serving *s) {
  const weft_sim_parameters *p = s->p;
  weft_sim_result *r = &s->out->result;
  WEFT_TRY(weft_sim_model_init(&s->model, p));
  s->segment_bytes = (size_t)p->blocks * p->block_bytes;
  s->segment_us = (int64_t)((double)s->segment_bytes * 8e6 / (double)p->rate_bits_per_s);
  s->capacity = (size_t)p->peers * (size_t)(p->duration_us / s->segment_us + 2) *
                (p->blocks / p->ask_packets + 4);
  r->second_count = (size_t)(p->duration_us / 1000000) + 2;
  r->segment_us = s->segment_us;
  s->clients = calloc((size_t)p->peers + 1, sizeof *s->clients);
  s->data = malloc(2 * s->segment_bytes);
  s->taken = calloc(TAKE, sizeof *s->taken);
  s->answers = calloc(2 * s->capacity, sizeof *s->answers);
  s->out->viewers = calloc(p->peers, sizeof *s->out->viewers);
  s->out->seconds = calloc(r->second_count, sizeof *s->out->seconds);
  if (!s->clients || !s->data || !s->taken || !s->answers || !s->out->viewers || !s->out->seconds)
    return WEFT_E_NOMEM;
  s->codings = s->answers + s->capacity;
  const weft_ctx_options how = {.backend = s->options->backend};
  WEFT_TRY(weft_ctx_new(&s->ctx, &how));
  snprintf(s->out->backend, sizeof s->out->backend, "%s", weft_ctx_backend(s->ctx));
  const weft_server_options server = {.contexts = &s->ctx,
                                      .context_count = 1,
                                      .now_us = server_clock_us,
                                      .user = s,
                                      .gather_us = p->gather_us,
                                      .ready_bytes = (size_t)64 << 20,
                                      .repeatable = true};
  WEFT_TRY(weft_server_new(&server, &s->server));
  s->rate = (double)p->coding_bytes_per_s;
  if (p->coding_bytes_per_s == 0)
    WEFT_TRY(measure(s));
  s->code_us = INT64_MAX;
  s->hash = aligned_alloc(64, (sizeof *s->hash + 63) / 64 * 64);
  if (!s->hash)
    return WEFT_E_NOMEM;
  crypto_generichash_init(s->hash, NULL, 0, WEFT_SIM_HASH_BYTES);
  // The server begins with one whole segment.
  WEFT_TRY(weft_sim_agenda_put(&s->agenda, 0, NEW_SEGMENT, 0, 0));
  for (uint32_t c = 1; c <= p->peers; c++) {
    s->out->viewers[c - 1] =
        (weft_sim_viewer){.peer = c,
                          .class_index = (uint8_t)weft_sim_class_of(&s->model, c),
                          .joined_us = WEFT_SIM_NEVER,
                          .left_us = WEFT_SIM_NEVER,
                          .done_us = WEFT_SIM_NEVER,
                          .startup_us = -1,
                          .lag_us = -1};
    if (s->model.arrive_us[c] < p->duration_us)
      WEFT_TRY(weft_sim_agenda_put(&s->agenda, s->model.arrive_us[c], JOIN, c, 0));
  }
  return WEFT_OK;
}

static weft_status run(serving *s) {
  weft_sim_entry e;
  weft_sim_result *r = &s->out->result;
  uint64_t seen = 0;
  while (weft_sim_agenda_take(&s->agenda, &e) && e.time_us <= s->p->duration_us) {
    s->now_us = e.time_us;
    WEFT_TRY(happen(s, &e));
    r->end_us = e.time_us;
    r->totals.events++;
    if (++seen % 256 == 0 && s->options->keep_on &&
        !s->options->keep_on(s->options->user, e.time_us))
      return WEFT_PENDING;
  }
  r->end_us = s->p->duration_us;
  return WEFT_OK;
}

static void sum_up(serving *s) {
  static const char *const answers[] = {"answer_p50_ms", "answer_p95_ms", "answer_p99_ms"};
  static const char *const codings[] = {"coded_p50_ms", "coded_p95_ms", "coded_p99_ms"};
  weft_sim_result *r = &s->out->result;
  weft_sim_metrics *m = &s->out->own;
  weft_sim_totals *t = &r->totals;
  for (uint32_t c = 0; c < s->p->peers; c++) {
    const weft_sim_viewer *v = &s->out->viewers[c];
    t->viewers += v->came;
    t->peers.due += v->due;
    t->peers.in_time += v->in_time;
    t->peers.skipped += v->skipped;
    t->delivered_bytes += v->delivered_bytes;
    t->wrong_bytes += v->wrong_bytes;
    for (size_t i = 0; v->came && i < r->second_count; i++)
      s->out->seconds[i].online +=
          (int64_t)i * 1000000 >= v->joined_us && (int64_t)i * 1000000 < v->left_us;
  }
  for (size_t i = 0; i < r->second_count; i++)
    t->online_most =
        s->out->seconds[i].online > t->online_most ? s->out->seconds[i].online : t->online_most;
  r->viewers = s->out->viewers;
  r->viewer_count = s->p->peers;
  r->seconds = s->out->seconds;
  r->segments = s->segments;
  r->stream_bytes = s->segments * s->segment_bytes;
  crypto_generichash_final(s->hash, r->hash, sizeof r->hash);
  weft_sim_add_metric(m, "coding_bytes_per_s", s->rate);
  weft_sim_add_metric(m, "coding_load", s->busy_us / (double)s->p->duration_us);
  weft_sim_add_metric(m, "uplink_load",
                      s->p->source_bits_per_s
                          ? (double)(t->source.sent_payload_bytes + t->source.sent_header_bytes +
                                     s->p->overhead_bytes * t->source.sent_packets) *
                                8e6 / (double)s->p->source_bits_per_s / (double)s->p->duration_us
                          : 0);
  weft_sim_add_metric(m, "requests", (double)s->requests);
  weft_sim_add_metric(m, "requests_again", (double)s->again);
  weft_sim_add_metric(m, "packets_per_product",
                      s->products ? (double)s->packets / (double)s->products : (double)NAN);
  weft_sim_add_quantiles(m, s->codings, s->coding_count, codings);
  weft_sim_add_quantiles(m, s->answers, s->answer_count, answers);
}

weft_status weft_sim_serve(const weft_sim_service_options *options, weft_sim_service *out) {
  *out = (weft_sim_service){0};
  serving s = {.options = options, .p = options->parameters, .out = out};
  weft_status status = start(&s);
  if (status == WEFT_OK)
    status = run(&s);
  if (status == WEFT_OK)
    sum_up(&s);
  for (uint32_t c = 0; s.clients && c <= s.p->peers; c++)
    weft_decoder_free(s.clients[c].decoder);
  weft_server_free(s.server);
  weft_ctx_free(s.ctx);
  weft_sim_model_clear(&s.model);
  weft_sim_agenda_clear(&s.agenda);
  free(s.clients);
  free(s.data);
  free(s.taken);
  free(s.answers);
  free(s.hash);
  return status;
}

void weft_sim_service_clear(weft_sim_service *service) {
  free(service->viewers);
  free(service->seconds);
  free(service->hours);
  *service = (weft_sim_service){0};
}
