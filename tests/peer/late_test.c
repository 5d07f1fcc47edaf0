// SPDX-License-Identifier: Apache-2.0
// Nodes that join a fetch when others have begun: what no current node needs any more is kept for
// them while there is room.
#include "tests/peer/scene.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENT = N * K, FIT = WINDOW, LONG = 5 * WINDOW / 2 };
static uint8_t input[LONG * SEGMENT];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 43);
  test_rng_fill(&rng, input, sizeof input);
}

// Makes a fetch of `bytes`; the source is node 0, and sends a segment in 40 ms.
static swarm *fetch(size_t bytes, size_t window, uint64_t salt) {
  swarm *s = swarm_new(input, bytes, salt);
  s->options.mode = WEFT_MODE_BULK;
  s->options.window = window;
  swarm_start(s, &(weft_engine_self){.upload_bits_per_s = 300000});
  s->options.window = WINDOW; // for the viewers, which are still to come
  return s;
}

static size_t add(swarm *s, size_t first, size_t last) {
  const size_t node = swarm_add(s, &(weft_engine_self){.start = 0, .upload_bits_per_s = 300000});
  for (size_t i = first; i <= last; i++)
    swarm_connect(s, node, i);
  return node;
}

static bool has_all(const swarm *s, size_t node, size_t segments) {
  return s->node[node].read == segments && !s->node[node].wrong;
}

// What fits into the windows is available to later nodes, whether the last segment is full, or
// short, or the stream is two segments longer than the viewers' window.
START_TEST(what_fits_is_had_by_who_comes_later) {
  static const size_t bytes[] = {FIT * SEGMENT, FIT * SEGMENT - 300, (FIT + 2) * SEGMENT};
  const size_t all = (bytes[_i] + SEGMENT - 1) / SEGMENT;
  for (uint64_t read = 1; read < all; read += 5) {
    swarm *s = fetch(bytes[_i], WINDOW + 2, read);
    const size_t early = add(s, 0, 0);
    swarm_run_until_read(s, early, read);
    const size_t late = add(s, 0, early);
    swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
    EXPECT(has_all(s, early, all) && has_all(s, late, all));
    EXPECT(weft_engine_finished(s->node[0].engine));
    swarm_free(s);
  }
}
END_TEST

// Nodes that have fetched it keep it, too: a viewer with nothing more to get has room for all of
// it, whether it reads as much at once or less.
START_TEST(a_viewer_keeps_it_as_well) {
  swarm *s = fetch(FIT * SEGMENT - 1, WINDOW, 7);
  s->options.ahead = (size_t)_i;
  const size_t first = add(s, 0, 0), second = add(s, first, first);
  swarm_run_until_read(s, first, FIT);
  EXPECT(s->node[second].read > 0 && s->node[second].read < FIT);
  const size_t late = add(s, first, second);
  swarm_kill(s, 0, false);
  swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
  EXPECT(has_all(s, first, FIT) && has_all(s, second, FIT) && has_all(s, late, FIT));
  swarm_free(s);
}
END_TEST

START_TEST(what_is_taken_at_once_is_what_maps_say) {
  static const size_t aheads[] = {0, 1, 3, WINDOW, 2 * WINDOW};
  static const weft_engine_mode modes[] = {WEFT_MODE_BULK, WEFT_MODE_VOD};
  for (size_t i = 0; i < 2 * (sizeof aheads / sizeof *aheads); i++) {
    const size_t ahead = aheads[i / 2];
    const uint64_t most =
        modes[i % 2] == WEFT_MODE_BULK && ahead && ahead < WINDOW ? ahead : WINDOW;
    scene s;
    scene_new(&s, modes[i % 2], false, false, 0);
    s.options.ahead = ahead; // read with every map
    scene_add(&s, 0, 2 * WINDOW, 0);
    scene_run(&s, SECOND);
    EXPECT(s.hello_window == most && s.map_first == 0 && s.map_count == most);
    scene_whole(&s, 0, 0);
    scene_run(&s, SECOND);
    EXPECT(s.map_first == 1 && s.map_count == (most < WINDOW ? most : WINDOW - 1));
    scene_free(&s);
  }
}
END_TEST

// Sends the map of a node that has everything before `first`, and `rank` packets of the last
// segment, which is 3 blocks.
static void say_map(scene *s, bool end_known, uint64_t first, uint16_t rank) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_map m = {.end_known = end_known,
                      .end_bytes = end_known ? (N + 3) * K : 0,
                      .first = first,
                      .horizon = 2,
                      .back = (uint16_t)first,
                      .count = (uint16_t)(2 - first),
                      .entry_bytes = 2,
                      .suppliers = 1,
                      .stamps = {.stamp = 1}};
  const size_t bytes = weft_map_write(&m, out);
  for (size_t i = 0; i < m.count; i++)
    weft_map_put_rank(out, i, i + 1 == m.count ? rank : 0, 0, false);
  EXPECT_OK(scene_say(s, 0, out, bytes));
}

static bool had_all_of_it(const scene *s) {
  weft_neighbour_statistics x;
  EXPECT_OK(weft_engine_get_neighbour(s->engine, 0, &x));
  return x.had_all;
}

