// SPDX-License-Identifier: Apache-2.0
// Playback in small swarms: live continuity through loss, churn and late joins; pace, stalls, seeks
// and joins at the beginning on demand; the source's departure.
#include <stdlib.h>

#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = 1024, SEGMENTS = 120, INPUT_BYTES = SEGMENTS * SEGMENT + 77 };
static const int64_t SEGMENT_US = SWARM_SEGMENT_US, SECOND = 1000000;
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 11);
  test_rng_fill(&rng, input, sizeof input);
}

static fixture_fate lossy(swarm *s, size_t from, size_t to) {
  (void)from, (void)to;
  return (fixture_fate){.copies = swarm_draw(s, 100) >= 5 ? 1 + (swarm_draw(s, 100) < 2) : 0,
                        .delay_us = 15000 + (int64_t)swarm_draw(s, 10000)};
}

static swarm *live(uint64_t salt) {
  swarm *s = swarm_new_live(input, sizeof input, salt);
  s->options.window = 32;
  s->options.lag_us = 2 * SECOND;
  return s;
}

static void mesh(swarm *s, size_t nodes, size_t degree) {
  for (size_t i = 1; i < nodes; i++)
    for (size_t d = 1; d <= degree && d <= i; d++)
      swarm_connect(s, i, d == 1 && i <= 4 ? 0 : i - d);
}

static double continuity(const swarm *s, size_t node) {
  const weft_engine_statistics x = swarm_statistics(s, node);
  return x.due ? (double)x.in_time / (double)x.due : 0;
}

// Expects, when all join at the start, every segment in time, every byte right, and every start
// within 3 s.
static void expect_live(swarm *s, size_t nodes) {
  swarm_start(s, NULL);
  for (size_t i = 1; i < nodes; i++)
    swarm_add(s, NULL);
  mesh(s, nodes, 3);
  swarm_run(s, SEGMENTS * SEGMENT_US + 10 * SECOND);
  for (size_t i = 1; i < nodes; i++) {
    const weft_engine_statistics x = swarm_statistics(s, i);
    EXPECT(!s->node[i].wrong);
    EXPECT(s->node[i].plays == x.in_time && s->node[i].skips == x.skipped);
    EXPECT(x.due == x.in_time + x.skipped && x.due >= SEGMENTS - 30);
    EXPECT(continuity(s, i) == 1.0);
    EXPECT(x.startup_us >= 0 && x.startup_us <= 3 * SECOND);
    EXPECT(weft_engine_done(s->node[i].engine));
    EXPECT(s->node[i].read == x.in_time);
  }
  swarm_free(s);
}

START_TEST(live_plays_everything_in_time) {
  swarm *s = live(1);
  expect_live(s, 8);
}
END_TEST

START_TEST(live_plays_through_losses) {
  swarm *s = live(2);
  s->fate = lossy;
  s->options.congestion = true;
  expect_live(s, 12);
}
END_TEST

START_TEST(live_plays_by_rate_without_trust) {
  swarm *s = live(3);
  s->options.trust = NULL;
  s->options.rate_bits_per_s = (uint64_t)(SEGMENT * 8 * SECOND / SEGMENT_US);
  expect_live(s, 6);
}
END_TEST

// A node that comes when the end is known plays what others still have to play, or nothing, and is
// done.
START_TEST(who_joins_at_the_end_of_a_live_stream_ends_with_it) {
  for (int trust = 0; trust < 2; trust++)
    for (int64_t late_us = SECOND / 2; late_us <= 5 * SECOND / 2; late_us += SECOND) {
      swarm *s = live(14);
      s->options.rate_bits_per_s = (uint64_t)(SEGMENT * 8 * SECOND / SEGMENT_US);
      if (!trust)
        s->options.trust = NULL;
      swarm_start(s, NULL);
      swarm_run(s, (SEGMENTS + 1) * SEGMENT_US + late_us);
      const size_t late = swarm_add(s, NULL);
      swarm_connect(s, late, 0);
      swarm_run(s, s->now_us + 5 * SECOND);
      EXPECT(weft_engine_done(s->node[late].engine) && !s->node[late].wrong);
      EXPECT(s->node[late].read > 0 || late_us > SECOND); // older than the lag: no node gives it
      swarm_free(s);
    }
}
END_TEST

