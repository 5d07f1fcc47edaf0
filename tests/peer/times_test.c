// SPDX-License-Identifier: Apache-2.0
// When what is played, message by message: where a live viewer begins, at which times, what is
// late, and what a stall moves. Swarms play nearly everything in time even if these rules are
// broken.
#include "peer/engine/internal.h"
#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { LAG_US = 3 * SECOND, STARTUP_US = SECOND };

static int64_t due(const scene *s, uint64_t segment) {
  int64_t at_us;
  EXPECT_OK(weft_engine_play_time(s->engine, segment, &at_us));
  return at_us;
}

static void run_until(scene *s, int64_t until_us) {
  if (until_us > s->now_us)
    scene_run(s, until_us - s->now_us);
}

static uint64_t missing; // of the engine that was asked last
static int64_t lasts_us; // a segment's playing time, of the same

static bool note_missing(void *user, const weft_policy_view *view, const weft_rng *rng,
                         weft_policy_choice *out) {
  (void)user, (void)rng, (void)out;
  missing = view->missing;
  lasts_us = view->segment_us;
  return false;
}
static const weft_policy noting = {.name = "noting", .pick = note_missing};

// --- Clocks

// A least difference of clocks counts for the minute that it is from and the next one.
START_TEST(a_least_difference_counts_for_one_minute_or_two) {
  static const int64_t least_at_s[] = {0, 1, 30, 59, 60, 61, 100};
  for (size_t i = 0; i < sizeof least_at_s / sizeof *least_at_s; i++) {
    int64_t pair[2] = {INT64_MAX, INT64_MAX}, turn_us = 0;
    for (int64_t t = 0; t < 400; t++) {
      const bool least = t == least_at_s[i];
      weft_clock_learn(pair, &turn_us, least ? -7 : 100, 5 * SECOND + t * SECOND);
      const int64_t offset = weft_clock_offset(pair), age = t - least_at_s[i];
      EXPECT(age < 0 || age > 60 || offset == -7);
      EXPECT((age >= 0 && age < 120) || offset == 100);
    }
  }
}
END_TEST

// --- Live, by signed times

static void begin_signed(scene *s) {
  scene_new(s, WEFT_MODE_LIVE, false, true, 0);
  s->options.rate_bits_per_s = 0;
  s->options.policy = &noting;
  scene_add(s, 0, 0, 0);
}

// A live viewer begins so far back from the newest segment that the first can be here when it is
// due; the older of two manifests comes last.
START_TEST(a_live_viewer_counts_back_by_two_times) {
  scene s;
  begin_signed(&s);
  const int64_t begun_us = s.now_us;
  scene_manifest(&s, 0, 5);
  scene_run(&s, STEP_US);
  scene_manifest(&s, 0, 4);
  EXPECT(due(&s, 5) == begun_us + LAG_US);
  const int64_t first_us = due(&s, 4); // that of 3 would be in 990 ms
  EXPECT(first_us == due(&s, 5) - SEGMENT_US && due(&s, 3) == first_us - SEGMENT_US);
  run_until(&s, first_us);
  EXPECT(s.skips == 0);
  scene_run(&s, STEP_US);
  EXPECT(s.skips == 1 && s.skip_first == 4 && missing == 5);
  run_until(&s, due(&s, 5) + 5 * SEGMENT_US);
  EXPECT(s.skips == 2 && s.skip_last == 5); // more are not known
  const weft_engine_statistics x = scene_statistics(&s);
  EXPECT(x.due == 2 && x.skipped == 2 && x.in_time == 0 && x.passed_over == 0);
  scene_free(&s);
}
END_TEST

