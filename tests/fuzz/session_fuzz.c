// SPDX-License-Identifier: Apache-2.0
// Two nodes that want a session, and a network scripted by the input: it delivers, drops, damages
// and repeats their datagrams, adds its own, and lets time pass. Nothing may be opened that the
// other side has not sealed, no node may answer with more than three times the bytes received, and
// only handshakes and questions may go to an address that has not answered.
//
// Input: steps of one byte. 0: deliver the next datagram; 1: drop it; 2, offset, mask: damage it
// and deliver both; 3: deliver the last one again; 4, n: n datagrams sealed by the first node; 5,
// ms: time passes; 6: deliver the next from another port; anything else: length, bytes: a datagram
// of a stranger.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weft/peer_rng.h"
#include "weft/peer_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUEUE = 64, STEP_US = 20000, PORT = 9, OTHER_PORT = 10 };
enum { ACCEPT = 0x73, DATA = 0x75, CLOSE = 0x76, HERE = 0x78 };

typedef struct parcel {
  size_t to, bytes;
  uint8_t data[WEFT_SESSION_DATAGRAM_BYTES];
} parcel;

typedef struct net {
  weft_sessions *node[2];
  int64_t now_us;
  parcel queue[QUEUE], last;
  size_t first, count;
  bool proved; // a node has answered at the other port
} net;

static const uint8_t text[] = "what one says to the other";

static void require(int condition) {
  if (!condition)
    abort();
}

static weft_address address_of(size_t node) {
  return (weft_address){.ip = {[15] = (uint8_t)(node + 1)}, .port = PORT};
}

static void turn(net *n) {
  for (size_t i = 0; i < 2; i++) {
    weft_session_event event;
    weft_address to;
    const uint8_t *data;
    size_t bytes;
    weft_sessions_tick(n->node[i], n->now_us);
    while (weft_sessions_event(n->node[i], &event))
      require(event.link < 2);
    while (weft_sessions_output(n->node[i], &to, &data, &bytes) == WEFT_OK) {
      require(bytes >= 28 && bytes <= WEFT_SESSION_DATAGRAM_BYTES);
      n->proved = n->proved || (to.port == OTHER_PORT && data[0] == ACCEPT); // a cookie came back
      require(to.port != OTHER_PORT || n->proved || (data[0] != DATA && data[0] != CLOSE));
      if (to.ip[15] < 1 || to.ip[15] > 2 || n->count == QUEUE)
        continue;
      parcel *p = &n->queue[(n->first + n->count++) % QUEUE];
      p->to = to.ip[15] - 1u;
      p->bytes = bytes;
      memcpy(p->data, data, bytes);
    }
  }
}

static void deliver(net *n, size_t to, const weft_address *from, const uint8_t *data,
                    size_t bytes) {
  uint8_t *copy = malloc(bytes + 1);
  weft_session_plain plain;
  require(copy != NULL);
  memcpy(copy, data, bytes);
  n->proved = n->proved || (bytes && data[0] == HERE);
  if (weft_sessions_input(n->node[to], from, copy, bytes, n->now_us, &plain) == WEFT_OK)
    require(plain.bytes == sizeof text && memcmp(plain.data, text, sizeof text) == 0);
  free(copy);
  turn(n);
}

static void deliver_parcel(net *n, const parcel *p) {
  const weft_address from = address_of(1 - p->to);
  deliver(n, p->to, &from, p->data, p->bytes);
}

static void say(net *n, size_t times) {
  weft_seal seal;
  weft_session_peer peer;
  for (size_t link = 0; link < 2; link++)
    for (size_t i = 0; i < times && n->count < QUEUE; i++) {
      if (weft_sessions_peer(n->node[0], link, &peer) != WEFT_OK || peer.address.ip[15] != 2)
        break;
      require(peer.address.port == PORT || n->proved);
      parcel *p = &n->queue[(n->first + n->count++) % QUEUE];
      require(weft_sessions_reserve(n->node[0], link, 1, n->now_us, &seal) == WEFT_OK);
      p->to = 1;
      p->bytes = weft_seal_datagram(&seal, 0, text, sizeof text, p->data);
    }
}

static size_t step(net *n, const uint8_t *data, size_t size) {
  const uint8_t op = data[0], a = size > 1 ? data[1] : 0, b = size > 2 ? data[2] : 0;
  if ((op <= 2 || op == 6) && n->count) {
    n->last = n->queue[n->first];
    n->first = (n->first + 1) % QUEUE;
    n->count--;
  }
  switch (op) {
  case 0:
  case 3:
    deliver_parcel(n, &n->last);
    return 1;
  case 1:
    return 1;
  case 2: {
    parcel damaged = n->last;
    if (damaged.bytes)
      damaged.data[a * damaged.bytes / 256] ^= b;
    deliver_parcel(n, &damaged);
    deliver_parcel(n, &n->last);
    return 3;
  }
  case 4:
    say(n, a % 8);
    return 2;
  case 5:
    n->now_us += (int64_t)a * STEP_US;
    turn(n);
    return 2;
  case 6: {
    weft_address from = address_of(1 - n->last.to);
    from.port = OTHER_PORT;
    deliver(n, n->last.to, &from, n->last.data, n->last.bytes);
    return 1;
  }
  default: {
    const size_t bytes = size > 2 ? (a < size - 2 ? a : size - 2) : 0;
    const weft_address from = address_of(1);
    deliver(n, op & 1u, &from, data + (size > 2 ? 2 : 0), bytes);
    return 2 + bytes;
  }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static net n;
  weft_ctx *ctx;
  weft_rng_chacha chacha[2];
  const weft_ctx_options scalar = {.backend = "scalar"};
  require(weft_ctx_new(&ctx, &scalar) == WEFT_OK);
  n = (net){.now_us = 1};
  for (size_t i = 0; i < 2; i++) {
    const uint8_t seed[32] = {(uint8_t)i};
    weft_rng_chacha_seed(&chacha[i], 1, i);
    const weft_rng rng = weft_rng_chacha_table(&chacha[i]);
    weft_sessions_options options = {.links_max = 2, .rekey_us = 2000000, .rng = &rng};
    weft_identity_from_seed(seed, &options.identity);
    require(weft_sessions_new(ctx, &options, n.now_us, &n.node[i]) == WEFT_OK);
  }
  const weft_address other = address_of(1);
  size_t link;
  require(weft_sessions_open(n.node[0], &other, NULL, n.now_us, &link) == WEFT_OK);
  turn(&n);
  for (size_t at = 0; at < size;) {
    const size_t used = step(&n, data + at, size - at);
    at += used < size - at ? used : size - at;
  }
  for (size_t i = 0; i < 2; i++)
    weft_sessions_free(n.node[i]);
  weft_ctx_free(ctx);
  return 0;
}
