// SPDX-License-Identifier: Apache-2.0
// For whom segments are kept. A bulk peer waits for the slowest of its neighbours, and a source
// that loads keeps a segment until those that lack it have it. But claiming to lack something costs
// a neighbour nothing: one that claims to lack the same segment for ever would hold up all others.
// So a neighbour that makes no progress although it could is not waited for until it does.
//
// Others that wait for that neighbour make no progress either, and must not be given up for it:
// what they lack is the segment after their windows, they got stuck later, and they have twice the
// time.
#include "peer/engine/internal.h"

enum {
  LOADED_US = 5000000, // for streams that play: a source can load again what it loads
  LEAST_TIMES = 4      // bulk: so many repetitions of what it has to say fit into any patience
};

// How long a neighbour may make no progress; 0: no limit.
static int64_t patience(const weft_engine *e) {
  return !weft_is_paced(e) ? e->options->patience_us : weft_loads(e) ? LOADED_US : 0;
}

// The same, for this neighbour. A HELLO or a map may be lost and is repeated. Besides, each
// supplier draws anew after each map whether it sends one of the last packets, so honest peers get
// none now and then, and have nothing to say until they repeat the map. A shorter patience would
// give them up for that.
static int64_t patience_with(const weft_engine *e, const weft_neighbour *n) {
  const int64_t repeats_us = n->state == WEFT_NEIGHBOUR_GREETING
                                 ? WEFT_TIMER(e, hello_us, 200000)
                                 : WEFT_TIMER(e, map_idle_us, 1000000);
  const int64_t least_us = weft_is_paced(e) ? 0 : LEAST_TIMES * repeats_us;
  const int64_t patience_us = patience(e);
  return patience_us > least_us ? patience_us : least_us;
}

static bool here(const weft_engine *e, uint64_t segment) {
  return weft_window_has(e, segment) && weft_window_slot(e, segment)->complete;
}

// Whether a segment is here, or has been dropped already. What is still to come is no neighbour's
// fault.
static bool was_here(const weft_engine *e, uint64_t segment) {
  return segment < e->tail || here(e, segment);
}

// A session costs little, so a newcomer in the place of a neighbour that made no progress has what
// is left of its time. One that said it had finished did make progress, whatever its last map said.
void weft_wait_start(weft_engine *e, size_t index, const weft_neighbour *before, int64_t now_us) {
  weft_wait *w = e->waits ? &e->waits[index] : NULL;
  const bool stuck = w && before->generation && !before->finished &&
                     (w->given_up || !before->mapped || was_here(e, w->lacks));
  if (w && !stuck)
    *w = (weft_wait){.since_us = now_us};
}

// Takes note of a map: whether the neighbour made progress.
void weft_wait_heard(weft_engine *e, size_t index, bool first_word, int64_t now_us) {
  const weft_neighbour *n = &e->neighbours[index];
  if (!patience(e))
    return;
  weft_wait *w = &e->waits[index];
  uint64_t s = n->first;
  while (s < n->accept_end && !n->wants[weft_place(e, s)].accepts)
    s++;
  const bool room = s < n->accept_end, on = !first_word && s > w->furthest;
  if (on || (!first_word && room && !w->has_room)) // room: once for each segment
    w->since_us = now_us;
  w->given_up = w->given_up && !on;
  w->has_room = room || (w->has_room && !first_word && !on);
  w->furthest = first_word || on ? s : w->furthest;
  w->lacks = s;
}

int64_t weft_wait_deadline(const weft_engine *e, size_t index) {
  const weft_neighbour *n = &e->neighbours[index];
  if (!patience(e) || weft_given_up(e, index) || n->finished)
    return WEFT_ENGINE_NEVER;
  const weft_wait *w = &e->waits[index];
  if (!n->mapped)
    return w->since_us + patience_with(e, n);
  if (!was_here(e, w->lacks))
    return WEFT_ENGINE_NEVER;
  const int64_t here_us = here(e, w->lacks) ? weft_window_slot(e, w->lacks)->solo_us : 0;
  const int64_t since_us = here_us > w->since_us ? here_us : w->since_us;
  return since_us + (w->has_room ? 1 : 2) * patience_with(e, n);
}

void weft_wait_look(weft_engine *e, size_t index, int64_t now_us) {
  if (now_us < weft_wait_deadline(e, index))
    return;
  e->waits[index].given_up = true;
  weft_neighbour_timer(e, index);
  weft_window_advance(e);
}
