// SPDX-License-Identifier: Apache-2.0
// More datagrams of strangers than the session layer can answer cost what docs/session.md says, and
// keep no other node out.
#include <string.h>

#include "tests/peer/session_net.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

// A flood is never answered with three times its bytes, and costs no signature without cookies.
START_TEST(floods_are_limited) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  net_turn(&n);
  const parcel init = n.sent[0];
  n.queued = 0;
  size_t in = 0, out = 0;
  for (int i = 0; i < 5000; i++) {
    const weft_address from = {.ip = {[10] = 0xff, [11] = 0xff, [12] = (uint8_t)(i >> 8), [15] = 2},
                               .port = (uint16_t)i};
    uint8_t copy[WEFT_SESSION_DATAGRAM_BYTES];
    weft_session_plain plain;
    weft_address to;
    const uint8_t *data;
    size_t bytes;
    memcpy(copy, init.data, init.bytes);
    (void)weft_sessions_input(n.node[1], &from, copy, init.bytes, n.now_us, &plain);
    in += init.bytes;
    while (weft_sessions_output(n.node[1], &to, &data, &bytes) == WEFT_OK) {
      EXPECT(bytes <= 3 * init.bytes);
      out += bytes;
    }
  }
  weft_session_statistics s;
  weft_sessions_get_statistics(n.node[1], &s);
  EXPECT(s.handshakes == 0 && s.retries <= 1001 && s.limited >= 3999 && out <= 3 * in);
  net_free(&n);
}
END_TEST

// An address with a cookie gets a bounded number of signatures.
START_TEST(handshakes_are_limited) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  for (int i = 0; i < 200; i++) {
    const size_t link = net_open(&n, 0, 1, NULL);
    net_turn(&n); // INIT
    n.lose_type = CONFIRM;
    n.seen = 0;
    n.lose_nth = 1;
    net_run(&n, 3500);
    weft_sessions_close(n.node[0], link, n.now_us);
    n.queued = n.sent_count = 0;
    net_turn(&n);
  }
  weft_session_statistics s;
  weft_sessions_get_statistics(n.node[1], &s);
  EXPECT(s.handshakes >= 50 && s.handshakes <= 101 + 100 * 7 / 10);
  n.lose_type = 0;
  n.opens[1] = n.losses[1] = n.opens[0] = n.losses[0] = 0;
  net_run(&n, 6 * SECOND);
  net_open(&n, 0, 1, NULL);
  net_run(&n, SECOND);
  EXPECT(n.opens[0] == 1);
  net_free(&n);
}
END_TEST

static void same_secrets(net *n, size_t i) { // a new node i: another identity behind one address
  uint8_t seed[32];
  const weft_rng rng = weft_rng_chacha_table(&n->chacha[i]);
  weft_sessions_free(n->node[i]);
  weft_sessions_options options = net_options(n, i, &rng);
  rng.fill(rng.user, seed, sizeof seed);
  weft_identity_from_seed(seed, &options.identity);
  EXPECT_OK(weft_sessions_new(n->ctx, &options, n->now_us, &n->node[i]));
}

// A stranger that requests signatures all the time, from many ports of one address, keeps no other
// address out.
START_TEST(one_address_leaves_handshakes_to_others) {
  net n;
  size_t opened = 0;
  EXPECT_OK(net_new(&n, NULL, NULL));
  for (int i = 0; i < 1200; i++) {
    n.port[0] = (uint16_t)(2000 + i);
    const size_t link = net_open(&n, 0, 1, NULL);
    if (i > 400 && i % 200 == 0) { // an honest newcomer
      net_open(&n, 2, 1, NULL);
      opened++;
    }
    net_run(&n, 2500);
    weft_sessions_close(n.node[0], link, n.now_us);
    n.sent_count = 0;
    net_run(&n, 2500);
    if (i > 400 && i % 200 == 199) {
      EXPECT(n.opens[2] == opened);
      same_secrets(&n, 2);
    }
  }
  weft_session_statistics s;
  weft_sessions_get_statistics(n.node[1], &s);
  EXPECT(opened >= 3 && s.limited > 500);
  net_free(&n);
}
END_TEST

// In a flood of INITs from everywhere, newcomers still get a cookie within their few tries.
START_TEST(a_flood_leaves_cookies_to_others) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  net_turn(&n);
  const parcel init = n.sent[0];
  weft_sessions_close(n.node[0], 0, n.now_us);
  for (size_t i = 0; i < 80000; i++) { // 8,000 a second
    const weft_address from = {.ip = {[10] = 0xff, [11] = 0xff, [12] = (uint8_t)(i >> 8)},
                               .port = (uint16_t)(i + 1)};
    if (i % 20000 == 4000) // a newcomer
      net_open(&n, 2, 1, NULL);
    uint8_t copy[WEFT_SESSION_DATAGRAM_BYTES];
    weft_session_plain plain;
    memcpy(copy, init.data, init.bytes);
    (void)weft_sessions_input(n.node[1], &from, copy, init.bytes, n.now_us, &plain);
    n.sent_count = 0;
    net_run(&n, 125);
    if (i % 20000 == 19999) {
      EXPECT(n.opens[2] == i / 20000 + 1);
      same_secrets(&n, 2);
    }
  }
  net_free(&n);
}
END_TEST

