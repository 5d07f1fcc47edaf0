// SPDX-License-Identifier: Apache-2.0
// A node's neighbour whose NAT gives it another address: others are told that one, and not the one
// that it had.
#include <string.h>

#include "tests/peer/stranger.h"
#include "tests/support/test_main.h"

enum { ENTRY = 18, BOTH = 2 };

// Whether the last LIST or REFER names where x is, by its port: all are on one machine.
static bool names(const stranger *told, uint16_t port) {
  const bool list = told->told_bytes >= 2 && told->told[1] == LIST;
  const size_t entry = list ? ENTRY : ENTRY + 1; // a REFER's has its length first
  for (size_t at = list ? 12 : 4; at + entry <= told->told_bytes; at += entry) {
    const uint8_t *end = told->told + at + entry;
    if (end[-2] == port >> 8 && end[-1] == (port & 0xff))
      return true;
  }
  return false;
}

static void say_both(weft_node *node, stranger *x, const uint8_t *message, size_t bytes) {
  turn_for(node, x, BOTH, SECOND / 10);
  for (size_t i = 0; i < BOTH; i++)
    stranger_says(&x[i], message, bytes);
  turn_for(node, x, BOTH, SECOND / 10);
}

// Two strangers at a node: what each says, in turn, has the node tell the other of it.
static void expect_new_address(weft_node_role role, const uint8_t *question, size_t bytes) {
  static const uint8_t joining[BLOB] = {1};
  stranger x[BOTH];
  weft_ctx *ctx;
  weft_address address;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_node *node = node_new(ctx, "127.0.0.1:0", role, NULL, NULL);
  EXPECT_OK(weft_node_address(node, &address));
  for (size_t i = 0; i < BOTH; i++)
    stranger_calls(&x[i], ctx, i, joining, &address);
  turn_for(node, x, BOTH, SECOND / 5);
  for (size_t i = 0; i < BOTH && role == WEFT_NODE_SOURCE; i++)
    stranger_greets(&x[i]);
  say_both(node, x, question, bytes);
  const uint16_t before = x[0].address.port;
  say_both(node, x, question, bytes);
  EXPECT(names(&x[1], before));
  stranger_moves(&x[0]);
  EXPECT(x[0].address.port != before);
  say_both(node, x, question, bytes);
  say_both(node, x, question, bytes);
  EXPECT(names(&x[1], x[0].address.port) && !names(&x[1], before));
  weft_node_free(node);
  for (size_t i = 0; i < BOTH; i++)
    stranger_free(&x[i]);
  weft_ctx_free(ctx);
}

START_TEST(a_tracker_lists_where_they_are) {
  static const uint8_t announce[12] = {1, ANNOUNCE, [11] = 5};
  expect_new_address(WEFT_NODE_TRACKER, announce, sizeof announce);
}
END_TEST

START_TEST(a_neighbour_refers_to_where_they_are) {
  uint8_t asks[WEFT_DATAGRAM_MAX];
  expect_new_address(WEFT_NODE_SOURCE, asks,
                     weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_WANTED, NULL, 0, asks));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node moves");
  TCase *tc = tcase_create("node moves");
  tcase_add_test(tc, a_tracker_lists_where_they_are);
  tcase_add_test(tc, a_neighbour_refers_to_where_they_are);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
