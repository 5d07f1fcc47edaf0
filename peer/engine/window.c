// SPDX-License-Identifier: Apache-2.0
// The window of segments: what is held, and when it moves on.
#include <string.h>

#include "peer/engine/internal.h"

void weft_window_set_end(weft_engine *e, uint64_t end_bytes) {
  e->end_known = true;
  e->end_bytes = end_bytes;
  e->total = end_bytes / e->segment_bytes + (end_bytes % e->segment_bytes != 0);
}

size_t weft_window_bytes(const weft_engine *e, uint64_t segment) {
  const uint64_t segment_bytes = weft_segment_bytes(e);
  if (weft_window_has(e, segment) && weft_window_slot(e, segment)->manifest)
    return weft_window_slot(e, segment)->bytes;
  if (!e->end_known || segment + 1 < weft_window_total(e))
    return (size_t)segment_bytes;
  return segment < weft_window_total(e) ? (size_t)(e->end_bytes - segment * segment_bytes) : 0;
}

uint32_t weft_window_count_blocks(const weft_engine *e, uint64_t segment) {
  const size_t k = e->options->block_bytes, bytes = weft_window_bytes(e, segment);
  return (uint32_t)(bytes / k + (bytes % k != 0));
}

// Whether all that a fetch still lacks of what it takes, and of what exists, are a few packets.
static bool lacks_few(const weft_engine *e) {
  if (weft_is_paced(e) || e->self.source || !e->options->policy->pick)
    return false;
  const uint64_t edge = weft_window_edge(e), taken = e->missing + e->options->ahead;
  const uint64_t end = e->options->ahead && taken < edge ? taken : edge;
  size_t lacks = 0;
  for (uint64_t s = e->missing; s < end && 4 * lacks <= e->options->blocks; s++)
    lacks += weft_window_held(e, s)->blocks - weft_window_held(e, s)->received;
  return lacks > 0 && 4 * lacks <= e->options->blocks;
}

void weft_engine_changed(weft_engine *e) {
  e->few = lacks_few(e);
  e->idle = e->ask_idle = false;
  e->version++;
}

// --- Places

void weft_slot_close(weft_engine *e, weft_slot *slot) {
  e->codec->close(e->codec->user, slot->segment);
  slot->segment = NULL;
  slot->gathering = WEFT_GATHERING_NONE;
  e->codec->close(e->codec->user, slot->trial);
  slot->trial = NULL;
  slot->tried = false;
  weft_held_drop(e, slot);
  weft_free(e->ctx, WEFT_MEM_HOST, slot->reveal);
  slot->reveal = NULL;
}

void weft_window_place(weft_engine *e, uint64_t segment) {
  const size_t at = weft_place(e, segment);
  weft_slot *slot = &e->slots[at];
  weft_slot_close(e, slot);
  e->tell -= (uint32_t)slot->tell_decoded + slot->tell_play + slot->tell_skip + slot->tell_load;
  *slot = (weft_slot){.solo = WEFT_NO_NEIGHBOUR, .next_reveal_us = WEFT_ENGINE_NEVER};
  e->number[at] = segment;
  if (e->blocks)
    memset(e->blocks + at * e->blocks_stride, 0, e->blocks_stride);
  e->held[at] = (weft_policy_segment){.blocks = (uint16_t)weft_window_count_blocks(e, segment)};
  for (size_t i = 0; i < e->used; i++)
    e->neighbours[i].marks[at] = 0;
}

void weft_window_reshape(weft_engine *e, uint64_t segment, uint16_t blocks) {
  const size_t at = weft_place(e, segment);
  weft_policy_segment *held = &e->held[at];
  weft_slot_close(e, &e->slots[at]);
  if (e->blocks)
    memset(e->blocks + at * e->blocks_stride, 0, e->blocks_stride);
  held->blocks = blocks;
  held->rank = held->received = 0; // what was requested may still come
  for (size_t i = 0; i < e->used; i++) {
    weft_policy_want *want = weft_neighbour_want(e, &e->neighbours[i], segment);
    if (want)
      want->common = 0;
  }
}

// Moves the window to `tail`: segments before it make room.
void weft_window_move(weft_engine *e, uint64_t tail) {
  if (tail <= e->tail)
    return;
  const uint64_t gone = tail - e->tail;
  const uint64_t from = gone > e->window ? tail : e->tail + e->window;
  e->tail = tail;
  for (uint64_t s = from; s < tail + e->window; s++) {
    // Skipped segments may be dropped before that is reported, but not played ones, which stay
    // until they are read. So the skipped ones are the last of those dropped, and their number is
    // enough to know.
    const bool told = gone > e->window || !weft_window_slot(e, s)->tell_skip;
    e->missed = told ? 0 : (uint16_t)(e->missed + 1);
    weft_window_place(e, s);
  }
  e->released = e->released < tail ? tail : e->released;
  if (e->missing < tail) {
    e->missing = tail;
    weft_window_in_order(e);
  }
  weft_engine_changed(e);
}

