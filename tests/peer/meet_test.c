// SPDX-License-Identifier: Apache-2.0
// Peers behind NATs: a node that is told of another dials it, and that one dials back, told by a
// node that knows both.
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/scene.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { SEGMENTS = 60, INPUT_BYTES = SEGMENTS * 1024 };
static uint8_t input[INPUT_BYTES];

static void setup(void) {
  test_rng rng = test_rng_new(test_seed(), 22);
  test_rng_fill(&rng, input, sizeof input);
}

// --- Swarms

static bool neighbours(const swarm *s, size_t a, size_t b) {
  for (size_t i = 0; i < SWARM_LINKS; i++)
    if (s->node[a].links[i].used && s->node[a].links[i].node == b)
      return true;
  return false;
}

// Makes a source, and two viewers that know no other node.
static swarm *trio(bool nat, uint64_t salt) {
  swarm *s = swarm_new_live(input, sizeof input, salt);
  s->options.lag_us = 2 * SECOND;
  s->options.neighbours_target = 4;
  s->options.addresses_max = 8;
  s->options.timers.exchange_us = SECOND;
  swarm_start(s, NULL);
  for (size_t i = 1; i <= 2; i++) {
    swarm_add(s, NULL);
    s->node[i].nat = nat;
    swarm_connect(s, i, 0);
  }
  return s;
}

START_TEST(two_behind_nats_meet) {
  swarm *s = trio(true, 1);
  swarm_run(s, 2 * SECOND);
  EXPECT(neighbours(s, 1, 2) && neighbours(s, 2, 1));
  swarm_run(s, SEGMENTS * SWARM_SEGMENT_US + 5 * SECOND);
  for (size_t i = 1; i <= 2; i++) {
    const weft_engine_statistics x = swarm_statistics(s, i);
    EXPECT(x.due > 0 && x.in_time == x.due && !s->node[i].wrong);
  }
  swarm_free(s);
}
END_TEST

// A node that can be reached directly does not dial back, which would cost a second handshake.
START_TEST(who_can_be_reached_is_not_called_back) {
  swarm *s = trio(false, 2);
  swarm_run(s, 3 * SECOND);
  EXPECT(neighbours(s, 1, 2));
  for (size_t i = 0; i <= 2; i++)
    EXPECT(s->node[i].calls_back == 0);
  swarm_free(s);
}
END_TEST

static size_t links_of_a_crowd(uint64_t salt) {
  enum { VIEWERS = 24 };
  swarm *s = swarm_new_live(input, sizeof input, salt);
  s->fate = swarm_lossy;
  s->loss_percent = 2;
  s->options.lag_us = 2 * SECOND;
  s->options.neighbours_max = 12;
  s->options.neighbours_target = 6;
  s->options.addresses_max = 32;
  s->options.timers.exchange_us = SECOND;
  swarm_start(s, NULL);
  for (size_t i = 1; i <= VIEWERS; i++) {
    swarm_add(s, NULL);
    s->node[i].nat = true;
    swarm_connect(s, i, i <= 4 ? 0 : i - 4); // connected by other means
  }
  swarm_run(s, SEGMENTS * SWARM_SEGMENT_US + 5 * SECOND);
  size_t links = 0;
  for (size_t i = 1; i <= VIEWERS; i++) {
    const weft_engine_statistics x = swarm_statistics(s, i);
    EXPECT(x.due > 0 && x.in_time == x.due);
    for (size_t other = 1; other <= VIEWERS; other++)
      links += neighbours(s, i, other);
  }
  swarm_free(s);
  return links;
}

// A crowd becomes one mesh although each node is told of by one that is itself behind a NAT: only
// the first knew the source. Four links a viewer, 96 in a crowd: in 150 crowds 94 to 150, on
// average 118; at most 40 without introductions.
START_TEST(a_crowd_behind_nats_is_one_mesh) {
  enum { CROWDS = 3, EACH = 96 };
  size_t links = 0;
  for (uint64_t i = 0; i < CROWDS; i++)
    links += links_of_a_crowd(3 + 100 * i);
  EXPECT(links >= (size_t)CROWDS * EACH);
}
END_TEST

// --- One engine, and what it is sent

static weft_peer_address place(uint32_t number) {
  weft_peer_address address = {.length = 4};
  memcpy(address.bytes, &number, sizeof number);
  return address;
}

static weft_status say_meet(scene *s, size_t neighbour, uint8_t flags, uint32_t first,
                            size_t count) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  weft_peer_address told[WEFT_MEET_MAX];
  for (size_t i = 0; i < count; i++)
    told[i] = place(first + (uint32_t)i);
  return scene_say(s, neighbour, out, weft_refer_write(WEFT_MESSAGE_MEET, flags, told, count, out));
}