// A live input with a rate begins 8 s after all nodes came, and then pauses for 8 s, longer than
// the lag: nothing is late for that.
START_TEST(live_waits_for_a_late_and_for_a_pausing_input) {
  swarm *s = live(7);
  s->options.rate_bits_per_s = (uint64_t)(SEGMENT * 8 * SECOND / SEGMENT_US);
  s->feed_us = 8 * SECOND;
  swarm_start(s, NULL);
  for (size_t i = 1; i < 6; i++)
    swarm_add(s, NULL);
  mesh(s, 6, 3);
  swarm_run(s, 8 * SECOND + SEGMENTS / 2 * SEGMENT_US);
  s->feed_us += 8 * SECOND;
  swarm_run(s, SEGMENTS * SEGMENT_US + 26 * SECOND);
  for (size_t i = 1; i < 6; i++) {
    const weft_engine_statistics x = swarm_statistics(s, i);
    EXPECT(!s->node[i].wrong && x.due >= SEGMENTS && x.in_time == x.due);
    EXPECT(x.startup_us <= 11 * SECOND && weft_engine_done(s->node[i].engine));
  }
  swarm_free(s);
}
END_TEST

START_TEST(live_plays_with_checksums) {
  swarm *s = live(4);
  s->fate = lossy;
  s->options.checksum_us = 200000;
  s->options.spread_us = 100000;
  expect_live(s, 12);
}
END_TEST

// Every peer has the source as neighbour, which can send four copies only: new segments still get
// out, and the peers do the rest.
START_TEST(a_crowd_at_the_source_is_served_by_itself) {
  swarm *s = live(12);
  s->fate = lossy;
  s->options.neighbours_max = 40;
  s->options.congestion = true;
  const uint64_t rate = (uint64_t)(SEGMENT * 8 * SECOND / SEGMENT_US);
  swarm_start(s, &(weft_engine_self){.upload_bits_per_s = rate * 10});
  for (size_t i = 1; i <= 32; i++)
    swarm_add(s, &(weft_engine_self){.upload_bits_per_s = rate * 12});
  for (size_t i = 1; i <= 32; i++) {
    swarm_connect(s, i, 0);
    for (size_t d = 1; d <= 4; d++)
      swarm_connect(s, i, 1 + (i + d * d - 1) % 32);
  }
  swarm_run(s, SEGMENTS * SEGMENT_US + 10 * SECOND);
  double due = 0, in_time = 0;
  for (size_t i = 1; i <= 32; i++) {
    const weft_engine_statistics x = swarm_statistics(s, i);
    due += (double)x.due;
    in_time += (double)x.in_time;
    EXPECT(!s->node[i].wrong);
  }
  EXPECT(in_time >= 0.99 * due && due > 32 * 80);
  EXPECT(s->node[0].data_sent < (uint64_t)INPUT_BYTES * 8);
  swarm_free(s);
}
END_TEST

START_TEST(late_joiners_of_a_live_stream_start_near_its_edge) {
  swarm *s = live(5);
  swarm_start(s, NULL);
  for (size_t i = 1; i < 5; i++)
    swarm_add(s, NULL);
  mesh(s, 5, 2);
  swarm_run(s, 6 * SECOND);
  const size_t late = swarm_add(s, NULL);
  s->node[late].next = 40; // it must not get anything much older
  swarm_connect(s, late, 3);
  swarm_connect(s, late, 4);
  swarm_run(s, SEGMENTS * SEGMENT_US + 10 * SECOND);
  const weft_engine_statistics x = swarm_statistics(s, late);
  EXPECT(x.startup_us >= 0 && x.startup_us <= 2 * SECOND);
  EXPECT(continuity(s, late) == 1.0 && !s->node[late].wrong && x.due > 50);
  // All nodes play the same segment at the same time, as nearly as delays are known.
  int64_t here, there;
  EXPECT_OK(weft_engine_play_time(s->node[late].engine, 100, &here));
  EXPECT_OK(weft_engine_play_time(s->node[1].engine, 100, &there));
  EXPECT(llabs(here - there) < 200000);
  swarm_free(s);
}
END_TEST

