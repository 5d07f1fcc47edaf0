// SPDX-License-Identifier: Apache-2.0
// The stream of a node: makes its engine, and maps sessions to the engine's neighbours.
#include <string.h>

#include "peer/runtime/node_internal.h"

static void set_trust(weft_node *node, bool source) {
  memcpy(node->keys.public_key, node->stream.source_key, sizeof node->keys.public_key);
  node->keys.is_source = source;
  if (source)
    memcpy(node->keys.secret_key, node->options.identity.secret_key, sizeof node->keys.secret_key);
  node->trust = weft_trust_ed25519_table(&node->keys);
}

enum { AHEAD = 64, MARGIN = 8 };

// Returns the number of segments between the source's newest and the one being played. Without a
// known rate, WEFT_NODE_LIVE_BITS_PER_S is assumed: memory is allocated only for what arrives, and
// the source drops what is no longer played. Rate and lag come from another node, and their product
// may exceed any integer.
static uint64_t between(const weft_stream *s, uint64_t segment_bytes) {
  const uint64_t rate = s->rate_bits_per_s ? s->rate_bits_per_s : WEFT_NODE_LIVE_BITS_PER_S;
  const double segments = (double)s->lag_ms / 8e3 * (double)rate / (double)segment_bytes;
  return segments < WEFT_ENGINE_MAX_WINDOW ? (uint64_t)segments + MARGIN : WEFT_ENGINE_MAX_WINDOW;
}

// Returns the number of segments to hold. A fetched file can be passed on to newcomers as long as
// its beginning is held. *behind: as the engine's option.
static size_t window_of(const weft_node_options *o, const weft_stream *s, bool source,
                        size_t *behind) {
  enum { FETCHED_BYTES = 64 << 20 };
  const uint64_t segment_bytes = (uint64_t)s->blocks * s->block_bytes;
  uint64_t wanted = AHEAD;
  *behind = 0;
  if (o->window || segment_bytes == 0) // no engine takes 0
    return o->window ? o->window : AHEAD;
  if (s->mode == WEFT_MODE_VOD)
    return source ? WEFT_ENGINE_SOURCE_WINDOWS * AHEAD : AHEAD;
  if (s->mode == WEFT_MODE_BULK) {
    const uint64_t bytes = s->bytes < FETCHED_BYTES ? s->bytes : FETCHED_BYTES;
    wanted = bytes / segment_bytes + 1; // the end may show only after a full segment
  } else if (s->rate_bits_per_s) {
    wanted = between(s, segment_bytes) * 4 / 3 + 1; // a quarter is behind the playback position
  } else {
    *behind = AHEAD / 4;
    wanted = between(s, segment_bytes) + *behind;
  }
  const uint64_t most = wanted < WEFT_ENGINE_MAX_WINDOW ? wanted : WEFT_ENGINE_MAX_WINDOW;
  return most > AHEAD ? (size_t)most : AHEAD;
}

static weft_engine_options options_for(const weft_node *node, const weft_stream *s) {
  const weft_node_options *o = &node->options;
  const bool source = node->role == WEFT_NODE_SOURCE;
  size_t behind;
  const size_t window = window_of(o, s, source, &behind);
  return (weft_engine_options){.stream = s->id,
                               .blocks = s->blocks,
                               .block_bytes = s->block_bytes,
                               .mode = s->mode,
                               .window = window,
                               .behind = behind,
                               .ahead = AHEAD,
                               .batch = o->batch,
                               .gather = node->gatherer ? o->gather : 0,
                               .neighbours_max = o->neighbours_max,
                               .neighbours_target = source ? 0 : o->neighbours_target,
                               .addresses_max = NODE_CANDIDATES,
                               .patience_us = NODE_PATIENCE_US,
                               .datagram_overhead = WEFT_SESSION_OVERHEAD_BYTES + NODE_UDP_IP_BYTES,
                               .congestion = o->congestion,
                               .rate_bits_per_s =
                                   s->mode == WEFT_MODE_BULK ? 0 : s->rate_bits_per_s,
                               .lag_us = (int64_t)s->lag_ms * 1000,
                               .startup_us = o->startup_us,
                               .checksum_us = s->checksums ? NODE_CHECKSUM_US : 0,
                               .timers = {.exchange_us = NODE_EXCHANGE_US},
                               .codec = &node->codec,
                               .policy = o->policy ? o->policy : &weft_policy_push,
                               .trust = s->trusted ? &node->trust : NULL};
}

bool weft_node_can_have(const weft_node *node, const weft_stream *stream) {
  const weft_engine_options options = options_for(node, stream);
  return weft_engine_memory_bytes(&options) > 0;
}

