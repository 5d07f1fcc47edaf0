// SPDX-License-Identifier: Apache-2.0
// Rules of docs/protocol.md that a swarm hardly notices when they are broken: one engine, and what
// neighbours say to it.
#include <string.h>

#include <sodium.h>

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { N = 16, K = 64, WINDOW = 16, BATCH = 8, SECOND = 1000000, STEP_US = 10000, MOST = 4 };
enum { SEGMENT_US = SECOND };

typedef struct scene {
  weft_ctx *ctx;
  weft_codec_rlnc rlnc;
  weft_codec codec;
  weft_engine_options options;
  weft_rng_chacha chacha;
  weft_engine *engine;
  test_rng chance;
  int64_t now_us;
  size_t dials, decoded;
  size_t data[MOST];  // coded packets, to each neighbour
  size_t asked[MOST]; // requests, to each
  size_t last, turns; // who got the last, and how often it was another one than before
} scene;

// Pushes nothing and asks for nothing: what goes out was asked for.
static const weft_policy silent = {.name = "silent"};

static void scene_new(scene *s, weft_engine_mode mode, bool source, bool trust,
                      int64_t checksum_us) {
  *s = (scene){.now_us = 5 * SECOND, .chance = test_rng_new(fixture_seed(), 7)};
  EXPECT_OK(weft_ctx_new(&s->ctx, NULL));
  s->rlnc = (weft_codec_rlnc){.ctx = s->ctx};
  s->codec = weft_codec_rlnc_table(&s->rlnc);
  weft_rng_chacha_seed(&s->chacha, fixture_seed(), 1);
  s->options = (weft_engine_options){.stream = 5,
                                     .blocks = N,
                                     .block_bytes = K,
                                     .mode = mode,
                                     .window = WINDOW,
                                     .batch = BATCH,
                                     .neighbours_max = MOST,
                                     .neighbours_target = 2,
                                     .addresses_max = 16,
                                     .codec = &s->codec,
                                     .policy = &silent,
                                     .rate_bits_per_s = mode == WEFT_MODE_BULK ? 0 : 8 * N * K,
                                     .checksum_us = checksum_us,
                                     .trust = trust ? &weft_trust_counted : NULL};
  const weft_engine_self self = {.source = source,
                                 .rng = weft_rng_chacha_table(&s->chacha),
                                 .address = {.length = 1, .bytes = {77}}};
  EXPECT_OK(weft_engine_new(s->ctx, &s->options, &self, &s->engine));
}

static void scene_free(scene *s) {
  weft_engine_free(s->engine);
  weft_ctx_free(s->ctx);
}

static void take_output(scene *s) {
  weft_burst burst;
  while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++)
      if (burst.datagrams[i].data[1] == WEFT_MESSAGE_REQUEST) {
        s->asked[burst.neighbour]++;
      } else if (burst.datagrams[i].data[1] <= WEFT_PACKET_SPARSE) {
        s->data[burst.neighbour]++;
        s->turns += burst.neighbour != s->last;
        s->last = burst.neighbour;
      }
}

static void run(scene *s, int64_t for_us) {
  for (const int64_t until_us = s->now_us + for_us; s->now_us < until_us; s->now_us += STEP_US) {
    weft_event event;
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_event(s->engine, &event)) {
      s->decoded += event.kind == WEFT_EVENT_DECODED;
      s->dials += event.kind == WEFT_EVENT_DIAL;
      if (event.kind == WEFT_EVENT_DIAL)
        weft_engine_dial_failed(s->engine, &event.address);
    }
    take_output(s);
  }
}

static weft_status say(scene *s, size_t neighbour, const uint8_t *message, size_t bytes) {
  return weft_engine_input(s->engine, neighbour, message, bytes, s->now_us);
}

// Says to have all segments before `first`, and nothing of the `count` from there on.
static void map(scene *s, size_t neighbour, uint64_t first, uint16_t count) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_map m = {.first = first,
                      .horizon = first,
                      .back = (uint16_t)first,
                      .count = count,
                      .entry_bytes = 2,
                      .suppliers = 1,
                      .stamps = {.stamp = 1}};
  const size_t bytes = weft_map_write(&m, out);
  for (size_t i = 0; i < count; i++)
    weft_map_put_rank(out, i, 0, 0, false);
  EXPECT_OK(say(s, neighbour, out, bytes));
}

static void add(scene *s, size_t neighbour, uint64_t first, uint16_t count) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
  size_t at;
  EXPECT_OK(weft_engine_add_neighbour(s->engine, NULL, s->now_us, &at));
  EXPECT(at == neighbour);
  EXPECT_OK(say(s, neighbour, out, weft_hello_write(&hello, out)));
  map(s, neighbour, first, count);
}

