// SPDX-License-Identifier: Apache-2.0
// The session layer under scripted time and datagrams: loss of every handshake message, tampering
// with every byte, replays, reordering, moves, expiry, both sides at once, failed allocations.
#include <stdlib.h>
#include <string.h>

#include "tests/peer/session_net.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

static void only_chacha(weft_sessions_options *options, size_t node) {
  if (node == 1)
    options->cipher = WEFT_CIPHER_CHACHA;
}

START_TEST(opens_with_either_cipher) {
  for (int chacha = 0; chacha < 2; chacha++) {
    net n;
    weft_session_peer peer;
    EXPECT_OK(net_new(&n, NULL, chacha ? only_chacha : NULL));
    net_open(&n, 0, 1, n.identity[1].public_key);
    net_run(&n, SECOND);
    net_expect_open(&n, 0, 1);
    EXPECT_OK(weft_sessions_peer(n.node[0], n.opened[0].link, &peer));
    EXPECT(!chacha || !peer.aes);
    weft_sessions_close(n.node[0], n.opened[0].link, n.now_us);
    net_run(&n, SECOND);
    EXPECT(n.losses[1] == 1 && n.lost[1].reason == WEFT_SESSION_CLOSED && n.losses[0] == 0);
    net_free(&n);
  }
}
END_TEST

// A handshake survives the loss of each message, once and twice.
START_TEST(survives_loss_of_each_message) {
  static const uint8_t types[] = {INIT, RETRY, ACCEPT, CONFIRM, DATA};
  for (size_t t = 0; t < sizeof types; t++)
    for (unsigned nth = 1; nth <= 3; nth++) {
      net n;
      EXPECT_OK(net_new(&n, NULL, NULL));
      n.lose_type = types[t];
      n.lose_nth = nth;
      net_open(&n, 0, 1, NULL);
      net_run(&n, 4 * SECOND);
      net_expect_open(&n, 0, 1);
      net_free(&n);
    }
}
END_TEST

// Each byte of each message is changed in each of three ways, on its first passage: the damaged
// datagram is refused, and the handshake still succeeds when the good one follows.
START_TEST(tampering_with_any_byte_is_refused) {
  static const uint8_t flips[] = {0x01, 0x80, 0xff};
  net n;
  net_new_open(&n);
  net_send(&n, 0, n.opened[0].link, "abc", 3);
  net_run(&n, SECOND);
  const size_t messages = n.sent_count;
  net_free(&n);
  EXPECT(messages >= 6);
  for (size_t m = 0; m < messages; m++)
    for (size_t at = 0;; at++) {
      bool past = false;
      for (size_t f = 0; f < sizeof flips; f++) {
        EXPECT_OK(net_new(&n, NULL, NULL)); // the same seeds: the same datagrams
        net_open(&n, 0, 1, NULL);
        // Run up to the message.
        for (int steps = 0; n.sent_count <= m && steps < 100; steps++) {
          net_run(&n, 500);
          if (n.opens[0] && n.opens[1] && n.received[1] == 0 && n.sent_count <= m)
            net_send(&n, 0, n.opened[0].link, "abc", 3);
        }
        EXPECT(n.sent_count > m);
        parcel p = n.sent[m];
        past = at >= p.bytes;
        if (!past) {
          n.queued = 0; // only the damaged one
          p.data[at] ^= flips[f];
          const size_t opens = n.opens[p.to], received = n.received[p.to];
          const weft_status status = net_deliver(&n, &p);
          // These are answered, in a way that the initiator refuses.
          const bool answered = p.data[0] == INIT && at >= 5 && at < 60;
          const bool cookie = p.data[0] == RETRY && at >= 12; // cannot be recognised
          EXPECT(answered || cookie || status >= WEFT_E_ARGUMENT);
          net_turn(&n);
          EXPECT(n.opens[p.to] == opens && n.received[p.to] == received);
          if (f == 0 && at % 7 == 0) {
            net_run(&n, 4 * SECOND);
            EXPECT(n.opens[0] == 1 && n.opens[1] == 1);
          }
        }
        net_free(&n);
      }
      if (past)
        break;
    }
}
END_TEST

