// SPDX-License-Identifier: Apache-2.0
// Live, if uplinks or this peer's own link cannot carry the stream. If all segments were served
// alike, each would be incomplete; so peers forgo some, the same ones everywhere, and serve the
// others first.
//
// Under churn segments fail, too, at a few peers or for a while, and then forgoing any costs more
// than it saves. Uplinks tell the two cases apart: a segment fails for want of them if they have no
// spare capacity here and at nearly all neighbours, whose maps say so. Where a neighbour has some
// to spare, what is missing is a path to it, and nothing is forgone.
//
// If this peer's own link is too narrow, maps take long: what comes from nearly all neighbours
// queues. Packets of segments that neighbours push last would fill that queue as well, so they are
// told to send nothing of what is forgone. Before that, if neighbours have what is due and uplink
// to spare, they are told to push nothing at all: part of what many push, guided by maps that wait
// in the queue as well, is redundant, and requesting takes that part off the link.
#include "peer/engine/internal.h"

enum {
  FAILED = 2, // late, of the last eight that were not forgone: one class more
  ENOUGH = 8, // in time in a row, and one that was forgone: uplinks reach further, one class fewer
  LONG = 32,  // in time in a row: the same, without that
  ROUND = WEFT_POLICY_CLASSES, // in time in a row: the own link may carry more, one class fewer
  MOST = WEFT_POLICY_CLASSES * 3 / 4,
  STEP = 6,         // at most so many classes at once, if the own link carries less
  LAST_PART = 8,    // 1/LAST_PART of a segment is all that may be requested meanwhile
  ALL = 1024,       // unit of fractions of the time
  MEAN_OF = 8,      // segments of the moving average
  QUEUE_US = 30000, // half of the queue that LEDBAT allows
  RECENT_US = 2000000,
  QUEUED = 4,    // of the last eight due times: the own link carries no more
  SOME = 2,      // of them: pushed packets may be too much for it
  OFTEN = 6,     // of them: uplinks are what is short
  UNKNOWN = 0xFF // until there have been eight looks
};

// --- Uplinks

static int64_t passed(const weft_engine *e, int64_t now_us) {
  return (uint32_t)((uint32_t)now_us - e->shortage.looked_us);
}

void weft_shortage_start(weft_engine *e, int64_t now_us) {
  if (!e->shortage.measured)
    e->shortage.crowded = UNKNOWN;
  e->shortage.looked_us = (uint32_t)now_us;
  e->shortage.idle_us = 0;
}

// Counts an idle period. What of it was before the last look has been counted.
void weft_shortage_idle(weft_engine *e, int64_t rest_us, int64_t now_us) {
  const int64_t most = passed(e, now_us);
  const int64_t idle_us = e->shortage.idle_us + (rest_us < most ? rest_us : most);
  e->shortage.idle_us = (uint32_t)(idle_us < most ? idle_us : most);
}

// Whether the own link queues: packets of nearly all neighbours are late only where all of them
// pass. Neighbours that were not heard recently do not count.
static bool link_queues(const weft_engine *e, int64_t now_us) {
  size_t known = 0, queue = 0;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (!e->policy_view[i].known || now_us - n->stamp_us > RECENT_US)
      continue;
    known++;
    queue += weft_neighbour_queueing_us(n) >= QUEUE_US;
  }
  return 4 * queue >= 3 * known && known > 0;
}

static unsigned ones(unsigned bits) {
  unsigned count = 0;
  for (; bits; bits &= bits - 1)
    count++;
  return count;
}

// Updates the fraction of the time in which nothing was sent: at first since the first neighbour,
// as playback begins a lag after that; then as the moving average over segments.
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

// Whether the uplink is busy for three quarters of the time or more.
bool weft_shortage_full(const weft_engine *e) {
  return e->shortage.measured && 4 * e->shortage.idle <= ALL;
}

// What neighbours' maps say of the mesh. Those with a narrow link say nothing, nor does the source,
// which never has uplink to spare.
typedef struct around {
  size_t others;            // without the source
  size_t known, full, lack; // those whose link carries the stream; of these, those with a full
                            // uplink; without the segment
} around;

static around look_around(const weft_engine *e, uint64_t segment) {
  around a = {0};
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (!e->policy_view[i].known || n->is_source)
      continue;
    a.others++;
    if (e->policy_view[i].narrow)
      continue;
    a.known++;
    a.full += n->full;
    a.lack += !weft_neighbour_complete(e, n, segment);
  }
  return a;
}

typedef enum cause { CHURN, UPLINKS, LINK } cause;

// Why a segment is late. For want of uplinks: none is to spare here nor at three neighbours in
// four, and half of them do not have it, either. That comes first: where all uplinks are busy,
// packets have queued there. For want of link: packets queued half of the time.
static cause why_late(const weft_engine *e, const around *a) {
  const bool uplinks = a->known > 0 && 4 * a->full >= 3 * a->known && 2 * a->lack >= a->known;
  if (uplinks && weft_shortage_full(e))
    return UPLINKS;
  return ones(e->shortage.queued) >= QUEUED ? LINK : CHURN;
}

// --- What is forgone

