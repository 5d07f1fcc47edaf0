// SPDX-License-Identifier: Apache-2.0
// A viewer on demand that seeks to where no neighbour is: it parts with neighbours that have
// nothing of what it needs, as far as others are known, and calls the source first.
#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { FAR = 100, SOURCE = 90, OTHERS = 8, DIALS = 32 };

typedef struct outcome {
  size_t parted, dials;
  uint8_t dialled[DIALS]; // whose addresses
} outcome;

static void know(scene *s, size_t others) {
  for (size_t i = 0; i < others; i++) {
    const weft_peer_address address = {.length = 1, .bytes = {(uint8_t)(10 + i)}};
    weft_engine_add_address(s->engine, &address);
  }
}

static void know_source(scene *s) {
  weft_engine_set_source_address(s->engine, &(weft_peer_address){.length = 1, .bytes = {SOURCE}});
}

// A viewer that has all places taken by neighbours at the beginning, one of which may also have
// what comes at FAR.
static void begin(scene *s, bool one_has_it) {
  scene_new(s, WEFT_MODE_VOD, false, false, 0);
  for (size_t i = 0; i < MOST; i++)
    scene_add(s, i, one_has_it && i == 1 ? FAR + 8 : 0, WINDOW);
  for (int i = 0; i < 3; i++) {
    scene_whole(s, 0, s->decoded);
    scene_run(s, SECOND);
  }
}

// What it does within that time; nobody answers its calls.
static outcome watch(scene *s, int64_t for_us) {
  outcome o = {0};
  for (const int64_t until_us = s->now_us + for_us; s->now_us < until_us; s->now_us += STEP_US) {
    weft_event event;
    weft_burst burst;
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
      ;
    while (weft_engine_event(s->engine, &event)) {
      o.parted += event.kind == WEFT_EVENT_NEIGHBOUR_LOST && event.reason == WEFT_LOST_REPLACED;
      if (event.kind == WEFT_EVENT_DIAL && o.dials < DIALS)
        o.dialled[o.dials++] = event.address.bytes[0];
    }
  }
  return o;
}

static size_t calls(const outcome *o, uint8_t address) {
  size_t count = 0;
  for (size_t i = 0; i < o->dials; i++)
    count += o->dialled[i] == address;
  return count;
}

START_TEST(who_is_stranded_makes_room_and_calls_the_source_first) {
  scene s;
  begin(&s, false);
  know(&s, OTHERS);
  know_source(&s);
  EXPECT_OK(weft_engine_seek(s.engine, FAR, s.now_us));
  const outcome o = watch(&s, SECOND / 2);
  EXPECT(o.parted == s.options.neighbours_target); // as many as it looks for
  EXPECT(o.dials >= s.options.neighbours_target && o.dialled[0] == SOURCE);
  const outcome later = watch(&s, 6 * SECOND);
  EXPECT(later.parted <= 1); // it keeps some, as they know of others
  EXPECT(calls(&later, SOURCE) >= 2 && calls(&later, SOURCE) <= 3);
  EXPECT(later.dials >= OTHERS);
  scene_free(&s);
}
END_TEST

START_TEST(who_knows_nobody_else_keeps_what_it_has) {
  scene s;
  begin(&s, false);
  EXPECT_OK(weft_engine_seek(s.engine, FAR, s.now_us));
  const outcome o = watch(&s, 5 * SECOND);
  EXPECT(o.parted == 0 && o.dials == 0);
  scene_free(&s);
}
END_TEST

START_TEST(who_has_a_neighbour_there_stays) {
  scene s;
  begin(&s, true);
  know(&s, OTHERS);
  know_source(&s);
  EXPECT_OK(weft_engine_seek(s.engine, FAR, s.now_us));
  const outcome o = watch(&s, SECOND / 2);
  EXPECT(o.parted == 0 && o.dials == 0);
  scene_free(&s);
}
END_TEST

