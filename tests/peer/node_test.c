// SPDX-License-Identifier: Apache-2.0
// Nodes on real sockets of the loopback, in one process: a stream arrives byte for byte, also
// through neighbours found at a tracker; a flood does no harm; nodes that leave are forgotten.
#define _POSIX_C_SOURCE 200809L
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/peer/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "weft/peer_node.h"

enum { NODES = 6, BLOCKS = 16, BLOCK_BYTES = 1024, SEGMENT = BLOCKS * BLOCK_BYTES };
enum { STREAM_BYTES = 40 * SEGMENT + 123 };

typedef struct party {
  weft_ctx *ctx;
  weft_node *node[NODES];
  weft_address address[NODES];
  size_t count, fed;
  uint8_t *input, *output[NODES];
  size_t got[NODES];
  bool ended, held_back;
  size_t neighbours_max; // 0: the default
  bool gather;           // signed, and segments are decoded together
  size_t lost[NODES];
} party;

typedef struct witness {
  party *p;
  size_t index;
} witness;

static int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void party_new(party *p) {
  *p = (party){0};
  EXPECT_OK(weft_ctx_new(&p->ctx, NULL));
  p->input = malloc(STREAM_BYTES);
  test_rng rng = test_rng_new(test_seed(), 1);
  test_rng_fill(&rng, p->input, STREAM_BYTES);
}

static void party_free(party *p) {
  for (size_t i = 0; i < p->count; i++) {
    weft_node_free(p->node[i]);
    free(p->output[i]);
  }
  free(p->input);
  weft_ctx_free(p->ctx);
}

static size_t add(party *p, weft_node_role role, const weft_address *bootstrap) {
  const size_t i = p->count++;
  weft_node_options options = {.ctx = p->ctx,
                               .role = role,
                               .bootstrap = bootstrap,
                               .bootstrap_count = bootstrap ? 1 : 0,
                               .window = 16,
                               .batch = 8,
                               .upload_bits_per_s = 200000000,
                               .gather = p->gather ? 6 : 0,
                               .neighbours_max = role == WEFT_NODE_SOURCE ? p->neighbours_max : 0,
                               .stream = {.id = 5,
                                          .blocks = BLOCKS,
                                          .block_bytes = BLOCK_BYTES,
                                          .mode = WEFT_MODE_BULK,
                                          .trusted = p->gather}};
  uint8_t seed[32] = {(uint8_t)(i + 1)};
  int error;
  EXPECT(weft_address_parse("127.0.0.1:0", &options.listen));
  weft_identity_from_seed(seed, &options.identity);
  EXPECT_OK(weft_node_new(&options, now_us(), &p->node[i], &error));
  EXPECT_OK(weft_node_address(p->node[i], &p->address[i]));
  p->output[i] = malloc(STREAM_BYTES);
  return i;
}

static void feed(party *p, weft_engine *e) {
  while (!p->ended && !p->held_back && weft_engine_source_ready(e)) {
    const size_t left = STREAM_BYTES - p->fed, bytes = left < SEGMENT ? left : SEGMENT;
    EXPECT_OK(weft_engine_source_put(e, p->input + p->fed, bytes, 0, now_us()));
    p->fed += bytes;
    p->ended = p->fed == STREAM_BYTES;
  }
}

static void read_all(party *p, size_t i, weft_engine *e) {
  uint64_t segment;
  size_t bytes;
  while (weft_engine_readable(e, &segment, &bytes) == WEFT_OK) {
    EXPECT(p->got[i] + bytes <= STREAM_BYTES);
    EXPECT_OK(weft_engine_read(e, 0, bytes, p->output[i] + p->got[i]));
    p->got[i] += bytes;
    EXPECT_OK(weft_engine_release(e));
  }
}

// One turn of all nodes, then a wait for whatever comes first.
static void turn(party *p, size_t source) {
  struct pollfd fds[NODES];
  int64_t next = INT64_MAX;
  for (size_t i = 0; i < p->count; i++) {
    (void)weft_node_receive(p->node[i], now_us());
    weft_engine *e = weft_node_engine(p->node[i]);
    if (e && i == source)
      feed(p, e);
    else if (e)
      read_all(p, i, e);
    EXPECT_OK(weft_node_turn(p->node[i], now_us()));
    fds[i] = (struct pollfd){.fd = weft_node_fd(p->node[i]), .events = POLLIN};
    const int64_t d = weft_node_deadline(p->node[i]);
    next = d < next ? d : next;
  }
  const int64_t wait = next - now_us();
  (void)poll(fds, (nfds_t)p->count, wait <= 0 ? 0 : wait > 20000 ? 20 : (int)(wait / 1000) + 1);
}

