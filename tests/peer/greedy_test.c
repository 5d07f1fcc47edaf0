// SPDX-License-Identifier: Apache-2.0
// Swarms with greedy neighbours, which always request everything from everyone and claim to lack
// it: what others need comes first, and no greedy neighbour gets more than the stream once from
// each, losses included.
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 150, INPUT_BYTES = SEGMENTS * SEGMENT - 300, HONEST = 8 };
enum { SEGMENT_US = SWARM_SEGMENT_US, SECOND = 1000000 };
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 14);
  test_rng_fill(&rng, input, sizeof input);
}

typedef struct outcome { // in multiples of the coded stream
  double source, source_greedy, peers_greedy;
  double in_time; // of what the honest peers were to play
  int64_t startup_us;
} outcome;

// The stream takes some 120 kbit/s with coefficients, so each peer's uplink carries it more than
// eight times.
static outcome with_greedy(uint64_t salt, const weft_policy *policy, weft_engine_mode mode,
                           size_t honest, uint64_t source_bits_per_s) {
  const bool live = mode == WEFT_MODE_LIVE;
  const weft_engine_self source = {.upload_bits_per_s = source_bits_per_s,
                                   .stream_bytes = live ? 0 : INPUT_BYTES};
  const weft_engine_self peer = {.upload_bits_per_s = 1000000};
  swarm *s =
      live ? swarm_new_live(input, sizeof input, salt) : swarm_new(input, sizeof input, salt);
  s->fate = swarm_lossy;
  s->loss_percent = 2;
  s->options.mode = mode;
  s->options.rate_bits_per_s = (uint64_t)8 * SEGMENT * SECOND / SEGMENT_US;
  s->options.startup_us = SECOND;
  s->options.neighbours_max = 24;
  s->options.policy = policy;
  swarm_start(s, &source);
  for (size_t i = 1; i <= honest + 1; i++) {
    swarm_add(s, &peer);
    s->node[i].greedy = s->node[i].free_rider = i > honest;
    for (size_t k = 0; k < i; k++)
      swarm_connect(s, i, k);
  }
  swarm_run(s, (int64_t)SEGMENTS * SEGMENT_US);
  const double stream = SEGMENTS * 16 * 92;
  outcome o = {.source = (double)s->node[0].data_sent / stream,
               .source_greedy = (double)s->node[0].data_greedy / stream};
  double due = 0;
  for (size_t i = 1; i <= honest; i++) {
    const weft_engine_statistics x = swarm_statistics(s, i);
    due += (double)x.due;
    o.startup_us = x.startup_us > o.startup_us ? x.startup_us : o.startup_us;
    o.in_time += (double)x.in_time;
    o.peers_greedy += (double)s->node[i].data_greedy / stream;
  }
  o.in_time /= due;
  swarm_free(s);
  return o;
}

// A greedy peer gets at most twice the stream, or twice what is still to be played when it comes:
// 30 segments of 150 live, two windows (32 segments) on demand. A live source's pushes are shared
// out among all, so it gives less.
static void expect_little(const outcome *o, double source_most) {
  const double most = 2.0 * (1.0 + 34.0 / SEGMENTS);
  EXPECT(o->source_greedy < source_most && o->peers_greedy < HONEST * most);
}

START_TEST(live_push_swarms_feed_the_greedy_no_more_than_the_stream) {
  const outcome o = with_greedy(1, &weft_policy_push, WEFT_MODE_LIVE, HONEST, 1440000);
  EXPECT(o.in_time >= 0.99);
  expect_little(&o, 0.3 * o.source);
}
END_TEST

START_TEST(live_pull_swarms_feed_the_greedy_no_more_than_the_stream) {
  const outcome o = with_greedy(2, &weft_policy_pull, WEFT_MODE_LIVE, HONEST, 1440000);
  EXPECT(o.in_time >= 0.97);
  expect_little(&o, 2.5);
}
END_TEST

START_TEST(on_demand_push_swarms_feed_the_greedy_no_more_than_the_stream) {
  const outcome o = with_greedy(3, &weft_policy_push, WEFT_MODE_VOD, HONEST, 1440000);
  EXPECT(o.in_time >= 0.99);
  expect_little(&o, 2.5);
}
END_TEST

START_TEST(on_demand_pull_swarms_feed_the_greedy_no_more_than_the_stream) {
  const outcome o = with_greedy(4, &weft_policy_pull, WEFT_MODE_VOD, HONEST, 2400000);
  EXPECT(o.in_time >= 0.85); // 0.99 without greedy peers
  expect_little(&o, 2.5);
}
END_TEST

// Where there are no other suppliers and little to give, requests for everything wait for pushes to
// others.
START_TEST(requests_for_everything_wait_for_pushes) {
  const outcome o = with_greedy(5, &weft_policy_push, WEFT_MODE_VOD, 1, 340000);
  EXPECT(o.in_time >= 0.9 && o.startup_us >= 0 && o.startup_us < 4 * SECOND);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("greedy");
  TCase *tc = tcase_create("greedy");
  tcase_add_checked_fixture(tc, setup, NULL);
  tcase_add_test(tc, live_push_swarms_feed_the_greedy_no_more_than_the_stream);
  tcase_add_test(tc, live_pull_swarms_feed_the_greedy_no_more_than_the_stream);
  tcase_add_test(tc, on_demand_push_swarms_feed_the_greedy_no_more_than_the_stream);
  tcase_add_test(tc, on_demand_pull_swarms_feed_the_greedy_no_more_than_the_stream);
  tcase_add_test(tc, requests_for_everything_wait_for_pushes);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
