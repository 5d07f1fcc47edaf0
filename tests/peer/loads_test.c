// SPDX-License-Identifier: Apache-2.0
// The source of a fetched file loads what its neighbours' windows reach, so that a node gets all of
// it whenever it comes, and no node can have more loaded than it is sent.
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { N = 16, K = 64, SEGMENT = N * K, SEGMENTS = 200, WINDOW = 16, SECOND = 1000000 };
static uint8_t input[SEGMENTS * SEGMENT - 300];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 47);
  test_rng_fill(&rng, input, sizeof input);
}

// Makes a fetch; the source is node 0, upload_bits_per_s is that of every node.
static swarm *fetch(size_t window, uint64_t upload_bits_per_s, uint64_t salt) {
  swarm *s = swarm_new(input, sizeof input, salt);
  s->options.mode = WEFT_MODE_BULK;
  s->options.window = window;
  swarm_start(
      s, &(weft_engine_self){.stream_bytes = sizeof input, .upload_bits_per_s = upload_bits_per_s});
  return s;
}

static size_t add(swarm *s, uint64_t upload_bits_per_s, size_t first, size_t last) {
  const size_t node = swarm_add(s, &(weft_engine_self){.upload_bits_per_s = upload_bits_per_s});
  for (size_t i = first; i <= last; i++)
    swarm_connect(s, node, i);
  return node;
}

static bool has_all(const swarm *s, size_t node) {
  return s->node[node].read == SEGMENTS && !s->node[node].wrong;
}

static uint64_t loads(const swarm *s) { return swarm_statistics(s, 0).segments; }

// A node gets all of it while others fetch, when they have it, and when they are gone. The windows
// hold a twelfth of it.
START_TEST(who_comes_at_any_time_has_all_of_it) {
  static const uint64_t reads[] = {1, 30, 120, SEGMENTS - 3, SEGMENTS};
  enum { UPLOAD = 2000000 };
  const uint64_t read = reads[_i];
  swarm *s = fetch(WINDOW, UPLOAD, read);
  EXPECT(!weft_engine_source_ready(s->node[0].engine) && loads(s) == 0);
  const size_t early = add(s, UPLOAD, 0, 0);
  swarm_run_until_read(s, early, read);
  const size_t late = add(s, UPLOAD, 0, early);
  EXPECT(!weft_engine_finished(s->node[0].engine));
  swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
  EXPECT(has_all(s, early) && has_all(s, late) && weft_engine_finished(s->node[0].engine));
  EXPECT(loads(s) >= SEGMENTS && loads(s) <= 2 * SEGMENTS);
  swarm_kill(s, early, true);
  swarm_kill(s, late, true);
  EXPECT(weft_engine_finished(s->node[0].engine));
  const size_t last = add(s, UPLOAD, 0, 0);
  EXPECT(!weft_engine_finished(s->node[0].engine));
  swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
  EXPECT(has_all(s, last) && weft_engine_finished(s->node[0].engine));
  EXPECT(loads(s) <= 3 * SEGMENTS);
  swarm_free(s);
}
END_TEST

// What is held is not loaded again for the next node.
START_TEST(what_fits_the_window_is_loaded_once) {
  swarm *s = fetch(SEGMENTS, 2000000, 3);
  for (size_t i = 1; i <= 4; i++) {
    const size_t node = add(s, 2000000, 0, 0);
    swarm_run(s, s->now_us + 10 * (int64_t)SECOND);
    EXPECT(has_all(s, node));
    swarm_kill(s, node, i % 2);
  }
  EXPECT(loads(s) == SEGMENTS);
  swarm_free(s);
}
END_TEST

// Loading does not limit a fetch: without a limit of the uplink it takes its round trips.
START_TEST(a_fetch_does_not_wait_for_loads) {
  swarm *s = fetch(4, 0, 5);
  const size_t node = add(s, 0, 0, 0);
  swarm_run(s, 3 * (int64_t)SECOND); // each segment 20 ms at least, four at once
  EXPECT(has_all(s, node));
  swarm_free(s);
}
END_TEST

