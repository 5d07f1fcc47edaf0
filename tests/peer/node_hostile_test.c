// SPDX-License-Identifier: Apache-2.0
// A node on the loopback, and strangers with sessions that do what no node does: hold places and
// request nothing, and lie about the stream.
#include <netinet/in.h>
#include <string.h>

#include "tests/peer/stranger.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

// Makes a source that strangers dial, all from 127.0.0.1 or each from its own address.
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

// Strangers take all that they can get of a source, all from 127.0.0.1 or each from its own
// address; then one comes from elsewhere. Returns whether it gets a place.
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

// Addresses of one network count together, as one party often has them all; but where all nodes are
// in one network, each address counts by itself.
START_TEST(neighbours_of_one_network_make_room) {
  EXPECT(hold_and_come(4, true, "127.0.1.1:0"));
  EXPECT(!hold_and_come(4, true, "127.0.0.2:0"));
}
END_TEST

START_TEST(sessions_of_one_network_make_room) {
  EXPECT(hold_and_come(STRANGERS, true, "127.0.1.1:0"));
}
END_TEST

// A source has four places and 16 sessions more, and reads the handshakes of a crowd in one go.
// Each newcomer is answered at once: one without a place is told of nodes that have one, and does
// not wait for 5 s.
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

// A node that insists on a key refuses unsigned streams; otherwise any node could claim that the
// key's stream is unsigned, and have anything played.
START_TEST(who_insists_on_a_key_insists_on_signatures) {
  uint8_t blob[BLOB];
  for (uint8_t flags = 0; flags < 2; flags++) {
    stranger_describes(blob, WEFT_NODE_PEER, flags, some_key);
    EXPECT(believes(blob) == (flags == 1));
  }
}
END_TEST

// Who has none describes none: its shape would be looked at by nobody.
START_TEST(who_has_no_stream_describes_none) {
  static const uint8_t roles[] = {WEFT_NODE_JOINING, WEFT_NODE_TRACKER};
  uint8_t blob[BLOB];
  for (size_t i = 0; i < sizeof roles; i++) {
    stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
    blob[1] = roles[i];
    EXPECT(!believes(blob));
  }
}
END_TEST

// Whether a joining node believes the stream of a caller that it did not dial, while those that it
// dials are slow to answer. `known`: the caller is at one of their addresses.
static bool believes_caller(bool known) {
  stranger slow, caller;
  uint8_t blob[BLOB];
  weft_address at;
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
  stranger_at(&slow, ctx, INADDR_LOOPBACK + 7, 1, blob);
  weft_node *node = node_new(ctx, "127.0.0.1:0", WEFT_NODE_JOINING, &slow.address, NULL);
  EXPECT_OK(weft_node_address(node, &at));
  stranger_at(&caller, ctx, INADDR_LOOPBACK + (known ? 7 : 9), 2, blob);
  EXPECT_OK(weft_sessions_open(caller.sessions, &at, NULL, now_us(), &caller.link));
  turn_for(node, &caller, 1, SECOND);
  const bool believed = weft_node_stream(node) != NULL;
  EXPECT(caller.opens == 1 && caller.open == believed);
  weft_node_free(node);
  stranger_free(&slow);
  stranger_free(&caller);
  weft_ctx_free(ctx);
  return believed;
}

// It believes a caller from an address that it dials, also at another port: that node may be behind
// a NAT that maps each path to another port.
START_TEST(who_joins_believes_whom_it_calls) {
  EXPECT(believes_caller(true));
  EXPECT(!believes_caller(false));
}
END_TEST

// Streams whose packets do not fit into a datagram are refused, with n coefficients, or a seed
// where n is small.
START_TEST(packets_fit_into_datagrams) {
  static const struct {
    uint16_t blocks, more; // more than the largest block for 10 of them
    bool fit;
  } shapes[] = {{10, 0, true}, {10, 1, false}, {4, 0, true}, {4, 1, false}, {11, 0, false}};
  const uint16_t most = WEFT_SESSION_PLAIN_BYTES - WEFT_WIRE_SESSION_HEADER_BYTES - 10;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    uint8_t blob[BLOB];
    const uint16_t bytes = (uint16_t)(most + shapes[i].more);
    stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
    blob[5] = (uint8_t)shapes[i].blocks;
    blob[10] = (uint8_t)(bytes >> 8);
    blob[11] = (uint8_t)bytes;
    EXPECT(believes(blob) == shapes[i].fit);
  }
}
END_TEST

