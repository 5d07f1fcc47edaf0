// SPDX-License-Identifier: Apache-2.0
// Finds other nodes: bootstrap addresses, trackers, and what neighbours know.
#include <string.h>

#include "peer/runtime/kernel_address.h"
#include "peer/runtime/node_internal.h"

size_t weft_node_dial(weft_node *node, const weft_address *address) {
  size_t link;
  if (weft_sessions_open(node->sessions, address, NULL, node->now_us, &link) != WEFT_OK)
    return NONE;
  node->links[link] = (node_link){
      .used = true, .dialled = true, .neighbour = NONE, .bootstrap = NONE, .address = *address};
  node->dials++;
  return link;
}

static bool linked(const weft_node *node, const weft_address *address) {
  for (size_t i = 0; i < node->options.links_max; i++)
    if (node->links[i].used && weft_session_same_address(&node->links[i].address, address))
      return true;
  return false;
}

// A mapped port is passed on only if it is at the address where the node is seen. Elsewhere, it
// would make others dial a third party, or is on another path than the node's datagrams take.
const weft_address *weft_node_callable(const node_link *l) {
  const bool own = memcmp(l->mapped.ip, l->address.ip, sizeof l->address.ip) == 0;
  return l->mapped.port && own ? &l->mapped : &l->address;
}

static bool is_at(const node_link *l, const weft_address *address) {
  return weft_session_same_address(&l->address, address) ||
         weft_session_same_address(weft_node_callable(l), address);
}

void weft_node_add_candidate(weft_node *node, const weft_address *address) {
  for (size_t i = 0; i < node->candidate_count; i++)
    if (weft_session_same_address(&node->candidates[i], address))
      return;
  node->candidates[node->candidate_next] = *address;
  node->candidate_next = (node->candidate_next + 1) % NODE_CANDIDATES;
  node->candidate_count += node->candidate_count < NODE_CANDIDATES;
}

bool weft_node_looks_for(const weft_node *node, const weft_address *address) {
  for (size_t i = 0; i < node->options.bootstrap_count; i++)
    if (weft_address_same_origin(&node->bootstrap[i].address, address))
      return true;
  for (size_t i = 0; i < node->candidate_count; i++)
    if (weft_address_same_origin(&node->candidates[i], address))
      return true;
  return false;
}

void weft_node_announce(weft_node *node, size_t link) {
  uint8_t message[WEFT_ANNOUNCE_BYTES];
  node_link *l = &node->links[link];
  // A tracker knows a restarted source by another stream, so a bereft node (weft_node_bereft)
  // alternately asks for its own and for any stream.
  l->asks_any = !l->asks_any && weft_node_bereft(node);
  const uint64_t stream = l->asks_any ? 0 : node->stream.id;
  weft_node_say(node, link, message, weft_announce_write(false, stream, message));
  l->next_us = node->now_us + NODE_RETRY_US; // unless it answers before
}

// A link-local address is meaningless elsewhere, and one that another node lists is never dialled.
weft_peer_address weft_node_opaque(const weft_address *address) {
  if (weft_address_is_of_link(address))
    return (weft_peer_address){.length = 0};
  weft_peer_address opaque = {.length = WEFT_LIST_ENTRY_BYTES};
  weft_address_write(address, opaque.bytes);
  return opaque;
}

// Has the trackers tell a node that it is being dialled, as it may be behind a NAT.
static void ask_to_meet(weft_node *node, const weft_address *address) {
  uint8_t message[WEFT_TRACKER_MEET_BYTES];
  const size_t bytes = weft_tracker_meet_write(false, address, message);
  for (size_t i = 0; i < node->options.links_max; i++)
    if (node->links[i].open && node->links[i].tracker)
      weft_node_say(node, i, message, bytes);
}

void weft_node_dial_for_engine(weft_node *node, const weft_event *dial) {
  weft_address address = {0};
  size_t link = NONE;
  if (dial->address.length == WEFT_LIST_ENTRY_BYTES)
    address = weft_address_read(dial->address.bytes);
  if (address.port && !linked(node, &address) && !node->leaving &&
      weft_node_may_dial(node, dial->calls_back))
    link = weft_node_dial(node, &address);
  if (link == NONE)
    weft_engine_dial_failed(node->engine, &dial->address);
  else if (dial->calls_back)
    node->links[link].returns_call = true;
  else
    ask_to_meet(node, &address);
}

// Dials candidates to learn the stream. Goes round them from a random start, so that each is
// dialled once before any is dialled again.
static void dial_candidates(weft_node *node) {
  const weft_rng rng = weft_node_rng(node);
  if (node->candidate_dialled == NONE && node->candidate_count)
    node->candidate_dialled = (size_t)weft_rng_below(&rng, node->candidate_count);
  for (size_t tries = 0; node->role == WEFT_NODE_JOINING && tries < node->candidate_count &&
                         node->dials < NODE_JOINING_DIALS;
       tries++) {
    node->candidate_dialled = (node->candidate_dialled + 1) % node->candidate_count;
    const weft_address address = node->candidates[node->candidate_dialled];
    if (!linked(node, &address) && weft_node_dial(node, &address) != NONE)
      ask_to_meet(node, &address);
  }
}

