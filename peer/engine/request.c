// SPDX-License-Identifier: Apache-2.0
// What this peer asks for: for pull policies, for repair near deadlines, for missing manifests, and
// for segments that must come from one neighbour alone. What became of it is counted in asks.c;
// requests of others are answered in answer.c.
#include "peer/engine/internal.h"

// Whether it withheld this segment, or at least twice more others than it sent.
static bool withholds(const weft_engine *e, size_t index, uint64_t segment) {
  enum { OFTEN = 2 };
  const weft_neighbour *n = &e->neighbours[index];
  return n->marks[weft_place(e, segment)] & WEFT_MARK_WITHHELD || n->withheld >= OFTEN;
}

// A random neighbour that can help with the segment; WEFT_NO_NEIGHBOUR if there is none. With
// `verified`, only those that have all of it. Neighbours that have been asked for as much as they
// answer in time come after the others: if all peers kept asking the few that have everything
// first, these would answer too late, and no peer would have anything to pass on. Then comes the
// source, since every peer would ask it, and last those that claim to have the segment but withheld
// it.
static uint16_t helper(weft_engine *e, uint64_t segment, bool verified, uint16_t except) {
  enum { AT_LEISURE, BUSY, SOURCE, WITHHELD, KINDS };
  const uint16_t received = weft_window_held(e, segment)->received;
  uint16_t best[KINDS] = {WEFT_NO_NEIGHBOUR, WEFT_NO_NEIGHBOUR, WEFT_NO_NEIGHBOUR,
                          WEFT_NO_NEIGHBOUR};
  unsigned seen[KINDS] = {0};
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (!e->policy_view[i].known || n->ask_count >= weft_requests_room(e->options) || i == except)
      continue;
    const weft_policy_want *want = weft_neighbour_want(e, n, segment);
    if (!weft_neighbour_complete(e, n, segment) && (verified || !want || want->rank <= received))
      continue;
    const bool untrue = verified && withholds(e, i, segment);
    const int kind = untrue && !n->is_source    ? WITHHELD
                     : n->is_source             ? SOURCE
                     : n->asked < n->ask_window ? AT_LEISURE
                                                : BUSY;
    const uint8_t least = seen[kind] ? e->neighbours[best[kind]].withheld : UINT8_MAX;
    if (verified && n->withheld > least)
      continue;
    if (verified && n->withheld < least)
      seen[kind] = 0;
    if (weft_rng_below(&e->self.rng, ++seen[kind]) == 0)
      best[kind] = (uint16_t)i;
  }
  int kind = AT_LEISURE;
  while (kind < WITHHELD && best[kind] == WEFT_NO_NEIGHBOUR)
    kind++;
  return best[kind];
}

// Which of the 64 blocks from `base` on have been requested. If they must come from one neighbour
// alone, only requests to it since it was chosen count: nothing else is taken.
static uint64_t under_way(const weft_engine *e, uint64_t segment, uint16_t index, uint32_t base) {
  const weft_slot *slot = weft_window_slot(e, segment);
  const bool solo = slot->solo != WEFT_NO_NEIGHBOUR;
  uint64_t mask = 0;
  for (size_t i = solo ? index : 0; i < (solo ? index + 1u : e->used); i++) {
    const weft_neighbour *n = &e->neighbours[i];
    for (size_t a = 0; a < n->ask_count; a++) {
      const weft_request *r = &n->asks[a].request;
      if (r->segment == segment && r->kind == WEFT_REQUEST_BLOCKS && r->count == base &&
          (!solo || n->asks[a].hope_us >= slot->solo_us))
        mask |= r->mask;
    }
  }
  return mask;
}

// Requests the blocks that are neither held nor requested yet, by their numbers.
static void ask_blocks(weft_engine *e, uint64_t segment, uint16_t index, int64_t now_us) {
  const uint32_t blocks = weft_window_held(e, segment)->blocks;
  const void *opened = weft_window_slot(e, segment)->segment;
  uint8_t have[WEFT_MAX_BLOCKS / 8] = {0};
  if (opened)
    e->codec->has(e->codec->user, opened, have);
  for (uint32_t base = 0; base < blocks; base += 64) {
    weft_request r = {.segment = segment, .kind = WEFT_REQUEST_BLOCKS, .count = (uint16_t)base};
    for (uint32_t b = base; b < blocks && b < base + 64; b++)
      r.mask |= have[b / 8] >> b % 8 & 1 ? 0 : UINT64_C(1) << (b - base);
    r.mask &= ~under_way(e, segment, index, base);
    if (r.mask)
      weft_request_send(e, index, &r, now_us);
  }
}

