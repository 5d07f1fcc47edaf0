// SPDX-License-Identifier: Apache-2.0
// What this peer has asked its neighbours for: how much each may be asked for, what was answered,
// and what expires. What to ask for is decided in request.c.
#include "peer/engine/internal.h"

static uint16_t bits(uint64_t mask) {
  uint16_t count = 0;
  for (; mask; mask &= mask - 1)
    count++;
  return count;
}

static uint16_t packets_of(const weft_request *r) {
  return r->kind == WEFT_REQUEST_PACKETS  ? r->count
         : r->kind == WEFT_REQUEST_BLOCKS ? bits(r->mask)
                                          : 0;
}

// Packets that may be requested from one neighbour and outstanding: few at first, then as many as
// it answers in time. Otherwise a neighbour that many ask, above all the source, would owe more
// than anybody waits for, and send what has long come from elsewhere. A request that PASSED later
// answers have passed was lost.
enum {
  ASK_LEAST = 2,
  ASK_FIRST = 8,
  ASK_MOST = 64,
  ASK_STEP = 8,
  ASKS_APART = 1 << 15,
  PASSED = 3
};

static void show_room(weft_engine *e, size_t index) {
  const weft_neighbour *n = &e->neighbours[index];
  e->policy_view[index].asking = n->ask_count;
  e->policy_view[index].room =
      (uint16_t)(n->ask_count < weft_requests_room(e->options) && n->asked < n->ask_window
                     ? n->ask_window - n->asked
                     : 0);
}

size_t weft_policy_asked(const weft_policy_view *view, size_t neighbour, uint64_t segment) {
  if (!view->engine)
    return 0;
  const weft_neighbour *n = &view->engine->neighbours[neighbour];
  size_t packets = 0;
  for (size_t i = 0; i < n->ask_count; i++)
    if (n->asks[i].request.segment == segment)
      packets += packets_of(&n->asks[i].request);
  return packets;
}

void weft_requests_start(weft_engine *e, size_t index) {
  e->neighbours[index].ask_window = ASK_FIRST;
  show_room(e, index);
}

static void set_blocks(weft_engine *e, const weft_request *r, bool on) {
  if (!e->blocks || r->kind != WEFT_REQUEST_BLOCKS || !weft_window_has(e, r->segment))
    return;
  uint8_t *row = e->blocks + (weft_place(e, r->segment)) * e->blocks_stride;
  for (size_t b = 0; b < 64 && r->count / 8u + b / 8 < e->blocks_stride; b++)
    if (r->mask >> b & 1) {
      uint8_t *byte = &row[r->count / 8u + b / 8];
      *byte = (uint8_t)(on ? *byte | 1u << b % 8 : *byte & ~(1u << b % 8));
    }
  const weft_slot *slot = weft_window_slot(e, r->segment);
  if (!on && slot->segment) // some of them are held
    e->codec->has(e->codec->user, slot->segment, row);
}

static void count_asked(weft_engine *e, size_t index, uint64_t segment, int change) {
  weft_neighbour *n = &e->neighbours[index];
  n->asked = (uint16_t)(n->asked + change);
  show_room(e, index);
  if (!weft_window_has(e, segment))
    return;
  weft_policy_segment *held = weft_window_held(e, segment);
  const int asked = held->asked + change;
  held->asked = (uint16_t)(asked > 0 ? asked : 0);
}

void weft_request_send(weft_engine *e, size_t index, const weft_request *r, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  for (size_t i = 0; i < n->ask_count; i++)
    if (n->asks[i].request.segment == r->segment && n->asks[i].request.kind == r->kind &&
        r->kind >= WEFT_REQUEST_MANIFEST)
      return; // already requested
  const size_t room = r->kind >= WEFT_REQUEST_MANIFEST ? weft_asks_room(e->options)
                                                       : weft_requests_room(e->options);
  if (n->ask_count >= room)
    return;
  n->asks[n->ask_count++] = (weft_ask){.request = *r,
                                       .hope_us = now_us,
                                       .asked_ms = (uint16_t)(now_us / 1000),
                                       .order = n->ask_order++};
  e->ask_count++;
  count_asked(e, index, r->segment, packets_of(r));
  set_blocks(e, r, true);
  weft_neighbour_due(e, index, WEFT_DUE_REQUEST);
  weft_neighbour_expect(e, index, now_us);
}

static void remove_ask(weft_engine *e, size_t index, size_t at) {
  weft_neighbour *n = &e->neighbours[index];
  const weft_request r = n->asks[at].request;
  n->asks[at] = n->asks[--n->ask_count];
  e->ask_count--;
  count_asked(e, index, r.segment, -(int)packets_of(&r));
  set_blocks(e, &r, false);
}

void weft_requests_forget(weft_engine *e, size_t index) {
  weft_neighbour *n = &e->neighbours[index];
  while (n->ask_count)
    remove_ask(e, index, n->ask_count - 1u);
  e->owed_count -= n->owed_count;
  n->owed_count = 0;
}

static void count_delay(weft_neighbour *n, const weft_ask *answered, int64_t now_us) {
  enum { MOST_MS = 4000 };
  const uint16_t delay_ms = (uint16_t)(now_us / 1000 - answered->asked_ms);
  const int delays_ms = n->ask_delays_ms - n->ask_delays_ms / 8;
  n->ask_delays_ms = (uint16_t)(delays_ms + (delay_ms < MOST_MS ? delay_ms : MOST_MS));
}

