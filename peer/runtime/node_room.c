// SPDX-License-Identifier: Apache-2.0
// Room for newcomers. Identities cost nothing, so whoever likes could take every session and every
// neighbour's place of a node, and keep them. Addresses cost more, and networks more than those:
// where all is taken, a newcomer gets the place of one that was refused already, of one of the many
// that come from one address, or of one of the many of one network.
//
// Each of these makes shares more equal, those of addresses or, these as they are, those of
// networks. So it comes to an end, though whoever lost his place comes again; and where all are of
// one network, as in a lab, nothing is taken from anybody for that.
#include <string.h>

#include "peer/runtime/node_internal.h"

static bool counts(const node_link *l, bool neighbours) {
  return l->open && !l->tracker && (!neighbours || l->neighbour != NONE);
}

typedef bool alike(const weft_address *a, const weft_address *b);

static size_t count_of(const weft_node *node, const weft_address *address, bool neighbours,
                       alike *same) {
  size_t count = 0;
  for (size_t i = 0; i < node->options.links_max; i++)
    count += counts(&node->links[i], neighbours) && same(&node->links[i].address, address);
  return count;
}

// Never the source, nor one that was dialled from here.
static bool may_go(const weft_node *node, const node_link *l, bool neighbours) {
  return counts(l, neighbours) && !l->dialled &&
         !(node->engine && memcmp(l->public_key, node->stream.source_key, 32) == 0);
}

// Of the address (or network) that has most, by two at least more than the newcomer's, the one that
// came last; of a network, among those whose addresses have more than the newcomer's. NONE: there
// is none.
static size_t one_of_many(const weft_node *node, const weft_address *newcomer, bool neighbours,
                          alike *same) {
  const size_t own = count_of(node, newcomer, neighbours, weft_address_same_origin);
  size_t most = count_of(node, newcomer, neighbours, same) + 1, best = NONE;
  for (size_t i = 0; i < node->options.links_max; i++) {
    const node_link *l = &node->links[i];
    if (!may_go(node, l, neighbours) ||
        count_of(node, &l->address, neighbours, weft_address_same_origin) <= own)
      continue;
    if (best != NONE && same(&l->address, &node->links[best].address)) {
      best = l->since_us > node->links[best].since_us ? i : best;
      continue;
    }
    const size_t count = count_of(node, &l->address, neighbours, same);
    if (count > most)
      best = i;
    most = count > most ? count : most;
  }
  return best;
}

static size_t one_too_many(const weft_node *node, const weft_address *newcomer, bool neighbours) {
  const size_t link = one_of_many(node, newcomer, neighbours, weft_address_same_origin);
  return link != NONE ? link : one_of_many(node, newcomer, neighbours, weft_address_same_network);
}

// The one that was refused longest ago and is still here.
static size_t refused(const weft_node *node) {
  size_t best = NONE;
  for (size_t i = 0; node->engine && i < node->options.links_max; i++) {
    const node_link *l = &node->links[i];
    if (counts(l, false) && l->neighbour == NONE &&
        (best == NONE || l->since_us < node->links[best].since_us))
      best = i;
  }
  return best;
}

static void end(weft_node *node, size_t link) {
  weft_sessions_close(node->sessions, link, node->now_us);
  weft_node_lost(node, link, WEFT_SESSION_CLOSED);
}

void weft_node_make_link_room(weft_node *node, const weft_address *newcomer) {
  if (node->open_links + node->dials < node->options.links_max)
    return;
  const size_t gone = refused(node);
  const size_t link = gone != NONE ? gone : one_too_many(node, newcomer, false);
  if (link != NONE)
    end(node, link);
}

bool weft_node_make_neighbour_room(weft_node *node, const weft_address *newcomer) {
  const size_t link = one_too_many(node, newcomer, true);
  if (link == NONE)
    return false;
  weft_node_refuse(node, link);
  end(node, link);
  return true;
}

bool weft_node_may_dial(const weft_node *node) {
  const size_t most = node->options.links_max;
  const size_t kept = most / 4 < NODE_SPARE / 2 ? most / 4 : NODE_SPARE / 2;
  return node->open_links + node->dials + kept < most;
}
