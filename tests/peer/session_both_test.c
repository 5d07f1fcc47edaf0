// SPDX-License-Identifier: Apache-2.0
// Two nodes that call each other: both must keep the same session.
#include <string.h>

#include "tests/peer/session_net.h"
#include "tests/support/test_main.h"

START_TEST(both_sides_at_once_keep_one) {
  for (int64_t jitter = 0; jitter < 20; jitter++) {
    net n;
    EXPECT_OK(net_new(&n, NULL, NULL));
    n.jitter_us = jitter * 300;
    net_open(&n, 0, 1, NULL);
    net_run(&n, jitter * 200);
    net_open(&n, 1, 0, NULL);
    net_run(&n, 8 * SECOND);
    // What was lost was replaced, and both ends use the same session.
    EXPECT(n.opens[0] >= 1 && n.opens[1] >= 1);
    EXPECT(n.losses[0] == 0 || n.lost[0].reason == WEFT_SESSION_REPLACED ||
           n.lost[0].reason == WEFT_SESSION_CLOSED);
    size_t open = 0;
    for (size_t i = 0; i < 2; i++)
      for (size_t link = 0; link < 4; link++) {
        weft_session_peer peer;
        if (weft_sessions_peer(n.node[i], link, &peer) != WEFT_OK)
          continue;
        open++;
        n.opened[i].link = link;
      }
    EXPECT(open == 2);
    n.opens[0] = n.opens[1] = 1;
    n.losses[0] = n.losses[1] = 0;
    net_expect_open(&n, 0, 1);
    net_free(&n);
  }
}
END_TEST

// When both call at the same moment, so that neither can save its own handshake, the session that
// the smaller identity began stays on both sides.
START_TEST(the_smaller_identity_keeps_its_own) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  for (size_t i = 0; i < 2; i++)
    net_open(&n, i, 1 - i, n.identity[1 - i].public_key);
  net_run(&n, 2 * SECOND);
  const bool first = memcmp(n.identity[0].public_key, n.identity[1].public_key, 32) < 0;
  for (size_t i = 0; i < 2; i++)
    for (size_t link = 0; link < 4; link++) {
      weft_session_peer peer;
      if (weft_sessions_peer(n.node[i], link, &peer) == WEFT_OK)
        EXPECT(peer.initiated == (first == (i == 0)));
    }
  net_free(&n);
}
END_TEST

// Two nodes are behind NATs, and one's calls get through only once the other has called as well.
// Then one handshake is enough: the first caller gives up its own.
START_TEST(who_calls_back_spares_the_caller_a_handshake) {
  for (int64_t after = SECOND / 10; after < 2 * SECOND; after += SECOND / 10) {
    net n;
    weft_session_statistics first, second;
    EXPECT_OK(net_new(&n, NULL, NULL));
    net_open(&n, 0, 1, NULL);
    for (int64_t at = 0; at < after; at += 1000) {
      net_turn(&n);
      n.queued = 0; // nothing gets in
      n.now_us += 1000;
    }
    net_open(&n, 1, 0, NULL);
    net_run(&n, 6 * SECOND);
    EXPECT(n.opens[0] == 1 && n.opens[1] == 1 && n.losses[1] == 0);
    EXPECT(n.losses[0] == 1 && n.lost[0].reason == WEFT_SESSION_REPLACED);
    weft_sessions_get_statistics(n.node[0], &first);
    weft_sessions_get_statistics(n.node[1], &second);
    EXPECT(first.handshakes == 1 && second.handshakes == 0);
    n.losses[0] = 0;
    net_expect_open(&n, 0, 1);
    net_free(&n);
  }
}
END_TEST

// But it does not give up a call for another identity at that address.
START_TEST(who_is_called_goes_on_seeking_another) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  const size_t link = net_open(&n, 1, 0, n.identity[2].public_key);
  net_turn(&n);
  n.queued = 0;
  net_open(&n, 0, 1, NULL);
  net_run(&n, SECOND / 5);
  EXPECT(n.opens[0] == 1 && n.opens[1] == 1);
  net_run(&n, 8 * SECOND);
  EXPECT(n.losses[1] == 1 && n.lost[1].link == link);
  EXPECT(n.lost[1].reason == WEFT_SESSION_OTHER_IDENTITY);
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session_both");
  TCase *tc = tcase_create("session_both");
  tcase_add_test(tc, both_sides_at_once_keep_one);
  tcase_add_test(tc, the_smaller_identity_keeps_its_own);
  tcase_add_test(tc, who_calls_back_spares_the_caller_a_handshake);
  tcase_add_test(tc, who_is_called_goes_on_seeking_another);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
