// SPDX-License-Identifier: Apache-2.0
// Others are told the new address of a neighbour whose NAT changes it or that has a port mapped at
// its router, and not the old one.
#include <string.h>

#include "tests/peer/stranger.h"
#include "tests/support/test_main.h"

enum { ENTRY = 18, BOTH = 2, MAPPED_BYTES = 22, PORT = 7 };

// Two strangers at a node: alternately, what one says makes the node tell the other of it.
typedef struct meeting {
  weft_ctx *ctx;
  weft_node *node;
  stranger x[BOTH];
  uint8_t question[WEFT_DATAGRAM_MAX];
  size_t bytes;
} meeting;

// Whether the last LIST or REFER names x, by its port: all are on one machine.
static bool names(const stranger *told, uint16_t port) {
  const bool list = told->told_bytes >= 2 && told->told[1] == LIST;
  const size_t entry = list ? ENTRY : ENTRY + 1; // an entry of REFER has its length first
  for (size_t at = list ? 12 : 4; at + entry <= told->told_bytes; at += entry) {
    const uint8_t *end = told->told + at + entry;
    if (end[-2] == port >> 8 && end[-1] == (port & 0xff))
      return true;
  }
  return false;
}

static void ask(meeting *m) {
  turn_for(m->node, m->x, BOTH, SECOND / 10);
  for (size_t i = 0; i < BOTH; i++)
    stranger_says(&m->x[i], m->question, m->bytes);
  turn_for(m->node, m->x, BOTH, SECOND / 10);
}

static void begin(meeting *m, weft_node_role role) {
  static const uint8_t joining[BLOB] = {1}, announce[12] = {1, ANNOUNCE, [11] = 5};
  weft_address address;
  *m = (meeting){.bytes = sizeof announce};
  memcpy(m->question, announce, sizeof announce);
  if (role == WEFT_NODE_SOURCE)
    m->bytes = weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_WANTED, NULL, 0, m->question);
  EXPECT_OK(weft_ctx_new(&m->ctx, NULL));
  m->node = node_new(m->ctx, "127.0.0.1:0", role, NULL, NULL);
  EXPECT_OK(weft_node_address(m->node, &address));
  for (size_t i = 0; i < BOTH; i++)
    stranger_calls(&m->x[i], m->ctx, i, joining, &address);
  turn_for(m->node, m->x, BOTH, SECOND / 5);
  for (size_t i = 0; i < BOTH && role == WEFT_NODE_SOURCE; i++)
    stranger_greets(&m->x[i]);
  ask(m);
  ask(m);
  EXPECT(names(&m->x[1], m->x[0].address.port));
}

static void end(meeting *m) {
  weft_node_free(m->node);
  for (size_t i = 0; i < BOTH; i++)
    stranger_free(&m->x[i]);
  weft_ctx_free(m->ctx);
}

static void expect_new_address(weft_node_role role) {
  meeting m;
  begin(&m, role);
  const uint16_t before = m.x[0].address.port;
  stranger_moves(&m.x[0]);
  EXPECT(m.x[0].address.port != before);
  ask(&m);
  ask(&m);
  EXPECT(names(&m.x[1], m.x[0].address.port) && !names(&m.x[1], before));
  end(&m);
}

START_TEST(a_tracker_lists_where_they_are) { expect_new_address(WEFT_NODE_TRACKER); }
END_TEST

START_TEST(a_neighbour_refers_to_where_they_are) { expect_new_address(WEFT_NODE_SOURCE); }
END_TEST

// Whether the last message is a REFER that names the source first.
static bool names_source(const stranger *told, const stranger *source) {
  const uint16_t port = source->address.port;
  return told->told_bytes > 4 + 1 + ENTRY && told->told[1] == WEFT_MESSAGE_REFER &&
         told->told[2] == WEFT_REFER_SOURCE && told->told[4] == ENTRY &&
         told->told[4 + ENTRY - 1] == port >> 8 && told->told[4 + ENTRY] == (port & 0xff);
}

