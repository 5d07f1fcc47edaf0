// SPDX-License-Identifier: Apache-2.0
// What a neighbour states in its messages, times, numbers and counts, at their extremes and over
// and over, may cost that neighbour something, but not others.
#include <sodium.h>
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"

enum { N = 8, K = 64, WINDOW = 64, SECOND = 1000000, STEP_US = 10000, MOST = 8, KINDS = 4 };
static const uint64_t FAR_US = UINT64_C(1) << 60;

typedef struct scene {
  weft_ctx *ctx;
  weft_codec_rlnc rlnc;
  weft_codec codec;
  weft_trust_ed25519 nobody;
  weft_trust trust;
  weft_engine_options options;
  weft_rng_chacha chacha;
  weft_engine *engine;
  int64_t now_us;
  size_t lost[MOST], asked[MOST][KINDS]; // by neighbour; by kind of request
  size_t asked_of[MOST][WINDOW];         // requests for packets of each segment
  uint64_t checksum_of;                  // the segment whose checksum was requested last
} scene;

// Makes a scene in which all signatures are bad, or all are good.
static void scene_new(scene *s, weft_engine_mode mode, bool source, bool believe) {
  *s = (scene){.now_us = 5 * SECOND};
  EXPECT_OK(weft_ctx_new(&s->ctx, NULL));
  s->rlnc = (weft_codec_rlnc){.ctx = s->ctx};
  s->codec = weft_codec_rlnc_table(&s->rlnc);
  s->trust = believe ? weft_trust_counted : weft_trust_ed25519_table(&s->nobody);
  weft_rng_chacha_seed(&s->chacha, fixture_seed(), 1);
  s->options = (weft_engine_options){.stream = 5,
                                     .blocks = N,
                                     .block_bytes = K,
                                     .mode = mode,
                                     .window = WINDOW,
                                     .batch = 8,
                                     .neighbours_max = MOST,
                                     .neighbours_target = 4,
                                     .addresses_max = 16,
                                     .codec = &s->codec,
                                     .policy = &weft_policy_push,
                                     .rate_bits_per_s = 10 * 8 * N * K, // ten segments a second
                                     .congestion = true,
                                     .checksum_us = mode == WEFT_MODE_LIVE && !source ? 200000 : 0,
                                     .trust = source ? NULL : &s->trust};
  const weft_engine_self self = {.source = source, .rng = weft_rng_chacha_table(&s->chacha)};
  EXPECT_OK(weft_engine_new(s->ctx, &s->options, &self, &s->engine));
}

static void scene_free(scene *s) {
  weft_engine_free(s->engine);
  weft_ctx_free(s->ctx);
}

static weft_status say(scene *s, size_t neighbour, const uint8_t *message, size_t bytes) {
  return weft_engine_input(s->engine, neighbour, message, bytes, s->now_us);
}

static weft_status greet(scene *s, size_t neighbour) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
  return say(s, neighbour, out, weft_hello_write(&hello, out));
}

static void add(scene *s, size_t neighbours) {
  for (size_t i = 0; i < neighbours; i++) {
    size_t at;
    if (weft_engine_add_neighbour(s->engine, NULL, s->now_us, &at) == WEFT_OK)
      EXPECT_OK(greet(s, at));
  }
}

// Claims to have all segments before `first`, no others, and this number of suppliers.
static weft_status supplied(scene *s, size_t neighbour, uint64_t first, uint16_t suppliers,
                            const weft_stamps *stamps) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const uint16_t back = (uint16_t)(first < WINDOW ? first : WINDOW);
  const weft_map map = {
      .first = first, .horizon = first, .back = back, .suppliers = suppliers, .stamps = *stamps};
  return say(s, neighbour, out, weft_map_write(&map, out));
}

static weft_status have(scene *s, size_t neighbour, uint64_t first, const weft_stamps *stamps) {
  return supplied(s, neighbour, first, 8, stamps);
}

// Sends the manifest of a segment of zeros.
static void manifest(scene *s, size_t neighbour, uint64_t segment, int64_t at_us) {
  static const uint8_t zeros[N * K];
  uint8_t out[WEFT_DATAGRAM_MAX];
  weft_manifest m = {.segment = segment,
                     .blocks = N,
                     .bytes = N * K,
                     .at_us = (uint64_t)at_us,
                     .made_us = (uint64_t)s->now_us};
  (void)crypto_generichash(m.digest, sizeof m.digest, zeros, sizeof zeros, NULL, 0);
  (void)say(s, neighbour, out, weft_manifest_write(&m, out));
}

