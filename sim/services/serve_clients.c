// SPDX-License-Identifier: Apache-2.0
// Clients of the streaming server: what they request, decode, compare and miss.
#include <string.h>

#include "sim/services/serving.h"

static weft_status compare(weft_sim_serving *s, weft_sim_client *c, weft_sim_viewer *v) {
  uint8_t *got = s->data + s->segment_bytes;
  WEFT_TRY(weft_decoder_read(c->decoder, 0, s->segment_bytes, got));
  weft_sim_fill_segment(s, c->segment, s->data);
  v->delivered_bytes += s->segment_bytes;
  if (memcmp(got, s->data, s->segment_bytes) == 0)
    return WEFT_OK;
  for (size_t i = 0; i < s->segment_bytes; i++)
    v->wrong_bytes += got[i] != s->data[i];
  return WEFT_OK;
}

static weft_status begin(weft_sim_serving *s, uint32_t number, int64_t now_us) {
  weft_sim_client *c = &s->clients[number];
  const weft_segment_id id = weft_sim_segment_id(s, c->segment);
  const weft_decoder_options how = {.id = id};
  c->asked = 0;
  c->started_us = now_us;
  WEFT_TRY(weft_decoder_new(s->ctx, &how, &c->decoder));
  s->decoders++;
  s->decoders_most = s->decoders > s->decoders_most ? s->decoders : s->decoders_most;
  return WEFT_OK;
}

static void end_decoder(weft_sim_serving *s, weft_sim_client *c) {
  s->decoders -= c->decoder != NULL;
  weft_decoder_free(c->decoder);
  c->decoder = NULL;
}

static weft_status finish(weft_sim_serving *s, uint32_t number, int64_t now_us) {
  weft_sim_client *c = &s->clients[number];
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
  end_decoder(s, c);
  c->segment++;
  return WEFT_OK;
}

weft_status weft_sim_client_ask(weft_sim_serving *s, uint32_t number, int64_t now_us) {
  weft_sim_client *c = &s->clients[number];
  if (now_us >= s->model.leave_us[number]) {
    end_decoder(s, c);
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
  // A client takes a segment at the stream's pace, not faster: later requests wait for their part
  // of it.
  const int64_t part_us = (int64_t)((double)s->segment_us * 0.9 * c->asked / s->p->blocks);
  int64_t at_us = c->started_us + part_us;
  at_us = c->asked < s->p->blocks && at_us > now_us ? at_us : now_us;
  const bool again = c->asked >= s->p->blocks;
  s->again += again;
  weft_sim_served_of(s, at_us)->again += again;
  c->asked += c->request;
  c->asked_us = at_us;
  return weft_sim_agenda_put(&s->agenda, at_us + weft_sim_delay_us(&s->model, 0, number),
                             WEFT_SIM_REQUEST, number, 0);
}

// Skips to the newest segment. Segments given up earlier are due by now, unless the server dropped
// segments early.
static void give_up(const weft_sim_serving *s, weft_sim_client *c, int64_t now_us) {
  if ((int64_t)c->missed_end * s->segment_us + s->p->lag_us <= now_us)
    c->missed = c->segment;
  c->missed_end = c->segment = s->segments - 1;
}

weft_status weft_sim_client_request(weft_sim_serving *s, uint32_t number, int64_t now_us) {
  weft_sim_client *c = &s->clients[number];
  const weft_server_request want = {WEFT_SIM_SERVED_STREAM, c->segment, number, c->request};
  size_t accepted = 0;
  const weft_status status = weft_server_request_many(s->server, &want, 1, now_us, &accepted);
  s->requests++;
  weft_sim_served_of(s, now_us)->requests++;
  if (status == WEFT_E_FOREIGN) { // expired: continue with the newest
    end_decoder(s, c);
    give_up(s, c, now_us);
    return weft_sim_agenda_put(&s->agenda, now_us, WEFT_SIM_ASK, number, 0);
  }
  WEFT_TRY(status);
  s->accepted++;
  c->coming = c->request;
  c->came = false;
  return weft_sim_plan_coding(s, now_us);
}

void weft_sim_client_due(weft_sim_serving *s, uint32_t number, uint64_t segment, int64_t now_us) {
  weft_sim_viewer *v = &s->out->viewers[number - 1];
  if (now_us >= s->model.leave_us[number])
    return;
  const weft_sim_client *c = &s->clients[number];
  const bool there = c->segment > segment && !(segment >= c->missed && segment < c->missed_end);
  v->due++;
  v->in_time += there;
  v->skipped += !there;
  weft_sim_second_of(s, now_us)->due++;
  weft_sim_second_of(s, now_us)->in_time += there;
}

weft_status weft_sim_client_join(weft_sim_serving *s, uint32_t number, int64_t now_us) {
  weft_sim_viewer *v = &s->out->viewers[number - 1];
  weft_sim_client *c = &s->clients[number];
  v->came = true;
  v->joined_us = now_us;
  c->rng.state = weft_sim_draw(s->p->seed, 200, number, 0);
  c->segment = s->segments ? s->segments - 1 : 0;
  WEFT_TRY(weft_sim_agenda_put(&s->agenda, now_us + s->p->lag_us, WEFT_SIM_DUE, number,
                               (uint32_t)c->segment));
  return weft_sim_client_ask(s, number, now_us);
}
