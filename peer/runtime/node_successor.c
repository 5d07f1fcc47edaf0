// SPDX-License-Identifier: Apache-2.0
// Handles a source that stopped without a word and started again. At its old address it does not
// know the old sessions any more, and nothing that a third party could have sent may end them. So a
// silent node is probed, and then dialled again in parallel to the session. What it says in that
// handshake is signed.
#include <string.h>

#include "peer/runtime/node_internal.h"

static bool same_key(const weft_stream *a, const weft_stream *b) {
  return memcmp(a->source_key, b->source_key, sizeof a->source_key) == 0;
}

bool weft_node_is_bootstrap(const weft_node *node, const weft_address *address) {
  for (size_t i = 0; i < node->options.bootstrap_count; i++)
    if (weft_session_same_address(&node->bootstrap[i].address, address))
      return true;
  return false;
}

// Whether `other` may replace this node's stream. Only for live streams, whose past is over in any
// case. A file that is served again keeps its id if it is the same file. Any node can claim that
// there is a stream, so this one is given up only for one that can begin.
static bool may_succeed(const weft_node *node, const weft_stream *other) {
  const weft_stream *own = &node->stream;
  return node->role == WEFT_NODE_PEER && own->mode == WEFT_MODE_LIVE &&
         other->mode == WEFT_MODE_LIVE && own->trusted && other->trusted && same_key(own, other) &&
         weft_node_can_have(node, other);
}

// Whether a successor is known. What the source said stays true. A peer may have lied, or the
// stream that it named may be over: its word counts while what is left is played, and a minute
// more, in which others confirm it.
static bool has_successor(const weft_node *node) {
  const int64_t counts_us = NODE_SAID_US + (int64_t)node->stream.lag_ms * 1000;
  return node->successor.id != 0 &&
         (node->successor_by_source || node->now_us - node->successor_us < counts_us);
}

void weft_node_hear_of(weft_node *node, size_t link, const weft_stream *other) {
  const node_link *l = &node->links[link];
  weft_node_event event = {
      .kind = WEFT_NODE_ANOTHER_STREAM, .address = l->address, .public_key = l->public_key};
  if (may_succeed(node, other)) {
    const bool by_source = memcmp(l->public_key, other->source_key, 32) == 0;
    if (has_successor(node) && node->successor_by_source && !by_source)
      return; // the source itself is known to have one
    node->successor = *other;
    node->successor_at = l->address;
    node->successor_by_source = by_source;
    node->successor_us = node->now_us;
    event.kind = WEFT_NODE_SUCCESSOR;
    event.by_source = by_source;
  } else if (!weft_node_is_bootstrap(node, &l->address)) {
    return;
  }
  if (node->options.event && !node->leaving)
    node->options.event(node->options.user, &event);
}

weft_status weft_node_succeed(weft_node *node, int64_t now_us) {
  const weft_stream stream = node->successor;
  const weft_address at = node->successor_at;
  if (now_us > node->now_us)
    node->now_us = now_us;
  if (!node->engine || !has_successor(node) || node->leaving)
    return WEFT_E_STATE;
  for (size_t link = 0; link < node->options.links_max; link++)
    if (node->links[link].used && !node->links[link].tracker) {
      const bool open = node->links[link].open;
      weft_sessions_close(node->sessions, link, node->now_us);
      weft_node_lost(node, link, open ? WEFT_SESSION_ENDED : WEFT_SESSION_REPLACED);
    }
  weft_engine_free(node->engine);
  node->engine = NULL;
  node->role = WEFT_NODE_JOINING;
  node->successor = (weft_stream){.id = 0};
  WEFT_TRY(weft_node_start_engine(node, &stream));
  node->ended = false;
  for (size_t i = 0; i < node->options.bootstrap_count; i++) {
    node->bootstrap[i].over = false;
    if (node->bootstrap[i].link == NONE) // the rest are trackers, which stay
      node->bootstrap[i].next_us = node->now_us;
  }
  if (!weft_node_is_bootstrap(node, &at))
    (void)weft_node_dial(node, &at);
  weft_node_ask_trackers(node);
  node->seek_us = node->now_us;
  return WEFT_OK;
}

bool weft_node_bereft(const weft_node *node) {
  return node->role == WEFT_NODE_PEER && node->stream.mode == WEFT_MODE_LIVE &&
         weft_node_neighbours(node) == 0;
}

static bool being_called(const weft_node *node, const weft_address *address) {
  for (size_t i = 0; i < node->options.links_max; i++)
    if (node->links[i].used && !node->links[i].open &&
        weft_session_same_address(&node->links[i].address, address))
      return true;
  return false;
}

// Returns how long a node may be silent before it is probed; 0: it is never probed. The source and
// the nodes that the user named are probed while data is missing; all others can be replaced. A
// tracker is silent most of the time, but one that has restarted knows no nodes until they dial it.
static int64_t may_be_silent_us(const weft_node *node, const node_link *l) {
  if (!l->open || l->tracker)
    return l->open ? NODE_TRACKER_US : 0;
  const bool lacks = node->role == WEFT_NODE_PEER && !weft_engine_done(node->engine);
  const bool source = memcmp(l->public_key, node->stream.source_key, 32) == 0;
  return lacks && (source || weft_node_is_bootstrap(node, &l->address)) ? NODE_ASK_US : 0;
}

void weft_node_look_after(weft_node *node) {
  weft_session_peer peer;
  if (node->role == WEFT_NODE_TRACKER)
    return;
  for (size_t i = 0; i < node->options.links_max; i++) {
    const node_link *l = &node->links[i];
    const int64_t most_us = may_be_silent_us(node, l);
    if (most_us == 0 || weft_sessions_peer(node->sessions, i, &peer) != WEFT_OK ||
        node->now_us - peer.heard_us < most_us)
      continue;
    weft_sessions_ask(node->sessions, i, node->now_us);
    if (node->now_us - peer.heard_us >= most_us + NODE_BESIDE_US &&
        !being_called(node, &l->address) && weft_node_may_dial(node, false))
      (void)weft_node_dial(node, &l->address);
  }
}
