// SPDX-License-Identifier: Apache-2.0
// Congestion control (LEDBAT) message by message: one engine sends what is requested, and receives
// acknowledgements with losses and delays of the test's choice. Swarms work with nearly any window,
// so they hardly reveal an error in one.
#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { TARGET_US = 60000, ROUND_TRIP_US = 20000, FIRST = 16, LEAST = 2 };
static const uint32_t BASE = UINT32_MAX - 1000; // the difference of two clocks, which wraps soon

typedef struct path {
  scene s;
  uint64_t packet;   // bytes that one packet counts
  uint32_t received; // by the neighbour
  uint32_t stood_us; // for how long our clock stood still
  uint32_t round_trip_us;
} path;

static weft_neighbour_statistics look(const path *p) {
  weft_neighbour_statistics n;
  EXPECT_OK(weft_engine_get_neighbour(p->s.engine, 0, &n));
  return n;
}

static void acknowledge(path *p, uint32_t sent, uint32_t queueing_us) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_ack ack = {.sent = sent,
                        .received = p->received,
                        .delay = BASE + queueing_us + p->stood_us,
                        .stamp = (uint32_t)p->s.now_us - p->round_trip_us - queueing_us};
  EXPECT_OK(scene_say(&p->s, 0, out, weft_ack_write(&ack, out)));
}

// Bursts are spread over the round trip, the longer the more of it queues.
static void send_some(path *p, uint16_t count) {
  enum { LONGEST_US = 2 * SECOND };
  const uint64_t before = look(p).sent_packets;
  scene_ask(&p->s, 0, 0, count);
  scene_run(&p->s, STEP_US);
  for (int64_t us = 0; look(p).sent_packets < before + count && us < LONGEST_US; us += STEP_US)
    scene_run(&p->s, STEP_US);
  EXPECT(look(p).sent_packets == before + count);
}

// Sends packets and acknowledges all but some.
static void round_of(path *p, uint16_t count, uint16_t lost, uint32_t queueing_us) {
  send_some(p, count);
  p->received += (uint32_t)(count - lost);
  acknowledge(p, (uint32_t)look(p).sent_packets, queueing_us);
}

static void begin(path *p) {
  static const uint8_t data[N * K];
  *p = (path){.round_trip_us = ROUND_TRIP_US};
  scene_new_source(&p->s, WEFT_MODE_VOD, 0);
  p->s.step_us = 1000; // bursts are spread over less than a round trip
  p->s.options.congestion = true;
  EXPECT_OK(weft_engine_source_put(p->s.engine, data, sizeof data, 0, p->s.now_us));
  scene_add(&p->s, 0, 0, WINDOW);
  p->packet = look(p).window_bytes / FIRST;
  EXPECT(p->packet > K && look(p).window_bytes == FIRST * p->packet);
}

// Begins with a window that has left slow start, and a path without a queue.
static void begin_settled(path *p) {
  begin(p);
  round_of(p, 16, 0, 0);
  for (int i = 0; i < 4; i++)
    round_of(p, 1, 0, TARGET_US / 2);
  for (int i = 0; i < 4; i++)
    round_of(p, 1, 0, 0);
  EXPECT(look(p).queueing_us == 0);
}

START_TEST(a_window_doubles_by_what_arrives) {
  path p;
  begin(&p);
  send_some(&p, FIRST);
  scene_ask(&p.s, 0, 0, 1); // the window is full
  scene_run(&p.s, STEP_US);
  EXPECT(look(&p).sent_packets == FIRST);
  p.received = FIRST;
  acknowledge(&p, FIRST, 0);
  EXPECT(look(&p).window_bytes == 2 * FIRST * p.packet);
  scene_run(&p.s, STEP_US);
  EXPECT(look(&p).sent_packets == FIRST + 1);
  scene_free(&p.s);
}
END_TEST

// Acknowledgements of packets that were never sent, of packets older than the newest one
// acknowledged, and repeated ones change nothing.
START_TEST(acknowledgements_are_taken_once) {
  static const uint32_t of[] = {FIRST + 1, FIRST - 1, FIRST, UINT32_MAX, FIRST + 0x80000000u};
  path p;
  begin(&p);
  round_of(&p, FIRST, 0, 0);
  const uint64_t window = look(&p).window_bytes;
  for (size_t i = 0; i < 5 * sizeof of / sizeof *of; i++) {
    p.s.now_us += SECOND / 10;
    p.received = i % 2 ? 0 : UINT32_MAX;
    acknowledge(&p, of[i % 5], 2 * TARGET_US);
    EXPECT(look(&p).window_bytes == window && look(&p).queueing_us == 0);
  }
  scene_free(&p.s);
}
END_TEST

