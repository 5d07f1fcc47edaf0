// SPDX-License-Identifier: Apache-2.0
// The engine's life, its timers and its events.
#include <string.h>

#include "peer/engine/internal.h"

static bool options_valid(const weft_engine_options *o) {
  return o->blocks >= 1 && o->blocks <= WEFT_MAX_BLOCKS && o->block_bytes >= 1 &&
         o->block_bytes <= WEFT_MAX_BLOCK_BYTES && o->window >= 1 &&
         o->window <= WEFT_ENGINE_MAX_WINDOW && o->batch >= 1 &&
         o->batch <= WEFT_ENGINE_MAX_BATCH && o->neighbours_max >= 1 &&
         o->neighbours_max <= WEFT_ENGINE_MAX_NEIGHBOURS && o->codec && o->policy;
}

// `count` items of `bytes` each, zeroed.
static weft_status allocate(weft_ctx *ctx, size_t count, size_t bytes, void *out) {
  void *memory;
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, count * bytes, &memory));
  memset(memory, 0, count * bytes);
  memcpy(out, &memory, sizeof memory); // out is the address of some pointer to objects
  return WEFT_OK;
}

static weft_status allocate_window(weft_engine *e) {
  const weft_engine_options *o = &e->options;
  WEFT_TRY(allocate(e->ctx, o->window, sizeof *e->slots, &e->slots));
  WEFT_TRY(allocate(e->ctx, o->window, sizeof *e->held, &e->held));
  WEFT_TRY(allocate(e->ctx, o->neighbours_max, sizeof *e->neighbours, &e->neighbours));
  WEFT_TRY(allocate(e->ctx, o->neighbours_max, sizeof *e->policy_view, &e->policy_view));
  for (size_t i = 0; i < o->neighbours_max; i++) {
    weft_neighbour *n = &e->neighbours[i];
    WEFT_TRY(allocate(e->ctx, o->window, sizeof *n->wants, &n->wants));
    WEFT_TRY(allocate(e->ctx, o->window, sizeof *n->brake_due, &n->brake_due));
  }
  return WEFT_OK;
}

static weft_status allocate_burst(weft_engine *e) {
  const weft_engine_options *o = &e->options;
  // Headers differ in length, payloads lie at one place: the header ends where the payload starts.
  const size_t coefficients = o->blocks > 16 ? o->blocks : 16; // at least any other mode's data
  e->out_payload = (WEFT_WIRE_SESSION_HEADER_BYTES + coefficients + 63) / 64 * 64;
  e->out_stride = (e->out_payload + o->block_bytes + 63) / 64 * 64;
  WEFT_TRY(allocate(e->ctx, o->batch, e->out_stride, &e->out));
  WEFT_TRY(allocate(e->ctx, o->batch, sizeof *e->payload_rows, &e->payload_rows));
  WEFT_TRY(allocate(e->ctx, o->batch, sizeof *e->packets, &e->packets));
  WEFT_TRY(allocate(e->ctx, o->batch, o->blocks, &e->coefficients));
  WEFT_TRY(allocate(e->ctx, o->batch, sizeof *e->datagrams, &e->datagrams));
  WEFT_TRY(allocate(e->ctx, 1, WEFT_MESSAGE_MAX_CONTROL, &e->control));
  WEFT_TRY(allocate(e->ctx, o->window, sizeof *e->ranks, &e->ranks));
  for (size_t i = 0; i < o->batch; i++)
    e->payload_rows[i] = e->out + i * e->out_stride + e->out_payload;
  return WEFT_OK;
}

weft_status weft_engine_new(weft_ctx *ctx, const weft_engine_options *options,
                            const weft_engine_self *self, weft_engine **out) {
  if (!ctx || !options || !self || !self->rng.fill || !out || !options_valid(options))
    return WEFT_E_ARGUMENT;
  weft_engine *e;
  WEFT_TRY(allocate(ctx, 1, sizeof *e, &e));
  e->ctx = ctx;
  e->options = *options;
  e->self = *self;
  e->codec = self->codec ? *self->codec : *options->codec;
  e->policy = *options->policy;
  e->rng = self->rng;
  e->options.codec = &e->codec;
  e->options.policy = &e->policy;
  weft_status status = allocate_window(e);
  if (status == WEFT_OK)
    status = allocate_burst(e);
  if (status != WEFT_OK) {
    weft_engine_free(e);
    return status;
  }
  for (size_t s = 0; s < options->window; s++)
    e->held[s].blocks = (uint16_t)options->blocks;
  *out = e;
  return WEFT_OK;
}

