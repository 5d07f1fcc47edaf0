// SPDX-License-Identifier: Apache-2.0
// Which handshake messages are accepted, from which addresses, and how often (docs/session.md):
// cookies, addresses, places, and limits for strangers.
#include <string.h>

#include "tests/peer/session_net.h"
#include "tests/support/test_main.h"

enum { COOKIE_AT = 44, KEY_AT = 12, KEY_ID_AT = 9, RETRY_COOKIE_AT = 12 };

// Makes an INIT of node 0 without a cookie.
static parcel new_init(net *n) {
  EXPECT_OK(net_new(n, NULL, NULL));
  net_open(n, 0, 1, NULL);
  net_turn(n);
  n->queued = 0;
  return n->sent[0];
}

static weft_status give(net *n, const weft_address *from, const parcel *p) {
  weft_session_plain plain;
  parcel copy = *p;
  return weft_sessions_input(n->node[1], from, copy.data, copy.bytes, n->now_us, &plain);
}

// Puts into an INIT the cookie that node 1 gives its address.
static void take_cookie(net *n, const weft_address *from, parcel *init) {
  weft_address to;
  const uint8_t *data;
  size_t bytes;
  EXPECT_STATUS(give(n, from, init), WEFT_PENDING);
  EXPECT_OK(weft_sessions_output(n->node[1], &to, &data, &bytes));
  EXPECT(data[0] == RETRY && to.port == from->port);
  memcpy(init->data + COOKIE_AT, data + RETRY_COOKIE_AT, bytes - RETRY_COOKIE_AT);
}

// Whether node 1 answers an INIT of that address with a signature, once it has its cookie.
static bool is_answered(net *n, const weft_address *from, parcel init) {
  weft_address to;
  const uint8_t *data;
  size_t bytes;
  take_cookie(n, from, &init);
  const weft_status status = give(n, from, &init);
  EXPECT(status == WEFT_PENDING || status == WEFT_E_STATE);
  while (weft_sessions_output(n->node[1], &to, &data, &bytes) == WEFT_OK)
    EXPECT(data[0] == ACCEPT);
  return status == WEFT_PENDING;
}

static uint64_t handshakes(const net *n) {
  weft_session_statistics s;
  weft_sessions_get_statistics(n->node[1], &s);
  return s.handshakes;
}

// A cookie is valid for one address and port, and one ephemeral key, for ten to twenty seconds. An
// INIT with another cookie is sent its own.
START_TEST(cookies_are_for_one_caller) {
  net n;
  parcel init = new_init(&n);
  const weft_address from = net_address(0);
  n.now_us = 10 * SECOND; // an epoch begins
  take_cookie(&n, &from, &init);
  weft_address other = from;
  other.port++;
  EXPECT_STATUS(give(&n, &other, &init), WEFT_PENDING);
  other = from;
  other.ip[15]++;
  EXPECT_STATUS(give(&n, &other, &init), WEFT_PENDING);
  parcel changed = init;
  changed.data[KEY_AT + 31] ^= 1;
  EXPECT_STATUS(give(&n, &from, &changed), WEFT_PENDING);
  EXPECT(handshakes(&n) == 0);
  n.now_us = 30 * SECOND;
  EXPECT_STATUS(give(&n, &from, &init), WEFT_PENDING);
  EXPECT(handshakes(&n) == 0);
  n.now_us = 30 * SECOND - 1;
  EXPECT_STATUS(give(&n, &from, &init), WEFT_PENDING);
  EXPECT(handshakes(&n) == 1);
  net_free(&n);
}
END_TEST

START_TEST(an_init_has_one_form) {
  static const struct {
    size_t at;
    uint8_t value;
  } bad[] = {{1, 1}, {3, 1}, {4, 0}, {4, 2}, {5, 2}, {6, 1}, {7, 1}, {8, 1}, {60, 1}, {191, 1}};
  net n;
  const parcel init = new_init(&n);
  const weft_address from = net_address(0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    parcel p = init;
    p.data[bad[i].at] = bad[i].value;
    EXPECT_STATUS(give(&n, &from, &p), WEFT_E_MALFORMED);
  }
  parcel p = init;
  memset(p.data + KEY_ID_AT, 0, 3); // an unknown id
  EXPECT_STATUS(give(&n, &from, &p), WEFT_E_MALFORMED);
  p = init;
  memset(p.data + KEY_AT, 0, 32); // a point for which all secrets agree on the same key
  take_cookie(&n, &from, &p);
  EXPECT_STATUS(give(&n, &from, &p), WEFT_E_FOREIGN);
  EXPECT(handshakes(&n) == 0);
  net_free(&n);
}
END_TEST

// A message of a handshake is accepted only from its sender's address, wherever it was captured.
START_TEST(a_handshake_stays_at_its_addresses) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  const parcel accept = net_take_next(&n, ACCEPT);
  n.port[1] = 9;
  EXPECT_STATUS(net_deliver(&n, &accept), WEFT_E_FOREIGN);
  n.port[1] = 0;
  EXPECT_STATUS(net_deliver(&n, &accept), WEFT_PENDING);
  const parcel confirm = net_take_next(&n, CONFIRM);
  n.port[0] = 9;
  EXPECT_STATUS(net_deliver(&n, &confirm), WEFT_E_FOREIGN);
  n.port[0] = 0;
  EXPECT_STATUS(net_deliver(&n, &confirm), WEFT_PENDING);
  net_run(&n, SECOND);
  net_expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