// Sends block i of a segment, all of whose bytes are `value`.
static void block(scene *s, size_t neighbour, uint64_t segment, size_t i, int value) {
  uint8_t payload[K], out[WEFT_DATAGRAM_MAX];
  size_t bytes;
  memset(payload, value, sizeof payload);
  const weft_packet packet = {
      .id = {.stream = 5, .segment = segment, .blocks = N, .block_bytes = K},
      .mode = WEFT_PACKET_SYSTEMATIC,
      .index = (uint16_t)i,
      .payload = payload};
  EXPECT_OK(weft_packet_write_session(&packet, out, sizeof out, &bytes));
  (void)say(s, neighbour, out, bytes);
}

static void hear(scene *s, const weft_burst *burst) {
  for (size_t i = 0; i < burst->count; i++) {
    weft_message m;
    if (weft_message_parse(burst->datagrams[i].data, burst->datagrams[i].bytes, 5, N, K, &m) !=
            WEFT_OK ||
        m.kind != WEFT_MESSAGE_REQUEST)
      continue;
    for (size_t k = 0; k < m.as.requests.count; k++) {
      const weft_request r = weft_requests_get(&m.as.requests, k);
      s->asked[burst->neighbour][r.kind]++;
      s->asked_of[burst->neighbour][r.segment % WINDOW] += r.kind == WEFT_REQUEST_PACKETS;
      if (r.kind == WEFT_REQUEST_CHECKSUM)
        s->checksum_of = r.segment;
    }
  }
}

// Takes one step of time. The engine must come to rest, however often it is asked for output.
static void step(scene *s) {
  weft_event event;
  weft_burst burst;
  size_t said = 0;
  weft_engine_tick(s->engine, s->now_us);
  while (weft_engine_event(s->engine, &event))
    if (event.kind == WEFT_EVENT_NEIGHBOUR_LOST)
      s->lost[event.neighbour]++;
  for (; weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK; said++)
    hear(s, &burst);
  EXPECT(said < 1000);
  s->now_us += STEP_US;
}

// --- Times

static void reveal(scene *s, size_t neighbour, uint64_t segment, uint64_t made_us) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_revealed r = {.segment = segment, .made_us = made_us};
  (void)say(s, neighbour, out, weft_revealed_write(&r, out));
}

static void give_checksum(scene *s, size_t neighbour, uint64_t segment, uint64_t made_us) {
  static const uint8_t sums[N * WEFT_CHECKSUM_ROWS];
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_checksum c = {.segment = segment, .blocks = N, .made_us = made_us, .sums = sums};
  (void)say(s, neighbour, out, weft_checksum_write(&c, out));
}

// Some neighbours claim all the time to have newer checksums, and give none; the last one offers
// one of each segment, twice a second, and gives it on request. Returns how many segments got
// theirs.
static uint64_t checksums_beside(size_t liars, bool rising) {
  scene s;
  weft_engine_statistics x;
  scene_new(&s, WEFT_MODE_LIVE, false, true);
  add(&s, liars + 1);
  for (int i = 0; i < 500; i++) {
    const uint64_t newest = (uint64_t)i / 10;
    if (i % 10 == 0)
      manifest(&s, liars, newest, s.now_us);
    for (uint64_t k = newest > 20 ? newest - 20 : 0; k <= newest; k++) {
      for (size_t liar = 0; liar < liars; liar++)
        reveal(&s, liar, k, rising ? FAR_US / 2 + (uint64_t)s.now_us : FAR_US);
      if (i % 50 == 49 && k % 5 == 0)
        reveal(&s, liars, k, (uint64_t)s.now_us);
    }
    const size_t before = s.asked[liars][WEFT_REQUEST_CHECKSUM];
    step(&s);
    if (s.asked[liars][WEFT_REQUEST_CHECKSUM] != before)
      give_checksum(&s, liars, s.checksum_of, (uint64_t)s.now_us);
  }
  weft_engine_get_statistics(s.engine, &x);
  scene_free(&s);
  return x.checksums;
}

START_TEST(times_to_come_keep_no_checksum_away) {
  const uint64_t alone = checksums_beside(0, false);
  EXPECT(alone >= 8);
  for (int rising = 0; rising < 2; rising++)
    for (size_t liars = 1; liars < 4; liars++)
      EXPECT(2 * checksums_beside(liars, rising) >= alone);
}
END_TEST

