// SPDX-License-Identifier: Apache-2.0
// Finding neighbours: the addresses (candidates) that neighbours, trackers and users name, and
// which of them to dial.
#include <string.h>

#include "peer/engine/internal.h"

enum {
  RETRY_US = 10000000,
  UNDERWAY_US = 1000000,     // a dial that succeeds does so within this, and is waited for as long,
  UNDERWAY_NEED_US = 300000, // or in need only as long as three round trips
  RETRY_FULL_US = 2000000,   // in need: a peer that had no room may have some by now
  MOST_FAILURES = 3,
  MOST_TOLD = 16,
  CUT_OFF_US = 1000000 // on demand, cut off: between looks
};

bool weft_peer_address_same(const weft_peer_address *a, const weft_peer_address *b) {
  return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static bool is_on_demand(const weft_engine *e) { return weft_is_paced(e) && !weft_is_live(e); }

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

static weft_candidate *put_candidate(weft_engine *e, const weft_peer_address *address) {
  size_t oldest = 0;
  while (oldest < e->candidate_count && e->candidates[oldest].source)
    oldest++;
  if (e->candidate_count == e->options->addresses_max)
    weft_candidate_forget(e, oldest < e->candidate_count ? oldest : 0);
  if (e->exchange_us == WEFT_ENGINE_NEVER)
    e->exchange_us = 0;
  weft_candidate *candidate = &e->candidates[e->candidate_count++];
  *candidate = (weft_candidate){.address = *address, .teller = WEFT_NO_NEIGHBOUR};
  return candidate;
}

static bool is_address(const weft_engine *e, const weft_peer_address *address) {
  return e->options->addresses_max > 0 && address->length > 0 &&
         address->length <= WEFT_PEER_ADDRESS_BYTES &&
         !weft_peer_address_same(address, &e->self.address);
}

bool weft_candidate_add(weft_engine *e, const weft_peer_address *address) {
  if (!is_address(e, address) || weft_candidate_at(e, address) || weft_neighbour_at(e, address))
    return false;
  (void)put_candidate(e, address);
  return true;
}

void weft_engine_add_address(weft_engine *e, const weft_peer_address *address) {
  (void)weft_candidate_add(e, address);
}

void weft_engine_set_source_address(weft_engine *e, const weft_peer_address *address) {
  if (!is_on_demand(e) || !is_address(e, address))
    return;
  weft_candidate *known = weft_candidate_at(e, address);
  for (size_t i = 0; i < e->candidate_count; i++)
    if (&e->candidates[i] != known)
      e->candidates[i].source = e->candidates[i].met = false;
  weft_candidate *candidate = known ? known : put_candidate(e, address);
  candidate->source = true;
  candidate->failures = 0;
}

static weft_candidate *source_at(const weft_engine *e) {
  for (size_t i = 0; i < e->candidate_count; i++)
    if (e->candidates[i].source)
      return &e->candidates[i];
  return NULL;
}

void weft_exchange_met(weft_engine *e, const weft_neighbour *n) {
  if (n->is_source)
    weft_engine_set_source_address(e, &n->address);
  weft_candidate *source = source_at(e);
  if (source && weft_peer_address_same(&source->address, &n->address))
    source->met = source->source = n->is_source; // or somebody lied
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
  weft_exchange_met(e, n);
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

// Whether it made progress since the last look; on demand, a full window counts as progress.
static bool progressed(const weft_engine *e) {
  const bool all_here = !weft_is_live(e) && e->missing >= e->released + e->window;
  return all_here || reached(e) != e->reached_before;
}

// Whether a viewer has had nothing new for longer than the stream's own steps, and looks that
// follow each other closely, explain; after a seek also if no neighbour has what is next.
static bool cut_off(const weft_engine *e, int64_t now_us) {
  const int64_t still_us = now_us - e->moved_us;
  if (!is_viewer(e) || (is_on_demand(e) && progressed(e))) // the next look will take note
    return false;
  return (e->sought_on && weft_room_stranded(e)) ||
         (still_us >= WEFT_TIMER(e, exchange_us, 5000000) / 5 &&
          still_us >= 2 * weft_segment_us(e));
}

static bool cut_off_on_demand(const weft_engine *e, int64_t now_us) {
  return is_on_demand(e) && cut_off(e, now_us);
}

static bool lost_source(const weft_engine *e) {
  const weft_candidate *source = source_at(e);
  return !source || source->failures >= MOST_FAILURES;
}

bool weft_engine_needs_source(const weft_engine *e, int64_t now_us) {
  return !is_on_demand(e) || in_need(e) || (lost_source(e) && cut_off(e, now_us));
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
  candidate->failures =
      candidate->failures < MOST_FAILURES ? (candidate->failures + 1) & 3 : MOST_FAILURES;
  if (candidate->failures >= MOST_FAILURES && !candidate->source)
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

// Takes a peer's word of where the source is. Nothing proves it, so it replaces only another
// address, which failed. Returns whether it did.
static bool hear_of_source(weft_engine *e, const weft_peer_address *address) {
  const weft_candidate *known = weft_candidate_at(e, address);
  if (!is_on_demand(e) || !is_address(e, address) || !lost_source(e) || (known && known->source) ||
      weft_neighbour_at(e, address))
    return false;
  weft_engine_set_source_address(e, address);
  return true;
}

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
    if (i == 0 && refer->flags & WEFT_REFER_SOURCE)
      news = hear_of_source(e, &address);
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

// On demand: where the source was met, for others that need it. What others said of it is not
// passed on: a lie would spread, and make all call there.
static bool tells_source(const weft_engine *e, size_t index, weft_peer_address *out) {
  const weft_candidate *source = source_at(e);
  if (lost_source(e) || !source->met || (index < e->used && e->neighbours[index].is_source))
    return false;
  *out = source->address;
  return true;
}

size_t weft_refer_put(weft_engine *e, size_t index, uint8_t flags, uint8_t *out) {
  weft_peer_address told[1 + MOST_TOLD];
  const bool question = flags & WEFT_REFER_WANTED;
  const size_t named = !question && tells_source(e, index, &told[0]);
  size_t count = named;
  const size_t start = e->used ? (size_t)weft_rng_below(&e->self.rng, e->used) : 0;
  for (size_t i = 0; i < e->used && count < named + MOST_TOLD && !question; i++) {
    const weft_neighbour *n = &e->neighbours[(start + i) % e->used];
    // A finished neighbour gives to others as long as it stays.
    const bool here = n->state == WEFT_NEIGHBOUR_OPEN || n->state == WEFT_NEIGHBOUR_FINISHED;
    if (here && n->address.length && (start + i) % e->used != index && !(named && n->is_source))
      told[count++] = n->address;
  }
  return weft_refer_write(WEFT_MESSAGE_REFER, named ? flags | WEFT_REFER_SOURCE : flags, told,
                          count, out);
}

// --- What to do about it

static bool got_on(weft_engine *e, int64_t now_us) {
  const bool on = progressed(e);
  e->reached_before = reached(e);
  if (on)
    e->moved_us = now_us;
  e->sought_on = e->sought_on && !on;
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

static size_t dialable(const weft_engine *e, int64_t now_us) {
  size_t count = 0;
  for (size_t i = 0; i < e->candidate_count; i++) {
    const weft_candidate *c = &e->candidates[i];
    count += !c->dialling && now_us >= c->after_us && !weft_neighbour_at(e, &c->address);
  }
  return count;
}

static size_t lacking(weft_engine *e, int64_t now_us) {
  const size_t target = e->options->neighbours_target, alive = e->degree - e->doubtful;
  if (target == 0)
    return 0;
  const size_t count = wanted(e, now_us), room = e->options->neighbours_max - e->degree;
  const size_t lacks = alive < target ? target - alive : alive < count ? 1 : 0;
  if (cut_off_on_demand(e, now_us)) {
    const size_t others = dialable(e, now_us);
    return weft_room_clear(e, others < target ? others : target, now_us);
  }
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

// How long until the next look. Cut off on demand it is sooner, and in need: then as soon as a
// candidate may be dialled again. Without prospects it asks for addresses again, since a question
// or its answer may be lost.
int64_t weft_exchange_wait(const weft_engine *e, int64_t now_us) {
  const int64_t every_us = WEFT_TIMER(e, exchange_us, 5000000);
  if (every_us > CUT_OFF_US && cut_off_on_demand(e, now_us))
    return every_us / 5 > CUT_OFF_US ? every_us / 5 : CUT_OFF_US;
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
  const size_t wants = cut_off_on_demand(e, now_us) ? e->options->neighbours_target : lacks;
  e->lonely = wants > prospects(e, now_us);
  e->dial_us = now_us;
  if (e->lonely && e->used)
    ask_somebody(e);
  weft_room_look(e, now_us);
}

void weft_exchange_sought(weft_engine *e, int64_t now_us) {
  e->sought_on = true;
  e->moved_us = now_us;
  e->reached_before = reached(e); // the step there is no progress
  if (e->options->addresses_max && e->exchange_us != WEFT_ENGINE_NEVER)
    e->exchange_us = 0;
}

int64_t weft_exchange_deadline(const weft_engine *e) { return e->exchange_us; }

static bool may_dial(const weft_engine *e, const weft_candidate *candidate) {
  return !candidate->dialling && e->dial_us >= candidate->after_us && (e->dial || candidate->calls);
}

static weft_event dial(weft_engine *e, weft_candidate *candidate) {
  const weft_event event = {
      .kind = WEFT_EVENT_DIAL, .address = candidate->address, .calls_back = candidate->calls};
  candidate->dialling = true;
  candidate->gone = candidate->calls = false;
  candidate->after_us = e->dial_us + (candidate->source ? RETRY_FULL_US : RETRY_US);
  e->dial -= e->dial > 0;
  if (!event.calls_back)
    weft_meet_dialled(e, candidate);
  return event;
}

static weft_candidate *source_to_dial(const weft_engine *e) {
  weft_candidate *source = source_at(e);
  if (!source || !may_dial(e, source) || weft_neighbour_at(e, &source->address))
    return NULL;
  return e->degree == 0 || cut_off_on_demand(e, e->dial_us) ? source : NULL;
}

// The next to be dialled. On demand the source has what nobody near a viewer has, and makes room
// sooner or later, so it comes first if the viewer is cut off. Otherwise it comes last: its places
// are for those.
static weft_candidate *next_candidate(weft_engine *e) {
  if (cut_off_on_demand(e, e->dial_us) && source_to_dial(e))
    return source_to_dial(e);
  for (size_t i = 0; i < e->candidate_count && (e->dial || e->calling); i++) {
    weft_candidate *candidate = &e->candidates[i];
    if (candidate->source || !may_dial(e, candidate))
      continue;
    if (!weft_neighbour_at(e, &candidate->address))
      return candidate;
    weft_candidate_forget(e, i--);
  }
  return source_to_dial(e);
}

bool weft_exchange_event(weft_engine *e, weft_event *out) {
  if (e->lonely) {
    e->lonely = false;
    *out = (weft_event){.kind = WEFT_EVENT_LONELY};
    return true;
  }
  weft_candidate *candidate = next_candidate(e);
  if (candidate) {
    *out = dial(e, candidate);
    return true;
  }
  e->dial = 0;
  e->calling = false;
  return false;
}
