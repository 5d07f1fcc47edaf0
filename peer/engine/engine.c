// SPDX-License-Identifier: Apache-2.0
// Making and freeing engines: options, memory; and their events.
#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "peer/engine/internal.h"

static bool times_valid(const weft_engine_options *o) {
  const weft_engine_timers *t = &o->timers;
  const int64_t times[] = {o->lag_us, o->startup_us,  o->checksum_us, o->spread_us,  t->hello_us,
                           t->map_us, t->map_idle_us, t->keep_us,     t->brake_us,   t->silent_us,
                           t->ask_us, t->exchange_us, t->ack_us,      o->patience_us};
  for (size_t i = 0; i < sizeof times / sizeof *times; i++)
    if (times[i] < 0 || times[i] > WEFT_ENGINE_MAX_TIME_US)
      return false;
  return true;
}

static bool options_valid(const weft_engine_options *o) {
  if (!(o->blocks >= 1 && o->blocks <= WEFT_MAX_BLOCKS && o->block_bytes >= 1 &&
        o->block_bytes <= WEFT_MAX_BLOCK_BYTES && o->window >= 1 &&
        o->window <= WEFT_ENGINE_MAX_WINDOW && o->batch >= 1 && o->batch <= WEFT_ENGINE_MAX_BATCH &&
        o->neighbours_max >= 1 && o->neighbours_max <= WEFT_ENGINE_MAX_NEIGHBOURS && o->codec &&
        o->policy && o->flights_max <= UINT16_MAX && o->requests_max <= WEFT_REQUEST_MAX_ENTRIES &&
        o->mode <= WEFT_MODE_LIVE && o->behind < o->window && o->gather <= WEFT_ENGINE_MAX_GATHER &&
        o->addresses_max <= 4096 && o->datagram_overhead <= UINT16_MAX))
    return false;
  if (o->mode != WEFT_MODE_BULK && o->rate_bits_per_s == 0 && !o->trust)
    return false; // nothing would say when to play
  if (o->checksum_us && (!o->trust || o->blocks > WEFT_CHECKSUM_MAX_BLOCKS))
    return false;
  return times_valid(o);
}

// Whether an engine's own codec fits the memory that is laid out for the options' codec.
static bool takes_its_place(const weft_codec *own, const weft_codec *codec) {
  return !own || (!own->has == !codec->has && !own->make_token == !codec->make_token &&
                  own->token_bytes_max <= codec->token_bytes_max);
}

static bool self_valid(const weft_engine_options *o, const weft_engine_self *s) {
  const uint64_t segment_bytes = (uint64_t)o->blocks * o->block_bytes;
  const bool anywhere = s->source || o->mode == WEFT_MODE_LIVE || s->start == WEFT_START_OLDEST;
  return s->rng.fill && takes_its_place(s->codec, o->codec) &&
         s->address.length <= WEFT_PEER_ADDRESS_BYTES &&
         (anywhere || s->start <= WEFT_MESSAGE_MAX_SEGMENT) &&
         (!s->stream_bytes || (s->source && o->mode != WEFT_MODE_LIVE)) &&
         (!s->rereads || (!s->source && o->mode == WEFT_MODE_BULK && s->start == 0)) &&
         s->stream_bytes / segment_bytes < WEFT_MESSAGE_MAX_SEGMENT;
}

// --- Memory: everything of fixed size in one piece

typedef struct layout {
  size_t at;
  uint8_t *base; // NULL while measuring
} layout;

static void *take(layout *l, size_t count, size_t bytes) {
  const size_t at = (l->at + 15) / 16 * 16;
  l->at = at + count * bytes;
  return l->base ? l->base + at : NULL;
}

static void lay_out_neighbour(layout *l, const weft_engine_options *o, size_t stride,
                              weft_neighbour *n) {
  weft_neighbour unused;
  n = n ? n : &unused;
  n->flight = take(l, weft_flights_max(o), sizeof *n->flight);
  n->blocks = stride ? take(l, o->window, stride) : NULL;
  n->asks = take(l, weft_asks_room(o), sizeof *n->asks);
  n->owed = take(l, weft_requests_room(o), sizeof *n->owed);
}

