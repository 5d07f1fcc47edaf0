// SPDX-License-Identifier: Apache-2.0
// Rules of docs/protocol.md whose breach a swarm hardly notices: which nodes are dialled, what is
// answered, requested and kept.
#include <string.h>

#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

// --- Which nodes are dialled

START_TEST(who_never_answers_is_forgotten) {
  scene s;
  const weft_peer_address there = {.length = 1, .bytes = {1}};
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  weft_engine_add_address(s.engine, &there);
  scene_run(&s, 120 * (int64_t)SECOND);
  EXPECT(s.dials == 3);
  scene_free(&s);
}
END_TEST

START_TEST(nobody_dials_himself) {
  scene s;
  const weft_peer_address own = {.length = 1, .bytes = {77}};
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  weft_engine_add_address(s.engine, &own);
  scene_run(&s, 60 * (int64_t)SECOND);
  EXPECT(s.dials == 0);
  scene_free(&s);
}
END_TEST

// --- What is answered

// Makes a source that has made one segment.
static void one_made(scene *s, weft_engine_mode mode, uint64_t upload_bits_per_s) {
  static const uint8_t data[N * K];
  scene_new_source(s, mode, upload_bits_per_s);
  EXPECT_OK(weft_engine_source_put(s->engine, data, sizeof data, 0, s->now_us));
}

