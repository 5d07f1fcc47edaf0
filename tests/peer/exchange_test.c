// SPDX-License-Identifier: Apache-2.0
// Where a viewer finds neighbours again when all that it had, and all that it knew of, are gone.
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 160, INPUT_BYTES = SEGMENTS * SEGMENT };
enum { STAY = 12, GO = 4, GONE_FIRST = STAY + 1, VIEWER = GONE_FIRST + 2 * GO };
static const int64_t SECOND = 1000000;
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 21);
  test_rng_fill(&rng, input, sizeof input);
}

// Makes the source, STAY viewers that stay, and 2 GO that will go.
static swarm *crowd(uint64_t salt) {
  swarm *s = swarm_new_live(input, sizeof input, salt);
  s->options.lag_us = 2 * SECOND;
  s->options.neighbours_max = 12;
  s->options.neighbours_target = GO;
  s->options.addresses_max = 32;
  s->options.timers.exchange_us = SECOND;
  s->options.timers.keep_us = SECOND / 2;
  s->options.timers.silent_us = 2 * SECOND;
  swarm_start(s, NULL);
  for (size_t i = 1; i < VIEWER; i++) {
    swarm_add(s, NULL);
    for (size_t d = 1; d <= 3 && d <= i; d++)
      swarm_connect(s, i, d == 1 && i <= 4 ? 0 : i - d);
  }
  return s;
}

static void tell(swarm *s, size_t node, size_t first, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const weft_peer_address address = swarm_address(first + i);
    weft_engine_add_address(s->node[node].engine, &address);
  }
}

static void kill_all(swarm *s, size_t first, size_t count, bool polite) {
  for (size_t i = 0; i < count; i++)
    swarm_kill(s, first + i, polite);
}

// The viewer's neighbours go all at once; its buffer lasts for 2 s. It also knows `others` more
// addresses, of peers that are gone as well.
static void expect_recovery(bool polite, size_t others) {
  swarm *s = crowd(1 + 2 * others + polite);
  swarm_run(s, 3 * SECOND);
  EXPECT(swarm_add(s, NULL) == VIEWER);
  tell(s, VIEWER, GONE_FIRST, GO); // it dials them
  swarm_run(s, 8 * SECOND);
  tell(s, VIEWER, GONE_FIRST + GO, others);
  kill_all(s, GONE_FIRST, 2 * GO, polite);
  swarm_run(s, SEGMENTS * SWARM_SEGMENT_US + 5 * SECOND);
  const weft_engine_statistics x = swarm_statistics(s, VIEWER);
  EXPECT(!s->node[VIEWER].wrong && x.due > SEGMENTS / 2);
  EXPECT(x.in_time == x.due);
  swarm_free(s);
}

START_TEST(a_viewer_outlives_its_neighbours) { expect_recovery(_i, 0); }
END_TEST

START_TEST(a_viewer_outlives_all_that_it_knows_of) { expect_recovery(_i, GO); }
END_TEST

// Whether node 0 names the address to a node that it has no room for.
static bool tells(swarm *s, const weft_peer_address *address) {
  uint8_t refusal[WEFT_DATAGRAM_MAX];
  weft_message m;
  const size_t bytes = weft_engine_refusal(s->node[0].engine, NULL, refusal);
  EXPECT_OK(weft_message_parse(refusal, bytes, 0, 16, 64, &m)); // it names no stream
  const uint8_t *at = m.as.refer.addresses;
  bool told = false;
  for (size_t i = 0; i < m.as.refer.count; i++) {
    const weft_peer_address one = weft_refer_next(&at);
    told = told ||
           (one.length == address->length && memcmp(one.bytes, address->bytes, one.length) == 0);
  }
  return told;
}

// Returns how many addresses the node dials from now until then.
static size_t dialled_until(swarm *s, size_t index, int64_t until_us) {
  weft_event event;
  size_t count = 0;
  for (; s->now_us < until_us; s->now_us += SECOND / 10) {
    weft_engine_tick(s->node[index].engine, s->now_us);
    while (weft_engine_event(s->node[index].engine, &event))
      count += event.kind == WEFT_EVENT_DIAL;
  }
  return count;
}

