// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "tests/peer/stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * SECOND + t.tv_nsec / 1000;
}

static void open_socket(stranger *x, uint32_t ip) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
  socklen_t bytes = sizeof at;
  x->fd = socket(AF_INET, SOCK_DGRAM, 0);
  EXPECT(bind(x->fd, (struct sockaddr *)&at, sizeof at) == 0);
  EXPECT(getsockname(x->fd, (struct sockaddr *)&at, &bytes) == 0);
  EXPECT(weft_address_parse("127.0.0.1:1", &x->address));
  x->address.port = ntohs(at.sin_port);
  memcpy(x->address.ip + 12, &at.sin_addr, 4);
}

// The identity of the stranger with that number, and the random numbers that follow its seed.
static weft_identity identity_of(uint64_t number, weft_rng_chacha *chance) {
  weft_identity identity;
  uint8_t seed[32];
  weft_rng_chacha_seed(chance, fixture_seed(), 100 + number);
  const weft_rng rng = weft_rng_chacha_table(chance);
  rng.fill(rng.user, seed, sizeof seed);
  weft_identity_from_seed(seed, &identity);
  return identity;
}

void stranger_key(uint64_t number, uint8_t out[32]) {
  weft_rng_chacha chance;
  const weft_identity identity = identity_of(number, &chance);
  memcpy(out, identity.public_key, 32);
}

void stranger_at(stranger *x, weft_ctx *ctx, uint32_t ip, uint64_t number,
                 const uint8_t blob[BLOB]) {
  *x = (stranger){0};
  open_socket(x, ip);
  const weft_identity identity = identity_of(number, &x->chance);
  const weft_rng rng = weft_rng_chacha_table(&x->chance);
  const weft_sessions_options options = {
      .identity = identity, .blob = blob, .blob_bytes = BLOB, .links_max = 4, .rng = &rng};
  EXPECT_OK(weft_sessions_new(ctx, &options, now_us(), &x->sessions));
}

void stranger_new(stranger *x, weft_ctx *ctx, uint64_t number, const uint8_t blob[BLOB]) {
  stranger_at(x, ctx, INADDR_LOOPBACK, number, blob);
}

void stranger_calls(stranger *x, weft_ctx *ctx, uint64_t number, const uint8_t blob[BLOB],
                    const weft_address *node) {
  stranger_new(x, ctx, number, blob);
  EXPECT_OK(weft_sessions_open(x->sessions, node, NULL, now_us(), &x->link));
}

void stranger_describes(uint8_t blob[BLOB], uint8_t role, uint8_t flags,
                        const uint8_t *source_key) {
  memset(blob, 0, BLOB);
  blob[0] = 1;
  blob[1] = role;
  if (role == WEFT_NODE_JOINING || role == WEFT_NODE_TRACKER)
    return; // they have no stream
  blob[2] = WEFT_MODE_LIVE;
  blob[3] = flags;
  blob[5] = BLOCKS;
  blob[10] = BLOCK_BYTES >> 8;
  blob[19] = 5;
  blob[25] = 4; // some rate
  memcpy(blob + 44, source_key, 32);
}

void stranger_free(stranger *x) {
  weft_sessions_free(x->sessions);
  close(x->fd);
}

void stranger_moves(stranger *x) {
  close(x->fd);
  open_socket(x, INADDR_LOOPBACK);
}

static void stranger_events(stranger *x) {
  weft_session_event event;
  while (weft_sessions_event(x->sessions, &event)) {
    if (event.kind == WEFT_SESSION_MOVED)
      continue;
    x->open = event.kind == WEFT_SESSION_OPENED;
    x->opens += x->open;
    x->link = event.link;
  }
}

