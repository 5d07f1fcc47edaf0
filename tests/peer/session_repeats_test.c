// SPDX-License-Identifier: Apache-2.0
// How a session treats datagrams that come again, late, or after many lost ones: anyone who
// captured a datagram can send it as often as they like.
#include <string.h>

#include "tests/peer/session_net.h"
#include "tests/support/test_main.h"

enum { AGAIN = 20 };

static size_t sent_of(const net *n, uint8_t type) {
  size_t count = 0;
  for (size_t i = 0; i < n->sent_count; i++)
    count += n->sent[i].data[0] == type;
  return count;
}

// Returns the newest datagram of a type.
static parcel newest(const net *n, uint8_t type) {
  size_t at = n->sent_count;
  while (at > 0 && n->sent[at - 1].data[0] != type)
    at--;
  EXPECT(at > 0);
  return n->sent[at - 1];
}

// Runs until that many datagrams of a type were sent, and takes out of the net what is under way.
static parcel until_sent(net *n, uint8_t type, size_t count) {
  for (int steps = 0; sent_of(n, type) < count && steps < 200; steps++)
    net_run(n, 500);
  n->queued = 0;
  return newest(n, type);
}

// A node follows a RETRY once, so that two nodes do not exchange them for ever; only the timer
// repeats an INIT.
START_TEST(a_retry_is_followed_once) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  const parcel retry = until_sent(&n, RETRY, 1);
  EXPECT_STATUS(net_deliver(&n, &retry), WEFT_PENDING);
  for (int i = 0; i < AGAIN; i++)
    EXPECT_STATUS(net_deliver(&n, &retry), WEFT_E_STATE);
  net_turn(&n);
  EXPECT(sent_of(&n, INIT) == 2);
  net_free(&n);
}
END_TEST

// An INIT costs a signature and a Diffie-Hellman once; a repeated one gets the same answer.
START_TEST(an_init_is_worked_on_once) {
  net n;
  weft_session_statistics s;
  EXPECT_OK(net_new(&n, NULL, NULL));
  net_open(&n, 0, 1, NULL);
  const parcel init = until_sent(&n, INIT, 2);
  for (int i = 0; i < AGAIN; i++)
    EXPECT_STATUS(net_deliver(&n, &init), WEFT_PENDING);
  net_turn(&n);
  weft_sessions_get_statistics(n.node[1], &s);
  EXPECT(s.handshakes == 1 && sent_of(&n, ACCEPT) == AGAIN);
  const parcel last = newest(&n, ACCEPT);
  for (size_t i = 0; i < n.sent_count; i++)
    EXPECT(n.sent[i].data[0] != ACCEPT || memcmp(n.sent[i].data, last.data, last.bytes) == 0);
  net_free(&n);
}
END_TEST