START_TEST(replays_and_reordering) {
  net n;
  net_new_open(&n);
  net_expect_open(&n, 0, 1);
  // In a random order within the window, each is accepted once.
  enum { COUNT = 2000 };
  parcel *sent = calloc(COUNT, sizeof *sent);
  for (size_t i = 0; i < COUNT; i++) {
    n.sent_count = n.queued = 0;
    net_send(&n, 0, n.opened[0].link, &i, sizeof i);
    sent[i] = n.sent[0];
  }
  n.queued = 0;
  test_rng rng = test_rng_new(test_seed(), 3);
  for (size_t i = COUNT; i-- > 1;) {
    const size_t j = test_rng_below(&rng, i + 1);
    const parcel t = sent[i];
    sent[i] = sent[j];
    sent[j] = t;
  }
  const size_t before = n.received[1];
  for (size_t i = 0; i < COUNT; i++) {
    EXPECT_OK(net_deliver(&n, &sent[i]));
    EXPECT_STATUS(net_deliver(&n, &sent[i]), WEFT_DEPENDENT);
  }
  for (size_t i = 0; i < COUNT; i++)
    EXPECT_STATUS(net_deliver(&n, &sent[i]), WEFT_DEPENDENT);
  EXPECT(n.received[1] == before + COUNT);
  // Older than the window: refused although never seen.
  n.sent_count = 0;
  net_send(&n, 0, n.opened[0].link, "old", 3);
  const parcel old = n.sent[0];
  for (size_t i = 0; i < 2100; i++) {
    n.sent_count = n.queued = 0;
    net_send(&n, 0, n.opened[0].link, "new", 3);
  }
  EXPECT_OK(net_deliver(&n, &n.sent[0]));
  EXPECT_STATUS(net_deliver(&n, &old), WEFT_DEPENDENT);
  n.queued = 0;
  free(sent);
  net_free(&n);
}
END_TEST

START_TEST(handshake_replays_change_nothing) {
  net n;
  net_new_open(&n);
  const size_t count = n.sent_count;
  for (size_t i = 0; i < count; i++)
    for (int twice = 0; twice < 2; twice++)
      (void)net_deliver(&n, &n.sent[i]);
  net_run(&n, 10 * SECOND);
  EXPECT(n.losses[0] == 0 && n.losses[1] == 0);
  net_expect_open(&n, 0, 1);
  // A captured INIT whose cookie is too old gets a new cookie and no signature.
  weft_session_statistics before, after;
  n.now_us += 60 * SECOND;
  weft_sessions_get_statistics(n.node[1], &before);
  for (size_t i = 0; i < count; i++)
    if (n.sent[i].data[0] == INIT)
      (void)net_deliver(&n, &n.sent[i]);
  weft_sessions_get_statistics(n.node[1], &after);
  EXPECT(after.handshakes == before.handshakes && after.retries > before.retries);
  net_free(&n);
}
END_TEST

START_TEST(other_identity_is_refused) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, n.identity[2].public_key);
  net_run(&n, 7 * SECOND);
  EXPECT(n.opens[0] == 0 && n.losses[0] == 1);
  EXPECT(n.lost[0].reason == WEFT_SESSION_OTHER_IDENTITY && n.opens[1] == 0);
  net_free(&n);
}
END_TEST

static bool nobody(void *user, const uint8_t public_key[32], const weft_address *address) {
  (void)user, (void)public_key, (void)address;
  return false;
}
static void admit_nobody(weft_sessions_options *options, size_t node) {
  if (node == 1)
    options->admit = nobody;
}

START_TEST(refused_and_absent_are_told) {
  net n;
  EXPECT_OK(net_new(&n, NULL, admit_nobody));
  net_open(&n, 0, 1, NULL);
  net_run(&n, 7 * SECOND);
  EXPECT(n.opens[1] == 0 && n.opens[0] == 0 && n.lost[0].reason == WEFT_SESSION_NO_ANSWER);
  net_free(&n);
}
END_TEST

// A session that the other side opens and ends before its first message arrives was not replaced by
// another, so a new one may be tried.
START_TEST(a_session_that_ends_at_once_was_not_replaced) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  n.lose_type = DATA;
  n.lose_nth = 1;
  for (int i = 0; i < 100 && n.opens[1] == 0; i++)
    net_run(&n, 500);
  weft_sessions_close(n.node[1], n.opened[1].link, n.now_us);
  net_run(&n, SECOND);
  EXPECT(n.opens[0] == 0 && n.losses[0] == 1 && n.lost[0].reason == WEFT_SESSION_CLOSED);
  net_free(&n);
}
END_TEST