// One of many addresses requests a handshake from node 1, with a cookie of its own and a new key.
static void ask_for_handshake(net *n, size_t number) {
  const weft_address from = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t)number},
                             .port = 7};
  uint8_t init[192] = {[0] = INIT, [4] = 1, [11] = 1};
  const weft_rng rng = weft_rng_chacha_table(&n->chance);
  rng.fill(rng.user, init + 12, 32);
  for (int with_cookie = 0; with_cookie < 2; with_cookie++) {
    uint8_t copy[sizeof init];
    weft_session_plain plain;
    weft_address to;
    const uint8_t *data;
    size_t bytes;
    memcpy(copy, init, sizeof init);
    (void)weft_sessions_input(n->node[1], &from, copy, sizeof init, n->now_us, &plain);
    while (weft_sessions_output(n->node[1], &to, &data, &bytes) == WEFT_OK)
      if (data[0] == RETRY)
        memcpy(init + 44, data + 12, 16);
  }
}

static void rekey_now_and_then(weft_sessions_options *options, size_t node) {
  (void)node;
  options->rekey_us = 6 * SECOND;
}

// A flood of handshakes from many addresses keeps newcomers out, but ends no session: keys are
// still replaced.
START_TEST(a_flood_of_handshakes_leaves_renewals) {
  net n;
  EXPECT_OK(net_new(&n, NULL, rekey_now_and_then));
  net_open(&n, 2, 1, NULL);
  net_run(&n, SECOND);
  EXPECT(n.opens[2] == 1);
  for (size_t i = 0; i < 24000; i++) { // for 30 s, from 32 addresses, each 25 times a second
    ask_for_handshake(&n, i % 32);
    n.sent_count = 0;
    net_run(&n, 1250);
  }
  weft_session_statistics s;
  weft_sessions_get_statistics(n.node[2], &s);
  EXPECT(n.losses[2] == 0 && n.losses[1] == 0 && s.rekeyed >= 4);
  weft_sessions_get_statistics(n.node[1], &s);
  EXPECT(s.limited > 5000);
  net_free(&n);
}
END_TEST

// Answers wait in bounded room if they are not collected; what does not fit is refused.
START_TEST(answers_wait_in_bounded_room) {
  enum { ROOM = 128 };
  net n;
  weft_session_plain plain;
  weft_address to;
  const uint8_t *data;
  size_t bytes, answers = 0;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  net_turn(&n);
  for (size_t i = 0; i < 3 * ROOM; i++) {
    const weft_address from = {.ip = {[10] = 0xff, [11] = 0xff, [15] = 2}, .port = (uint16_t)i};
    parcel init = n.sent[0];
    EXPECT_STATUS(weft_sessions_input(n.node[1], &from, init.data, init.bytes, n.now_us, &plain),
                  i < ROOM ? WEFT_PENDING : WEFT_E_STATE);
  }
  EXPECT(weft_sessions_deadline(n.node[1]) == 0); // at once
  for (; weft_sessions_output(n.node[1], &to, &data, &bytes) == WEFT_OK; answers++)
    EXPECT(data[0] == RETRY && to.port == answers);
  EXPECT(answers == ROOM);
  net_free(&n);
}
END_TEST

START_TEST(noise_is_refused) {
  net n;
  net_new_open(&n);
  test_rng rng = test_rng_new(test_seed(), 8);
  for (int i = 0; i < 100000; i++) {
    parcel p = {.from = test_rng_below(&rng, 3), .to = 1};
    p.bytes = test_rng_below(&rng, 400);
    test_rng_fill(&rng, p.data, p.bytes);
    if (p.bytes > 4 && i % 2)
      p.data[0] = (uint8_t)(INIT + test_rng_below(&rng, 6));
    const weft_status status = net_deliver(&n, &p);
    EXPECT(status == WEFT_E_MALFORMED || status == WEFT_E_FOREIGN);
  }
  net_expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session_flood");
  TCase *tc = tcase_create("session_flood");
  tcase_add_test(tc, floods_are_limited);
  tcase_add_test(tc, handshakes_are_limited);
  tcase_add_test(tc, one_address_leaves_handshakes_to_others);
  tcase_add_test(tc, a_flood_leaves_cookies_to_others);
  tcase_add_test(tc, a_flood_of_handshakes_leaves_renewals);
  tcase_add_test(tc, answers_wait_in_bounded_room);
  tcase_add_test(tc, noise_is_refused);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