// A neighbour that seems far away by an old echo is not waited for as long as it likes: what was
// requested from it is requested from another after a while; otherwise playback would stand still.
START_TEST(nobody_is_waited_for_as_long_as_he_likes) {
  scene s;
  scene_new(&s, WEFT_MODE_VOD, false, true);
  add(&s, 1);
  for (uint64_t k = 0; k < 16; k++)
    manifest(&s, 0, k, 0);
  int64_t longest_us = 0, since_us = s.now_us;
  for (int i = 0; i < 2000; i++) {
    const weft_stamps stamps = {.stamp = 1, .echo = (uint32_t)(s.now_us - 29 * SECOND)};
    if (i % 10 == 0)
      EXPECT_OK(have(&s, 0, 16, &stamps));
    const size_t before = s.asked[0][WEFT_REQUEST_PACKETS];
    step(&s);
    if (s.asked[0][WEFT_REQUEST_PACKETS] != before)
      since_us = s.now_us;
    longest_us = s.now_us - since_us > longest_us ? s.now_us - since_us : longest_us;
  }
  EXPECT(s.asked[0][WEFT_REQUEST_PACKETS] > 0 && longest_us <= 5 * SECOND);
  scene_free(&s);
}
END_TEST

// --- Numbers

// A neighbour can have finished only where a stream is fetched and all of it is here. Elsewhere a
// neighbour that says so would keep its place, and it would no longer be checked whether it is
// useful or even there.
START_TEST(nobody_finishes_while_others_play) {
  for (int mode = WEFT_MODE_BULK; mode <= WEFT_MODE_LIVE; mode++)
    for (int complete = 0; complete <= (mode == WEFT_MODE_BULK); complete++) {
      scene s;
      uint8_t out[WEFT_DATAGRAM_MAX];
      scene_new(&s, (weft_engine_mode)mode, false, true);
      add(&s, 1);
      if (complete) { // an empty stream
        const weft_manifest end = {.last = true};
        EXPECT_OK(say(&s, 0, out, weft_manifest_write(&end, out)));
        EXPECT(weft_engine_done(s.engine));
      }
      (void)say(&s, 0, out, weft_bye_write(WEFT_BYE_FINISHED, out));
      step(&s);
      EXPECT(s.lost[0] == !complete);
      scene_free(&s);
    }
}
END_TEST

// Two neighbours have all that is made, and push nothing; a third may send packets of segments that
// were never made. Returns how many packets are requested from the two.
static size_t asked_beside(bool liar, uint64_t round) {
  scene s;
  scene_new(&s, WEFT_MODE_LIVE, false, true);
  weft_rng_chacha_seed(&s.chacha, fixture_seed(), 10 + round);
  add(&s, 3);
  const weft_stamps stamps = {.stamp = 1};
  for (int i = 0; i < 800; i++) {
    const uint64_t newest = (uint64_t)i / 10;
    for (size_t k = 0; i % 10 == 0 && k < 3; k++) {
      manifest(&s, 1, newest, s.now_us);
      EXPECT_OK(have(&s, k, k ? newest + 1 : 0, &stamps));
    }
    for (uint64_t k = newest + 3; liar && k < newest + 60; k++)
      block(&s, 0, k, (size_t)i % N, 1);
    step(&s);
  }
  const size_t asked = s.asked[1][WEFT_REQUEST_PACKETS] + s.asked[2][WEFT_REQUEST_PACKETS];
  scene_free(&s);
  return asked;
}

// Manifests of segments that were never made are not requested, which would take room from real
// requests: about a third of them. One round has few, and some by chance fewer.
START_TEST(segments_to_come_take_no_room_for_requests) {
  enum { ROUNDS = 4 };
  size_t beside_liar = 0, alone = 0;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    beside_liar += asked_beside(true, round);
    alone += asked_beside(false, round);
  }
  EXPECT(10 * beside_liar >= 9 * alone);
}
END_TEST

// All places are taken, another node always wants one, and all neighbours but the `needy` claim
// eight suppliers, these one. Returns how many lose their places in a minute.
static size_t lost_beside(weft_engine_mode mode, size_t needy) {
  scene s;
  size_t lost = 0;
  scene_new(&s, mode, false, true);
  add(&s, MOST);
  for (int i = 0; i < 6000; i++) {
    uint8_t refusal[WEFT_DATAGRAM_MAX];
    const weft_stamps stamps = {.stamp = 1};
    for (size_t k = 0; i % 20 == 0 && k < MOST; k++)
      (void)supplied(&s, k, 0, k < needy ? 1 : 8, &stamps);
    (void)weft_engine_refusal(s.engine, NULL, refusal);
    step(&s);
    add(&s, MOST); // where there is room
  }
  for (size_t k = 0; k < MOST; k++)
    lost += s.lost[k];
  scene_free(&s);
  return lost;
}