void weft_window_jump(weft_engine *e, uint64_t segment) {
  e->tail = e->missing = e->released = e->play = segment;
  e->missed = 0;
  for (uint64_t s = segment; s < segment + e->window; s++)
    weft_window_place(e, s);
  e->epoch++;
  weft_engine_changed(e);
}

// --- Completion and progress

void weft_window_in_order(weft_engine *e) {
  while (weft_window_has(e, e->missing)) {
    const weft_slot *slot = weft_window_slot(e, e->missing);
    if (!slot->complete && !slot->skipped)
      break;
    e->missing++;
  }
}

void weft_window_complete(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  weft_policy_segment *held = weft_window_held(e, segment);
  slot->complete = true;
  if (slot->solo != WEFT_NO_NEIGHBOUR && e->neighbours[slot->solo].withheld)
    e->neighbours[slot->solo].withheld--;
  slot->solo = WEFT_NO_NEIGHBOUR;
  if (!weft_is_paced(e))
    slot->solo_us = now_us;
  held->rank = held->received = held->blocks;
  weft_held_settle(e, segment, now_us);
  weft_held_drop(e, slot);
  e->codec->close(e->codec->user, slot->trial);
  slot->trial = NULL;
  if (e->blocks)
    memset(e->blocks + (weft_place(e, segment)) * e->blocks_stride, 0xFF, e->blocks_stride);
  weft_rereads_keep(e, segment);
  if (!e->self.source)
    weft_tell(e, &slot->tell_decoded);
  e->statistics.segments++;
  weft_window_in_order(e);
  for (size_t i = 0; i < e->used && !e->self.source; i++)
    if (e->neighbours[i].state == WEFT_NEIGHBOUR_OPEN &&
        !weft_neighbour_complete(e, &e->neighbours[i], segment))
      weft_neighbour_mark(e, i, segment, WEFT_MARK_BRAKE, WEFT_DUE_BRAKES);
  weft_window_learn_horizon(e, segment + 1, now_us);
  weft_engine_changed(e);
}

static bool lacks_any(const weft_engine *e, const weft_neighbour *n, uint64_t from, uint64_t to) {
  for (uint64_t s = from > n->first ? from : n->first; s < to && s < n->accept_end; s++)
    if (n->wants[weft_place(e, s)].accepts)
      return true;
  return false;
}

// Whether a neighbour lacks a segment that was dropped here, and has all that its window takes of
// what is here. It can advance only through others, which wait for it if they have that segment.
static bool far_behind(const weft_engine *e, const weft_neighbour *n) {
  return lacks_any(e, n, 0, e->tail) && !lacks_any(e, n, e->tail, e->released);
}

// The first segment that a neighbour still waits for from here (bulk). One that it has all of, but
// has not verified, may lack its manifest, or may have to be fetched again.
static uint64_t waits_for(const weft_engine *e, size_t index) {
  const weft_neighbour *n = &e->neighbours[index];
  if (weft_given_up(e, index))
    return e->released;
  if (n->state == WEFT_NEIGHBOUR_GREETING)
    return e->tail;
  if (n->state != WEFT_NEIGHBOUR_OPEN || far_behind(e, n))
    return e->released;
  uint64_t s = n->first > e->tail ? n->first : e->tail;
  while (!e->options->trust && s < e->released) {
    const weft_policy_want *want = weft_neighbour_want(e, n, s);
    if (!want || want->rank < weft_window_blocks(e, s))
      break;
    s++;
  }
  return s;
}

// The first segment that the application has not released, or that a neighbour waits for. No
// neighbour is waited for if segments can be loaded again.
static uint64_t needed_from(const weft_engine *e) {
  uint64_t from = e->released;
  for (size_t i = 0; i < e->used && from > e->tail && !e->rereads; i++) {
    const uint64_t waits = waits_for(e, i);
    from = waits < from ? waits : from;
  }
  return from;
}

// The end of what there is to hold. A source needs one place more than it has filled; others take
// segments before they know that these exist, at most `ahead` of what they lack.
static uint64_t known_end(const weft_engine *e) {
  const uint64_t known = e->rumour > e->horizon ? e->rumour : e->horizon;
  const uint64_t end = e->end_known     ? weft_window_total(e)
                       : e->self.source ? known + 1
                                        : known + (e->window + 1) / 2;
  const uint64_t ahead = e->options->ahead, taken = e->missing + ahead;
  return ahead && !e->self.source && end > taken ? taken : end;
}