// The queueing delay is the least of the last four delays minus the least of all, so a single late
// packet shows no queue.
START_TEST(queues_shrink_a_window) {
  path p;
  begin_settled(&p);
  for (int i = 0; i < 12; i++) {
    round_of(&p, 1, 0, i % 4 ? 4 * TARGET_US : 100);
    EXPECT(look(&p).queueing_us <= 100);
  }
  for (int i = 0; i < 4; i++)
    round_of(&p, 1, 0, 3 * TARGET_US);
  EXPECT(look(&p).queueing_us == 3 * TARGET_US);
  uint64_t window = look(&p).window_bytes;
  round_of(&p, 8, 0, 3 * TARGET_US); // by half of the received packets at most
  EXPECT(look(&p).window_bytes == window - 4 * p.packet);
  for (int i = 0; i < 4; i++)
    round_of(&p, 1, 0, TARGET_US + TARGET_US / 4);
  window = look(&p).window_bytes;
  round_of(&p, 8, 0, TARGET_US + TARGET_US / 4); // else in proportion to the queue
  EXPECT(look(&p).window_bytes == window - 2 * p.packet);
  for (int i = 0; i < 200; i++)
    round_of(&p, 2, 0, 3 * TARGET_US);
  EXPECT(look(&p).window_bytes == LEAST * p.packet); // which it always is
  scene_free(&p.s);
}
END_TEST

// A settled window grows by two packets per round trip, as long as it is used.
START_TEST(a_settled_window_grows_slowly) {
  path p;
  begin_settled(&p);
  const uint64_t before = look(&p).window_bytes, packets = before / p.packet;
  EXPECT(packets >= 32 && packets < 64);
  for (uint64_t i = 0; i < packets; i++)
    round_of(&p, 1, 0, 0); // too little to learn anything of the path
  EXPECT(look(&p).window_bytes == before);
  send_some(&p, 16);
  send_some(&p, 16);
  p.received += 32;
  acknowledge(&p, (uint32_t)look(&p).sent_packets, 0);
  const uint64_t grown = look(&p).window_bytes - before, most = 2 * 32 * p.packet / packets;
  EXPECT(grown <= most && grown > most - p.packet / 8);
  scene_free(&p.s);
}
END_TEST

// Round trips with one packet each, after which what is missing counts as lost: that which was
// missing in both of two such round trips.
static void small_turns(path *p, int count) {
  for (int i = 0; i < count; i++) {
    scene_run(&p->s, 2 * ROUND_TRIP_US);
    round_of(p, 1, 0, 0);
  }
}

// Losses halve the window, once per round trip; one packet in eight may be lost for ever.
START_TEST(losses_halve_a_window) {
  path p;
  begin_settled(&p);
  for (int i = 0; i < 60; i++)
    round_of(&p, 8, 1, 0);
  uint64_t window = look(&p).window_bytes;
  EXPECT(window >= FIRST * p.packet);
  round_of(&p, 16, 16, 0);
  EXPECT(look(&p).window_bytes == window);
  small_turns(&p, 2);
  EXPECT(look(&p).window_bytes == window / 2);
  window = look(&p).window_bytes;
  scene_ask(&p.s, 0, 0, 16);
  scene_run(&p.s, STEP_US); // within a round trip
  acknowledge(&p, (uint32_t)look(&p).sent_packets, 0);
  EXPECT(look(&p).window_bytes >= window);
  for (int i = 0; i < 20; i++) {
    scene_run(&p.s, 2 * ROUND_TRIP_US);
    scene_ask(&p.s, 0, 0, 16);
    scene_run(&p.s, STEP_US);
    acknowledge(&p, (uint32_t)look(&p).sent_packets, 0);
    EXPECT(look(&p).window_bytes >= LEAST * p.packet);
  }
  EXPECT(look(&p).window_bytes <= 2 * LEAST * p.packet);
  scene_free(&p.s);
}
END_TEST

// A window that doubles falls to a quarter: it has doubled once more before the losses count.
START_TEST(losses_end_the_doubling) {
  path p;
  begin(&p);
  round_of(&p, 16, 0, 0);
  const uint64_t window = look(&p).window_bytes;
  EXPECT(window == 2 * FIRST * p.packet);
  round_of(&p, 16, 16, 0);
  const uint64_t doubled = look(&p).window_bytes;
  small_turns(&p, 3);
  EXPECT(look(&p).window_bytes == doubled / 4);
  scene_free(&p.s);
}
END_TEST

