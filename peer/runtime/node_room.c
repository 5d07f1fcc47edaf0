// SPDX-License-Identifier: Apache-2.0
// Makes room for newcomers, and chooses which nodes a tracker lists for them. Identities cost
// nothing, so one party could take every session and every neighbour's place of a node, and keep
// them. Addresses cost more, and networks still more. Where everything is taken, a newcomer
// replaces a node that was already refused (of sessions) or that has all of what is fetched (of
// neighbours), else one of the many from one address, else one of the many from one network.
//
// Each of the last two makes the shares of addresses more equal or, without changing those, the
// shares of networks. So it comes to an end even if the replaced nodes return; and where all nodes
// are in one network, as in a lab, none is replaced for that.
#include <stdlib.h>
#include <string.h>

#include "peer/runtime/kernel_address.h"
#include "peer/runtime/node_internal.h"

static bool counts(const node_link *l, bool neighbours) {
  return l->open && !l->tracker && (!neighbours || l->neighbour != NONE);
}

// Whether a link may be ended: never the source's, nor one that was dialled from here.
static bool may_go(const weft_node *node, const node_link *l) {
  return !l->dialled && !(node->engine && memcmp(l->public_key, node->stream.source_key, 32) == 0);
}

static int by_address(const void *a, const void *b) {
  const node_link *const *x = a, *const *y = b;
  return memcmp((*x)->address.ip, (*y)->address.ip, sizeof(*x)->address.ip);
}

// Links sorted so that those of an address or network are adjacent: a tracker has a thousand.
typedef struct crowd {
  const node_link *links[WEFT_SESSION_MAX_LINKS];
  size_t count;
} crowd;

typedef bool alike(const weft_address *a, const weft_address *b);

static void gather(const weft_node *node, bool neighbours, crowd *out) {
  out->count = 0;
  for (size_t i = 0; i < node->options.links_max; i++)
    if (counts(&node->links[i], neighbours))
      out->links[out->count++] = &node->links[i];
  qsort(out->links, out->count, sizeof *out->links, by_address);
}

static size_t count_of(const crowd *all, const weft_address *address, alike *same) {
  size_t count = 0;
  for (size_t i = 0; i < all->count; i++)
    count += same(&all->links[i]->address, address);
  return count;
}

// Returns the end of the links that are `same` as the one at `first`.
static size_t run_end(const crowd *all, size_t first, alike *same) {
  size_t end = first;
  while (end < all->count && same(&all->links[first]->address, &all->links[end]->address))
    end++;
  return end;
}

// Returns the newest of links [first, end) that may go and whose address has more than `least`
// links; NULL if there is none.
static const node_link *newest(const weft_node *node, const crowd *all, size_t first, size_t end,
                               size_t least) {
  const node_link *best = NULL;
  for (size_t at = first; at < end;) {
    const size_t next = run_end(all, at, weft_address_same_origin);
    const bool many = next - at > least;
    for (; at < next; at++) {
      const node_link *l = all->links[at];
      if (many && may_go(node, l) && (!best || l->since_us > best->since_us))
        best = l;
    }
  }
  return best;
}

// Returns the newest link of the address (or network) with most links, which has at least two more
// than the newcomer's. In a network, only addresses with more links than the newcomer's count.
static const node_link *one_of_many(const weft_node *node, const crowd *all,
                                    const weft_address *newcomer, alike *same) {
  const size_t least = count_of(all, newcomer, weft_address_same_origin);
  size_t most = count_of(all, newcomer, same) + 1;
  const node_link *best = NULL;
  for (size_t first = 0, end; first < all->count; first = end) {
    end = run_end(all, first, same);
    const node_link *l = end - first > most ? newest(node, all, first, end, least) : NULL;
    if (!l)
      continue;
    best = l;
    most = end - first;
  }
  return best;
}

// Returns the link to end for the newcomer; NONE: it has no more right to a place than the others.
static size_t one_too_many(const weft_node *node, const weft_address *newcomer, bool neighbours) {
  crowd all;
  gather(node, neighbours, &all);
  const node_link *l = one_of_many(node, &all, newcomer, weft_address_same_origin);
  if (!l)
    l = one_of_many(node, &all, newcomer, weft_address_same_network);
  return l ? (size_t)(l - node->links) : NONE;
}

// Returns, of the refused links that are still open, the one that opened first.
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
  weft_node_lost(node, link, WEFT_SESSION_ENDED);
}

// Whether the newcomer has a place already: it is being dialled, or it returns, for example from
// another port, and its new session takes the place of the former one. Nothing else is ended for
// it. A former one that was dialled may be the one that both sides keep.
static bool has_place(const weft_node *node, const uint8_t public_key[32],
                      const weft_address *newcomer, size_t *former) {
  *former = NONE;
  for (size_t i = 0; i < node->options.links_max; i++) {
    const node_link *l = &node->links[i];
    if (l->used && !l->open && weft_session_same_address(&l->address, newcomer))
      return true;
    if (l->open && memcmp(l->public_key, public_key, sizeof l->public_key) == 0)
      *former = i;
  }
  return *former != NONE;
}

void weft_node_make_link_room(weft_node *node, const uint8_t public_key[32],
                              const weft_address *newcomer) {
  size_t former;
  if (node->open_links + node->dials < node->options.links_max)
    return;
  if (has_place(node, public_key, newcomer, &former)) {
    if (former != NONE && !node->links[former].dialled)
      end(node, former);
    return;
  }
  const size_t gone = refused(node);
  const size_t link = gone != NONE ? gone : one_too_many(node, newcomer, false);
  if (link != NONE)
    end(node, link);
}

