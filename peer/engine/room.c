// SPDX-License-Identifier: Apache-2.0
// Who has a place here, and which neighbour makes room: for a newcomer, for peers that a viewer on
// demand needs more, or because it is of little use.
#include "peer/engine/internal.h"

enum {
  GRACE_US = 15000000,
  TURN_US = 1000000,  // a source on demand parts with one neighbour per this time at most,
  STAY_US = 5000000,  // and with none that has been here for less than this
  LATELY_US = 1000000 // a map of one that came since then may be on its way
};

// Whether the source's places rotate among newcomers. Live, its first neighbours keep theirs. On
// demand, peers get what they need next from each other sooner or later, except one that begins
// when all others are far ahead.
static bool gives_in_turn(const weft_engine *e) { return weft_loads(e) && weft_is_paced(e); }

// --- Who gives way to whom
//
// Anybody can have any number of identities, and claim, of itself and of others, whatever makes a
// peer part with a neighbour. So no neighbour gives way to a newcomer whose address has as many
// places here, or whose network has more, unless both have the same address.

// Counts the places of an address or a network; 0 for one of its own (number 0).
static size_t places_of(const weft_engine *e, uint16_t number, bool network) {
  size_t count = 0;
  for (size_t i = 0; number && i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    const uint16_t own = network ? n->origin.network : n->origin.address;
    count += own == number && n->state != WEFT_NEIGHBOUR_FREE && n->state != WEFT_NEIGHBOUR_LOST;
  }
  return count;
}

bool weft_room_gives_way(const weft_engine *e, const weft_neighbour *n) {
  const weft_origin *own = &n->origin, *to = &e->sought_by;
  if (to->address == 0 || own->address == to->address)
    return true;
  const size_t address = own->address ? places_of(e, own->address, false) : 1;
  const size_t network = own->network ? places_of(e, own->network, true) : 1;
  return address > places_of(e, to->address, false) && network >= places_of(e, to->network, true);
}

static void seek(weft_engine *e, weft_origin newcomer) {
  const size_t has = places_of(e, newcomer.address, false);
  const size_t least = places_of(e, e->sought_by.address, false);
  if (e->sought == 0 || has < least ||
      (has == least &&
       places_of(e, newcomer.network, true) <= places_of(e, e->sought_by.network, true)))
    e->sought_by = newcomer;
  if (e->sought < e->options->neighbours_max)
    e->sought++;
}

size_t weft_engine_refusal(weft_engine *e, const weft_origin *newcomer,
                           uint8_t out[WEFT_DATAGRAM_MAX]) {
  seek(e, newcomer ? *newcomer : (weft_origin){0});
  if ((!e->self.source || gives_in_turn(e)) && e->room_us < e->exchange_us &&
      e->exchange_us != WEFT_ENGINE_NEVER)
    e->exchange_us = e->room_us;
  return weft_refer_put(e, SIZE_MAX, WEFT_REFER_FULL, out);
}

// --- Who makes room

// The neighbour that gave least since the last look, if it gave nothing new; else SIZE_MAX.
static size_t poorest(const weft_engine *e, int64_t now_us) {
  size_t worst = SIZE_MAX;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (n->state != WEFT_NEIGHBOUR_OPEN || n->is_source || now_us - n->added_us < GRACE_US)
      continue;
    const uint64_t gave = n->received_innovative - n->innovative_before;
    if (gave < least) {
      least = gave;
      worst = i;
    }
  }
  return least == 0 ? worst : SIZE_MAX;
}

static void part_with(weft_engine *e, size_t index) {
  weft_neighbour *n = &e->neighbours[index];
  n->bye = WEFT_BYE_REPLACED;
  n->leaving = true; // gone once it has been told
  e->due_count -= e->due[index] != 0;
  e->due[index] = 0;
  weft_neighbour_due(e, index, WEFT_DUE_BYE);
}

static void replace(weft_engine *e, int64_t now_us) {
  const size_t index = poorest(e, now_us);
  for (size_t i = 0; i < e->used; i++)
    e->neighbours[i].innovative_before = e->neighbours[i].received_innovative;
  if (index == SIZE_MAX || e->degree < e->options->neighbours_target || e->candidate_count == 0 ||
      e->missing >= e->horizon)
    return;
  part_with(e, index);
}