void stranger_turn(stranger *x) {
  uint8_t in[2048];
  struct sockaddr_in from;
  socklen_t bytes = sizeof from;
  for (ssize_t n;
       (n = recvfrom(x->fd, in, sizeof in, MSG_DONTWAIT, (struct sockaddr *)&from, &bytes)) > 0;) {
    weft_address address = x->address; // on the loopback, too
    weft_session_plain plain;
    address.port = ntohs(from.sin_port);
    memcpy(address.ip + 12, &from.sin_addr, 4);
    if (weft_sessions_input(x->sessions, &address, in, (size_t)n, now_us(), &plain) == WEFT_OK) {
      x->refused =
          x->refused || (plain.data[1] == WEFT_MESSAGE_REFER && plain.data[2] & WEFT_REFER_FULL);
      x->lists += plain.data[1] == LIST;
      x->announces += plain.data[1] == ANNOUNCE;
      if ((plain.data[1] >= LIST && plain.data[1] <= MAPPED) ||
          plain.data[1] == WEFT_MESSAGE_REFER) {
        memcpy(x->told, plain.data, plain.bytes);
        x->told_bytes = plain.bytes;
      }
    }
    stranger_events(x);
  }
  weft_sessions_tick(x->sessions, now_us());
  stranger_events(x);
  weft_address to;
  const uint8_t *data;
  size_t length;
  while (weft_sessions_output(x->sessions, &to, &data, &length) == WEFT_OK) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(to.port)};
    memcpy(&at.sin_addr, to.ip + 12, 4);
    (void)sendto(x->fd, data, length, 0, (struct sockaddr *)&at, sizeof at);
  }
}

void stranger_says(stranger *x, const uint8_t *message, size_t bytes) {
  uint8_t out[WEFT_SESSION_DATAGRAM_BYTES];
  weft_session_peer peer;
  weft_seal seal;
  if (!x->open || weft_sessions_peer(x->sessions, x->link, &peer) != WEFT_OK ||
      weft_sessions_reserve(x->sessions, x->link, 1, now_us(), &seal) != WEFT_OK)
    return;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(peer.address.port)};
  memcpy(&at.sin_addr, peer.address.ip + 12, 4);
  const size_t n = weft_seal_datagram(&seal, 0, message, bytes, out);
  (void)sendto(x->fd, out, n, 0, (struct sockaddr *)&at, sizeof at);
}

void stranger_greets(stranger *x) {
  uint8_t message[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {
      .stream = 5, .blocks = BLOCKS, .block_bytes = BLOCK_BYTES, .stamps = {.stamp = 1}};
  stranger_says(x, message, weft_hello_write(&hello, message));
}

// --- Nodes

static weft_node *new_with(weft_node_options options, const char *listen) {
  static uint8_t number = 200;
  weft_node *node;
  const uint8_t seed[32] = {number++};
  int error;
  if (options.bootstrap_count == 0)
    options.bootstrap_count = options.bootstrap ? 1 : 0;
  options.window = 16;
  options.batch = 8;
  options.neighbours_max = 4;
  options.stream = (weft_stream){.id = 5,
                                 .blocks = BLOCKS,
                                 .block_bytes = BLOCK_BYTES,
                                 .mode = WEFT_MODE_LIVE,
                                 .trusted = true};
  EXPECT(weft_address_parse(listen, &options.listen));
  weft_identity_from_seed(seed, &options.identity);
  EXPECT_OK(weft_node_new(&options, now_us(), &node, &error));
  return node;
}

weft_node *node_new(weft_ctx *ctx, const char *listen, weft_node_role role,
                    const weft_address *bootstrap, const uint8_t *source_key) {
  const weft_node_options options = {
      .ctx = ctx, .role = role, .bootstrap = bootstrap, .source_key = source_key};
  return new_with(options, listen);
}

weft_node *node_of_host(weft_ctx *ctx, const weft_address *host, size_t count) {
  static const uint8_t same[WEFT_NODE_BOOTSTRAP];
  const weft_node_options options = {.ctx = ctx,
                                     .role = WEFT_NODE_JOINING,
                                     .bootstrap = host,
                                     .bootstrap_count = count,
                                     .bootstrap_host = same};
  return new_with(options, "127.0.0.1:0");
}

weft_node *node_telling(weft_ctx *ctx, const weft_address *bootstrap,
                        void (*event)(void *user, const weft_node_event *event), void *user) {
  const weft_node_options options = {
      .ctx = ctx, .role = WEFT_NODE_JOINING, .bootstrap = bootstrap, .event = event, .user = user};
  return new_with(options, "127.0.0.1:0");
}

void turn(weft_node *node) {
  (void)weft_node_receive(node, now_us());
  EXPECT_OK(weft_node_turn(node, now_us()));
}

void nap(void) { (void)poll(NULL, 0, 1); }

void turn_for(weft_node *node, stranger *x, size_t strangers, int64_t for_us) {
  for (const int64_t until_us = now_us() + for_us; now_us() < until_us;) {
    for (size_t i = 0; i < strangers; i++)
      stranger_turn(&x[i]);
    turn(node);
    nap();
  }
}
