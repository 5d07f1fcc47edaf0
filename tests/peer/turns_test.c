// SPDX-License-Identifier: Apache-2.0
// On demand, viewers are at different positions of a stream. One that begins where no other is
// needs the source, and one that is cut off together with its neighbours needs others.
#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

typedef struct viewer {
  uint64_t first;
  uint16_t back;
} viewer;

// Returns which of the viewers, which all state their position once a second, were parted with.
static unsigned parted(scene *s, const viewer *viewers, int64_t for_us) {
  unsigned lost = 0;
  for (const int64_t until_us = s->now_us + for_us; s->now_us < until_us; s->now_us += STEP_US) {
    weft_event event;
    weft_burst burst;
    for (size_t i = 0; i < MOST && s->now_us % SECOND == 0; i++)
      if (!(lost & 1u << i))
        scene_map_back(s, i, viewers[i].first, viewers[i].back, WINDOW);
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
      ;
    while (weft_engine_event(s->engine, &event))
      if (event.kind == WEFT_EVENT_NEIGHBOUR_LOST) {
        EXPECT(event.reason == WEFT_LOST_REPLACED);
        lost |= 1u << event.neighbour;
      }
  }
  return lost;
}

static void refuse(scene *s) {
  uint8_t refusal[WEFT_DATAGRAM_MAX];
  EXPECT(weft_engine_refusal(s->engine, NULL, refusal) > 0);
}

START_TEST(a_source_on_demand_gives_its_places_in_turn) {
  // The second needs what two others have, the first what the last has, and the others what no
  // viewer has.
  viewer viewers[MOST] = {{30, 4}, {28, 4}, {0, 0}, {31, 4}};
  scene s;
  scene_new_file(&s, 100);
  for (size_t i = 0; i < MOST; i++)
    scene_add(&s, i, viewers[i].first, WINDOW);
  EXPECT(parted(&s, viewers, 7 * SECOND) == 0); // no node was refused
  refuse(&s);
  refuse(&s);
  EXPECT(parted(&s, viewers, 2 * SECOND) == 1u << 1);
  viewers[1] = (viewer){0, 0};
  scene_add(&s, 1, 0, WINDOW);
  EXPECT(parted(&s, viewers, 6 * SECOND) == 1u << 0); // to make room for the other one
  viewers[0] = (viewer){29, 4};
  scene_add(&s, 0, 29, WINDOW);
  refuse(&s);
  EXPECT(parted(&s, viewers, 4 * SECOND) == 0); // a new neighbour stays for a while
  EXPECT(parted(&s, viewers, 3 * SECOND) == 1u << 0);
  viewers[0] = (viewer){0, 0};
  scene_add(&s, 0, 0, WINDOW);
  refuse(&s);
  EXPECT(parted(&s, viewers, 9 * SECOND) == 0); // all present ones need the source
  scene_free(&s);
}
END_TEST

// A viewer's own map tells how many others have what it needs next, this source among them.
START_TEST(a_source_on_demand_parts_with_who_has_others) {
  const viewer viewers[MOST] = {{0, 0}, {20, 4}, {40, 4}, {60, 4}};
  scene s;
  scene_new_file(&s, 100);
  for (size_t i = 0; i < MOST; i++)
    scene_add(&s, i, viewers[i].first, WINDOW);
  refuse(&s);
  EXPECT(parted(&s, viewers, 7 * SECOND) == 0);
  for (uint8_t helpers = 1; helpers <= 2; helpers++) {
    uint8_t out[WEFT_DATAGRAM_MAX];
    const weft_map m = {.first = 40,
                        .horizon = 40,
                        .back = 4,
                        .count = 1,
                        .entry_bytes = 2,
                        .suppliers = 1,
                        .stamps = {.stamp = 1}};
    const size_t bytes = weft_map_write(&m, out);
    weft_map_put_rank(out, 0, 0, helpers, false);
    EXPECT_OK(scene_say(&s, 2, out, bytes));
    refuse(&s);
    scene_run(&s, SECOND);
    weft_neighbour_statistics x;
    EXPECT((weft_engine_get_neighbour(s.engine, 2, &x) == WEFT_OK) == (helpers < 2));
  }
  scene_free(&s);
}
END_TEST

START_TEST(a_live_source_keeps_its_first_hands) {
  const viewer viewers[MOST] = {{30, 4}, {28, 4}, {20, 4}, {31, 4}};
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, true, false, 0);
  for (size_t i = 0; i < MOST; i++)
    scene_add(&s, i, viewers[i].first, WINDOW);
  EXPECT(parted(&s, viewers, 7 * SECOND) == 0);
  refuse(&s);
  EXPECT(parted(&s, viewers, 7 * SECOND) == 0);
  scene_free(&s);
}
END_TEST

// A viewer with as many neighbours as it looks for dials others only when it gets no further.
START_TEST(a_viewer_on_demand_that_gets_no_further_looks_for_others) {
  for (uint64_t gets_on = 0; gets_on < 2; gets_on++) {
    scene s;
    scene_new(&s, WEFT_MODE_VOD, false, false, 0);
    for (size_t i = 0; i < 2; i++)
      scene_add(&s, i, 0, WINDOW);
    for (uint8_t i = 0; i < 8; i++) {
      const weft_peer_address address = {.length = 1, .bytes = {(uint8_t)(100 + i)}};
      weft_engine_add_address(s.engine, &address);
    }
    for (uint64_t second = 0; second < 20; second++) {
      for (size_t i = 0; i < 2; i++)
        scene_map(&s, i, 0, WINDOW);
      if (second == 0 || gets_on)
        scene_whole(&s, 0, second);
      scene_run(&s, SECOND);
    }
    EXPECT(gets_on ? s.dials == 0 : s.dials >= 2);
    scene_free(&s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("turns");
  TCase *t = tcase_create("turns");
  tcase_add_test(t, a_source_on_demand_gives_its_places_in_turn);
  tcase_add_test(t, a_source_on_demand_parts_with_who_has_others);
  tcase_add_test(t, a_live_source_keeps_its_first_hands);
  tcase_add_test(t, a_viewer_on_demand_that_gets_no_further_looks_for_others);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
