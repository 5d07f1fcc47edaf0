// SPDX-License-Identifier: Apache-2.0
// Rules of docs/protocol.md whose breach a swarm hardly notices: playback after a sleep, which
// neighbour a spoilt segment convicts and which sends it again, what is announced meanwhile, and
// which neighbours are told to stop.
#include <string.h>

#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

// What a neighbour sent that has left does not convict the one that has its number now.
START_TEST(nobody_is_banned_for_who_was_there_before) {
  for (int gone = 0; gone < 2; gone++) {
    scene s;
    uint8_t out[WEFT_DATAGRAM_MAX], sums[N * WEFT_CHECKSUM_ROWS] = {1};
    scene_new(&s, WEFT_MODE_LIVE, false, true, SECOND);
    scene_add(&s, 0, 0, 0);
    for (uint64_t i = 0; i < 4; i++)
      scene_manifest(&s, 0, i % 2);
    EXPECT_OK(scene_block(&s, 0, 1, 0, true));
    if (gone) {
      EXPECT_OK(weft_engine_remove_neighbour(s.engine, 0));
      scene_add(&s, 0, 0, 0);
    }
    scene_run(&s, 400000);
    const weft_checksum c = {
        .segment = 1, .blocks = N, .made_us = (uint64_t)s.now_us, .seed = 3, .sums = sums};
    EXPECT_OK(scene_say(&s, 0, out, weft_checksum_write(&c, out)));
    const weft_engine_statistics x = scene_statistics(&s);
    EXPECT(x.received_polluted == 1 && x.banned == !gone);
    EXPECT(x.received_innovative == 0 && x.received_dependent == 0); // it counted before
    scene_free(&s);
  }
}
END_TEST

static bool signed_well;

static bool verify(void *user, const uint8_t *text, size_t bytes,
                   const uint8_t signature[WEFT_SIGNATURE_BYTES]) {
  (void)user, (void)text, (void)bytes, (void)signature;
  return signed_well;
}

// A neighbour that gives more forged signatures than good ones is banned; one that gives more good
// ones stays, as a transport without sessions may damage what an honest neighbour passes on.
START_TEST(more_forged_signatures_than_good_ones_are_banned) {
  for (size_t good = 0; good < 2; good++) {
    scene s;
    uint64_t segment = 0;
    size_t forged = 0;
    scene_new(&s, WEFT_MODE_VOD, false, true, 0);
    weft_trust trust = *s.options.trust;
    trust.verify = verify;
    s.options.trust = &trust;
    scene_add(&s, 0, 0, 0);
    signed_well = true;
    while (segment < 3) // it has no credit for this one
      scene_manifest(&s, 0, segment++);
    for (; forged < 100 && scene_statistics(&s).banned == 0; forged++) {
      signed_well = false;
      scene_manifest(&s, 0, segment);
      signed_well = true;
      for (size_t i = 0; i < good; i++)
        scene_manifest(&s, 0, segment++);
    }
    EXPECT(forged == (good ? 100 : 16));
    scene_free(&s);
  }
}
END_TEST

// A node that slept for longer than its window continues at the stream's current position, and
// counts only what it slept through as passed over.
START_TEST(who_slept_goes_on_at_the_edge) {
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  scene_add(&s, 0, 1, 0);
  for (uint64_t segment = 0; segment < 6; segment++) {
    scene_whole(&s, 0, segment);
    scene_whole(&s, 0, segment);
    scene_run(&s, SEGMENT_US);
  }
  const weft_engine_statistics before = scene_statistics(&s);
  EXPECT(before.in_time >= 2 && before.skipped == 0 && before.passed_over == 0);
  s.now_us += 100 * (int64_t)SECOND;
  for (uint64_t segment = 104; segment < 110; segment++) { // the first of them is due in a second
    scene_run(&s, STEP_US);
    scene_map(&s, 0, segment + 1, 0);
    scene_whole(&s, 0, segment);
    scene_run(&s, SEGMENT_US - STEP_US);
  }
  const weft_engine_statistics after = scene_statistics(&s);
  EXPECT(after.skipped == 0 && after.in_time >= before.in_time + 4);
  EXPECT(after.passed_over >= 95 && after.passed_over <= 105);
  scene_free(&s);
}
END_TEST