// Lays out what nearly every call reads: first, and close together.
static size_t lay_out_hot(layout *l, const weft_engine_options *o) {
  weft_engine *e = take(l, 1, sizeof *e), unused;
  e = e ? e : &unused;
  e->clocks = take(l, o->neighbours_max, sizeof *e->clocks);
  e->due = take(l, o->neighbours_max, sizeof *e->due);
  e->policy_view = take(l, o->neighbours_max, sizeof *e->policy_view);
  e->held = take(l, o->window, sizeof *e->held);
  e->number = take(l, o->window, sizeof *e->number);
  e->wants = take(l, o->neighbours_max * o->window, sizeof *e->wants);
  e->marks = take(l, o->neighbours_max, o->window);
  return l->at;
}

static size_t lay_out(layout *l, const weft_engine_options *o) {
  weft_engine unused, *e = l->base ? (weft_engine *)(void *)l->base : &unused;
  lay_out_hot(l, o);
  l->at = (l->at + 63) / 64 * 64;
  e->blocks_stride = o->codec->has ? (o->blocks + 7) / 8 : 0;
  e->neighbours = take(l, o->neighbours_max, sizeof *e->neighbours);
  e->slots = take(l, o->window, sizeof *e->slots);
  e->blocks = e->blocks_stride ? take(l, o->window, e->blocks_stride) : NULL;
  for (size_t i = 0; i < o->neighbours_max; i++) {
    lay_out_neighbour(l, o, e->blocks_stride, l->base ? &e->neighbours[i] : NULL);
    if (l->base) {
      e->neighbours[i].wants = e->wants + i * o->window;
      e->neighbours[i].marks = e->marks + i * o->window;
    }
  }
  e->candidates = take(l, o->addresses_max, sizeof *e->candidates);
  e->waits = o->mode == WEFT_MODE_LIVE ? NULL : take(l, o->neighbours_max, sizeof *e->waits);
  e->proofs = o->trust ? take(l, o->window, sizeof *e->proofs) : NULL;
  e->end = o->trust ? take(l, 1, sizeof *e->end) : NULL;
  return l->at;
}

size_t weft_engine_hot_bytes(const weft_engine_options *options) {
  layout l = {0};
  return options && options_valid(options) ? lay_out_hot(&l, options) : 0;
}

void weft_engine_prefetch(const weft_engine *e, size_t neighbour, uint64_t segment, bool near) {
  const weft_neighbour *n = &e->neighbours[neighbour];
  const weft_slot *slot = &e->slots[weft_place(e, segment)];
  if (near) {
    __builtin_prefetch(n->flight + n->flight_first);
    __builtin_prefetch(slot->segment);
    return;
  }
  for (size_t at = 0; at < offsetof(weft_neighbour, marks); at += 64)
    __builtin_prefetch((const char *)n + at);
  __builtin_prefetch(slot);
}

size_t weft_engine_memory_bytes(const weft_engine_options *options) {
  layout l = {0};
  return options && options_valid(options) ? lay_out(&l, options) : 0;
}

