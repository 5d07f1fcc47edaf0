// SPDX-License-Identifier: Apache-2.0
// Pull: receivers request coded packets of what is played first; only a live source sends without
// requests.
#include "peer/engine/policy_seed.h"

enum {
  SPARE = 32,  // one packet in so many is requested twice when time is short: some get lost
  SURPLUS = 4, // the part of a higher rank that is taken for news beyond what comes from others
  DOUBT = 32,  // the part of a rank that is taken for news where ranks do not tell
  CROWDED = 2  // unanswered requests, for each of which a new one may be a burst larger
};

// Whether the segment is in the second half of its lag; always so if the stream is not live.
static bool is_late(const weft_policy_view *view, uint64_t segment) {
  return !view->live || segment < view->play ||
         2 * (int64_t)(segment - view->play) * view->segment_us <= view->lag_us;
}

// How many packets that we lack a neighbour can give, as far as ranks tell. What it has beyond our
// rank and all that is coming is surely news; less than that may be what is coming. A neighbour of
// no higher rank has other directions, too, as long as neither has all; but how many is unknown, so
// it is asked late.
static size_t can_give(const weft_policy_view *view, size_t neighbour, uint64_t segment,
                       bool *sure) {
  const size_t at = segment % view->window;
  const weft_policy_neighbour *n = &view->neighbour[neighbour];
  const weft_policy_segment *own = &view->segments[at];
  const bool inside = segment >= n->first && segment < n->first + n->count;
  const size_t rank = segment < n->first ? own->blocks : inside ? n->wants[at].rank : 0;
  const size_t coming = (size_t)own->received + own->asked;
  *sure = rank > coming;
  if (segment < n->oldest || (inside && n->wants[at].vain))
    return 0;
  if (*sure)
    return rank - coming;
  const size_t news = rank > own->received     ? (rank - own->received + SURPLUS - 1) / SURPLUS
                      : is_late(view, segment) ? (rank + DOUBT - 1) / DOUBT
                                               : 0;
  const size_t asked = weft_policy_asked(view, neighbour, segment);
  return news > asked ? news - asked : 0;
}

// A neighbour that can help with the segment: of the surest the least busy one; `neighbours` if
// there is none.
static size_t helper(const weft_policy_view *view, uint64_t segment, const weft_rng *rng,
                     size_t *gives) {
  const size_t start = (size_t)weft_rng_below(rng, view->neighbours);
  const bool ask_source = weft_policy_source_in_turn(view, segment);
  size_t best = view->neighbours, best_room = 0;
  bool best_sure = false;
  for (size_t i = 0; i < view->neighbours; i++) {
    const size_t index = (start + i) % view->neighbours;
    const weft_policy_neighbour *n = &view->neighbour[index];
    if (n->room == 0 || !n->known || (n->source && !ask_source))
      continue;
    bool sure;
    const size_t some = can_give(view, index, segment, &sure);
    if (some == 0 || sure < best_sure || (sure == best_sure && n->room <= best_room))
      continue;
    best = index;
    best_room = n->room;
    best_sure = sure;
    *gives = some;
  }
  return best;
}

static bool ask(void *user, const weft_policy_view *view, const weft_rng *rng,
                weft_policy_choice *out) {
  (void)user;
  for (uint64_t s = view->missing; s < view->first + view->count && s < view->horizon; s++) {
    const weft_policy_segment *own = &view->segments[s % view->window];
    const size_t coming = (size_t)own->received + own->asked;
    const size_t wanted =
        own->blocks + (weft_policy_source_in_turn(view, s) ? own->blocks / SPARE + 1u : 0u);
    // What is here cannot be lost any more, so it needs no spare packets.
    if (own->received >= own->blocks || coming >= wanted || view->neighbours == 0 ||
        weft_policy_class(s) < view->forgone)
      continue;
    size_t gives = 0;
    const size_t index = helper(view, s, rng, &gives);
    if (index == view->neighbours)
      continue;
    size_t count = wanted - coming;
    count = count < gives ? count : gives;
    count = count < view->neighbour[index].room ? count : view->neighbour[index].room;
    const size_t most = view->batch_max * (1u + view->neighbour[index].asking / CROWDED);
    *out = (weft_policy_choice){
        .neighbour = index, .segment = s, .count = count < most ? count : most};
    return true;
  }
  return false;
}

const weft_policy weft_policy_pull = {.name = "pull", .pick = weft_policy_seed, .ask = ask};