// A node whose segments were loaded but came from other nodes gets the rest, although the source
// has sent it too little to earn more loads.
START_TEST(who_got_it_from_others_gets_the_rest) {
  swarm *s = fetch(WINDOW, 100000, 9); // ten segments a second
  s->options.window = SEGMENTS;        // the window of the first, which keeps all of it
  const size_t first = add(s, 4000000, 0, 0);
  swarm_run_until_read(s, first, SEGMENTS);
  const size_t second = add(s, 4000000, 0, first);
  swarm_run_until_read(s, second, SEGMENTS / 2);
  EXPECT(s->node[second].read < SEGMENTS);
  swarm_kill(s, first, false);
  swarm_run(s, s->now_us + 15 * (int64_t)SECOND);
  EXPECT(has_all(s, second) && weft_engine_finished(s->node[0].engine));
  swarm_free(s);
}
END_TEST

// Where a slow source serves two nodes in turn, each gets a segment only every few seconds, and is
// still not taken for one that never makes progress.
START_TEST(a_slow_source_gives_nobody_up) {
  swarm *s = fetch(WINDOW, 8000, 13); // a segment in 1.2 s
  const size_t first = add(s, 8000, 0, 0), second = add(s, 8000, 0, 0);
  swarm_run(s, 1000 * (int64_t)SECOND);
  EXPECT(has_all(s, first) && has_all(s, second) && weft_engine_finished(s->node[0].engine));
  swarm_free(s);
}
END_TEST

// --- Receivers that read back what they wrote

static size_t add_reader(swarm *s, uint64_t upload_bits_per_s) {
  return swarm_add(s, &(weft_engine_self){.upload_bits_per_s = upload_bits_per_s, .rereads = true});
}

// Returns the number of segments that the node had dropped, and gave again.
static size_t reread(const swarm *s, size_t node) { return s->node[node].loads; }

// A receiver reads back and gives what it has written, when it has all of it, and others do not any
// more, or a part; coded or not, signed or not.
START_TEST(a_receiver_gives_what_it_wrote) {
  static const uint64_t reads[] = {SEGMENTS, 100, 40};
  const bool coded = _i / 3 % 2 == 0, trust = _i / 6 == 0;
  swarm *s = swarm_new(input, sizeof input, (uint64_t)_i);
  s->options.mode = WEFT_MODE_BULK;
  s->options.ahead = WINDOW / 4;
  if (!coded) {
    s->codec = weft_codec_blocks_table(&s->blocks);
    s->options.policy = &weft_policy_rarest;
  }
  if (!trust)
    s->options.trust = NULL;
  swarm_start(s, &(weft_engine_self){.stream_bytes = sizeof input, .upload_bits_per_s = 400000});
  const size_t early = add_reader(s, 4000000);
  swarm_connect(s, early, 0);
  swarm_run_until_read(s, early, reads[_i % 3]);
  if (reads[_i % 3] == SEGMENTS)
    swarm_kill(s, 0, true);
  const size_t late = add(s, 4000000, early, early);
  EXPECT(!weft_engine_finished(s->node[early].engine));
  swarm_run(s, s->now_us + 30 * (int64_t)SECOND);
  EXPECT(has_all(s, early) && has_all(s, late));
  // Some twice: its own newest segments took their places meanwhile.
  EXPECT(reread(s, early) >= reads[_i % 3] - WINDOW && reread(s, early) <= SEGMENTS + 2 * WINDOW);
  EXPECT(weft_engine_finished(s->node[early].engine));
  EXPECT(swarm_statistics(s, early).segments == SEGMENTS); // what it has, not what it gave
  swarm_free(s);
}
END_TEST

// Later nodes get everything from all earlier ones: the source sends hardly more than one copy.
START_TEST(a_swarm_of_readers_leaves_the_source_alone) {
  swarm *s = fetch(WINDOW, 300000, 17);
  s->options.ahead = WINDOW / 4;
  for (size_t i = 1; i <= 6; i++) {
    const size_t node = add_reader(s, 2000000);
    for (size_t k = i > 3 ? i - 3 : 0; k < i; k++)
      swarm_connect(s, node, k);
    swarm_run_until_read(s, node, SEGMENTS / 2);
  }
  swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
  for (size_t i = 1; i <= 6; i++)
    EXPECT(has_all(s, i));
  EXPECT(swarm_statistics(s, 0).sent_packets < 2 * SEGMENTS * N);
  swarm_free(s);
}
END_TEST

