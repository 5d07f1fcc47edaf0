// SPDX-License-Identifier: Apache-2.0
// On demand, neighbours tell each other where the source is (REFER): those that met it there, whose
// key proved it. What they say is believed until something better is known.
#include <string.h>

#include "tests/peer/scene.h"
#include "tests/support/test_main.h"

enum { FAR = 100, SOURCE = 90, FALSE = 91, OTHER = 10, SELF = 77, CALLS = 64 };

static weft_peer_address at(uint8_t number) {
  return (weft_peer_address){.length = 1, .bytes = {number}};
}

typedef struct seen {
  size_t asked; // the neighbour that was asked last; MOST: none
  size_t count;
  uint8_t calls[CALLS];
} seen;

// What it does within that time. Calls fail.
static seen watch(scene *s, int64_t for_us) {
  seen o = {.asked = MOST};
  for (const int64_t until_us = s->now_us + for_us; s->now_us < until_us; s->now_us += STEP_US) {
    weft_event event;
    weft_burst burst;
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
      for (size_t i = 0; i < burst.count; i++)
        if (burst.datagrams[i].data[1] == WEFT_MESSAGE_REFER &&
            burst.datagrams[i].data[2] & WEFT_REFER_WANTED)
          o.asked = burst.neighbour;
    while (weft_engine_event(s->engine, &event)) {
      if (event.kind != WEFT_EVENT_DIAL)
        continue;
      if (o.count < CALLS)
        o.calls[o.count++] = event.address.bytes[0];
      weft_engine_dial_failed(s->engine, &event.address);
    }
  }
  return o;
}

static size_t calls(const seen *o, uint8_t number) {
  size_t count = 0;
  for (size_t i = 0; i < o->count; i++)
    count += o->calls[i] == number;
  return count;
}

// Makes a viewer whose neighbours, all that it may have, are at the beginning, like itself.
static void begin(scene *s) {
  scene_new(s, WEFT_MODE_VOD, false, false, 0);
  for (size_t i = 0; i < MOST; i++)
    scene_add(s, i, 0, WINDOW);
  for (int i = 0; i < 3; i++) {
    scene_whole(s, 0, s->decoded);
    scene_run(s, SECOND);
  }
}

// The neighbour says that the source is there, and that another peer is at OTHER.
static void tell(scene *s, size_t neighbour, uint8_t where) {
  const weft_peer_address told[] = {at(where), at(OTHER)};
  uint8_t out[WEFT_DATAGRAM_MAX];
  EXPECT_OK(scene_say(s, neighbour, out,
                      weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_SOURCE, told, 2, out)));
}

// The viewer goes to where no neighbour is, and asks one of them, which tells it.
static void seek_and_tell(scene *s, uint8_t where) {
  EXPECT_OK(weft_engine_seek(s->engine, FAR, s->now_us));
  const seen before = watch(s, SECOND / 10);
  EXPECT(before.asked < MOST);
  tell(s, before.asked, where);
}

START_TEST(who_is_told_calls_the_source_first) {
  scene s;
  begin(&s);
  seek_and_tell(&s, SOURCE);
  const seen after = watch(&s, SECOND);
  EXPECT(after.count >= 2 && after.calls[0] == SOURCE && calls(&after, OTHER));
  EXPECT(!weft_engine_needs_source(s.engine, s.now_us));
  scene_free(&s);
}
END_TEST

START_TEST(who_did_not_ask_is_not_told) {
  scene s;
  begin(&s);
  for (size_t i = 0; i < MOST; i++)
    tell(&s, i, SOURCE);
  EXPECT_OK(weft_engine_seek(s.engine, FAR, s.now_us));
  const seen after = watch(&s, SECOND);
  EXPECT(after.count == 0);
  scene_free(&s);
}
END_TEST

// What a neighbour says replaces nothing that may be true: an address that a tracker told, or that
// another neighbour did, until calls there have failed.
START_TEST(a_lie_replaces_no_other_word) {
  scene s;
  begin(&s);
  const weft_peer_address source = at(SOURCE);
  weft_engine_set_source_address(s.engine, &source);
  seek_and_tell(&s, FALSE);
  const seen after = watch(&s, 9 * SECOND); // the source is called every two, others every ten
  EXPECT(calls(&after, SOURCE) >= 4 && calls(&after, FALSE) == 1);
  scene_free(&s);
}
END_TEST

// A false address costs three calls there. Then another word is believed, and what is known for
// certain is at any time.
START_TEST(a_lie_lasts_for_some_calls) {
  for (int calls_before = 2; calls_before <= 3; calls_before++)
    for (int certain = 0; certain < 2; certain++) {
      scene s;
      begin(&s);
      seek_and_tell(&s, FALSE);
      const seen before = watch(&s, (2 * calls_before - 1) * SECOND);
      EXPECT(calls(&before, FALSE) == (size_t)calls_before && before.asked < MOST);
      const weft_peer_address source = at(SOURCE);
      if (certain)
        weft_engine_set_source_address(s.engine, &source);
      else
        tell(&s, before.asked, SOURCE);
      const seen after = watch(&s, 9 * SECOND);
      const bool believed = certain || calls_before == 3;
      EXPECT((calls(&after, SOURCE) >= 4) == believed && (calls(&after, FALSE) >= 4) != believed);
      scene_free(&s);
    }
}
END_TEST