// Once a second a peer dies without a word and another comes; those that stay hardly notice.
START_TEST(live_goes_on_through_churn) {
  swarm *s = live(6);
  s->fate = lossy;
  s->options.neighbours_target = 4;
  s->options.addresses_max = 32;
  s->options.timers.silent_us = 2 * SECOND;
  s->options.timers.exchange_us = SECOND;
  s->options.timers.keep_us = 500000;
  swarm_start(s, NULL);
  for (size_t i = 1; i < 14; i++)
    swarm_add(s, NULL);
  mesh(s, 14, 3);
  size_t next = 5;
  for (int64_t at = 3; at < 11; at++) {
    swarm_run(s, at * SECOND);
    swarm_kill(s, next, at % 2 == 0);
    const size_t fresh = swarm_add(s, NULL);
    for (size_t known = 1; known <= 4; known++) // some may have no room
      swarm_connect(s, fresh, known);
    next++;
  }
  swarm_run(s, SEGMENTS * SEGMENT_US + 10 * SECOND);
  for (size_t i = 1; i < s->nodes; i++) {
    EXPECT(!s->node[i].wrong);
    if (s->node[i].engine)
      EXPECT(continuity(s, i) >= 0.95);
  }
  swarm_free(s);
}
END_TEST

START_TEST(live_ends_when_the_source_leaves) {
  for (int polite = 0; polite < 2; polite++) {
    swarm *s = live(7);
    s->options.timers.silent_us = 2 * SECOND;
    s->options.timers.keep_us = 500000;
    swarm_start(s, NULL);
    for (size_t i = 1; i < 5; i++)
      swarm_add(s, NULL);
    mesh(s, 5, 2);
    swarm_run(s, 6 * SECOND);
    swarm_kill(s, 0, polite);
    swarm_run(s, 20 * SECOND);
    for (size_t i = 1; i < 5; i++) {
      const weft_engine_statistics x = swarm_statistics(s, i);
      // What the source had spread is played; what it never made is not waited for by skipping.
      EXPECT(x.due >= 40 && x.skipped <= 2 && !s->node[i].wrong);
      EXPECT(s->node[i].lost[polite ? WEFT_LOST_LEFT : WEFT_LOST_SILENT] >= (i == 1));
      EXPECT(weft_engine_deadline(s->node[i].engine) > s->now_us);
    }
    swarm_free(s);
  }
}
END_TEST

// --- VoD

static swarm *vod(uint64_t salt) {
  swarm *s = swarm_new(input, sizeof input, salt);
  s->options.mode = WEFT_MODE_VOD;
  s->options.rate_bits_per_s = (uint64_t)(SEGMENT * 8 * SECOND / SEGMENT_US);
  s->options.startup_us = 300000;
  return s;
}

START_TEST(vod_plays_at_its_rate_from_any_time_of_joining) {
  swarm *s = vod(8);
  s->fate = lossy;
  swarm_start(s, &(weft_engine_self){.stream_bytes = INPUT_BYTES});
  for (size_t i = 1; i < 4; i++)
    swarm_add(s, NULL);
  mesh(s, 4, 2);
  swarm_run(s, 5 * SECOND);
  const size_t late = swarm_add(s, NULL); // from byte 0
  swarm_connect(s, late, 0);
  swarm_connect(s, late, 2);
  swarm_run(s, SEGMENTS * SEGMENT_US + 12 * SECOND);
  for (size_t i = 1; i <= late; i++) {
    const weft_engine_statistics x = swarm_statistics(s, i);
    EXPECT(s->node[i].read == SEGMENTS + 1 && !s->node[i].wrong);
    EXPECT(x.due == SEGMENTS + 1 && x.in_time + x.stalls >= x.due && x.stalls <= 1);
    EXPECT(weft_engine_done(s->node[i].engine));
    EXPECT(x.startup_us <= 2 * SECOND);
  }
  swarm_free(s);
}
END_TEST

