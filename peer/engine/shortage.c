// SPDX-License-Identifier: Apache-2.0
// Live, with less uplink than the stream needs. Were all segments served alike, each would be
// incomplete everywhere; so peers forgo some, the same ones everywhere, and serve the others first.
//
// Under churn segments fail, too, of a few peers or for a while, and then to forgo any costs more
// than it saves. What tells the two apart is uplinks: it is for want of them that a segment fails
// where they have no rest here and at nearly all neighbours, whose maps say so. Where somebody near
// has some to spare, what is missing is a way to it, and nothing is forgone.
#include "peer/engine/internal.h"

enum {
  FAILED = 2, // of the last eight that were not forgone, for want of uplink: one class more
  ENOUGH = 8, // in time, and one that was forgone: uplinks reach further, one class fewer
  LONG = 32,  // in time: the same, without that
  MOST = WEFT_POLICY_CLASSES * 3 / 4,
  LAST_PART = 8, // of a segment: what may be asked for meanwhile
  ALL = 1024,    // of the time
  MEAN_OF = 8    // segments
};

// --- Uplinks

static int64_t passed(const weft_engine *e, int64_t now_us) {
  return (uint32_t)((uint32_t)now_us - e->shortage.looked_us);
}

void weft_shortage_start(weft_engine *e, int64_t now_us) {
  e->shortage.looked_us = (uint32_t)now_us;
  e->shortage.idle_us = 0;
}

// A rest that began before the last look was counted up to it.
void weft_shortage_idle(weft_engine *e, int64_t rest_us, int64_t now_us) {
  const int64_t most = passed(e, now_us);
  const int64_t idle_us = e->shortage.idle_us + (rest_us < most ? rest_us : most);
  e->shortage.idle_us = (uint32_t)(idle_us < most ? idle_us : most);
}

// The part of the time in which nothing was sent: at first since the first neighbour, as playback
// begins a lag after that; then the mean of some segments.
static void learn_idle(weft_engine *e, int64_t now_us) {
  weft_shortage *s = &e->shortage;
  const int64_t passed_us = passed(e, now_us);
  if (passed_us == 0)
    return;
  if (e->pace_us < now_us)
    weft_shortage_idle(e, now_us - e->pace_us, now_us);
  const int64_t now = (int64_t)s->idle_us * ALL / passed_us;
  s->idle = (int16_t)(s->measured ? s->idle + (now - s->idle) / MEAN_OF : now);
  s->measured = true;
  weft_shortage_start(e, now_us);
}

bool weft_shortage_full(const weft_engine *e) {
  return e->shortage.measured && 2 * e->shortage.idle <= ALL;
}

// Whether a segment is late for want of uplink: none is to spare here, nor at three neighbours in
// four, and half of them have not got it, either. The source is not asked: it never has any.
static bool for_want(const weft_engine *e, uint64_t segment) {
  size_t known = 0, full = 0, lack = 0;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (!e->policy_view[i].known || n->is_source)
      continue;
    known++;
    full += n->full;
    lack += !weft_neighbour_complete(e, n, segment);
  }
  return weft_shortage_full(e) && known > 0 && 4 * full >= 3 * known && 2 * lack >= known;
}

// --- What is forgone

static unsigned ones(unsigned bits) {
  unsigned count = 0;
  for (; bits; bits &= bits - 1)
    count++;
  return count;
}

static void forgo(weft_engine *e, unsigned classes) {
  e->shortage.forgone = (uint8_t)classes;
  e->shortage.failed = e->shortage.in_a_row = 0;
  e->statistics.forgone = classes;
}

void weft_shortage_learn(weft_engine *e, uint64_t segment, bool in_time, int64_t now_us) {
  weft_shortage *s = &e->shortage;
  learn_idle(e, now_us);
  if (!in_time && !for_want(e, segment))
    return;
  if (weft_policy_class(segment) < s->forgone) {
    if (in_time && s->in_a_row >= ENOUGH)
      forgo(e, s->forgone - 1u);
    return;
  }
  s->failed = (uint8_t)(s->failed << 1 | !in_time);
  s->in_a_row = in_time ? (uint8_t)(s->in_a_row + 1) : 0;
  if (ones(s->failed) >= FAILED && s->forgone < MOST)
    forgo(e, s->forgone + 1u);
  else if (s->in_a_row >= LONG)
    forgo(e, s->forgone ? s->forgone - 1u : 0);
}

bool weft_shortage_may_ask(const weft_engine *e, uint64_t segment) {
  const weft_policy_segment *held = weft_window_held(e, segment);
  const uint32_t lacks = (uint32_t)held->blocks - held->received;
  return e->shortage.forgone == 0 ||
         (weft_policy_class(segment) >= e->shortage.forgone && LAST_PART * lacks <= held->blocks);
}
