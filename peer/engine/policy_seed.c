// SPDX-License-Identifier: Apache-2.0
// A live source under policies whose receivers send requests.
#include "peer/engine/policy_seed.h"

bool weft_policy_source_in_turn(const weft_policy_view *view, uint64_t segment) {
  return !view->live || segment < view->play ||
         3 * (int64_t)(segment - view->play) * view->segment_us < 2 * view->lag_us;
}

// Chooses the next packets of a segment that were sent to no neighbour yet; false: all were sent.
static bool unsent(const weft_policy_view *view, uint64_t segment, weft_policy_choice *out) {
  const weft_policy_segment *own = &view->segments[segment % view->window];
  if (view->number[segment % view->window] != segment || own->sent >= own->blocks)
    return false;
  const uint32_t base = own->sent / 64 * 64, left = own->blocks - own->sent;
  uint32_t count = left < view->batch_max ? left : (uint32_t)view->batch_max;
  count = base + 64 - own->sent < count ? base + 64 - own->sent : count;
  *out = (weft_policy_choice){.segment = segment, .count = count};
  if (view->blocks_stride > 0) { // blocks are sent by number
    out->base = (uint16_t)base;
    out->mask = UINT64_MAX >> (64 - count) << (own->sent - base);
  }
  return true;
}

bool weft_policy_seed(void *user, const weft_policy_view *view, const weft_rng *rng,
                      weft_policy_choice *out) {
  (void)user;
  if (!view->source || !view->live || view->neighbours == 0)
    return false;
  const size_t start = (size_t)weft_rng_below(rng, view->neighbours);
  for (uint64_t s = view->play; s < view->horizon; s++) {
    if (!unsent(view, s, out))
      continue;
    for (size_t i = 0; i < view->neighbours; i++) {
      const size_t index = (start + i) % view->neighbours;
      const weft_policy_neighbour *n = &view->neighbour[index];
      if (!n->open || s < n->first || s >= n->first + n->count ||
          !n->wants[s % view->window].accepts || weft_policy_refused(n, s))
        continue;
      out->neighbour = index;
      return true;
    }
  }
  return false;
}
