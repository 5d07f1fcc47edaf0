// SPDX-License-Identifier: Apache-2.0
// Live viewers after a pause: an output that nobody read, a process that was stopped, an input that
// comes in bursts.
#include "tests/peer/scene.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 900, INPUT_BYTES = SEGMENTS * SEGMENT + 77 };
enum { EACH_US = SWARM_SEGMENT_US, HELD = 64 };
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 19);
  test_rng_fill(&rng, input, sizeof input);
}

static swarm *live(uint64_t salt) {
  swarm *s = swarm_new_live(input, sizeof input, salt);
  s->options.window = HELD;
  s->options.timers.silent_us = 30 * SECOND;
  return s;
}

// --- An output that is not read

// Nothing that the only viewer plays is read for so long that its window fills: it can take no
// more, so the source sends it nothing that tells the time. Some pauses are so short that part of
// what it lacks is still to be had.
START_TEST(an_output_that_was_not_read_goes_on_at_the_present) {
  static const int64_t pauses_s[] = {5, 6, 8, 10, 15, 30, 60};
  for (int viewers = 1; viewers <= 2; viewers++)
    for (size_t i = 0; i < sizeof pauses_s / sizeof *pauses_s; i++) {
      swarm *s = live(1);
      swarm_start(s, NULL);
      for (int v = 0; v < viewers; v++)
        swarm_connect(s, swarm_add(s, NULL), 0);
      if (viewers == 2)
        swarm_connect(s, 1, 2);
      swarm_run(s, 8 * SECOND);
      s->node[1].unread_us = s->now_us + pauses_s[i] * SECOND;
      swarm_run(s, s->node[1].unread_us + 5 * SECOND);
      const weft_engine_statistics before = swarm_statistics(s, 1);
      const uint64_t read = s->node[1].read;
      swarm_run(s, s->now_us + 10 * SECOND);
      const weft_engine_statistics after = swarm_statistics(s, 1);
      EXPECT(s->node[1].read >= read + 98 && !s->node[1].wrong);
      EXPECT(s->node[1].next + 35 >= (uint64_t)(s->now_us / EACH_US));
      EXPECT(after.skipped == before.skipped && after.passed_over == before.passed_over);
      EXPECT(after.forgone == 0 && !after.narrow);
      swarm_free(s);
    }
}
END_TEST

static int64_t due(const scene *s, uint64_t segment) {
  int64_t at_us;
  EXPECT_OK(weft_engine_play_time(s->engine, segment, &at_us));
  return at_us;
}

static void say_horizon(scene *s, size_t neighbour, uint64_t horizon) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_map m = {.horizon = horizon, .entry_bytes = 2, .suppliers = 1, .stamps = {.stamp = 1}};
  EXPECT_OK(scene_say(s, neighbour, out, weft_map_write(&m, out)));
}

// A neighbour that claims segments that do not exist is asked for their manifests now and then.
// Nothing else follows from it, and one that claims true ones is asked all the same.
START_TEST(claims_without_proof_cost_a_request_now_and_then) {
  enum { FALSE_CLAIM = 1 << 30, TRUE_CLAIM = 100, MAPS = 2000 };
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, true, 0);
  s.options.rate_bits_per_s = 0;
  scene_add(&s, 0, 0, 0);
  scene_add(&s, 1, 0, 0);
  scene_manifest(&s, 1, 4);
  scene_manifest(&s, 1, 5);
  scene_run(&s, due(&s, 5) - s.now_us + 2 * STEP_US);
  EXPECT(s.skips >= 1 && s.skip_last == 5); // all that is known is past
  const size_t skips = s.skips, asked[] = {s.asked[0], s.asked[1]};
  const int64_t due_us = due(&s, 6);
  for (int i = 0; i < MAPS; i++) {
    say_horizon(&s, 0, FALSE_CLAIM + (uint64_t)i);
    say_horizon(&s, 1, 6);
    scene_run(&s, STEP_US);
  }
  EXPECT(s.asked[0] > asked[0] && s.asked[0] <= asked[0] + MAPS / 10 && s.asked[1] == asked[1]);
  EXPECT(s.skips == skips && due(&s, 6) == due_us);
  say_horizon(&s, 1, TRUE_CLAIM);
  scene_run(&s, STEP_US);
  EXPECT(s.asked[1] == asked[1] + 1 && due(&s, 6) == due_us);
  scene_manifest(&s, 1, TRUE_CLAIM - 1);
  scene_run(&s, 2 * STEP_US);
  EXPECT(scene_statistics(&s).passed_over > 0);
  scene_free(&s);
}
END_TEST

// --- Input in bursts

enum { BURST = 60, BURST_US = BURST * EACH_US };

static swarm *bursts(uint64_t salt) {
  swarm *s = live(salt);
  s->options.window = 3 * HELD;
  s->feed_burst = BURST;
  swarm_start(s, NULL);
  for (size_t v = 1; v <= 2; v++)
    swarm_connect(s, swarm_add(s, NULL), 0);
  swarm_connect(s, 1, 2);
  return s;
}

