// SPDX-License-Identifier: Apache-2.0
// One engine and a neighbour with a session that says what no honest one says: this bounds the
// damage it can do.
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"

enum { N = 8, K = 64, SECOND = 1000000 };

typedef struct scene {
  weft_ctx *ctx;
  weft_codec_rlnc rlnc;
  weft_codec codec;
  weft_trust_ed25519 keys;
  weft_trust trust;
  weft_engine_options options;
  weft_rng_chacha chacha;
  weft_engine *engine;
  int64_t now_us;
  size_t lost, banned, dials, loads[128];
} scene;

static weft_status greet(scene *s, size_t neighbour) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
  return weft_engine_input(s->engine, neighbour, out, weft_hello_write(&hello, out), s->now_us);
}

static void scene_new(scene *s, bool source, size_t neighbours) {
  memset(s, 0, sizeof *s);
  EXPECT_OK(weft_ctx_new(&s->ctx, NULL));
  s->now_us = 5 * SECOND;
  s->rlnc = (weft_codec_rlnc){.ctx = s->ctx};
  s->codec = weft_codec_rlnc_table(&s->rlnc);
  s->trust = weft_trust_ed25519_table(&s->keys); // no such source: every signature is bad
  weft_rng_chacha_seed(&s->chacha, fixture_seed(), 1);
  s->options = (weft_engine_options){.stream = 5,
                                     .blocks = N,
                                     .block_bytes = K,
                                     .mode = WEFT_MODE_LIVE,
                                     .window = 16,
                                     .batch = 8,
                                     .neighbours_max = 8,
                                     .neighbours_target = 4,
                                     .addresses_max = 16,
                                     .codec = &s->codec,
                                     .policy = &weft_policy_push,
                                     .rate_bits_per_s = 8 * N * K,
                                     .trust = source ? NULL : &s->trust};
  const weft_engine_self self = {.source = source, .rng = weft_rng_chacha_table(&s->chacha)};
  EXPECT_OK(weft_engine_new(s->ctx, &s->options, &self, &s->engine));
  for (size_t i = 0; i < neighbours; i++) {
    size_t neighbour;
    EXPECT_OK(weft_engine_add_neighbour(s->engine, NULL, s->now_us, &neighbour));
    EXPECT(neighbour == i);
    EXPECT_OK(greet(s, i));
  }
}

static void scene_free(scene *s) {
  weft_engine_free(s->engine);
  weft_ctx_free(s->ctx);
}

// Lets time pass; what the engine sends is dropped.
static void run(scene *s, int64_t for_us) {
  for (const int64_t until_us = s->now_us + for_us; s->now_us < until_us; s->now_us += 10000) {
    weft_event event;
    weft_burst burst;
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_event(s->engine, &event)) {
      s->lost += event.kind == WEFT_EVENT_NEIGHBOUR_LOST;
      s->banned += event.kind == WEFT_EVENT_NEIGHBOUR_LOST && event.reason == WEFT_LOST_BANNED;
      s->dials += event.kind == WEFT_EVENT_DIAL;
      s->loads[event.segment % 128] += event.kind == WEFT_EVENT_LOAD;
    }
    while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
      ;
  }
}

// A neighbour that forges signatures is banned: checking each costs as much as thousands of noise
// datagrams.
START_TEST(who_forges_signatures_is_banned) {
  scene s;
  uint8_t out[WEFT_DATAGRAM_MAX];
  size_t refused = 0;
  scene_new(&s, false, 1);
  for (uint64_t i = 0; i < 100; i++) {
    const weft_manifest m = {.segment = i, .blocks = N, .bytes = N * K, .at_us = 1, .made_us = 1};
    refused += weft_engine_input(s.engine, 0, out, weft_manifest_write(&m, out), s.now_us) ==
               WEFT_E_FOREIGN;
  }
  run(&s, SECOND);
  weft_engine_statistics x;
  weft_engine_get_statistics(s.engine, &x);
  EXPECT(s.banned == 1 && x.signatures == refused && refused <= 16);
  scene_free(&s);
}
END_TEST