weft_status weft_engine_new(weft_ctx *ctx, const weft_engine_options *options,
                            const weft_engine_self *self, weft_engine **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx || !options || !self || !options_valid(options) || !self_valid(options, self))
    return WEFT_E_ARGUMENT;
  layout l = {0};
  const size_t bytes = lay_out(&l, options);
  void *memory;
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, bytes, &memory));
  memset(memory, 0, bytes);
  l = (layout){.base = memory};
  lay_out(&l, options);
  weft_engine *e = memory;
  e->ctx = ctx;
  e->options = options;
  e->self = *self;
  e->codec = self->codec ? self->codec : options->codec;
  e->window = options->window;
  e->window_mask = (e->window & (e->window - 1)) == 0 ? (uint32_t)e->window - 1 : 0;
  e->segment_bytes = (uint64_t)options->blocks * options->block_bytes;
  e->lag_us = weft_lag_allowed(e);
  e->scratch = self->scratch;
  e->own_scratch = !self->scratch;
  const weft_status status =
      e->own_scratch ? weft_engine_scratch_new(ctx, options, &e->scratch) : WEFT_OK;
  if (status != WEFT_OK) {
    weft_free(ctx, WEFT_MEM_HOST, e);
    return status;
  }
  for (size_t i = 0; i < options->neighbours_max; i++)
    e->clocks[i] = (weft_clock){.timer_us = WEFT_ENGINE_NEVER, .map_us = WEFT_ENGINE_NEVER};
  e->statistics.startup_us = e->statistics.lag_us = -1;
  e->offset_us[0] = e->offset_us[1] = e->clock_us[0] = e->clock_us[1] = INT64_MAX;
  e->exchange_us = e->ask_us = e->gather_us = WEFT_ENGINE_NEVER;
  e->joined_us = -1;
  e->begin_us = WEFT_ENGINE_NEVER;
  e->due_segment = WEFT_NO_SEGMENT;
  e->salt = weft_rng_u64(&e->self.rng);
  e->alert_until_us = INT64_MIN;
  e->started = self->source || (!weft_is_live(e) && self->start != WEFT_START_OLDEST);
  weft_window_jump(e, self->source || !e->started ? 0 : self->start);
  if (weft_loads(e)) {
    for (size_t i = 0; i < e->window; i++)
      e->number[i] = WEFT_NO_SEGMENT;
    weft_window_set_end(e, self->stream_bytes);
    e->horizon = e->missing = e->released = weft_window_total(e);
  }
  if (weft_loads(e) && weft_manifest_end(e, e->horizon, e->end_bytes) != WEFT_OK) {
    weft_engine_free(e);
    return WEFT_E_ARGUMENT; // the signing key is missing
  }
  *out = e;
  return WEFT_OK;
}

void weft_engine_free(weft_engine *e) {
  if (!e)
    return;
  for (size_t s = 0; s < e->window; s++)
    weft_slot_close(e, &e->slots[s]);
  weft_rereads_end(e);
  if (e->own_scratch)
    weft_engine_scratch_free(e->scratch);
  weft_free(e->ctx, WEFT_MEM_HOST, e);
}

// --- Room for one burst

static size_t lay_out_scratch(layout *l, const weft_engine_options *o) {
  weft_engine_scratch *s = take(l, 1, sizeof *s), unused;
  s = s ? s : &unused;
  // Headers differ in length, payloads are at one offset: a header ends where the payload starts.
  const size_t coefficients = WEFT_PACKET_COEFFICIENT_BYTES(o->blocks);
  const size_t rows = o->codec->make_token ? 1 : o->batch; // tokens have no datagrams
  s->batch = o->batch;
  s->out_payload = (WEFT_WIRE_SESSION_HEADER_BYTES + coefficients + 63) / 64 * 64;
  s->out_stride = (s->out_payload + o->block_bytes + 63) / 64 * 64;
  s->payload_rows = take(l, rows, sizeof *s->payload_rows);
  s->packets = take(l, rows, sizeof *s->packets);
  s->coefficients = take(l, rows, o->blocks);
  s->datagrams = take(l, o->batch + WEFT_CONTROL_ROOM, sizeof *s->datagrams);
  s->control = take(l, WEFT_CONTROL_ROOM, WEFT_DATAGRAM_MAX);
  s->token = take(l, 1, o->codec->token_bytes_max + 1);
  l->at = (l->at + 63) / 64 * 64;
  s->out = take(l, rows, s->out_stride);
  l->at = (l->at + 63) / 64 * 64;
  s->hash = take(l, 1, (sizeof(crypto_generichash_state) + 63) / 64 * 64);
  for (size_t i = 0; l->base && i < rows; i++)
    s->payload_rows[i] = s->out + i * s->out_stride + s->out_payload;
  return l->at;
}