// Before a node knows the end, it takes the last segment for a full one, so three packets, which
// may be junk, are not all of it. A node that is no longer waited for has all of it: both sides may
// have said their last word.
START_TEST(a_short_segment_is_not_had_before_the_end_is_known) {
  for (int knows = 0; knows < 2; knows++) {
    static const uint8_t data[N * K];
    scene s;
    scene_new(&s, WEFT_MODE_BULK, true, false, 0);
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
    EXPECT_OK(weft_engine_source_put(s.engine, data, 3 * K, 0, s.now_us));
    scene_add(&s, 0, 0, WINDOW);
    say_map(&s, knows, 0, 3);
    say_map(&s, true, 1, knows ? 3 : 0);
    EXPECT(weft_engine_finished(s.engine) == (knows == 1));
    EXPECT(had_all_of_it(&s) == (knows == 1));
    say_map(&s, true, 2, 0);
    EXPECT(weft_engine_finished(s.engine) && had_all_of_it(&s));
    scene_free(&s);
  }
}
END_TEST

// A node that comes after all others have finished and said so is served by any that is still
// there.
START_TEST(who_comes_at_the_end_has_it_as_well) {
  for (size_t from = 0; from < 2; from++) { // from the source, from the first
    swarm *s = fetch(FIT * SEGMENT - 1, WINDOW, 23);
    const size_t early = add(s, 0, 0);
    swarm_run(s, 20 * (int64_t)SECOND);
    EXPECT(has_all(s, early, FIT) && weft_engine_finished(s->node[from].engine));
    const size_t late = add(s, from, from);
    EXPECT(!weft_engine_finished(s->node[from].engine));
    swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
    EXPECT(has_all(s, late, FIT) && weft_engine_finished(s->node[from].engine));
    swarm_free(s);
  }
}
END_TEST

// A node that comes when no other has the beginning gets what is held of its window, and lacks the
// rest for ever; no node waits for that.
START_TEST(who_comes_too_late_holds_nobody_up) {
  size_t lacking = 0;
  for (uint64_t read = 1; read < LONG; read += 3) {
    swarm *s = fetch(sizeof input, WINDOW / 2, 17 + read);
    const size_t early = add(s, 0, 0);
    swarm_run_until_read(s, early, read);
    const size_t late = add(s, 0, early);
    swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
    EXPECT(has_all(s, early, LONG));
    EXPECT(weft_engine_finished(s->node[0].engine));
    EXPECT(weft_engine_finished(s->node[early].engine));
    lacking += !has_all(s, late, LONG);
    swarm_free(s);
  }
  EXPECT(lacking > 0);
}
END_TEST

// A node that has lost all neighbours drops nothing to make room, so the next one to come gets all
// that was held.
START_TEST(who_has_lost_all_others_drops_nothing) {
  swarm *s = fetch(sizeof input, WINDOW, 11);
  const size_t early = add(s, 0, 0);
  swarm_run_until_read(s, early, 4);
  const size_t most = s->fed + WINDOW / 2 * SEGMENT; // its last maps are under way
  swarm_kill(s, early, true);
  swarm_run(s, s->now_us + SECOND);
  const size_t fed = s->fed;
  EXPECT(fed <= most);
  const size_t late =
      swarm_add(s, &(weft_engine_self){.start = WEFT_START_OLDEST, .upload_bits_per_s = 300000});
  swarm_connect(s, late, 0);
  swarm_run(s, s->now_us + 20 * (int64_t)SECOND);
  EXPECT(has_all(s, late, LONG - (fed / SEGMENT - WINDOW)));
  swarm_free(s);
}
END_TEST

// Of a longer stream, a source holds the last segments that it made, and makes no more than the
// present nodes have room for.
START_TEST(a_longer_stream_goes_on) {
  swarm *s = fetch(sizeof input, WINDOW, 13);
  const size_t early = add(s, 0, 0);
  swarm_run(s, 10 * 1000);
  EXPECT(s->fed == WINDOW * SEGMENT);
  swarm_run_until_read(s, early, 8);
  EXPECT(s->fed > WINDOW * SEGMENT && s->fed <= (WINDOW + 12) * SEGMENT);
  swarm_run(s, 60 * (int64_t)SECOND);
  EXPECT(has_all(s, early, LONG));
  EXPECT(weft_engine_finished(s->node[0].engine));
  swarm_free(s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("late");
  TCase *t = tcase_create("late");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_loop_test(t, what_fits_is_had_by_who_comes_later, 0, 3);
  tcase_add_loop_test(t, a_viewer_keeps_it_as_well, 0, 3);
  tcase_add_test(t, what_is_taken_at_once_is_what_maps_say);
  tcase_add_test(t, who_comes_at_the_end_has_it_as_well);
  tcase_add_test(t, a_short_segment_is_not_had_before_the_end_is_known);
  tcase_add_test(t, who_comes_too_late_holds_nobody_up);
  tcase_add_test(t, who_has_lost_all_others_drops_nothing);
  tcase_add_test(t, a_longer_stream_goes_on);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
