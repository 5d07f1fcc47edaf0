// SPDX-License-Identifier: Apache-2.0
// When a session does what only time makes it do (docs/session.md), if it is called at its
// deadlines only: keep-alives, lost links, keys that are given up.
#include <string.h>

#include "tests/peer/session_net.h"
#include "tests/support/test_main.h"

// Runs from deadline to deadline, without any datagram, until node `i` has lost a link.
static void run_alone(net *n, size_t i) {
  for (int steps = 0; n->losses[i] == 0 && steps < 1000; steps++) {
    const int64_t at_us = weft_sessions_deadline(n->node[i]);
    n->now_us = at_us > n->now_us ? at_us : n->now_us;
    net_turn(n);
    n->queued = n->sent_count = 0;
  }
}

// Runs until both ends have a link, and nothing is under way.
static void open_at(net *n, void (*adjust)(weft_sessions_options *options, size_t node)) {
  EXPECT_OK(net_new(n, NULL, adjust));
  net_open(n, 0, 1, NULL);
  while (n->opens[0] == 0 || n->queued > 0)
    net_run(n, 500);
  n->sent_count = 0;
}

START_TEST(keep_alives_fill_silence_alone) {
  net n;
  open_at(&n, NULL);
  net_send(&n, 1, n.opened[1].link, "abc", 3);
  n.sent_count = 0;
  for (int i = 0; i < 15; i++) { // node 0 sends, node 1 does not
    net_send(&n, 0, n.opened[0].link, "abc", 3);
    net_run(&n, SECOND - (i == 14));
  }
  for (size_t i = 0; i < n.sent_count; i++)
    EXPECT(n.sent[i].from == 0 && n.sent[i].bytes > WEFT_SESSION_OVERHEAD_BYTES);
  n.sent_count = 0;
  net_run(&n, 2);
  EXPECT(n.sent_count == 1 && n.sent[0].from == 1);
  EXPECT(n.sent[0].data[0] == DATA && n.sent[0].bytes == WEFT_SESSION_OVERHEAD_BYTES);
  net_free(&n);
}
END_TEST

START_TEST(silence_ends_a_link_in_time) {
  net n;
  open_at(&n, NULL);
  net_send(&n, 1, n.opened[1].link, "abc", 3);
  net_run(&n, 5000);
  const int64_t heard_us = n.now_us - 4000; // it took a millisecond
  net_run(&n, 7 * SECOND);
  net_send(&n, 0, n.opened[0].link, "abc", 3); // so that keep-alives go at other times
  n.queued = 0;
  run_alone(&n, 0);
  EXPECT(n.losses[0] == 1 && n.lost[0].reason == WEFT_SESSION_SILENT);
  EXPECT(n.now_us == heard_us + 30 * (int64_t)SECOND);
  net_free(&n);
}
END_TEST

// Old keys are given up at twice the age at which they are replaced.
START_TEST(old_keys_are_given_up_in_time) {
  for (size_t i = 0; i < 2; i++) {
    net n;
    open_at(&n, net_rekey_often);
    const int64_t from_us = n.now_us;
    run_alone(&n, i);
    EXPECT(n.losses[i] == 1 && n.lost[i].reason == WEFT_SESSION_EXPIRED);
    EXPECT(n.now_us <= from_us + 2 * REKEY_OFTEN_US &&
           n.now_us > from_us + 2 * REKEY_OFTEN_US - 10000);
    net_free(&n);
  }
}
END_TEST

// Replaced keys make room for others, however soon those are replaced themselves.
START_TEST(keys_are_replaced_any_number_of_times) {
  weft_session_statistics s;
  net n;
  open_at(&n, net_rekey_often);
  for (int i = 0; i < 600; i++) {
    n.sent_count = 0;
    net_run(&n, SECOND);
  }
  weft_sessions_get_statistics(n.node[0], &s);
  EXPECT(s.rekeyed > 150);
  net_expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

// An application is told of the end of a session only if it was told of its beginning; but the side
// that began it waits for news of it.
START_TEST(who_was_told_of_a_link_is_told_of_its_end) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  const size_t link = net_open(&n, 0, 1, NULL);
  const parcel confirm = net_take_next(&n, CONFIRM);
  EXPECT_STATUS(net_deliver(&n, &confirm), WEFT_PENDING);
  weft_sessions_close(n.node[0], link, n.now_us); // with the keys that CONFIRM announces
  net_turn(&n);
  EXPECT(n.opens[1] == 1 && n.losses[1] == 0);
  const parcel close = net_take_next(&n, CLOSE);
  EXPECT_STATUS(net_deliver(&n, &close), WEFT_PENDING);
  net_turn(&n);
  EXPECT(n.losses[1] == 1 && n.lost[1].reason == WEFT_SESSION_CLOSED);
  net_free(&n);

  EXPECT_OK(net_new(&n, NULL, NULL));
  const size_t again = net_open(&n, 0, 1, NULL);
  const parcel first = net_take_next(&n, CONFIRM);
  weft_sessions_close(n.node[0], again, n.now_us);
  const weft_address from = net_address(0);
  weft_session_plain plain;
  parcel last = {0};
  weft_address to;
  const uint8_t *data;
  EXPECT_OK(weft_sessions_output(n.node[0], &to, &data, &last.bytes));
  memcpy(last.data, data, last.bytes);
  parcel p = first;
  EXPECT_STATUS(weft_sessions_input(n.node[1], &from, p.data, p.bytes, n.now_us, &plain),
                WEFT_PENDING);
  EXPECT_STATUS(weft_sessions_input(n.node[1], &from, last.data, last.bytes, n.now_us, &plain),
                WEFT_PENDING);
  net_turn(&n);
  EXPECT(n.opens[1] == 0 && n.losses[1] == 0);
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session_times");
  TCase *tc = tcase_create("session_times");
  tcase_add_test(tc, keep_alives_fill_silence_alone);
  tcase_add_test(tc, silence_ends_a_link_in_time);
  tcase_add_test(tc, old_keys_are_given_up_in_time);
  tcase_add_test(tc, keys_are_replaced_any_number_of_times);
  tcase_add_test(tc, who_was_told_of_a_link_is_told_of_its_end);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