void weft_node_ask_trackers(weft_node *node) {
  for (size_t i = 0; i < node->options.links_max; i++)
    if (node->links[i].tracker)
      node->links[i].next_us = node->seek_us = node->now_us;
}

// Answers as a tracker with random nodes that have the stream (0: any).
static void answer(weft_node *node, size_t link, uint64_t stream) {
  uint8_t message[WEFT_LIST_MAX_BYTES];
  weft_list list;
  weft_node_tell_of(node, link, stream, &list);
  weft_node_say(node, link, message, weft_list_write(&list, message));
}

// Limits a rate to one per every_us, with a burst of at_once. *answers_us: the time up to which the
// answers so far have used the rate.
static bool allowed(const weft_node *node, int64_t *answers_us, int64_t every_us, int64_t at_once) {
  const int64_t earliest_us = node->now_us - (at_once - 1) * every_us;
  if (*answers_us > node->now_us)
    return false;
  *answers_us = (*answers_us > earliest_us ? *answers_us : earliest_us) + every_us;
  return true;
}

// At a tracker: takes an announcement. A list is longer than the request for it, so it is sent once
// a second at most, with a burst for a node that comes, learns its stream and lacks neighbours at
// the same time. A node that gets no answer announces itself again.
static void take_announce(weft_node *node, size_t link, bool leaving, uint64_t stream) {
  node->links[link].announced = leaving ? 0 : stream;
  if (!leaving && allowed(node, &node->links[link].answers_us, 1000000, 4))
    answer(node, link, stream);
}

// At a tracker: tells the node at `called` that `link` is dialling it.
static void introduce(weft_node *node, size_t link, const weft_address *called) {
  uint8_t message[WEFT_TRACKER_MEET_BYTES];
  if (!allowed(node, &node->links[link].meets_us, 100000, 16))
    return;
  for (size_t i = 0; i < node->options.links_max; i++) {
    const node_link *l = &node->links[i];
    if (i == link || !l->open || !l->announced || !is_at(l, called))
      continue;
    weft_node_say(node, i, message,
                  weft_tracker_meet_write(true, weft_node_callable(&node->links[link]), message));
    return;
  }
}

// Takes a tracker's list, which confirms that the announcement arrived. Until then it is repeated
// soon, as the tracker does not list a node whose announcement was lost. A node without a stream
// asks again soon in any case: its source may be on its way to the tracker, too.
static void take_list(weft_node *node, size_t link, const weft_list *list) {
  const bool own = list->stream == node->stream.id;
  if (node->role != WEFT_NODE_JOINING && own && !weft_node_bereft(node))
    node->links[link].next_us = node->now_us + NODE_ANNOUNCE_US;
  for (size_t i = 0; i < list->count; i++) {
    const weft_peer_address opaque = weft_node_opaque(&list->entries[i]);
    if (!node->engine)
      weft_node_add_candidate(node, &list->entries[i]);
    else if (i == 0 && list->source_first && own)
      weft_engine_set_source_address(node->engine, &opaque);
    else
      weft_engine_add_address(node->engine, &opaque);
  }
  dial_candidates(node);
}

static bool taken(const weft_node *node, const weft_address *address) {
  for (size_t i = 0; i < node->options.links_max; i++)
    if (node->links[i].used &&
        weft_session_same_address(weft_node_callable(&node->links[i]), address))
      return true;
  return false;
}

// Takes a node's mapped port. A node that changed it with every message could make others dial all
// ports of its address, so changes are limited. Nor may it take an address that is already passed
// on for another node.
static void take_mapped(weft_node *node, size_t link, const weft_address *mapped) {
  node_link *l = &node->links[link];
  const weft_address before = *weft_node_callable(l);
  if (weft_session_same_address(&l->mapped, mapped) ||
      !allowed(node, &l->mapped_us, NODE_MAPPED_US, 4))
    return;
  l->mapped = (weft_address){0};
  if (!taken(node, mapped))
    l->mapped = *mapped;
  if (!weft_session_same_address(&before, weft_node_callable(l)))
    weft_node_show_callable(node, link);
}

void weft_node_message(weft_node *node, size_t link, const uint8_t *data, size_t bytes) {
  weft_list list;
  weft_address address;
  uint64_t stream;
  bool flag;
  if (!node->links[link].open || data[0] != WEFT_WIRE_VERSION)
    return;
  const bool tracker = node->links[link].tracker, serves = node->role == WEFT_NODE_TRACKER;
  if (data[1] == WEFT_KIND_ANNOUNCE && serves && weft_announce_parse(data, bytes, &flag, &stream)) {
    take_announce(node, link, flag, stream);
  } else if (data[1] == WEFT_KIND_LIST && tracker && weft_list_parse(data, bytes, &list)) {
    take_list(node, link, &list);
  } else if (data[1] == WEFT_KIND_MEET && weft_tracker_meet_parse(data, bytes, &flag, &address)) {
    const weft_peer_address opaque = weft_node_opaque(&address);
    if (!flag && serves)
      introduce(node, link, &address);
    else if (flag && tracker && node->engine)
      weft_engine_call(node->engine, &opaque, node->now_us);
  } else if (data[1] == WEFT_KIND_MAPPED && weft_mapped_parse(data, bytes, &address)) {
    take_mapped(node, link, &address);
  }
}

