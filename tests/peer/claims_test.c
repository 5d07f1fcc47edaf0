// SPDX-License-Identifier: Apache-2.0
// Neighbours that claim to lack everything, for ever: no fetch or playback waits for them without
// limit, and the nodes that wait meanwhile lose nothing.
#include "peer/engine/messages.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 200, INPUT_BYTES = SEGMENTS * SEGMENT - 300, HONEST = 6 };
static const int64_t SECOND = 1000000, PATIENCE = 5000000;
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 41);
  test_rng_fill(&rng, input, sizeof input);
}

// Each uplink carries eight times the rate at which the stream plays. The source is node 0.
static swarm *fetchers(uint64_t salt, weft_engine_mode mode, int64_t patience_us) {
  const bool loads = mode != WEFT_MODE_BULK;
  const weft_engine_self source = {.upload_bits_per_s = 1000000,
                                   .stream_bytes = loads ? INPUT_BYTES : 0};
  swarm *s = swarm_new(input, sizeof input, salt);
  s->fate = swarm_lossy;
  s->loss_percent = 2;
  s->options.mode = mode;
  s->options.rate_bits_per_s = loads ? (uint64_t)8 * SEGMENT * 1000000 / SWARM_SEGMENT_US : 0;
  s->options.startup_us = SECOND;
  s->options.neighbours_max = 24;
  s->options.patience_us = patience_us;
  swarm_start(s, &source);
  for (size_t i = 1; i <= HONEST; i++)
    swarm_add(s, &(weft_engine_self){.upload_bits_per_s = 1000000});
  return s;
}

static void add_liars(swarm *s, size_t count, size_t first_neighbour) {
  for (size_t i = 0; i < count; i++) {
    const size_t liar = swarm_add(s, NULL);
    s->node[liar].claim = SWARM_CLAIMS_NOTHING;
    s->node[liar].free_rider = true;
    for (size_t k = first_neighbour; k <= HONEST; k++)
      swarm_connect(s, liar, k);
  }
}

static bool all_have_all(const swarm *s) {
  for (size_t i = 1; i <= HONEST; i++)
    if (s->node[i].read != SEGMENTS || s->node[i].wrong)
      return false;
  return true;
}

static void connect_all(swarm *s) {
  for (size_t i = 1; i <= HONEST; i++)
    for (size_t k = 0; k < i; k++)
      swarm_connect(s, i, k);
}

static void run_and_expect_all(swarm *s, int64_t until_us) {
  swarm_run(s, until_us);
  EXPECT(all_have_all(s));
  swarm_free(s);
}

// Liars that claim to lack everything delay a fetch by its patience only; without them it takes 5
// to 7 s.
START_TEST(a_fetch_waits_its_patience_and_no_more) {
  for (size_t liars = 1; liars <= 10; liars += 9)
    for (size_t first = 0; first < 2; first++) { // liars at the source, too, or only at fetchers
      swarm *s = fetchers(1, WEFT_MODE_BULK, PATIENCE);
      connect_all(s);
      add_liars(s, liars, first);
      run_and_expect_all(s, 6 * PATIENCE);
    }
}
END_TEST

// The nodes on the path to the liar wait for each other, and the source for the first of them: only
// the liar is given up.
START_TEST(who_waits_for_a_liar_is_waited_for) {
  swarm *s = fetchers(2, WEFT_MODE_BULK, PATIENCE);
  for (size_t i = 1; i <= HONEST; i++)
    swarm_connect(s, i, i - 1);
  add_liars(s, 1, HONEST);
  run_and_expect_all(s, 12 * PATIENCE);
}
END_TEST

// A liar that opens a new session every two seconds gets no more time.
START_TEST(who_comes_again_gets_no_more_time) {
  swarm *s = fetchers(3, WEFT_MODE_BULK, PATIENCE);
  connect_all(s);
  for (int64_t now_us = 0; now_us < 8 * PATIENCE; now_us += 2 * SECOND) {
    add_liars(s, 1, 1);
    swarm_run(s, now_us + 2 * SECOND);
    swarm_kill(s, s->nodes - 1, true);
  }
  EXPECT(all_have_all(s));
  swarm_free(s);
}
END_TEST

// Without a limit, a fetch waits for its slowest node, here one that takes nothing for the first
// minute.
START_TEST(without_a_limit_all_wait) {
  swarm *s = fetchers(4, WEFT_MODE_BULK, 0);
  connect_all(s);
  add_liars(s, 1, 1);
  const size_t late = s->nodes - 1;
  swarm_run(s, 60 * SECOND);
  EXPECT(!all_have_all(s));
  s->node[late].claim = SWARM_CLAIMS_TRUTH;
  swarm_run(s, 90 * SECOND);
  EXPECT(all_have_all(s) && s->node[late].read == SEGMENTS);
  swarm_free(s);
}
END_TEST

