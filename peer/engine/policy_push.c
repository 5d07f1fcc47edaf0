// SPDX-License-Identifier: Apache-2.0
// Random push: a random neighbour, a random segment that prefers those played first.
//
// R2 pushes until a brake message comes back. What is in flight then is wasted, so ranks that the
// neighbour announced, and what was sent since, tell beforehand where a packet can still be of use.
#include "weft/peer_policy.h"

#include "weft/peer_rng.h"

// How many packets for segment s, which stands at `at`, the neighbour can use from us; 0: none.
static size_t useful(const weft_policy_view *view, const weft_policy_neighbour *neighbour,
                     uint64_t s, size_t at) {
  const weft_policy_segment *own = &view->segments[at];
  const weft_policy_want *want = &neighbour->wants[at];
  if (!want->accepts || own->rank == 0 || view->number[at] != s || (view->live && s < view->play))
    return 0;
  const bool shared = neighbour->degree > 1 && !(view->live && view->source);
  // The neighbour's others send too, and about as much as we do: without counting them, a fifth of
  // all packets came too late or in vain (16 peers of degree 4, 5..40 ms).
  const size_t expected = (size_t)want->rank + (shared ? 2u : 1u) * want->in_flight;
  // At rank r a neighbour surely lacks own.rank - r of the directions held here; with equal ranks
  // it may lack none.
  if (own->rank <= expected)
    return 0;
  size_t count = own->rank - expected;
  // Its other neighbours see the same need: near the end each takes its share, not all of it.
  const size_t lacks = own->blocks - expected;
  const size_t share =
      neighbour->degree > 1 ? (lacks + neighbour->degree - 1) / neighbour->degree : lacks;
  if (count > share)
    count = share;
  return count > view->batch_max ? view->batch_max : count;
}

// The place after `at`: windows are walked through, since a division for each segment costs more
// than what is looked at there.
static size_t after(const weft_policy_view *view, size_t at) {
  return at + 1 < view->window ? at + 1 : 0;
}

// The segment for one neighbour: each useful one is taken with probability 1/8 before the next is
// looked at. A steeper preference has all nodes finish one segment at a time, and then what is in
// flight for it when it completes is wasted; a flatter one keeps windows from moving on.
static bool choose_segment(const weft_policy_view *view, size_t index, const weft_rng *rng,
                           weft_policy_choice *out) {
  const weft_policy_neighbour *neighbour = &view->neighbour[index];
  const uint64_t first = neighbour->first > view->first ? neighbour->first : view->first;
  const uint64_t end = neighbour->first + neighbour->count, own_end = view->first + view->count;
  uint64_t chance = 0;
  unsigned left = 0; // throws in `chance`
  bool found = false;
  size_t at = (size_t)(first % view->window);
  for (uint64_t s = first; s < end && s < own_end; s++, at = after(view, at)) {
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
    if (!found || take) // none taken: the first
      *out = (weft_policy_choice){.neighbour = index, .segment = s, .count = count};
    found = true;
    if (take)
      break;
  }
  return found;
}

// A live source spreads its uplink evenly: what it sent least of comes first, so that every new
// segment gets into the swarm. Serving the oldest first, it would mend for many what they could
// mend for each other, and be late with everything new.
static bool choose_least_sent(const weft_policy_view *view, size_t index, weft_policy_choice *out) {
  const weft_policy_neighbour *neighbour = &view->neighbour[index];
  const uint64_t first = neighbour->first > view->first ? neighbour->first : view->first;
  const uint64_t end = neighbour->first + neighbour->count, own_end = view->first + view->count;
  uint32_t least = UINT32_MAX;
  size_t at = (size_t)(first % view->window);
  for (uint64_t s = first; s < end && s < own_end; s++, at = after(view, at)) {
    const size_t count = useful(view, neighbour, s, at);
    const uint32_t sent = view->segments[at].sent;
    if (count == 0 || sent >= least)
      continue;
    least = sent;
    *out = (weft_policy_choice){.neighbour = index, .segment = s, .count = count};
  }
  return least != UINT32_MAX;
}

static bool pick(void *user, const weft_policy_view *view, const weft_rng *rng,
                 weft_policy_choice *out) {
  (void)user;
  if (view->neighbours == 0)
    return false;
  // A random start and a step round: uniform while most neighbours want something, as they do.
  const size_t start = (size_t)weft_rng_below(rng, view->neighbours);
  for (size_t i = 0; i < view->neighbours; i++) {
    const size_t index = (start + i) % view->neighbours;
    if (!view->neighbour[index].open)
      continue;
    if (view->source && view->live ? choose_least_sent(view, index, out)
                                   : choose_segment(view, index, rng, out))
      return true;
  }
  return false;
}

const weft_policy weft_policy_push = {.name = "push", .pick = pick};

static bool pick_at_source(void *user, const weft_policy_view *view, const weft_rng *rng,
                           weft_policy_choice *out) {
  return view->source && pick(user, view, rng, out);
}

const weft_policy weft_policy_source_only = {.name = "source-only", .pick = pick_at_source};
