// SPDX-License-Identifier: Apache-2.0
// Pull: receivers ask for coded packets of what is played first; nobody sends unasked.
#include "weft/peer_policy.h"

enum { AHEAD = 3 }; // requests of one neighbour under way, at most

// A neighbour that can help with the segment, the least busy one; `neighbours` if there is none.
static size_t helper(const weft_policy_view *view, uint64_t segment, const weft_rng *rng,
                     size_t *gives) {
  const weft_policy_segment *own = &view->segments[segment % view->window];
  const size_t start = (size_t)weft_rng_below(rng, view->neighbours);
  size_t best = view->neighbours, best_asking = AHEAD;
  for (size_t i = 0; i < view->neighbours; i++) {
    const size_t index = (start + i) % view->neighbours;
    const weft_policy_neighbour *n = &view->neighbour[index];
    if (n->asking >= best_asking || !n->known)
      continue;
    const size_t at = segment % view->window;
    const bool inside = segment >= n->first && segment < n->first + n->count;
    const size_t rank = segment < n->first ? own->blocks : inside ? n->wants[at].rank : 0;
    if (rank <= own->received || segment < n->oldest)
      continue;
    best = index;
    best_asking = n->asking;
    *gives = rank - own->received;
  }
  return best;
}

static bool ask(void *user, const weft_policy_view *view, const weft_rng *rng,
                weft_policy_choice *out) {
  (void)user;
  for (uint64_t s = view->missing; s < view->first + view->count && s < view->horizon; s++) {
    const weft_policy_segment *own = &view->segments[s % view->window];
    const size_t coming = (size_t)own->received + own->asked;
    if (coming >= own->blocks || view->neighbours == 0)
      continue;
    size_t gives = 0;
    const size_t index = helper(view, s, rng, &gives);
    if (index == view->neighbours)
      continue;
    size_t count = own->blocks - coming;
    count = count < gives ? count : gives;
    *out = (weft_policy_choice){.neighbour = index,
                                .segment = s,
                                .count = count < view->batch_max ? count : view->batch_max};
    return true;
  }
  return false;
}

const weft_policy weft_policy_pull = {.name = "pull", .ask = ask};