// Returns, in a fetch, the oldest neighbour that has everything: it needs no others any more.
static size_t finished(const weft_node *node) {
  size_t best = NONE;
  for (size_t i = 0; node->stream.mode == WEFT_MODE_BULK && i < node->options.links_max; i++) {
    const node_link *l = &node->links[i];
    weft_neighbour_statistics s;
    if (counts(l, true) && may_go(node, l) &&
        (best == NONE || l->since_us < node->links[best].since_us) &&
        weft_engine_get_neighbour(node->engine, l->neighbour, &s) == WEFT_OK && s.had_all)
      best = i;
  }
  return best;
}

bool weft_node_make_neighbour_room(weft_node *node, const weft_address *newcomer) {
  const size_t idle = finished(node);
  const size_t link = idle != NONE ? idle : one_too_many(node, newcomer, true);
  if (link == NONE)
    return false;
  weft_node_refuse(node, link);
  end(node, link);
  return true;
}

// Keyed, so that nobody can choose an address that has the number of another's.
static uint16_t number_of(const weft_node *node, const uint8_t *ip, size_t bytes) {
  uint8_t hash[crypto_shorthash_BYTES];
  (void)crypto_shorthash(hash, ip, bytes, node->origin_key);
  const unsigned number = (unsigned)hash[0] << 8 | hash[1];
  return number ? (uint16_t)number : 1;
}

weft_origin weft_node_origin(const weft_node *node, const weft_address *address) {
  const size_t v4 = weft_address_is_v4(address) ? WEFT_V4_PREFIX_BYTES : 0;
  return (weft_origin){.address = number_of(node, address->ip, v4 ? v4 + 4 : 8),
                       .network = number_of(node, address->ip, v4 ? v4 + 3 : 6)};
}

// --- Which nodes a tracker lists

static bool may_be_told(const weft_node *node, size_t link, size_t asks, uint64_t stream) {
  const node_link *l = &node->links[link];
  return link != asks && l->open && l->announced && (!stream || l->announced == stream) &&
         !weft_address_is_of_link(&l->address);
}

static void shuffle(const node_link **links, size_t count, const weft_rng *rng) {
  for (size_t left = count; left > 1; left--) {
    const size_t other = (size_t)weft_rng_below(rng, left);
    const node_link *l = links[left - 1];
    links[left - 1] = links[other];
    links[other] = l;
  }
}

// Chooses the source of a stream on demand. Its key proves what it is, but anybody may use the
// number of another's stream: then one of them.
static size_t source_of(const weft_node *node, size_t asks, uint64_t stream, const weft_rng *rng) {
  size_t chosen = NONE;
  uint64_t seen = 0;
  for (size_t i = 0; stream && i < node->options.links_max; i++)
    if (may_be_told(node, i, asks, stream) && node->links[i].source_on_demand &&
        weft_rng_below(rng, ++seen) == 0)
      chosen = i;
  return chosen;
}

// Takes one node of each address in turn; otherwise one address with many identities could fill the
// list.
void weft_node_tell_of(weft_node *node, size_t asks, uint64_t stream, weft_list *list) {
  const weft_rng rng = weft_node_rng(node);
  const size_t source = source_of(node, asks, stream, &rng);
  uint16_t turn[WEFT_SESSION_MAX_LINKS];
  crowd all = {.count = 0};
  list->stream = stream;
  list->count = list->source_first = source != NONE;
  if (list->source_first)
    list->entries[0] = *weft_node_callable(&node->links[source]);
  for (size_t i = 0; i < node->options.links_max; i++)
    if (may_be_told(node, i, asks, stream) && i != source)
      all.links[all.count++] = &node->links[i];
  qsort(all.links, all.count, sizeof *all.links, by_address);
  for (size_t first = 0, end; first < all.count; first = end) {
    end = run_end(&all, first, weft_address_same_origin);
    shuffle(all.links + first, end - first, &rng);
    for (size_t at = first; at < end; at++)
      turn[at] = (uint16_t)(at - first);
  }
  const size_t most = all.count + list->count;
  for (uint16_t now = 0; list->count < WEFT_LIST_MAX && list->count < most; now++) {
    const size_t left = WEFT_LIST_MAX - list->count;
    uint64_t seen = 0;
    for (size_t at = 0; at < all.count; at++) {
      if (turn[at] != now)
        continue;
      const uint64_t to = seen++ < left ? seen - 1 : weft_rng_below(&rng, seen);
      if (to < left)
        list->entries[list->count + to] = *weft_node_callable(all.links[at]);
    }
    list->count += seen < left ? (size_t)seen : left;
  }
}

// --- Room to dial

// Whether another call may be returned. Any node can ask for that, so returned calls get half of
// the free sessions; otherwise a liar could keep this node from dialling the nodes that it wants.
static bool may_return(const weft_node *node, size_t room) {
  size_t calls = 0;
  for (size_t i = 0; i < node->options.links_max; i++)
    calls += node->links[i].used && !node->links[i].open && node->links[i].returns_call;
  return 2 * calls < room;
}

bool weft_node_may_dial(const weft_node *node, bool returns_call) {
  const size_t most = node->options.links_max;
  const size_t kept = most / 4 < NODE_SPARE / 2 ? most / 4 : NODE_SPARE / 2;
  if (node->open_links + node->dials + kept >= most)
    return false;
  return !returns_call || may_return(node, most - kept - node->open_links);
}
