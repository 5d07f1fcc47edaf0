// SPDX-License-Identifier: Apache-2.0
// Finding neighbours: the addresses (candidates) that neighbours, trackers and users name, which of
// them to dial, and which neighbour of little use makes room.
#include <string.h>

#include "peer/engine/internal.h"

enum {
  RETRY_US = 10000000,
  UNDERWAY_US = 1000000,     // a dial that succeeds does so within this, and is waited for as long,
  UNDERWAY_NEED_US = 300000, // or in need only as long as three round trips
  RETRY_FULL_US = 2000000,   // in need: a peer that had no room may have some by now
  MOST_FAILURES = 3,
  MOST_TOLD = 16,
  GRACE_US = 15000000,
  TURN_US = 1000000, // a source on demand parts with one neighbour per this time at most,
  STAY_US = 5000000  // and with none that has been here for less than this
};

bool weft_peer_address_same(const weft_peer_address *a, const weft_peer_address *b) {
  return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

const weft_neighbour *weft_neighbour_at(const weft_engine *e, const weft_peer_address *address) {
  for (size_t i = 0; i < e->used; i++)
    if (e->neighbours[i].state != WEFT_NEIGHBOUR_FREE &&
        weft_peer_address_same(&e->neighbours[i].address, address))
      return &e->neighbours[i];
  return NULL;
}

weft_candidate *weft_candidate_at(const weft_engine *e, const weft_peer_address *address) {
  for (size_t i = 0; i < e->candidate_count; i++)
    if (weft_peer_address_same(&e->candidates[i].address, address))
      return &e->candidates[i];
  return NULL;
}

void weft_candidate_forget(weft_engine *e, size_t at) {
  for (size_t i = at + 1; i < e->candidate_count; i++)
    e->candidates[i - 1] = e->candidates[i];
  e->candidate_count--;
}

bool weft_candidate_add(weft_engine *e, const weft_peer_address *address) {
  if (e->options->addresses_max == 0 || address->length == 0 ||
      address->length > WEFT_PEER_ADDRESS_BYTES ||
      weft_peer_address_same(address, &e->self.address) || weft_candidate_at(e, address) ||
      weft_neighbour_at(e, address))
    return false;
  if (e->candidate_count == e->options->addresses_max)
    weft_candidate_forget(e, 0); // the oldest
  e->candidates[e->candidate_count++] =
      (weft_candidate){.address = *address, .teller = WEFT_NO_NEIGHBOUR};
  if (e->exchange_us == WEFT_ENGINE_NEVER)
    e->exchange_us = 0;
  return true;
}

void weft_engine_add_address(weft_engine *e, const weft_peer_address *address) {
  (void)weft_candidate_add(e, address);
}

weft_status weft_engine_move_neighbour(weft_engine *e, size_t neighbour,
                                       const weft_peer_address *address) {
  if (address->length > WEFT_PEER_ADDRESS_BYTES)
    return WEFT_E_ARGUMENT;
  if (neighbour >= e->options->neighbours_max ||
      e->neighbours[neighbour].state == WEFT_NEIGHBOUR_FREE ||
      e->neighbours[neighbour].state == WEFT_NEIGHBOUR_LOST)
    return WEFT_E_STATE;
  weft_neighbour *n = &e->neighbours[neighbour];
  const weft_candidate *left = weft_candidate_at(e, &n->address);
  if (left)
    weft_candidate_forget(e, (size_t)(left - e->candidates));
  n->address = *address;
  return WEFT_OK;
}

// Whether it is in need: has less than half of the neighbours that it looks for.
static bool in_need(const weft_engine *e) {
  return 2 * (e->degree - e->doubtful) < e->options->neighbours_target;
}

// What a viewer's neighbours have to move on: live, what exists; on demand, what is needed next.
static uint64_t reached(const weft_engine *e) { return weft_is_live(e) ? e->horizon : e->missing; }

static bool is_viewer(const weft_engine *e) {
  return weft_is_paced(e) && !e->self.source && e->started && !weft_engine_done(e);
}

// Whether a viewer has had nothing new for longer than the stream's own steps, and looks that
// follow each other closely, explain.
static bool cut_off(const weft_engine *e, int64_t now_us) {
  const int64_t still_us = now_us - e->moved_us;
  return is_viewer(e) && still_us >= WEFT_TIMER(e, exchange_us, 5000000) / 5 &&
         still_us >= 2 * weft_segment_us(e);
}

static bool is_lost(const weft_engine *e, const weft_candidate *candidate) {
  const weft_neighbour *n = weft_neighbour_at(e, &candidate->address);
  return candidate->gone || (n && n->doubtful);
}

// Whether a viewer has no neighbours left.
static bool bereft(const weft_engine *e) { return e->started && e->degree == e->doubtful; }

// How many candidates may still become neighbours. Where neighbours die, the known addresses may be
// those of the dead alone. A viewer without neighbours, or cut off with those it has, therefore
// counts only candidates that have not failed yet. All others can afford to retry theirs: with more
// addresses they would only take places that others need.
static size_t prospects(const weft_engine *e, int64_t now_us) {
  if (!bereft(e) && !cut_off(e, now_us))
    return e->candidate_count;
  size_t count = 0;
  for (size_t i = 0; i < e->candidate_count; i++)
    count += !is_lost(e, &e->candidates[i]) && !e->candidates[i].failures;
  return count;
}

void weft_engine_dial_failed(weft_engine *e, const weft_peer_address *address) {
  weft_candidate *candidate = weft_candidate_at(e, address);
  if (!candidate)
    return;
  candidate->dialling = false;
  if (++candidate->failures >= MOST_FAILURES)
    weft_candidate_forget(e, (size_t)(candidate - e->candidates));
  const int64_t soon_us = e->dial_us + WEFT_TIMER(e, exchange_us, 5000000) / 5;
  if (bereft(e) && prospects(e, e->dial_us) == 0 && e->exchange_us > soon_us)
    e->exchange_us = soon_us; // that was the last one
}

// A source with room refuses no newcomers, and so tells them of no others: at the beginning of a
// stream, all would live on a fraction of its uplink until they look for each other. So a peer
// whose only neighbour is the source asks it.
void weft_exchange_opened(weft_engine *e, size_t index) {
  if (e->options->addresses_max && e->neighbours[index].is_source && e->degree == 1)
    weft_neighbour_due(e, index, WEFT_DUE_REFER_ASK);
}

void weft_exchange_lost(weft_engine *e, const weft_neighbour *n) {
  weft_candidate *candidate = weft_candidate_at(e, &n->address);
  if (n->lost == WEFT_LOST_BANNED && candidate)
    weft_candidate_forget(e, (size_t)(candidate - e->candidates));
  else if (n->lost == WEFT_LOST_FULL && candidate && !n->is_source && in_need(e))
    candidate->after_us -= RETRY_US - RETRY_FULL_US;
  else if ((n->lost == WEFT_LOST_LEFT || n->lost == WEFT_LOST_SILENT) && candidate)
    candidate->gone = true;
  if (e->options->addresses_max && e->exchange_us != WEFT_ENGINE_NEVER)
    e->exchange_us = 0; // look for another at once
}

// --- Messages

void weft_refer_take(weft_engine *e, size_t index, const weft_refer *refer, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  const uint8_t *at = refer->addresses;
  // Addresses that nobody asked for would displace known ones, and make us dial anybody.
  const bool full = refer->flags & WEFT_REFER_FULL;
  const bool wanted =
      n->refer_asked || (full && n->dialled); // one that dialled us has no such news
  bool news = false;                          // known addresses must not lead to the next question
  n->refer_asked = n->refer_asked && refer->count == 0;
  for (size_t i = 0; wanted && i < refer->count; i++) {
    const weft_peer_address address = weft_refer_next(&at);
    news = weft_candidate_add(e, &address) || news;
    weft_candidate *candidate = weft_candidate_at(e, &address);
    if (candidate && !full) // a full peer is not a neighbour any more
      candidate->teller = (uint16_t)index;
  }
  if (news)
    e->exchange_us = e->options->addresses_max ? 0 : WEFT_ENGINE_NEVER;
  if (full)
    weft_neighbour_drop(e, index, WEFT_LOST_FULL);
  else if (refer->flags & WEFT_REFER_WANTED && weft_answer_allowed(e, index, now_us))
    weft_neighbour_due(e, index, WEFT_DUE_REFER);
}

size_t weft_refer_put(weft_engine *e, size_t index, uint8_t flags, uint8_t *out) {
  weft_peer_address told[MOST_TOLD];
  size_t count = 0;
  const size_t start = e->used ? (size_t)weft_rng_below(&e->self.rng, e->used) : 0;
  for (size_t i = 0; i < e->used && count < MOST_TOLD && !(flags & WEFT_REFER_WANTED); i++) {
    const weft_neighbour *n = &e->neighbours[(start + i) % e->used];
    // A finished neighbour gives to others as long as it stays.
    const bool here = n->state == WEFT_NEIGHBOUR_OPEN || n->state == WEFT_NEIGHBOUR_FINISHED;
    if (here && n->address.length && (start + i) % e->used != index)
      told[count++] = n->address;
  }
  return weft_refer_write(WEFT_MESSAGE_REFER, flags, told, count, out);
}

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

bool weft_exchange_gives_way(const weft_engine *e, const weft_neighbour *n) {
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

// --- What to do about it

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
    if (n->is_source || suppliers <= most || !weft_exchange_gives_way(e, n))
      continue;
    most = suppliers;
    best = i;
  }
  return 2 * least <= target ? best : SIZE_MAX;
}

