// SPDX-License-Identifier: Apache-2.0
// Live, with a window that holds less than the lag: viewers play all of the stream, with the lag
// that the window holds.
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 150, EACH_US = SWARM_SEGMENT_US, SECOND = 1000000, VIEWERS = 3 };
enum { LAG_US = 3 * SECOND, MAP_US = 200000 }; // without a rate, maps tell how far the stream is
static uint8_t input[SEGMENTS * SEGMENT + 77];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 67);
  test_rng_fill(&rng, input, sizeof input);
}

static swarm *live(size_t window, bool rate, bool trust) {
  swarm *s = swarm_new_live(input, sizeof input, window);
  s->options.window = window;
  s->options.lag_us = LAG_US;
  s->options.rate_bits_per_s = rate ? (uint64_t)SEGMENT * 8 * SECOND / EACH_US : 0;
  if (!trust)
    s->options.trust = NULL;
  return s;
}

static void start(swarm *s) {
  swarm_start(s, NULL);
  for (size_t v = 1; v <= VIEWERS; v++) {
    swarm_add(s, NULL);
    for (size_t w = 0; w < v; w++)
      swarm_connect(s, v, w);
  }
}

// How many segments behind the newest the viewer plays.
static uint64_t behind(const swarm *s, size_t viewer) {
  return s->fed / SEGMENT - s->node[viewer].next;
}

static uint64_t most_behind(const swarm *s) {
  return s->options.window + (s->options.rate_bits_per_s ? 0 : 1 + MAP_US / EACH_US);
}

// By the rate, by what is signed, and by both: what the window holds is known beforehand, or from
// what comes.
START_TEST(all_is_played_with_the_lag_that_the_window_holds) {
  static const size_t windows[] = {8, 10, 12, 16, 20, 24};
  const size_t window = windows[_i / 3];
  const bool rate = _i % 3 != 1, trust = _i % 3 != 0;
  const int64_t held_us = (int64_t)(window - 2) * EACH_US;
  swarm *s = live(window, rate, trust);
  start(s);
  swarm_run(s, SEGMENTS / 2 * EACH_US);
  for (size_t v = 1; v <= VIEWERS; v++) {
    const weft_engine_statistics x = swarm_statistics(s, v);
    EXPECT(x.lag_us > 0 && x.lag_us <= held_us && (!rate || x.lag_us == held_us));
    EXPECT(behind(s, v) <= most_behind(s));
  }
  swarm_run(s, s->now_us + SEGMENTS * EACH_US);
  for (size_t v = 1; v <= VIEWERS; v++) {
    const weft_engine_statistics x = swarm_statistics(s, v);
    EXPECT(x.skipped == 0 && x.passed_over == 0 && x.in_time == x.due);
    EXPECT(s->node[v].read >= SEGMENTS - 5 && !s->node[v].wrong);
    EXPECT(weft_engine_done(s->node[v].engine));
  }
  swarm_free(s);
}
END_TEST

// Packets are lost, so some of the next segment to be played may lack: it is not waited for until
// nothing of what follows is to be had.
START_TEST(what_is_lost_costs_no_more_than_itself) {
  swarm *s = live(10, _i != 1, _i != 0);
  s->fate = swarm_lossy;
  s->loss_percent = 5;
  start(s);
  swarm_run(s, 2 * SEGMENTS * EACH_US);
  for (size_t v = 1; v <= VIEWERS; v++) {
    EXPECT(s->node[v].read >= SEGMENTS - SEGMENTS / 10 && !s->node[v].wrong);
    EXPECT(weft_engine_done(s->node[v].engine));
  }
  swarm_free(s);
}
END_TEST

// A viewer that stops hearing of the stream for longer than its window lasts goes on at the
// present.
static fixture_fate cut_off(swarm *s, size_t from, size_t to) {
  const bool cut = (from == 1 || to == 1) && s->now_us > 4 * SECOND && s->now_us < 7 * SECOND;
  return (fixture_fate){.copies = !cut, .delay_us = 10000};
}

START_TEST(who_was_cut_off_goes_on) {
  swarm *s = live(12, _i != 1, _i != 0);
  s->fate = cut_off;
  start(s);
  swarm_run(s, 8 * SECOND);
  const uint64_t read = s->node[1].read;
  swarm_run(s, s->now_us + 5 * SECOND);
  EXPECT(s->node[1].read >= read + 5 * SECOND / EACH_US - 1 && behind(s, 1) <= most_behind(s));
  swarm_free(s);
}
END_TEST

// One source that is faster than its rate says: what is signed tells.
START_TEST(a_rate_that_is_too_low_loses_nothing) {
  swarm *s = live(24, true, true); // holds 2.2 s
  s->options.rate_bits_per_s /= 2; // 4.4 s, it seems
  start(s);
  swarm_run(s, 2 * SEGMENTS * EACH_US);
  for (size_t v = 1; v <= VIEWERS; v++) {
    EXPECT(swarm_statistics(s, v).skipped == 0);
    EXPECT(s->node[v].read >= SEGMENTS - 20 && !s->node[v].wrong);
  }
  swarm_free(s);
}
END_TEST

START_TEST(a_window_that_holds_the_lag_does_not_change_it) {
  for (int trust = 0; trust < 2; trust++) {
    swarm *s = live(LAG_US / EACH_US + 2, true, trust);
    start(s);
    swarm_run(s, SEGMENTS / 2 * EACH_US);
    for (size_t v = 1; v <= VIEWERS; v++) {
      EXPECT(swarm_statistics(s, v).lag_us == LAG_US && behind(s, v) >= LAG_US / EACH_US - 1);
      EXPECT(swarm_statistics(s, v).skipped == 0);
    }
    swarm_free(s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("short_window");
  TCase *t = tcase_create("short_window");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_loop_test(t, all_is_played_with_the_lag_that_the_window_holds, 0, 18);
  tcase_add_loop_test(t, what_is_lost_costs_no_more_than_itself, 0, 3);
  tcase_add_loop_test(t, who_was_cut_off_goes_on, 0, 3);
  tcase_add_test(t, a_rate_that_is_too_low_loses_nothing);
  tcase_add_test(t, a_window_that_holds_the_lag_does_not_change_it);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
