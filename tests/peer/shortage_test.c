// SPDX-License-Identifier: Apache-2.0
// Live with less uplink than the stream needs: which segments are forgone, and that the others are
// whole.
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 900, INPUT_BYTES = SEGMENTS * SEGMENT };
static const int64_t SECOND = 1000000, SEGMENT_US = SWARM_SEGMENT_US;
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 31);
  test_rng_fill(&rng, input, sizeof input);
}

// Of 2^i classes one is forgone each 16 / 2^i segments.
START_TEST(classes_are_spread_evenly) {
  for (unsigned classes = 0; classes <= WEFT_POLICY_CLASSES; classes++) {
    const weft_policy_view view = {.forgone = classes};
    unsigned count = 0;
    for (uint64_t s = 1600; s < 1600 + WEFT_POLICY_CLASSES; s++)
      count += weft_policy_forgoes(&view, s);
    EXPECT(count == classes);
    for (uint64_t s = 0; s < 64 && classes && (classes & (classes - 1)) == 0; s++)
      EXPECT(weft_policy_forgoes(&view, s) == (s % (WEFT_POLICY_CLASSES / classes) == 0));
  }
}
END_TEST

// Which of segments 5 to 8 push takes, of which we have everything and a neighbour `rank` packets
// each; 0: none.
static uint64_t picked(const uint16_t rank[4], unsigned forgone) {
  enum { BLOCKS = 64, WINDOW = 4 };
  weft_policy_segment segments[WINDOW];
  weft_policy_want wants[WINDOW];
  uint64_t number[WINDOW];
  for (uint64_t s = 5; s < 5 + WINDOW; s++) {
    segments[s % WINDOW] = (weft_policy_segment){.blocks = BLOCKS, .rank = BLOCKS};
    wants[s % WINDOW] = (weft_policy_want){
        .rank = rank[s - 5] & 0x7ffu, .common = rank[s - 5], .accepts = rank[s - 5] < BLOCKS};
    number[s % WINDOW] = s;
  }
  const weft_policy_neighbour neighbour = {
      .open = true, .known = true, .suppliers = 1, .first = 5, .count = WINDOW, .wants = wants};
  const weft_policy_view view = {.live = true,
                                 .forgone = forgone,
                                 .first = 5,
                                 .count = WINDOW,
                                 .window = WINDOW,
                                 .horizon = 9,
                                 .play = 5,
                                 .segments = segments,
                                 .number = number,
                                 .neighbours = 1,
                                 .neighbour = &neighbour,
                                 .batch_max = 16};
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, fixture_seed(), 5);
  const weft_rng rng = weft_rng_chacha_table(&chacha);
  uint64_t taken = 0;
  for (int i = 0; i < 200; i++) {
    weft_policy_choice choice = {0};
    const uint64_t s =
        weft_policy_push.pick(NULL, &view, &rng, &choice) ? choice.segment : UINT64_C(0);
    taken |= UINT64_C(1) << s;
  }
  return taken;
}

START_TEST(what_is_forgone_comes_last) {
  enum { S5 = 1 << 5, S6 = 1 << 6, S7 = 1 << 7, S8 = 1 << 8 };
  const uint16_t all[4] = {32, 32, 32, 32}, newest[4] = {32, 32, 32, 0}, rest[4] = {64, 64, 64, 0},
                 two[4] = {64, 32, 64, 32}, nothing[4] = {64, 64, 64, 64};
  EXPECT(picked(all, 0) == (S5 | S6 | S7 | S8));
  EXPECT(picked(all, 4) == (S5 | S6 | S7)); // each fourth is forgone
  EXPECT(picked(all, 8) == (S5 | S7));
  EXPECT(picked(newest, 0) == S8); // a quarter of it, before all others
  EXPECT(picked(newest, 4) == (S5 | S6 | S7));
  EXPECT(picked(rest, 4) == S8); // nothing else is wanted
  EXPECT(picked(two, 8) == (S6 | S8));
  EXPECT(picked(nothing, 4) == 1);
}
END_TEST

typedef struct playback {
  uint64_t due, in_time;
  uint64_t forgone; // classes, by all together
} playback;

static playback played(const swarm *s) {
  playback all = {0};
  for (size_t i = 1; i < s->nodes; i++) {
    const weft_engine_statistics x = swarm_statistics(s, i);
    EXPECT(!s->node[i].wrong);
    all.due += x.due;
    all.in_time += x.in_time;
    all.forgone += x.forgone;
  }
  return all;
}

static double continuity(const playback *from, const playback *to) {
  return (double)(to->in_time - from->in_time) / (double)(to->due - from->due);
}

// 24 peers, four of them at the source, each with six others and an uplink of three quarters of
// what is needed (320 kbit/s; small packets). After a minute the stream has half its rate.
START_TEST(a_part_is_played_and_all_once_there_is_uplink) {
  enum { PEERS = 24, AT_SOURCE = 4, DEGREE = 3, UPLINK = 240000 };
  swarm *s = swarm_new_live(input, sizeof input, 6);
  s->options.window = 64;
  swarm_start(s, NULL);
  for (size_t i = 0; i < PEERS; i++)
    swarm_add(s, &(weft_engine_self){.upload_bits_per_s = UPLINK});
  for (size_t i = 0; i < PEERS; i++)
    for (size_t d = 1; d <= DEGREE; d++)
      swarm_connect(s, 1 + i, i < AT_SOURCE && d == 1 ? 0 : 1 + (i + d) % PEERS);
  swarm_run(s, 10 * SECOND);
  const playback begun = played(s);
  swarm_run(s, 60 * SECOND);
  const playback scarce = played(s);
  EXPECT(continuity(&begun, &scarce) >= 0.52); // 0.43 when all segments were served alike
  EXPECT(scarce.forgone > PEERS);
  s->feed_every_us = 2 * SEGMENT_US;
  swarm_run(s, 90 * SECOND);
  const playback enough = played(s);
  swarm_run(s, 120 * SECOND);
  const playback end = played(s);
  EXPECT(continuity(&enough, &end) >= 0.999);
  EXPECT(end.forgone == 0);
  swarm_free(s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("shortage");
  TCase *t = tcase_create("shortage");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, classes_are_spread_evenly);
  tcase_add_test(t, what_is_forgone_comes_last);
  tcase_add_test(t, a_part_is_played_and_all_once_there_is_uplink);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
