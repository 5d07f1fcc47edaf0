// SPDX-License-Identifier: Apache-2.0
// Nodes that have a session, or may have one, and break the document's rules for it.
#include <string.h>

#include "peer/session/internal.h"
#include "tests/peer/session_net.h"
#include "tests/support/test_main.h"

static uint16_t port_at(const net *n, size_t node) {
  weft_session_peer peer;
  EXPECT_OK(weft_sessions_peer(n->node[node], n->opened[node].link, &peer));
  return peer.address.port;
}

// Node 0 sends something that seems to node 1 to come from this port; node 1's reply is under way.
static void speak_from(net *n, uint16_t port) {
  n->sent_count = n->queued = 0;
  net_send(n, 0, n->opened[0].link, "here", 4);
  const parcel p = n->sent[0];
  n->queued = 0;
  n->port[0] = port;
  EXPECT_OK(net_deliver(n, &p));
  net_turn(n);
}

// An answer proves one address, not the next. An answer to the first of two questions for the same
// address counts.
START_TEST(an_answer_is_for_one_address) {
  enum { OWN = 7, VICTIM = 8 };
  for (uint16_t next = OWN; next <= VICTIM; next++) {
    net n;
    net_new_open(&n);
    speak_from(&n, OWN);
    EXPECT(n.queued == 1 && n.queue[0].data[0] == WEFT_SESSION_PATH);
    const parcel question = n.queue[0];
    n.now_us += WEFT_PATH_EVERY_US;
    speak_from(&n, next);
    EXPECT(n.queued == 1 && n.queue[0].data[0] == WEFT_SESSION_PATH);
    n.queued = 0;
    n.port[0] = OWN;
    EXPECT_STATUS(net_deliver(&n, &question), WEFT_PENDING);
    net_run(&n, SECOND);
    EXPECT(port_at(&n, 1) == (next == OWN ? OWN : net_address(0).port));
    EXPECT(n.moves[1] == (next == OWN));
    net_free(&n);
  }
}
END_TEST

// Node 0 answers a question, or none, with these bytes.
static void answer_with(net *n, const uint8_t path[WEFT_PATH_BYTES]) {
  weft_seal seal;
  parcel p = {.from = 0, .to = 1};
  EXPECT_OK(weft_sessions_reserve(n->node[0], n->opened[0].link, 1, n->now_us, &seal));
  p.bytes =
      weft_session_seal(&seal, seal.counter, WEFT_SESSION_HERE, path, WEFT_PATH_BYTES, p.data);
  EXPECT_STATUS(net_deliver(n, &p), WEFT_PENDING);
}

START_TEST(guessed_answers_move_nobody) {
  const uint8_t zeros[WEFT_PATH_BYTES] = {0}, guess[WEFT_PATH_BYTES] = {1, 2, 3};
  for (int asked = 0; asked < 2; asked++) {
    net n;
    net_new_open(&n);
    if (asked)
      speak_from(&n, 8);
    n.queued = 0;
    n.port[0] = 0;
    answer_with(&n, zeros);
    answer_with(&n, guess);
    net_run(&n, SECOND);
    EXPECT(port_at(&n, 1) == net_address(0).port && n.moves[1] == 0);
    net_expect_open(&n, 0, 1);
    net_free(&n);
  }
}
END_TEST

// A session that was begun with no particular identity stays with the one that answered: another
// node at the address, when keys are replaced, gets none of it.
START_TEST(new_keys_are_for_whom_the_old_ones_were) {
  net n;
  EXPECT_OK(net_new(&n, NULL, net_rekey_often));
  net_open(&n, 0, 1, NULL);
  net_run(&n, SECOND);
  net_expect_open(&n, 0, 1);
  n.sent_count = 0;
  while (n.losses[0] == 0) {
    net_run(&n, 500);
    for (size_t i = 0; i < n.queued; i++) { // node 2 at the address of node 1
      n.queue[i].to = n.queue[i].to == 1 ? 2 : n.queue[i].to;
      n.queue[i].from = n.queue[i].from == 2 ? 1 : n.queue[i].from;
    }
  }
  weft_session_statistics there;
  weft_sessions_get_statistics(n.node[2], &there);
  EXPECT(there.handshakes > 0 && n.opens[2] == 0);
  for (size_t i = 0; i < n.sent_count; i++)
    EXPECT(n.sent[i].from != 0 || n.sent[i].data[0] != CONFIRM);
  EXPECT(n.lost[0].reason == WEFT_SESSION_EXPIRED);
  net_free(&n);
}
END_TEST

// Two nodes that replace their keys at one node each replace only their own.
START_TEST(nobody_replaces_the_keys_of_others) {
  net n;
  EXPECT_OK(net_new(&n, NULL, net_rekey_often));
  net_open(&n, 2, 1, NULL);
  net_run(&n, SECOND);
  const size_t link = n.opened[1].link;
  net_open(&n, 0, 1, NULL);
  net_run(&n, 10 * SECOND);
  weft_session_statistics s;
  weft_sessions_get_statistics(n.node[1], &s);
  EXPECT(s.rekeyed >= 4 && n.opens[1] == 2 && n.losses[1] == 0);
  n.opens[1] = 1;
  net_expect_open(&n, 0, 1);
  n.opened[1].link = link;
  net_expect_open(&n, 2, 1);
  net_free(&n);
}
END_TEST

// Makes an ACCEPT of node 1.
static parcel make_accept(const net *n, const parcel *init, uint8_t flags, uint32_t id) {
  uint8_t secret[32] = {9};
  weft_secrets secrets;
  parcel p = {.from = 1, .to = 0, .bytes = WEFT_ACCEPT_MIN};
  p.data[0] = ACCEPT;
  memcpy(p.data + 1, init->data + 9, 3);
  p.data[4] = flags;
  weft_put24(p.data + 9, id);
  (void)crypto_scalarmult_base(p.data + 12, secret);
  EXPECT(weft_session_agree(secret, init->data + 12, init->data, p.data, &secrets));
  weft_session_sign(n->node[1], &secrets, "weft accept", n->identity[1].public_key, flags, NULL, 0,
                    p.data + WEFT_ACCEPT_BOX);
  weft_session_box(p.data, WEFT_ACCEPT_BOX, WEFT_PROOF_BYTES, secrets.accept);
  return p;
}

static void chacha_alone(weft_sessions_options *options, size_t node) {
  (void)node;
  options->cipher = WEFT_CIPHER_CHACHA;
}

// An ACCEPT with a cipher that was not offered (which this machine may not have), or with id 0, is
// refused.
START_TEST(an_accept_has_one_form) {
  const struct {
    uint8_t flags;
    uint32_t id;
    weft_status status;
  } tries[] = {{1, 5, WEFT_E_FOREIGN}, {0, 0, WEFT_E_FOREIGN}, {0, 5, WEFT_PENDING}};
  net n;
  EXPECT_OK(net_new(&n, NULL, chacha_alone));
  net_open(&n, 0, 1, NULL);
  net_turn(&n);
  const parcel init = net_take_next(&n, INIT);
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    const parcel p = make_accept(&n, &init, tries[i].flags, tries[i].id);
    EXPECT_STATUS(net_deliver(&n, &p), tries[i].status);
  }
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session_hostile");
  TCase *tc = tcase_create("session_hostile");
  tcase_add_test(tc, an_answer_is_for_one_address);
  tcase_add_test(tc, guessed_answers_move_nobody);
  tcase_add_test(tc, new_keys_are_for_whom_the_old_ones_were);
  tcase_add_test(tc, nobody_replaces_the_keys_of_others);
  tcase_add_test(tc, an_accept_has_one_form);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
