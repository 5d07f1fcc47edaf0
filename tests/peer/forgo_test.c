// SPDX-License-Identifier: Apache-2.0
// What makes a live viewer forgo classes of segments (not request or play them), step by step:
// which segments are late for lack of uplink or of its own link's capacity, and how many classes
// are forgone then. (shortage_test.c has whole swarms, which even out errors here.)
#include "peer/engine/internal.h"
#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { KEPT = 15, FORGONE = 0 }; // segments of the last class and of the first
enum { QUEUE_US = 30000, EACH_US = SECOND, ALL = 1024 };

typedef struct viewer {
  scene s;
  weft_engine *e;
  int64_t now_us;
  int64_t rests_us; // idle time in each second
} viewer;

// Begins with `count` neighbours, which lack everything; their uplinks and ours are never idle.
static void begin(viewer *v, size_t count) {
  *v = (viewer){0};
  scene_new(&v->s, WEFT_MODE_LIVE, false, false, 0);
  for (size_t i = 0; i < count; i++)
    scene_add(&v->s, i, 0, WINDOW);
  v->e = v->s.engine;
  v->now_us = v->s.now_us;
  for (size_t i = 0; i < count; i++) {
    EXPECT(v->e->policy_view[i].known);
    v->e->neighbours[i].full = true;
  }
  weft_shortage_start(v->e, v->now_us);
}

static void learn(viewer *v, uint64_t segment, bool in_time) {
  v->now_us += EACH_US;
  v->e->pace_us = v->now_us - v->rests_us;
  weft_shortage_learn(v->e, segment, in_time, v->now_us);
}

static void learn_some(viewer *v, int count, bool in_time) {
  for (int i = 0; i < count; i++)
    learn(v, KEPT, in_time);
}

static unsigned forgone(const viewer *v) { return v->e->shortage.forgone; }

// Messages of the first `count` neighbours waited this long; those of the others did not.
static void queue(viewer *v, size_t count, uint32_t waited_us) {
  for (size_t i = 0; i < v->e->used; i++) {
    weft_neighbour *n = &v->e->neighbours[i];
    n->stamp = 1;
    n->stamp_us = v->now_us + EACH_US;
    n->delay_least = (uint32_t)n->stamp_us - n->stamp - (i < count ? waited_us : 0);
  }
}

// --- Uplinks

START_TEST(two_late_of_eight_cost_a_class) {
  viewer v;
  begin(&v, 4);
  learn_some(&v, 1, false);
  learn_some(&v, 7, true);
  learn_some(&v, 1, false);
  EXPECT(forgone(&v) == 0);
  learn_some(&v, 6, true);
  learn_some(&v, 1, false);
  EXPECT(forgone(&v) == 1);
  for (unsigned more = 2; more < 20; more++) {
    learn_some(&v, 1, false);
    EXPECT(forgone(&v) == (more - 1 < 12 ? more - 1 : 12)); // three quarters at most
    learn_some(&v, 1, false);
    EXPECT(forgone(&v) == (more < 12 ? more : 12));
  }
  EXPECT(!v.e->shortage.narrow);
  scene_free(&v.s);
}
END_TEST

// 32 segments in time one after another give a class back; so does a forgone segment that came in
// time all the same, after eight.
START_TEST(those_in_time_give_a_class_back) {
  viewer v;
  begin(&v, 4);
  learn_some(&v, 4, false);
  EXPECT(forgone(&v) == 2);
  learn_some(&v, 31, true);
  learn_some(&v, 1, false); // and start counting again
  learn_some(&v, 31, true);
  learn(&v, FORGONE, false); // which shows nothing
  EXPECT(forgone(&v) == 2);
  learn_some(&v, 1, true);
  EXPECT(forgone(&v) == 1);
  learn_some(&v, 7, true);
  learn(&v, FORGONE, true);
  EXPECT(forgone(&v) == 1);
  learn_some(&v, 1, true);
  learn(&v, FORGONE, false);
  EXPECT(forgone(&v) == 1);
  learn(&v, FORGONE, true);
  EXPECT(forgone(&v) == 0);
  learn_some(&v, 100, true);
  EXPECT(forgone(&v) == 0);
  scene_free(&v.s);
}
END_TEST