// Dialled addresses count as neighbours to come for 0.3 s, and for a second while half of the
// wanted neighbours are present; after that, others are dialled.
START_TEST(who_is_dialled_is_waited_for) {
  swarm *s = crowd(9);
  s->options.timers.exchange_us = SECOND / 10;
  EXPECT(swarm_add(s, NULL) == VIEWER);
  weft_engine *e = s->node[VIEWER].engine;
  const int64_t from_us = s->now_us;
  size_t number;
  tell(s, VIEWER, 1000, 3 * GO);
  EXPECT(dialled_until(s, VIEWER, from_us + 3 * SECOND / 10) == GO);
  EXPECT(dialled_until(s, VIEWER, from_us + 6 * SECOND / 10) == GO);
  for (size_t i = 0; i < GO - 1; i++) { // of the second group
    const weft_neighbour_options options = {.address = swarm_address(1000 + GO + i)};
    EXPECT_OK(weft_engine_add_neighbour(e, &options, s->now_us, &number));
  }
  EXPECT(dialled_until(s, VIEWER, from_us + SECOND) == 0); // the fourth may still answer
  EXPECT(dialled_until(s, VIEWER, from_us + 2 * SECOND) == 1);
  swarm_free(s);
}
END_TEST

// Whether the node dials this address within 20 s.
static bool dials(swarm *s, size_t index, const weft_peer_address *address) {
  weft_event event;
  bool dialled = false;
  for (size_t i = 0; i < 40; i++, s->now_us += SECOND / 2) {
    weft_engine_tick(s->node[index].engine, s->now_us);
    while (weft_engine_event(s->node[index].engine, &event))
      dialled = dialled || (event.kind == WEFT_EVENT_DIAL && event.address.length &&
                            memcmp(event.address.bytes, address->bytes, address->length) == 0);
  }
  return dialled;
}

// Others are told the new address of a neighbour whose NAT changes it, and do not dial the old one.
START_TEST(who_moves_is_told_of_at_the_new_address) {
  swarm *s = crowd(7);
  swarm_run(s, 3 * SECOND);
  const weft_peer_address before = swarm_address(1), after = swarm_address(1000);
  const weft_peer_address none = {.length = WEFT_PEER_ADDRESS_BYTES + 1};
  weft_engine *source = s->node[0].engine;
  size_t number = 0;
  while (!s->node[0].links[number].used || s->node[0].links[number].node != 1)
    number++;
  EXPECT(tells(s, &before) && !tells(s, &after));
  EXPECT_OK(weft_engine_move_neighbour(source, number, &after));
  EXPECT(!tells(s, &before) && tells(s, &after));
  EXPECT_STATUS(weft_engine_move_neighbour(source, number, &none), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_engine_move_neighbour(source, 11, &after), WEFT_E_STATE);
  EXPECT_STATUS(weft_engine_move_neighbour(source, SIZE_MAX, &after), WEFT_E_STATE);
  swarm_free(s);
}
END_TEST

START_TEST(who_moved_is_not_called_where_he_was) {
  const weft_peer_address places[] = {swarm_address(40), swarm_address(41)};
  for (size_t moves = 0; moves < 2; moves++) {
    swarm *s = crowd(8);
    EXPECT(swarm_add(s, NULL) == VIEWER);
    weft_engine *e = s->node[VIEWER].engine;
    const weft_neighbour_options options = {.address = places[0], .dialled = true};
    size_t number;
    weft_engine_add_address(e, &places[0]);
    EXPECT(dials(s, VIEWER, &places[0]));
    EXPECT_OK(weft_engine_add_neighbour(e, &options, s->now_us, &number));
    if (moves)
      EXPECT_OK(weft_engine_move_neighbour(e, number, &places[1]));
    EXPECT_OK(weft_engine_remove_neighbour(e, number));
    EXPECT(dials(s, VIEWER, &places[0]) == !moves);
    swarm_free(s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("exchange");
  TCase *t = tcase_create("exchange");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_loop_test(t, a_viewer_outlives_its_neighbours, 0, 2);
  tcase_add_loop_test(t, a_viewer_outlives_all_that_it_knows_of, 0, 2);
  tcase_add_test(t, who_is_dialled_is_waited_for);
  tcase_add_test(t, who_moves_is_told_of_at_the_new_address);
  tcase_add_test(t, who_moved_is_not_called_where_he_was);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