// A viewer is stopped for a while, at any time between two bursts: it loses no more than what came
// or was due meanwhile, plays all that comes then, and does not blame its link for that.
static void stop(int64_t phase_us, int64_t stop_us) {
  swarm *s = bursts(2);
  swarm_run(s, 3 * BURST_US + phase_us);
  s->node[1].asleep_us = s->now_us + stop_us;
  swarm_run(s, s->node[1].asleep_us + BURST_US + 4 * SECOND);
  const weft_engine_statistics x = swarm_statistics(s, 1);
  const uint64_t read = s->node[1].read, other = s->node[2].read;
  EXPECT(s->node[1].next == s->node[2].next && !s->node[1].wrong);
  EXPECT(x.skipped + x.passed_over <= 2 * BURST && x.forgone == 0);
  swarm_run(s, s->now_us + 2 * BURST_US);
  EXPECT(s->node[2].read >= other + 2 * BURST);
  EXPECT(s->node[1].read - read == s->node[2].read - other);
  swarm_free(s);
}

START_TEST(who_was_stopped_goes_on_with_the_next_burst) {
  static const int64_t stops_us[] = {SECOND / 5, SECOND,     3 * SECOND,
                                     5 * SECOND, 8 * SECOND, 12 * SECOND};
  for (int64_t phase_us = 0; phase_us < BURST_US; phase_us += SECOND)
    for (size_t i = 0; i < sizeof stops_us / sizeof *stops_us; i++)
      stop(phase_us, stops_us[i]);
}
END_TEST

// Who comes between two bursts begins with the last one, if that is still to be played, or with the
// next one.
START_TEST(who_comes_begins_with_a_burst) {
  for (int64_t phase_us = 0; phase_us < BURST_US; phase_us += SECOND / 2) {
    swarm *s = bursts(3);
    swarm_run(s, 5 * BURST_US + phase_us);
    const int64_t next_us = BURST_US - phase_us + 3 * SECOND;
    swarm_connect(s, swarm_add(s, NULL), 0);
    swarm_connect(s, 3, 1);
    swarm_run(s, s->now_us + 3 * BURST_US);
    const weft_engine_statistics x = swarm_statistics(s, 3);
    EXPECT(x.startup_us <= (phase_us < 3 * SECOND ? 3 * SECOND : next_us) + SECOND / 5);
    EXPECT(s->node[3].next == s->node[2].next && !s->node[3].wrong);
    EXPECT(x.skipped <= s->options.window);
    swarm_free(s);
  }
}
END_TEST

// --- A source whose clock stood still

// The source's machine is suspended, and its clock with it, once or again. From then on all of its
// times are later by the viewers' clocks. A few seconds later they play as before, in time.
START_TEST(a_clock_that_stood_still_is_noticed) {
  static const int64_t stood_us[] = {SECOND, 2 * SECOND, 3 * SECOND, 10 * SECOND};
  for (size_t i = 0; i < sizeof stood_us / sizeof *stood_us; i++) {
    swarm *s = live(4);
    s->options.congestion = true;
    swarm_start(s, &(weft_engine_self){.upload_bits_per_s = 5 * 8 * SEGMENT * 10});
    for (size_t v = 1; v <= 4; v++)
      swarm_add(s, NULL);
    for (size_t v = 1; v <= 4; v++)
      for (size_t w = 0; w < v; w++)
        swarm_connect(s, v, w);
    for (int again = 0; again < 2; again++) {
      weft_engine_statistics before[5];
      swarm_run(s, s->now_us + 20 * SECOND);
      s->node[0].asleep_us = s->now_us + stood_us[i];
      swarm_run(s, s->node[0].asleep_us - 1);
      s->node[0].stood_us += stood_us[i];
      s->feed_us = s->now_us + 1;
      swarm_run(s, s->now_us + 8 * SECOND);
      for (size_t v = 1; v <= 4; v++)
        before[v] = swarm_statistics(s, v);
      swarm_run(s, s->now_us + 10 * SECOND);
      for (size_t v = 1; v <= 4; v++) {
        const weft_engine_statistics x = swarm_statistics(s, v);
        EXPECT(x.due - before[v].due >= 98 && x.in_time - before[v].in_time >= 98);
        EXPECT(!s->node[v].wrong);
      }
    }
    swarm_free(s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pause");
  TCase *t = tcase_create("pause");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, an_output_that_was_not_read_goes_on_at_the_present);
  tcase_add_test(t, claims_without_proof_cost_a_request_now_and_then);
  tcase_add_test(t, who_was_stopped_goes_on_with_the_next_burst);
  tcase_add_test(t, who_comes_begins_with_a_burst);
  tcase_add_test(t, a_clock_that_stood_still_is_noticed);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