// With one manifest it begins there: at once if it is of the first segment, otherwise when no
// second one comes within 300 ms, however often the first does.
START_TEST(a_live_viewer_begins_by_one_time) {
  enum { FIRST_AGAIN, OTHER_AGAIN, OTHER_ONCE };
  const uint64_t segment = _i == FIRST_AGAIN ? 0 : 5;
  scene s;
  begin_signed(&s);
  const int64_t begun_us = s.now_us, due_us = begun_us + LAG_US;
  scene_manifest_at(&s, 0, segment, 50 * SECOND);
  EXPECT(due(&s, segment) == due_us);
  scene_run(&s, STEP_US);
  for (int i = 0; i < 20; i++) {
    EXPECT(i > 1 || !segment || weft_engine_deadline(s.engine) <= begun_us + 300000);
    scene_run(&s, SECOND / 10);
    if (_i != OTHER_ONCE)
      scene_manifest_at(&s, 0, segment, 50 * SECOND);
  }
  if (_i != OTHER_ONCE)
    scene_whole(&s, 0, segment); // it is accepted, as playback has begun
  EXPECT(scene_statistics(&s).received_outside == 0);
  run_until(&s, due_us);
  EXPECT(s.decoded == (_i != OTHER_ONCE) && s.plays == 0 && s.skips == 0);
  scene_run(&s, STEP_US);
  EXPECT(s.plays == (_i != OTHER_ONCE) && s.skips == (_i == OTHER_ONCE));
  scene_free(&s);
}
END_TEST

// A segment plays at its own signed time, else at that of the next that has one, else as the newest
// and the oldest here imply.
START_TEST(times_are_as_signed) {
  scene s;
  begin_signed(&s);
  enum { ONE_US = 120000, TWO_US = 600000, THREE_US = SECOND, EACH_US = THREE_US / 3 };
  const int64_t zero_us = s.now_us - THREE_US + LAG_US; // the last is the fastest
  scene_manifest_at(&s, 0, 0, 0);
  scene_manifest_at(&s, 0, 0, 0); // once to tell the time, and once to be kept
  scene_manifest_at(&s, 0, 1, ONE_US);
  scene_manifest_at(&s, 0, 3, THREE_US);
  EXPECT(due(&s, 0) == zero_us && due(&s, 1) == zero_us + ONE_US);
  EXPECT(due(&s, 2) == zero_us + THREE_US && due(&s, 3) == zero_us + THREE_US);
  EXPECT(due(&s, 5) == zero_us + THREE_US + 2 * EACH_US);
  EXPECT(due(&s, UINT64_C(1) << 62) > INT64_MAX / 8);
  run_until(&s, due(&s, 1) + 2 * STEP_US);
  EXPECT(s.skips == 2);
  scene_manifest_at(&s, 0, 2, TWO_US);
  EXPECT(due(&s, 2) == zero_us + TWO_US);
  EXPECT(due(&s, 5) == zero_us + THREE_US + 2 * EACH_US);
  run_until(&s, due(&s, 2));
  EXPECT(s.skips == 2);
  scene_run(&s, STEP_US);
  EXPECT(s.skips == 3 && s.skip_last == 2);
  scene_free(&s);
}
END_TEST

// A source whose clock stood still is noticed when all that comes in two seconds, eight times at
// least, is later than the fastest by more than half of the lag.
START_TEST(a_clock_that_stood_still_is_noticed) {
  enum { MUCH, LITTLE, ONCE_IN_TIME, SHORT, SELDOM, AHEAD_US = 100 * SECOND };
  const int64_t late_us = _i == LITTLE ? LAG_US / 2 : LAG_US / 2 + STEP_US;
  const int64_t each_us = _i == SHORT ? SECOND / 8 : _i == SELDOM ? SECOND / 3 : SECOND / 4;
  const uint64_t more = _i == SHORT ? 16 : _i == SELDOM ? 7 : 9;
  scene s;
  begin_signed(&s);
  int64_t at_us = 0;
  for (uint64_t i = 0; i < 8 + more; i++) {
    const bool late = i >= 8 && !(_i == ONCE_IN_TIME && i == 12);
    at_us = s.now_us + AHEAD_US - (late ? late_us : 0);
    scene_manifest_at(&s, 0, i, (uint64_t)at_us);
    if (i + 1 < 8 + more)
      scene_run(&s, each_us);
  }
  EXPECT(due(&s, 7 + more) == at_us - AHEAD_US + LAG_US + (_i == MUCH ? late_us : 0));
  scene_free(&s);
}
END_TEST

// Signed times as far apart as a manifest can have them do not make segments so long, nor so much
// shorter than nothing, that policies cannot multiply them.
START_TEST(absurd_times_do_not_overflow) {
  const uint64_t far = UINT64_C(1) << 60;
  const int64_t most_us = INT64_C(1) << 48;
  const bool falls = _i == 1;
  scene s;
  begin_signed(&s);
  scene_manifest_at(&s, 0, 0, falls ? far : 1);
  scene_manifest_at(&s, 0, 1, falls ? 1 : far);
  scene_run(&s, STEP_US);
  EXPECT(lasts_us == (falls ? 0 : most_us));
  scene_free(&s);
}
END_TEST