// Only its own word shows that a neighbour is in need. However many say so, that makes one place a
// second at most, and only where another node wants one (docs/sim/places.md has what that costs).
START_TEST(the_word_of_the_needy_makes_a_place_a_second) {
  for (int mode = WEFT_MODE_VOD; mode <= WEFT_MODE_LIVE; mode++) {
    EXPECT(lost_beside((weft_engine_mode)mode, 0) == 0);
    for (size_t needy = 1; needy < MOST; needy += 3) {
      const size_t lost = lost_beside((weft_engine_mode)mode, needy);
      EXPECT(lost > 0 && lost <= 60);
    }
  }
}
END_TEST

// Two neighbours claim to have everything, spoil each segment and then give nothing; a third, the
// source or not, gives what is requested. Returns how long eight segments take.
static int64_t spoilt_beside_liars(bool source) {
  enum { LIARS = 2, SEGMENTS = 8, MOST_STEPS = 3000 };
  const weft_stamps stamps = {.stamp = 1};
  const weft_neighbour_options options = {.is_source = source};
  scene s;
  size_t third, steps = 0;
  weft_engine_statistics x = {0};
  scene_new(&s, WEFT_MODE_VOD, false, true);
  add(&s, LIARS);
  EXPECT_OK(weft_engine_add_neighbour(s.engine, &options, s.now_us, &third));
  EXPECT_OK(greet(&s, third));
  for (uint64_t k = 0; k < SEGMENTS; k++) {
    manifest(&s, third, k, 0);
    for (size_t i = 0; i < N; i++)
      block(&s, 0, k, i, 1);
  }
  for (; x.segments < SEGMENTS && steps < MOST_STEPS; steps++) {
    size_t before[SEGMENTS];
    for (size_t i = 0; i <= LIARS && steps % 20 == 0; i++)
      EXPECT_OK(have(&s, i, SEGMENTS, &stamps));
    memcpy(before, s.asked_of[third], sizeof before);
    step(&s);
    // What comes within a round trip may have been sent before.
    for (int wait = 0; memcmp(before, s.asked_of[third], sizeof before) && wait < 30; wait++)
      step(&s);
    for (uint64_t k = 0; k < SEGMENTS; k++)
      for (size_t i = 0; i < N && s.asked_of[third][k] != before[k]; i++)
        block(&s, third, k, i, 0);
    weft_engine_get_statistics(s.engine, &x);
  }
  EXPECT(x.hash_failures >= SEGMENTS);
  scene_free(&s);
  return (int64_t)steps * STEP_US;
}

START_TEST(who_keeps_back_what_he_says_to_have_is_passed_over) {
  EXPECT(spoilt_beside_liars(false) <= 4 * SECOND);
  EXPECT(spoilt_beside_liars(true) <= 4 * SECOND);
}
END_TEST

// A live source that was killed and restarted counts from 0, which only it can say. A viewer that
// waited for what follows what it has played would wait as long as that took.
START_TEST(a_source_that_begins_anew_is_known) {
  enum { SIGNED = 2 * WINDOW };
  const weft_stamps stamps = {.stamp = 1};
  for (int source = 0; source < 2; source++) {
    const weft_neighbour_options options = {.is_source = source};
    weft_neighbour_statistics n;
    size_t at;
    scene s;
    scene_new(&s, WEFT_MODE_LIVE, false, true);
    EXPECT_OK(weft_engine_add_neighbour(s.engine, &options, s.now_us, &at));
    EXPECT_OK(greet(&s, at));
    manifest(&s, at, SIGNED - 1, SIGNED / 10 * SECOND);
    for (uint64_t horizon = SIGNED;; horizon /= 2) { // a map may be late
      EXPECT_OK(have(&s, at, horizon, &stamps));
      EXPECT_OK(weft_engine_get_neighbour(s.engine, at, &n));
      EXPECT(n.is_source == source && n.anew == (source && horizon < SIGNED - WINDOW));
      if (horizon == 0)
        break;
    }
    EXPECT_OK(have(&s, at, SIGNED, &stamps));
    EXPECT_OK(weft_engine_get_neighbour(s.engine, at, &n));
    EXPECT(!n.anew);
    scene_free(&s);
  }
}
END_TEST

// --- Every field

// Sends a message with these bytes in place of those at `at`, twice, as a neighbour that stays if
// it may. Another neighbour goes on greeting.
static void state(scene *s, const uint8_t *message, size_t bytes, size_t at, const uint8_t *value,
                  size_t value_bytes) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  memcpy(out, message, bytes);
  memcpy(out + at, value, value_bytes < bytes - at ? value_bytes : bytes - at);
  for (int i = 0; i < 2; i++)
    (void)say(s, 0, out, bytes);
  step(s);
  EXPECT_OK(greet(s, 1));
  add(s, 1); // if it was lost
}

