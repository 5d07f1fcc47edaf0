// SPDX-License-Identifier: Apache-2.0
// A policy of your own: it decides, in place of weft, what a peer sends next. own_policy.c runs it
// in a program; with the headers that tools/install has installed it needs no program of its own:
//
//   cc -shared -fPIC -O2 -o most_behind.so most_behind.c $(pkg-config --cflags libweft)
//   weft sim flash-crowd --sweep scheme=push,./most_behind.so
#include <weft/peer_policy.h>

// Returns how many packets of a segment we can send that are new to a neighbour.
static size_t useful(const weft_policy_view *view, const weft_policy_neighbour *to,
                     uint64_t segment) {
  const size_t at = (size_t)(segment % view->window);
  const weft_policy_segment *ours = &view->segments[at];
  const weft_policy_want *want = &to->wants[at];
  const unsigned has = want->rank + want->in_flight;
  if (view->number[at] != segment || !want->accepts || ours->blocks == 0 || has >= ours->rank)
    return 0;
  return ours->rank - has;
}

// Picks the neighbour and segment with the most new packets; among equals, a random neighbour.
static bool most_behind(void *user, const weft_policy_view *view, const weft_rng *rng,
                        weft_policy_choice *out) {
  size_t most = 0;
  const size_t start = view->neighbours ? (size_t)weft_rng_below(rng, view->neighbours) : 0;
  (void)user;
  for (size_t i = 0; i < view->neighbours; i++) {
    const size_t index = (start + i) % view->neighbours;
    const weft_policy_neighbour *to = &view->neighbour[index];
    for (uint64_t s = view->first; to->open && s < view->first + view->count; s++) {
      const bool known = s >= to->first && s < to->first + to->count && s < view->horizon;
      const size_t count = known ? useful(view, to, s) : 0;
      if (count > most) {
        most = count;
        *out = (weft_policy_choice){.neighbour = index, .segment = s, .count = count};
      }
    }
  }
  out->count = out->count < view->batch_max ? out->count : view->batch_max;
  return most > 0;
}

WEFT_POLICY_FILE = {WEFT_POLICY_LAYOUT, {.name = "most-behind", .pick = most_behind}};