// --- Live, by the rate

static void begin_by_rate(scene *s) {
  scene_new(s, WEFT_MODE_LIVE, false, false, 0);
  s->options.policy = &noting;
  scene_add(s, 0, 1, 0); // this begins the stream
  scene_add(s, 1, 0, WINDOW);
}

START_TEST(times_by_the_rate_are_exact_and_do_not_wrap) {
  scene s;
  begin_by_rate(&s);
  const int64_t zero_us = s.now_us + LAG_US;
  for (unsigned bit = 0; bit < 42; bit++)
    EXPECT(due(&s, UINT64_C(1) << bit) == zero_us + (INT64_C(1) << bit) * SEGMENT_US);
  for (unsigned bit = 42; bit < 64; bit++)
    EXPECT(due(&s, UINT64_C(1) << bit) >= due(&s, UINT64_C(1) << 41));
  scene_free(&s);
}
END_TEST

// A late segment is skipped, and none of it given to others.
START_TEST(what_is_late_is_passed) {
  scene s;
  begin_by_rate(&s);
  scene_whole(&s, 0, 0);
  for (size_t i = 0; i < N / 2; i++)
    EXPECT_OK(scene_block(&s, 0, 1, i, false));
  scene_whole(&s, 0, 2);
  run_until(&s, due(&s, 1));
  scene_ask(&s, 1, 1, 2);
  scene_run(&s, STEP_US);
  EXPECT(s.data[1] == 2 || s.skips == 1);
  const size_t given = s.data[1];
  scene_ask(&s, 1, 1, 2);
  scene_run(&s, STEP_US);
  EXPECT(s.skips == 1 && s.skip_first == 1 && s.plays == 1 && s.data[1] == given && missing == 3);
  run_until(&s, due(&s, 2) + 2 * STEP_US);
  const weft_engine_statistics x = scene_statistics(&s);
  EXPECT(s.plays == 2 && x.due == 3 && x.in_time == 2 && x.skipped == 1);
  scene_free(&s);
}
END_TEST

// After a sleep, what is here is played; with nothing here, after a sleep longer than the window
// lasts, playback begins again, and what was neither read nor skipped is passed over.
START_TEST(who_slept_plays_what_is_here_or_begins_again) {
  enum { LONG, LONG_WITH_SOME, SHORT };
  const bool here = _i == LONG_WITH_SOME, again = _i == LONG;
  scene s;
  begin_by_rate(&s);
  scene_whole(&s, 0, 0);
  scene_whole(&s, 0, 2);
  run_until(&s, due(&s, 2) + 2 * STEP_US); // 1 was skipped
  EXPECT(s.plays == 2 && s.skips == 1);
  EXPECT_OK(scene_block(&s, 0, 4, 0, false));
  if (here)
    scene_whole(&s, 0, 3);
  EXPECT(weft_engine_buffered(s.engine) == (size_t)here);
  s.now_us += (_i == SHORT ? WINDOW - 4 : 100) * (int64_t)SECOND;
  const int64_t wanted_us = s.now_us + STARTUP_US;
  scene_run(&s, STEP_US);
  uint64_t next = 5;
  while (due(&s, next) < wanted_us)
    next++;
  const weft_engine_statistics x = scene_statistics(&s);
  EXPECT(s.plays == 2u + (size_t)here && x.due == (again ? 3 : 5));
  EXPECT(x.passed_over == (again ? next - 1 : 0)); // all but 1
  scene_free(&s);
}
END_TEST

// The window of a viewer that gets nothing moves on with what is skipped.
START_TEST(who_gets_nothing_goes_on) {
  enum { SEGMENTS = 3 * WINDOW };
  scene s;
  begin_by_rate(&s);
  for (uint64_t i = 2; i <= SEGMENTS; i++) {
    scene_run(&s, SEGMENT_US);
    scene_map(&s, 0, i, 0);
  }
  run_until(&s, due(&s, SEGMENTS));
  EXPECT(s.skips == SEGMENTS && missing == SEGMENTS);
  EXPECT(scene_statistics(&s).passed_over == 0);
  scene_free(&s);
}
END_TEST

