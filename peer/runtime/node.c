// SPDX-License-Identifier: Apache-2.0
// The node's life, and the path of datagrams: socket, session, engine, and back.
#include <string.h>

#include <sodium.h>

#include "peer/runtime/node_internal.h"

// --- Making and freeing

static void default_to(size_t *value, size_t otherwise) { *value = *value ? *value : otherwise; }

static bool admit(void *user, const uint8_t public_key[32], const weft_address *address) {
  weft_node *node = user;
  for (size_t i = 0; i < node->ban_count && i < NODE_BANS; i++)
    if (memcmp(node->bans[i], public_key, 32) == 0)
      return false;
  if (!node->leaving)
    weft_node_make_link_room(node, public_key, address);
  return !node->leaving;
}

static weft_status new_sessions(weft_node *node, int64_t now_us) {
  uint8_t blob[WEFT_DESCRIPTION_BYTES];
  const weft_rng rng = weft_node_rng(node);
  const weft_stream *stream = node->role == WEFT_NODE_SOURCE ? &node->stream : NULL;
  const weft_sessions_options options = {.identity = node->options.identity,
                                         .blob = blob,
                                         .blob_bytes = weft_describe(node->role, stream, blob),
                                         .links_max = node->options.links_max,
                                         .cipher = node->options.cipher,
                                         .rng = &rng,
                                         .admit = admit,
                                         .user = node};
  return weft_sessions_new(node->ctx, &options, now_us, &node->sessions);
}

static weft_status start(weft_node *node, int64_t now_us, int *error) {
  weft_node_options *o = &node->options;
  uint8_t key[WEFT_RNG_KEY_BYTES];
  randombytes_buf(key, sizeof key);
  weft_rng_chacha_init(&node->chance, key);
  sodium_memzero(key, sizeof key);
  randombytes_buf(node->origin_key, sizeof node->origin_key);
  WEFT_TRY(weft_session_allocate(node->ctx, o->links_max, sizeof *node->links, &node->links));
  WEFT_TRY(
      weft_session_allocate(node->ctx, o->neighbours_max, sizeof *node->link_of, &node->link_of));
  for (size_t i = 0; i < o->neighbours_max; i++)
    node->link_of[i] = NONE;
  for (size_t i = 0; i < o->bootstrap_count; i++)
    node->bootstrap[i] = (node_bootstrap){.address = o->bootstrap[i],
                                          .link = NONE,
                                          .next_us = now_us,
                                          .host = o->bootstrap_host ? o->bootstrap_host[i] : i};
  o->bootstrap = NULL;
  o->bootstrap_host = NULL;
  WEFT_TRY(weft_udp_open(node->ctx, &o->listen, &node->udp, error));
  if (node->role == WEFT_NODE_SOURCE) {
    node->stream = o->stream;
    memcpy(node->stream.source_key, o->identity.public_key, 32);
  }
  WEFT_TRY(new_sessions(node, now_us));
  weft_udp_filter(&node->udp, weft_sessions_places(node->sessions));
  return node->role == WEFT_NODE_SOURCE ? weft_node_start_engine(node, &node->stream) : WEFT_OK;
}

weft_status weft_node_new(const weft_node_options *options, int64_t now_us, weft_node **out,
                          int *error) {
  weft_node *node;
  *out = NULL;
  *error = 0;
  if (!options->ctx || options->bootstrap_count > WEFT_NODE_BOOTSTRAP ||
      options->role == WEFT_NODE_PEER)
    return WEFT_E_ARGUMENT;
  if (sodium_init() < 0)
    return WEFT_E_RANDOM;
  WEFT_TRY(weft_session_allocate(options->ctx, 1, sizeof *node, &node));
  node->options = *options;
  node->ctx = options->ctx;
  node->role = options->role;
  node->udp.fd = -1;
  node->candidate_dialled = NONE;
  node->now_us = node->seek_us = now_us;
  node->mapped_us = INT64_MAX;
  weft_node_options *o = &node->options;
  default_to(&o->batch, 16);
  default_to(&o->neighbours_target, 8);
  // Not unlimited: the nodes that get new segments first would divide their uplink among so many
  // neighbours that none has enough of them in time to pass on (docs/sim/churn.md).
  default_to(&o->neighbours_max, 2 * o->neighbours_target);
  // Some more than neighbours: for trackers, and for nodes that are told that there is no room.
  default_to(&o->links_max, o->role == WEFT_NODE_TRACKER ? 1024 : o->neighbours_max + NODE_SPARE);
  const weft_status status = start(node, now_us, error);
  if (status == WEFT_OK)
    *out = node;
  else
    weft_node_free(node);
  return status;
}

