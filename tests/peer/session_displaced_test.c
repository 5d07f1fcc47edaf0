// SPDX-License-Identifier: Apache-2.0
// Two nodes with one identity displace each other; and a node that restarts without its sessions is
// probed by its neighbour, and called in parallel to the session that it no longer knows. A probe
// does not hide that the node has moved.
#include <string.h>

#include "tests/peer/session_net.h"
#include "tests/support/test_main.h"

enum { FIRST, HUB, SECOND_NODE };

static void one_identity(weft_sessions_options *options, size_t node) {
  const uint8_t seed[32] = {7};
  if (node != HUB)
    weft_identity_from_seed(seed, &options->identity);
}

START_TEST(who_is_displaced_is_told_that_it_is_elsewhere) {
  net n;
  EXPECT_OK(net_new(&n, NULL, one_identity));
  net_open(&n, FIRST, HUB, NULL);
  net_run(&n, SECOND);
  EXPECT(n.opens[FIRST] == 1 && n.losses[FIRST] == 0);
  for (size_t i = 0; i < 4; i++) { // alternately
    const size_t comes = i % 2 ? FIRST : SECOND_NODE, goes = i % 2 ? SECOND_NODE : FIRST;
    const size_t losses = n.losses[goes], others = n.losses[comes];
    net_open(&n, comes, HUB, NULL);
    net_run(&n, SECOND);
    EXPECT(n.losses[goes] == losses + 1 && n.lost[goes].reason == WEFT_SESSION_ELSEWHERE);
    EXPECT(n.losses[comes] == others);
    EXPECT(n.lost[HUB].reason == WEFT_SESSION_REPLACED);
  }
  net_free(&n);
}
END_TEST

// A node's own second session does not count as another node's with its identity, in whatever order
// things arrive.
START_TEST(ones_own_second_session_is_not_elsewhere) {
  for (int64_t jitter = 0; jitter < 20; jitter++) {
    net n;
    EXPECT_OK(net_new(&n, NULL, NULL));
    n.jitter_us = jitter * 3000;
    for (size_t i = 0; i < 3; i++) {
      net_open(&n, FIRST, HUB, NULL);
      net_run(&n, i == 0 ? SECOND : jitter * 5000);
    }
    for (size_t i = 0; i < 800; i++) {
      net_run(&n, SECOND / 100);
      EXPECT(n.losses[FIRST] == 0 || n.lost[FIRST].reason != WEFT_SESSION_ELSEWHERE);
    }
    EXPECT(n.opens[FIRST] >= 2 && n.losses[FIRST] == 2);
    net_free(&n);
  }
}
END_TEST

START_TEST(a_goodbye_is_no_displacement) {
  net n;
  net_new_open(&n);
  weft_sessions_close(n.node[HUB], n.opened[HUB].link, n.now_us);
  net_run(&n, SECOND);
  EXPECT(n.losses[FIRST] == 1 && n.lost[FIRST].reason == WEFT_SESSION_CLOSED);
  net_free(&n);
}
END_TEST

static int64_t heard_us(const net *n) {
  weft_session_peer peer;
  EXPECT_OK(weft_sessions_peer(n->node[FIRST], n->opened[FIRST].link, &peer));
  return peer.heard_us;
}

START_TEST(who_is_there_answers_when_asked) {
  net n;
  net_new_open(&n);
  const int64_t before_us = heard_us(&n);
  net_run(&n, 3 * SECOND);
  EXPECT(heard_us(&n) == before_us);
  weft_sessions_ask(n.node[FIRST], n.opened[FIRST].link, n.now_us);
  net_run(&n, SECOND);
  EXPECT(heard_us(&n) >= before_us + 3 * SECOND);
  EXPECT(n.moves[FIRST] == 0 && n.moves[HUB] == 0);
  weft_sessions_ask(n.node[FIRST], 99999, n.now_us); // no such link: nothing happens
  weft_sessions_ask(n.node[FIRST], n.opened[FIRST].link + 1, n.now_us);
  net_free(&n);
}
END_TEST

static uint16_t port_of_hub(const net *n) {
  weft_session_peer peer;
  EXPECT_OK(weft_sessions_peer(n->node[FIRST], n->opened[FIRST].link, &peer));
  return peer.address.port;
}

// Has the hub move to another port and be heard from there.
static void move_hub(net *n, uint16_t port) {
  n->port[HUB] = port;
  net_send(n, HUB, n->opened[HUB].link, "moved", 5);
}