static weft_status refer(scene *s, size_t neighbour, uint8_t flags, uint32_t number) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  weft_peer_address told[WEFT_REFER_MAX];
  for (size_t i = 0; i < WEFT_REFER_MAX; i++, number++) {
    told[i] = (weft_peer_address){.length = 4};
    memcpy(told[i].bytes, &number, 4);
  }
  return weft_engine_input(s->engine, neighbour, out,
                           weft_refer_write(WEFT_MESSAGE_REFER, flags, told, WEFT_REFER_MAX, out),
                           s->now_us);
}

// Unrequested addresses replace no known ones, and are not dialled.
START_TEST(addresses_are_taken_when_asked_for) {
  scene s;
  scene_new(&s, false, 1);
  s.options.timers.exchange_us = 1000 * SECOND; // it requests none
  for (uint32_t i = 0; i < 200; i++) {
    EXPECT_OK(refer(&s, 0, 0, 100 * i));
    if (i % 3 == 0) // all within the second that began when the neighbour came
      run(&s, 10000);
  }
  EXPECT(s.dials == 0);
  s.options.timers.exchange_us = SECOND; // it requests some now and then
  for (uint32_t i = 0; i < 200; i++) {
    (void)refer(&s, 0, 0, 100000 + 100 * i);
    run(&s, 10000);
  }
  EXPECT(s.dials <= 3 * 4);
  scene_free(&s);
}
END_TEST

// A node that was dialled and has no room names others to dial instead. One that came of itself and
// says so is not believed: it could come again and again, and have anyone dialled.
START_TEST(who_comes_refers_nobody) {
  for (int dialled = 0; dialled < 2; dialled++) {
    scene s;
    const weft_neighbour_options options = {.dialled = dialled};
    scene_new(&s, false, 0);
    for (uint32_t i = 0; i < 50; i++) {
      size_t neighbour;
      EXPECT_OK(weft_engine_add_neighbour(s.engine, &options, s.now_us, &neighbour));
      EXPECT_OK(greet(&s, neighbour));
      EXPECT_OK(refer(&s, neighbour, WEFT_REFER_FULL, 100 * i));
      run(&s, 100000);
    }
    EXPECT(s.lost == 50 && (s.dials > 0) == dialled);
    scene_free(&s);
  }
}
END_TEST

// If all the neighbours that a fetching node looks for say that they have finished, without giving
// what it lacks, it looks for others.
START_TEST(nobody_finishes_before_who_fetches) {
  scene s;
  uint8_t out[WEFT_DATAGRAM_MAX];
  scene_new(&s, false, 0);
  weft_engine_free(s.engine);
  s.options.mode = WEFT_MODE_BULK;
  s.options.rate_bits_per_s = 0;
  s.options.trust = &weft_trust_counted;
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&s.chacha)};
  EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &s.engine));
  for (size_t i = 0; i < s.options.neighbours_target; i++) {
    size_t neighbour;
    EXPECT_OK(weft_engine_add_neighbour(s.engine, NULL, s.now_us, &neighbour));
    EXPECT_OK(greet(&s, neighbour));
    EXPECT_OK(weft_engine_input(s.engine, neighbour, out, weft_bye_write(WEFT_BYE_FINISHED, out),
                                s.now_us));
  }
  for (uint32_t i = 0; i < 8; i++) {
    weft_peer_address other = {.length = 4};
    memcpy(other.bytes, &i, sizeof i);
    weft_engine_add_address(s.engine, &other);
  }
  run(&s, 60 * SECOND);
  EXPECT(s.dials >= s.options.neighbours_target);
  scene_free(&s);
}
END_TEST