static bool all_have_it(const party *p, size_t first) {
  for (size_t i = first; i < p->count; i++)
    if (p->got[i] != STREAM_BYTES || memcmp(p->output[i], p->input, STREAM_BYTES) != 0)
      return false;
  return true;
}

static void run_until_done(party *p, size_t source, size_t first) {
  const int64_t until = now_us() + 60000000;
  while (!all_have_it(p, first) && now_us() < until)
    turn(p, source);
  EXPECT(all_have_it(p, first));
}

START_TEST(a_stream_arrives) {
  party p;
  party_new(&p);
  const size_t source = add(&p, WEFT_NODE_SOURCE, NULL);
  for (int i = 0; i < 3; i++)
    add(&p, WEFT_NODE_JOINING, &p.address[source]);
  run_until_done(&p, source, 1);
  party_free(&p);
}
END_TEST

// Segments that are decoded together arrive whole, and are recoded for others meanwhile.
START_TEST(segments_are_decoded_together) {
  party p;
  party_new(&p);
  p.gather = true;
  const size_t source = add(&p, WEFT_NODE_SOURCE, NULL);
  for (int i = 0; i < 3; i++)
    add(&p, WEFT_NODE_JOINING, &p.address[source]);
  run_until_done(&p, source, 1);
  for (size_t i = 1; i < p.count; i++) {
    weft_node_statistics s;
    weft_node_get_statistics(p.node[i], &s);
    EXPECT(s.engine.gathered_segments == s.engine.segments && s.engine.hash_failures == 0);
    EXPECT(s.engine.gathered_runs > 0 && s.engine.gathered_runs < s.engine.gathered_segments);
  }
  party_free(&p);
}
END_TEST

// The source tells its neighbours of each other, and they connect.
START_TEST(neighbours_find_each_other) {
  party p;
  party_new(&p);
  const size_t source = add(&p, WEFT_NODE_SOURCE, NULL);
  for (int i = 0; i < 3; i++)
    add(&p, WEFT_NODE_JOINING, &p.address[source]);
  p.held_back = true; // no node finishes before they have met
  const int64_t until = now_us() + 20000000;
  size_t met = 0;
  while (met < 3 && now_us() < until) {
    turn(&p, source);
    met = 0;
    for (size_t i = 1; i < 4; i++)
      met += weft_node_links(p.node[i]) == 3;
  }
  EXPECT(met == 3);
  p.held_back = false;
  run_until_done(&p, source, 1);
  EXPECT(memcmp(weft_node_stream(p.node[1])->source_key, weft_node_stream(p.node[0])->source_key,
                32) == 0);
  party_free(&p);
}
END_TEST

// A source that takes two neighbours tells the others of those, which serve them.
START_TEST(a_full_source_sends_on_to_others) {
  party p;
  party_new(&p);
  p.neighbours_max = 2;
  const size_t source = add(&p, WEFT_NODE_SOURCE, NULL);
  for (int i = 0; i < 5; i++)
    add(&p, WEFT_NODE_JOINING, &p.address[source]);
  p.held_back = true; // a node without neighbours yet is not waited for
  const int64_t until = now_us() + 20000000;
  size_t met = 0;
  while (met < 5 && now_us() < until) {
    turn(&p, source);
    met = 0;
    for (size_t i = 1; i < p.count; i++)
      met += weft_node_links(p.node[i]) >= 4;
  }
  EXPECT(met == 5);
  p.held_back = false;
  run_until_done(&p, source, 1);
  for (size_t i = 1, served = 0; i < p.count; i++) {
    served += weft_node_has_source(p.node[i]);
    EXPECT(served <= 2);
  }
  party_free(&p);
}
END_TEST

START_TEST(a_tracker_knows_the_others) {
  party p;
  party_new(&p);
  const size_t tracker = add(&p, WEFT_NODE_TRACKER, NULL);
  const size_t source = add(&p, WEFT_NODE_SOURCE, &p.address[tracker]);
  for (int i = 0; i < 20; i++)
    turn(&p, source);
  for (int i = 0; i < 3; i++)
    add(&p, WEFT_NODE_JOINING, &p.address[tracker]);
  run_until_done(&p, source, 2);
  weft_node_statistics s;
  const int64_t until = now_us() + 10000000;
  do {
    turn(&p, source);
    weft_node_get_statistics(p.node[tracker], &s);
  } while (s.announced != 4 && now_us() < until);
  EXPECT(s.announced == 4);
  party_free(&p);
}
END_TEST

static void run_until_neighbours(party *p, size_t node, size_t wanted) {
  const int64_t until = now_us() + 10000000;
  while ((weft_node_links(p->node[node]) == 0 || weft_node_neighbours(p->node[node]) != wanted) &&
         now_us() < until)
    turn(p, NODES);
  EXPECT(weft_node_links(p->node[node]) > 0 && weft_node_neighbours(p->node[node]) == wanted);
}

