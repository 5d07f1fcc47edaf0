// SPDX-License-Identifier: Apache-2.0
// Random push: a random neighbour, and a random segment that prefers those played first; live,
// before these, the newest segment of which the neighbour has little.
//
// R2 pushes until a brake message comes back, and what is in flight then is wasted: with 16
// neighbours and a round trip of 40 ms, two packets in five. So each of a neighbour's suppliers
// sends it only its share of what it lacks until its next map says how far that brought it, and a
// peer that has little of a segment does not send it to every neighbour.
#include "weft/peer_policy.h"

#include "weft/peer_rng.h"

// A number below 2^16 that stays the same until the neighbour's next map: half a packet's share is
// then one packet from half of the suppliers, not one from each of them sooner or later.
static uint32_t steady_chance(const weft_policy_view *view, const weft_policy_neighbour *neighbour,
                              uint64_t segment) {
  const size_t index = (size_t)(neighbour - view->neighbour);
  uint64_t z =
      view->salt ^ segment * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)index << 16 ^ neighbour->maps;
  z = (z ^ z >> 32) * UINT64_C(0xd6e8feb86659fd93);
  z = (z ^ z >> 32) * UINT64_C(0xd6e8feb86659fd93);
  return (uint32_t)(z >> 48);
}

// Our share of what the neighbour lacks and of one packet more, since some are lost.
static size_t share(const weft_policy_view *view, const weft_policy_neighbour *neighbour,
                    uint64_t segment, size_t at, size_t lacks, bool surely) {
  // If few have the last packets that it lacks, these few must not leave them to the many that do
  // not. Before that, few become many before maps say so.
  const size_t tail = 2 + view->segments[at].blocks / 32u;
  const weft_policy_want *want = &neighbour->wants[at];
  const bool few =
      surely && lacks <= tail && want->helpers > 0 && want->helpers < neighbour->suppliers;
  const size_t suppliers = few ? want->helpers : neighbour->suppliers;
  if (suppliers <= 1 || (view->live && view->source))
    return lacks; // a live source gets every segment into the swarm by itself
  const uint64_t parts = ((uint64_t)(lacks + 1) << 16) / suppliers;
  const size_t count = (size_t)((parts + steady_chance(view, neighbour, segment)) >> 16);
  return count < lacks ? count : lacks;
}

// How many packets of a segment may still be sent, to all neighbours together. A peer that has
// little of it has what others nearby got from the same few: if it sent to every neighbour, half of
// that would be no news by the time it arrives, whatever their last maps said. Twice what came in
// spreads the segment as fast.
static size_t budget(const weft_policy_view *view, const weft_policy_segment *own) {
  if (view->source || 2u * own->rank >= own->blocks)
    return SIZE_MAX;
  const size_t most = 2u * own->rank + 1u;
  return most > own->sent ? most - own->sent : 0;
}

// How many packets of segment s, in place `at`, the neighbour can use from us; 0: none.
static size_t useful(const weft_policy_view *view, const weft_policy_neighbour *neighbour,
                     uint64_t s, size_t at) {
  const weft_policy_segment *own = &view->segments[at];
  const weft_policy_want *want = &neighbour->wants[at];
  if (!want->accepts || own->rank == 0 || view->number[at] != s || (view->live && s < view->play) ||
      weft_policy_refused(neighbour, s))
    return 0;
  // A neighbour at rank r surely lacks own.rank - r of the directions held here. It probably lacks
  // all that it did not get from us, nor we from it: even with equal ranks.
  const size_t lacks = (size_t)(own->blocks - want->rank);
  const size_t surely = own->rank > want->rank ? (size_t)(own->rank - want->rank) : 0;
  const size_t maybe = own->rank > want->common ? (size_t)(own->rank - want->common) : 0;
  const size_t news = surely > maybe ? surely : maybe;
  const size_t part = share(view, neighbour, s, at, lacks, surely > 0);
  const size_t most = part < news ? part : news;
  if (most <= want->in_flight)
    return 0;
  const size_t left = budget(view, own);
  const size_t count = most - want->in_flight < left ? most - want->in_flight : left;
  return count > view->batch_max ? view->batch_max : count;
}

