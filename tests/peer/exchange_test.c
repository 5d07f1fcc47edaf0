// SPDX-License-Identifier: Apache-2.0
// Where a viewer finds neighbours again when all that it had, and all that it knew of, are gone.
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

// The source, STAY viewers who stay, and 2 GO who will go.
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

// The viewer's neighbours go all at once; its buffer lasts for 2 s. `others` more addresses are
// known to it, of peers that are gone as well.
static void expect_recovery(bool polite, size_t others) {
  swarm *s = crowd(1 + 2 * others + polite);
  swarm_run(s, 3 * SECOND);
  EXPECT(swarm_add(s, NULL) == VIEWER);
  tell(s, VIEWER, GONE_FIRST, GO); // it calls them
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

int main(void) {
  Suite *suite = suite_create("exchange");
  TCase *t = tcase_create("exchange");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_loop_test(t, a_viewer_outlives_its_neighbours, 0, 2);
  tcase_add_loop_test(t, a_viewer_outlives_all_that_it_knows_of, 0, 2);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