static weft_status start_engine(weft_node *node, const weft_stream *stream) {
  const weft_node_options *o = &node->options;
  const bool source = node->role == WEFT_NODE_SOURCE;
  node->stream = *stream;
  node->rlnc = (weft_codec_rlnc){.ctx = node->ctx};
  node->codec = weft_codec_rlnc_table(&node->rlnc);
  if (!source && o->gather > 1 && stream->trusted && stream->mode != WEFT_MODE_LIVE) {
    if (!node->gatherer)
      WEFT_TRY(weft_gatherer_new(node->ctx, &node->gatherer));
    node->codec = weft_gatherer_table(node->gatherer);
  }
  set_trust(node, source);
  node->engine_options = options_for(node, stream);
  const weft_engine_self self = {
      .source = source,
      .upload_bits_per_s = o->upload_bits_per_s,
      .rng = weft_node_rng(node),
      .stream_bytes = source && stream->mode != WEFT_MODE_LIVE ? stream->bytes : 0,
      .rereads = !source && o->rereads && stream->mode == WEFT_MODE_BULK};
  WEFT_TRY(weft_engine_new(node->ctx, &node->engine_options, &self, &node->engine));
  for (size_t i = 0; i < node->candidate_count; i++) {
    const weft_peer_address address = weft_node_opaque(&node->candidates[i]);
    weft_engine_add_address(node->engine, &address);
  }
  if (source)
    return WEFT_OK;
  uint8_t blob[WEFT_DESCRIPTION_BYTES];
  node->role = WEFT_NODE_PEER;
  return weft_sessions_set_blob(node->sessions, blob, weft_describe(WEFT_NODE_PEER, stream, blob));
}

weft_status weft_node_start_engine(weft_node *node, const weft_stream *stream) {
  const weft_node_role role = node->role;
  const weft_status status = start_engine(node, stream);
  if (status == WEFT_OK)
    return WEFT_OK;
  // Undo everything: otherwise the node would tell trackers that it has the stream.
  weft_engine_free(node->engine);
  weft_gatherer_free(node->gatherer);
  node->engine = NULL;
  node->gatherer = NULL;
  node->stream = (weft_stream){0};
  node->role = role;
  return status;
}

static void tell_failure(weft_node *node, size_t link, weft_status status) {
  const weft_node_event event = {.kind = WEFT_NODE_STREAM_FAILED,
                                 .address = node->links[link].address,
                                 .status = status,
                                 .public_key = node->links[link].public_key};
  if (node->options.event)
    node->options.event(node->options.user, &event);
}

// A joining node takes the stream from the first node that has an acceptable one. If that stream
// cannot be started, it goes on looking: the node may have lied, and memory may become free.
static void learn_stream(weft_node *node, size_t link, const weft_stream *stream) {
  const uint8_t *key = node->options.source_key;
  // A user who gives a source's key wants what that source signed, which excludes unsigned streams.
  const bool wrong =
      key && (!stream->trusted || memcmp(key, stream->source_key, sizeof stream->source_key) != 0);
  if (node->engine || node->role != WEFT_NODE_JOINING || stream->id == 0 || wrong)
    return;
  const weft_status status = weft_node_start_engine(node, stream);
  if (status != WEFT_OK) {
    tell_failure(node, link, status);
    return;
  }
  weft_node_tell(node, WEFT_NODE_STREAM, link);
  weft_node_ask_trackers(node); // they should know of this node, too
}

void weft_node_refuse(weft_node *node, size_t link) {
  uint8_t message[WEFT_DATAGRAM_MAX];
  const weft_origin origin = weft_node_origin(node, &node->links[link].address);
  weft_node_say(node, link, message, weft_engine_refusal(node->engine, &origin, message));
  node->links[link].next_us = node->now_us + NODE_REFUSE_US;
}

static bool is_source(const weft_node *node, const node_link *l) {
  return memcmp(l->public_key, node->stream.source_key, sizeof l->public_key) == 0;
}

static void add_neighbour(weft_node *node, size_t link, bool initiated) {
  node_link *l = &node->links[link];
  const weft_neighbour_options options = {.address = weft_node_opaque(weft_node_callable(l)),
                                          .origin = weft_node_origin(node, &l->address),
                                          .is_source = is_source(node, l),
                                          .dialled = initiated};
  weft_engine *e = node->engine;
  if (weft_engine_add_neighbour(e, &options, node->now_us, &l->neighbour) != WEFT_OK &&
      (!weft_node_make_neighbour_room(node, &l->address) ||
       weft_engine_add_neighbour(e, &options, node->now_us, &l->neighbour) != WEFT_OK)) {
    l->neighbour = NONE;
    weft_node_refuse(node, link);
    return;
  }
  node->link_of[l->neighbour] = link;
}

