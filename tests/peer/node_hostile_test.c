// SPDX-License-Identifier: Apache-2.0
// A node on the loopback and strangers with sessions, who do what no node does: hold places and ask
// for nothing, and tell lies about the stream.
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"
#include "weft/peer_node.h"

enum { ANNOUNCE = 64, LIST = 65 }; // docs/peer.md
enum { BLOCKS = 16, BLOCK_BYTES = 1024, BLOB = 76, STRANGERS = 24, SECOND = 1000000 };

static int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * SECOND + t.tv_nsec / 1000;
}

// --- Strangers: sessions on a socket of their own

typedef struct stranger {
  int fd;
  weft_sessions *sessions;
  weft_rng_chacha chance;
  weft_address address;
  size_t link;
  bool open, refused;
  size_t opens, lists;
} stranger;

static void stranger_at(stranger *x, weft_ctx *ctx, uint32_t ip, uint64_t number,
                        const uint8_t blob[BLOB]) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
  socklen_t bytes = sizeof at;
  uint8_t seed[32];
  *x = (stranger){.fd = socket(AF_INET, SOCK_DGRAM, 0)};
  EXPECT(bind(x->fd, (struct sockaddr *)&at, sizeof at) == 0);
  EXPECT(getsockname(x->fd, (struct sockaddr *)&at, &bytes) == 0);
  EXPECT(weft_address_parse("127.0.0.1:1", &x->address));
  x->address.port = ntohs(at.sin_port);
  memcpy(x->address.ip + 12, &at.sin_addr, 4);
  weft_rng_chacha_seed(&x->chance, fixture_seed(), 100 + number);
  const weft_rng rng = weft_rng_chacha_table(&x->chance);
  weft_sessions_options options = {.blob = blob, .blob_bytes = BLOB, .links_max = 4, .rng = &rng};
  rng.fill(rng.user, seed, sizeof seed);
  weft_identity_from_seed(seed, &options.identity);
  EXPECT_OK(weft_sessions_new(ctx, &options, now_us(), &x->sessions));
}

static void stranger_new(stranger *x, weft_ctx *ctx, uint64_t number, const uint8_t blob[BLOB]) {
  stranger_at(x, ctx, INADDR_LOOPBACK, number, blob);
}

static void stranger_free(stranger *x) {
  weft_sessions_free(x->sessions);
  close(x->fd);
}

static void stranger_events(stranger *x) {
  weft_session_event event;
  while (weft_sessions_event(x->sessions, &event)) {
    x->open = event.kind == WEFT_SESSION_OPENED;
    x->opens += x->open;
    x->link = event.link;
  }
}