// If what was written cannot be read, or has changed, no node gets anything else instead, none is
// blamed, and the fetching node gets it from the source.
START_TEST(what_cannot_be_read_back_is_given_to_nobody) {
  swarm *s = fetch(WINDOW, 2000000, 19);
  s->options.ahead = WINDOW / 4;
  const size_t early = add_reader(s, 2000000);
  swarm_connect(s, early, 0);
  swarm_run_until_read(s, early, SEGMENTS);
  s->node[early].reread = _i ? SWARM_READS_OTHER : SWARM_CANNOT_READ;
  const size_t late = add(s, 2000000, 0, early);
  swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
  EXPECT(has_all(s, late) && s->node[late].banned == 0);
  EXPECT(swarm_statistics(s, late).hash_failures == 0);
  EXPECT(reread(s, early) > 0 && reread(s, early) <= WINDOW); // those of one map
  swarm_free(s);
}
END_TEST

// A node that has jumped has gaps, and gives only what its window holds.
START_TEST(who_sought_reads_nothing_back) {
  swarm *s = fetch(WINDOW, 2000000, 21);
  const size_t early = add_reader(s, 2000000);
  swarm_connect(s, early, 0);
  swarm_run_until_read(s, early, 20);
  EXPECT_OK(weft_engine_seek(s->node[early].engine, 100, s->now_us));
  s->node[early].next = 100;
  swarm_run(s, s->now_us + 10 * (int64_t)SECOND);
  EXPECT(weft_engine_done(s->node[early].engine) && !s->node[early].wrong);
  const size_t late = add(s, 2000000, early, early);
  swarm_run(s, s->now_us + 5 * (int64_t)SECOND);
  EXPECT(reread(s, early) == 0 && s->node[late].read == 0);
  EXPECT_OK(weft_engine_load(s->node[early].engine, 0, input, SEGMENT, s->now_us)); // as if late
  EXPECT_STATUS(weft_engine_load(s->node[late].engine, 0, input, SEGMENT, s->now_us), WEFT_E_STATE);
  swarm_free(s);
}
END_TEST

// A program may only give what its engine had; and what was dropped before the end was known cannot
// be checked against what the source signed.
START_TEST(only_what_it_had_is_taken) {
  swarm *s = swarm_new(input, sizeof input, 25);
  s->options.mode = WEFT_MODE_BULK;
  s->feed_every_us = 20000; // fed in order: the end is known last
  swarm_start(s, NULL);
  const size_t early = add_reader(s, 2000000);
  swarm_connect(s, early, 0);
  swarm_run_until_read(s, early, 3 * WINDOW);
  EXPECT_STATUS(weft_engine_load(s->node[early].engine, 0, input, SEGMENT, s->now_us),
                WEFT_E_ARGUMENT); // without a known end there is no such segment
  swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
  EXPECT(has_all(s, early));
  const size_t late = add(s, 2000000, early, early);
  swarm_run(s, s->now_us + 5 * (int64_t)SECOND);
  EXPECT(reread(s, early) == 0 && s->node[late].read == 0);
  swarm_free(s);

  s = fetch(WINDOW, 300000, 27);
  const size_t half = add_reader(s, 2000000);
  swarm_connect(s, half, 0);
  swarm_run_until_read(s, half, 100);
  EXPECT_STATUS(
      weft_engine_load(s->node[half].engine, 101, input + 101 * SEGMENT, SEGMENT, s->now_us),
      WEFT_E_ARGUMENT);
  swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
  EXPECT(has_all(s, half));
  swarm_free(s);
}
END_TEST

START_TEST(who_rereads_fetches_from_the_beginning) {
  swarm *s = fetch(WINDOW, 0, 23);
  weft_engine *e;
  for (int wrong = 0; wrong < 4; wrong++) {
    weft_engine_options options = s->options;
    weft_engine_self self = {.rereads = true, .rng = weft_rng_chacha_table(&s->network)};
    self.start = wrong == 1 ? 1 : wrong == 2 ? WEFT_START_OLDEST : 0;
    options.mode = wrong == 3 ? WEFT_MODE_VOD : WEFT_MODE_BULK;
    EXPECT_STATUS(weft_engine_new(s->ctx, &options, &self, &e), wrong ? WEFT_E_ARGUMENT : WEFT_OK);
    weft_engine_free(e);
  }
  swarm_free(s);
}
END_TEST