// A peer at an address that was said to be the source's is not the source.
START_TEST(a_peer_is_not_taken_for_the_source) {
  scene s;
  size_t number;
  begin(&s);
  seek_and_tell(&s, FALSE);
  const seen after = watch(&s, SECOND / 10);
  EXPECT(calls(&after, FALSE) == 1 && !weft_engine_needs_source(s.engine, s.now_us));
  const weft_neighbour_options options = {.address = at(FALSE), .dialled = true};
  for (size_t i = 0; i < MOST; i++)
    (void)weft_engine_remove_neighbour(s.engine, i);
  for (size_t i = 0; i < MOST; i++)
    scene_add(&s, i, 0, WINDOW);
  EXPECT_OK(weft_engine_remove_neighbour(s.engine, 0));
  EXPECT_OK(weft_engine_add_neighbour(s.engine, &options, s.now_us, &number));
  EXPECT(weft_engine_needs_source(s.engine, s.now_us));
  scene_free(&s);
}
END_TEST

// What the engine answers to that neighbour, or (MOST) to a peer for which it has no room.
static weft_refer answer(scene *s, size_t neighbour, uint8_t out[WEFT_DATAGRAM_MAX]) {
  weft_burst burst;
  weft_message m;
  size_t bytes = weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_WANTED, NULL, 0, out);
  if (neighbour < MOST) {
    EXPECT_OK(scene_say(s, neighbour, out, bytes));
    bytes = 0;
    while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
      for (size_t i = 0; i < burst.count; i++)
        if (burst.datagrams[i].data[1] == WEFT_MESSAGE_REFER) {
          bytes = burst.datagrams[i].bytes;
          memcpy(out, burst.datagrams[i].data, bytes);
        }
  } else {
    bytes = weft_engine_refusal(s->engine, NULL, out);
  }
  EXPECT_OK(weft_message_parse(out, bytes, 5, N, K, &m));
  return m.as.refer;
}

static bool names_source(scene *s, size_t neighbour) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_refer refer = answer(s, neighbour, out);
  const uint8_t *first = refer.addresses, *next = first;
  size_t count = 0;
  for (size_t i = 0; i < refer.count; i++) {
    const weft_peer_address one = weft_refer_next(&next);
    count += one.length == 1 && one.bytes[0] == SOURCE;
  }
  const bool named = refer.flags & WEFT_REFER_SOURCE;
  EXPECT(!named || (count == 1 && first[1] == SOURCE)); // once, and first
  return named;
}

static size_t add_source(scene *s) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
  const weft_neighbour_options options = {.address = at(SOURCE), .is_source = true};
  size_t number;
  EXPECT_OK(weft_engine_add_neighbour(s->engine, &options, s->now_us, &number));
  EXPECT_OK(scene_say(s, number, out, weft_hello_write(&hello, out)));
  return number;
}

// Only those that met it: what others said is not passed on. And only on demand.
START_TEST(who_met_the_source_tells_of_it) {
  for (int mode = WEFT_MODE_BULK; mode <= WEFT_MODE_LIVE; mode++) {
    const bool on_demand = mode == WEFT_MODE_VOD;
    scene s;
    scene_new(&s, (weft_engine_mode)mode, false, false, 0);
    scene_add(&s, 0, 0, WINDOW);
    const weft_peer_address source = at(SOURCE);
    weft_engine_set_source_address(s.engine, &source);
    EXPECT(!names_source(&s, 0) && !names_source(&s, MOST));
    const size_t number = add_source(&s);
    EXPECT(names_source(&s, 0) == on_demand && names_source(&s, MOST) == on_demand);
    EXPECT(!names_source(&s, number));                 // it knows
    weft_engine_set_source_address(s.engine, &source); // a tracker says so, too
    EXPECT_OK(weft_engine_remove_neighbour(s.engine, number));
    EXPECT(names_source(&s, 0) == on_demand);
    for (int i = 0; i < 3; i++)
      weft_engine_dial_failed(s.engine, &source);
    EXPECT(!names_source(&s, 0));
    scene_free(&s);
  }
}
END_TEST

// How often the only neighbour is asked in a minute, if each answer is that address, said to be
// the source's or not.
static size_t questions(weft_engine_mode mode, uint8_t where, uint8_t flags) {
  const weft_peer_address told = at(where);
  size_t count = 0;
  scene s;
  scene_new(&s, mode, false, false, 0);
  scene_add(&s, 0, 0, WINDOW);
  for (const int64_t end_us = s.now_us + 60 * SECOND; s.now_us < end_us;) {
    uint8_t out[WEFT_DATAGRAM_MAX];
    const seen o = watch(&s, STEP_US);
    if (o.asked == MOST)
      continue;
    count++;
    EXPECT_OK(
        scene_say(&s, o.asked, out, weft_refer_write(WEFT_MESSAGE_REFER, flags, &told, 1, out)));
  }
  scene_free(&s);
  return count;
}

// Where the flag brings nothing new, it leads to no other question at once: one's own address, or,
// where sources are not told, a known one.
START_TEST(no_news_of_the_source_leads_to_no_question) {
  static const struct {
    weft_engine_mode mode;
    uint8_t where;
  } cases[] = {{WEFT_MODE_VOD, SELF},
               {WEFT_MODE_LIVE, SELF},
               {WEFT_MODE_BULK, SELF},
               {WEFT_MODE_LIVE, OTHER},
               {WEFT_MODE_BULK, OTHER}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const size_t plain = questions(cases[i].mode, cases[i].where, 0);
    EXPECT(plain > 0 && questions(cases[i].mode, cases[i].where, WEFT_REFER_SOURCE) == plain);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("source told");
  TCase *t = tcase_create("source told");
  tcase_add_test(t, who_is_told_calls_the_source_first);
  tcase_add_test(t, who_did_not_ask_is_not_told);
  tcase_add_test(t, a_lie_replaces_no_other_word);
  tcase_add_test(t, a_lie_lasts_for_some_calls);
  tcase_add_test(t, a_peer_is_not_taken_for_the_source);
  tcase_add_test(t, who_met_the_source_tells_of_it);
  tcase_add_test(t, no_news_of_the_source_leads_to_no_question);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