// A viewer on demand tells its neighbours where the source is.
START_TEST(a_viewer_refers_to_the_source) {
  static const uint8_t joining[BLOB] = {1};
  stranger x[BOTH + 1];
  uint8_t blob[BLOB], key[32];
  weft_address address;
  meeting m = {0};
  EXPECT_OK(weft_ctx_new(&m.ctx, NULL));
  m.bytes = weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_WANTED, NULL, 0, m.question);
  stranger_key(0, key);
  stranger_describes(blob, WEFT_NODE_SOURCE, 1, key);
  blob[2] = WEFT_MODE_VOD;
  stranger_new(&x[0], m.ctx, 0, blob);
  m.node = node_telling(m.ctx, &x[0].address, NULL, NULL);
  turn_for(m.node, x, 1, SECOND / 5);
  EXPECT_OK(weft_node_address(m.node, &address));
  for (size_t i = 1; i <= BOTH; i++)
    stranger_calls(&x[i], m.ctx, i, joining, &address);
  turn_for(m.node, x, BOTH + 1, SECOND / 5);
  for (size_t i = 0; i <= BOTH; i++)
    stranger_greets(&x[i]);
  EXPECT(weft_node_neighbours(m.node) == BOTH + 1);
  for (int moved = 0; moved < 2; moved++) {
    bool named = false;
    for (int i = 0; i < 20 && !named; i++) { // the node asks questions, too, and sees x[0] move
      for (size_t k = 0; k < BOTH; k++)
        stranger_says(&x[k], m.question, m.bytes);
      turn_for(m.node, x, BOTH + 1, SECOND / 20);
      named = names_source(&x[1], &x[0]);
    }
    EXPECT(named);
    stranger_moves(&x[0]);
  }
  weft_node_free(m.node);
  for (size_t i = 0; i <= BOTH; i++)
    stranger_free(&x[i]);
  weft_ctx_free(m.ctx);
}
END_TEST

// --- Ports at routers

// docs/peer/tracker.md: version, kind, 0 (2), then an address.
static void mapped(const weft_address *at, uint16_t port, uint8_t out[MAPPED_BYTES]) {
  memcpy(out, (uint8_t[4]){1, MAPPED}, 4);
  memcpy(out + 4, at->ip, 16);
  out[20] = (uint8_t)(port >> 8);
  out[21] = (uint8_t)port;
}

static void say_mapped(stranger *x, uint16_t port) {
  uint8_t message[MAPPED_BYTES];
  mapped(&x->address, port, message);
  stranger_says(x, message, sizeof message);
}

// Expects others to be told the mapped port, also when the node's NAT changes its address
// meanwhile, until it says that the port is closed.
static void expect_mapped(weft_node_role role) {
  static const uint8_t closed[MAPPED_BYTES] = {1, MAPPED};
  meeting m;
  begin(&m, role);
  const uint16_t before = m.x[0].address.port;
  say_mapped(&m.x[0], PORT);
  ask(&m);
  EXPECT(names(&m.x[1], PORT) && !names(&m.x[1], before));
  stranger_moves(&m.x[0]);
  ask(&m);
  ask(&m);
  EXPECT(names(&m.x[1], PORT) && !names(&m.x[1], m.x[0].address.port));
  stranger_says(&m.x[0], closed, sizeof closed);
  ask(&m);
  EXPECT(names(&m.x[1], m.x[0].address.port) && !names(&m.x[1], PORT));
  end(&m);
}

START_TEST(a_tracker_lists_mapped_ports) { expect_mapped(WEFT_NODE_TRACKER); }
END_TEST

START_TEST(a_neighbour_refers_to_mapped_ports) { expect_mapped(WEFT_NODE_SOURCE); }
END_TEST

// Whether others are told where the first stranger is seen, after it sent these bytes.
static bool passed_over(meeting *m, const uint8_t *message, size_t bytes) {
  stranger_says(&m->x[0], message, bytes);
  ask(m);
  return names(&m->x[1], m->x[0].address.port) && !names(&m->x[1], PORT);
}

START_TEST(what_is_malformed_is_passed_over) {
  uint8_t message[MAPPED_BYTES + 1] = {0}, none[MAPPED_BYTES];
  meeting m;
  begin(&m, WEFT_NODE_SOURCE); // it answers each time
  mapped(&m.x[0].address, PORT, message);
  for (size_t bytes = 2; bytes <= sizeof message; bytes++) {
    if (bytes != MAPPED_BYTES)
      stranger_says(&m.x[0], message, bytes);
  }
  EXPECT(passed_over(&m, message, MAPPED_BYTES - 1));
  message[3] = 1;
  EXPECT(passed_over(&m, message, MAPPED_BYTES));
  message[3] = 0;
  message[0] = 2;
  EXPECT(passed_over(&m, message, MAPPED_BYTES));
  say_mapped(&m.x[0], PORT);
  ask(&m);
  EXPECT(names(&m.x[1], PORT));
  mapped(&m.x[0].address, 0, none); // no address has port 0; and that closes no port
  EXPECT(!passed_over(&m, none, sizeof none) && names(&m.x[1], PORT));
  end(&m);
}
END_TEST

// A node cannot have others dial a third party by mapping a port elsewhere or one that is taken.
START_TEST(nobody_is_called_for_another) {
  uint8_t elsewhere[MAPPED_BYTES];
  weft_address other;
  meeting m;
  begin(&m, WEFT_NODE_SOURCE);
  EXPECT(weft_address_parse("127.0.0.2:7", &other));
  mapped(&other, PORT, elsewhere);
  EXPECT(passed_over(&m, elsewhere, sizeof elsewhere));
  say_mapped(&m.x[0], m.x[1].address.port); // the other one has that port
  ask(&m);
  EXPECT(names(&m.x[1], m.x[0].address.port) && names(&m.x[0], m.x[1].address.port));
  say_mapped(&m.x[1], PORT);
  say_mapped(&m.x[0], PORT); // and that one
  ask(&m);
  EXPECT(names(&m.x[1], m.x[0].address.port) && names(&m.x[0], PORT));
  say_mapped(&m.x[0], m.x[1].address.port); // where others are no longer told of the other one
  ask(&m);
  EXPECT(names(&m.x[1], m.x[1].address.port) && names(&m.x[0], PORT));
  end(&m);
}
END_TEST