// --- A stream that cannot begin

typedef struct short_of_memory {
  weft_allocator allocator;
  test_allocator inner;
  bool refuses; // new allocations
  size_t failures;
  weft_status status;
} short_of_memory;

static void *take(void *user, size_t bytes, size_t align) {
  short_of_memory *s = user;
  return s->refuses ? NULL : s->inner.allocator.alloc(s->inner.allocator.user, bytes, align);
}

static void give(void *user, void *memory) {
  short_of_memory *s = user;
  s->inner.allocator.free(s->inner.allocator.user, memory);
}

static void count_failures(void *user, const weft_node_event *event) {
  short_of_memory *s = user;
  if (event->kind != WEFT_NODE_STREAM_FAILED)
    return;
  s->failures++;
  s->status = event->status;
}

// Turns until the node has a stream, or could not begin it.
static void turn_until_told(weft_node *node, stranger *x, short_of_memory *s) {
  const size_t failures = s->failures;
  for (const int64_t until_us = now_us() + 10 * SECOND;
       now_us() < until_us && !weft_node_stream(node) && s->failures == failures;)
    turn_for(node, x, 1, 1000);
}

// The application is told why a stream cannot begin, and the node goes on looking: memory may
// become free.
START_TEST(a_stream_that_cannot_begin_is_told) {
  short_of_memory s = {.allocator = {.alloc = take, .free = give, .user = &s}};
  stranger x;
  uint8_t blob[BLOB];
  weft_ctx *ctx;
  test_allocator_init(&s.inner, 0);
  const weft_ctx_options options = {.allocator = &s.allocator};
  EXPECT_OK(weft_ctx_new(&ctx, &options));
  stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
  stranger_new(&x, ctx, 1, blob);
  weft_node *node = node_telling(ctx, &x.address, count_failures, &s);
  s.refuses = true;
  turn_until_told(node, &x, &s);
  EXPECT(s.failures == 1 && s.status == WEFT_E_NOMEM && !weft_node_stream(node));
  s.refuses = false;
  turn_until_told(node, &x, &s);
  EXPECT(s.failures == 1 && weft_node_stream(node));
  weft_node_free(node);
  stranger_free(&x);
  weft_ctx_free(ctx);
  EXPECT(test_allocator_live(&s.inner) == 0);
}
END_TEST

// A stream that cannot exist is reported: a live stream without a rate takes its pace from signed
// manifests.
START_TEST(a_stream_that_cannot_be_is_told) {
  short_of_memory s = {.failures = 0};
  stranger x;
  uint8_t blob[BLOB];
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_describes(blob, WEFT_NODE_PEER, 0, some_key);
  blob[25] = 0;
  stranger_new(&x, ctx, 1, blob);
  weft_node *node = node_telling(ctx, &x.address, count_failures, &s);
  turn_until_told(node, &x, &s);
  EXPECT(s.failures == 1 && s.status == WEFT_E_ARGUMENT && !weft_node_stream(node));
  weft_node_free(node);
  stranger_free(&x);
  weft_ctx_free(ctx);
}
END_TEST