// The place after `at`. Windows are walked through, since a division for each segment would cost
// more than the look at it.
static size_t after(const weft_policy_view *view, size_t at) {
  return at + 1 < view->window ? at + 1 : 0;
}

// Live: the newest segment of which the neighbour has less than a quarter comes before all others,
// since the neighbour passes on what it gets of it. If it waited until segments played sooner are
// complete, it would only then begin its way through the mesh, hop by hop, while uplinks have
// nothing else to send. The longer the way, the later each segment, until none is in time.
static bool choose_new(const weft_policy_view *view, size_t index, bool forgone,
                       weft_policy_choice *out) {
  const weft_policy_neighbour *neighbour = &view->neighbour[index];
  const unsigned classes = weft_policy_forgone(view, neighbour);
  const uint64_t end = neighbour->first + neighbour->count, own_end = view->first + view->count;
  uint64_t first = neighbour->first > view->first ? neighbour->first : view->first;
  first = first > view->play ? first : view->play;
  uint64_t s = end < own_end ? end : own_end;
  for (s = s < view->horizon ? s : view->horizon; s-- > first;) {
    const size_t at = (size_t)(s % view->window);
    const weft_policy_want *want = &neighbour->wants[at];
    if (4u * (want->rank + want->in_flight) >= view->segments[at].blocks ||
        (weft_policy_class(s) < classes) != forgone)
      continue;
    const size_t count = useful(view, neighbour, s, at);
    if (count == 0)
      continue;
    *out = (weft_policy_choice){.neighbour = index, .segment = s, .count = count};
    return true;
  }
  return false;
}

// Bulk: as many packets went out as it has blocks, and the neighbour can get the rest from others.
static bool left_to_others(const weft_policy_view *view, const weft_policy_neighbour *neighbour,
                           size_t at) {
  return neighbour->suppliers > 1 && view->segments[at].sent >= view->segments[at].blocks;
}

// Chooses a segment for one neighbour, among those that are forgone or those that are not: each
// useful one is taken with probability 1/8 before the next is looked at. With a steeper preference
// all nodes finish one segment at a time, and what is in flight for it when it completes is wasted;
// with a flatter one windows do not move on.
static bool choose_segment(const weft_policy_view *view, size_t index, bool forgone, bool spread,
                           const weft_rng *rng, weft_policy_choice *out) {
  const weft_policy_neighbour *neighbour = &view->neighbour[index];
  const unsigned classes = weft_policy_forgone(view, neighbour);
  const uint64_t first = neighbour->first > view->first ? neighbour->first : view->first;
  const uint64_t end = neighbour->first + neighbour->count, own_end = view->first + view->count;
  uint64_t chance = 0;
  unsigned left = 0; // groups of three random bits left in `chance`
  bool found = false;
  size_t at = (size_t)(first % view->window);
  for (uint64_t s = first; s < end && s < own_end; s++, at = after(view, at)) {
    if ((weft_policy_class(s) < classes) != forgone ||
        (spread && left_to_others(view, neighbour, at)))
      continue;
    const size_t count = useful(view, neighbour, s, at);
    if (count == 0)
      continue;
    if (left == 0) {
      chance = weft_rng_u64(rng);
      left = 21;
    }
    const bool take = (chance & 7) == 0;
    chance >>= 3;
    left--;
    if (!found || take) // the first, if none is taken
      *out = (weft_policy_choice){.neighbour = index, .segment = s, .count = count};
    found = true;
    if (take)
      break;
  }
  return found;
}

// A live source spreads its uplink evenly: the segment of which it sent least comes first, so that
// every new one gets into the swarm. If it served the oldest first, it would repair for many what
// they could repair for each other, and be late with everything new.
static bool choose_least_sent(const weft_policy_view *view, size_t index, bool forgone,
                              weft_policy_choice *out) {
  const weft_policy_neighbour *neighbour = &view->neighbour[index];
  const unsigned classes = weft_policy_forgone(view, neighbour);
  const uint64_t first = neighbour->first > view->first ? neighbour->first : view->first;
  const uint64_t end = neighbour->first + neighbour->count, own_end = view->first + view->count;
  uint32_t least = UINT32_MAX;
  size_t at = (size_t)(first % view->window);
  for (uint64_t s = first; s < end && s < own_end; s++, at = after(view, at)) {
    if ((weft_policy_class(s) < classes) != forgone)
      continue;
    const size_t count = useful(view, neighbour, s, at);
    const uint32_t sent = view->segments[at].sent;
    if (count == 0 || sent >= least)
      continue;
    least = sent;
    *out = (weft_policy_choice){.neighbour = index, .segment = s, .count = count};
  }
  return least != UINT32_MAX;
}