// Block i of the segment as it is; spoilt: as it is not.
static weft_status block(scene *s, size_t neighbour, uint64_t segment, size_t i, bool spoilt) {
  uint8_t payload[K], out[WEFT_DATAGRAM_MAX];
  size_t bytes;
  memset(payload, spoilt ? 0xee : (int)i, sizeof payload);
  const weft_packet packet = {
      .id = {.stream = 5, .segment = segment, .blocks = N, .block_bytes = K},
      .mode = WEFT_PACKET_SYSTEMATIC,
      .index = (uint16_t)i,
      .payload = payload};
  EXPECT_OK(weft_packet_write_session(&packet, out, sizeof out, &bytes));
  return say(s, neighbour, out, bytes);
}

// A combination that is none of the segment's.
static void noise(scene *s, size_t neighbour, uint64_t segment) {
  uint8_t payload[K], out[WEFT_DATAGRAM_MAX];
  size_t bytes;
  test_rng_fill(&s->chance, payload, sizeof payload);
  const weft_packet packet = {
      .id = {.stream = 5, .segment = segment, .blocks = N, .block_bytes = K},
      .mode = WEFT_PACKET_DENSE,
      .seed = test_rng_next(&s->chance),
      .payload = payload};
  EXPECT_OK(weft_packet_write_session(&packet, out, sizeof out, &bytes));
  (void)say(s, neighbour, out, bytes);
}

static void whole(scene *s, size_t neighbour, uint64_t segment) {
  for (size_t i = 0; i < N; i++)
    (void)block(s, neighbour, segment, i, false);
}

static void manifest(scene *s, size_t neighbour, uint64_t segment) {
  uint8_t out[WEFT_DATAGRAM_MAX], data[N * K];
  weft_manifest m = {.segment = segment,
                     .blocks = N,
                     .bytes = N * K,
                     .at_us = segment * SEGMENT_US,
                     .made_us = (uint64_t)s->now_us};
  for (size_t i = 0; i < N; i++)
    memset(data + i * K, (int)i, K);
  (void)crypto_generichash(m.digest, sizeof m.digest, data, sizeof data, NULL, 0);
  (void)say(s, neighbour, out, weft_manifest_write(&m, out));
}

static void ask(scene *s, size_t neighbour, uint64_t segment, uint16_t count) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_request r = {.segment = segment, .kind = WEFT_REQUEST_PACKETS, .count = count};
  EXPECT_OK(say(s, neighbour, out, weft_request_write(&r, 1, out)));
}

static weft_engine_statistics statistics(const scene *s) {
  weft_engine_statistics x;
  weft_engine_get_statistics(s->engine, &x);
  return x;
}

// --- Who is dialled

START_TEST(who_never_answers_is_forgotten) {
  scene s;
  const weft_peer_address there = {.length = 1, .bytes = {1}};
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  weft_engine_add_address(s.engine, &there);
  run(&s, 120 * (int64_t)SECOND);
  EXPECT(s.dials == 3);
  scene_free(&s);
}
END_TEST

START_TEST(nobody_dials_himself) {
  scene s;
  const weft_peer_address own = {.length = 1, .bytes = {77}};
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  weft_engine_add_address(s.engine, &own);
  run(&s, 60 * (int64_t)SECOND);
  EXPECT(s.dials == 0);
  scene_free(&s);
}
END_TEST

// --- What is answered

// A manifest goes before the first packet of its segment, and what was asked for goes after it:
// also where something that is not here was asked for before.
START_TEST(a_manifest_takes_no_answer_away) {
  static const uint8_t data[N * K];
  enum { ASKED = 4 };
  scene s;
  scene_new(&s, WEFT_MODE_BULK, true, true, 0);
  for (size_t i = 0; i < ASKED; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  add(&s, 0, 0, WINDOW);
  run(&s, STEP_US);
  ask(&s, 0, WINDOW - 1, ASKED);
  ask(&s, 0, 1, ASKED);
  run(&s, STEP_US);
  EXPECT(s.data[0] == ASKED);
  scene_free(&s);
}
END_TEST

// What a swarm lost of a segment all its peers ask the source for: one small answer in `ask`.
START_TEST(a_live_source_answers_little_and_seldom) {
  static const uint8_t data[N * K];
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, true, false, 0);
  EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  add(&s, 0, 0, WINDOW);
  run(&s, STEP_US);
  EXPECT(s.data[0] == 0);
  ask(&s, 0, 0, N);
  run(&s, STEP_US);
  EXPECT(s.data[0] == 1 + N / 16);
  for (int i = 0; i < 100; i++) { // for a second
    ask(&s, 0, 0, N);
    run(&s, STEP_US);
  }
  EXPECT(s.data[0] >= 9 * (1 + N / 16) && s.data[0] <= 12 * (1 + N / 16));
  scene_free(&s);
}
END_TEST