// Whether answers queue at the neighbour.
static bool busy(const weft_engine *e, const weft_neighbour *n) {
  return n->ask_delays_ms * INT64_C(125) > n->round_trip_us + weft_ask_every(e) / 4;
}

// Widens the window by what came: fast up to its first size, unless answers queue.
static void widen(const weft_engine *e, weft_neighbour *n, size_t count) {
  const size_t lacks =
      n->ask_window < ASK_FIRST && !busy(e, n) ? (size_t)(ASK_FIRST - n->ask_window) : 0;
  const size_t soon = count < lacks ? count : lacks, gain = n->ask_gain + count - soon;
  const size_t window = n->ask_window + soon + gain / ASK_STEP;
  n->ask_gain = (uint8_t)(gain % ASK_STEP);
  n->ask_window = (uint8_t)(window < ASK_MOST ? window : ASK_MOST);
}

// Notes an answer. Requests are answered in order, or nearly so: this one and later ones may still
// be answered, and earlier ones were perhaps lost.
static void hope(const weft_engine *e, weft_neighbour *n, weft_ask *answered, size_t count,
                 int64_t now_us) {
  const uint16_t order = answered->order;
  if (!answered->begun)
    count_delay(n, answered, now_us);
  answered->begun = true;
  for (size_t i = 0; i < n->ask_count; i++)
    if ((uint16_t)(n->asks[i].order - order) < ASKS_APART)
      n->asks[i].hope_us = now_us;
    else
      n->asks[i].passed = (uint8_t)(n->asks[i].passed + (n->asks[i].passed < PASSED));
  widen(e, n, count);
}

bool weft_request_answered(weft_engine *e, size_t index, uint64_t segment, size_t count,
                           const weft_packet *packet, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  bool block = false;
  for (size_t i = n->ask_count; i-- > 0 && count;) {
    weft_request *r = &n->asks[i].request;
    if (r->segment != segment)
      continue;
    if (r->kind == WEFT_REQUEST_PACKETS) {
      const uint16_t got = (uint16_t)(count < r->count ? count : r->count);
      hope(e, n, &n->asks[i], got, now_us);
      count_asked(e, index, segment, -(int)got);
      r->count = (uint16_t)(r->count - got);
      count -= got;
    } else if (r->kind == WEFT_REQUEST_BLOCKS && packet && packet->index >= r->count &&
               packet->index - r->count < 64 && r->mask >> (packet->index - r->count) & 1) {
      r->mask &= ~(UINT64_C(1) << (packet->index - r->count));
      hope(e, n, &n->asks[i], 1, now_us);
      count_asked(e, index, segment, -1);
      block = true;
    }
    if (r->kind <= WEFT_REQUEST_BLOCKS && packets_of(r) == 0) {
      remove_ask(e, index, i);
      e->ask_idle = false;
    }
  }
  return block;
}

void weft_request_unmet(weft_engine *e, uint64_t segment, const weft_packet *packet) {
  const uint32_t base = packet->index / 64 * 64;
  set_blocks(e,
             &(weft_request){.segment = segment,
                             .kind = WEFT_REQUEST_BLOCKS,
                             .count = (uint16_t)base,
                             .mask = UINT64_C(1) << (packet->index - base)},
             false);
  e->ask_idle = false;
}

// How long to wait for an answer. A burst holds all of an answer, so if only part of one came, the
// rest was lost. So was what later answers have passed.
static int64_t patience(const weft_engine *e, const weft_neighbour *n, const weft_ask *ask) {
  const bool data = ask->request.kind <= WEFT_REQUEST_BLOCKS;
  return (data && !ask->begun && ask->passed < PASSED ? weft_ask_patience(e) : weft_ask_every(e)) +
         2 * n->round_trip_us;
}

// Whether a request that expired shows that the neighbour has too much to do. It does not if it was
// lost on its way, unless answers queue at the neighbour: then it was dropped there.
static bool tells_lateness(const weft_engine *e, const weft_neighbour *n, const weft_ask *ask) {
  return ask->request.kind <= WEFT_REQUEST_BLOCKS && !ask->begun && !ask->blamed &&
         (busy(e, n) || ask->passed < PASSED);
}

// Halves the window. Where everything is requested it stays at its first size: there a narrow link
// makes answers late for which no neighbour is to blame.
static void halve(weft_engine *e, size_t index) {
  weft_neighbour *n = &e->neighbours[index];
  const int least = weft_shortage_asking(e) ? ASK_FIRST : ASK_LEAST, half = n->ask_window / 2;
  n->ask_window = (uint8_t)(half > least ? half : least);
  for (size_t i = 0; i < n->ask_count; i++)
    n->asks[i].blamed = true;
  show_room(e, index);
}

void weft_asks_expire(weft_engine *e, int64_t now_us) {
  for (size_t i = 0; i < e->used; i++) {
    weft_neighbour *n = &e->neighbours[i];
    bool late = false;
    for (size_t a = n->ask_count; a-- > 0;) {
      if (now_us - n->asks[a].hope_us < patience(e, n, &n->asks[a]))
        continue;
      e->statistics.requests_expired += n->asks[a].request.kind <= WEFT_REQUEST_BLOCKS;
      late = late || tells_lateness(e, n, &n->asks[a]);
      remove_ask(e, i, a);
    }
    if (late)
      halve(e, i);
  }
}