// Without signatures a receiver believes maps about the stream's end, but a source must not.
START_TEST(nobody_ends_a_sources_stream) {
  static const uint8_t data[N * K];
  scene s;
  uint8_t out[WEFT_DATAGRAM_MAX];
  scene_new(&s, true, 1);
  EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  const weft_map map = {.end_known = true, .end_bytes = UINT64_MAX, .entry_bytes = 2, .horizon = 9};
  (void)weft_engine_input(s.engine, 0, out, weft_map_write(&map, out), s.now_us);
  run(&s, SECOND);
  EXPECT(weft_engine_source_ready(s.engine));
  EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  run(&s, 10 * SECOND); // it looks for what is too old to be sent
  EXPECT_OK(weft_engine_source_end(s.engine, s.now_us));
  scene_free(&s);
}
END_TEST

// Addresses of impossible length are refused: they would disclose the memory behind them.
START_TEST(addresses_out_of_range_are_refused) {
  scene s;
  weft_engine *e;
  size_t neighbour;
  scene_new(&s, false, 1);
  weft_neighbour_options options = {.address = {.length = WEFT_PEER_ADDRESS_BYTES + 1}};
  EXPECT_STATUS(weft_engine_add_neighbour(s.engine, &options, s.now_us, &neighbour),
                WEFT_E_ARGUMENT);
  options.address.length = WEFT_PEER_ADDRESS_BYTES;
  EXPECT_OK(weft_engine_add_neighbour(s.engine, &options, s.now_us, &neighbour));
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&s.chacha),
                                 .address = {.length = UINT8_MAX}};
  EXPECT_STATUS(weft_engine_new(s.ctx, &s.options, &self, &e), WEFT_E_ARGUMENT);
  scene_free(&s);
}
END_TEST

// Manifests are not paced by the uplink, so a neighbour that requests them all the time must not
// keep others waiting.
START_TEST(nobody_has_the_uplink_for_manifests) {
  static const uint8_t data[N * K];
  scene s;
  uint8_t out[WEFT_DATAGRAM_MAX];
  scene_new(&s, true, 1);
  weft_engine_free(s.engine);
  s.keys.is_source = true;
  s.trust = weft_trust_ed25519_table(&s.keys);
  s.options.trust = &s.trust;
  const weft_engine_self self = {
      .source = true, .upload_bits_per_s = 1000000, .rng = weft_rng_chacha_table(&s.chacha)};
  size_t neighbour;
  EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &s.engine));
  EXPECT_OK(weft_engine_add_neighbour(s.engine, NULL, s.now_us, &neighbour));
  EXPECT_OK(greet(&s, neighbour));
  for (int i = 0; i < 10; i++)
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 1 + i, s.now_us));
  run(&s, SECOND);
  weft_engine_statistics before, after;
  weft_engine_get_statistics(s.engine, &before);
  for (int i = 0; i < 1000; i++) { // for ten seconds, of an uplink of 1.25 MB
    weft_request asks[10];
    for (size_t k = 0; k < 10; k++)
      asks[k] = (weft_request){.segment = k, .kind = WEFT_REQUEST_MANIFEST};
    (void)weft_engine_input(s.engine, neighbour, out, weft_request_write(asks, 10, out), s.now_us);
    run(&s, 10000);
  }
  weft_engine_get_statistics(s.engine, &after);
  const uint64_t bytes = after.sent_control_bytes - before.sent_control_bytes;
  EXPECT(bytes > 50000 && bytes < 250000);
  scene_free(&s);
}
END_TEST

// If the input ends at once, nodes that wait for the stream to begin are told that it is over.
START_TEST(a_live_stream_of_nothing_is_over) {
  scene s;
  uint8_t out[WEFT_DATAGRAM_MAX];
  scene_new(&s, false, 0);
  weft_engine_free(s.engine);
  s.options.trust = NULL;
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&s.chacha)};
  size_t neighbour;
  EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &s.engine));
  EXPECT_OK(weft_engine_add_neighbour(s.engine, NULL, s.now_us, &neighbour));
  EXPECT_OK(greet(&s, neighbour));
  EXPECT(!weft_engine_done(s.engine));
  const weft_map map = {.end_known = true, .entry_bytes = 2};
  EXPECT_OK(weft_engine_input(s.engine, neighbour, out, weft_map_write(&map, out), s.now_us));
  run(&s, SECOND);
  EXPECT(weft_engine_done(s.engine));
  scene_free(&s);
}
END_TEST

