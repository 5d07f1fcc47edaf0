// SPDX-License-Identifier: Apache-2.0
// A source that loads on demand, in a swarm that requests everything: nothing is sent unasked, so
// what neighbours could take keeps no place from what they request.
#include "tests/peer/scene.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"

enum { SEGMENT = N * K, SEGMENTS = 200, EACH_US = 32000 };
static uint8_t input[SEGMENTS * SEGMENT - 300];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 61);
  test_rng_fill(&rng, input, sizeof input);
}

// A source, full of segments that its first neighbour lacks, and a second one elsewhere.
static void begin(scene *s) {
  scene_new_file(s, SEGMENTS);
  s->options.policy = &weft_policy_pull;
  s->gives = true;
  scene_add(s, 0, 0, WINDOW);
  scene_run(s, STEP_US);
  EXPECT(s->loads == WINDOW);
  scene_add(s, 1, WINDOW, WINDOW);
  scene_run(s, SECOND / 2);
  EXPECT(s->loads == WINDOW);
}

START_TEST(what_is_requested_is_loaded_at_once) {
  scene s;
  begin(&s);
  scene_ask(&s, 1, WINDOW, BATCH);
  scene_run(&s, 2 * STEP_US);
  EXPECT(s.loads == WINDOW + 1 && s.data[1] == BATCH);
  scene_ask(&s, 1, WINDOW - 1, BATCH); // it has that, by its map
  scene_ask(&s, 1, SEGMENTS, BATCH);   // there is none
  scene_run(&s, 2 * STEP_US);
  EXPECT(s.loads == WINDOW + 1);
  scene_free(&s);
}
END_TEST

// Two that request different segments of one place get them in turn, or it would be loaded again
// for every few packets.
START_TEST(what_was_just_requested_keeps_its_place) {
  scene s;
  begin(&s);
  scene_ask(&s, 0, 1, BATCH);
  scene_run(&s, 2 * STEP_US);
  scene_ask(&s, 1, WINDOW + 1, BATCH);
  scene_run(&s, 2 * STEP_US);
  EXPECT(s.data[0] == BATCH && s.data[1] == 0 && s.loads == WINDOW);
  scene_run(&s, SECOND / 2);
  scene_ask(&s, 1, WINDOW + 1, BATCH);
  scene_run(&s, 2 * STEP_US);
  EXPECT(s.data[1] == BATCH && s.loads == WINDOW + 1);
  scene_free(&s);
}
END_TEST

START_TEST(who_requests_for_ever_keeps_no_place) {
  scene s;
  begin(&s);
  for (int i = 0; i < 250 && s.data[1] == 0; i++) {
    scene_ask(&s, 0, 2, BATCH);
    scene_ask(&s, 1, WINDOW + 2, BATCH);
    scene_run(&s, SECOND / 10);
  }
  EXPECT(s.data[1] == BATCH);
  scene_free(&s);
}
END_TEST

// Where it pushes, what is here leaves without a request, and requests are for what is urgent.
START_TEST(a_source_that_pushes_loads_by_maps) {
  scene s;
  begin(&s);
  s.options.policy = &scene_silent;
  scene_ask(&s, 1, WINDOW, BATCH);
  scene_run(&s, 2 * STEP_US);
  EXPECT(s.loads == WINDOW && s.data[1] == 0);
  scene_free(&s);
}
END_TEST

// Viewers that play different parts, whose windows need the same places.
START_TEST(viewers_at_different_positions_all_play_on) {
  enum { VIEWERS = 3, LOOK_US = 20000, LONGEST_US = 3 * SECOND };
  swarm *s = swarm_new(input, sizeof input, (uint64_t)_i);
  int64_t read_us[VIEWERS + 1] = {0};
  uint64_t read[VIEWERS + 1] = {0};
  s->options.mode = WEFT_MODE_VOD;
  s->options.rate_bits_per_s = (uint64_t)SEGMENT * 8 * SECOND / EACH_US;
  s->options.policy = _i % 2 ? &weft_policy_rarest : &weft_policy_pull;
  if (_i % 2)
    s->codec = weft_codec_blocks_table(&s->blocks);
  if (_i / 2 % 2)
    s->options.trust = NULL;
  swarm_start(s, &(weft_engine_self){.stream_bytes = sizeof input});
  for (size_t v = 1; v <= VIEWERS; v++) {
    const uint64_t start = v == 1 ? 0 : 60 * (v - 1) + swarm_draw(s, 30);
    swarm_add(s, &(weft_engine_self){.start = start});
    for (size_t w = 0; w < v; w++)
      swarm_connect(s, v, w);
  }
  while (s->now_us < 60 * (int64_t)SECOND) {
    swarm_run(s, s->now_us + LOOK_US);
    for (size_t v = 1; v <= VIEWERS; v++) {
      const bool done = weft_engine_done(s->node[v].engine);
      if (done || s->node[v].read > read[v])
        read_us[v] = s->now_us;
      read[v] = s->node[v].read;
      EXPECT(s->now_us - read_us[v] < LONGEST_US && !s->node[v].wrong);
    }
  }
  for (size_t v = 1; v <= VIEWERS; v++)
    EXPECT(weft_engine_done(s->node[v].engine));
  EXPECT(swarm_statistics(s, 0).segments < 6 * SEGMENTS); // loads
  swarm_free(s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("demand");
  TCase *t = tcase_create("demand");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, what_is_requested_is_loaded_at_once);
  tcase_add_test(t, what_was_just_requested_keeps_its_place);
  tcase_add_test(t, who_requests_for_ever_keeps_no_place);
  tcase_add_test(t, a_source_that_pushes_loads_by_maps);
  tcase_add_loop_test(t, viewers_at_different_positions_all_play_on, 0, 4);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
