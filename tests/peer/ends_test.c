// SPDX-License-Identifier: Apache-2.0
// Neighbours that contradict each other about where the stream ends and how far it has come: the
// first end that fits what was seen counts, and no neighbour's word makes a viewer lose what it
// has.
#include <string.h>

#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { SEGMENTS = 3, SEGMENT_BYTES = N * K, HONEST = 0, LIAR = 1 };

// Claims to have everything before `horizon` and, unless `end` is 0, that the stream ends there.
static weft_status say_end(scene *s, size_t neighbour, uint64_t end, uint64_t horizon) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_map m = {.end_known = end > 0,
                      .end_bytes = end,
                      .first = horizon,
                      .horizon = horizon,
                      .back = (uint16_t)horizon,
                      .entry_bytes = 2,
                      .suppliers = 1,
                      .stamps = {.stamp = 1}};
  return scene_say(s, neighbour, out, weft_map_write(&m, out));
}

// Checks that what a policy is shown adds up, whatever was claimed.
static bool look(void *user, const weft_policy_view *view, const weft_rng *rng,
                 weft_policy_choice *out) {
  (void)user, (void)rng, (void)out;
  for (size_t i = 0; i < view->window; i++) {
    const weft_policy_segment *held = &view->segments[i];
    EXPECT(held->rank <= held->blocks && held->received <= held->blocks);
  }
  return false;
}
static const weft_policy looker = {.name = "looker", .pick = look};

static void begin(scene *s, weft_engine_mode mode, bool trust) {
  scene_new(s, mode, false, trust, 0);
  s->options.policy = &looker;
  for (size_t i = 0; i < 2; i++)
    scene_add(s, i, 0, 0);
}

// Plays what it has; returns the bytes.
static size_t play(scene *s) {
  size_t all = 0, bytes;
  uint64_t segment;
  scene_run(s, SECOND / 10);
  while (weft_engine_readable(s->engine, &segment, &bytes) == WEFT_OK) {
    all += bytes;
    EXPECT_OK(weft_engine_release(s->engine));
    scene_run(s, SEGMENT_US);
  }
  return all;
}

// Expects that the stream ends there, with all of its bytes.
static void expect_ends(scene *s, size_t end) {
  for (uint64_t i = 0; i < SEGMENTS; i++)
    scene_whole(s, HONEST, i);
  EXPECT(play(s) == end && weft_engine_done(s->engine));
}

START_TEST(the_first_end_counts) {
  static const uint64_t others[] = {2 * SEGMENT_BYTES, SEGMENTS * SEGMENT_BYTES - 1,
                                    SEGMENTS * SEGMENT_BYTES + 1, UINT64_C(1) << 40};
  const weft_engine_mode modes[] = {WEFT_MODE_BULK, WEFT_MODE_VOD};
  for (size_t m = 0; m < 2; m++) {
    scene s;
    begin(&s, modes[m], false);
    EXPECT_OK(say_end(&s, HONEST, SEGMENTS * SEGMENT_BYTES, SEGMENTS));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
      EXPECT_STATUS(say_end(&s, LIAR, others[i], 0), WEFT_E_FOREIGN);
    EXPECT_STATUS(say_end(&s, LIAR, 0, SEGMENTS + 1), WEFT_E_FOREIGN);
    EXPECT_OK(say_end(&s, LIAR, SEGMENTS * SEGMENT_BYTES, SEGMENTS));
    expect_ends(&s, SEGMENTS * SEGMENT_BYTES);
    scene_free(&s);
  }
}
END_TEST

// An end before a segment that was seen is refused, whether one packet of it was seen, all of it,
// or another neighbour's claim to have it.
START_TEST(no_end_is_before_what_was_seen) {
  for (int seen = 0; seen < 3; seen++) {
    scene s;
    begin(&s, WEFT_MODE_BULK, false);
    if (seen == 0)
      EXPECT_OK(scene_block(&s, HONEST, SEGMENTS - 1, 1, false));
    else if (seen == 1)
      scene_whole(&s, HONEST, SEGMENTS - 1);
    else
      EXPECT_OK(say_end(&s, HONEST, 0, SEGMENTS));
    EXPECT_STATUS(say_end(&s, LIAR, (SEGMENTS - 1) * SEGMENT_BYTES, SEGMENTS - 1), WEFT_E_FOREIGN);
    EXPECT_STATUS(say_end(&s, LIAR, 1, 1), WEFT_E_FOREIGN);
    EXPECT(!weft_engine_done(s.engine));
    EXPECT_OK(say_end(&s, HONEST, SEGMENTS * SEGMENT_BYTES, SEGMENTS));
    expect_ends(&s, SEGMENTS * SEGMENT_BYTES);
    scene_free(&s);
  }
}
END_TEST

// An end within a segment that was held as a full one cuts its bytes and blocks.
START_TEST(an_end_within_what_is_held_cuts_it) {
  enum { LAST = 3 * K - 5 };
  scene s;
  begin(&s, WEFT_MODE_BULK, false);
  for (uint64_t i = 0; i < SEGMENTS; i++)
    scene_whole(&s, HONEST, i);
  EXPECT_OK(say_end(&s, HONEST, (SEGMENTS - 1) * SEGMENT_BYTES + LAST, SEGMENTS));
  EXPECT(play(&s) == (SEGMENTS - 1) * SEGMENT_BYTES + LAST);
  EXPECT(weft_engine_done(s.engine));
  scene_free(&s);
}
END_TEST

static void signed_end(scene *s, uint64_t segments) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_manifest m = {.last = true, .segment = segments, .at_us = segments * SEGMENT_BYTES};
  EXPECT_OK(scene_say(s, HONEST, out, weft_manifest_write(&m, out)));
}

// Where ends are signed, what a neighbour claimed behind the end is not requested for ever, and an
// unsigned claim of an end is only a reason to ask.
START_TEST(nothing_is_looked_for_behind_a_signed_end) {
  enum { LOOKS_MOST = 30 };
  scene s;
  size_t looks = 0;
  begin(&s, WEFT_MODE_BULK, true);
  EXPECT_OK(say_end(&s, LIAR, 0, 1000));
  EXPECT_OK(say_end(&s, LIAR, SEGMENT_BYTES, 1));
  for (uint64_t i = 0; i < SEGMENTS; i++) {
    scene_manifest(&s, HONEST, i);
    scene_whole(&s, HONEST, i);
  }
  EXPECT(play(&s) == SEGMENTS * SEGMENT_BYTES && !weft_engine_done(s.engine));
  signed_end(&s, SEGMENTS);
  EXPECT(play(&s) == 0 && weft_engine_done(s.engine));
  for (const int64_t until_us = s.now_us + 5 * SECOND; s.now_us < until_us; looks++) {
    const int64_t at_us = weft_engine_deadline(s.engine);
    s.now_us = at_us > s.now_us ? at_us : s.now_us;
    scene_run(&s, STEP_US);
  }
  if (looks > LOOKS_MOST)
    ck_abort_msg("%zu looks in five seconds", looks);
  scene_free(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ends");
  TCase *t = tcase_create("ends");
  tcase_add_test(t, the_first_end_counts);
  tcase_add_test(t, no_end_is_before_what_was_seen);
  tcase_add_test(t, an_end_within_what_is_held_cuts_it);
  tcase_add_test(t, nothing_is_looked_for_behind_a_signed_end);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