// Returns the next address that it dials within that time; length 0: none.
static weft_peer_address next_dial(scene *s, int64_t for_us, bool *calls_back) {
  for (const int64_t until_us = s->now_us + for_us; s->now_us < until_us; s->now_us += STEP_US) {
    weft_event event;
    weft_burst burst;
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_event(s->engine, &event))
      if (event.kind == WEFT_EVENT_DIAL) {
        *calls_back = event.calls_back;
        return event.address;
      }
    while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
      ;
  }
  return (weft_peer_address){0};
}

static scene *one_neighbour(void) {
  static scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, true, 0);
  scene_add(&s, 0, 0, 0);
  return &s;
}

// A call is returned after 300 ms, in which the caller may get through directly.
START_TEST(a_call_is_returned) {
  scene *s = one_neighbour();
  bool calls_back = false;
  scene_run(s, SECOND / 10);
  const int64_t before_us = s->now_us;
  EXPECT_OK(say_meet(s, 0, WEFT_MEET_CALL, 9, 1));
  EXPECT(weft_engine_deadline(s->engine) <= before_us + 3 * SECOND / 10);
  const weft_peer_address called = next_dial(s, SECOND, &calls_back), nine = place(9);
  EXPECT(called.length == 4 && memcmp(called.bytes, nine.bytes, 4) == 0 && calls_back);
  EXPECT(s->now_us - before_us >= 3 * SECOND / 10 && s->now_us - before_us < SECOND / 2);
  // The same from a tracker; while that call lasts, a second one changes nothing.
  weft_engine_call(s->engine, &nine, s->now_us);
  EXPECT(next_dial(s, SECOND, &calls_back).length == 0);
  const weft_peer_address ten = place(10), none = {0};
  weft_engine_call(s->engine, &none, s->now_us);
  weft_engine_call(s->engine, &ten, s->now_us);
  EXPECT(next_dial(s, SECOND, &calls_back).length == 4 && calls_back);
  scene_free(s);
}
END_TEST

START_TEST(who_is_a_neighbour_by_then_is_not_called) {
  scene *s = one_neighbour();
  bool calls_back = false;
  size_t number;
  const weft_neighbour_options options = {.address = place(9)};
  EXPECT_OK(say_meet(s, 0, WEFT_MEET_CALL, 9, 1));
  EXPECT(next_dial(s, SECOND / 10, &calls_back).length == 0);
  EXPECT_OK(weft_engine_add_neighbour(s->engine, &options, s->now_us, &number));
  EXPECT(next_dial(s, SECOND, &calls_back).length == 0);
  scene_free(s);
}
END_TEST

START_TEST(a_call_that_is_said_again_is_returned_in_time) {
  scene *s = one_neighbour();
  bool calls_back = false;
  int64_t waited_us = 0;
  scene_run(s, SECOND / 10);
  for (; !calls_back && waited_us < 2 * SECOND; waited_us += STEP_US) {
    EXPECT_OK(say_meet(s, 0, WEFT_MEET_CALL, 9, 1));
    (void)next_dial(s, STEP_US, &calls_back);
  }
  EXPECT(calls_back && waited_us < SECOND / 2);
  scene_free(s);
}
END_TEST

START_TEST(who_has_no_room_calls_nobody_back) {
  scene *s = one_neighbour();
  bool calls_back = false;
  for (size_t i = 1; i < MOST; i++)
    scene_add(s, i, 0, 0);
  EXPECT_OK(say_meet(s, 0, WEFT_MEET_CALL, 9, 1));
  EXPECT(next_dial(s, SECOND, &calls_back).length == 0);
  scene_free(s);
}
END_TEST

// A neighbour that names callers all the time causes few calls, and displaces no address that was
// not dialled yet.
START_TEST(calls_of_a_liar_are_few) {
  scene *s = one_neighbour();
  bool calls_back;
  size_t returned = 0;
  scene_run(s, SECOND / 10);
  for (uint32_t i = 0; i < 12; i++) {
    const weft_peer_address address = place(1000000 + i);
    weft_engine_add_address(s->engine, &address);
  }
  const int64_t until_us = s->now_us + 10 * SECOND;
  for (uint32_t number = 0; s->now_us < until_us; number += WEFT_MEET_MAX) {
    (void)say_meet(s, 0, WEFT_MEET_CALL, number, WEFT_MEET_MAX);
    calls_back = false;
    (void)next_dial(s, STEP_US, &calls_back);
    returned += calls_back;
  }
  EXPECT(returned > 0 && returned <= 10 * 14); // four at a time, 300 ms each
  bool seen[12] = {0};
  size_t count = 0;
  for (size_t i = 0; i < 40; i++) { // now, one after another, those that it knew
    const weft_peer_address called = next_dial(s, 10 * SECOND, &calls_back);
    uint32_t number = 0;
    memcpy(&number, called.bytes, sizeof number);
    if (called.length == 4 && number >= 1000000 && !seen[number - 1000000])
      seen[number - 1000000] = true, count++;
    if (called.length)
      weft_engine_dial_failed(s->engine, &called);
  }
  EXPECT(count >= 8); // all but those that were dialled meanwhile
  scene_free(s);
}
END_TEST