void weft_node_free(weft_node *node) {
  if (!node)
    return;
  weft_engine_free(node->engine);
  weft_gatherer_free(node->gatherer);
  weft_sessions_free(node->sessions);
  weft_udp_close(&node->udp);
  weft_ctx *ctx = node->ctx;
  void *const parts[] = {node->links, node->link_of};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    weft_free(ctx, WEFT_MEM_HOST, parts[i]);
  sodium_memzero(node, sizeof *node);
  weft_free(ctx, WEFT_MEM_HOST, node);
}

// --- Small parts

weft_rng weft_node_rng(weft_node *node) { return weft_rng_chacha_table(&node->chance); }

void weft_node_tell(weft_node *node, weft_node_event_kind kind, size_t link) {
  const weft_node_event event = {.kind = kind,
                                 .address = node->links[link].address,
                                 .public_key = node->links[link].public_key};
  if (node->options.event)
    node->options.event(node->options.user, &event);
}

int weft_node_fd(const weft_node *node) { return node->udp.fd; }
bool weft_node_wants_write(const weft_node *node) { return node->udp.blocked; }
weft_status weft_node_address(const weft_node *node, weft_address *out) {
  return weft_udp_own_address(&node->udp, out);
}
const weft_stream *weft_node_stream(const weft_node *node) {
  return node->engine ? &node->stream : NULL;
}
weft_engine *weft_node_engine(weft_node *node) { return node->engine; }
size_t weft_node_links(const weft_node *node) { return node->open_links; }

// --- In

static void take_events(weft_node *node) {
  weft_session_event event;
  while (weft_sessions_event(node->sessions, &event))
    if (event.kind == WEFT_SESSION_OPENED)
      weft_node_opened(node, event.link);
    else if (event.kind == WEFT_SESSION_MOVED)
      weft_node_moved(node, event.link);
    else
      weft_node_lost(node, event.link, event.reason);
}

// Handles session events before the next datagram, which may come from another newcomer: `admit`
// makes room for that by what the links record, and a newcomer that finds no room gets no answer
// until its handshake times out.
static void take(void *user, const weft_address *from, uint8_t *datagram, size_t bytes) {
  weft_node *node = user;
  weft_session_plain plain;
  const weft_status status =
      weft_sessions_input(node->sessions, from, datagram, bytes, node->now_us, &plain);
  take_events(node);
  if (status != WEFT_OK)
    return;
  node_link *l = &node->links[plain.link];
  if (plain.bytes >= 2 && plain.data[1] >= WEFT_KIND_NODE_FIRST)
    weft_node_message(node, plain.link, plain.data, plain.bytes);
  else if (l->open && l->neighbour != NONE)
    (void)weft_engine_input(node->engine, l->neighbour, plain.data, plain.bytes, node->now_us);
  else if (l->open && node->engine && !l->tracker && node->now_us >= l->next_us)
    weft_node_admit_again(node, plain.link); // it had no room, and the refusal was lost
}

// Time never goes back, not even when something was sent a little early (NODE_SLACK_US).
static void set_time(weft_node *node, int64_t now_us) {
  node->now_us = now_us > node->now_us ? now_us : node->now_us;
}

bool weft_node_receive(weft_node *node, int64_t now_us) {
  set_time(node, now_us);
  return weft_udp_receive(&node->udp, NODE_RECEIVE_MOST, take, node) >= NODE_RECEIVE_MOST;
}

// --- Out

void weft_node_say(weft_node *node, size_t link, const uint8_t *message, size_t bytes) {
  weft_session_peer peer;
  weft_seal seal;
  if (weft_sessions_peer(node->sessions, link, &peer) != WEFT_OK)
    return;
  uint8_t *room = weft_udp_room(&node->udp, &peer.address);
  if (!room || weft_sessions_reserve(node->sessions, link, 1, node->now_us, &seal) != WEFT_OK)
    node->send_dropped++;
  else
    weft_udp_filled(&node->udp, weft_seal_datagram(&seal, 0, message, bytes, room));
}

static void send_burst(weft_node *node, const weft_burst *burst) {
  const size_t link = node->link_of[burst->neighbour];
  weft_session_peer peer;
  weft_seal seal;
  if (link == NONE || weft_sessions_peer(node->sessions, link, &peer) != WEFT_OK ||
      weft_sessions_reserve(node->sessions, link, burst->count, node->now_us, &seal) != WEFT_OK) {
    node->send_dropped += burst->count;
    return;
  }
  for (size_t i = 0; i < burst->count; i++) {
    const weft_datagram *d = &burst->datagrams[i];
    uint8_t *room = weft_udp_room(&node->udp, &peer.address);
    if (!room || d->bytes > WEFT_SESSION_PLAIN_BYTES) {
      node->send_dropped += burst->count - i; // the socket is full: treated as lost on the way
      return;
    }
    weft_udp_filled(&node->udp, weft_seal_datagram(&seal, i, d->data, d->bytes, room));
  }
}

