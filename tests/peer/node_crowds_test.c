// SPDX-License-Identifier: Apache-2.0
// One stranger that sends more, or has more identities, than others must not keep them from a node
// or out of a tracker's lists. A node that returns takes its own place, and no other's.
#include <netinet/in.h>
#include <string.h>

#include "tests/peer/stranger.h"
#include "tests/support/test_main.h"

static const uint8_t some_key[32] = {9, 9, 9};

// Sends a MEET that says that those at 16 addresses, which do not exist, are calling the node.
static void cry_wolf(stranger *liar, uint32_t *number) {
  uint8_t message[WEFT_DATAGRAM_MAX];
  weft_peer_address called[WEFT_MEET_MAX];
  for (size_t i = 0; i < WEFT_MEET_MAX; i++, ++*number) {
    const uint8_t at[18] = {[10] = 0xff,      0xff, 127, 9, (uint8_t)(*number >> 8),
                            (uint8_t)*number, 0,    9};
    called[i] = (weft_peer_address){.length = sizeof at};
    memcpy(called[i].bytes, at, sizeof at);
  }
  stranger_greets(liar);
  stranger_says(
      liar, message,
      weft_refer_write(WEFT_MESSAGE_MEET, WEFT_MEET_CALL, called, WEFT_MEET_MAX, message));
}