START_TEST(those_who_ask_are_answered_by_turns) {
  static const uint8_t data[N * K];
  scene s;
  scene_new(&s, WEFT_MODE_VOD, true, false, 0);
  EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  for (size_t i = 0; i < 3; i++) {
    add(&s, i, 0, WINDOW);
    ask(&s, i, 0, 5 * BATCH);
  }
  run(&s, STEP_US);
  EXPECT(s.data[0] == 5 * BATCH && s.data[1] == 5 * BATCH && s.data[2] == 5 * BATCH);
  EXPECT(s.turns == 14);
  scene_free(&s);
}
END_TEST

// A viewer answers for what somebody may still play: until a twelfth of the lag after it was due.
START_TEST(what_is_past_its_time_is_not_sent) {
  scene s;
  int64_t due_us;
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  add(&s, 0, 1, 0);
  add(&s, 1, 0, WINDOW);
  whole(&s, 0, 0); // which begins the stream
  whole(&s, 0, 0);
  EXPECT_OK(weft_engine_play_time(s.engine, 0, &due_us));
  EXPECT(due_us == 8 * SECOND); // a lag of 3 s
  run(&s, due_us + 200000 - s.now_us);
  EXPECT(s.decoded == 1 && s.data[1] == 0);
  ask(&s, 1, 0, 2);
  run(&s, 5 * STEP_US);
  EXPECT(s.data[1] == 2);
  ask(&s, 1, 0, 2);
  run(&s, 5 * STEP_US);
  EXPECT(s.data[1] == 2);
  scene_free(&s);
}
END_TEST

// --- What is kept

// Packets that wait for a checksum that never comes.
START_TEST(few_packets_wait_for_a_checksum) {
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, true, SECOND);
  add(&s, 0, 0, 0);
  for (uint64_t i = 0; i < 4; i++) // once to tell the time, and once to be kept
    manifest(&s, 0, i % 2);
  run(&s, STEP_US);
  for (int i = 0; i < 1000; i++)
    noise(&s, 0, 1);
  const weft_engine_statistics x = statistics(&s);
  EXPECT(x.hash_failures == 1);
  EXPECT(x.received_waiting > 0 && x.received_waiting + N <= 2 * N + BATCH);
  scene_free(&s);
}
END_TEST