static void stranger_turn(stranger *x) {
  uint8_t in[2048];
  struct sockaddr_in from;
  socklen_t bytes = sizeof from;
  for (ssize_t n;
       (n = recvfrom(x->fd, in, sizeof in, MSG_DONTWAIT, (struct sockaddr *)&from, &bytes)) > 0;) {
    weft_address address = x->address; // of the loopback, too
    weft_session_plain plain;
    address.port = ntohs(from.sin_port);
    memcpy(address.ip + 12, &from.sin_addr, 4);
    if (weft_sessions_input(x->sessions, &address, in, (size_t)n, now_us(), &plain) == WEFT_OK) {
      x->refused =
          x->refused || (plain.data[1] == WEFT_MESSAGE_REFER && plain.data[2] & WEFT_REFER_FULL);
      x->lists += plain.data[1] == LIST;
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

static void stranger_says(stranger *x, const uint8_t *message, size_t bytes) {
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

// Greets, so that it becomes a neighbour and stays one.
static void stranger_greets(stranger *x) {
  uint8_t message[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {
      .stream = 5, .blocks = BLOCKS, .block_bytes = BLOCK_BYTES, .stamps = {.stamp = 1}};
  stranger_says(x, message, weft_hello_write(&hello, message));
}

// --- Nodes

static weft_node *node_new(weft_ctx *ctx, const char *listen, weft_node_role role,
                           const weft_address *bootstrap, const uint8_t *source_key) {
  static uint8_t number = 200;
  weft_node *node;
  weft_node_options options = {.ctx = ctx,
                               .role = role,
                               .bootstrap = bootstrap,
                               .bootstrap_count = bootstrap ? 1 : 0,
                               .source_key = source_key,
                               .window = 16,
                               .batch = 8,
                               .neighbours_max = 4,
                               .stream = {.id = 5,
                                          .blocks = BLOCKS,
                                          .block_bytes = BLOCK_BYTES,
                                          .mode = WEFT_MODE_LIVE,
                                          .trusted = true}};
  const uint8_t seed[32] = {number++};
  int error;
  EXPECT(weft_address_parse(listen, &options.listen));
  weft_identity_from_seed(seed, &options.identity);
  EXPECT_OK(weft_node_new(&options, now_us(), &node, &error));
  return node;
}

static void turn(weft_node *node) {
  (void)weft_node_receive(node, now_us());
  EXPECT_OK(weft_node_turn(node, now_us()));
}

static void nap(void) { (void)poll(NULL, 0, 1); }

// A source to whom so many strangers dial, from 127.0.0.1 or from an address each.
static weft_node *source_for(weft_ctx *ctx, stranger *x, size_t strangers, bool spread,
                             weft_address *address) {
  static const uint8_t joining[BLOB] = {1};
  weft_node *const source = node_new(ctx, "127.0.0.1:0", WEFT_NODE_SOURCE, NULL, NULL);
  EXPECT_OK(weft_node_address(source, address));
  for (size_t i = 0; i < strangers; i++) {
    stranger_at(&x[i], ctx, INADDR_LOOPBACK + (spread ? 10 + (uint32_t)i : 0), i, joining);
    EXPECT_OK(weft_sessions_open(x[i].sessions, address, NULL, now_us(), &x[i].link));
  }
  return source;
}

// Strangers take all that they can get of a source, from 127.0.0.1 or from an address each; then
// one comes from elsewhere. Whether it gets a place.
static bool hold_and_come(size_t strangers, bool spread, const char *comes) {
  stranger x[STRANGERS];
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_address address;
  weft_node *source = source_for(ctx, x, strangers, spread, &address);
  weft_node *honest = NULL;
  bool came = false;
  size_t full = 0;
  const int64_t start_us = now_us();
  while (!came && now_us() - start_us < 6 * SECOND) {
    const bool settled = now_us() - start_us > SECOND;
    full = 0;
    for (size_t i = 0; i < strangers; i++) {
      stranger_turn(&x[i]);
      full += x[i].opens > 0;
      stranger_greets(&x[i]);
    }
    turn(source);
    if (settled && !honest)
      honest = node_new(ctx, comes, WEFT_NODE_JOINING, &address, NULL);
    if (honest)
      turn(honest);
    came = honest && weft_node_has_source(honest) && now_us() - start_us > 2 * SECOND;
    nap();
  }
  EXPECT(full >= 4);
  weft_node_free(honest);
  weft_node_free(source);
  for (size_t i = 0; i < strangers; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
  return came;
}

START_TEST(neighbours_of_one_address_make_room) { EXPECT(hold_and_come(4, false, "127.0.0.2:0")); }
END_TEST

START_TEST(sessions_of_one_address_make_room) {
  EXPECT(hold_and_come(STRANGERS, false, "127.0.0.2:0"));
}
END_TEST

// Addresses of one network are had together; but where all are of one, each counts for itself.
START_TEST(neighbours_of_one_network_make_room) {
  EXPECT(hold_and_come(4, true, "127.0.1.1:0"));
  EXPECT(!hold_and_come(4, true, "127.0.0.2:0"));
}
END_TEST

START_TEST(sessions_of_one_network_make_room) {
  EXPECT(hold_and_come(STRANGERS, true, "127.0.1.1:0"));
}
END_TEST

// A source has four places and 16 sessions more; it reads the proofs of all who come in one go.
// Each is answered at once: whom it has no place for is told who has, not left to wait for 5 s.
START_TEST(a_crowd_of_one_moment_is_answered) {
  enum { CROWD = 48 };
  stranger x[CROWD];
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_address address;
  weft_node *source = source_for(ctx, x, CROWD, true, &address);
  size_t answered = 0;
  const int64_t start_us = now_us();
  while (answered < CROWD && now_us() - start_us < 4 * SECOND) {
    answered = 0;
    for (size_t i = 0; i < CROWD; i++) {
      stranger_turn(&x[i]);
      answered += x[i].opens > 0;
    }
    turn(source);
  }
  EXPECT(answered == CROWD);
  weft_node_free(source);
  for (size_t i = 0; i < CROWD; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}
END_TEST

static bool same(const char *a, const char *b, bool network) {
  weft_address x, y;
  EXPECT(weft_address_parse(a, &x) && weft_address_parse(b, &y));
  return network ? weft_address_same_network(&x, &y) : weft_address_same_origin(&x, &y);
}

START_TEST(networks_of_addresses) {
  EXPECT(same("1.2.3.4:5", "1.2.3.4:6", false) && !same("1.2.3.4:5", "1.2.3.5:5", false));
  EXPECT(same("1.2.3.4:5", "1.2.3.255:6", true) && !same("1.2.3.4:5", "1.2.4.4:5", true));
  EXPECT(same("[2001:db8:1:2::1]:5", "[2001:db8:1:2:ffff::]:5", false));
  EXPECT(!same("[2001:db8:1:2::1]:5", "[2001:db8:1:3::1]:5", false));
  EXPECT(same("[2001:db8:1:2::1]:5", "[2001:db8:1:ffff::1]:5", true));
  EXPECT(!same("[2001:db8:1::1]:5", "[2001:db8:2::1]:5", true));
  EXPECT(!same("1.2.3.4:5", "[2001:db8:1::1]:5", true) && !same("[::1]:5", "0.0.0.1:5", true));
}
END_TEST

// A description of the stream, as a stranger gives it.
static void describe(uint8_t blob[BLOB], uint8_t role, uint8_t flags, const uint8_t *source_key) {
  memset(blob, 0, BLOB);
  blob[0] = 1;
  blob[1] = role;
  blob[2] = WEFT_MODE_LIVE;
  blob[3] = flags;
  blob[5] = BLOCKS;
  blob[10] = BLOCK_BYTES >> 8;
  blob[19] = 5;
  blob[25] = 4; // some rate
  memcpy(blob + 44, source_key, 32);
}

static const uint8_t some_key[32] = {9, 9, 9};

// Whether a joining node that insists on that key believes what a stranger describes.
static bool believes(const uint8_t blob[BLOB]) {
  stranger x;
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_new(&x, ctx, 1, blob);
  weft_node *node = node_new(ctx, "127.0.0.1:0", WEFT_NODE_JOINING, &x.address, some_key);
  for (const int64_t until_us = now_us() + 10 * SECOND;
       now_us() < until_us && !weft_node_stream(node) && !(x.opens && !x.open);) {
    stranger_turn(&x);
    turn(node);
    nap();
  }
  const bool known = weft_node_stream(node) != NULL;
  EXPECT(x.opens == 1);
  weft_node_free(node);
  stranger_free(&x);
  weft_ctx_free(ctx);
  return known;
}

// Else anybody could say that the stream of that key is not signed, and have anything played.
START_TEST(who_insists_on_a_key_insists_on_signatures) {
  uint8_t blob[BLOB];
  for (uint8_t flags = 0; flags < 2; flags++) {
    describe(blob, WEFT_NODE_PEER, flags, some_key);
    EXPECT(believes(blob) == (flags == 1));
  }
}
END_TEST

// Packets that no datagram holds would never come: n coefficients, or a seed where n is small.
START_TEST(packets_fit_into_datagrams) {
  static const struct {
    uint16_t blocks, more; // more than the largest block for 10 of them
    bool fit;
  } shapes[] = {{10, 0, true}, {10, 1, false}, {4, 0, true}, {4, 1, false}, {11, 0, false}};
  const uint16_t most = WEFT_SESSION_PLAIN_BYTES - WEFT_WIRE_SESSION_HEADER_BYTES - 10;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    uint8_t blob[BLOB];
    const uint16_t bytes = (uint16_t)(most + shapes[i].more);
    describe(blob, WEFT_NODE_PEER, 1, some_key);
    blob[5] = (uint8_t)shapes[i].blocks;
    blob[10] = (uint8_t)(bytes >> 8);
    blob[11] = (uint8_t)bytes;
    EXPECT(believes(blob) == shapes[i].fit);
  }
}
END_TEST

// Nobody becomes a tracker by saying so: its lists would have the node dial anybody.
START_TEST(a_tracker_is_who_was_named) {
  static const uint8_t nobody[32];
  uint8_t blob[BLOB];
  stranger x;
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *source = node_new(ctx, "127.0.0.1:0", WEFT_NODE_SOURCE, NULL, NULL);
  weft_address address;
  EXPECT_OK(weft_node_address(source, &address));
  describe(blob, WEFT_NODE_TRACKER, 0, nobody);
  stranger_new(&x, ctx, 1, blob);
  EXPECT_OK(weft_sessions_open(x.sessions, &address, NULL, now_us(), &x.link));
  for (const int64_t until_us = now_us() + 2 * SECOND; now_us() < until_us;) {
    stranger_turn(&x);
    turn(source);
    nap();
  }
  EXPECT(x.opens <= 1 && weft_node_links(source) == 0);
  weft_node_free(source);
  stranger_free(&x);
  weft_ctx_free(ctx);
}
END_TEST

static void turn_for(weft_node *node, stranger *x, size_t strangers, int64_t for_us) {
  for (const int64_t until_us = now_us() + for_us; now_us() < until_us;) {
    for (size_t i = 0; i < strangers; i++)
      stranger_turn(&x[i]);
    turn(node);
    nap();
  }
}

// One identity at two places; a node was told of the first, and is then called from the second. How
// often it calls the first once the second has gone; 0: it kept to the first all the time.
static size_t calls_after_a_move(uint64_t number) {
  stranger x[2];
  uint8_t blob[BLOB];
  weft_ctx *ctx;
  weft_address address;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  describe(blob, WEFT_NODE_PEER, 1, some_key);
  for (size_t i = 0; i < 2; i++)
    stranger_new(&x[i], ctx, number, blob);
  weft_node *node = node_new(ctx, "127.0.0.1:0", WEFT_NODE_JOINING, &x[0].address, NULL);
  EXPECT_OK(weft_node_address(node, &address));
  turn_for(node, x, 1, SECOND / 5);
  EXPECT(x[0].opens == 1);
  EXPECT_OK(weft_sessions_open(x[1].sessions, &address, NULL, now_us(), &x[1].link));
  turn_for(node, x, 2, SECOND / 5);
  const bool moved = !x[0].open && x[1].open;
  if (moved) {
    weft_sessions_close(x[1].sessions, x[1].link, now_us());
    turn_for(node, x, 2, 4 * SECOND);
  }
  const size_t calls = moved ? x[0].opens : 0;
  weft_node_free(node);
  for (size_t i = 0; i < 2; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
  return calls;
}

// Which of two sessions stays is a matter of keys.
START_TEST(a_bootstrap_address_is_called_again) {
  size_t calls = 0;
  for (uint64_t number = 1; calls == 0 && number < 40; number++)
    calls = calls_after_a_move(number);
  EXPECT(calls == 2);
}
END_TEST

// A list is longer than what asks for it, and made by looking at all sessions.
START_TEST(a_tracker_answers_now_and_then) {
  static const uint8_t joining[BLOB] = {1};
  static const uint8_t announce[12] = {1, ANNOUNCE, [11] = 5};
  stranger x;
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *tracker = node_new(ctx, "127.0.0.1:0", WEFT_NODE_TRACKER, NULL, NULL);
  weft_address address;
  EXPECT_OK(weft_node_address(tracker, &address));
  stranger_new(&x, ctx, 1, joining);
  EXPECT_OK(weft_sessions_open(x.sessions, &address, NULL, now_us(), &x.link));
  for (const int64_t until_us = now_us() + 3 * SECOND; now_us() < until_us;) {
    stranger_turn(&x);
    for (int i = 0; i < 20; i++)
      stranger_says(&x, announce, sizeof announce);
    turn(tracker);
    nap();
  }
  EXPECT(x.lists >= 2 && x.lists <= 10);
  weft_node_free(tracker);
  stranger_free(&x);
  weft_ctx_free(ctx);
}
END_TEST

// Whoever leaves says so to all, however many they are: a tracker has more sessions than a source.
START_TEST(a_tracker_says_goodbye_to_all) {
  enum { CROWD = 160 };
  static const uint8_t joining[BLOB] = {1};
  static stranger x[CROWD];
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *tracker = node_new(ctx, "127.0.0.1:0", WEFT_NODE_TRACKER, NULL, NULL);
  weft_address address;
  EXPECT_OK(weft_node_address(tracker, &address));
  size_t came = 0, open = CROWD;
  const int64_t until_us = now_us() + 20 * SECOND;
  while (weft_node_links(tracker) < CROWD && now_us() < until_us) {
    if (came < CROWD) {
      stranger_at(&x[came], ctx, INADDR_LOOPBACK + ((uint32_t)came << 8), came, joining);
      EXPECT_OK(weft_sessions_open(x[came].sessions, &address, NULL, now_us(), &x[came].link));
      came++;
    }
    for (size_t i = 0; i < came; i++)
      stranger_turn(&x[i]);
    turn(tracker);
  }
  EXPECT(weft_node_links(tracker) == CROWD);
  weft_node_leave(tracker, now_us());
  turn(tracker);
  for (int tries = 0; open > 0 && tries < 100; tries++) {
    open = 0;
    for (size_t i = 0; i < CROWD; i++) {
      stranger_turn(&x[i]);
      open += x[i].open;
    }
    nap();
  }
  EXPECT(open == 0);
  weft_node_free(tracker);
  for (size_t i = 0; i < CROWD; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node_hostile");
  TCase *tc = tcase_create("node_hostile");
  tcase_add_test(tc, neighbours_of_one_address_make_room);
  tcase_add_test(tc, sessions_of_one_address_make_room);
  tcase_add_test(tc, neighbours_of_one_network_make_room);
  tcase_add_test(tc, sessions_of_one_network_make_room);
  tcase_add_test(tc, a_crowd_of_one_moment_is_answered);
  tcase_add_test(tc, networks_of_addresses);
  tcase_add_test(tc, who_insists_on_a_key_insists_on_signatures);
  tcase_add_test(tc, packets_fit_into_datagrams);
  tcase_add_test(tc, a_tracker_is_who_was_named);
  tcase_add_test(tc, a_bootstrap_address_is_called_again);
  tcase_add_test(tc, a_tracker_answers_now_and_then);
  tcase_add_test(tc, a_tracker_says_goodbye_to_all);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