// --- On demand

static void begin_on_demand(scene *s, int64_t startup_us) {
  scene_new(s, WEFT_MODE_VOD, false, false, 0);
  s->options.startup_us = startup_us;
  scene_add(s, 0, 0, 0);
}

// Playback on demand begins with all that there can be if a longer start is requested than the
// stream or a window holds.
START_TEST(playback_begins_with_what_there_can_be) {
  scene s;
  uint8_t out[WEFT_DATAGRAM_MAX];
  begin_on_demand(&s, 100 * (int64_t)SECOND);
  for (uint64_t i = 0; i < WINDOW; i++) {
    scene_run(&s, STEP_US);
    EXPECT(s.plays == 0 && weft_engine_buffered(s.engine) == i);
    scene_whole(&s, 0, i);
  }
  scene_run(&s, STEP_US);
  EXPECT(s.plays == 1);
  scene_free(&s);
  begin_on_demand(&s, 10 * SECOND);
  for (uint64_t i = 0; i < 3; i++)
    scene_whole(&s, 0, i);
  scene_run(&s, STEP_US);
  EXPECT(s.plays == 0);
  const weft_map map = {.end_known = true,
                        .end_bytes = 3 * N * K,
                        .first = 3,
                        .horizon = 3,
                        .back = 3,
                        .entry_bytes = 2,
                        .stamps = {.stamp = 1}};
  EXPECT_OK(scene_say(&s, 0, out, weft_map_write(&map, out)));
  scene_run(&s, STEP_US);
  EXPECT(s.plays == 1);
  scene_free(&s);
}
END_TEST

// A stall delays all that follows by its duration; it ends when what it waited for is here.
START_TEST(a_stall_moves_what_follows) {
  scene s;
  int64_t at_us;
  begin_on_demand(&s, 2 * SECOND);
  for (uint64_t i = 0; i < 6; i++)
    if (i != 2)
      scene_whole(&s, 0, i);
  EXPECT(weft_engine_buffered(s.engine) == 5);
  scene_run(&s, STEP_US);
  EXPECT(s.plays == 1);
  run_until(&s, due(&s, 2) + 2 * STEP_US);
  EXPECT(s.plays == 2);
  EXPECT_STATUS(weft_engine_play_time(s.engine, 3, &at_us), WEFT_PENDING);
  scene_run(&s, 5 * SECOND / 2);
  EXPECT(s.plays == 2);
  scene_whole(&s, 0, 2);
  const int64_t on_us = s.now_us;
  scene_run(&s, STEP_US);
  EXPECT(s.plays == 3 && due(&s, 3) == on_us + SEGMENT_US);
  run_until(&s, on_us + SEGMENT_US);
  EXPECT(s.plays == 3);
  scene_run(&s, STEP_US);
  EXPECT(s.plays == 4);
  const weft_engine_statistics x = scene_statistics(&s);
  EXPECT(x.due == 4 && x.in_time == 3 && x.stalls == 1);
  EXPECT(x.stalled_us > 5 * SECOND / 2 - STEP_US && x.stalled_us < 5 * SECOND / 2 + 3 * STEP_US);
  scene_free(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("times");
  TCase *t = tcase_create("times");
  tcase_add_test(t, a_least_difference_counts_for_one_minute_or_two);
  tcase_add_test(t, a_live_viewer_counts_back_by_two_times);
  tcase_add_loop_test(t, a_live_viewer_begins_by_one_time, 0, 3);
  tcase_add_test(t, times_are_as_signed);
  tcase_add_loop_test(t, a_clock_that_stood_still_is_noticed, 0, 5);
  tcase_add_loop_test(t, absurd_times_do_not_overflow, 0, 2);
  tcase_add_test(t, times_by_the_rate_are_exact_and_do_not_wrap);
  tcase_add_test(t, what_is_late_is_passed);
  tcase_add_loop_test(t, who_slept_plays_what_is_here_or_begins_again, 0, 3);
  tcase_add_test(t, who_gets_nothing_goes_on);
  tcase_add_test(t, playback_begins_with_what_there_can_be);
  tcase_add_test(t, a_stall_moves_what_follows);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