// The source's places are for those that need it.
START_TEST(who_gets_on_does_not_call_the_source) {
  scene s;
  begin(&s, false);
  know_source(&s);
  outcome o = {0};
  for (int i = 0; i < 5; i++) {
    scene_whole(&s, 0, 3 + (uint64_t)i);
    const outcome now = watch(&s, SECOND);
    o.dials += now.dials;
    o.parted += now.parted;
    EXPECT(!weft_engine_needs_source(s.engine, s.now_us));
  }
  EXPECT(o.dials == 0 && o.parted == 0);
  scene_free(&s);
}
END_TEST

// The caller's own ways to the source are needed by who has few neighbours, or is cut off and does
// not reach it where it was; and always where there is no demand.
START_TEST(when_the_caller_is_to_look_for_the_source) {
  for (int mode = WEFT_MODE_BULK; mode <= WEFT_MODE_LIVE; mode++) {
    const bool on_demand = mode == WEFT_MODE_VOD;
    scene s;
    scene_new(&s, (weft_engine_mode)mode, false, false, 0);
    EXPECT(weft_engine_needs_source(s.engine, s.now_us)); // no neighbours yet
    for (size_t i = 0; i < MOST; i++)
      scene_add(&s, i, 0, WINDOW);
    scene_whole(&s, 0, 0);
    EXPECT(weft_engine_needs_source(s.engine, s.now_us) == !on_demand);
    if (on_demand) {
      EXPECT_OK(weft_engine_seek(s.engine, FAR, s.now_us));
      EXPECT(weft_engine_needs_source(s.engine, s.now_us));
      know_source(&s);
      EXPECT(!weft_engine_needs_source(s.engine, s.now_us));
      scene_run(&s, 8 * SECOND); // calls to it fail
      EXPECT(weft_engine_needs_source(s.engine, s.now_us));
      know_source(&s);
      EXPECT(!weft_engine_needs_source(s.engine, s.now_us));
    }
    scene_free(&s);
  }
}
END_TEST

// Callers and addresses that others tell displace each other, but not the source.
START_TEST(the_sources_address_is_kept) {
  scene s;
  begin(&s, false);
  know_source(&s);
  for (uint8_t i = 0; i < 200; i++) {
    const weft_peer_address address = {.length = 2, .bytes = {i, 1}};
    weft_engine_add_address(s.engine, &address);
    weft_engine_call(s.engine, &(weft_peer_address){.length = 2, .bytes = {i, 2}}, s.now_us);
  }
  EXPECT_OK(weft_engine_seek(s.engine, FAR, s.now_us));
  const outcome o = watch(&s, SECOND / 2);
  EXPECT(o.dials > 0 && o.dialled[0] == SOURCE);
  scene_free(&s);
}
END_TEST

// A second of media is needed to begin, by default, and segments of that length are requested as
// far: with longer start-ups more of them.
START_TEST(all_that_playback_begins_with_is_requested) {
  for (int seconds = 1; seconds <= 4; seconds++) {
    scene s;
    scene_new(&s, WEFT_MODE_VOD, false, false, 0);
    s.options.startup_us = seconds * SECOND;
    s.options.requests_max = 8;
    scene_add(&s, 0, FAR, WINDOW);
    EXPECT_OK(weft_engine_seek(s.engine, 10, s.now_us));
    scene_run(&s, SECOND / 4);
    EXPECT(s.requested[0] == (size_t)seconds * N);
    scene_free(&s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("stranded");
  TCase *t = tcase_create("stranded");
  tcase_add_test(t, who_is_stranded_makes_room_and_calls_the_source_first);
  tcase_add_test(t, who_knows_nobody_else_keeps_what_it_has);
  tcase_add_test(t, who_has_a_neighbour_there_stays);
  tcase_add_test(t, who_gets_on_does_not_call_the_source);
  tcase_add_test(t, when_the_caller_is_to_look_for_the_source);
  tcase_add_test(t, the_sources_address_is_kept);
  tcase_add_test(t, all_that_playback_begins_with_is_requested);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