// Bulk: who lacks what was dropped before it came is not waited for.
START_TEST(who_is_too_late_holds_up_nobody) {
  static const uint8_t data[N * K];
  scene s;
  scene_new(&s, WEFT_MODE_BULK, true, false, 0);
  add(&s, 0, 0, WINDOW);
  for (int i = 0; i < WINDOW; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  EXPECT(!weft_engine_source_ready(s.engine));
  map(&s, 0, 8, WINDOW);
  for (int i = 0; i < 8; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  EXPECT(!weft_engine_source_ready(s.engine));
  add(&s, 1, 0, 8);
  map(&s, 0, 16, WINDOW);
  EXPECT(weft_engine_source_ready(s.engine));
  scene_free(&s);
}
END_TEST

// Bulk: after how many seconds one that does not get on is waited for no more.
static int waited_for(uint16_t room) {
  static const uint8_t data[N * K];
  scene s;
  int seconds = 0;
  scene_new(&s, WEFT_MODE_BULK, true, false, 0);
  s.options.patience_us = 5 * SECOND;
  add(&s, 0, 0, room);
  for (int i = 0; i < WINDOW; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  for (; !weft_engine_source_ready(s.engine) && seconds < 60; seconds++) {
    map(&s, 0, 0, room);
    run(&s, SECOND);
  }
  scene_free(&s);
  return seconds;
}

// Whoever's window is full may wait himself for one that is given up for that.
START_TEST(who_has_no_room_has_twice_the_time) {
  EXPECT(waited_for(WINDOW) == 6);
  EXPECT(waited_for(0) == 11);
}
END_TEST

// --- Congestion

START_TEST(many_losses_halve_the_window) {
  static const uint8_t data[N * K];
  for (int lossy = 0; lossy < 2; lossy++) {
    scene s;
    uint8_t out[WEFT_DATAGRAM_MAX];
    weft_neighbour_statistics before, after;
    scene_new(&s, WEFT_MODE_LIVE, true, false, 0);
    s.options.policy = &weft_policy_push;
    s.options.congestion = true;
    add(&s, 0, 0, WINDOW);
    for (int i = 0; i < 4; i++)
      EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
    run(&s, 500000);
    EXPECT_OK(weft_engine_get_neighbour(s.engine, 0, &before));
    EXPECT(before.sent_packets >= 8 && before.sent_packets == s.data[0]);
    const uint32_t sent = (uint32_t)before.sent_packets;
    const weft_ack ack = {.sent = sent, .received = lossy ? sent / 2 : sent - sent / 8, .delay = 1};
    EXPECT_OK(say(&s, 0, out, weft_ack_write(&ack, out)));
    EXPECT_OK(weft_engine_get_neighbour(s.engine, 0, &after));
    EXPECT(lossy ? after.window_bytes == before.window_bytes / 2
                 : after.window_bytes > before.window_bytes);
    scene_free(&s);
  }
}
END_TEST

// --- Playback, and what spoilt a segment

// What a neighbour sent that has gone convicts nobody who has its number now.
START_TEST(nobody_is_banned_for_who_was_there_before) {
  for (int gone = 0; gone < 2; gone++) {
    scene s;
    uint8_t out[WEFT_DATAGRAM_MAX], sums[N * WEFT_CHECKSUM_ROWS] = {1};
    scene_new(&s, WEFT_MODE_LIVE, false, true, SECOND);
    add(&s, 0, 0, 0);
    for (uint64_t i = 0; i < 4; i++)
      manifest(&s, 0, i % 2);
    EXPECT_OK(block(&s, 0, 1, 0, true));
    if (gone) {
      EXPECT_OK(weft_engine_remove_neighbour(s.engine, 0));
      add(&s, 0, 0, 0);
    }
    run(&s, 400000);
    const weft_checksum c = {
        .segment = 1, .blocks = N, .made_us = (uint64_t)s.now_us, .seed = 3, .sums = sums};
    EXPECT_OK(say(&s, 0, out, weft_checksum_write(&c, out)));
    const weft_engine_statistics x = statistics(&s);
    EXPECT(x.received_polluted == 1 && x.banned == !gone);
    scene_free(&s);
  }
}
END_TEST

// A machine that slept for longer than its window goes on where the stream is, and counts nothing
// of what it slept through.
START_TEST(who_slept_goes_on_at_the_edge) {
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, false, 0);
  add(&s, 0, 1, 0);
  for (uint64_t segment = 0; segment < 6; segment++) {
    whole(&s, 0, segment);
    whole(&s, 0, segment);
    run(&s, SEGMENT_US);
  }
  const weft_engine_statistics before = statistics(&s);
  EXPECT(before.in_time >= 2 && before.skipped == 0);
  s.now_us += 100 * (int64_t)SECOND;
  for (uint64_t segment = 104; segment < 110; segment++) { // the first of them is due in a second
    run(&s, STEP_US);
    map(&s, 0, segment + 1, 0);
    whole(&s, 0, segment);
    run(&s, SEGMENT_US - STEP_US);
  }
  const weft_engine_statistics after = statistics(&s);
  EXPECT(after.skipped == 0 && after.in_time >= before.in_time + 4);
  scene_free(&s);
}
END_TEST

// A segment that neighbour 0 spoilt and that neighbour 1 has whole.
static void spoilt_new(scene *s) {
  scene_new(s, WEFT_MODE_VOD, false, true, 0);
  add(s, 0, 0, 0);
  add(s, 1, 1, 0);
  manifest(s, 0, 0);
  for (size_t i = 0; i < N; i++)
    (void)block(s, 0, 0, i, i == 3);
}

// After a hash failure one that has the segment sends it alone; what that one sent before it was
// asked may be what it had not verified yet.
START_TEST(a_spoilt_segment_comes_from_one_that_was_asked) {
  scene s;
  spoilt_new(&s);
  EXPECT(statistics(&s).hash_failures == 1);
  run(&s, 2 * STEP_US); // the other one is chosen, and asked
  whole(&s, 1, 0);
  run(&s, STEP_US);
  EXPECT(s.decoded == 0);
  run(&s, 300000); // longer than a round trip is taken to be
  whole(&s, 0, 0);
  run(&s, STEP_US);
  EXPECT(s.decoded == 0);
  whole(&s, 1, 0);
  run(&s, STEP_US);
  EXPECT(s.decoded == 1 && statistics(&s).hash_failures == 1);
  scene_free(&s);
}
END_TEST

// What it sent may be lost, and there may be nobody else to ask.
START_TEST(the_only_one_who_has_a_spoilt_segment_is_asked_again) {
  scene s;
  spoilt_new(&s);
  run(&s, SECOND);
  EXPECT(statistics(&s).hash_failures == 1 && s.asked[1] >= 1);
  const size_t before = s.asked[1];
  for (int i = 0; i < 20; i++) {
    map(&s, 1, 1, 0); // it is there
    run(&s, SECOND);
  }
  EXPECT(s.asked[1] >= before + 10);
  scene_free(&s);
}
END_TEST

// Blocks by number, more than two requests have room for: what one neighbour was asked for, no
// other one is asked for meanwhile.
START_TEST(blocks_under_way_are_not_asked_of_another) {
  enum { BLOCKS = 256, NEIGHBOURS = 2 };
  scene s = {.now_us = 5 * SECOND};
  weft_codec_blocks plain;
  uint64_t asked[BLOCKS / 64] = {0}, again = 0;
  uint8_t out[WEFT_DATAGRAM_MAX];
  EXPECT_OK(weft_ctx_new(&s.ctx, NULL));
  plain = (weft_codec_blocks){.ctx = s.ctx};
  s.codec = weft_codec_blocks_table(&plain);
  weft_rng_chacha_seed(&s.chacha, fixture_seed(), 1);
  s.options = (weft_engine_options){.stream = 5,
                                    .blocks = BLOCKS,
                                    .block_bytes = 4,
                                    .mode = WEFT_MODE_VOD,
                                    .window = WINDOW,
                                    .batch = BATCH,
                                    .neighbours_max = MOST,
                                    .requests_max = 2,
                                    .codec = &s.codec,
                                    .policy = &silent,
                                    .rate_bits_per_s = 8 * BLOCKS * 4};
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&s.chacha)};
  EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &s.engine));
  const weft_hello hello = {
      .stream = 5, .blocks = BLOCKS, .block_bytes = 4, .stamps = {.stamp = 1}};
  for (size_t i = 0, at; i < NEIGHBOURS; i++) {
    EXPECT_OK(weft_engine_add_neighbour(s.engine, NULL, s.now_us, &at));
    EXPECT_OK(say(&s, at, out, weft_hello_write(&hello, out)));
    map(&s, at, 20, 0);
  }
  for (size_t requests = 0; requests < 2 * NEIGHBOURS; s.now_us += STEP_US) {
    EXPECT(s.now_us < 7 * SECOND);
    weft_engine_tick(s.engine, s.now_us);
    weft_burst burst;
    while (weft_engine_output(s.engine, s.now_us, &burst) == WEFT_OK)
      for (size_t i = 0; i < burst.count; i++) {
        weft_message m;
        if (weft_message_parse(burst.datagrams[i].data, burst.datagrams[i].bytes, 5, BLOCKS, 4,
                               &m) != WEFT_OK ||
            m.kind != WEFT_MESSAGE_REQUEST)
          continue;
        for (size_t k = 0; k < m.as.requests.count; k++, requests++) {
          const weft_request r = weft_requests_get(&m.as.requests, k);
          again |= asked[r.count / 64] & r.mask;
          asked[r.count / 64] |= r.mask;
        }
      }
  }
  EXPECT(!again);
  scene_free(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rules");
  TCase *t = tcase_create("rules");
  tcase_add_test(t, blocks_under_way_are_not_asked_of_another);
  tcase_add_test(t, who_never_answers_is_forgotten);
  tcase_add_test(t, nobody_dials_himself);
  tcase_add_test(t, a_manifest_takes_no_answer_away);
  tcase_add_test(t, a_live_source_answers_little_and_seldom);
  tcase_add_test(t, those_who_ask_are_answered_by_turns);
  tcase_add_test(t, what_is_past_its_time_is_not_sent);
  tcase_add_test(t, few_packets_wait_for_a_checksum);
  tcase_add_test(t, who_is_too_late_holds_up_nobody);
  tcase_add_test(t, who_has_no_room_has_twice_the_time);
  tcase_add_test(t, many_losses_halve_the_window);
  tcase_add_test(t, nobody_is_banned_for_who_was_there_before);
  tcase_add_test(t, who_slept_goes_on_at_the_edge);
  tcase_add_test(t, a_spoilt_segment_comes_from_one_that_was_asked);
  tcase_add_test(t, the_only_one_who_has_a_spoilt_segment_is_asked_again);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