// Half of each burst is overtaken by its end, and comes before the next round trip: the window
// doubles, and does not shrink when it has settled.
START_TEST(late_packets_are_not_lost) {
  path p;
  if (_i == 0)
    begin(&p);
  else
    begin_settled(&p);
  const uint64_t before = look(&p).window_bytes;
  for (int i = 0; i < 40; i++) {
    scene_run(&p.s, 2 * ROUND_TRIP_US);
    round_of(&p, 16, 8, 0);
    scene_run(&p.s, STEP_US);
    p.received += 8;
    round_of(&p, 1, 0, 0);
    EXPECT(look(&p).window_bytes >= before);
  }
  EXPECT(_i || look(&p).window_bytes >= 2 * before);
  scene_free(&p.s);
}
END_TEST

// What is sent before a cut and lost, but acknowledged after it, does not halve the window again.
START_TEST(one_overflow_halves_a_window_once) {
  path p;
  begin_settled(&p);
  const uint64_t window = look(&p).window_bytes;
  round_of(&p, 16, 16, 0);
  small_turns(&p, 1);
  scene_run(&p.s, 2 * ROUND_TRIP_US);
  send_some(&p, 1);
  const uint32_t sent = (uint32_t)look(&p).sent_packets;
  send_some(&p, 16);
  p.received++;
  acknowledge(&p, sent, 0);
  EXPECT(look(&p).window_bytes == window / 2);
  acknowledge(&p, (uint32_t)look(&p).sent_packets, 0);
  small_turns(&p, 4);
  EXPECT(look(&p).window_bytes >= window / 2);
  round_of(&p, 16, 16, 0); // another one does
  small_turns(&p, 3);
  EXPECT(look(&p).window_bytes < window / 2);
  scene_free(&p.s);
}
END_TEST

// A window does not go on doubling while more than half of it is missing, even if nothing seems to
// queue: of a full queue only those PACEs tell that find it shorter.
START_TEST(a_window_does_not_double_into_losses) {
  path p;
  begin(&p);
  p.round_trip_us = 10 * ROUND_TRIP_US; // none ends meanwhile
  round_of(&p, 16, 0, 0);
  round_of(&p, 16, 16, 0);
  const uint64_t window = look(&p).window_bytes;
  EXPECT(window == 3 * FIRST * p.packet);
  round_of(&p, 32, 32, 0); // it uses more than half of the window, which could grow
  EXPECT(look(&p).window_bytes == window);
  scene_free(&p.s);
}
END_TEST

// A window is sent in a third of a round trip while it doubles, in four fifths of one later; no
// neighbour rests where that is soon over.
START_TEST(bursts_are_spread_over_a_round_trip) {
  enum { LONG_US = 20 * ROUND_TRIP_US };
  path p;
  begin(&p);
  p.round_trip_us = _i < 2 ? LONG_US : ROUND_TRIP_US / 20;
  round_of(&p, 16, 0, 0);
  for (int i = 0; i < 4 && _i == 1; i++)
    round_of(&p, 1, 0, TARGET_US / 2);
  const uint64_t before = look(&p).sent_packets, all = look(&p).window_bytes / p.packet;
  EXPECT(all >= 2 * N);
  scene_ask(&p.s, 0, 0, N);
  scene_run(&p.s, p.s.step_us);
  const uint64_t first = look(&p).sent_packets - before;
  EXPECT(_i == 2 ? first == N : first <= all / 8);
  const int64_t part_us = (_i ? LONG_US * 4 / 5 : LONG_US / 3) * (int64_t)N / (int64_t)all;
  scene_run(&p.s, part_us / 2);
  EXPECT(_i == 2 || look(&p).sent_packets < before + N);
  scene_run(&p.s, part_us);
  EXPECT(look(&p).sent_packets == before + N);
  scene_free(&p.s);
}
END_TEST

// Without any acknowledgement for a second and four round trips, everything in flight counts as
// lost.
START_TEST(silence_begins_anew) {
  path p;
  begin(&p);
  round_of(&p, FIRST, 0, 0);
  const uint64_t window = look(&p).window_bytes;
  send_some(&p, FIRST);
  const size_t paces = p.s.paces;
  scene_run(&p.s, SECOND);
  EXPECT(look(&p).window_bytes == window && p.s.paces > paces); // the burst's end is sent again
  scene_run(&p.s, 4 * ROUND_TRIP_US + 2 * STEP_US);
  EXPECT(look(&p).window_bytes == LEAST * p.packet);
  round_of(&p, 2, 0, 0); // as at the beginning
  EXPECT(look(&p).window_bytes == 2 * LEAST * p.packet);
  scene_free(&p.s);
}
END_TEST

