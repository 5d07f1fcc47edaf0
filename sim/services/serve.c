// SPDX-License-Identifier: Apache-2.0
// The streaming server in virtual time, from setup to figures. The server is the library's;
// modelled is when its one lane finishes coding: products one after another, at a given rate.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/services/serving.h"

// No time passes for the server while it codes: what it starts must not depend on this machine.
static int64_t server_clock_us(void *user) {
  weft_sim_serving *s = user;
  return s->now_us;
}

static weft_status happen(weft_sim_serving *s, const weft_sim_entry *e) {
  switch (e->kind) {
  case WEFT_SIM_NEW_SEGMENT:
    return weft_sim_push_segment(s, e->time_us);
  case WEFT_SIM_CLIENT_JOIN:
    return weft_sim_client_join(s, e->who, e->time_us);
  case WEFT_SIM_ASK:
    return weft_sim_client_ask(s, e->who, e->time_us);
  case WEFT_SIM_REQUEST:
    return weft_sim_client_request(s, e->who, e->time_us);
  case WEFT_SIM_CODE:
    return s->code_us == e->time_us ? weft_sim_code(s, e->time_us) : WEFT_OK;
  default:
    weft_sim_client_due(s, e->who, e->what, e->time_us);
    return WEFT_OK;
  }
}

// --- The run

// Measures how fast this machine codes: the best of several products of 1,024 packets.
static weft_status measure(weft_sim_serving *s) {
  enum { PACKETS = 1024, ROUNDS = 5, OTHER = 2 };
  weft_segment_id id = weft_sim_segment_id(s, 0);
  id.stream = OTHER;
  weft_sim_fill_segment(s, 0, s->data);
  WEFT_TRY(weft_server_push(s->server, &id, s->data, s->segment_bytes, 0, s->p->gather_us + 1));
  for (int round = 0; round < ROUNDS; round++) {
    const weft_server_request want = {OTHER, 0, 0, PACKETS};
    size_t accepted, seen = 0, count;
    const int64_t start_us = s->options->clock_us(s->options->user);
    WEFT_TRY(weft_server_request_many(s->server, &want, 1, 0, &accepted));
    WEFT_TRY(weft_server_process(s->server, s->p->gather_us));
    while (seen < PACKETS) {
      struct pollfd wait = {.fd = weft_server_fd(s->server), .events = POLLIN};
      if (poll(&wait, 1, WEFT_SIM_WAIT_MS) == 0)
        return WEFT_E_STATE;
      WEFT_TRY(weft_server_take(s->server, s->taken, WEFT_SIM_TAKE, &count));
      weft_server_release(s->server, s->taken, count);
      seen += count;
    }
    const int64_t us = s->options->clock_us(s->options->user) - start_us;
    const double rate = (double)PACKETS * s->p->block_bytes * 1e6 / (double)(us > 0 ? us : 1);
    s->rate = rate > s->rate ? rate : s->rate;
  }
  return WEFT_OK;
}

static weft_status start(weft_sim_serving *s) {
  const weft_sim_parameters *p = s->p;
  weft_sim_result *r = &s->out->result;
  const weft_status status = weft_sim_model_init(&s->model, p);
  if (s->options->trace_line)
    *s->options->trace_line = s->model.trace_line;
  WEFT_TRY(status);
  s->segment_bytes = (size_t)p->blocks * p->block_bytes;
  s->segment_us = (int64_t)((double)s->segment_bytes * 8e6 / (double)p->rate_bits_per_s);
  r->second_count = (size_t)(p->duration_us / 1000000) + 2;
  r->segment_us = s->segment_us;
  s->clients = calloc((size_t)p->peers + 1, sizeof *s->clients);
  s->data = malloc(2 * s->segment_bytes);
  s->taken = calloc(2 * WEFT_SIM_TAKE, sizeof *s->taken); // an incomplete product, and more
  s->out->served = calloc(r->second_count, sizeof *s->out->served);
  s->out->viewers = calloc(p->peers, sizeof *s->out->viewers);
  s->out->seconds = calloc(r->second_count, sizeof *s->out->seconds);
  if (!s->clients || !s->data || !s->taken || !s->out->served || !s->out->viewers ||
      !s->out->seconds)
    return WEFT_E_NOMEM;
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
  // The server begins with one complete segment.
  WEFT_TRY(weft_sim_agenda_put(&s->agenda, 0, WEFT_SIM_NEW_SEGMENT, 0, 0));
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
      WEFT_TRY(weft_sim_agenda_put(&s->agenda, s->model.arrive_us[c], WEFT_SIM_CLIENT_JOIN, c, 0));
  }
  return WEFT_OK;
}

static weft_status run(weft_sim_serving *s) {
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

static weft_status sum_up(weft_sim_serving *s) {
  static const char *const answers[] = {"answer_p50_ms", "answer_p95_ms", "answer_p99_ms"};
  static const char *const codings[] = {"coded_p50_ms", "coded_p95_ms", "coded_p99_ms"};
  weft_sim_result *r = &s->out->result;
  weft_sim_metrics *m = &s->out->own;
  weft_sim_totals *t = &r->totals;
  const weft_segment_id id = weft_sim_segment_id(s, 0);
  r->memory_bytes = s->server_bytes_most + s->decoders_most * weft_decoder_memory_bytes(&id, true);
  for (uint32_t c = 0; c < s->p->peers; c++) {
    weft_sim_viewer *v = &s->out->viewers[c];
    v->left = v->came && s->model.leave_us[v->peer] <= s->p->duration_us;
    v->left_us = v->left ? s->model.leave_us[v->peer] : WEFT_SIM_NEVER;
    t->viewers += v->came;
    t->peers.due += v->due;
    t->peers.in_time += v->in_time;
    t->peers.skipped += v->skipped;
    t->delivered_bytes += v->delivered_bytes;
    t->wrong_bytes += v->wrong_bytes;
  }
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
  weft_sim_add_metric(m, "requests_unanswered", (double)(s->accepted - s->out->answers.count));
  weft_sim_add_metric(m, "packets_per_product",
                      s->products ? (double)s->packets / (double)s->products : (double)NAN);
  weft_sim_add_quantiles(m, s->out->codings.ms, s->out->codings.count, codings);
  weft_sim_add_quantiles(m, s->out->answers.ms, s->out->answers.count, answers);
  return weft_sim_count_audience(r->viewers, r->viewer_count, r->end_us, s->out->seconds,
                                 r->second_count, &t->online_most);
}

weft_status weft_sim_serve(const weft_sim_service_options *options, weft_sim_service *out) {
  *out = (weft_sim_service){0};
  weft_sim_serving s = {.options = options, .p = options->parameters, .out = out};
  weft_status status = start(&s);
  if (status == WEFT_OK)
    status = run(&s);
  if (status == WEFT_OK)
    status = sum_up(&s);
  for (uint32_t c = 0; s.clients && c <= s.p->peers; c++)
    weft_decoder_free(s.clients[c].decoder);
  weft_server_free(s.server);
  weft_ctx_free(s.ctx);
  weft_sim_model_clear(&s.model);
  weft_sim_agenda_clear(&s.agenda);
  free(s.clients);
  free(s.data);
  free(s.taken);
  free(s.hash);
  return status;
}

void weft_sim_service_clear(weft_sim_service *service) {
  free(service->viewers);
  free(service->seconds);
  free(service->hours);
  free(service->served);
  free(service->answers.ms);
  free(service->codings.ms);
  *service = (weft_sim_service){0};
}