// A manifest is sent before the first packet of its segment, and requested data after it, also when
// something that is not here was requested before.
START_TEST(a_manifest_takes_no_answer_away) {
  static const uint8_t data[N * K];
  enum { ASKED = 4 };
  scene s;
  scene_new(&s, WEFT_MODE_BULK, true, true, 0);
  for (size_t i = 0; i < ASKED; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  scene_add(&s, 0, 0, WINDOW);
  scene_run(&s, STEP_US);
  scene_ask(&s, 0, WINDOW - 1, ASKED);
  scene_ask(&s, 0, 1, ASKED);
  scene_run(&s, STEP_US);
  EXPECT(s.data[0] == ASKED);
  scene_free(&s);
}
END_TEST

// A live source answers little and seldom: all peers of a swarm request what it lost of a segment,
// and get one small answer per `ask`.
START_TEST(a_live_source_answers_little_and_seldom) {
  scene s;
  one_made(&s, WEFT_MODE_LIVE, 0);
  scene_add(&s, 0, 0, WINDOW);
  scene_run(&s, STEP_US);
  EXPECT(s.data[0] == 0);
  scene_ask(&s, 0, 0, N);
  scene_run(&s, STEP_US);
  EXPECT(s.data[0] == 1 + N / 16);
  for (int i = 0; i < 100; i++) { // for a second
    scene_ask(&s, 0, 0, N);
    scene_run(&s, STEP_US);
  }
  EXPECT(s.data[0] >= 9 * (1 + N / 16) && s.data[0] <= 12 * (1 + N / 16));
  scene_free(&s);
}
END_TEST

START_TEST(those_who_ask_are_answered_by_turns) {
  scene s;
  one_made(&s, WEFT_MODE_VOD, 0);
  for (size_t i = 0; i < 3; i++) {
    scene_add(&s, i, 0, WINDOW);
    scene_ask(&s, i, 0, 5 * BATCH);
  }
  scene_run(&s, STEP_US);
  EXPECT(s.data[0] == 5 * BATCH && s.data[1] == 5 * BATCH && s.data[2] == 5 * BATCH);
  EXPECT(s.turns == 14);
  scene_free(&s);
}
END_TEST

// Requests for one segment add up, up to all of it: a node that requests more before the first
// packets have come wants those, too.
START_TEST(requests_for_one_segment_add_up) {
  scene s;
  one_made(&s, WEFT_MODE_VOD, 0);
  scene_add(&s, 0, 0, WINDOW);
  scene_ask(&s, 0, 0, 5);
  scene_ask(&s, 0, 0, 2);
  scene_run(&s, STEP_US);
  EXPECT(s.data[0] == 7);
  for (int i = 0; i < 5; i++)
    scene_ask(&s, 0, 0, N / 2);
  scene_run(&s, STEP_US);
  EXPECT(s.data[0] == 7 + N);
  scene_free(&s);
}
END_TEST

// What the requesting node has given up is not sent, when the uplink takes longer than that node
// waits.
START_TEST(what_is_asked_for_elsewhere_by_now_is_not_sent) {
  enum { BURST_BITS = 8 * BATCH * (K + 60), ASK_US = 100000 };
  scene s;
  one_made(&s, WEFT_MODE_VOD, BURST_BITS * 3 / 2); // a burst in more than 4 ASK_US
  for (size_t i = 0; i < 2; i++) {
    scene_add(&s, i, 0, WINDOW);
    scene_ask(&s, i, 0, BATCH);
  }
  scene_run(&s, 20 * ASK_US);
  EXPECT(s.data[0] == BATCH && s.data[1] == 0);
  scene_ask(&s, 1, 0, BATCH); // not given up yet
  scene_run(&s, ASK_US);
  EXPECT(s.data[1] == BATCH);
  scene_free(&s);
}
END_TEST

// A viewer gives what another may still play, until a twelfth of the lag after it was due, and
// nothing later.
START_TEST(what_is_past_its_time_is_not_sent) {
  scene s;
  int64_t due_us;
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  scene_add(&s, 0, 1, 0);
  scene_add(&s, 1, 0, WINDOW);
  scene_whole(&s, 0, 0); // this begins the stream
  scene_whole(&s, 0, 0);
  EXPECT_OK(weft_engine_play_time(s.engine, 0, &due_us));
  EXPECT(due_us == 8 * SECOND); // a lag of 3 s
  scene_run(&s, due_us + 200000 - s.now_us);
  EXPECT(s.decoded == 1 && s.data[1] == 0);
  scene_ask(&s, 1, 0, 2);
  scene_run(&s, 5 * STEP_US);
  EXPECT(s.data[1] == 2);
  scene_ask(&s, 1, 0, 2);
  scene_run(&s, 5 * STEP_US);
  EXPECT(s.data[1] == 2);
  scene_free(&s);
}
END_TEST

// A node that requests what is past is told the stream's time; one that learned it late would
// otherwise go on requesting what no node gives.
START_TEST(who_asks_for_what_is_past_is_told_the_time) {
  scene s;
  int64_t due_us;
  scene_new(&s, WEFT_MODE_LIVE, false, true, 0);
  scene_add(&s, 0, 2, 0);
  scene_add(&s, 1, 0, WINDOW);
  for (uint64_t i = 0; i < 4; i++) // once to tell the time, and once to be kept
    scene_manifest(&s, 0, i % 2);
  scene_whole(&s, 0, 0);
  EXPECT_OK(weft_engine_play_time(s.engine, 0, &due_us));
  scene_run(&s, due_us - s.now_us);
  EXPECT(s.decoded == 1 && s.manifests[1] == 0);
  scene_ask(&s, 1, 0, 1);
  scene_run(&s, STEP_US);
  EXPECT(s.data[1] == 1 && s.manifests[1] == 1); // its own, which goes before it
  scene_run(&s, 300000);
  scene_ask(&s, 1, 0, 1);
  scene_run(&s, STEP_US);
  EXPECT(s.data[1] == 1 && s.manifests[1] == 2);
  scene_free(&s);
}
END_TEST

// --- What is requested

static size_t most_asked; // packets at once

static bool ask_for_all(void *user, const weft_policy_view *view, const weft_rng *rng,
                        weft_policy_choice *out) {
  (void)user, (void)rng;
  const size_t asked = weft_policy_asked(view, 0, view->missing), room = view->neighbour[0].room;
  most_asked = asked + room;
  *out = (weft_policy_choice){.segment = view->missing, .count = room};
  return room > 0;
}

// Losses reduce little of what a node requests from a neighbour: after a few packets have come, it
// requests as much as at first.
START_TEST(who_answers_is_soon_asked_for_as_much_as_at_first) {
  static const weft_policy greedy = {.name = "greedy", .ask = ask_for_all};
  scene s;
  scene_new(&s, WEFT_MODE_VOD, false, false, 0);
  s.options.policy = &greedy;
  scene_add(&s, 0, 1, 0);
  scene_run(&s, STEP_US);
  EXPECT(most_asked == 8);
  scene_run(&s, SECOND * 9 / 10); // nothing came, and it was asked again
  EXPECT(most_asked == 4);
  for (size_t i = 0; i < 4; i++) {
    EXPECT_OK(scene_block(&s, 0, 0, i, false));
    scene_run(&s, STEP_US);
  }
  EXPECT(most_asked == 8);
  scene_free(&s);
}
END_TEST

// --- What is kept

// Only few packets wait for a checksum that never comes.
START_TEST(few_packets_wait_for_a_checksum) {
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, true, SECOND);
  scene_add(&s, 0, 0, 0);
  for (uint64_t i = 0; i < 4; i++) // once to tell the time, and once to be kept
    scene_manifest(&s, 0, i % 2);
  scene_run(&s, STEP_US);
  for (int i = 0; i < 1000; i++)
    scene_noise(&s, 0, 1);
  const weft_engine_statistics x = scene_statistics(&s);
  EXPECT(x.hash_failures == 1);
  EXPECT(x.received_waiting > 0 && x.received_waiting + N <= 2 * N + BATCH);
  scene_free(&s);
}
END_TEST

