// SPDX-License-Identifier: Apache-2.0
// For whom segments are kept. Who fetches waits for the slowest of his neighbours, and a source
// that loads what is asked for keeps it until those who lack it have it. But a neighbour's word for
// what it lacks costs it nothing: one that says to lack the same for ever would hold up all others.
// So whoever does not get on though he could is waited for no more until he does.
//
// Those that wait for him do not get on either, and must not be given up for that: it is the next
// segment after their windows that they lack, later than he, and they have twice the time.
#include "peer/engine/internal.h"

enum { LOADED_US = 5000000 }; // of what plays: what a source loads it can load again

// 0: no limit.
static int64_t patience(const weft_engine *e) {
  return !weft_is_paced(e) ? e->options->patience_us : weft_loads(e) ? LOADED_US : 0;
}

static bool here(const weft_engine *e, uint64_t segment) {
  return weft_window_has(e, segment) && weft_window_slot(e, segment)->complete;
}

// Not what is still to come here, for which nobody can be blamed: what is here, and what was
// dropped already.
static bool was_here(const weft_engine *e, uint64_t segment) {
  return segment < e->tail || here(e, segment);
}

// A session costs little, so who comes at the place of one that did not get on has what is left of
// his time. One that said to have all got on, whatever his last map said.
void weft_wait_start(weft_engine *e, size_t index, const weft_neighbour *before, int64_t now_us) {
  weft_wait *w = e->waits ? &e->waits[index] : NULL;
  const bool stuck = w && before->generation && !before->finished &&
                     (w->given_up || !before->mapped || was_here(e, w->lacks));
  if (w && !stuck)
    *w = (weft_wait){.since_us = now_us};
}

// It said what it has: whether it got on.
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
  const int64_t patience_us = patience(e);
  if (!patience_us || weft_given_up(e, index) || e->neighbours[index].finished)
    return WEFT_ENGINE_NEVER;
  const weft_wait *w = &e->waits[index];
  if (!e->neighbours[index].mapped)
    return w->since_us + patience_us;
  if (!was_here(e, w->lacks))
    return WEFT_ENGINE_NEVER;
  const int64_t here_us = here(e, w->lacks) ? weft_window_slot(e, w->lacks)->solo_us : 0;
  const int64_t since_us = here_us > w->since_us ? here_us : w->since_us;
  return since_us + (w->has_room ? 1 : 2) * patience_us;
}

void weft_wait_look(weft_engine *e, size_t index, int64_t now_us) {
  if (now_us < weft_wait_deadline(e, index))
    return;
  e->waits[index].given_up = true;
  weft_neighbour_timer(e, index);
  weft_window_advance(e);
}