static size_t admissions[NODES];
static bool count_admission(void *user, const uint8_t public_key[32], const weft_address *address) {
  (void)public_key, (void)address;
  ++*(size_t *)user;
  return true;
}
static void admit_and_rekey(weft_sessions_options *options, size_t node) {
  net_rekey_often(options, node);
  options->admit = count_admission;
  options->user = &admissions[node];
}

// A node that agrees on new keys is not admitted again: admitting a newcomer may end a session to
// make room, which could be that node's own, in the middle of this.
START_TEST(who_is_here_is_admitted_once) {
  net n;
  weft_session_statistics s;
  memset(admissions, 0, sizeof admissions);
  EXPECT_OK(net_new(&n, NULL, admit_and_rekey));
  net_open(&n, 0, 1, NULL);
  net_run(&n, 10 * SECOND);
  weft_sessions_get_statistics(n.node[0], &s);
  EXPECT(s.rekeyed >= 2 && admissions[0] == 1 && admissions[1] == 1);
  net_free(&n);
}
END_TEST

// A node whose NAT gives it another port is found there once it has sent something, which is
// reported once.
START_TEST(who_moves_is_found) {
  net n;
  net_new_open(&n);
  n.port[0] = 7;
  net_send(&n, 1, n.opened[1].link, "lost", 4);
  net_send(&n, 0, n.opened[0].link, "abc", 3);
  n.lose_type = 0x77; // the first question is lost; the next datagram causes another
  n.lose_nth = 1;
  net_run(&n, SECOND);
  net_send(&n, 0, n.opened[0].link, "abc", 3);
  net_run(&n, SECOND);
  EXPECT(n.received[0] == 0 && n.received[1] == 2);
  weft_session_peer peer;
  EXPECT_OK(weft_sessions_peer(n.node[1], n.opened[1].link, &peer));
  EXPECT(peer.address.port == 7 && n.moves[1] == 1 && n.moves[0] == 0);
  net_expect_open(&n, 0, 1);
  EXPECT(n.moves[1] == 1 && n.opens[1] == 1);
  net_free(&n);
}
END_TEST

// A node with several addresses answers from the one that was called, wherever either side goes.
START_TEST(who_is_called_answers_from_there) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  n.own[0] = 9;
  n.own[1] = 5;
  (void)net_open(&n, 0, 1, NULL);
  net_turn(&n);
  for (int i = 0; i < 20; i++) {
    net_run(&n, 1000);
    EXPECT(n.from[0] == 0 && (n.from[1] == 5 || n.from[1] == 0));
  }
  net_expect_open(&n, 0, 1);
  EXPECT(n.from[0] == 0 && n.from[1] == 5);
  for (size_t i = 0; i < 2; i++) {
    n.port[i] = 7;
    n.own[1] = (uint8_t)(6 + i);
    net_send(&n, i, n.opened[i].link, "here", 4);
    net_run(&n, SECOND);
    net_send(&n, 1 - i, n.opened[1 - i].link, "seen", 4);
    net_run(&n, SECOND);
    net_send(&n, i, n.opened[i].link, "then", 4);
    net_run(&n, SECOND);
    net_send(&n, 1 - i, n.opened[1 - i].link, "last", 4);
    EXPECT(n.moves[1 - i] == 1);
    EXPECT(n.from[0] == 0 && n.from[1] == 6 + i);
  }
  net_free(&n);
}
END_TEST