weft_status weft_engine_scratch_new(weft_ctx *ctx, const weft_engine_options *options,
                                    weft_engine_scratch **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx || !options || !options_valid(options))
    return WEFT_E_ARGUMENT;
  layout l = {0};
  const size_t bytes = lay_out_scratch(&l, options);
  void *memory;
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, bytes, &memory));
  memset(memory, 0, bytes);
  l = (layout){.base = memory};
  lay_out_scratch(&l, options);
  *out = memory;
  (*out)->ctx = ctx;
  return WEFT_OK;
}

void weft_engine_scratch_free(weft_engine_scratch *scratch) {
  if (scratch)
    weft_free(scratch->ctx, WEFT_MEM_HOST, scratch);
}

// --- Events

void weft_tell(weft_engine *e, bool *what) {
  e->tell += !*what;
  *what = true;
}

static bool told(weft_engine *e, bool *what) {
  const bool was = *what;
  *what = false;
  e->tell -= was;
  return was;
}

static bool neighbour_event(weft_engine *e, weft_event *out) {
  for (size_t i = 0; i < e->used && e->lost_count; i++) {
    weft_neighbour *n = &e->neighbours[i];
    if (n->state == WEFT_NEIGHBOUR_LOST) {
      n->state = WEFT_NEIGHBOUR_FREE;
      e->lost_count--;
      *out = (weft_event){.kind = WEFT_EVENT_NEIGHBOUR_LOST,
                          .neighbour = i,
                          .reason = (weft_lost_reason)n->lost,
                          .address = n->address,
                          .had_all = weft_neighbour_had_all(e, n)};
      return true;
    }
    if (n->open_event) {
      n->open_event = false;
      e->lost_count--;
      *out = (weft_event){.kind = WEFT_EVENT_NEIGHBOUR_OPEN, .neighbour = i, .address = n->address};
      return true;
    }
  }
  return false;
}

static bool slot_event(weft_engine *e, weft_event *out) {
  if (e->missed) {
    *out = (weft_event){.kind = WEFT_EVENT_SKIP, .segment = e->tail - e->missed--};
    return true;
  }
  for (uint64_t i = 0; i < e->window; i++) {
    const uint64_t s = e->number[weft_place(e, e->tail + i)];
    weft_slot *slot = &e->slots[weft_place(e, e->tail + i)];
    if (told(e, &slot->tell_decoded))
      *out = (weft_event){.kind = WEFT_EVENT_DECODED, .segment = s};
    else if (told(e, &slot->tell_play))
      *out = (weft_event){.kind = WEFT_EVENT_PLAY, .segment = s};
    else if (told(e, &slot->tell_skip))
      *out = (weft_event){.kind = WEFT_EVENT_SKIP, .segment = s};
    else if (told(e, &slot->tell_load))
      *out = (weft_event){.kind = WEFT_EVENT_LOAD, .segment = s};
    else
      continue;
    return true;
  }
  return false;
}

bool weft_engine_event(weft_engine *e, weft_event *out) {
  if (e->lost_count && neighbour_event(e, out))
    return true;
  if (told(e, &e->tell_stall)) {
    *out = (weft_event){.kind = WEFT_EVENT_STALL, .segment = e->play};
    return true;
  }
  if (told(e, &e->tell_resume)) {
    *out = (weft_event){.kind = WEFT_EVENT_RESUME, .segment = e->play};
    return true;
  }
  if ((e->tell || e->missed) && slot_event(e, out))
    return true;
  return (e->dial || e->lonely || e->calling) && weft_exchange_event(e, out);
}

void weft_engine_get_statistics(const weft_engine *engine, weft_engine_statistics *out) {
  *out = engine->statistics;
  out->forgone = engine->shortage.forgone;
  out->narrow = engine->shortage.narrow || engine->shortage.asks;
  const int64_t offset = weft_clock_offset(engine->offset_us);
  if (weft_is_live(engine) && !engine->self.source && offset != INT64_MAX)
    out->lag_us = weft_play_lag_us(engine);
}