// Where the window should begin. Bulk: segments that no neighbour waits for stay while there is
// room, for peers that come later; and while there is no neighbour, as nothing comes that needs
// room.
uint64_t weft_window_tail_wanted(const weft_engine *e) {
  if (weft_is_paced(e)) {
    const uint64_t behind = e->options->behind ? e->options->behind : e->window / 4;
    return e->released > behind ? e->released - behind : 0;
  }
  const uint64_t end = known_end(e);
  if (e->degree == 0 || end <= e->tail + e->window)
    return e->tail;
  const uint64_t room = end - e->window, needed = needed_from(e);
  return needed < room ? needed : room;
}

static bool say_farewell(weft_engine *e) {
  bool said = false;
  e->farewell = true;
  for (size_t i = 0; i < e->used; i++)
    if (e->neighbours[i].state == WEFT_NEIGHBOUR_OPEN) {
      e->neighbours[i].bye = WEFT_BYE_FINISHED;
      weft_neighbour_due(e, i, WEFT_DUE_BYE);
      said = true;
    }
  return said;
}

bool weft_engine_farewell_again(weft_engine *e) {
  return e->farewell && !e->leaving && say_farewell(e);
}

void weft_window_advance(weft_engine *e) {
  if (!e->self.source) // a source makes room when there is something to put or to load
    weft_window_move(e, weft_window_tail_wanted(e));
  if (!e->farewell && !weft_is_paced(e) && weft_engine_finished(e))
    (void)say_farewell(e);
}

// --- The end of the stream, and how far it is known

static void refresh_blocks(weft_engine *e) {
  for (size_t at = 0; at < e->window; at++) {
    const uint64_t segment = e->number[at];
    if (segment == WEFT_NO_SEGMENT)
      continue;
    const uint16_t blocks = (uint16_t)weft_window_count_blocks(e, segment);
    if (e->slots[at].complete)
      e->held[at].blocks = e->held[at].rank = e->held[at].received = blocks;
    else if (e->held[at].blocks != blocks)
      weft_window_reshape(e, segment, blocks);
  }
  for (size_t i = 0; i < e->used; i++) {
    weft_neighbour *n = &e->neighbours[i];
    for (uint64_t s = n->first; s < n->accept_end; s++)
      weft_want_refresh(e, &n->wants[weft_place(e, s)], s);
  }
}

weft_status weft_window_learn_end(weft_engine *e, uint64_t end_bytes) {
  if (e->end_known)
    return e->end_bytes == end_bytes ? WEFT_OK : WEFT_E_FOREIGN;
  weft_window_set_end(e, end_bytes);
  if (e->horizon > weft_window_total(e)) { // contradicts what was seen
    e->end_known = false;
    e->end_bytes = 0;
    return WEFT_E_FOREIGN;
  }
  e->horizon = weft_window_total(e);
  if (e->rumour > e->horizon) // or it would for ever seek what does not exist
    e->rumour = e->horizon;
  refresh_blocks(e);
  weft_rereads_start(e);
  weft_engine_changed(e);
  for (size_t i = 0; i < e->used; i++) // worth telling at once
    if (e->neighbours[i].state == WEFT_NEIGHBOUR_OPEN)
      weft_neighbour_due(e, i, WEFT_DUE_MAP);
  return WEFT_OK;
}

void weft_window_learn_horizon(weft_engine *e, uint64_t horizon, int64_t now_us) {
  if (horizon <= e->horizon || (e->end_known && horizon > weft_window_total(e)))
    return;
  e->horizon = horizon;
  weft_play_learn(e, horizon - 1, now_us);
  weft_engine_changed(e);
}

// Without trust this is the horizon. With it, segments that are not signed may be requested, but
// they are not waited for and do not tell the time.
void weft_window_hear_horizon(weft_engine *e, uint64_t horizon, int64_t now_us) {
  if (e->self.source)
    return;
  if (!e->options->trust) {
    weft_window_learn_horizon(e, horizon, now_us);
  } else if (horizon > e->rumour) {
    e->rumour = horizon;
    e->idle = e->ask_idle = false;
  }
}

uint64_t weft_window_edge(const weft_engine *e) {
  const uint64_t known = e->rumour > e->horizon ? e->rumour : e->horizon, end = e->tail + e->window;
  return known < end ? known : end;
}

bool weft_engine_done(const weft_engine *e) {
  const bool begun = e->started || weft_window_total(e) == 0; // an empty stream never starts
  return e->end_known && begun && e->released >= weft_window_total(e);
}

bool weft_engine_finished(const weft_engine *e) {
  const bool bulk = !weft_is_paced(e) && !weft_loads(e) && !e->rereads;
  if (!weft_engine_done(e) || (bulk && needed_from(e) < weft_window_total(e)))
    return false;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (weft_given_up(e, i))
      continue;
    if (n->state == WEFT_NEIGHBOUR_GREETING ||
        (n->state == WEFT_NEIGHBOUR_OPEN &&
         (!n->knows_end || (!bulk && n->first < weft_window_total(e)))))
      return false;
  }
  return true;
}