static void ask_packets(weft_engine *e, uint64_t segment, uint16_t index, int64_t now_us) {
  const weft_policy_segment *held = weft_window_held(e, segment);
  const int lacks = held->blocks - held->received - held->asked;
  if (lacks <= 0 || index == WEFT_NO_NEIGHBOUR)
    return;
  if (e->codec->has) {
    ask_blocks(e, segment, index, now_us);
    return;
  }
  weft_request_send(
      e, index,
      &(weft_request){.segment = segment, .kind = WEFT_REQUEST_PACKETS, .count = (uint16_t)lacks},
      now_us);
}

static void count_withheld(const weft_engine *e, weft_neighbour *n, uint64_t segment) {
  uint8_t *mark = &n->marks[weft_place(e, segment)];
  n->withheld = (uint8_t)(n->withheld + (!(*mark & WEFT_MARK_WITHHELD) && n->withheld < UINT8_MAX));
  *mark |= WEFT_MARK_WITHHELD;
}

// Has one neighbour alone send a segment after a hash failure, so that the one that spoils it is
// known. A neighbour that claims to have it and withholds it comes after all others; if only such
// are left besides the source, it stays with the source.
static void choose_solo(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const int64_t patience = 10 * weft_ask_every(e);
  weft_neighbour *n = slot->solo != WEFT_NO_NEIGHBOUR ? &e->neighbours[slot->solo] : NULL;
  const bool there = n && n->state == WEFT_NEIGHBOUR_OPEN;
  const bool in_time = there && now_us - slot->solo_us < patience;
  if (there && !in_time)
    count_withheld(e, n, segment);
  const uint16_t next = in_time ? slot->solo : helper(e, segment, true, slot->solo);
  const bool stays = there && (next == WEFT_NO_NEIGHBOUR || // no other has it: the answer was lost
                               (n->is_source && withholds(e, next, segment)));
  if (in_time || stays) {
    ask_packets(e, segment, slot->solo, now_us);
    return;
  }
  if (next == WEFT_NO_NEIGHBOUR)
    return;
  weft_slot_close(e, slot); // what another one sent must not be mixed with this
  weft_data_show_rank(e, segment, now_us);
  slot->solo = next;
  slot->solo_us = now_us;
  ask_packets(e, segment, next, now_us);
}

void weft_request_manifest(weft_engine *e, uint64_t segment, int64_t now_us) {
  if (e->degree == 0)
    return;
  const size_t start = (size_t)weft_rng_below(&e->self.rng, e->used);
  for (size_t i = 0; i < e->used; i++) {
    const size_t index = (start + i) % e->used;
    if (!e->policy_view[index].known)
      continue;
    weft_request_send(e, index, &(weft_request){.segment = segment, .kind = WEFT_REQUEST_MANIFEST},
                      now_us);
    return;
  }
}

static bool urgent(const weft_engine *e, uint64_t segment, int64_t now_us) {
  int64_t at_us;
  if (!weft_is_paced(e))
    return false;
  if (!weft_is_live(e) && !e->playing)
    return weft_play_begins_with(e, segment);
  if (weft_engine_play_time(e, segment, &at_us) != WEFT_OK)
    return segment == e->play; // playback waits for it
  return at_us - now_us < weft_ask_ahead(e);
}

// Whether a segment without a manifest may soon be urgent. Until its manifest comes, it has the
// time of the next segment that has one, and a newcomer knows the newest alone: what it plays first
// would be requested when it is due. So its time is reckoned back from the newest, with twice the
// usual lead.
static bool untimed(const weft_engine *e, uint64_t segment, int64_t now_us) {
  int64_t newest_us;
  if (!weft_is_live(e) || segment >= e->timed_segment ||
      weft_engine_play_time(e, e->timed_segment, &newest_us) != WEFT_OK)
    return false;
  const uint64_t steps = e->timed_segment - segment;
  return steps > e->window ||
         newest_us - (int64_t)steps * weft_segment_us(e) - now_us < 2 * weft_ask_ahead(e);
}

// The policy that may name requests.
static const weft_policy *asking(const weft_engine *e) {
  const weft_policy *const instead = weft_shortage_asking(e);
  return instead ? instead : e->options->policy;
}

static bool fetches(const weft_engine *e) {
  return weft_requests_room(e->options) && !e->self.source && e->started;
}

static bool lacking(const weft_engine *e) {
  return fetches(e) && e->degree && (e->missing < weft_window_edge(e) || e->ask_count);
}

