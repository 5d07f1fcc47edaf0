// SPDX-License-Identifier: Apache-2.0
// Counts the neighbours that have left, an identity only once even if it returns, and notices when
// they leave because the stream has ended.
#include <string.h>

#include "peer/runtime/node_internal.h"

// Returns its index; NONE: it has never left, or long ago.
static size_t find(const weft_node *node, const uint8_t *key) {
  for (size_t i = 0; i < node->gone_count && i < NODE_GONE; i++)
    if (memcmp(node->gone[i].public_key, key, sizeof node->gone[i].public_key) == 0)
      return i;
  return NONE;
}

void weft_node_gone(weft_node *node, const uint8_t *key, bool had_all, bool silent) {
  const size_t before = find(node, key);
  const int64_t silent_us = silent ? node->now_us : 0;
  if (before != NONE) {
    node->gone[before].had_all = node->gone[before].had_all || had_all;
    node->gone[before].silent_us = silent_us;
    return;
  }
  node_gone *g = &node->gone[node->gone_count % NODE_GONE];
  if (node->gone_count++ >= NODE_GONE) { // should that one come again, it counts again
    node->had_all += g->had_all;
    node->left_early += !g->had_all;
  }
  memcpy(g->public_key, key, sizeof g->public_key);
  g->had_all = had_all;
  g->silent_us = silent_us;
}

static bool had_all(const weft_node *node, const node_link *link) {
  weft_neighbour_statistics s;
  return node->engine && link->neighbour != NONE &&
         weft_engine_get_neighbour(node->engine, link->neighbour, &s) == WEFT_OK && s.had_all;
}

bool weft_node_ended(const weft_node *node) {
  if (node->role != WEFT_NODE_PEER || node->stream.mode != WEFT_MODE_LIVE)
    return false;
  bool ended = node->ended;
  for (size_t i = 0; i < node->options.links_max && !ended; i++)
    ended = had_all(node, &node->links[i]);
  return ended;
}

// The source of a live stream serves it no more once it has left, or fallen silent, at the end.
void weft_node_parts(weft_node *node, const node_link *link, weft_session_reason reason) {
  const bool source = memcmp(link->public_key, node->stream.source_key, 32) == 0;
  node->ended = weft_node_ended(node);
  const bool gone = reason == WEFT_SESSION_CLOSED || reason == WEFT_SESSION_SILENT;
  if (!node->ended || !source || !gone || !had_all(node, link))
    return;
  for (size_t i = 0; i < node->options.bootstrap_count; i++)
    for (size_t k = 0; k < node->options.bootstrap_count; k++)
      if (node->bootstrap[i].host == node->bootstrap[k].host &&
          weft_session_same_address(&node->bootstrap[k].address, &link->address))
        node->bootstrap[i].over = true;
}

static bool is_back(const weft_node *node, const node_gone *gone) {
  for (size_t i = 0; i < node->options.neighbours_max; i++)
    if (node->link_of[i] != NONE && memcmp(node->links[node->link_of[i]].public_key,
                                           gone->public_key, sizeof gone->public_key) == 0)
      return true;
  return false;
}

void weft_node_count(const weft_node *node, weft_node_statistics *out) {
  weft_neighbour_statistics s;
  out->had_all = node->had_all;
  out->left_early = node->left_early;
  out->silent_us = 0;
  for (size_t i = 0; i < node->gone_count && i < NODE_GONE; i++) {
    const node_gone *const gone = &node->gone[i];
    out->had_all += gone->had_all;
    out->left_early += !gone->had_all;
    if (!gone->had_all && gone->silent_us > out->silent_us && !is_back(node, gone))
      out->silent_us = gone->silent_us;
  }
  for (size_t i = 0; node->engine && i < node->options.neighbours_max; i++) {
    if (node->link_of[i] == NONE || weft_engine_get_neighbour(node->engine, i, &s) != WEFT_OK)
      continue;
    const size_t before = find(node, node->links[node->link_of[i]].public_key);
    const bool had_all = before != NONE && node->gone[before].had_all;
    out->left_early -= before != NONE && !had_all; // it is back
    out->had_all += s.had_all && !had_all;
  }
}
