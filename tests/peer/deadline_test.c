// SPDX-License-Identifier: Apache-2.0
// An engine that is called only at its deadlines and when something arrives does at every moment
// the same as one that is called all the time: its deadline leaves out no timer.
#include <stdlib.h>
#include <string.h>

#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { NEIGHBOURS = 3, RUN_MS = 12000, SAID_MOST = 1 << 15 };

// A datagram or an event that came out.
typedef struct said {
  int64_t at_us;
  size_t neighbour, bytes;
  uint32_t type, event;
} said;

typedef struct watched {
  scene s;
  said *all; // (SAID_MOST)
  size_t count;
} watched;

static void note(watched *w, said one) {
  EXPECT(w->count < SAID_MOST);
  one.at_us = w->s.now_us;
  w->all[w->count++] = one;
}

static void look_after(watched *w) {
  weft_event event;
  weft_burst burst;
  weft_engine_tick(w->s.engine, w->s.now_us);
  while (weft_engine_event(w->s.engine, &event)) {
    note(w, (said){.event = (uint32_t)event.kind + 1});
    if (event.kind == WEFT_EVENT_DIAL)
      weft_engine_dial_failed(w->s.engine, &event.address);
  }
  while (weft_engine_output(w->s.engine, w->s.now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++)
      note(w, (said){.neighbour = burst.neighbour,
                     .bytes = burst.datagrams[i].bytes,
                     .type = burst.datagrams[i].data[1]});
}

// Delivers what arrives within this millisecond, the same for both engines; false: nothing does.
static bool come(scene *s, uint64_t what, size_t from, uint64_t segment, bool source, int ms) {
  static const uint8_t data[N * K];
  if (source && ms % 1000 == 0)
    (void)weft_engine_source_put(s->engine, data, sizeof data, s->now_us, s->now_us);
  else if (what < 60 && !source)
    (void)scene_block(s, from, segment, what % N, what == 59);
  else if (what < 66 && !source)
    scene_manifest(s, from, segment);
  else if (what >= 70 && what < 74)
    scene_map(s, from, segment, (uint16_t)(what - 70));
  else if (what >= 80 && what < 84)
    scene_ask(s, from, segment, 3);
  else
    return false;
  return true;
}

static void compare(weft_engine_mode mode, const weft_policy *policy, bool source, bool trust) {
  static watched w[2]; // called all the time; called at its deadlines
  test_rng rng = test_rng_new(fixture_seed(), 8);
  for (size_t i = 0; i < 2; i++) {
    scene_new(&w[i].s, mode, source, trust, trust ? SECOND / 2 : 0);
    w[i].s.options.policy = policy;
    w[i].all = calloc(SAID_MOST, sizeof *w[i].all);
    w[i].count = 0;
    for (size_t n = 0; n < NEIGHBOURS; n++)
      scene_add(&w[i].s, n, 0, 0);
  }
  for (int ms = 0; ms < RUN_MS; ms++) {
    const uint64_t what = test_rng_below(&rng, 400), ahead = test_rng_below(&rng, 3);
    const size_t from = (size_t)test_rng_below(&rng, NEIGHBOURS);
    for (size_t i = 0; i < 2; i++) {
      scene *s = &w[i].s;
      if (come(s, what, from, (uint64_t)ms / 1000 + ahead, source, ms) || i == 0 ||
          s->now_us >= weft_engine_deadline(s->engine))
        look_after(&w[i]);
      s->now_us += 1000;
    }
    if (w[0].count != w[1].count ||
        memcmp(w[0].all, w[1].all, w[0].count * sizeof *w[0].all) != 0) {
      const said *last = &w[w[0].count < w[1].count].all[w[w[0].count < w[1].count].count - 1];
      ck_abort_msg("mode %d, %s, source %d, trust %d, %d ms: %zu said, and %zu; type %u, event %u "
                   "(WEFT_TEST_SEED=%#llx)",
                   (int)mode, policy->name, source, trust, ms, w[0].count, w[1].count, last->type,
                   last->event, (unsigned long long)fixture_seed());
    }
  }
  EXPECT(w[0].count > 50); // else nothing was compared
  for (size_t i = 0; i < 2; i++) {
    free(w[i].all);
    scene_free(&w[i].s);
  }
}

// For all modes and policies but live push, where shares of the uplink are recounted some time
// after they last were, so that extra calls move that by milliseconds.
START_TEST(deadlines_are_all_that_is_needed) {
  const weft_policy *const policies[] = {&weft_policy_pull, &weft_policy_rarest, &weft_policy_push};
  const weft_engine_mode mode = (weft_engine_mode)_i;
  for (size_t p = 0; p < (mode == WEFT_MODE_LIVE ? 2 : 3); p++)
    for (int way = 0; way < 4; way++)
      compare(mode, policies[p], way / 2 == 1, way % 2 == 1);
}
END_TEST

// A neighbour that has been sent all that it can need gets more as time passes, which only the
// deadline brings about.
START_TEST(who_was_sated_is_answered_in_time) {
  static const uint8_t data[N * K];
  enum { LOOK_US = 100000, LOOKS = 50 };
  scene s;
  scene_new_source(&s, WEFT_MODE_VOD, 0);
  EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  scene_add(&s, 0, 0, WINDOW);
  size_t had;
  do {
    had = s.data[0];
    scene_map(&s, 0, 0, WINDOW); // nothing is in flight any more
    scene_ask(&s, 0, 0, N);
    scene_run(&s, STEP_US);
  } while (s.data[0] > had);
  EXPECT(had >= 4 * WINDOW * N); // what a newcomer is given
  const int64_t until_us = s.now_us + LOOK_US;
  for (size_t i = 0; i < LOOKS && s.data[0] == had; i++) {
    const int64_t at_us = weft_engine_deadline(s.engine);
    s.now_us = at_us > s.now_us ? at_us : s.now_us;
    scene_run(&s, STEP_US);
  }
  EXPECT(s.data[0] > had && s.now_us <= until_us + STEP_US);
  scene_free(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("deadline");
  TCase *tc = tcase_create("deadline");
  tcase_add_loop_test(tc, deadlines_are_all_that_is_needed, WEFT_MODE_BULK, WEFT_MODE_LIVE + 1);
  tcase_add_test(tc, who_was_sated_is_answered_in_time);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