// On demand, at the source: the neighbour whose next segment most others here have, and so others
// elsewhere.
static size_t best_served(const weft_engine *e, int64_t now_us) {
  size_t best = SIZE_MAX, most = 0;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    size_t count = 0;
    if (n->state != WEFT_NEIGHBOUR_OPEN || !n->mapped || n->leaving ||
        now_us - n->added_us < STAY_US || !weft_exchange_gives_way(e, n))
      continue;
    for (size_t other = 0; other < e->used; other++)
      count += other != i && !e->neighbours[other].leaving &&
               weft_neighbour_complete(e, &e->neighbours[other], e->waits[i].lacks);
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

// Whether it made progress since the last look; on demand, a full window counts as progress.
static bool got_on(weft_engine *e, int64_t now_us) {
  const bool all_here = !weft_is_live(e) && e->missing >= e->released + e->window;
  const bool on = all_here || reached(e) != e->reached_before;
  e->reached_before = reached(e);
  if (on)
    e->moved_us = now_us;
  return on;
}

// How many neighbours to have. A live stream that stands still probably goes on elsewhere, and
// neighbours that know only each other must be left: as many as possible. On demand, only once a
// viewer is cut off, as one segment may take longer than looks are apart. Where segments come too
// late, twice as many as otherwise: more would only divide the same uplinks, and each costs its
// maps.
static size_t wanted(weft_engine *e, int64_t now_us) {
  const size_t target = e->options->neighbours_target, most = e->options->neighbours_max;
  const bool on = got_on(e, now_us), skipped = e->skipped;
  const bool still = is_viewer(e) && (weft_is_live(e) ? !on : cut_off(e, now_us));
  e->skipped = false;
  const size_t count = still ? most : skipped ? 2 * target : target;
  return count < most ? count : most;
}

static size_t lacking(weft_engine *e, int64_t now_us) {
  const size_t target = e->options->neighbours_target, alive = e->degree - e->doubtful;
  if (target == 0)
    return 0;
  const size_t count = wanted(e, now_us), room = e->options->neighbours_max - e->degree;
  const size_t lacks = alive < target ? target - alive : alive < count ? 1 : 0;
  return lacks < room ? lacks : room;
}

// For how long a dial counts as a neighbour to come.
static int64_t underway_us(const weft_engine *e) {
  return in_need(e) ? UNDERWAY_NEED_US : UNDERWAY_US;
}

// Counts dials that may yet succeed. Looks may follow each other faster than sessions open, and
// each neighbour too many costs its maps, and makes all bursts smaller (docs/sim/churn.md). But a
// peer behind a NAT may be called for seconds, and a dead one in vain: then others are looked for.
static size_t underway(const weft_engine *e, int64_t now_us) {
  if (!weft_is_live(e))
    return 0; // what most neighbours have is of no use to a viewer at another part of the stream
  const int64_t since_us = now_us - underway_us(e);
  size_t count = 0;
  for (size_t i = 0; i < e->candidate_count; i++) {
    const weft_candidate *c = &e->candidates[i];
    count += c->dialling && c->after_us - RETRY_US > since_us && !weft_neighbour_at(e, &c->address);
  }
  return count;
}

// How long until the next look. In need it is sooner: as soon as a candidate may be dialled again.
// Without prospects it asks for addresses again, since a question or its answer may be lost.
int64_t weft_exchange_wait(const weft_engine *e, int64_t now_us) {
  const int64_t every_us = WEFT_TIMER(e, exchange_us, 5000000);
  if (!in_need(e))
    return every_us;
  int64_t after_us = prospects(e, now_us) ? every_us : 0;
  for (size_t i = 0; i < e->candidate_count; i++) {
    const int64_t wait_us = e->candidates[i].after_us - now_us;
    if (wait_us > 0 && wait_us < after_us)
      after_us = wait_us;
  }
  return after_us > every_us / 5 ? after_us : every_us / 5;
}

// Asks a random neighbour that is there for addresses.
static void ask_somebody(weft_engine *e) {
  const size_t start = (size_t)weft_rng_below(&e->self.rng, e->used);
  for (size_t i = 0; i < e->used; i++) {
    const size_t index = (start + i) % e->used;
    const weft_neighbour *n = &e->neighbours[index];
    if (n->state != WEFT_NEIGHBOUR_OPEN || n->doubtful)
      continue;
    weft_neighbour_due(e, index, WEFT_DUE_REFER_ASK);
    return;
  }
}

void weft_exchange_tick(weft_engine *e, int64_t now_us) {
  if (now_us < e->exchange_us || e->options->addresses_max == 0)
    return;
  e->exchange_us = now_us + weft_exchange_wait(e, now_us);
  for (size_t i = 0; i < e->candidate_count; i++)
    if (e->candidates[i].dialling && now_us >= e->candidates[i].after_us)
      e->candidates[i].dialling = false; // nothing came of it
  const size_t lacks = lacking(e, now_us), coming = lacks ? underway(e, now_us) : 0;
  if (coming && e->exchange_us > now_us + underway_us(e))
    e->exchange_us = now_us + underway_us(e);
  e->dial = (uint32_t)(lacks > coming ? lacks - coming : 0);
  e->lonely = lacks > prospects(e, now_us);
  e->dial_us = now_us;
  if (e->lonely && e->used)
    ask_somebody(e);
  make_room(e, now_us);
  if (!e->self.source && now_us >= e->replace_us) {
    e->replace_us = now_us + 2 * WEFT_TIMER(e, exchange_us, 5000000);
    replace(e, now_us);
  }
}

int64_t weft_exchange_deadline(const weft_engine *e) { return e->exchange_us; }

static bool may_dial(const weft_engine *e, const weft_candidate *candidate) {
  return !candidate->dialling && e->dial_us >= candidate->after_us && (e->dial || candidate->calls);
}

bool weft_exchange_event(weft_engine *e, weft_event *out) {
  if (e->lonely) {
    e->lonely = false;
    *out = (weft_event){.kind = WEFT_EVENT_LONELY};
    return true;
  }
  for (size_t i = 0; i < e->candidate_count && (e->dial || e->calling); i++) {
    weft_candidate *candidate = &e->candidates[i];
    if (!may_dial(e, candidate))
      continue;
    if (weft_neighbour_at(e, &candidate->address)) {
      weft_candidate_forget(e, i--);
      continue;
    }
    *out = (weft_event){
        .kind = WEFT_EVENT_DIAL, .address = candidate->address, .calls_back = candidate->calls};
    candidate->dialling = true;
    candidate->gone = candidate->calls = false;
    candidate->after_us = e->dial_us + RETRY_US;
    e->dial -= e->dial > 0;
    if (!out->calls_back)
      weft_meet_dialled(e, candidate);
    return true;
  }
  e->dial = 0;
  e->calling = false;
  return false;
}