// Makes the CONFIRM of a handshake of node 0 that is not sent, and that node 0 gives up.
static parcel begin_from(net *n, uint16_t port) {
  n->port[0] = port;
  const size_t link = net_open(n, 0, 1, NULL);
  const parcel confirm = net_take_next(n, CONFIRM);
  weft_sessions_close(n->node[0], link, n->now_us);
  net_turn(n);
  n->queued = n->sent_count = 0; // node 1 hears nothing of that
  n->now_us += SECOND / 40;
  return confirm;
}

// One address has one handshake, the last that it began; and of 65 the oldest is dropped.
START_TEST(places_are_few) {
  enum { PLACES = 64 };
  net n;
  parcel confirm[2];
  EXPECT_OK(net_new(&n, NULL, NULL));
  for (size_t i = 0; i < 2; i++)
    confirm[i] = begin_from(&n, 2000);
  EXPECT_STATUS(net_deliver(&n, &confirm[0]), WEFT_E_FOREIGN);
  EXPECT_STATUS(net_deliver(&n, &confirm[1]), WEFT_PENDING);
  EXPECT_STATUS(net_deliver(&n, &confirm[1]), WEFT_PENDING); // of an existing session
  net_free(&n);

  EXPECT_OK(net_new(&n, NULL, NULL));
  for (size_t i = 0; i <= PLACES; i++) {
    const parcel p = begin_from(&n, (uint16_t)(2000 + i));
    if (i < 2)
      confirm[i] = p;
  }
  EXPECT(handshakes(&n) == PLACES + 1);
  n.port[0] = 2000;
  EXPECT_STATUS(net_deliver(&n, &confirm[0]), WEFT_E_FOREIGN);
  n.port[0] = 2001;
  EXPECT_STATUS(net_deliver(&n, &confirm[1]), WEFT_PENDING);
  net_free(&n);
}
END_TEST

START_TEST(nobody_has_a_session_with_himself) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 0, NULL);
  net_run(&n, 7 * SECOND);
  EXPECT(n.opens[0] == 0 && n.losses[0] == 1);
  EXPECT(n.lost[0].reason == WEFT_SESSION_OTHER_IDENTITY);
  net_free(&n);
}
END_TEST

// From many addresses a hundred INITs at once are answered; from one address, or one /64, half of
// them at once and a fifth per second after that.
START_TEST(signatures_are_limited_by_address) {
  enum { MANY = 300, RATE = 100 };
  for (int kind = 0; kind < 3; kind++) {
    net n;
    const parcel init = new_init(&n);
    size_t answered = 0;
    for (size_t i = 0; i < MANY; i++) {
      weft_address from = {.port = (uint16_t)(1000 + i)}; // kind 1: only the port differs
      from.ip[0] = kind == 2 ? 0x20 : 0;
      from.ip[10] = from.ip[11] = kind == 2 ? (uint8_t)i : 0xff; // in one /64
      from.ip[kind ? 9 : 14] = kind == 1 ? 0 : (uint8_t)(i >> 8);
      from.ip[kind ? 9 : 15] = kind == 1 ? 0 : (uint8_t)i;
      answered += is_answered(&n, &from, init);
    }
    EXPECT(answered == (kind ? RATE / 2 : RATE));
    answered = 0;
    for (size_t i = 0; kind && i < 2 * MANY; i++) {
      n.now_us += SECOND / 100;
      const weft_address from = {.ip = {kind == 2 ? 0x20 : 0, [10] = 0xff, [11] = 0xff, [12] = 0},
                                 .port = (uint16_t)(2000 + i)};
      answered += is_answered(&n, &from, init);
    }
    EXPECT(kind == 0 || (answered >= 119 && answered <= 121)); // in six seconds
    net_free(&n);
  }
}
END_TEST

// An attacker on the path can send anything in the other side's name; wrong answers cost a bounded
// amount.
START_TEST(answers_that_are_none_are_limited) {
  enum { COOKIES = 8, ACCEPTS = 20 };
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  parcel retry = net_take_next(&n, RETRY);
  for (int i = 0; i < 2 * COOKIES; i++) {
    retry.data[RETRY_COOKIE_AT]++;
    EXPECT_STATUS(net_deliver(&n, &retry), i < COOKIES ? WEFT_PENDING : WEFT_E_STATE);
  }
  net_free(&n);

  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  const parcel accept = net_take_next(&n, ACCEPT);
  parcel spoilt = accept;
  spoilt.data[spoilt.bytes - 1] ^= 1;
  for (int i = 0; i < 2 * ACCEPTS; i++)
    EXPECT_STATUS(net_deliver(&n, &spoilt), i < ACCEPTS ? WEFT_E_FOREIGN : WEFT_E_STATE);
  n.now_us += SECOND / 10;
  EXPECT_STATUS(net_deliver(&n, &accept), WEFT_PENDING);
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session_handshake");
  TCase *tc = tcase_create("session_handshake");
  tcase_add_test(tc, cookies_are_for_one_caller);
  tcase_add_test(tc, an_init_has_one_form);
  tcase_add_test(tc, a_handshake_stays_at_its_addresses);
  tcase_add_test(tc, places_are_few);
  tcase_add_test(tc, nobody_has_a_session_with_himself);
  tcase_add_test(tc, signatures_are_limited_by_address);
  tcase_add_test(tc, answers_that_are_none_are_limited);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