// A neighbour that names callers all the time, which do not answer, must not keep the node from
// dialling the nodes that it wants itself.
START_TEST(calls_leave_room_for_ones_own) {
  stranger x[2];
  weft_ctx *ctx;
  uint8_t blob[BLOB];
  uint32_t number = 1;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
  for (size_t i = 0; i < 2; i++)
    stranger_new(&x[i], ctx, i, blob);
  weft_node *node = node_new(ctx, "127.0.0.1:0", WEFT_NODE_JOINING, &x[0].address, NULL);
  const int64_t start_us = now_us();
  for (bool told = false; now_us() - start_us < 9 * SECOND && !x[1].opens;) {
    cry_wolf(&x[0], &number);
    turn_for(node, x, 2, SECOND / 50);
    if (told || now_us() - start_us < 4 * SECOND)
      continue;
    weft_peer_address other = {.length = 18};
    memcpy(other.bytes, x[1].address.ip, 16);
    other.bytes[16] = (uint8_t)(x[1].address.port >> 8);
    other.bytes[17] = (uint8_t)x[1].address.port;
    weft_engine_add_address(weft_node_engine(node), &other);
    told = true;
  }
  EXPECT(x[0].open && x[1].opens == 1);
  weft_node_free(node);
  for (size_t i = 0; i < 2; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}
END_TEST

// Whether the last LIST names the address.
static bool lists(const stranger *x, const weft_address *one) {
  for (size_t at = 12; x->told[1] == LIST && at + 18 <= x->told_bytes; at += 18)
    if (memcmp(x->told + at, one->ip, 16) == 0 &&
        (x->told[at + 16] << 8 | x->told[at + 17]) == one->port)
      return true;
  return false;
}

// Many identities at one address do no harm: a tracker names every other address before any of them
// a second time.
START_TEST(a_tracker_tells_of_all_addresses) {
  enum { CROWD = 100, OTHERS = 4 };
  static const uint8_t joining[BLOB] = {1};
  static const uint8_t announce[12] = {1, ANNOUNCE, [11] = 5};
  static stranger x[CROWD + OTHERS + 1];
  const size_t all = sizeof x / sizeof x[0], asks = all - 1;
  weft_ctx *ctx;
  weft_address address;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *tracker = node_new(ctx, "127.0.0.1:0", WEFT_NODE_TRACKER, NULL, NULL);
  EXPECT_OK(weft_node_address(tracker, &address));
  for (size_t i = 0; i < all; i++) {
    stranger_at(&x[i], ctx, INADDR_LOOPBACK + (i < CROWD ? 0 : 10 + (uint32_t)i), i, joining);
    EXPECT_OK(weft_sessions_open(x[i].sessions, &address, NULL, now_us(), &x[i].link));
  }
  size_t open = 0;
  for (const int64_t until_us = now_us() + 6 * SECOND; open < all && now_us() < until_us;) {
    turn_for(tracker, x, all, SECOND / 50);
    open = 0;
    for (size_t i = 0; i < all; i++)
      open += x[i].open;
  }
  EXPECT(open == all);
  for (size_t i = 0; i < all; i++)
    stranger_says(&x[i], announce, sizeof announce);
  turn_for(tracker, x, all, SECOND);
  stranger_says(&x[asks], announce, sizeof announce);
  turn_for(tracker, x, all, SECOND / 5);
  EXPECT(x[asks].told_bytes == 12 + 32 * 18); // as many as there can be
  for (size_t i = CROWD; i < asks; i++)
    EXPECT(lists(&x[asks], &x[i].address));
  weft_node_free(tracker);
  for (size_t i = 0; i < all; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}
END_TEST

// --- One that returns

enum { PLACES = 4, SESSIONS = PLACES + 16 };

// Makes a source, and strangers with sessions: the first four are its neighbours, all others wait.
static weft_node *taken_by(weft_ctx *ctx, stranger *x, size_t count, weft_address *address) {
  static const uint8_t joining[BLOB] = {1};
  weft_node *source = node_new(ctx, "127.0.0.1:0", WEFT_NODE_SOURCE, NULL, NULL);
  EXPECT_OK(weft_node_address(source, address));
  for (size_t i = 0; i < count; i++) {
    stranger_calls(&x[i], ctx, i, joining, address);
    for (int turns = 0; turns < 200 && !x[i].opens; turns++)
      turn_for(source, x, i + 1, SECOND / 100);
    EXPECT(x[i].open);
  }
  turn_for(source, x, count, SECOND / 10);
  return source;
}

static size_t open_of(const stranger *x, size_t count) {
  size_t open = 0;
  for (size_t i = 0; i < count; i++)
    open += x[i].open;
  return open;
}

// A returning node takes its own former place where all sessions are taken, where all neighbours'
// places are, and when its new session is numbered before the old one.
START_TEST(who_comes_again_takes_nobody_elses_place) {
  for (int full = 0; full < 2; full++) {
    static const uint8_t joining[BLOB] = {1};
    const size_t count = full ? SESSIONS : PLACES + 1, again = full ? 0 : PLACES;
    stranger x[SESSIONS + 1];
    weft_ctx *ctx;
    weft_address address;
    EXPECT_OK(weft_ctx_new(&ctx, NULL));
    weft_node *source = taken_by(ctx, x, count, &address);
    if (!full) { // ends the first session, and a neighbour's place, which the last one takes
      weft_sessions_close(x[0].sessions, x[0].link, now_us());
      x[0].open = false;
      turn_for(source, x, count, SECOND / 4);
      stranger_greets(&x[again]);
      turn_for(source, x, count, SECOND / 10);
    }
    const size_t others = open_of(x, count) - 1;
    EXPECT(weft_node_neighbours(source) == PLACES && others == (full ? SESSIONS : PLACES) - 1);
    stranger_calls(&x[count], ctx, again, joining, &address);
    turn_for(source, x, count + 1, SECOND / 2);
    EXPECT(x[count].open && !x[count].refused && !x[again].open);
    EXPECT(open_of(x, count) == others && weft_node_neighbours(source) == PLACES);
    weft_node_free(source);
    for (size_t i = 0; i <= count; i++)
      stranger_free(&x[i]);
    weft_ctx_free(ctx);
  }
}
END_TEST

// --- One that claims that a node is in need

static void tells(stranger *x, uint16_t suppliers) {
  uint8_t message[WEFT_DATAGRAM_MAX];
  const weft_map map = {.entry_bytes = 2, .suppliers = suppliers, .stamps = {.stamp = 1}};
  stranger_greets(x);
  stranger_says(x, message, weft_map_write(&map, message));
}

// A viewer whose places are taken parts with a neighbour that can spare it for a node that has no
// suppliers, but not for another node of an address that already has a place.
START_TEST(who_has_a_place_is_made_no_room_for) {
  static const uint8_t host[] = {10, 20, 30, 40, 40, 50};
  enum { COME = sizeof host, NEEDY = PLACES - 1, AGAIN = PLACES, OTHER };
  stranger x[COME];
  weft_ctx *ctx;
  weft_node *node = NULL;
  weft_address address;
  uint8_t blob[BLOB];
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_describes(blob, WEFT_NODE_PEER, 1, some_key);
  for (size_t i = 0; i < COME; i++)
    stranger_at(&x[i], ctx, INADDR_LOOPBACK + host[i], i, blob);
  for (size_t i = 0; i < COME; i++) {
    if (i == 0) {
      node = node_new(ctx, "127.0.0.1:0", WEFT_NODE_JOINING, &x[0].address, NULL);
      EXPECT_OK(weft_node_address(node, &address));
    } else {
      EXPECT_OK(weft_sessions_open(x[i].sessions, &address, NULL, now_us(), &x[i].link));
    }
    for (int turns = 0; turns < 200 && !x[i].opens; turns++)
      turn_for(node, x, i + 1, SECOND / 100);
    tells(&x[i], i == NEEDY ? 1 : 9);
    turn_for(node, x, i + 1, i < PLACES ? SECOND / 10 : SECOND);
    EXPECT(x[i].opens == 1 && x[i].refused == (i >= PLACES));
    const size_t wanted = i == OTHER ? PLACES - 1 : i < PLACES ? i + 1 : PLACES;
    EXPECT(open_of(x, PLACES) == wanted && (i < NEEDY || x[NEEDY].open));
  }
  weft_node_free(node);
  for (size_t i = 0; i < COME; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node_crowds");
  TCase *tc = tcase_create("node_crowds");
  tcase_set_timeout(tc, 30);
  tcase_add_test(tc, calls_leave_room_for_ones_own);
  tcase_add_test(tc, a_tracker_tells_of_all_addresses);
  tcase_add_test(tc, who_comes_again_takes_nobody_elses_place);
  tcase_add_test(tc, who_has_a_place_is_made_no_room_for);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