void weft_engine_free(weft_engine *e) {
  if (!e)
    return;
  for (size_t s = 0; e->slots && s < e->options.window; s++)
    e->codec.close(e->codec.user, e->slots[s].segment);
  for (size_t i = 0; e->neighbours && i < e->options.neighbours_max; i++) {
    weft_free(e->ctx, WEFT_MEM_HOST, e->neighbours[i].wants);
    weft_free(e->ctx, WEFT_MEM_HOST, e->neighbours[i].brake_due);
  }
  void *const parts[] = {e->slots,     e->held,         e->neighbours, e->policy_view,
                         e->out,       e->payload_rows, e->packets,    e->coefficients,
                         e->datagrams, e->control,      e->ranks,      e};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    weft_free(e->ctx, WEFT_MEM_HOST, parts[i]);
}

// --- Time

// When the neighbour wants something done next.
static int64_t neighbour_deadline(const weft_engine *e, const weft_neighbour *n) {
  if (n->state == WEFT_NEIGHBOUR_GREETING || n->state == WEFT_NEIGHBOUR_OPEN) {
    const bool greeting = n->state == WEFT_NEIGHBOUR_GREETING;
    const int64_t again = greeting                ? n->hello_us + WEFT_HELLO_EVERY_US
                          : n->told != e->version ? n->map_us + WEFT_MAP_EVERY_US
                                                  : n->map_us + WEFT_MAP_IDLE_US;
    const int64_t silent = n->heard_us + WEFT_SILENT_US;
    return again < silent ? again : silent;
  }
  return WEFT_ENGINE_NEVER;
}

int64_t weft_engine_deadline(const weft_engine *e) {
  if (e->farewell)
    return WEFT_ENGINE_NEVER; // whoever still asks is answered
  int64_t deadline = e->idle || e->degree == 0 ? WEFT_ENGINE_NEVER : e->pace_us;
  for (size_t i = 0; i < e->options.neighbours_max; i++) {
    const int64_t d = neighbour_deadline(e, &e->neighbours[i]);
    deadline = d < deadline ? d : deadline;
  }
  return deadline;
}

void weft_engine_tick(weft_engine *e, int64_t now_us) {
  for (size_t i = 0; i < e->options.neighbours_max && !e->farewell; i++) {
    weft_neighbour *n = &e->neighbours[i];
    if (now_us < neighbour_deadline(e, n))
      continue;
    if (now_us >= n->heard_us + WEFT_SILENT_US)
      weft_neighbour_drop(e, i, WEFT_LOST_SILENT);
    else if (n->state == WEFT_NEIGHBOUR_GREETING)
      n->hello_due = true;
    else
      n->map_due = true;
  }
}

// --- Events

bool weft_engine_event(weft_engine *e, weft_event *out) {
  for (size_t i = 0; i < e->options.neighbours_max; i++) {
    weft_neighbour *n = &e->neighbours[i];
    if (n->state == WEFT_NEIGHBOUR_LOST) {
      n->state = WEFT_NEIGHBOUR_FREE;
      *out = (weft_event){.kind = WEFT_EVENT_NEIGHBOUR_LOST, .neighbour = i, .reason = n->lost};
      return true;
    }
    if (n->open_event) {
      n->open_event = false;
      *out = (weft_event){.kind = WEFT_EVENT_NEIGHBOUR_OPEN, .neighbour = i};
      return true;
    }
  }
  for (uint64_t s = e->tail; s - e->tail < e->options.window; s++) {
    weft_slot *slot = weft_window_slot(e, s);
    if (slot->decoded_event) {
      slot->decoded_event = false;
      *out = (weft_event){.kind = WEFT_EVENT_DECODED, .segment = s};
      return true;
    }
  }
  return false;
}

void weft_engine_get_statistics(const weft_engine *engine, weft_engine_statistics *out) {
  *out = engine->statistics;
}