// Bulk: a node that lacks what was dropped before it came is not waited for.
START_TEST(who_is_too_late_holds_up_nobody) {
  static const uint8_t data[N * K];
  scene s;
  scene_new(&s, WEFT_MODE_BULK, true, false, 0);
  scene_add(&s, 0, 0, WINDOW);
  for (int i = 0; i < WINDOW; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  EXPECT(!weft_engine_source_ready(s.engine));
  scene_map(&s, 0, 8, WINDOW);
  for (int i = 0; i < 8; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  EXPECT(!weft_engine_source_ready(s.engine));
  scene_add(&s, 1, 0, 8);
  scene_map(&s, 0, 16, WINDOW);
  EXPECT(weft_engine_source_ready(s.engine));
  scene_free(&s);
}
END_TEST

// Bulk: returns after how many seconds a node without progress is no longer waited for.
static int waited_for(uint16_t room) {
  static const uint8_t data[N * K];
  scene s;
  int seconds = 0;
  scene_new(&s, WEFT_MODE_BULK, true, false, 0);
  s.options.patience_us = 5 * SECOND;
  scene_add(&s, 0, 0, room);
  for (int i = 0; i < WINDOW; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  for (; !weft_engine_source_ready(s.engine) && seconds < 60; seconds++) {
    scene_map(&s, 0, 0, room);
    scene_run(&s, SECOND);
  }
  scene_free(&s);
  return seconds;
}

// A node whose window is full has twice the time: it may itself wait for one that is given up.
START_TEST(who_has_no_room_has_twice_the_time) {
  EXPECT(waited_for(WINDOW) == 6);
  EXPECT(waited_for(0) == 11);
}
END_TEST

// A node that was given up and makes progress again is waited for as before, for as long from then
// on.
START_TEST(who_gets_on_again_is_waited_for_again) {
  static const uint8_t data[N * K];
  scene s;
  scene_new(&s, WEFT_MODE_BULK, true, false, 0);
  s.options.patience_us = 5 * SECOND;
  scene_add(&s, 0, 0, WINDOW);
  for (int i = 0; i < WINDOW; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  for (int i = 0; i < 8; i++) {
    scene_map(&s, 0, 0, WINDOW);
    scene_run(&s, SECOND);
  }
  EXPECT(weft_engine_source_ready(s.engine)); // given up
  scene_map(&s, 0, 4, WINDOW);
  for (int i = 0; weft_engine_source_ready(s.engine) && i < 2 * WINDOW; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  EXPECT(!weft_engine_source_ready(s.engine));
  scene_run(&s, 4 * SECOND);
  EXPECT(!weft_engine_source_ready(s.engine));
  scene_run(&s, 2 * SECOND);
  EXPECT(weft_engine_source_ready(s.engine));
  scene_free(&s);
}
END_TEST

// Returns how many packets are sent of the one segment that a neighbour lacks after a jump, when
// its brake for that segment comes after `maps` maps.
static size_t sent_after_jump(int maps) {
  static const uint8_t data[N * K];
  scene s;
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_map jump = {.first = 2,
                         .horizon = 4,
                         .count = 1,
                         .epoch = 1,
                         .entry_bytes = 2,
                         .suppliers = 1,
                         .stamps = {.stamp = 1}};
  scene_new(&s, WEFT_MODE_BULK, true, false, 0);
  s.options.policy = &weft_policy_push;
  scene_add(&s, 0, 0, WINDOW);
  const size_t bytes = weft_map_write(&jump, out);
  weft_map_put_rank(out, 0, 0, 0, false);
  for (int i = 0; i < maps; i++)
    EXPECT_OK(scene_say(&s, 0, out, bytes));
  EXPECT_OK(scene_say(&s, 0, out, weft_brake_write(2, out)));
  for (int i = 0; i < 4; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  scene_run(&s, SECOND / 5);
  const size_t sent = s.data[0];
  scene_free(&s);
  return sent;
}

START_TEST(a_brake_that_a_jump_overtook_stops_nothing) {
  EXPECT(sent_after_jump(1) == N && sent_after_jump(15) == N);
  EXPECT(sent_after_jump(16) == 0);
}
END_TEST

// --- Congestion

// Half of all packets lost for a few round trips: the window falls, as it was doubling to a
// quarter. One in eight may be lost for ever.
START_TEST(many_losses_shrink_the_window) {
  static const uint8_t data[N * K];
  for (int lossy = 0; lossy < 2; lossy++) {
    scene s;
    uint8_t out[WEFT_DATAGRAM_MAX];
    weft_neighbour_statistics before, after;
    scene_new(&s, WEFT_MODE_LIVE, true, false, 0);
    s.options.policy = &weft_policy_push;
    s.options.congestion = true;
    scene_add(&s, 0, 0, WINDOW);
    bool fell = false;
    for (int round = 0; round < 4 && !fell; round++) {
      for (int i = 0; i < 4; i++)
        EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
      scene_run(&s, 500000);
      EXPECT_OK(weft_engine_get_neighbour(s.engine, 0, &before));
      EXPECT(before.sent_packets >= 8 && before.sent_packets == s.data[0]);
      const uint32_t sent = (uint32_t)before.sent_packets;
      const weft_ack ack = {
          .sent = sent, .received = lossy ? sent / 2 : sent - sent / 8, .delay = 1};
      EXPECT_OK(scene_say(&s, 0, out, weft_ack_write(&ack, out)));
      EXPECT_OK(weft_engine_get_neighbour(s.engine, 0, &after));
      fell = after.window_bytes < before.window_bytes;
      EXPECT(fell ? after.window_bytes == before.window_bytes / 4
                  : round > 0 || after.window_bytes > before.window_bytes);
    }
    EXPECT(fell == lossy);
    scene_free(&s);
  }
}
END_TEST

// Makes a live source that has sent its neighbour a segment.
static uint32_t source_that_sent(scene *s) {
  enum { PART = 2 * BATCH / 8 }; // of the first window, which is a burst
  static const uint8_t data[N * K];
  weft_neighbour_statistics n;
  scene_new(s, WEFT_MODE_LIVE, true, false, 0);
  s->options.policy = &weft_policy_push;
  s->options.congestion = true;
  scene_add(s, 0, 0, WINDOW);
  EXPECT_OK(weft_engine_source_put(s->engine, data, sizeof data, 0, s->now_us));
  scene_run(s, STEP_US);
  EXPECT_OK(weft_engine_get_neighbour(s->engine, 0, &n));
  EXPECT(n.sent_packets >= BATCH && s->paces * PART == n.sent_packets);
  return (uint32_t)n.sent_packets;
}

// The end of a burst is announced again if no acknowledgement comes; before the first measurement,
// round trips are assumed to take 200 ms.
START_TEST(the_end_of_a_burst_is_said_again) {
  scene s;
  uint8_t out[WEFT_DATAGRAM_MAX];
  const uint32_t sent = source_that_sent(&s);
  const size_t bursts = s.paces;
  scene_run(&s, 390000);
  EXPECT(s.paces == bursts);
  scene_run(&s, 30000);
  EXPECT(s.paces == bursts + 1);
  scene_run(&s, 410000);
  EXPECT(s.paces == bursts + 2);
  const weft_ack ack = {.sent = sent, .received = sent, .delay = 1};
  scene_map(&s, 0, 1, WINDOW - 1); // it has everything: nothing else follows
  EXPECT_OK(scene_say(&s, 0, out, weft_ack_write(&ack, out)));
  scene_run(&s, SECOND);
  EXPECT(s.paces == bursts + 2);
  scene_free(&s);
}
END_TEST

// Acknowledges all that was sent. Returns the queueing delay that is seen.
static int64_t acknowledge(scene *s, uint32_t delay) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  weft_neighbour_statistics n;
  EXPECT_OK(weft_engine_get_neighbour(s->engine, 0, &n));
  const uint32_t sent = (uint32_t)n.sent_packets;
  const weft_ack ack = {.sent = sent, .received = sent, .delay = delay};
  EXPECT_OK(scene_say(s, 0, out, weft_ack_write(&ack, out)));
  EXPECT_OK(weft_engine_get_neighbour(s->engine, 0, &n));
  return n.queueing_us;
}

// Returns the queueing delay that is seen after pauses in which the acknowledging node's clock
// gains gain_us, with this many segments after each.
static int64_t seen_after_pauses(int pauses, int seconds, uint32_t gain_us, int segments) {
  static const uint8_t data[N * K];
  scene s;
  int64_t seen_us = 0;
  (void)source_that_sent(&s);
  EXPECT(acknowledge(&s, 1) == 0);
  for (int i = 0; i < pauses; i++) {
    for (int t = 0; t < seconds; t++, scene_run(&s, SECOND))
      scene_map(&s, 0, 1 + (uint64_t)(i * segments), WINDOW - 1);
    for (int b = 0; b < segments; b++) {
      const size_t before = s.data[0];
      EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
      scene_run(&s, SECOND / 5);
      EXPECT(s.data[0] > before);
      seen_us = acknowledge(&s, 1 + gain_us * (uint32_t)(i + 1));
    }
  }
  scene_free(&s);
  return seen_us;
}

START_TEST(clocks_that_drift_in_a_pause_are_no_queue) {
  EXPECT(seen_after_pauses(1, 300, 100000, 5) == 0);
  EXPECT(seen_after_pauses(3, 61, 5000, 1) <= 5000); // of this minute and the last
}
END_TEST

static size_t acks_of_pace(scene *s, uint32_t sent, uint32_t stamp) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const size_t before = s->acks;
  const weft_pace pace = {.sent = sent, .stamp = stamp};
  EXPECT_OK(scene_say(s, 0, out, weft_pace_write(&pace, out)));
  scene_run(s, 2 * STEP_US);
  return s->acks - before;
}

START_TEST(what_is_said_again_is_acknowledged_again) {
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  scene_add(&s, 0, 0, WINDOW);
  EXPECT(acks_of_pace(&s, 8, UINT32_MAX) == 1);
  EXPECT(acks_of_pace(&s, 8, 5) == 1);          // later: clocks wrap
  EXPECT(acks_of_pace(&s, 8, 5) == 0);          // the same datagram
  EXPECT(acks_of_pace(&s, 8, UINT32_MAX) == 0); // overtaken
  EXPECT(acks_of_pace(&s, 7, 6) == 0);
  EXPECT(acks_of_pace(&s, 9, 6) == 1);
  scene_free(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rules");
  TCase *t = tcase_create("rules");
  tcase_add_test(t, who_never_answers_is_forgotten);
  tcase_add_test(t, nobody_dials_himself);
  tcase_add_test(t, a_manifest_takes_no_answer_away);
  tcase_add_test(t, a_live_source_answers_little_and_seldom);
  tcase_add_test(t, those_who_ask_are_answered_by_turns);
  tcase_add_test(t, requests_for_one_segment_add_up);
  tcase_add_test(t, what_is_asked_for_elsewhere_by_now_is_not_sent);
  tcase_add_test(t, what_is_past_its_time_is_not_sent);
  tcase_add_test(t, who_asks_for_what_is_past_is_told_the_time);
  tcase_add_test(t, who_answers_is_soon_asked_for_as_much_as_at_first);
  tcase_add_test(t, few_packets_wait_for_a_checksum);
  tcase_add_test(t, who_is_too_late_holds_up_nobody);
  tcase_add_test(t, who_has_no_room_has_twice_the_time);
  tcase_add_test(t, who_gets_on_again_is_waited_for_again);
  tcase_add_test(t, a_brake_that_a_jump_overtook_stops_nothing);
  tcase_add_test(t, many_losses_shrink_the_window);
  tcase_add_test(t, the_end_of_a_burst_is_said_again);
  tcase_add_test(t, clocks_that_drift_in_a_pause_are_no_queue);
  tcase_add_test(t, what_is_said_again_is_acknowledged_again);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