void weft_node_admit_again(weft_node *node, size_t link) { add_neighbour(node, link, false); }

static bool same_stream(const weft_node *node, const weft_stream *other) {
  return other->id == node->stream.id &&
         memcmp(other->source_key, node->stream.source_key, sizeof other->source_key) == 0;
}

// Ends the link that this one replaced. The session layer reports its end only after the new link
// has opened, which needs its place among the neighbours.
static void end_former(weft_node *node, size_t link) {
  for (size_t i = 0; i < node->options.links_max; i++)
    if (i != link && node->links[i].open &&
        memcmp(node->links[i].public_key, node->links[link].public_key, 32) == 0)
      weft_node_lost(node, i, WEFT_SESSION_REPLACED);
}

void weft_node_opened(weft_node *node, size_t link) {
  weft_session_peer peer;
  weft_stream stream;
  weft_node_role role = WEFT_NODE_JOINING;
  node_link *l = &node->links[link];
  if (weft_sessions_peer(node->sessions, link, &peer) != WEFT_OK)
    return;
  if (!l->used)
    *l = (node_link){.used = true, .neighbour = NONE, .bootstrap = NONE};
  else
    node->dials--;
  if (l->bootstrap != NONE)
    node->bootstrap[l->bootstrap].failures = 0;
  l->open = true;
  l->since_us = node->now_us;
  l->address = peer.address;
  memcpy(l->public_key, peer.public_key, 32);
  node->open_links++;
  end_former(node, link);
  const bool known = weft_described(peer.blob, peer.blob_bytes, &role, &stream);
  // An unsolicited caller is not believed. But a node that we dialled may be behind a NAT and dial
  // us.
  if (known && (peer.initiated || weft_node_looks_for(node, &peer.address)))
    learn_stream(node, link, &stream);
  // Only a node that the user named is this node's tracker, not any node that claims to be one.
  const bool named =
      l->bootstrap != NONE || (l->dialled && weft_node_is_bootstrap(node, &l->address));
  l->source_on_demand = known && role == WEFT_NODE_SOURCE && stream.mode == WEFT_MODE_VOD &&
                        memcmp(stream.source_key, l->public_key, 32) == 0;
  l->tracker = known && role == WEFT_NODE_TRACKER && (named || node->role == WEFT_NODE_TRACKER);
  const bool other = (known && stream.id != 0 && node->engine && !same_stream(node, &stream)) ||
                     (role == WEFT_NODE_TRACKER && !l->tracker);
  const bool useless = !node->engine && !l->tracker && node->role != WEFT_NODE_TRACKER;
  if (!known || other || useless) {
    if (other && role != WEFT_NODE_TRACKER)
      weft_node_hear_of(node, link, &stream);
    weft_sessions_close(node->sessions, link, node->now_us);
    weft_node_lost(node, link, WEFT_SESSION_OTHER_IDENTITY);
    return;
  }
  weft_node_say_mapped(node, link);
  if (l->tracker) {
    weft_node_announce(node, link);
  } else if (node->engine) {
    add_neighbour(node, link, peer.initiated);
    if (l->bootstrap != NONE)
      node->bootstrap[l->bootstrap].source = is_source(node, l);
    weft_node_tell(node, WEFT_NODE_NEIGHBOUR, link);
  }
}

void weft_node_show_callable(weft_node *node, size_t link) {
  const node_link *l = &node->links[link];
  if (l->neighbour == NONE)
    return;
  const weft_peer_address address = weft_node_opaque(weft_node_callable(l));
  (void)weft_engine_move_neighbour(node->engine, l->neighbour, &address);
}

void weft_node_moved(weft_node *node, size_t link) {
  weft_session_peer peer;
  node_link *l = &node->links[link];
  if (!l->open || weft_sessions_peer(node->sessions, link, &peer) != WEFT_OK)
    return;
  l->address = peer.address;
  if (l->neighbour == NONE)
    return;
  weft_node_show_callable(node, link);
  weft_node_tell(node, WEFT_NODE_MOVED, link);
}

// A bootstrap address whose session was replaced by another with the same node is not dialled while
// that other one lasts. Which link that is is not recorded: it may be any that ends.
static void call_again(weft_node *node) {
  for (size_t i = 0; i < node->options.bootstrap_count; i++)
    if (node->bootstrap[i].next_us == INT64_MAX)
      node->bootstrap[i].next_us = node->now_us + NODE_RETRY_US;
}