// A node does not become a tracker by claiming to be one: its lists would make others dial any
// address.
START_TEST(a_tracker_is_who_was_named) {
  static const uint8_t nobody[32];
  uint8_t blob[BLOB];
  stranger x;
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *source = node_new(ctx, "127.0.0.1:0", WEFT_NODE_SOURCE, NULL, NULL);
  weft_address address;
  EXPECT_OK(weft_node_address(source, &address));
  stranger_describes(blob, WEFT_NODE_TRACKER, 0, nobody);
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

// One identity is at two addresses; a node was given the first, and is then called from the second.
// Returns how often it dials the first once the second has gone; 0: it stayed with the first all
// the time.
static size_t calls_after_a_move(uint64_t number) {
  stranger x[2];
  uint8_t blob[BLOB];
  weft_ctx *ctx;
  weft_address address;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
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

// A bootstrap address is dialled again after the node's session from another address has ended.
// (Which of two sessions stays depends on the keys.)
START_TEST(a_bootstrap_address_is_called_again) {
  size_t calls = 0;
  for (uint64_t number = 1; calls == 0 && number < 40; number++)
    calls = calls_after_a_move(number);
  EXPECT(calls == 2);
}
END_TEST

// A host with two addresses is dialled at the second if the first does not answer, and at neither
// while there is a session with it.
START_TEST(the_addresses_of_a_host_are_called_in_turn) {
  stranger x[2];
  uint8_t blob[BLOB];
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
  for (size_t i = 0; i < 2; i++)
    stranger_new(&x[i], ctx, i + 1, blob);
  const weft_address host[] = {x[0].address, x[1].address};
  weft_node *node = node_of_host(ctx, host, 2);
  turn_for(node, x, 2, 4 * SECOND);
  EXPECT(x[0].open && x[0].opens == 1 && x[1].opens == 0);
  weft_sessions_close(x[0].sessions, x[0].link, now_us());
  stranger_turn(&x[0]); // its last message
  for (const int64_t until_us = now_us() + 20 * SECOND; !x[1].open && now_us() < until_us;)
    turn_for(node, x + 1, 1, SECOND / 10);
  EXPECT(x[1].open && x[1].opens == 1);
  turn_for(node, x, 2, 4 * SECOND);
  EXPECT(x[0].opens == 1 && x[1].opens == 1);
  weft_node_free(node);
  for (size_t i = 0; i < 2; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}
END_TEST

// After its addresses change, a host is dialled at the new ones and at no old one that did not
// answer; its session stays.
START_TEST(a_host_gets_other_addresses) {
  stranger x[3];
  uint8_t blob[BLOB];
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
  for (size_t i = 0; i < 3; i++)
    stranger_new(&x[i], ctx, i + 1, blob);
  const weft_address gone = x[0].address, before[] = {gone, x[1].address},
                     after[] = {x[1].address, x[2].address};
  stranger_free(&x[0]); // nothing answers there
  weft_node *node = node_of_host(ctx, before, 2);
  turn(node); // dials the first
  weft_node_set_host(node, 0, after, 2);
  for (const int64_t until_us = now_us() + 20 * SECOND; !x[1].open && now_us() < until_us;)
    turn_for(node, x + 1, 2, SECOND / 10);
  EXPECT(x[1].open && x[2].opens == 0);
  weft_node_set_host(node, 0, after + 1, 1);
  turn_for(node, x + 1, 2, 3 * SECOND);
  EXPECT(x[1].open && x[2].opens == 0);
  weft_sessions_close(x[1].sessions, x[1].link, now_us());
  stranger_turn(&x[1]);
  weft_node_set_host(node, 0, after + 1, 1);
  for (const int64_t until_us = now_us() + 20 * SECOND; !x[2].open && now_us() < until_us;)
    turn_for(node, x + 2, 1, SECOND / 10);
  EXPECT(x[2].open && x[1].opens == 1);
  weft_node_free(node);
  stranger_free(&x[1]);
  stranger_free(&x[2]);
  weft_ctx_free(ctx);
}
END_TEST

// A tracker limits its answers: a list is longer than the request, and made by going through all
// sessions.
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

// A tracker that leaves says goodbye to all nodes, though it has more sessions than a source.
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
  tcase_add_test(tc, who_has_no_stream_describes_none);
  tcase_add_test(tc, neighbours_of_one_address_make_room);
  tcase_add_test(tc, sessions_of_one_address_make_room);
  tcase_add_test(tc, neighbours_of_one_network_make_room);
  tcase_add_test(tc, sessions_of_one_network_make_room);
  tcase_add_test(tc, a_crowd_of_one_moment_is_answered);
  tcase_add_test(tc, networks_of_addresses);
  tcase_add_test(tc, who_insists_on_a_key_insists_on_signatures);
  tcase_add_test(tc, who_joins_believes_whom_it_calls);
  tcase_add_test(tc, packets_fit_into_datagrams);
  tcase_add_test(tc, a_stream_that_cannot_begin_is_told);
  tcase_add_test(tc, a_stream_that_cannot_be_is_told);
  tcase_add_test(tc, a_tracker_is_who_was_named);
  tcase_add_test(tc, a_bootstrap_address_is_called_again);
  tcase_add_test(tc, the_addresses_of_a_host_are_called_in_turn);
  tcase_add_test(tc, a_host_gets_other_addresses);
  tcase_add_test(tc, a_tracker_answers_now_and_then);
  tcase_add_test(tc, a_tracker_says_goodbye_to_all);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