// The confirmation that the keys are known is sent again if it was lost, but not as often as
// requested.
START_TEST(a_confirm_is_answered_now_and_then) {
  net n;
  net_new_open(&n);
  const parcel confirm = newest(&n, CONFIRM);
  n.sent_count = 0;
  for (int i = 0; i < AGAIN; i++)
    EXPECT_STATUS(net_deliver(&n, &confirm), WEFT_PENDING);
  net_turn(&n);
  EXPECT(n.sent_count == 1 && sent_of(&n, DATA) == 1);
  net_expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

START_TEST(replaced_keys_open_what_is_late_and_no_more) {
  net n;
  weft_session_statistics s;
  parcel late[2];
  net_new_open(&n);
  for (size_t i = 0; i < 2; i++) {
    net_send(&n, 0, n.opened[0].link, "late", 4);
    late[i] = newest(&n, DATA);
  }
  n.queued = 0;
  do {
    n.sent_count = 0;
    net_run(&n, SECOND);
    weft_sessions_get_statistics(n.node[1], &s);
  } while (s.rekeyed == 0 && n.now_us < 200 * (int64_t)SECOND);
  EXPECT(s.rekeyed == 1);
  net_run(&n, 8 * SECOND);
  EXPECT_OK(net_deliver(&n, &late[0]));
  net_run(&n, 4 * SECOND); // more than ten seconds later
  EXPECT_STATUS(net_deliver(&n, &late[1]), WEFT_E_FOREIGN);
  net_expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

// Datagrams whose counters were skipped may come late: old counters share their places in the
// window, but those datagrams were never seen.
START_TEST(what_was_skipped_may_come_late) {
  enum { FULL = 3000, GAP = 700 };
  static parcel skipped[GAP];
  net n;
  net_new_open(&n);
  for (int i = 0; i < FULL + GAP; i++) {
    n.sent_count = n.queued = 0;
    net_send(&n, 0, n.opened[0].link, "abc", 3);
    if (i < FULL)
      EXPECT_OK(net_deliver(&n, &n.sent[0]));
    else
      skipped[i - FULL] = n.sent[0];
  }
  for (size_t i = GAP; i-- > 0;) // the newest first
    EXPECT_OK(net_deliver(&n, &skipped[i]));
  for (size_t i = 0; i < GAP; i++)
    EXPECT_STATUS(net_deliver(&n, &skipped[i]), WEFT_DEPENDENT);
  n.queued = 0;
  net_free(&n);
}
END_TEST

// The window has 2048 counters: the oldest of them may still come, the one before it may not.
START_TEST(the_window_ends_where_it_says) {
  enum { WINDOW = 2048 };
  static parcel sent[WINDOW + 1];
  net n;
  net_new_open(&n);
  for (size_t i = 0; i <= WINDOW; i++) {
    n.sent_count = n.queued = 0;
    net_send(&n, 0, n.opened[0].link, "abc", 3);
    sent[i] = n.sent[0];
  }
  n.queued = 0;
  EXPECT_OK(net_deliver(&n, &sent[WINDOW]));
  EXPECT_STATUS(net_deliver(&n, &sent[0]), WEFT_DEPENDENT);
  EXPECT_OK(net_deliver(&n, &sent[1]));
  net_free(&n);
}
END_TEST

// Seals a datagram of node 0 with a counter of its choice.
static parcel sealed_with(const net *n, uint64_t counter) {
  weft_seal seal;
  parcel p = {.from = 0, .to = 1};
  EXPECT_OK(weft_sessions_reserve(n->node[0], n->opened[0].link, 1, n->now_us, &seal));
  seal.counter = counter;
  p.bytes = weft_seal_datagram(&seal, 0, (const uint8_t *)"abc", 3, p.data);
  return p;
}

// A node with a session may choose its counters: a leap costs no more than a step, and no counter
// is beyond the last.
START_TEST(counters_leap_and_end) {
  const uint64_t last = (UINT64_C(1) << 40) - 1;
  net n;
  net_new_open(&n);
  const parcel usual = sealed_with(&n, 1000), leap = sealed_with(&n, last);
  const parcel past = sealed_with(&n, last + 1), greatest = sealed_with(&n, UINT64_MAX);
  EXPECT_STATUS(net_deliver(&n, &past), WEFT_E_FOREIGN);
  EXPECT_STATUS(net_deliver(&n, &greatest), WEFT_E_FOREIGN);
  EXPECT_OK(net_deliver(&n, &usual));
  EXPECT_OK(net_deliver(&n, &leap));
  EXPECT_STATUS(net_deliver(&n, &leap), WEFT_DEPENDENT);
  EXPECT_STATUS(net_deliver(&n, &usual), WEFT_DEPENDENT);
  net_free(&n);
}
END_TEST

// A truncated datagram, or one longer than any may be, is refused whatever keys it names; refusals
// are counted by reason.
START_TEST(no_length_but_its_own_will_do) {
  weft_session_statistics before, after;
  net n;
  net_new_open(&n);
  n.sent_count = 0;
  net_send(&n, 0, n.opened[0].link, "abc", 3);
  net_send(&n, 0, n.opened[0].link, "", 0);
  n.queued = 0;
  const parcel whole = n.sent[0], empty = n.sent[1];
  const size_t least = WEFT_SESSION_OVERHEAD_BYTES;
  weft_sessions_get_statistics(n.node[1], &before);
  for (size_t bytes = 0; bytes < whole.bytes; bytes++) {
    parcel p = whole;
    p.bytes = bytes;
    EXPECT_STATUS(net_deliver(&n, &p), bytes < least ? WEFT_E_MALFORMED : WEFT_E_FOREIGN);
  }
  uint8_t longer[WEFT_SESSION_DATAGRAM_BYTES + 1] = {0};
  const weft_address from = net_address(0);
  weft_session_plain plain;
  memcpy(longer, whole.data, whole.bytes);
  EXPECT_STATUS(weft_sessions_input(n.node[1], &from, longer, sizeof longer, n.now_us, &plain),
                WEFT_E_MALFORMED);
  EXPECT_OK(net_deliver(&n, &whole));
  EXPECT_STATUS(net_deliver(&n, &empty), WEFT_PENDING); // for this layer alone
  EXPECT_STATUS(net_deliver(&n, &empty), WEFT_DEPENDENT);
  weft_sessions_get_statistics(n.node[1], &after);
  EXPECT(after.malformed - before.malformed == least + 1);
  EXPECT(after.foreign - before.foreign == whole.bytes - least);
  EXPECT(after.opened_datagrams - before.opened_datagrams == 2);
  EXPECT(after.replayed - before.replayed == 1);
  weft_seal seal;
  weft_sessions_get_statistics(n.node[0], &before);
  EXPECT_OK(weft_sessions_reserve(n.node[0], n.opened[0].link, 5, n.now_us, &seal));
  weft_sessions_get_statistics(n.node[0], &after);
  EXPECT(after.sealed_datagrams - before.sealed_datagrams == 5);
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session_repeats");
  TCase *tc = tcase_create("session_repeats");
  tcase_add_test(tc, a_retry_is_followed_once);
  tcase_add_test(tc, an_init_is_worked_on_once);
  tcase_add_test(tc, a_confirm_is_answered_now_and_then);
  tcase_add_test(tc, replaced_keys_open_what_is_late_and_no_more);
  tcase_add_test(tc, what_was_skipped_may_come_late);
  tcase_add_test(tc, the_window_ends_where_it_says);
  tcase_add_test(tc, counters_leap_and_end);
  tcase_add_test(tc, no_length_but_its_own_will_do);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