START_TEST(vod_seeks_forwards_and_back) {
  swarm *s = vod(9);
  swarm_start(s, &(weft_engine_self){.stream_bytes = INPUT_BYTES});
  swarm_add(s, NULL);
  swarm_add(s, &(weft_engine_self){.start = 20});
  mesh(s, 3, 2);
  swarm_run(s, 2 * SECOND);
  static const uint64_t places[] = {100, 3, 8, 60, 59};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    EXPECT_OK(weft_engine_seek(s->node[1].engine, places[i], s->now_us));
    s->node[1].next = places[i];
    const uint64_t read = s->node[1].read;
    swarm_run(s, s->now_us + 2 * SECOND);
    EXPECT(s->node[1].read >= read + 10 && s->node[1].next >= places[i] + 10);
  }
  EXPECT_STATUS(weft_engine_seek(s->node[1].engine, 1000, s->now_us), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_engine_seek(s->node[0].engine, 1, s->now_us), WEFT_E_STATE);
  swarm_run(s, s->now_us + 20 * SECOND);
  for (size_t i = 1; i < 3; i++)
    EXPECT(weft_engine_done(s->node[i].engine) && !s->node[i].wrong);
  swarm_free(s);
}
END_TEST

// After two jumps in a row, reported together, neighbours must not take what was here before the
// first jump for being here still.
START_TEST(who_seeks_there_and_back_gets_again_what_was_dropped) {
  for (int coded = 0; coded < 2; coded++) {
    swarm *s = swarm_new(input, sizeof input, 19);
    s->codec = coded ? weft_codec_rlnc_table(&s->rlnc) : weft_codec_blocks_table(&s->blocks);
    s->options.policy = coded ? &weft_policy_push : &weft_policy_rarest;
    swarm_start(
        s, &(weft_engine_self){.stream_bytes = INPUT_BYTES, .upload_bits_per_s = SEGMENT * 800});
    swarm_add(s, NULL);
    swarm_connect(s, 1, 0);
    while (s->node[1].read < 20 && s->now_us < 10 * SECOND)
      swarm_run(s, s->now_us + 10000);
    const uint64_t back = s->node[1].next + 1;
    EXPECT_OK(weft_engine_seek(s->node[1].engine, 100, s->now_us));
    EXPECT_OK(weft_engine_seek(s->node[1].engine, back, s->now_us));
    s->node[1].next = back;
    swarm_run(s, s->now_us + 10 * SECOND);
    EXPECT(weft_engine_done(s->node[1].engine) && !s->node[1].wrong);
    swarm_free(s);
  }
}
END_TEST

static fixture_fate dead_for_a_while(swarm *s, size_t from, size_t to) {
  (void)from, (void)to;
  const bool dead = s->now_us > 3 * SECOND && s->now_us < 7 * SECOND;
  return (fixture_fate){.copies = !dead, .delay_us = 10000};
}

START_TEST(vod_stalls_and_goes_on) {
  swarm *s = vod(10);
  s->options.window = 8;
  s->fate = dead_for_a_while;
  swarm_start(s, &(weft_engine_self){.stream_bytes = INPUT_BYTES});
  swarm_add(s, NULL);
  swarm_connect(s, 1, 0);
  swarm_run(s, SEGMENTS * SEGMENT_US + 15 * SECOND);
  const weft_engine_statistics x = swarm_statistics(s, 1);
  EXPECT(x.stalls >= 1 && s->node[1].stalls == x.stalls && s->node[1].resumes == x.stalls);
  EXPECT(x.stalled_us > 2 * SECOND && x.stalled_us < 6 * SECOND);
  EXPECT(s->node[1].read == SEGMENTS + 1 && !s->node[1].wrong);
  swarm_free(s);
}
END_TEST