// A node that got nothing and then slept for a part of its window reports all that it missed,
// though the window has moved on.
START_TEST(what_was_slept_through_is_told) {
  enum { CAME = 6, SLEPT = 10 };
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  scene_add(&s, 0, 1, 0);
  for (uint64_t segment = 0; segment < CAME + 6; segment++) {
    scene_map(&s, 0, segment + 1, 0);
    if (segment < CAME)
      scene_whole(&s, 0, segment);
    scene_run(&s, SEGMENT_US);
    while (weft_engine_release(s.engine) == WEFT_OK)
      ;
  }
  const weft_engine_statistics before = scene_statistics(&s);
  EXPECT(before.in_time > 0 && before.skipped > 0);
  s.now_us += SLEPT * SEGMENT_US;
  scene_map(&s, 0, CAME + 6 + SLEPT, 0);
  scene_run(&s, STEP_US);
  const weft_engine_statistics x = scene_statistics(&s);
  EXPECT(x.skipped >= before.skipped + SLEPT - 1 && x.passed_over == 0);
  EXPECT(s.skips == x.skipped && s.plays == x.in_time);
  EXPECT(s.skip_first == CAME && s.skip_last == CAME + x.skipped - 1);
  scene_free(&s);
}
END_TEST

// Segments that the source got in a burst are due within milliseconds of each other, as a whole
// window of them would be: a node that is slightly late, on a busy machine, still plays what it
// has.
START_TEST(who_is_late_plays_what_is_here) {
  enum { BURST = 8, LATE_US = 200000 };
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, true, 0);
  s.options.rate_bits_per_s = 0; // times are those of manifests
  scene_add(&s, 0, 0, 0);
  for (int again = 0; again < 2; again++) // it begins only after it has been told where
    for (uint64_t segment = 0; segment < BURST; segment++)
      scene_manifest_at(&s, 0, segment, SECOND + segment * 1000);
  for (uint64_t segment = 0; segment < BURST; segment++)
    scene_whole(&s, 0, segment);
  scene_run(&s, SECOND);
  EXPECT(s.decoded == BURST && scene_statistics(&s).due == 0);
  int64_t due_us;
  EXPECT_OK(weft_engine_play_time(s.engine, 0, &due_us));
  s.now_us = due_us + LATE_US;
  scene_run(&s, SECOND);
  const weft_engine_statistics x = scene_statistics(&s);
  EXPECT(x.due == BURST && x.in_time == BURST && x.skipped == 0);
  scene_free(&s);
}
END_TEST

// Makes a segment that neighbour 0 spoilt and that neighbour 1 has whole.
static void spoilt_new(scene *s) {
  scene_new(s, WEFT_MODE_VOD, false, true, 0);
  scene_add(s, 0, 0, 0);
  scene_add(s, 1, 1, 0);
  scene_manifest(s, 0, 0);
  for (size_t i = 0; i < N; i++)
    (void)scene_block(s, 0, 0, i, i == 3);
}

// After a hash failure, one neighbour that has the segment sends it alone; what it sent before it
// was asked does not count, as it may not have verified that yet.
START_TEST(a_spoilt_segment_comes_from_one_that_was_asked) {
  scene s;
  spoilt_new(&s);
  EXPECT(scene_statistics(&s).hash_failures == 1);
  scene_run(&s, 2 * STEP_US); // the other one is chosen, and asked
  scene_whole(&s, 1, 0);
  scene_run(&s, STEP_US);
  EXPECT(s.decoded == 0);
  scene_run(&s, 300000); // longer than the assumed round trip
  scene_whole(&s, 0, 0);
  scene_run(&s, STEP_US);
  EXPECT(s.decoded == 0);
  scene_whole(&s, 1, 0);
  scene_run(&s, STEP_US);
  EXPECT(s.decoded == 1 && scene_statistics(&s).hash_failures == 1);
  scene_free(&s);
}
END_TEST

// The only neighbour that has a spoilt segment is asked again: what it sent may be lost.
START_TEST(the_only_one_who_has_a_spoilt_segment_is_asked_again) {
  scene s;
  spoilt_new(&s);
  scene_run(&s, SECOND);
  EXPECT(scene_statistics(&s).hash_failures == 1 && s.asked[1] >= 1);
  const size_t before = s.asked[1];
  for (int i = 0; i < 20; i++) {
    scene_map(&s, 1, 1, 0); // it is there
    scene_run(&s, SECOND);
  }
  EXPECT(s.asked[1] >= before + 10);
  scene_free(&s);
}
END_TEST

// Returns the newest map within a second, and the rank of its first segment.
static uint64_t announced(scene *s, uint16_t *rank) {
  uint64_t first = UINT64_MAX;
  for (const int64_t until_us = s->now_us + SECOND; s->now_us < until_us; s->now_us += STEP_US) {
    weft_burst burst;
    weft_message m;
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
      for (size_t i = 0; i < burst.count; i++)
        if (weft_message_parse(burst.datagrams[i].data, burst.datagrams[i].bytes, 5, N, K, &m) ==
                WEFT_OK &&
            m.kind == WEFT_MESSAGE_MAP && m.as.map.count > 0) {
          first = m.as.map.first;
          *rank = weft_map_rank(&m.as.map, 0);
        }
  }
  return first;
}