// --- This node's mapped port

void weft_node_set_mapped(weft_node *node, const weft_address *mapped) {
  const weft_address at = mapped ? *mapped : (weft_address){0};
  if (node->role == WEFT_NODE_TRACKER || weft_session_same_address(&node->mapped, &at))
    return; // trackers are never listed
  node->mapped = at;
  node->mapped_us = node->seek_us = node->now_us;
}

void weft_node_say_mapped(weft_node *node, size_t link) {
  uint8_t message[WEFT_MAPPED_BYTES];
  if (node->mapped_us != INT64_MAX)
    weft_node_say(node, link, message, weft_mapped_write(&node->mapped, message));
}

// Repeated, since a datagram may be lost.
static void say_mapped_to_all(weft_node *node) {
  if (node->now_us < node->mapped_us)
    return;
  for (size_t i = 0; i < node->options.links_max; i++)
    if (node->links[i].open)
      weft_node_say_mapped(node, i);
  node->mapped_us = node->now_us + NODE_ANNOUNCE_US;
}

// --- Bootstrap addresses

static size_t bootstrap_count(const weft_node *node) { return node->options.bootstrap_count; }

// Whether a bootstrap address may be dialled now. One address of a host is dialled at a time, the
// first of those that failed least, and none while there is a session with that host.
static bool its_turn(const weft_node *node, size_t at) {
  const node_bootstrap *own = &node->bootstrap[at];
  for (size_t i = 0; i < bootstrap_count(node); i++) {
    const node_bootstrap *b = &node->bootstrap[i];
    if (i == at || b->host != own->host)
      continue;
    const bool before = b->failures < own->failures || (b->failures == own->failures && i < at);
    if (before || b->link != NONE || b->next_us == INT64_MAX || linked(node, &b->address))
      return false;
  }
  return true;
}

static bool is_needed(const weft_node *node, const node_bootstrap *b) {
  if (b->over)
    return false;
  return !b->source || !node->engine || weft_engine_needs_source(node->engine, node->now_us);
}

static bool among(const weft_address *addresses, size_t count, const weft_address *one) {
  for (size_t i = 0; i < count; i++)
    if (weft_session_same_address(&addresses[i], one))
      return true;
  return false;
}

static void forget_bootstrap(weft_node *node, size_t at) {
  node->options.bootstrap_count--;
  for (size_t i = at; i < bootstrap_count(node); i++) {
    node->bootstrap[i] = node->bootstrap[i + 1];
    if (node->bootstrap[i].link != NONE)
      node->links[node->bootstrap[i].link].bootstrap = i;
  }
}

static bool known_at(const weft_node *node, size_t host, const weft_address *address) {
  for (size_t i = 0; i < bootstrap_count(node); i++)
    if (node->bootstrap[i].host == host &&
        weft_session_same_address(&node->bootstrap[i].address, address))
      return true;
  return false;
}

void weft_node_set_host(weft_node *node, size_t host, const weft_address *addresses, size_t count) {
  for (size_t i = bootstrap_count(node); i-- > 0;) {
    const node_bootstrap *b = &node->bootstrap[i];
    if (b->host == host && b->link == NONE && b->next_us != INT64_MAX &&
        !among(addresses, count, &b->address))
      forget_bootstrap(node, i);
  }
  for (size_t i = 0; i < count && bootstrap_count(node) < WEFT_NODE_BOOTSTRAP; i++)
    if (!known_at(node, host, &addresses[i]))
      node->bootstrap[node->options.bootstrap_count++] = (node_bootstrap){
          .address = addresses[i], .link = NONE, .next_us = node->now_us, .host = host};
}

void weft_node_seek(weft_node *node) {
  if (node->leaving || node->now_us < weft_node_seek_deadline(node))
    return;
  for (size_t i = 0; i < bootstrap_count(node); i++) {
    node_bootstrap *b = &node->bootstrap[i];
    if (b->link != NONE || node->now_us < b->next_us || !its_turn(node, i) || !is_needed(node, b))
      continue;
    b->next_us = node->now_us + NODE_RETRY_US;
    if (linked(node, &b->address))
      continue;
    b->link = weft_node_dial(node, &b->address);
    if (b->link != NONE)
      node->links[b->link].bootstrap = i;
  }
  for (size_t i = 0; i < node->options.links_max; i++)
    if (node->links[i].open && node->links[i].tracker && node->now_us >= node->links[i].next_us)
      weft_node_announce(node, i);
  say_mapped_to_all(node);
  dial_candidates(node);
  weft_node_look_after(node);
  node->seek_us = node->now_us + NODE_SEEK_US;
}

int64_t weft_node_seek_deadline(const weft_node *node) {
  if (node->leaving || (node->role == WEFT_NODE_TRACKER && bootstrap_count(node) == 0))
    return INT64_MAX;
  return node->seek_us;
}