// Makes the source of a file, which has loaded what its neighbours' windows reach.
static void scene_file(scene *s, size_t segments, size_t neighbours) {
  scene_new(s, true, 0);
  weft_engine_free(s->engine);
  s->options.mode = WEFT_MODE_VOD;
  const weft_engine_self self = {
      .source = true, .stream_bytes = segments * N * K, .rng = weft_rng_chacha_table(&s->chacha)};
  EXPECT_OK(weft_engine_new(s->ctx, &s->options, &self, &s->engine));
  for (size_t i = 0; i < neighbours; i++) {
    size_t neighbour;
    EXPECT_OK(weft_engine_add_neighbour(s->engine, NULL, s->now_us, &neighbour));
    EXPECT_OK(greet(s, neighbour));
  }
}

// Claims to lack everything from a segment on.
static void lack(scene *s, size_t neighbour, uint64_t first, uint16_t epoch) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_map map = {
      .first = first, .count = 16, .epoch = epoch, .suppliers = 1, .entry_bytes = 2};
  const size_t bytes = weft_map_write(&map, out);
  memset(out + WEFT_MAP_BYTES, 0, (size_t)map.count * 2);
  EXPECT_OK(weft_engine_input(s->engine, neighbour, out, bytes, s->now_us));
}

// A neighbour that lacks a segment for ever must not keep its place in the window from all others.
START_TEST(nobody_keeps_the_places_of_a_source) {
  static const uint8_t data[N * K];
  scene s;
  scene_file(&s, 100, 2);
  for (int i = 0; i < 300; i++) { // half a minute
    lack(&s, 0, 0, 0);
    if (i > 20)
      lack(&s, 1, 50, 0);
    run(&s, 100000);
    for (uint64_t k = 0; k < 100; k++)
      (void)weft_engine_load(s.engine, k, data, sizeof data, s.now_us);
  }
  EXPECT(s.loads[0] > 0 && s.loads[50] > 0 && s.loads[65] > 0);
  scene_free(&s);
}
END_TEST

static weft_status no_memory(void *user, const weft_segment_id *id, const uint8_t *data,
                             size_t bytes, const weft_rng *rng, void **out) {
  (void)user, (void)id, (void)data, (void)bytes, (void)rng, (void)out;
  return WEFT_E_NOMEM;
}

// Loads whatever is requested, a thousand segments at most. Returns how many were loaded.
static size_t load_all(scene *s, weft_status wanted) {
  static const uint8_t data[N * K];
  weft_event event;
  size_t loads = 0;
  weft_engine_tick(s->engine, s->now_us);
  while (loads < 1000 && weft_engine_event(s->engine, &event))
    if (event.kind == WEFT_EVENT_LOAD) {
      EXPECT_STATUS(weft_engine_load(s->engine, event.segment, data, sizeof data, s->now_us),
                    wanted);
      loads++;
    }
  return loads;
}

// A failed load is requested again only after a while: at once, it would keep the program in a
// loop.
START_TEST(a_load_that_fails_is_asked_for_later) {
  scene s;
  scene_file(&s, 100, 1);
  s.codec.open_source = no_memory;
  lack(&s, 0, 0, 0);
  const size_t loads = load_all(&s, WEFT_E_NOMEM);
  EXPECT(loads > 0 && loads <= 16);
  EXPECT(load_all(&s, WEFT_E_NOMEM) == 0);
  run(&s, 10000); // what it sends meanwhile
  EXPECT(weft_engine_deadline(s.engine) > s.now_us - 10000);
  s.now_us += SECOND / 10;
  EXPECT(load_all(&s, WEFT_E_NOMEM) == loads);
  s.codec = weft_codec_rlnc_table(&s.rlnc);
  s.now_us += SECOND / 10;
  EXPECT(load_all(&s, WEFT_OK) == loads);
  s.now_us += SECOND / 10;
  EXPECT(load_all(&s, WEFT_OK) == 0);
  scene_free(&s);
}
END_TEST