// A node that joins a bulk stream that does not wait starts with the oldest segment there is.
START_TEST(a_late_joiner_starts_with_the_oldest_segment_there_is) {
  swarm *s = vod(11);
  s->options.mode = WEFT_MODE_BULK;
  s->feed_every_us = SEGMENT_US;
  swarm_start(s, NULL);
  swarm_add(s, NULL);
  swarm_connect(s, 1, 0);
  swarm_run(s, 5 * SECOND);
  const size_t late = swarm_add(s, &(weft_engine_self){.start = WEFT_START_OLDEST});
  swarm_connect(s, late, 0);
  swarm_connect(s, late, 1);
  swarm_run(s, SEGMENTS * SEGMENT_US + 10 * SECOND);
  EXPECT(s->node[1].read == SEGMENTS + 1 && !s->node[1].wrong);
  EXPECT(s->node[late].read > 60 && !s->node[late].wrong);
  EXPECT(weft_engine_done(s->node[late].engine));
  swarm_free(s);
}
END_TEST

// At a full source, the place of a killed neighbour goes to another node as soon as that may be
// gone and a node seeks a place; otherwise the place is kept, as silence has many reasons.
static void expect_place(bool sought) {
  enum { PLACES = 4 };
  swarm *s = live(sought ? 12 : 13);
  s->options.neighbours_max = PLACES;
  swarm_start(s, NULL);
  for (size_t i = 1; i <= PLACES + 1; i++) {
    swarm_add(s, NULL);
    if (i <= PLACES)
      swarm_connect(s, i, 0);
  }
  swarm_run(s, 2 * SECOND);
  swarm_kill(s, 1, false);
  swarm_run(s, 2 * SECOND + SEGMENT_US);
  if (sought)
    swarm_connect(s, PLACES + 1, 0); // refused: that is not known yet
  swarm_run(s, 5 * SECOND);
  EXPECT((s->node[PLACES + 1].lost[WEFT_LOST_FULL] > 0) == sought);
  EXPECT(s->node[0].lost[WEFT_LOST_SILENT] == sought);
  swarm_connect(s, PLACES + 1, 0);
  swarm_run(s, 8 * SECOND);
  EXPECT((s->node[PLACES + 1].plays > 0) == sought);
  swarm_free(s);
}

START_TEST(the_dead_give_up_places_that_others_want) { expect_place(true); }
END_TEST

START_TEST(a_place_that_nobody_wants_is_kept_in_silence) { expect_place(false); }
END_TEST

int main(void) {
  Suite *suite = suite_create("playback");
  TCase *t = tcase_create("playback");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, live_plays_everything_in_time);
  tcase_add_test(t, live_plays_through_losses);
  tcase_add_test(t, live_plays_by_rate_without_trust);
  tcase_add_test(t, who_joins_at_the_end_of_a_live_stream_ends_with_it);
  tcase_add_test(t, live_waits_for_a_late_and_for_a_pausing_input);
  tcase_add_test(t, live_plays_with_checksums);
  tcase_add_test(t, a_crowd_at_the_source_is_served_by_itself);
  tcase_add_test(t, late_joiners_of_a_live_stream_start_near_its_edge);
  tcase_add_test(t, live_goes_on_through_churn);
  tcase_add_test(t, live_ends_when_the_source_leaves);
  tcase_add_test(t, vod_plays_at_its_rate_from_any_time_of_joining);
  tcase_add_test(t, vod_seeks_forwards_and_back);
  tcase_add_test(t, who_seeks_there_and_back_gets_again_what_was_dropped);
  tcase_add_test(t, vod_stalls_and_goes_on);
  tcase_add_test(t, a_late_joiner_starts_with_the_oldest_segment_there_is);
  tcase_add_test(t, the_dead_give_up_places_that_others_want);
  tcase_add_test(t, a_place_that_nobody_wants_is_kept_in_silence);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