START_TEST(a_tracker_is_no_neighbour) {
  party p;
  party_new(&p);
  const size_t tracker = add(&p, WEFT_NODE_TRACKER, NULL);
  const size_t joining = add(&p, WEFT_NODE_JOINING, &p.address[tracker]);
  run_until_neighbours(&p, joining, 0);
  p.held_back = true;
  add(&p, WEFT_NODE_SOURCE, &p.address[tracker]);
  run_until_neighbours(&p, joining, 1);
  party_free(&p);
}
END_TEST

// The last of the party leaves, and the source notices: after 17 s, if the farewell was lost.
static void leave(party *p, size_t source, size_t leaver) {
  const int64_t until = now_us() + 60000000;
  while (weft_node_links(p->node[source]) != p->count - 1 && now_us() < until)
    turn(p, source);
  weft_node_leave(p->node[leaver], now_us());
  EXPECT_OK(weft_node_turn(p->node[leaver], now_us()));
  weft_node_free(p->node[leaver]);
  free(p->output[leaver]);
  p->count--;
  while (weft_node_links(p->node[source]) != p->count - 1 && now_us() < until)
    turn(p, source);
  EXPECT(weft_node_links(p->node[source]) == p->count - 1);
}

static weft_node_statistics statistics_of(const party *p, size_t node) {
  weft_node_statistics s;
  weft_node_get_statistics(p->node[node], &s);
  return s;
}

// An identity that returns is counted once, by the most that it achieved.
START_TEST(who_comes_again_is_counted_once) {
  party p;
  party_new(&p);
  p.held_back = true;
  const size_t source = add(&p, WEFT_NODE_SOURCE, NULL);
  add(&p, WEFT_NODE_JOINING, &p.address[source]);
  for (size_t again = 0; again < 3; again++) {
    const size_t leaver = add(&p, WEFT_NODE_JOINING, &p.address[source]);
    leave(&p, source, leaver);
    const weft_node_statistics s = statistics_of(&p, source);
    EXPECT(s.left_early == 1 && s.had_all == 0);
  }
  add(&p, WEFT_NODE_JOINING, &p.address[source]); // the same again, and this time it stays
  const int64_t until = now_us() + 60000000;
  while (weft_node_links(p.node[source]) != 2 && now_us() < until)
    turn(&p, source);
  EXPECT(statistics_of(&p, source).left_early == 0);
  p.held_back = false;
  run_until_done(&p, source, 1);
  while (statistics_of(&p, source).had_all != 2 && now_us() < until)
    turn(&p, source);
  EXPECT(statistics_of(&p, source).had_all == 2 && statistics_of(&p, source).left_early == 0);
  party_free(&p);
}
END_TEST

START_TEST(who_leaves_is_forgotten) {
  party p;
  party_new(&p);
  const size_t source = add(&p, WEFT_NODE_SOURCE, NULL);
  add(&p, WEFT_NODE_JOINING, &p.address[source]);
  const size_t leaver = add(&p, WEFT_NODE_JOINING, &p.address[source]);
  const int64_t until = now_us() + 20000000;
  while (weft_node_links(p.node[leaver]) < 1 && now_us() < until)
    turn(&p, source);
  weft_node_leave(p.node[leaver], now_us());
  EXPECT_OK(weft_node_turn(p.node[leaver], now_us()));
  p.count--; // it does nothing more
  while (weft_node_links(p.node[source]) != 1 && now_us() < until)
    turn(&p, source);
  EXPECT(weft_node_links(p.node[source]) == 1);
  run_until_done(&p, source, 1);
  p.count++;
  party_free(&p);
}
END_TEST

// A flood of a stranger's noise, some of it with the right first byte, does no harm.
START_TEST(a_flood_does_no_harm) {
  party p;
  party_new(&p);
  const size_t source = add(&p, WEFT_NODE_SOURCE, NULL);
  add(&p, WEFT_NODE_JOINING, &p.address[source]);
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons(p.address[source].port),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  test_rng rng = test_rng_new(test_seed(), 2);
  const int64_t until = now_us() + 60000000;
  while (!all_have_it(&p, 1) && now_us() < until) {
    for (int i = 0; i < 100; i++) {
      uint8_t noise[1300];
      const size_t bytes = test_rng_below(&rng, sizeof noise);
      test_rng_fill(&rng, noise, bytes < 64 ? bytes : 64);
      if (bytes && i % 2)
        noise[0] = (uint8_t)(0x71 + test_rng_below(&rng, 6));
      (void)sendto(fd, noise, bytes, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to);
    }
    turn(&p, source);
  }
  EXPECT(all_have_it(&p, 1));
  weft_node_statistics s;
  weft_node_get_statistics(p.node[source], &s);
  EXPECT(s.sessions.opened == 1 && s.links == 1); // and most of it never came this far
  close(fd);
  party_free(&p);
}
END_TEST

