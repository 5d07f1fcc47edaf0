// SPDX-License-Identifier: Apache-2.0
// A node repeats its announcement until its tracker answers: a lost announcement would otherwise
// hide the node from others for half a minute.
#include "tests/peer/stranger.h"
#include "tests/support/test_main.h"

enum {
  TRACKER = 3,
  STREAM_AT = 11
}; // docs/peer/tracker.md: a description's role; the last byte of a LIST

static size_t announces_in(weft_node *node, stranger *tracker, int64_t for_us) {
  tracker->announces = 0;
  turn_for(node, tracker, 1, for_us);
  return tracker->announces;
}

START_TEST(who_is_not_answered_announces_itself_again) {
  static const uint8_t describes[BLOB] = {1, TRACKER};
  uint8_t list[12] = {1, LIST, [STREAM_AT] = 4}; // an empty list
  stranger tracker;
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  stranger_new(&tracker, ctx, 0, describes);
  weft_node *source = node_new(ctx, "127.0.0.1:0", WEFT_NODE_SOURCE, &tracker.address, NULL);
  const size_t unheard = announces_in(source, &tracker, 5 * SECOND);
  EXPECT(unheard >= 2 && unheard <= 4); // every 2 s
  stranger_says(&tracker, list, sizeof list);
  EXPECT(announces_in(source, &tracker, 4 * SECOND) >= 1); // the answer is for another stream
  list[STREAM_AT] = 5;
  stranger_says(&tracker, list, sizeof list);
  turn_for(source, &tracker, 1, SECOND / 10); // one may be under way
  EXPECT(announces_in(source, &tracker, 4 * SECOND) == 0);
  weft_node_free(source);
  stranger_free(&tracker);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node announce");
  TCase *tc = tcase_create("node announce");
  tcase_add_test(tc, who_is_not_answered_announces_itself_again);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