// Bursts are cut to a small window: a burst of a whole batch would overrun it, and queue on a slow
// path.
START_TEST(a_burst_fits_into_a_small_window) {
  path p;
  begin(&p);
  round_of(&p, FIRST, 0, 0);
  send_some(&p, FIRST);
  scene_run(&p.s, SECOND);
  scene_run(&p.s, 4 * ROUND_TRIP_US + 2 * STEP_US);
  EXPECT(look(&p).window_bytes == LEAST * p.packet);
  const uint64_t before = look(&p).sent_packets;
  scene_ask(&p.s, 0, 0, 16);
  scene_run(&p.s, STEP_US);
  EXPECT(look(&p).sent_packets == before + LEAST);
  scene_free(&p.s);
}
END_TEST

// A path that has become longer looks like a queue for one to two minutes, by however much, and the
// window recovers soon after. A jump by more than half the range of stamps looks like a clock that
// jumped ahead, which is no queue.
START_TEST(the_least_delay_is_forgotten) {
  static const uint32_t longer_us[] = {20000, 2 * SECOND, 60 * SECOND, 2000u * SECOND,
                                       2200u * SECOND};
  enum { LONGER_FROM = 110, TOLD = 4, FORGOTTEN = 122, GROWN = 20 };
  const uint32_t by_us = longer_us[_i];
  const bool ahead = by_us > INT32_MAX;
  uint64_t before = 0;
  path p;
  begin_settled(&p);
  const int64_t began_us = p.s.now_us;
  for (int i = 0; i < LONGER_FROM + FORGOTTEN + GROWN; i++) { // a second each
    scene_run(&p.s, began_us + (i + 1) * SECOND - STEP_US - p.s.now_us);
    const uint64_t all = look(&p).window_bytes / p.packet;
    round_of(&p, (uint16_t)(all < N ? all : N), 0, i < LONGER_FROM ? 0 : by_us);
    const int64_t queueing_us = look(&p).queueing_us;
    before = i < LONGER_FROM ? look(&p).window_bytes : before;
    EXPECT(i >= LONGER_FROM || queueing_us == 0);
    EXPECT(i < LONGER_FROM + TOLD || i > LONGER_FROM + 59 || queueing_us == (ahead ? 0 : by_us));
    EXPECT(i < LONGER_FROM + FORGOTTEN || queueing_us == 0);
  }
  EXPECT(2 * look(&p).window_bytes >= before);
  scene_free(&p.s);
}
END_TEST

// A clock that stood still makes delays longer, but no round trip: by more than that, it is no
// queue. What queues from then on is measured from there.
START_TEST(a_clock_that_stood_still_is_no_queue) {
  static const uint32_t stood_us[] = {100000, SECOND, 30 * SECOND, 2000u * SECOND};
  path p;
  begin_settled(&p);
  p.stood_us = ROUND_TRIP_US; // this may be either
  for (int i = 0; i < 8; i++)
    round_of(&p, 1, 0, 0);
  EXPECT(look(&p).queueing_us == ROUND_TRIP_US);
  const uint64_t window = look(&p).window_bytes;
  p.stood_us += stood_us[_i];
  for (int i = 0; i < 40; i++) {
    round_of(&p, 4, 0, 0);
    EXPECT(look(&p).queueing_us == 0 && look(&p).window_bytes >= window);
  }
  for (int i = 0; i < 4; i++)
    round_of(&p, 1, 0, 3 * TARGET_US);
  EXPECT(look(&p).queueing_us == 3 * TARGET_US);
  scene_free(&p.s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("congestion");
  TCase *t = tcase_create("congestion");
  tcase_add_test(t, a_window_doubles_by_what_arrives);
  tcase_add_test(t, acknowledgements_are_taken_once);
  tcase_add_test(t, queues_shrink_a_window);
  tcase_add_test(t, a_settled_window_grows_slowly);
  tcase_add_test(t, losses_halve_a_window);
  tcase_add_test(t, losses_end_the_doubling);
  tcase_add_loop_test(t, late_packets_are_not_lost, 0, 2);
  tcase_add_test(t, one_overflow_halves_a_window_once);
  tcase_add_test(t, a_window_does_not_double_into_losses);
  tcase_add_loop_test(t, bursts_are_spread_over_a_round_trip, 0, 3);
  tcase_add_test(t, silence_begins_anew);
  tcase_add_loop_test(t, the_least_delay_is_forgotten, 0, 5);
  tcase_add_loop_test(t, a_clock_that_stood_still_is_no_queue, 0, 4);
  tcase_add_test(t, a_burst_fits_into_a_small_window);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