static size_t write_all(uint8_t out[][WEFT_DATAGRAM_MAX], size_t *bytes) {
  static const uint8_t sums[N * WEFT_CHECKSUM_ROWS], payload[K];
  const weft_hello hello = {.stream = 5, .blocks = N, .window = 16, .block_bytes = K};
  const weft_map map = {.first = 2, .horizon = 9, .suppliers = 3, .back = 1};
  const weft_manifest m = {.segment = 3, .blocks = N, .bytes = N * K, .at_us = 1, .made_us = 1};
  const weft_checksum c = {.segment = 3, .blocks = N, .made_us = 9, .sums = sums};
  const weft_request r[] = {{.segment = 3, .kind = WEFT_REQUEST_PACKETS, .count = 3},
                            {.segment = 3, .kind = WEFT_REQUEST_MANIFEST}};
  const weft_packet packet = {.id = {.stream = 5, .segment = 3, .blocks = N, .block_bytes = K},
                              .mode = WEFT_PACKET_SYSTEMATIC,
                              .payload = payload};
  const weft_peer_address address = {.length = 4};
  size_t i = 0;
  bytes[i++] = weft_hello_write(&hello, out[0]);
  bytes[i++] = weft_map_write(&map, out[1]);
  bytes[i++] = weft_brake_write(3, out[2]);
  bytes[i++] = weft_bye_write(WEFT_BYE_FINISHED, out[3]);
  bytes[i++] = weft_pace_write(&(weft_pace){.sent = 9, .stamp = 1}, out[4]);
  bytes[i++] = weft_ack_write(&(weft_ack){.sent = 9, .received = 8, .stamp = 1}, out[5]);
  bytes[i++] = weft_manifest_write(&m, out[6]);
  bytes[i++] = weft_checksum_write(&c, out[7]);
  bytes[i++] = weft_revealed_write(&(weft_revealed){.segment = 3, .made_us = 9}, out[8]);
  bytes[i++] = weft_request_write(r, 2, out[9]);
  bytes[i++] = weft_refer_write(WEFT_MESSAGE_REFER, WEFT_REFER_WANTED, &address, 1, out[10]);
  EXPECT_OK(weft_packet_write_session(&packet, out[11], WEFT_DATAGRAM_MAX, &bytes[11]));
  return i + 1;
}

// Sends, to a source and to receivers, all messages with each field set to 0, 1, a half and all of
// its range.
static void state_everything(weft_engine_mode mode, bool source) {
  static const uint8_t zeros[8], ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
  static const uint8_t half[8] = {128}, far[8] = {16}, many[8] = {0, 1};
  const uint8_t *const values[] = {zeros, ones, half, far, many};
  uint8_t messages[16][WEFT_DATAGRAM_MAX];
  size_t bytes[16];
  scene s;
  scene_new(&s, mode, source, false);
  add(&s, 2);
  const weft_stamps stamps = {.stamp = 1};
  const size_t count = write_all(messages, bytes);
  static const uint8_t data[N * K];
  for (int i = 0; source && mode == WEFT_MODE_LIVE && i < 4; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, i, s.now_us));
  for (size_t m = 0; m < count; m++)
    for (size_t at = 2; at < bytes[m] && at < 64; at += 2)
      for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (size_t width = 2; width <= 8; width *= 2)
          state(&s, messages[m], bytes[m], at, values[v], width);
  weft_neighbour_statistics honest;
  EXPECT_OK(have(&s, 1, 1, &stamps));
  EXPECT_OK(weft_engine_get_neighbour(s.engine, 1, &honest));
  EXPECT(honest.open && s.lost[1] == 0);
  scene_free(&s);
}

START_TEST(every_field_may_hold_anything) {
  state_everything(WEFT_MODE_LIVE, true);
  for (int mode = WEFT_MODE_BULK; mode <= WEFT_MODE_LIVE; mode++)
    state_everything((weft_engine_mode)mode, false);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("stated");
  TCase *t = tcase_create("stated");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, times_to_come_keep_no_checksum_away);
  tcase_add_test(t, nobody_is_waited_for_as_long_as_he_likes);
  tcase_add_test(t, nobody_finishes_while_others_play);
  tcase_add_test(t, segments_to_come_take_no_room_for_requests);
  tcase_add_test(t, the_word_of_the_needy_makes_a_place_a_second);
  tcase_add_test(t, who_keeps_back_what_he_says_to_have_is_passed_over);
  tcase_add_test(t, a_source_that_begins_anew_is_known);
  tcase_add_test(t, every_field_may_hold_anything);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