static weft_status send_engine(weft_node *node) {
  weft_burst burst;
  const int64_t until_us = node->now_us + NODE_SLACK_US;
  node->more_output = false;
  for (size_t bursts = 0; node->engine && !node->udp.blocked; bursts++) {
    if (bursts == NODE_SEND_MOST) { // let other work of the loop run
      node->more_output = true;
      return WEFT_OK;
    }
    const weft_status status = weft_engine_output(node->engine, node->now_us, &burst);
    if (status == WEFT_OK) {
      send_burst(node, &burst);
      continue;
    }
    if (status != WEFT_PENDING)
      return status;
    // A loop's timers count milliseconds, so what is due within one is due now. Otherwise a control
    // message, which occupies the uplink for some microseconds, would delay data by a turn each
    // time.
    const int64_t at_us = weft_engine_deadline(node->engine);
    if (at_us <= node->now_us || at_us > until_us)
      return WEFT_OK;
    node->now_us = at_us;
  }
  return WEFT_OK;
}

static void send_sessions(weft_node *node) {
  weft_address to;
  const uint8_t *data;
  size_t bytes;
  while (!node->udp.blocked &&
         weft_sessions_output(node->sessions, &to, &data, &bytes) == WEFT_OK) {
    uint8_t *room = weft_udp_room(&node->udp, &to);
    if (!room)
      return;
    memcpy(room, data, bytes);
    weft_udp_filled(&node->udp, bytes);
  }
}

weft_status weft_node_turn(weft_node *node, int64_t now_us) {
  set_time(node, now_us);
  now_us = node->now_us;
  if (node->udp.blocked)
    weft_udp_flush(&node->udp);
  weft_sessions_tick(node->sessions, now_us);
  take_events(node);
  weft_node_seek(node);
  if (node->engine) {
    weft_engine_tick(node->engine, now_us);
    weft_node_engine_events(node);
  }
  const weft_status status = send_engine(node);
  if (node->engine)
    weft_node_engine_events(node);
  send_sessions(node);
  weft_udp_flush(&node->udp);
  return status;
}

int64_t weft_node_deadline(const weft_node *node) {
  if (node->udp.blocked)
    return weft_node_seek_deadline(node); // what is due cannot be sent
  if (node->more_output)
    return node->now_us; // at once
  int64_t at = weft_sessions_deadline(node->sessions);
  const int64_t seek = weft_node_seek_deadline(node);
  const int64_t engine = node->engine ? weft_engine_deadline(node->engine) : INT64_MAX;
  at = seek < at ? seek : at;
  return engine < at ? engine : at;
}

void weft_node_leave(weft_node *node, int64_t now_us) {
  set_time(node, now_us);
  node->leaving = true;
  for (size_t link = 0; link < node->options.links_max; link++) {
    const node_link *l = &node->links[link];
    if (!l->used)
      continue;
    if (l->tracker) {
      uint8_t message[WEFT_ANNOUNCE_BYTES];
      weft_node_say(node, link, message, weft_announce_write(true, node->stream.id, message));
    }
    weft_sessions_close(node->sessions, link, now_us); // tells the other side
    send_sessions(node);                               // a tracker has more links than it holds
    weft_node_lost(node, link, WEFT_SESSION_ENDED);
  }
}

void weft_node_get_statistics(const weft_node *node, weft_node_statistics *out) {
  const weft_udp_statistics *u = &node->udp.statistics;
  *out = (weft_node_statistics){.links = node->open_links,
                                .sent = u->sent,
                                .sent_bytes = u->sent_bytes,
                                .send_calls = u->send_calls,
                                .send_errors = u->send_errors,
                                .send_error = u->send_error,
                                .send_dropped = node->send_dropped,
                                .received = u->received,
                                .received_bytes = u->received_bytes,
                                .receive_calls = u->receive_calls};
  if (node->engine)
    weft_engine_get_statistics(node->engine, &out->engine);
  weft_node_count(node, out);
  weft_sessions_get_statistics(node->sessions, &out->sessions);
  for (size_t i = 0; i < node->options.links_max; i++)
    out->announced += node->links[i].announced != 0;
}