// The neighbour with most suppliers, if these are more than a peer looks for, so that it will dial
// no other instead, and if some neighbour here has no more than half that target.
static size_t richest(const weft_engine *e) {
  const size_t target = e->options->neighbours_target;
  size_t best = SIZE_MAX, most = target, least = SIZE_MAX;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    const size_t suppliers = e->policy_view[i].suppliers;
    if (!e->policy_view[i].known || n->leaving)
      continue;
    least = suppliers < least ? suppliers : least;
    if (n->is_source || suppliers <= most || !weft_room_gives_way(e, n))
      continue;
    most = suppliers;
    best = i;
  }
  return 2 * least <= target ? best : SIZE_MAX;
}

// On demand, at the source: how many others can give a neighbour what it needs next. Those that are
// neighbours here and have it stand for others elsewhere, and its own map tells of those around it,
// of which this source is one.
static size_t other_sources(const weft_engine *e, size_t index) {
  const uint64_t next = e->waits[index].lacks;
  const weft_policy_want *want = weft_neighbour_want(e, &e->neighbours[index], next);
  size_t count = want && want->helpers > 1 ? want->helpers - 1u : 0;
  for (size_t other = 0; other < e->used; other++)
    count += other != index && !e->neighbours[other].leaving &&
             weft_neighbour_complete(e, &e->neighbours[other], next);
  return count;
}

static size_t best_served(const weft_engine *e, int64_t now_us) {
  size_t best = SIZE_MAX, most = 0;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (n->state != WEFT_NEIGHBOUR_OPEN || !n->mapped || n->leaving ||
        now_us - n->added_us < STAY_US || !weft_room_gives_way(e, n))
      continue;
    const size_t count = other_sources(e, i);
    if (count > most) {
      most = count;
      best = i;
    }
  }
  return best;
}

// Parts with a neighbour for refused newcomers, which may be in need: where most peers are behind
// NATs, a latecomer may have one neighbour or none while peers that can be dialled keep all places
// for each other. Places of neighbours in doubt go first (weft_neighbour_gone).
static void make_room(weft_engine *e, int64_t now_us) {
  const bool in_turn = gives_in_turn(e);
  if (!e->sought || (e->self.source && !in_turn) || e->doubtful || now_us < e->room_us ||
      e->degree < e->options->neighbours_max)
    return;
  e->room_us = now_us + (in_turn ? TURN_US : WEFT_TIMER(e, exchange_us, 5000000) / 5);
  const size_t index = in_turn ? best_served(e, now_us) : richest(e);
  if (index == SIZE_MAX)
    return;
  part_with(e, index);
  if (e->sought_by.address) // the first to come gets that place; others ask again
    e->sought = 0;
}

void weft_room_look(weft_engine *e, int64_t now_us) {
  make_room(e, now_us);
  if (e->self.source || now_us < e->replace_us)
    return;
  e->replace_us = now_us + 2 * WEFT_TIMER(e, exchange_us, 5000000);
  replace(e, now_us);
}

// --- Stranded: no neighbour has what a viewer on demand needs next, as after a seek

static bool helps(const weft_engine *e, const weft_neighbour *n) {
  const weft_policy_want *want = weft_neighbour_want(e, n, e->missing);
  return weft_neighbour_complete(e, n, e->missing) || (want && want->rank > 0);
}

static bool stays(const weft_neighbour *n) {
  return n->state == WEFT_NEIGHBOUR_OPEN && !n->leaving;
}

bool weft_room_stranded(const weft_engine *e) {
  const bool full = e->missing >= e->released + e->window;
  const bool all = e->end_known && e->missing >= weft_window_total(e);
  // With few neighbours it looks for others in any case.
  if (!e->started || full || all || 2 * e->degree < e->options->neighbours_target)
    return false;
  for (size_t i = 0; i < e->used; i++)
    if (stays(&e->neighbours[i]) && helps(e, &e->neighbours[i]))
      return false;
  return true;
}

// Parts with neighbours that have nothing of what is needed next. It keeps some of them, as they
// know of others.
size_t weft_room_clear(weft_engine *e, size_t most, int64_t now_us) {
  const size_t target = e->options->neighbours_target;
  size_t room = e->options->neighbours_max - e->degree, useless = 0;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    room += n->state == WEFT_NEIGHBOUR_OPEN && n->leaving;
    useless += stays(n) && n->mapped && !helps(e, n);
  }
  for (size_t i = 0; i < e->used && room < most && 2 * useless > target; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (!stays(n) || !n->mapped || n->is_source || helps(e, n) || now_us - n->added_us < LATELY_US)
      continue;
    part_with(e, i);
    useless--;
    room++;
  }
  return room < most ? room : most;
}