START_TEST(ports_do_not_change_with_every_word) {
  enum { AT_ONCE = 4, MANY = 500 };
  meeting m;
  begin(&m, WEFT_NODE_SOURCE);
  for (uint16_t i = 0; i < MANY; i++) {
    say_mapped(&m.x[0], (uint16_t)(PORT + i));
    turn(m.node);
  }
  ask(&m);
  EXPECT(names(&m.x[1], PORT + AT_ONCE - 1));
  end(&m);
}
END_TEST

// Messages of unknown kinds, as from another version, change nothing.
START_TEST(other_kinds_of_messages_change_nothing) {
  meeting m;
  begin(&m, WEFT_NODE_SOURCE);
  for (unsigned kind = MAPPED + 1; kind <= UINT8_MAX; kind++)
    stranger_says(&m.x[0], (uint8_t[MAPPED_BYTES]){1, (uint8_t)kind}, MAPPED_BYTES);
  EXPECT(passed_over(&m, (uint8_t[2]){1, UINT8_MAX}, 2));
  EXPECT(weft_node_neighbours(m.node) == BOTH);
  end(&m);
}
END_TEST

static bool was_told(stranger *x, const uint8_t message[MAPPED_BYTES]) {
  const bool told = x->told_bytes == MAPPED_BYTES && memcmp(x->told, message, MAPPED_BYTES) == 0;
  x->told_bytes = 0;
  return told;
}

// A node with a mapped port tells it to all it has sessions with, to newcomers, and to all of them
// from time to time; a node without one says nothing.
START_TEST(a_node_tells_its_port) {
  static const uint8_t joining[BLOB] = {1}, closed[MAPPED_BYTES] = {1, MAPPED};
  uint8_t message[MAPPED_BYTES];
  weft_address own, port;
  meeting m;
  begin(&m, WEFT_NODE_SOURCE);
  EXPECT_OK(weft_node_address(m.node, &own));
  EXPECT(weft_address_parse("5.6.7.8:7", &port));
  mapped(&port, PORT, message);
  weft_node_set_mapped(m.node, NULL);
  m.x[0].told_bytes = m.x[1].told_bytes = 0;
  turn_for(m.node, m.x, BOTH, SECOND + SECOND / 2);
  EXPECT(m.x[0].told_bytes == 0 && m.x[1].told_bytes == 0);
  weft_node_set_mapped(m.node, &port);
  turn_for(m.node, m.x, BOTH, SECOND / 5);
  EXPECT(was_told(&m.x[0], message) && was_told(&m.x[1], message));
  weft_node_set_mapped(m.node, &port); // that changes nothing
  turn_for(m.node, m.x, BOTH, SECOND / 5);
  EXPECT(m.x[0].told_bytes == 0);
  stranger_free(&m.x[1]);
  stranger_calls(&m.x[1], m.ctx, BOTH, joining, &own);
  turn_for(m.node, m.x, BOTH, SECOND / 2);
  EXPECT(was_told(&m.x[1], message));
  weft_node_set_mapped(m.node, NULL);
  turn_for(m.node, m.x, BOTH, SECOND / 5);
  EXPECT(was_told(&m.x[0], closed) && was_told(&m.x[1], closed));
  turn_for(m.node, m.x, BOTH, SECOND + SECOND / 2);
  EXPECT(m.x[0].told_bytes == 0);
  stranger_says(&m.x[0], m.question, 1); // a session that is silent ends after 30 s
  turn(m.node);
  EXPECT_OK(weft_node_turn(m.node, now_us() + 29 * SECOND));
  stranger_turn(&m.x[0]);
  EXPECT(was_told(&m.x[0], closed));
  end(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("node moves");
  TCase *tc = tcase_create("node moves");
  tcase_add_test(tc, a_tracker_lists_where_they_are);
  tcase_add_test(tc, a_neighbour_refers_to_where_they_are);
  tcase_add_test(tc, a_viewer_refers_to_the_source);
  tcase_add_test(tc, a_tracker_lists_mapped_ports);
  tcase_add_test(tc, a_neighbour_refers_to_mapped_ports);
  tcase_add_test(tc, what_is_malformed_is_passed_over);
  tcase_add_test(tc, nobody_is_called_for_another);
  tcase_add_test(tc, ports_do_not_change_with_every_word);
  tcase_add_test(tc, other_kinds_of_messages_change_nothing);
  tcase_add_test(tc, a_node_tells_its_port);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