// A neighbour cannot keep a source loading: a load costs a read, a hash and a signature, requesting
// sixteen of them only a datagram.
START_TEST(nobody_keeps_a_source_loading) {
  static const uint8_t data[N * K];
  for (int anew = 0; anew < 2; anew++) { // it stays; it keeps returning with a new session
    scene s;
    size_t neighbour;
    scene_file(&s, 100, 1);
    for (uint16_t i = 0; i < 1000; i++) { // for ten seconds, each a segment
      if (anew && i % 40 == 39) {
        EXPECT_OK(weft_engine_remove_neighbour(s.engine, 0));
        EXPECT_OK(weft_engine_add_neighbour(s.engine, NULL, s.now_us, &neighbour));
        EXPECT(neighbour == 0);
        EXPECT_OK(greet(&s, 0));
      }
      lack(&s, 0, i % 5 * 16u, i);
      run(&s, 10000);
      for (uint64_t k = 0; k < 100; k++)
        (void)weft_engine_load(s.engine, k, data, sizeof data, s.now_us);
    }
    size_t loads = 0;
    for (size_t k = 0; k < 100; k++)
      loads += s.loads[k];
    EXPECT(loads >= 32 && loads <= 100); // what two seeks need at once, and twice the stream
    scene_free(&s);
  }
}
END_TEST

// Sessions cost little, so a neighbour that keeps returning gets no more than one that stays.
START_TEST(who_comes_again_gets_no_more) {
  static const uint8_t data[N * K];
  scene s;
  size_t neighbour;
  scene_new(&s, true, 1);
  for (int i = 0; i < 100; i++) { // ten seconds, of a segment each
    if (i % 10 == 0)
      EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, i * 100000, s.now_us));
    if (i % 2 == 1) {
      EXPECT_OK(weft_engine_remove_neighbour(s.engine, 0));
      EXPECT_OK(weft_engine_add_neighbour(s.engine, NULL, s.now_us, &neighbour));
      EXPECT(neighbour == 0);
      EXPECT_OK(greet(&s, 0));
    }
    lack(&s, 0, 0, 0);
    run(&s, 100000);
  }
  weft_engine_statistics x;
  weft_engine_get_statistics(s.engine, &x);
  EXPECT(x.sent_packets >= 10 * N && x.sent_packets <= 2 * 15 * N); // and 4 s still to be played
  for (int i = 0; i < 100; i++) { // then there is nothing to do but keep-alives
    lack(&s, 0, 0, 0);
    run(&s, 10000);
  }
  EXPECT(weft_engine_deadline(s.engine) >= s.now_us + 100000);
  scene_free(&s);
}
END_TEST