// If one neighbour's uplink is idle, or most neighbours have the segment, or ours could give more,
// lack of uplink is not the reason. The source's is never idle.
START_TEST(what_is_late_by_churn_costs_nothing) {
  static const struct {
    size_t known, full, lack, source;
    int64_t rests_us;
    bool counts;
  } cases[] = {
      {4, 4, 4, 0, 0, true},
      {4, 3, 4, 0, 0, true},
      {4, 2, 4, 0, 0, false},
      {4, 4, 2, 0, 0, true},
      {4, 4, 1, 0, 0, false},
      {1, 1, 1, 0, 0, true},
      {1, 0, 1, 0, 0, false},
      {0, 0, 0, 0, 0, false},
      {1, 1, 1, 1, 0, false},
      {4, 3, 4, 1, 0, true},
      {4, 2, 4, 1, 0, false},
      {4, 4, 4, 0, EACH_US / 4, true},
      {4, 4, 4, 0, EACH_US / 3, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    viewer v;
    begin(&v, cases[i].known);
    v.rests_us = cases[i].rests_us;
    for (size_t n = 0; n < cases[i].known; n++) {
      if (n >= cases[i].lack)
        scene_map(&v.s, n, WINDOW, 0);
      v.e->neighbours[n].full = n < cases[i].full;
      v.e->neighbours[n].is_source = n + cases[i].source >= cases[i].known; // the last ones
    }
    learn_some(&v, 1, false);
    EXPECT(v.e->shortage.failed == 0 || cases[i].counts);
    learn_some(&v, 1, false);
    if (forgone(&v) != cases[i].counts)
      ck_abort_msg("case %zu: %u classes", i, forgone(&v));
    scene_free(&v.s);
  }
}
END_TEST

// Measures the share of time without anything to send, as a mean over about eight segments.
START_TEST(rests_are_measured) {
  viewer v;
  begin(&v, 4);
  EXPECT(!weft_shortage_full(v.e)); // not known yet
  v.now_us += EACH_US;
  for (int i = 0; i < 2; i++)
    weft_shortage_idle(v.e, 10 * EACH_US, v.now_us); // only a second of which counts
  v.now_us += EACH_US;
  weft_shortage_idle(v.e, EACH_US / 2, v.now_us);
  v.now_us -= EACH_US;
  learn_some(&v, 1, true);
  EXPECT(v.e->shortage.idle == ALL * 3 / 4 && !weft_shortage_full(v.e));
  learn_some(&v, 1, true);
  EXPECT(v.e->shortage.idle == ALL * 3 / 4 * 7 / 8);
  learn_some(&v, 7, true);
  EXPECT(!weft_shortage_full(v.e));
  learn_some(&v, 1, true);
  EXPECT(weft_shortage_full(v.e)); // idle for a quarter or less
  v.rests_us = 100 * EACH_US;      // for a long time
  for (int i = 0; i < 60; i++)
    learn_some(&v, 1, true);
  EXPECT(v.e->shortage.idle > ALL - 8 && v.e->shortage.idle <= ALL);
  scene_free(&v.s);
}
END_TEST

// --- The own link

// A link is narrow if messages of three neighbours in four, heard recently, wait 30 ms, in four of
// eight segments' times, including the last.
START_TEST(a_link_that_queues_is_narrow) {
  static const struct {
    size_t queue;
    uint32_t waited_us;
    int before;             // in segments' times
    size_t silent, unknown; // the last neighbours; the first ones
    bool narrow;
  } cases[] = {
      {4, QUEUE_US, 3, 0, 0, true},      {3, QUEUE_US, 3, 0, 0, true},
      {2, QUEUE_US, 3, 0, 0, false},     {4, QUEUE_US, 2, 0, 0, false},
      {4, QUEUE_US - 1, 3, 0, 0, false}, {0, 0, 3, 4, 0, false},
      {2, QUEUE_US, 3, 2, 0, true},      {3, QUEUE_US, 3, 0, 1, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    viewer v;
    begin(&v, 4);
    v.rests_us = EACH_US; // lack of uplink is not the reason
    for (size_t n = 0; n < cases[i].unknown; n++)
      v.e->policy_view[n].known = false;
    for (int t = -8; t < cases[i].before; t++) {
      queue(&v, t < 0 ? 0 : cases[i].queue, cases[i].waited_us);
      for (size_t n = 4 - cases[i].silent; n < 4; n++)
        v.e->neighbours[n].stamp_us -= 3 * SECOND;
      learn_some(&v, 1, true);
    }
    queue(&v, cases[i].queue, cases[i].waited_us);
    for (size_t n = 4 - cases[i].silent; n < 4; n++)
      v.e->neighbours[n].stamp_us -= 3 * SECOND;
    learn_some(&v, 1, false);
    if (v.e->shortage.failed != cases[i].narrow)
      ck_abort_msg("case %zu: failed %u", i, (unsigned)v.e->shortage.failed);
    scene_free(&v.s);
  }
}
END_TEST

static void begin_narrow(viewer *v, uint16_t received, uint64_t on_the_way) {
  begin(v, 4);
  v->rests_us = EACH_US;
  v->e->horizon = v->e->play + on_the_way;
  weft_window_held(v->e, KEPT)->received = received;
  for (int t = 0; t < 3; t++) {
    queue(v, 4, QUEUE_US);
    learn_some(v, 1, true);
  }
  for (int t = 0; t < 2; t++) {
    queue(v, 4, QUEUE_US);
    learn_some(v, 1, false);
  }
}

// A narrow link forgoes as many classes at once as the segment lacks, six at most; packets in
// flight do not count then.
START_TEST(a_narrow_link_forgoes_what_a_segment_lacks) {
  static const struct {
    uint16_t received;
    unsigned classes;
  } cases[] = {{0, 6}, {N / 2, 6}, {N - 4, 3}, {N - 2, 1}, {N - 1, 1}, {N, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    viewer v;
    begin_narrow(&v, cases[i].received, 5);
    EXPECT(forgone(&v) == cases[i].classes && v.e->shortage.narrow);
    for (int t = 0; t < 5 + 2; t++) {
      EXPECT(forgone(&v) == cases[i].classes);
      queue(&v, 4, QUEUE_US);
      learn_some(&v, 1, false);
    }
    const unsigned left = 12 - cases[i].classes, again = 16 - cases[i].classes;
    const unsigned lacks = again * (N - cases[i].received) / (N + 1);
    EXPECT(forgone(&v) == cases[i].classes + (lacks < 1                   ? 1
                                              : lacks < left && lacks < 6 ? lacks
                                              : left < 6                  ? left
                                                                          : 6));
    scene_free(&v.s);
  }
}
END_TEST

// A round of segments in time, forgone or not, gives one class back, at first two rounds; with the
// last class, the link is not narrow any more.
START_TEST(a_link_is_tried_again) {
  viewer v;
  begin_narrow(&v, N - 4, 0);
  EXPECT(forgone(&v) == 3);
  queue(&v, 0, 0);
  for (int i = 0; i < 31; i++)
    learn(&v, i % 2 ? FORGONE : KEPT, true);
  EXPECT(forgone(&v) == 3);
  learn(&v, KEPT, true);
  EXPECT(forgone(&v) == 2 && v.e->shortage.narrow);
  learn_some(&v, 15, true);
  EXPECT(forgone(&v) == 2);
  learn_some(&v, 1, true);
  EXPECT(forgone(&v) == 1);
  learn_some(&v, 16, true);
  EXPECT(forgone(&v) == 0 && !v.e->shortage.narrow);
  scene_free(&v.s);
}
END_TEST

// --- What is requested

typedef struct mesh {
  size_t queue, looks;       // neighbours whose messages wait; segments' times
  size_t full, lack, narrow; // the first ones, never idle; the last ones, without the segment;
                             // the first ones, narrow
  bool asks;
} mesh;

static void live_in(viewer *v, const mesh *m) {
  begin(v, 4);
  v->rests_us = EACH_US;
  for (size_t i = 0; i < 4; i++) {
    scene_map(&v->s, i, i < 4 - m->lack ? WINDOW : 0, i < 4 - m->lack ? 0 : WINDOW);
    v->e->neighbours[i].full = i < m->full;
    v->e->policy_view[i].narrow = i < m->narrow;
  }
  for (size_t t = 0; t < m->looks; t++) {
    queue(v, m->queue, QUEUE_US);
    learn_some(v, 1, true);
  }
}

static bool asks(const viewer *v) { return v->e->shortage.asks; }

static void has_none(void *user, const void *segment, uint8_t *bits) {
  (void)user, (void)segment, (void)bits;
}

// A viewer turns to requesting where neighbours' data queues although some of their uplinks were
// idle eight times in a row, and three in four have what is due. A narrow neighbour shows nothing.
START_TEST(what_queues_is_asked_for) {
  static const mesh cases[] = {
      {4, 8, 0, 0, 0, true},  {3, 8, 0, 0, 0, true},  {2, 8, 0, 0, 0, false},
      {4, 7, 0, 0, 0, false}, {4, 8, 3, 0, 0, true},  {4, 8, 4, 0, 0, false},
      {4, 8, 0, 1, 0, true},  {4, 8, 0, 2, 0, false}, {4, 8, 1, 1, 1, false},
      {4, 8, 2, 0, 2, true},  {4, 8, 0, 0, 3, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    viewer v;
    live_in(&v, &cases[i]);
    if (asks(&v) != cases[i].asks)
      ck_abort_msg("case %zu: %d", i, asks(&v));
    EXPECT(forgone(&v) == 0 && scene_statistics(&v.s).narrow == cases[i].asks);
    EXPECT((weft_shortage_asking(v.e) == &weft_policy_pull) == cases[i].asks);
    scene_free(&v.s);
  }
}
END_TEST

// This does not happen with a policy that requests anyhow, with uncoded blocks, where nothing is
// ever requested, or where only the source sends.
START_TEST(some_cannot_ask) {
  for (int why = 0; why < 5; why++) {
    viewer v;
    live_in(&v, &(mesh){4, 7, 0, 0, 0, false});
    v.s.options.policy = why == 1   ? &weft_policy_pull
                         : why == 4 ? &weft_policy_source_only
                                    : v.s.options.policy;
    v.s.codec.has = why == 2 ? has_none : NULL;
    v.s.options.mode = why == 3 ? WEFT_MODE_BULK : WEFT_MODE_LIVE;
    queue(&v, 4, QUEUE_US);
    learn_some(&v, 1, true);
    EXPECT(asks(&v) == (why == 0));
    scene_free(&v.s);
  }
}
END_TEST

// What is forgone stays so. Requesting ends where uplinks are short six times of eight, or where
// the source is the only neighbour.
START_TEST(asking_ends) {
  static const mesh wide = {4, 8, 0, 0, 0, true};
  for (int how = 0; how < 2; how++) {
    viewer v;
    live_in(&v, &wide);
    EXPECT(asks(&v));
    v.e->shortage.forgone = 3;
    for (size_t n = 0; n < 4; n++) {
      v.e->neighbours[n].full = how == 0;
      v.e->neighbours[n].is_source = how == 1;
    }
    for (int t = 1; t < (how == 0 ? 6 : 1); t++) {
      learn_some(&v, 1, true);
      EXPECT(asks(&v));
    }
    learn_some(&v, 1, true);
    EXPECT(!asks(&v) && forgone(&v) == 3);
    queue(&v, 4, QUEUE_US);
    learn_some(&v, 1, true);
    EXPECT(!asks(&v));
    scene_free(&v.s);
  }
}
END_TEST

// A viewer that requests does so at once, not only for urgent segments, and asks its neighbours not
// to push.
START_TEST(who_asks_is_not_pushed_to) {
  for (int asks_now = 0; asks_now < 2; asks_now++) {
    viewer v;
    begin(&v, 2);
    v.e->shortage.asks = asks_now;
    v.e->shortage.crowded = 0; // it knows that
    for (size_t i = 0; i < 2; i++)
      scene_map(&v.s, i, WINDOW, 0);
    scene_run(&v.s, 5 * STEP_US);
    EXPECT((v.s.asked[0] > 0) == asks_now && (v.s.asked[1] > 0) == asks_now);
    scene_run(&v.s, SECOND);
    EXPECT(v.s.map_refuses == asks_now);
    EXPECT(!asks_now || v.e->neighbours[0].ask_window == 8); // though nothing was answered
    scene_free(&v.s);
  }
}
END_TEST

START_TEST(only_the_last_part_is_asked_for) {
  viewer v;
  begin(&v, 4);
  for (uint16_t lacks = 0; lacks <= N; lacks++) {
    weft_window_held(v.e, KEPT)->received = (uint16_t)(N - lacks);
    weft_window_held(v.e, FORGONE)->received = (uint16_t)(N - lacks);
    v.e->shortage.forgone = 0;
    EXPECT(weft_shortage_may_ask(v.e, KEPT) && weft_shortage_may_ask(v.e, FORGONE));
    v.e->shortage.forgone = 1;
    EXPECT(weft_shortage_may_ask(v.e, KEPT) == (lacks <= N / 8));
    EXPECT(!weft_shortage_may_ask(v.e, FORGONE));
  }
  scene_free(&v.s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("forgo");
  TCase *t = tcase_create("forgo");
  tcase_add_test(t, two_late_of_eight_cost_a_class);
  tcase_add_test(t, those_in_time_give_a_class_back);
  tcase_add_test(t, what_is_late_by_churn_costs_nothing);
  tcase_add_test(t, rests_are_measured);
  tcase_add_test(t, a_link_that_queues_is_narrow);
  tcase_add_test(t, a_narrow_link_forgoes_what_a_segment_lacks);
  tcase_add_test(t, a_link_is_tried_again);
  tcase_add_test(t, what_queues_is_asked_for);
  tcase_add_test(t, some_cannot_ask);
  tcase_add_test(t, asking_ends);
  tcase_add_test(t, who_asks_is_not_pushed_to);
  tcase_add_test(t, only_the_last_part_is_asked_for);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