void weft_node_lost(weft_node *node, size_t link, weft_session_reason reason) {
  node_link *l = &node->links[link];
  weft_neighbour_statistics s;
  if (!l->used)
    return;
  weft_node_parts(node, l, reason);
  if (l->neighbour != NONE && node->engine) {
    if (weft_engine_get_neighbour(node->engine, l->neighbour, &s) == WEFT_OK)
      weft_node_gone(node, l->public_key, s.had_all, reason == WEFT_SESSION_SILENT);
    (void)weft_engine_remove_neighbour(node->engine, l->neighbour);
    node->link_of[l->neighbour] = NONE;
  }
  if (l->open)
    node->open_links--;
  else
    node->dials--;
  weft_node_event event = {.kind = l->open ? WEFT_NODE_NEIGHBOUR_LOST : WEFT_NODE_UNREACHABLE,
                           .address = l->address,
                           .reason = reason,
                           .public_key = l->public_key};
  const bool told = l->open ? !l->tracker || reason == WEFT_SESSION_ELSEWHERE
                            : l->bootstrap != NONE && reason != WEFT_SESSION_REPLACED;
  if (!l->open && node->engine) {
    const weft_peer_address address = weft_node_opaque(&l->address);
    weft_engine_dial_failed(node->engine, &address);
  }
  if (l->open && reason != WEFT_SESSION_REPLACED)
    call_again(node);
  if (l->bootstrap != NONE) {
    node_bootstrap *b = &node->bootstrap[l->bootstrap];
    b->link = NONE;
    b->next_us = reason == WEFT_SESSION_REPLACED ? INT64_MAX : node->now_us + NODE_RETRY_US;
    b->failures += !l->open && reason != WEFT_SESSION_REPLACED;
    event.host = b->host;
    event.ended = node->ended;
    event.failures = b->failures;
  }
  *l = (node_link){.neighbour = NONE, .bootstrap = NONE};
  if (told && node->options.event && !node->leaving)
    node->options.event(node->options.user, &event);
}

size_t weft_node_neighbours(const weft_node *node) {
  size_t count = 0;
  for (size_t i = 0; i < node->options.links_max; i++)
    count += node->links[i].open && node->links[i].neighbour != NONE;
  return count;
}

// What is known of the source, if it is a neighbour and has not restarted.
static bool source_seen(const weft_node *node, weft_neighbour_statistics *s) {
  for (size_t i = 0; node->engine && i < node->options.links_max; i++) {
    const node_link *l = &node->links[i];
    if (l->open && l->neighbour != NONE &&
        weft_engine_get_neighbour(node->engine, l->neighbour, s) == WEFT_OK && s->is_source &&
        !s->anew)
      return true;
  }
  return false;
}

bool weft_node_has_source(const weft_node *node) {
  weft_neighbour_statistics s;
  return source_seen(node, &s);
}

uint64_t weft_node_source_segments(const weft_node *node) {
  weft_neighbour_statistics s;
  return source_seen(node, &s) ? s.first : 0;
}

static weft_session_reason why_lost(weft_lost_reason reason) {
  return reason == WEFT_LOST_LEFT     ? WEFT_SESSION_CLOSED
         : reason == WEFT_LOST_SILENT ? WEFT_SESSION_SILENT
                                      : WEFT_SESSION_ENDED;
}

// The engine has dropped a neighbour: end its session, too.
static void drop_neighbour(weft_node *node, const weft_event *event) {
  const size_t link = node->link_of[event->neighbour];
  node->link_of[event->neighbour] = NONE;
  if (link == NONE)
    return;
  node_link *l = &node->links[link];
  l->neighbour = NONE;
  weft_node_gone(node, l->public_key, event->had_all, event->reason == WEFT_LOST_SILENT);
  if (event->reason == WEFT_LOST_BANNED) {
    memcpy(node->bans[node->ban_count++ % NODE_BANS], l->public_key, 32);
    weft_node_tell(node, WEFT_NODE_BANNED, link);
  }
  weft_sessions_close(node->sessions, link, node->now_us);
  weft_node_lost(node, link, why_lost(event->reason));
}

void weft_node_engine_events(weft_node *node) {
  weft_event event;
  while (weft_engine_event(node->engine, &event)) {
    if (event.kind == WEFT_EVENT_NEIGHBOUR_LOST) {
      drop_neighbour(node, &event);
    } else if (event.kind == WEFT_EVENT_LONELY) {
      weft_node_ask_trackers(node);
    } else if (event.kind == WEFT_EVENT_DIAL) {
      weft_node_dial_for_engine(node, &event);
    } else if (event.kind != WEFT_EVENT_NEIGHBOUR_OPEN && node->options.event) {
      const weft_node_event told = {.kind = WEFT_NODE_ENGINE, .engine = event};
      node->options.event(node->options.user, &told);
    }
  }
}