// A segment that is not verified is not announced as complete: neighbours would send no more of it,
// and a source that loads on request would give its place to another, so a node that lacks its
// manifest would wait for ever.
START_TEST(what_is_not_verified_is_not_announced_as_complete) {
  for (int coded = 0; coded < 2; coded++) {
    scene s;
    uint16_t rank = 0;
    scene_new(&s, WEFT_MODE_VOD, false, true, 0);
    weft_codec_blocks blocks = {.ctx = s.ctx};
    weft_engine_free(s.engine);
    s.codec = coded ? s.codec : weft_codec_blocks_table(&blocks);
    const weft_engine_self self = {.rng = weft_rng_chacha_table(&s.chacha)};
    EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &s.engine));
    scene_add(&s, 0, 1, 0);
    scene_whole(&s, 0, 0);
    EXPECT(announced(&s, &rank) == 0 && rank == N - 1);
    scene_manifest(&s, 0, 0);
    EXPECT(announced(&s, &rank) == 1 && rank == 0);
    scene_free(&s);
  }
}
END_TEST

// Counts how often the two neighbours are told, in one step, to stop sending segment 0.
static void braked(scene *s, size_t brakes[2]) {
  weft_burst burst;
  weft_message m;
  brakes[0] = brakes[1] = 0;
  weft_engine_tick(s->engine, s->now_us);
  while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++)
      if (weft_message_parse(burst.datagrams[i].data, burst.datagrams[i].bytes, 5, N, K, &m) ==
              WEFT_OK &&
          m.kind == WEFT_MESSAGE_BRAKE) {
        EXPECT(m.as.brake == 0);
        brakes[burst.neighbour]++;
      }
  s->now_us += STEP_US;
}

// Neighbours that lack some of a segment are told at once that it is complete; those that go on
// sending, however much, every 20 ms.
START_TEST(what_is_complete_is_braked) {
  scene s;
  size_t brakes[2], all = 0;
  scene_new(&s, WEFT_MODE_VOD, false, false, 0);
  scene_add(&s, 0, 1, 0); // it has segment 0
  scene_add(&s, 1, 0, WINDOW);
  scene_run(&s, SECOND);
  for (size_t i = 0; i + 1 < N; i++)
    EXPECT_OK(scene_block(&s, 0, 0, i, false));
  braked(&s, brakes);
  EXPECT(brakes[0] == 0 && brakes[1] == 0);
  EXPECT_OK(scene_block(&s, 0, 0, N - 1, false));
  braked(&s, brakes);
  EXPECT(brakes[0] == 0 && brakes[1] == 1);
  for (int step = 0; step < 20; step++) {
    scene_whole(&s, 0, 0);
    braked(&s, brakes);
    EXPECT(brakes[0] <= 1 && brakes[1] == 0);
    all += brakes[0];
  }
  EXPECT(all == 10);
  scene_free(&s);
}
END_TEST

// A source of signed segments keeps one of which a neighbour has all packets until that neighbour
// says that it has verified it: it may need it again.
START_TEST(what_is_not_verified_is_kept) {
  static const uint8_t data[N * K];
  for (int trust = 0; trust < 2; trust++) {
    scene s;
    uint8_t out[WEFT_DATAGRAM_MAX];
    size_t put = 0;
    scene_new(&s, WEFT_MODE_BULK, true, trust, 0);
    scene_add(&s, 0, 0, 0);
    for (; weft_engine_source_ready(s.engine); put++)
      EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, s.now_us, s.now_us));
    EXPECT(put == WINDOW);
    const weft_map m = {.horizon = WINDOW,
                        .count = WINDOW,
                        .entry_bytes = 2,
                        .suppliers = 1,
                        .stamps = {.stamp = 1}};
    const size_t bytes = weft_map_write(&m, out);
    for (size_t i = 0; i < WINDOW; i++)
      weft_map_put_rank(out, i, N, 0, false);
    EXPECT_OK(scene_say(&s, 0, out, bytes));
    EXPECT(weft_engine_source_ready(s.engine) == !trust);
    scene_map(&s, 0, WINDOW, 0);
    EXPECT(weft_engine_source_ready(s.engine));
    scene_free(&s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("spoilt");
  TCase *t = tcase_create("spoilt");
  tcase_add_test(t, nobody_is_banned_for_who_was_there_before);
  tcase_add_test(t, more_forged_signatures_than_good_ones_are_banned);
  tcase_add_test(t, who_slept_goes_on_at_the_edge);
  tcase_add_test(t, what_was_slept_through_is_told);
  tcase_add_test(t, who_is_late_plays_what_is_here);
  tcase_add_test(t, a_spoilt_segment_comes_from_one_that_was_asked);
  tcase_add_test(t, the_only_one_who_has_a_spoilt_segment_is_asked_again);
  tcase_add_test(t, what_is_not_verified_is_not_announced_as_complete);
  tcase_add_test(t, what_is_complete_is_braked);
  tcase_add_test(t, what_is_not_verified_is_kept);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