// A node with a session that forges another's address as its source causes only a few short
// questions to that address, and its session stays where it was.
START_TEST(nobody_is_sent_what_others_asked_for) {
  net n;
  net_new_open(&n);
  weft_session_peer peer;
  const size_t astray = n.astray[0];
  size_t sent = 0;
  for (int i = 0; i < 100; i++) {
    n.sent_count = n.queued = 0;
    net_send(&n, 0, n.opened[0].link, "all of it", 9);
    const parcel p = n.sent[0];
    n.port[0] = (uint16_t)(20 + i % 3); // the victims' ports
    EXPECT_OK(net_deliver(&n, &p));
    sent += p.bytes;
    n.port[0] = 0;
    net_turn(&n);
    EXPECT_OK(weft_sessions_peer(n.node[1], n.opened[1].link, &peer));
    EXPECT(peer.address.port == net_address(0).port && n.moves[1] == 0);
    n.now_us += 10000;
  }
  EXPECT(n.astray[0] > astray && n.astray[0] - astray < sent);
  EXPECT(n.astray[0] - astray <= 21 * (WEFT_SESSION_OVERHEAD_BYTES + 8)); // one per 50 ms
  n.sent_count = 0;
  net_run(&n, SECOND);
  net_expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

START_TEST(keys_are_replaced_and_expire) {
  net n;
  weft_session_statistics s;
  EXPECT_OK(net_new(&n, NULL, net_rekey_often));
  net_open(&n, 0, 1, NULL);
  net_run(&n, SECOND);
  for (int i = 0; i < 300; i++) { // nothing is lost while keys change
    const size_t a = n.received[0], b = n.received[1];
    net_send(&n, 0, n.opened[0].link, "abc", 3);
    net_send(&n, 1, n.opened[1].link, "abc", 3);
    n.sent_count = 0;
    net_run(&n, 100000);
    EXPECT(n.received[0] == a + 1 && n.received[1] == b + 1);
  }
  weft_sessions_get_statistics(n.node[0], &s);
  EXPECT(s.rekeyed >= 8 && s.rekeyed <= 11 && n.opens[0] == 1 && n.losses[0] == 0);
  // New keys cannot be had any more: the old ones are given up.
  for (int i = 0; i < 100 && n.losses[0] == 0; i++) {
    n.sent_count = 0;
    n.lose_type = INIT;
    n.seen = 0;
    n.lose_nth = 1;
    net_send(&n, 0, n.opened[0].link, "abc", 3);
    net_send(&n, 1, n.opened[1].link, "abc", 3);
    net_run(&n, 100000);
  }
  EXPECT(n.losses[0] == 1 && n.lost[0].reason == WEFT_SESSION_EXPIRED);
  net_free(&n);
}
END_TEST

START_TEST(silence_loses_a_link) {
  net n;
  net_new_open(&n);
  net_run(&n, 100 * SECOND); // keep-alives hold it
  EXPECT(n.opens[0] == 1 && n.losses[0] == 0 && n.losses[1] == 0);
  for (int i = 0; i < 40; i++) {
    n.now_us += SECOND;
    weft_sessions_tick(n.node[0], n.now_us); // its datagrams go nowhere
  }
  net_turn(&n);
  EXPECT(n.losses[0] == 1 && n.lost[0].reason == WEFT_SESSION_SILENT);
  net_free(&n);
}
END_TEST

START_TEST(a_restarted_neighbour_replaces_itself) {
  net n;
  net_new_open(&n);
  weft_sessions_free(n.node[0]);
  const weft_rng rng = weft_rng_chacha_table(&n.chacha[0]);
  const weft_sessions_options options = net_options(&n, 0, &rng);
  EXPECT_OK(weft_sessions_new(n.ctx, &options, n.now_us, &n.node[0]));
  n.opens[0] = 0;
  net_open(&n, 0, 1, NULL);
  net_run(&n, SECOND);
  EXPECT(n.opens[1] == 2 && n.losses[1] == 1 && n.lost[1].reason == WEFT_SESSION_REPLACED);
  net_expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

START_TEST(links_run_out) {
  net n;
  const weft_address address = net_address(1);
  size_t link;
  EXPECT_OK(net_new(&n, NULL, NULL));
  for (int i = 0; i < 4; i++)
    net_open(&n, 0, 2, NULL);
  EXPECT_STATUS(weft_sessions_open(n.node[0], &address, NULL, n.now_us, &link), WEFT_E_STATE);
  weft_seal seal;
  EXPECT_STATUS(weft_sessions_reserve(n.node[0], 0, 1, n.now_us, &seal), WEFT_E_STATE);
  net_run(&n, 20 * SECOND); // four sessions with one identity: one stays
  EXPECT(n.opens[0] - n.losses[0] + 3 >= 1);
  size_t open = 0;
  for (size_t i = 0; i < 4; i++) {
    weft_session_peer peer;
    open += weft_sessions_peer(n.node[0], i, &peer) == WEFT_OK;
  }
  EXPECT(open == 1);
  net_free(&n);
}
END_TEST

START_TEST(failed_allocations) {
  for (long fail = 1;; fail++) {
    test_allocator memory;
    net n;
    test_allocator_init(&memory, fail);
    const weft_status status = net_new(&n, &memory.allocator, NULL);
    EXPECT(status == WEFT_OK || status == WEFT_E_NOMEM);
    net_free(&n);
    EXPECT(test_allocator_live(&memory) == 0);
    if (!test_allocator_failed(&memory))
      break;
  }
}
END_TEST

START_TEST(wrong_arguments) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  weft_sessions *s = n.node[0];
  const weft_rng rng = weft_rng_chacha_table(&n.chacha[0]);
  weft_sessions_options o = net_options(&n, 0, &rng);
  o.links_max = 0;
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  EXPECT(s == NULL); // as context.h says, so that it can be freed
  o = net_options(&n, 0, &rng);
  o.blob_bytes = WEFT_SESSION_BLOB_BYTES + 1;
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  o = net_options(&n, 0, NULL);
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  const weft_rng none = {NULL, NULL};
  o = net_options(&n, 0, &none);
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  o = net_options(&n, 0, &rng);
  o.rekey_us = WEFT_SESSION_NEVER; // sums with it would overflow
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  o = net_options(&n, 0, &rng);
  o.silent_us = WEFT_SESSION_NEVER;
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  o = net_options(&n, 0, &rng);
  o.cipher = (weft_session_cipher)(WEFT_CIPHER_CHACHA + 1);
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  o = net_options(&n, 0, &rng);
  o.blob = NULL;
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  o = net_options(&n, 0, &rng);
  o.links_max = WEFT_SESSION_MAX_LINKS + 1; // key ids would not hold their slots
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  const uint8_t blob[WEFT_SESSION_BLOB_BYTES + 1] = {0};
  EXPECT_STATUS(weft_sessions_set_blob(n.node[0], blob, sizeof blob), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_sessions_set_blob(n.node[0], NULL, 1), WEFT_E_ARGUMENT);
  EXPECT_OK(weft_sessions_set_blob(n.node[0], NULL, 0));
  net_free(&n);
  net_new_open(&n);
  weft_seal seal;
  EXPECT_STATUS(weft_sessions_reserve(n.node[0], n.opened[0].link, SIZE_MAX, n.now_us, &seal),
                WEFT_E_STATE); // no counter would be used twice
  // What is sealed is neither empty nor longer than a datagram holds.
  uint8_t plain[WEFT_SESSION_PLAIN_BYTES + 1] = {0}, out[WEFT_SESSION_DATAGRAM_BYTES + 1];
  const weft_address from = net_address(0);
  weft_session_plain got;
  EXPECT_OK(weft_sessions_reserve(n.node[0], n.opened[0].link, 2, n.now_us, &seal));
  size_t bytes = weft_seal_datagram(&seal, 0, plain, 0, out);
  EXPECT_STATUS(weft_sessions_input(n.node[1], &from, out, bytes, n.now_us, &got), WEFT_PENDING);
  bytes = weft_seal_datagram(&seal, 1, plain, sizeof plain, out);
  EXPECT_STATUS(weft_sessions_input(n.node[1], &from, out, bytes, n.now_us, &got),
                WEFT_E_MALFORMED);
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session");
  TCase *tc = tcase_create("session");
  tcase_add_test(tc, opens_with_either_cipher);
  tcase_add_test(tc, survives_loss_of_each_message);
  tcase_add_test(tc, tampering_with_any_byte_is_refused);
  tcase_add_test(tc, replays_and_reordering);
  tcase_add_test(tc, handshake_replays_change_nothing);
  tcase_add_test(tc, other_identity_is_refused);
  tcase_add_test(tc, refused_and_absent_are_told);
  tcase_add_test(tc, a_session_that_ends_at_once_was_not_replaced);
  tcase_add_test(tc, who_is_here_is_admitted_once);
  tcase_add_test(tc, who_moves_is_found);
  tcase_add_test(tc, who_is_called_answers_from_there);
  tcase_add_test(tc, nobody_is_sent_what_others_asked_for);
  tcase_add_test(tc, keys_are_replaced_and_expire);
  tcase_add_test(tc, silence_loses_a_link);
  tcase_add_test(tc, a_restarted_neighbour_replaces_itself);
  tcase_add_test(tc, links_run_out);
  tcase_add_test(tc, failed_allocations);
  tcase_add_test(tc, wrong_arguments);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