// A neighbour that claimed to be far ahead and went back is not waited for: it keeps no place from
// others on demand, nor does it hold up a fetch.
START_TEST(who_went_back_is_waited_for_no_longer) {
  static const uint8_t data[N * K];
  scene s;
  scene_file(&s, 100, 2);
  for (uint16_t i = 0; i < 120; i++) { // twelve seconds
    lack(&s, 0, i ? 0 : 80, i > 0);
    if (i > 20)
      lack(&s, 1, 48, 0);
    run(&s, 100000);
    for (uint64_t k = 0; k < 100; k++)
      (void)weft_engine_load(s.engine, k, data, sizeof data, s.now_us);
  }
  EXPECT(s.loads[0] > 0 && s.loads[48] > 0);
  scene_free(&s);
  scene_new(&s, true, 0);
  weft_engine_free(s.engine);
  s.options.mode = WEFT_MODE_BULK;
  s.options.patience_us = 5 * SECOND;
  const weft_engine_self self = {.source = true, .rng = weft_rng_chacha_table(&s.chacha)};
  EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &s.engine));
  for (size_t i = 0; i < 2; i++) {
    size_t neighbour;
    EXPECT_OK(weft_engine_add_neighbour(s.engine, NULL, s.now_us, &neighbour));
    EXPECT_OK(greet(&s, neighbour));
  }
  while (weft_engine_source_ready(s.engine))
    EXPECT_OK(weft_engine_source_put(s.engine, data, sizeof data, 0, s.now_us));
  for (uint16_t i = 0; i < 120; i++) {
    lack(&s, 0, i ? 0 : 80, i > 0);
    lack(&s, 1, 16, 0);
    run(&s, 100000);
  }
  EXPECT(weft_engine_source_ready(s.engine));
  scene_free(&s);
}
END_TEST

// Times out of bounds are refused, so that sums of times cannot overflow.
START_TEST(times_out_of_range_are_refused) {
  scene s;
  weft_engine *e;
  scene_new(&s, false, 0);
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&s.chacha)};
  int64_t *const times[] = {&s.options.timers.hello_us,    &s.options.timers.keep_us,
                            &s.options.timers.exchange_us, &s.options.lag_us,
                            &s.options.startup_us,         &s.options.spread_us};
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    for (int wrong = 0; wrong < 2; wrong++) {
      *times[i] = wrong ? WEFT_ENGINE_NEVER : -1;
      EXPECT_STATUS(weft_engine_new(s.ctx, &s.options, &self, &e), WEFT_E_ARGUMENT);
    }
    *times[i] = WEFT_ENGINE_MAX_TIME_US;
    EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &e));
    weft_engine_free(e);
    *times[i] = 0;
  }
  scene_free(&s);
}
END_TEST

// A pace with stamp 0 (none) makes no acknowledgement due, as that could never be sent.
START_TEST(a_pace_without_a_stamp_does_not_spin) {
  for (uint32_t stamp = 0; stamp < 2; stamp++) {
    scene s;
    uint8_t out[WEFT_DATAGRAM_MAX];
    scene_new(&s, false, 1);
    const weft_pace pace = {.sent = 1, .stamp = stamp};
    EXPECT_STATUS(weft_engine_input(s.engine, 0, out, weft_pace_write(&pace, out), s.now_us),
                  stamp ? WEFT_OK : WEFT_E_MALFORMED);
    run(&s, SECOND);
    EXPECT(weft_engine_deadline(s.engine) > s.now_us - 10000); // when it was last called
    scene_free(&s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("hostile");
  TCase *t = tcase_create("hostile");
  tcase_add_test(t, who_forges_signatures_is_banned);
  tcase_add_test(t, addresses_are_taken_when_asked_for);
  tcase_add_test(t, who_comes_refers_nobody);
  tcase_add_test(t, nobody_finishes_before_who_fetches);
  tcase_add_test(t, nobody_ends_a_sources_stream);
  tcase_add_test(t, addresses_out_of_range_are_refused);
  tcase_add_test(t, nobody_has_the_uplink_for_manifests);
  tcase_add_test(t, a_live_stream_of_nothing_is_over);
  tcase_add_test(t, nobody_keeps_the_places_of_a_source);
  tcase_add_test(t, a_load_that_fails_is_asked_for_later);
  tcase_add_test(t, nobody_keeps_a_source_loading);
  tcase_add_test(t, who_comes_again_gets_no_more);
  tcase_add_test(t, who_went_back_is_waited_for_no_longer);
  tcase_add_test(t, times_out_of_range_are_refused);
  tcase_add_test(t, a_pace_without_a_stamp_does_not_spin);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