void weft_requests_timed(weft_engine *e, uint64_t segment, int64_t now_us) {
  if (lacking(e) && segment >= e->missing && urgent(e, segment, now_us))
    e->ask_us = now_us;
}

static void mend(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  const weft_policy_segment *held = weft_window_held(e, segment);
  if (slot->complete || slot->skipped || held->blocks == 0)
    return;
  const bool unsigned_yet = e->options->trust && !slot->manifest;
  // Live, anybody can send packets of a segment further ahead before it is made.
  const bool made = !weft_is_live(e) || segment < e->horizon + 2;
  if (unsigned_yet && made && (held->received > 0 || untimed(e, segment, now_us)))
    weft_request_manifest(e, segment, now_us);
  if (!unsigned_yet && slot->trial) // there may have been no memory before
    weft_held_try(e, segment, now_us);
  if (slot->complete)
    return;
  if (!unsigned_yet && weft_data_rank(e, slot->segment) == held->blocks)
    weft_data_full(e, segment, now_us); // likewise
  else if (slot->failed)
    choose_solo(e, segment, now_us);
  else if (!asking(e)->ask && weft_shortage_may_ask(e, segment) && urgent(e, segment, now_us))
    ask_packets(e, segment, helper(e, segment, false, WEFT_NO_NEIGHBOUR), now_us);
}

// When to look again. Live, with nothing requested and nothing to verify, there is nothing to do
// until the oldest missing segment becomes urgent, give or take what the clock still moves.
static int64_t next_look(const weft_engine *e, int64_t now_us) {
  const int64_t soon_us = now_us + weft_ask_every(e), late_us = now_us + 10 * weft_ask_every(e);
  int64_t at_us;
  if (asking(e)->ask || e->options->trust || e->ask_count || !weft_is_live(e) ||
      weft_engine_play_time(e, e->missing, &at_us) != WEFT_OK)
    return soon_us;
  at_us -= weft_ask_ahead(e) - 1;
  return at_us < soon_us ? soon_us : at_us < late_us ? at_us : late_us;
}

void weft_requests_tick(weft_engine *e, int64_t now_us) {
  if (e->ask_us == WEFT_ENGINE_NEVER && lacking(e))
    e->ask_us = now_us + weft_ask_every(e);
  if (now_us < e->ask_us)
    return;
  if (e->ask_count)
    weft_asks_expire(e, now_us);
  e->ask_us = WEFT_ENGINE_NEVER;
  for (uint64_t s = e->missing; fetches(e) && s < weft_window_edge(e); s++)
    if (weft_window_has(e, s)) // what is held needs this even if no neighbour is left
      mend(e, s, now_us);
  if (lacking(e)) { // a segment that failed has set ask_us to now
    const int64_t next_us = next_look(e, now_us);
    e->ask_us = next_us < e->ask_us ? next_us : e->ask_us;
  }
  e->ask_idle = false;
}

void weft_requests_again(weft_engine *e, int64_t now_us) {
  const int64_t again_us = now_us + weft_ask_every(e);
  e->ask_us = again_us < e->ask_us ? again_us : e->ask_us;
}

int64_t weft_requests_deadline(const weft_engine *e) { return e->ask_us; }

void weft_requests_ask(weft_engine *e, int64_t now_us) {
  const weft_policy *const policy = asking(e);
  if (!policy->ask || e->ask_idle || e->self.source || !e->started || e->farewell)
    return;
  e->ask_idle = true;
  for (size_t i = 0; i < e->used * weft_requests_room(e->options); i++) {
    const weft_policy_view view = weft_engine_view(e, now_us);
    weft_policy_choice choice = {0};
    if (!policy->ask(policy->user, &view, &e->self.rng, &choice))
      return;
    if (choice.neighbour >= e->used || !weft_window_has(e, choice.segment) ||
        e->neighbours[choice.neighbour].state != WEFT_NEIGHBOUR_OPEN ||
        e->neighbours[choice.neighbour].ask_count >= weft_requests_room(e->options) ||
        (choice.mask ? choice.base % 64 != 0 || choice.base >= e->options->blocks
                     : choice.count == 0 || choice.count > WEFT_MAX_BLOCKS))
      return; // outside the view
    weft_request_send(
        e, choice.neighbour,
        &(weft_request){.segment = choice.segment,
                        .kind = choice.mask ? WEFT_REQUEST_BLOCKS : WEFT_REQUEST_PACKETS,
                        .count = choice.mask ? choice.base : (uint16_t)choice.count,
                        .mask = choice.mask},
        now_us);
  }
}
