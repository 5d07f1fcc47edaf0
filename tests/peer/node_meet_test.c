// SPDX-License-Identifier: Apache-2.0
// Nodes behind NATs and their tracker: a node that is being dialled is told so, and dials back.
#include <string.h>

#include "tests/peer/stranger.h"
#include "tests/support/test_main.h"

enum { BOTH = 2, MEET_BYTES = 22 };
static const uint8_t joining[BLOB] = {1};

// docs/peer/tracker.md: version, kind, flags (2), then an address.
static void meet(const stranger *at, bool called, uint8_t out[MEET_BYTES]) {
  memcpy(out, (uint8_t[4]){1, MEET, 0, called}, 4);
  memcpy(out + 4, at->address.ip, 16);
  out[20] = (uint8_t)(at->address.port >> 8);
  out[21] = (uint8_t)at->address.port;
}

static weft_node *two_strangers(weft_ctx *ctx, stranger x[BOTH]) {
  weft_address address;
  weft_node *tracker = node_new(ctx, "127.0.0.1:0", WEFT_NODE_TRACKER, NULL, NULL);
  EXPECT_OK(weft_node_address(tracker, &address));
  for (size_t i = 0; i < BOTH; i++)
    stranger_calls(&x[i], ctx, i, joining, &address);
  turn_for(tracker, x, BOTH, SECOND / 5);
  return tracker;
}

static bool was_told(const stranger *x, const uint8_t message[MEET_BYTES]) {
  return x->told_bytes == MEET_BYTES && memcmp(x->told, message, MEET_BYTES) == 0;
}

// A tracker tells a node that it is being dialled only if that node has announced itself, and at a
// limited rate.
START_TEST(a_tracker_tells_who_is_called) {
  static const uint8_t announce[12] = {1, ANNOUNCE, [11] = 5};
  stranger x[BOTH];
  uint8_t calls[MEET_BYTES], called[MEET_BYTES];
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *tracker = two_strangers(ctx, x);
  meet(&x[1], false, calls);
  meet(&x[0], true, called);
  stranger_says(&x[0], calls, sizeof calls);
  turn_for(tracker, x, BOTH, SECOND / 10);
  EXPECT(x[1].told_bytes == 0); // it announced nothing
  stranger_says(&x[1], announce, sizeof announce);
  turn_for(tracker, x, BOTH, SECOND / 10);
  stranger_says(&x[0], calls, sizeof calls);
  turn_for(tracker, x, BOTH, SECOND / 10);
  EXPECT(was_told(&x[1], called) && !was_told(&x[0], called));
  size_t times = 0;
  for (int i = 0; i < 100; i++) {
    x[1].told_bytes = 0;
    stranger_says(&x[0], calls, sizeof calls);
    turn_for(tracker, x, BOTH, 1000);
    times += was_told(&x[1], called);
  }
  EXPECT(times >= 8 && times < 60); // 16 at once, ten a second
  meet(&x[1], true, calls);         // what only trackers may say
  x[1].told_bytes = x[0].told_bytes = 0;
  stranger_says(&x[0], calls, sizeof calls);
  turn_for(tracker, x, BOTH, SECOND / 10);
  EXPECT(x[0].told_bytes == 0 && x[1].told_bytes == 0);
  weft_node_free(tracker);
  for (size_t i = 0; i < BOTH; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}
END_TEST

// A tracker tells both sides of mapped ports: a node that knows where the other is seen may dial
// that.
START_TEST(a_tracker_tells_mapped_ports) {
  static const uint8_t announce[12] = {1, ANNOUNCE, [11] = 5};
  stranger x[BOTH];
  uint8_t seen[MEET_BYTES], mapped[MEET_BYTES], called[MEET_BYTES], maps[MEET_BYTES];
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *tracker = two_strangers(ctx, x);
  meet(&x[1], false, seen);
  stranger_says(&x[1], announce, sizeof announce);
  for (uint8_t i = 0; i < BOTH; i++) {
    x[i].address.port = (uint16_t)(7 + i);
    meet(&x[i], false, maps); // except for its kind
    maps[1] = MAPPED;
    stranger_says(&x[i], maps, sizeof maps);
  }
  turn_for(tracker, x, BOTH, SECOND / 10);
  meet(&x[1], false, mapped);
  meet(&x[0], true, called);
  const uint8_t *const calls[] = {seen, mapped};
  for (size_t i = 0; i < 2; i++) {
    x[1].told_bytes = 0;
    stranger_says(&x[0], calls[i], MEET_BYTES);
    turn_for(tracker, x, BOTH, SECOND / 10);
    EXPECT(was_told(&x[1], called));
  }
  weft_node_free(tracker);
  for (size_t i = 0; i < BOTH; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}
END_TEST

static void turn_all(weft_node *tracker, weft_node *source, stranger *x, int64_t for_us) {
  for (const int64_t until = now_us() + for_us; now_us() < until; nap()) {
    turn(tracker);
    turn(source);
    stranger_turn(x);
  }
}

// A source dials back when the tracker alone is told by a stranger that it dials the source.
START_TEST(a_source_calls_back) {
  stranger x;
  uint8_t calls[MEET_BYTES];
  weft_ctx *ctx;
  weft_address at;
  stranger where = {0};
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *tracker = node_new(ctx, "127.0.0.1:0", WEFT_NODE_TRACKER, NULL, NULL);
  EXPECT_OK(weft_node_address(tracker, &at));
  weft_node *source = node_new(ctx, "127.0.0.1:0", WEFT_NODE_SOURCE, &at, NULL);
  stranger_calls(&x, ctx, 1, joining, &at);
  turn_all(tracker, source, &x, SECOND / 2);
  EXPECT(x.opens == 1 && weft_node_links(source) == 1 && weft_node_neighbours(source) == 0);
  EXPECT_OK(weft_node_address(source, &where.address));
  meet(&where, false, calls);
  stranger_says(&x, calls, sizeof calls);
  turn_all(tracker, source, &x, SECOND);
  EXPECT(x.opens == 2 && weft_node_links(source) == 2 && weft_node_neighbours(source) == 1);
  weft_node_free(source);
  weft_node_free(tracker);
  stranger_free(&x);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node meet");
  TCase *tc = tcase_create("node meet");
  tcase_add_test(tc, a_tracker_tells_who_is_called);
  tcase_add_test(tc, a_tracker_tells_mapped_ports);
  tcase_add_test(tc, a_source_calls_back);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