// A node that is dialled and says nothing gets no more time while its session lasts.
START_TEST(who_says_nothing_gets_no_more_time) {
  swarm *s = fetchers(6, WEFT_MODE_BULK, SECOND);
  s->options.timers.silent_us = 10 * PATIENCE;
  connect_all(s);
  for (size_t i = 0; i < HONEST; i++) {
    size_t neighbour;
    EXPECT_OK(weft_engine_add_neighbour(s->node[1 + i].engine, NULL, 0, &neighbour));
  }
  run_and_expect_all(s, 4 * PATIENCE);
}
END_TEST

// What is lost from `lost_from_us` until `lost_until_us`: of this kind, or all.
static int64_t lost_from_us, lost_until_us;
static uint8_t lost_kind;

static fixture_fate some_lost(swarm *s, size_t from, size_t to) {
  const bool lost = s->now_us >= lost_from_us && s->now_us < lost_until_us &&
                    (!lost_kind || s->kind == lost_kind);
  return lost ? (fixture_fate){.copies = 0} : swarm_lossy(s, from, to);
}

static swarm *impatient(uint64_t salt) {
  swarm *s = fetchers(salt, WEFT_MODE_BULK, SECOND / 10);
  lost_from_us = lost_until_us = lost_kind = 0;
  s->fate = some_lost;
  swarm_connect(s, 1, 0);
  return s;
}

// A patience that is shorter than what some repeated maps take gives up nobody who sends maps: the
// source would drop what the peer lacks.
START_TEST(patience_outlasts_some_maps) {
  swarm *s = impatient(7);
  while (s->node[1].read == 0 && s->now_us < 4 * SECOND)
    swarm_run(s, s->now_us + SECOND / 100);
  EXPECT(s->node[1].read > 0 && s->node[1].read < SEGMENTS);
  lost_from_us = s->now_us;
  lost_until_us = s->now_us + 5 * SECOND / 2;
  swarm_run(s, s->now_us + 4 * PATIENCE);
  EXPECT(s->node[1].read == SEGMENTS && !s->node[1].wrong);
  swarm_free(s);
}
END_TEST

// Nor one whose first words are lost, which are repeated.
START_TEST(patience_outlasts_lost_first_words) {
  static const struct {
    uint8_t kind;
    int64_t until_us;
  } lost[] = {{WEFT_MESSAGE_HELLO, 500000}, {WEFT_MESSAGE_MAP, 2500000}};
  for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
    swarm *s = impatient(8 + i);
    lost_kind = lost[i].kind;
    lost_until_us = lost[i].until_us;
    swarm_run(s, 4 * PATIENCE);
    EXPECT(s->node[1].read == SEGMENTS && !s->node[1].wrong);
    swarm_free(s);
  }
}
END_TEST

// An on-demand source keeps a loaded segment for those that lack it only until others need the
// place: 20 s of stream took more than two minutes.
START_TEST(what_is_loaded_is_not_kept_for_liars) {
  for (size_t liars = 1; liars <= 10; liars += 9) {
    swarm *s = fetchers(5, WEFT_MODE_VOD, 0);
    connect_all(s);
    add_liars(s, liars, 0);
    run_and_expect_all(s, 30 * SECOND);
  }
}
END_TEST

// A node that begins at the beginning after that was dropped cannot get its first segments from
// anybody; what is left of its window is kept for it only as long as for others.
START_TEST(who_lacks_what_was_dropped_gets_no_more_time) {
  swarm *s = fetchers(6, WEFT_MODE_BULK, PATIENCE);
  connect_all(s);
  while (s->fed < 20 * SEGMENT && s->now_us < SECOND * 10)
    swarm_run(s, s->now_us + 5000);
  const size_t late = swarm_add(s, NULL);
  for (size_t i = 0; i <= HONEST; i++)
    swarm_connect(s, late, i);
  run_and_expect_all(s, 6 * PATIENCE);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("claims");
  TCase *t = tcase_create("claims");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, a_fetch_waits_its_patience_and_no_more);
  tcase_add_test(t, who_waits_for_a_liar_is_waited_for);
  tcase_add_test(t, who_comes_again_gets_no_more_time);
  tcase_add_test(t, who_says_nothing_gets_no_more_time);
  tcase_add_test(t, patience_outlasts_some_maps);
  tcase_add_test(t, patience_outlasts_lost_first_words);
  tcase_add_test(t, without_a_limit_all_wait);
  tcase_add_test(t, what_is_loaded_is_not_kept_for_liars);
  tcase_add_test(t, who_lacks_what_was_dropped_gets_no_more_time);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