static void forgo(weft_engine *e, unsigned classes) {
  e->shortage.forgone = classes & (WEFT_POLICY_CLASSES - 1);
  e->shortage.failed = 0;
  e->shortage.in_a_row = 0;
}

// Forgoes so many classes. What is under way already does not show the change yet, and is ignored.
static void forgo_settling(weft_engine *e, unsigned classes) {
  forgo(e, classes);
  const uint64_t on_the_way = e->horizon > e->play ? e->horizon - e->play : 0;
  e->shortage.in_a_row = (int8_t)(on_the_way < INT8_MAX ? -(int)on_the_way : -INT8_MAX);
}

// How many classes more to forgo: the fraction of this segment that is missing, of all that are
// left.
static unsigned more(const weft_engine *e, uint64_t segment) {
  const weft_policy_segment *held = weft_window_held(e, segment);
  const unsigned left = WEFT_POLICY_CLASSES - e->shortage.forgone;
  const unsigned lacks = left * (held->blocks - held->received) / (held->blocks + 1u);
  const unsigned rest = MOST - e->shortage.forgone, most = rest < STEP ? rest : STEP;
  return lacks < 1 ? 1 : lacks < most ? lacks : most;
}

static void late_again(weft_engine *e, uint64_t segment) {
  e->shortage.wary = e->shortage.narrow;
  if (e->shortage.narrow)
    forgo_settling(e, e->shortage.forgone + more(e, segment));
  else
    forgo(e, e->shortage.forgone + 1u);
}

static void all_in_time(weft_engine *e) {
  const unsigned fewer = e->shortage.forgone ? e->shortage.forgone - 1u : 0;
  const int round = e->shortage.wary ? 2 * ROUND : ROUND;
  if (e->shortage.narrow && e->shortage.in_a_row >= round) {
    e->shortage.wary = false;
    forgo_settling(e, fewer);
  } else if (e->shortage.in_a_row >= LONG)
    forgo(e, fewer);
}

// --- What is asked for

// Whether it can request everything: coded packets only, and only if the policy pushes, as policies
// for blocks and for requests ask by themselves. Where only the source is to send, no others are to
// be asked in its place.
static bool can_ask(const weft_engine *e) {
  const weft_policy *policy = e->options->policy;
  return !policy->ask && policy != &weft_policy_source_only && !e->codec->has &&
         weft_requests_room(e->options);
}

// Whether to begin: neighbours have had uplink to spare for a while, and three in four have what is
// due now, but what they push queues here.
static bool should_ask(const weft_engine *e, const around *a) {
  return a->known > 1 && 4 * a->lack <= a->known && e->shortage.crowded == 0 &&
         ones(e->shortage.queued) >= SOME && can_ask(e);
}

// Whether to stop: if everything were requested where uplinks are what is short, these would be
// busy with what is urgent, and nothing new would begin to spread.
static bool should_stop(const weft_engine *e, const around *a) {
  return a->others == 0 || ones(e->shortage.crowded) >= OFTEN;
}

// Begins or stops requesting everything; returns whether it did.
static bool turns(weft_engine *e, const around *a) {
  weft_shortage *s = &e->shortage;
  if (s->asks ? !should_stop(e, a) : !should_ask(e, a))
    return false;
  s->asks = !s->asks;
  s->narrow = s->narrow && !s->asks;
  forgo_settling(e, s->forgone);
  return true;
}

const weft_policy *weft_shortage_asking(const weft_engine *e) {
  return e->shortage.asks ? &weft_policy_pull : NULL;
}

// ---

void weft_shortage_learn(weft_engine *e, uint64_t segment, bool in_time, int64_t now_us) {
  weft_shortage *s = &e->shortage;
  const around a = look_around(e, segment);
  learn_idle(e, now_us);
  s->queued = (uint8_t)(s->queued << 1 | link_queues(e, now_us));
  s->crowded = (uint8_t)(s->crowded << 1 | (a.known > 0 && 8 * a.full >= 7 * a.known));
  if (turns(e, &a))
    return;
  const bool forgone = weft_policy_class(segment) < s->forgone;
  if (!in_time && !forgone) {
    const cause why = why_late(e, &a);
    if (why == CHURN)
      return;
    s->narrow = why == LINK;
  }
  if (s->in_a_row < 0) {
    s->in_a_row++;
    return;
  }
  if (forgone) {
    if (s->narrow)
      s->in_a_row++;
    else if (in_time && s->in_a_row >= ENOUGH)
      forgo(e, s->forgone - 1u);
    return;
  }
  s->failed = (uint8_t)(s->failed << 1 | !in_time);
  s->in_a_row = in_time ? (int8_t)(s->in_a_row + 1) : 0;
  if (ones(s->failed) >= FAILED && s->forgone < MOST)
    late_again(e, segment);
  else
    all_in_time(e);
  s->narrow = s->narrow && s->forgone;
}

bool weft_shortage_may_ask(const weft_engine *e, uint64_t segment) {
  const weft_policy_segment *held = weft_window_held(e, segment);
  const uint32_t lacks = (uint32_t)held->blocks - held->received;
  return e->shortage.forgone == 0 ||
         (weft_policy_class(segment) >= e->shortage.forgone && LAST_PART * lacks <= held->blocks);
}