// --- What it may cost

// A neighbour that claims to lack now these segments, now those, has no more loaded than it is
// sent, whether it stays or keeps returning.
START_TEST(nobody_has_more_loaded_than_he_is_sent) {
  enum { EACH_US = 10000, TIMES = 1000, PER_SECOND = 20, AT_ONCE = 2 * 2 * WINDOW };
  static const uint8_t data[SEGMENT];
  weft_ctx *ctx;
  weft_engine *e;
  weft_rng_chacha chacha;
  size_t neighbour, loaded = 0;
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_codec_rlnc rlnc = {.ctx = ctx};
  const weft_codec codec = weft_codec_rlnc_table(&rlnc);
  weft_rng_chacha_seed(&chacha, fixture_seed(), 1);
  const weft_engine_options options = {.stream = 5,
                                       .blocks = N,
                                       .block_bytes = K,
                                       .mode = WEFT_MODE_BULK,
                                       .window = WINDOW,
                                       .batch = 8,
                                       .neighbours_max = 2,
                                       .codec = &codec,
                                       .policy = &weft_policy_push};
  const weft_engine_self self = {.source = true,
                                 .upload_bits_per_s = 8 * 5 * SEGMENT,
                                 .stream_bytes = (uint64_t)SEGMENTS * SEGMENT,
                                 .rng = weft_rng_chacha_table(&chacha)};
  EXPECT_OK(weft_engine_new(ctx, &options, &self, &e));
  for (uint16_t i = 0; i < TIMES; i++) {
    const int64_t now_us = SECOND + (int64_t)i * EACH_US;
    uint8_t out[WEFT_DATAGRAM_MAX];
    weft_event event;
    weft_burst burst;
    if (i == 0 || (_i && i % 40 == 39)) {
      if (i)
        EXPECT_OK(weft_engine_remove_neighbour(e, 0));
      const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
      EXPECT_OK(weft_engine_add_neighbour(e, NULL, now_us, &neighbour));
      EXPECT_OK(weft_engine_input(e, neighbour, out, weft_hello_write(&hello, out), now_us));
    }
    const weft_map map = {
        .first = i % 10 * WINDOW, .count = WINDOW, .epoch = i, .suppliers = 1, .entry_bytes = 2};
    const size_t bytes = weft_map_write(&map, out);
    memset(out + WEFT_MAP_BYTES, 0, 2 * WINDOW);
    EXPECT_OK(weft_engine_input(e, neighbour, out, bytes, now_us));
    weft_engine_tick(e, now_us);
    while (weft_engine_event(e, &event))
      if (event.kind == WEFT_EVENT_LOAD) {
        loaded++;
        EXPECT_OK(weft_engine_load(e, event.segment, data, sizeof data, now_us));
      }
    while (weft_engine_output(e, now_us, &burst) == WEFT_OK)
      ;
  }
  weft_engine_statistics x;
  weft_engine_get_statistics(e, &x);
  const size_t for_time = PER_SECOND * (size_t)TIMES * EACH_US / SECOND;
  EXPECT(loaded <= AT_ONCE + WINDOW + for_time + 2 * x.sent_packets / N);
  EXPECT(loaded >= for_time && x.sent_packets < 100 * N);
  weft_engine_free(e);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("loads");
  TCase *t = tcase_create("loads");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_loop_test(t, who_comes_at_any_time_has_all_of_it, 0, 5);
  tcase_add_test(t, what_fits_the_window_is_loaded_once);
  tcase_add_test(t, a_fetch_does_not_wait_for_loads);
  tcase_add_test(t, who_got_it_from_others_gets_the_rest);
  tcase_add_test(t, a_slow_source_gives_nobody_up);
  tcase_add_loop_test(t, a_receiver_gives_what_it_wrote, 0, 12);
  tcase_add_test(t, a_swarm_of_readers_leaves_the_source_alone);
  tcase_add_loop_test(t, what_cannot_be_read_back_is_given_to_nobody, 0, 2);
  tcase_add_test(t, who_sought_reads_nothing_back);
  tcase_add_test(t, only_what_it_had_is_taken);
  tcase_add_test(t, who_rereads_fetches_from_the_beginning);
  tcase_add_loop_test(t, nobody_has_more_loaded_than_he_is_sent, 0, 2);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