START_TEST(addresses_as_people_write_them) {
  char text[WEFT_ADDRESS_TEXT];
  weft_address a, b;
  EXPECT(weft_address_parse("127.0.0.1:80", &a) && a.port == 80);
  EXPECT(strcmp(weft_address_text(&a, text), "127.0.0.1:80") == 0);
  EXPECT(weft_address_parse("[::1]:9000", &a) && a.ip[15] == 1);
  EXPECT(strcmp(weft_address_text(&a, text), "[::1]:9000") == 0);
  EXPECT(weft_address_parse(":7000", &a) && a.port == 7000);
  EXPECT(weft_address_parse("7000", &a) && a.port == 7000);
  EXPECT(weft_address_parse("[fe80::2%1]:9", &a) && a.port == 9); // the loopback on every machine
  EXPECT(strcmp(weft_address_text(&a, text), "[fe80::2%lo]:9") == 0);
  EXPECT(weft_address_parse("[fe80::2%lo]:9", &b) && memcmp(a.ip, b.ip, sizeof a.ip) == 0);
  EXPECT(weft_address_parse("[fe80::2]:9", &b) && memcmp(a.ip, b.ip, sizeof a.ip) != 0);
  EXPECT(strcmp(weft_address_text(&b, text), "[fe80::2]:9") == 0);
  static const char *const wrong[] = {"",
                                      ":",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:x",
                                      "::1:80",
                                      "[::1:80",
                                      "127.0.0.1:-1",
                                      "[::1%lo]:1",
                                      "[fe80::1%]:1",
                                      "[fe80::1%1x]:1",
                                      "[fe80::1%nowhere]:1",
                                      "[fe80::1%0]:1",
                                      "[fe80:0:1::1]:1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    EXPECT(!weft_address_parse(wrong[i], &a));
}
END_TEST

// --- What is held

typedef struct weighed {
  weft_allocator allocator;
  test_allocator inner;
  size_t bytes;
} weighed;

static void *weigh(void *user, size_t bytes, size_t align) {
  weighed *w = user;
  w->bytes += bytes;
  return w->inner.allocator.alloc(w->inner.allocator.user, bytes, align);
}

static void give(void *user, void *memory) {
  weighed *w = user;
  w->inner.allocator.free(w->inner.allocator.user, memory);
}

// Returns how much memory a node with a stream of that rate and lag takes before any of it arrives.
static size_t weight(uint64_t rate_bits_per_s, uint32_t lag_ms) {
  weighed w = {.allocator = {.alloc = weigh, .free = give, .user = &w}};
  weft_node_options options = {.role = WEFT_NODE_SOURCE,
                               .stream = {.id = 5,
                                          .blocks = BLOCKS,
                                          .block_bytes = BLOCK_BYTES,
                                          .mode = WEFT_MODE_LIVE,
                                          .trusted = true,
                                          .rate_bits_per_s = rate_bits_per_s,
                                          .lag_ms = lag_ms}};
  weft_node *node;
  int error;
  test_allocator_init(&w.inner, 0);
  EXPECT_OK(weft_ctx_new(&options.ctx, &(weft_ctx_options){.allocator = &w.allocator}));
  EXPECT(weft_address_parse("127.0.0.1:0", &options.listen));
  EXPECT_OK(weft_node_new(&options, now_us(), &node, &error));
  weft_node_free(node);
  weft_ctx_free(options.ctx);
  return w.bytes;
}

// Windows span the lag at the rate, up to the largest window allowed, whatever a node claims of its
// stream.
START_TEST(windows_grow_with_rate_and_lag) {
  const size_t least = weight(1000, 100), most = weight(1000000000, 60000);
  EXPECT(least < weight(20000000, 3000) && weight(20000000, 3000) < most);
  EXPECT(weight(UINT64_MAX, 60000) == most && weight(UINT64_MAX, UINT32_MAX) == most);
  EXPECT(weight(1000000000, UINT32_MAX) == most && weight(UINT64_MAX, 0) == least);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node");
  TCase *tc = tcase_create("node");
  tcase_add_test(tc, a_stream_arrives);
  tcase_add_test(tc, segments_are_decoded_together);
  tcase_add_test(tc, neighbours_find_each_other);
  tcase_add_test(tc, a_full_source_sends_on_to_others);
  tcase_add_test(tc, a_tracker_knows_the_others);
  tcase_add_test(tc, a_tracker_is_no_neighbour);
  tcase_add_test(tc, who_comes_again_is_counted_once);
  tcase_add_test(tc, who_leaves_is_forgotten);
  tcase_add_test(tc, a_flood_does_no_harm);
  tcase_add_test(tc, addresses_as_people_write_them);
  tcase_add_test(tc, windows_grow_with_rate_and_lag);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