// A node is found as soon as it answers, however soon it moves again.
START_TEST(who_moves_twice_is_found_twice) {
  net n;
  net_new_open(&n);
  for (uint16_t port = 7; port < 9; port++) {
    move_hub(&n, port);
    net_run(&n, SECOND / 50);
    EXPECT(port_of_hub(&n) == port);
  }
  net_free(&n);
}
END_TEST

// Asking where a node was does not spoil its answer from where it is now, which is on its way. If
// none has come for a second, the old place is asked.
START_TEST(who_moves_is_found_although_it_is_asked) {
  enum { HERE = 0x78 };
  net n;
  net_new_open(&n);
  const uint16_t before = port_of_hub(&n);
  move_hub(&n, 7);
  const parcel answer = net_take_next(&n, HERE);
  net_run(&n, SECOND / 2);
  weft_sessions_ask(n.node[FIRST], n.opened[FIRST].link, n.now_us);
  (void)net_deliver(&n, &answer);
  EXPECT(port_of_hub(&n) == 7);
  move_hub(&n, 8);
  (void)net_take_next(&n, HERE); // it is lost
  n.port[HUB] = 7;
  const int64_t last_us = heard_us(&n);
  net_run(&n, 2 * SECOND);
  EXPECT(heard_us(&n) == last_us);
  weft_sessions_ask(n.node[FIRST], n.opened[FIRST].link, n.now_us);
  net_run(&n, SECOND);
  EXPECT(heard_us(&n) > last_us && port_of_hub(&n) == 7 && before != 7);
  net_free(&n);
}
END_TEST

// Restarts a node with the same identity, as from a key file, and none of its sessions.
static void begin_again(net *n, size_t node) {
  const weft_rng rng = weft_rng_chacha_table(&n->chacha[node]);
  const weft_sessions_options options = net_options(n, node, &rng);
  weft_sessions_free(n->node[node]);
  EXPECT_OK(weft_sessions_new(n->ctx, &options, n->now_us, &n->node[node]));
}

START_TEST(who_began_again_is_called_beside_the_session) {
  net n;
  net_new_open(&n);
  const int64_t before_us = heard_us(&n);
  begin_again(&n, HUB);
  for (int i = 0; i < 3; i++) {
    net_run(&n, SECOND);
    weft_sessions_ask(n.node[FIRST], n.opened[FIRST].link, n.now_us);
  }
  net_run(&n, SECOND);
  EXPECT(heard_us(&n) == before_us && n.losses[FIRST] == 0);
  net_open(&n, FIRST, HUB, NULL);
  net_run(&n, SECOND);
  EXPECT(n.opens[FIRST] == 2 && n.losses[FIRST] == 1);
  EXPECT(n.lost[FIRST].reason == WEFT_SESSION_REPLACED);
  n.opens[FIRST] = n.opens[HUB] = 1;
  n.losses[FIRST] = n.losses[HUB] = 0;
  net_expect_open(&n, FIRST, HUB);
  net_free(&n);
}
END_TEST

// Another identity at the address ends no session while the node there is silent.
START_TEST(a_stranger_at_the_address_ends_nothing) {
  net n;
  net_new_open(&n);
  const uint8_t seed[32] = {9};
  const weft_rng rng = weft_rng_chacha_table(&n.chacha[HUB]);
  weft_sessions_options options = net_options(&n, HUB, &rng);
  weft_sessions *hub = n.node[HUB];
  weft_identity_from_seed(seed, &options.identity);
  EXPECT_OK(weft_sessions_new(n.ctx, &options, n.now_us, &n.node[HUB]));
  net_open(&n, FIRST, HUB, NULL);
  net_run(&n, 10 * SECOND);
  EXPECT(n.opens[FIRST] == 2 && n.losses[FIRST] == 0);
  weft_sessions_free(n.node[HUB]);
  n.node[HUB] = hub;
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session_displaced");
  TCase *t = tcase_create("session_displaced");
  tcase_add_test(t, who_is_displaced_is_told_that_it_is_elsewhere);
  tcase_add_test(t, ones_own_second_session_is_not_elsewhere);
  tcase_add_test(t, a_goodbye_is_no_displacement);
  tcase_add_test(t, who_is_there_answers_when_asked);
  tcase_add_test(t, who_moves_twice_is_found_twice);
  tcase_add_test(t, who_moves_is_found_although_it_is_asked);
  tcase_add_test(t, who_began_again_is_called_beside_the_session);
  tcase_add_test(t, a_stranger_at_the_address_ends_nothing);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