// What goes to a neighbour without another supplier goes no further: it has no other neighbours
// yet, or all have banned it, and then it lacks everything for ever. Such neighbours come after the
// rest, seven times in eight.
static bool pick_at_live_source(const weft_policy_view *view, bool forgone, const weft_rng *rng,
                                weft_policy_choice *out) {
  const size_t start = (size_t)weft_rng_below(rng, view->neighbours);
  const bool all = weft_rng_below(rng, 8) == 0;
  for (int cut_off = 0; cut_off < 2; cut_off++)
    for (size_t i = 0; i < view->neighbours; i++) {
      const size_t index = (start + i) % view->neighbours;
      const weft_policy_neighbour *n = &view->neighbour[index];
      if (n->open && (all || (n->suppliers <= 1) == cut_off) &&
          choose_least_sent(view, index, forgone, out))
        return true;
    }
  return false;
}

static bool pick_among_all(const weft_policy_view *view, bool forgone, bool spread,
                           const weft_rng *rng, weft_policy_choice *out) {
  // A random start, then all in turn: uniform as long as most neighbours want something, as they
  // do.
  const size_t start = (size_t)weft_rng_below(rng, view->neighbours);
  for (size_t i = 0; i < view->neighbours; i++) {
    const size_t index = (start + i) % view->neighbours;
    if (view->neighbour[index].open && ((view->live && choose_new(view, index, forgone, out)) ||
                                        choose_segment(view, index, forgone, spread, rng, out)))
      return true;
  }
  return false;
}

static bool pick_at_peer(const weft_policy_view *view, bool forgone, const weft_rng *rng,
                         weft_policy_choice *out) {
  return pick_among_all(view, forgone, false, rng, out);
}

// Where a bulk source's uplink is the bottleneck, packets of a segment beyond the segment's size
// delay the next segment for all. So they are sent only when there is nothing else to send.
static bool pick_at_bulk_source(const weft_policy_view *view, bool forgone, const weft_rng *rng,
                                weft_policy_choice *out) {
  return pick_among_all(view, forgone, true, rng, out) ||
         pick_among_all(view, forgone, false, rng, out);
}

static bool anything_forgone(const weft_policy_view *view) {
  unsigned most = view->forgone;
  for (size_t i = 0; i < view->neighbours && most == 0; i++)
    most = view->neighbour[i].forgone;
  return most > 0;
}

typedef bool pick_fn(const weft_policy_view *view, bool forgone, const weft_rng *rng,
                     weft_policy_choice *out);

static bool pick_by(pick_fn *pick_some, const weft_policy_view *view, const weft_rng *rng,
                    weft_policy_choice *out) {
  if (view->neighbours == 0)
    return false;
  return pick_some(view, false, rng, out) ||
         (anything_forgone(view) && pick_some(view, true, rng, out));
}

static bool pick(void *user, const weft_policy_view *view, const weft_rng *rng,
                 weft_policy_choice *out) {
  (void)user;
  pick_fn *const at_source = view->live   ? pick_at_live_source
                             : view->bulk ? pick_at_bulk_source
                                          : pick_at_peer;
  return pick_by(view->source ? at_source : pick_at_peer, view, rng, out);
}

const weft_policy weft_policy_push = {.name = "push", .pick = pick};

// Only the source sends: no peer has anything from others.
static bool pick_at_source(void *user, const weft_policy_view *view, const weft_rng *rng,
                           weft_policy_choice *out) {
  (void)user;
  return view->source && pick_by(view->live ? pick_at_live_source : pick_at_peer, view, rng, out);
}

const weft_policy weft_policy_source_only = {.name = "source-only", .pick = pick_at_source};