// Returns the addresses of the last MEET that goes out to this neighbour.
static size_t met(scene *s, size_t neighbour, uint8_t *flags, weft_peer_address *out) {
  weft_burst burst;
  size_t count = 0;
  while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++) {
      weft_message m;
      const weft_datagram *d = &burst.datagrams[i];
      if (burst.neighbour != neighbour || d->data[1] != WEFT_MESSAGE_MEET)
        continue;
      EXPECT_OK(weft_message_parse(d->data, d->bytes, 5, N, K, &m));
      const uint8_t *at = m.as.meet.addresses;
      *flags = m.as.meet.flags;
      for (count = 0; count < m.as.meet.count; count++)
        out[count] = weft_refer_next(&at);
    }
  return count;
}

// The node that named an address is asked to introduce us, and none for an address from elsewhere.
START_TEST(who_told_of_it_is_asked) {
  scene *s = one_neighbour();
  uint8_t out[WEFT_DATAGRAM_MAX], flags = 9;
  weft_peer_address asked[WEFT_MEET_MAX];
  const weft_peer_address told = place(7), by_hand = place(8);
  bool calls_back;
  s->options.timers.exchange_us = SECOND / 10;
  (void)next_dial(s, 6 * SECOND, &calls_back); // it asks for addresses
  EXPECT_OK(scene_say(s, 0, out, weft_refer_write(WEFT_MESSAGE_REFER, 0, &told, 1, out)));
  EXPECT(next_dial(s, SECOND, &calls_back).length == 4 && !calls_back);
  EXPECT(met(s, 0, &flags, asked) == 1 && flags == 0 && memcmp(&asked[0], &told, 5) == 0);
  weft_engine_add_address(s->engine, &by_hand);
  EXPECT(next_dial(s, 2 * SECOND, &calls_back).length == 4 && !calls_back); // not within a second
  EXPECT(met(s, 0, &flags, asked) == 0);
  scene_free(s);
}
END_TEST

// Two neighbours are told each other's address on request; no others are.
START_TEST(neighbours_are_introduced) {
  scene s;
  size_t number[2];
  uint8_t out[WEFT_DATAGRAM_MAX], flags = 9;
  weft_peer_address told[WEFT_MEET_MAX];
  scene_new(&s, WEFT_MODE_LIVE, true, true, 0);
  for (uint32_t i = 0; i < 2; i++) {
    const weft_neighbour_options options = {.address = place(20 + i)};
    const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
    EXPECT_OK(weft_engine_add_neighbour(s.engine, &options, s.now_us, &number[i]));
    EXPECT_OK(scene_say(&s, number[i], out, weft_hello_write(&hello, out)));
  }
  (void)met(&s, 0, &flags, told);
  EXPECT_OK(say_meet(&s, number[0], 0, 20, 4)); // itself, the other one, and two unknown ones
  EXPECT(met(&s, number[1], &flags, told) == 1 && flags == WEFT_MEET_CALL);
  const weft_peer_address first = place(20);
  EXPECT(memcmp(&told[0], &first, 5) == 0);
  EXPECT_OK(say_meet(&s, number[0], 0, 21, 1)); // and the asking one has gone
  EXPECT_OK(weft_engine_remove_neighbour(s.engine, number[0]));
  EXPECT(met(&s, number[1], &flags, told) == 0);
  scene_free(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("meet");
  TCase *t = tcase_create("meet");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, two_behind_nats_meet);
  tcase_add_test(t, who_can_be_reached_is_not_called_back);
  tcase_add_test(t, a_crowd_behind_nats_is_one_mesh);
  tcase_add_test(t, a_call_is_returned);
  tcase_add_test(t, who_is_a_neighbour_by_then_is_not_called);
  tcase_add_test(t, a_call_that_is_said_again_is_returned_in_time);
  tcase_add_test(t, who_has_no_room_calls_nobody_back);
  tcase_add_test(t, calls_of_a_liar_are_few);
  tcase_add_test(t, who_told_of_it_is_asked);
  tcase_add_test(t, neighbours_are_introduced);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
