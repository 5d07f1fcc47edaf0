// SPDX-License-Identifier: Apache-2.0
// A live swarm has less uplink than the stream needs: the segments that are not forgone are whole,
// and none is forgone once there is enough. (Which ones are forgone: pick_test.c.)
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 900, INPUT_BYTES = SEGMENTS * SEGMENT, VIEWERS = 24 };
static const int64_t SECOND = 1000000, SEGMENT_US = SWARM_SEGMENT_US;
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 31);
  test_rng_fill(&rng, input, sizeof input);
}

typedef struct playback {
  uint64_t due, in_time;
  uint64_t forgone; // classes, by all peers together
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

// Plays with 24 peers, four of them neighbours of the source, each with six others and an uplink of
// three quarters of what is needed (320 kbit/s; small packets). After a minute the stream's rate is
// halved. Returns the continuity before that; adds the classes forgone then.
static double play_scarce_then_enough(uint64_t salt, uint64_t *forgone) {
  enum { AT_SOURCE = 4, DEGREE = 3, UPLINK = 240000 };
  swarm *s = swarm_new_live(input, sizeof input, salt);
  s->options.window = 64;
  swarm_start(s, NULL);
  for (size_t i = 0; i < VIEWERS; i++)
    swarm_add(s, &(weft_engine_self){.upload_bits_per_s = UPLINK});
  for (size_t i = 0; i < VIEWERS; i++)
    for (size_t d = 1; d <= DEGREE; d++)
      swarm_connect(s, 1 + i, i < AT_SOURCE && d == 1 ? 0 : 1 + (i + d) % VIEWERS);
  swarm_run(s, 10 * SECOND);
  const playback begun = played(s);
  swarm_run(s, 60 * SECOND);
  const playback scarce = played(s);
  *forgone += scarce.forgone;
  s->feed_every_us = 2 * SEGMENT_US;
  swarm_run(s, 90 * SECOND);
  const playback enough = played(s);
  swarm_run(s, 120 * SECOND);
  const playback end = played(s);
  EXPECT(continuity(&enough, &end) >= 0.999);
  EXPECT(end.forgone == 0);
  swarm_free(s);
  return continuity(&begun, &scarce);
}

// One swarm in 30 plays half of the stream and forgoes little, the others play 0.58 to 0.72 (60
// seeds), so three are averaged.
START_TEST(a_part_is_played_and_all_once_there_is_uplink) {
  enum { SWARMS = 3 };
  double sum = 0;
  uint64_t forgone = 0;
  for (uint64_t i = 0; i < SWARMS; i++)
    sum += play_scarce_then_enough(6 + i, &forgone);
  EXPECT(sum / SWARMS >= 0.55); // 0.43 when all segments were treated alike
  EXPECT(forgone > VIEWERS * SWARMS);
}
END_TEST

// A node that slept forgoes nothing for it: what arrived meanwhile has not queued on the way.
START_TEST(who_slept_forgoes_nothing) {
  enum { PEERS = 4, SLEPT = 6, LAG = 3 };
  swarm *s = swarm_new_live(input, sizeof input, 7);
  s->options.window = 256;
  swarm_start(s, NULL);
  for (size_t i = 1; i <= PEERS; i++) {
    swarm_add(s, NULL);
    for (size_t other = 0; other < i; other++)
      swarm_connect(s, other, i);
  }
  swarm_run(s, 10 * SECOND);
  const weft_engine_statistics before = swarm_statistics(s, 1);
  s->node[1].asleep_us = s->now_us + SLEPT * SECOND;
  for (int64_t until_us = s->now_us + (SLEPT + LAG) * SECOND; s->now_us < until_us;) {
    swarm_run(s, s->now_us + SEGMENT_US);
    EXPECT(swarm_statistics(s, 1).forgone == 0);
  }
  const weft_engine_statistics after = swarm_statistics(s, 1);
  EXPECT(after.skipped > before.skipped); // it was late for some
  swarm_run(s, s->now_us + 5 * SECOND);
  EXPECT(swarm_statistics(s, 1).skipped == after.skipped && swarm_statistics(s, 1).forgone == 0);
  swarm_free(s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("shortage");
  TCase *t = tcase_create("shortage");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, a_part_is_played_and_all_once_there_is_uplink);
  tcase_add_test(t, who_slept_forgoes_nothing);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
