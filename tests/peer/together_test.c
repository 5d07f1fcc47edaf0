// SPDX-License-Identifier: Apache-2.0
// Full segments are decoded together: when, which ones, and that none is read before it is done.
#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { TOGETHER = 3 };

// A codec whose calls end when the test says so.
static struct {
  bool busy, working;
  size_t calls, count; // runs that began; segments of the last
  void *segments[WEFT_ENGINE_MAX_GATHER];
} at_it;

static weft_status decode(void *user, void *const *segments, size_t count) {
  (void)user;
  if (at_it.busy)
    return WEFT_E_STATE;
  at_it.calls++;
  at_it.count = count;
  for (size_t i = 0; i < count; i++)
    at_it.segments[i] = segments[i];
  at_it.working = true;
  return WEFT_OK;
}

static bool decoding(void *user, const void *segment) {
  (void)user;
  for (size_t i = 0; at_it.working && i < at_it.count; i++)
    if (at_it.segments[i] == segment)
      return true;
  return false;
}

static void begin(scene *s) {
  scene_new(s, WEFT_MODE_VOD, false, true, 0);
  s->options.gather = TOGETHER;
  s->codec.decode = decode;
  s->codec.decoding = decoding;
  at_it.busy = at_it.working = false;
  at_it.calls = 0;
  scene_add(s, 0, 0, 0);
  for (uint64_t segment = 0; segment < 2; segment++)
    scene_manifest(s, 0, segment);
}

// Delivers `count` whole segments from `first` on.
static void come(scene *s, uint64_t first, uint64_t count) {
  for (uint64_t segment = first; segment < first + count; segment++) {
    scene_manifest(s, 0, segment);
    scene_whole(s, 0, segment);
  }
}

START_TEST(enough_begin_at_once_and_end_when_they_are_done) {
  scene s;
  begin(&s);
  come(&s, 0, TOGETHER);
  EXPECT(weft_engine_deadline(s.engine) <= s.now_us);
  scene_run(&s, STEP_US);
  EXPECT(at_it.calls == 1 && at_it.count == TOGETHER && s.decoded == 0);
  scene_run(&s, 10 * STEP_US);
  EXPECT(s.decoded == 0);
  at_it.working = false;
  EXPECT(weft_engine_deadline(s.engine) <= s.now_us);
  scene_run(&s, STEP_US); // without any message
  EXPECT(s.decoded == TOGETHER);
  const weft_engine_statistics x = scene_statistics(&s);
  EXPECT(x.gathered_runs == 1 && x.gathered_segments == TOGETHER && x.hash_failures == 0);
  scene_free(&s);
}
END_TEST

START_TEST(few_wait_a_moment_for_others) {
  scene s;
  begin(&s);
  come(&s, 0, 1);
  scene_run(&s, STEP_US);
  EXPECT(at_it.calls == 0);
  EXPECT(weft_engine_deadline(s.engine) <= s.now_us);
  scene_run(&s, STEP_US);
  EXPECT(at_it.calls == 1 && at_it.count == 1);
  at_it.working = false;
  scene_run(&s, STEP_US);
  EXPECT(s.decoded == 1);
  scene_free(&s);
}
END_TEST

// While the codec is busy, full segments wait; then the oldest go first, and the rest in the next
// call.
START_TEST(who_finds_the_codec_busy_tries_again) {
  scene s;
  begin(&s);
  at_it.busy = true;
  come(&s, 0, TOGETHER + 2);
  scene_run(&s, 3 * STEP_US);
  EXPECT(at_it.calls == 0 && s.decoded == 0);
  at_it.busy = false;
  EXPECT(weft_engine_deadline(s.engine) <= s.now_us);
  scene_run(&s, STEP_US);
  EXPECT(at_it.calls == 1 && at_it.count == TOGETHER);
  at_it.working = false;
  at_it.busy = true;
  scene_run(&s, STEP_US);
  EXPECT(s.decoded == TOGETHER && at_it.calls == 1);
  at_it.busy = false;
  scene_run(&s, STEP_US);
  EXPECT(at_it.calls == 2 && at_it.count == 2);
  at_it.working = false;
  scene_run(&s, STEP_US);
  EXPECT(s.decoded == TOGETHER + 2 && scene_statistics(&s).hash_failures == 0);
  scene_free(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("together");
  TCase *tc = tcase_create("together");
  tcase_add_test(tc, enough_begin_at_once_and_end_when_they_are_done);
  tcase_add_test(tc, few_wait_a_moment_for_others);
  tcase_add_test(tc, who_finds_the_codec_busy_tries_again);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
