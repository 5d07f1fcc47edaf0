// SPDX-License-Identifier: Apache-2.0
// The stream's last segment is shorter, and how short is unknown until its manifest comes: packets
// of a full one, which a neighbour may send before, must not keep the right ones out.
#include <sodium.h>
#include <string.h>

#include "peer/engine/checksum_rows.h"
#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_main.h"

enum { N = 8, LAST = 3, K = 64, LAST_BYTES = LAST * K - 5, STEP_US = 10000, LIAR = 0, HONEST = 1 };

typedef struct scene {
  weft_ctx *ctx;
  weft_codec_rlnc rlnc;
  weft_codec_blocks blocks;
  weft_codec codec;
  weft_trust trust;
  weft_engine_options options;
  weft_rng_chacha chacha;
  weft_engine *engine;
  int64_t now_us;
  size_t lost;
  uint8_t data[LAST * K]; // of the last segment, padded with zeros
} scene;

static weft_status say(scene *s, size_t neighbour, const uint8_t *message, size_t bytes) {
  return weft_engine_input(s->engine, neighbour, message, bytes, s->now_us);
}

static void run(scene *s, int64_t for_us) {
  for (const int64_t until_us = s->now_us + for_us; s->now_us < until_us; s->now_us += STEP_US) {
    weft_event event;
    weft_burst burst;
    weft_engine_tick(s->engine, s->now_us);
    while (weft_engine_event(s->engine, &event))
      s->lost += event.kind == WEFT_EVENT_NEIGHBOUR_LOST;
    while (weft_engine_output(s->engine, s->now_us, &burst) == WEFT_OK)
      ;
  }
}

static void manifest(scene *s, uint64_t segment) {
  uint8_t out[WEFT_DATAGRAM_MAX];
  const bool last = segment == 1;
  weft_manifest m = {.last = last,
                     .segment = segment,
                     .blocks = last ? LAST : N,
                     .bytes = last ? LAST_BYTES : N * K,
                     .at_us = segment * 100000,
                     .made_us = (uint64_t)s->now_us};
  (void)crypto_generichash(m.digest, sizeof m.digest, s->data, LAST_BYTES, NULL, 0);
  EXPECT_OK(say(s, HONEST, out, weft_manifest_write(&m, out)));
}

static void end(scene *s) { // without signatures
  uint8_t out[WEFT_DATAGRAM_MAX];
  const weft_map map = {.end_known = true,
                        .end_bytes = N * K + LAST_BYTES,
                        .horizon = 2,
                        .entry_bytes = s->codec.has ? 1 : 2,
                        .bitmaps = s->codec.has};
  EXPECT_OK(say(s, HONEST, out, weft_map_write(&map, out)));
}

static void scene_new(scene *s, weft_engine_mode mode, bool coded, bool signed_, bool checksums) {
  *s = (scene){.now_us = 5000000};
  memset(s->data, 7, LAST_BYTES);
  EXPECT_OK(weft_ctx_new(&s->ctx, NULL));
  s->rlnc = (weft_codec_rlnc){.ctx = s->ctx};
  s->blocks = (weft_codec_blocks){.ctx = s->ctx};
  s->codec = coded ? weft_codec_rlnc_table(&s->rlnc) : weft_codec_blocks_table(&s->blocks);
  s->trust = weft_trust_counted;
  weft_rng_chacha_seed(&s->chacha, fixture_seed(), 1);
  s->options = (weft_engine_options){.stream = 5,
                                     .blocks = N,
                                     .block_bytes = K,
                                     .mode = mode,
                                     .window = 48, // more than the lag
                                     .batch = 8,
                                     .neighbours_max = 4,
                                     .codec = &s->codec,
                                     .policy = coded ? &weft_policy_push : &weft_policy_rarest,
                                     .rate_bits_per_s = 10 * 8 * N * K,
                                     .checksum_us = checksums ? 200000 : 0,
                                     .trust = signed_ ? &s->trust : NULL};
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&s->chacha)};
  EXPECT_OK(weft_engine_new(s->ctx, &s->options, &self, &s->engine));
  for (size_t i = 0; i <= HONEST; i++) {
    uint8_t out[WEFT_DATAGRAM_MAX];
    const weft_hello hello = {.stream = 5, .blocks = N, .block_bytes = K, .stamps = {.stamp = 1}};
    size_t at;
    EXPECT_OK(weft_engine_add_neighbour(s->engine, NULL, s->now_us, &at));
    EXPECT(at == i);
    EXPECT_OK(say(s, i, out, weft_hello_write(&hello, out)));
  }
  if (signed_)
    manifest(s, 0);
  run(s, 1200000); // live, it takes a second to know where to begin
}

static void scene_free(scene *s) {
  weft_engine_free(s->engine);
  weft_ctx_free(s->ctx);
}

static weft_status block(scene *s, size_t neighbour, uint16_t blocks, size_t i) {
  static const uint8_t junk[K] = {1};
  uint8_t out[WEFT_DATAGRAM_MAX];
  size_t bytes;
  const weft_packet packet = {.id = {.stream = 5, .segment = 1, .blocks = blocks, .block_bytes = K},
                              .mode = WEFT_PACKET_SYSTEMATIC,
                              .index = (uint16_t)i,
                              .payload = blocks == N ? junk : s->data + i * K};
  EXPECT_OK(weft_packet_write_session(&packet, out, sizeof out, &bytes));
  return say(s, neighbour, out, bytes);
}

static weft_engine_statistics statistics(const scene *s) {
  weft_engine_statistics x;
  weft_engine_get_statistics(s->engine, &x);
  return x;
}

static void expect_complete(size_t junk, weft_engine_mode mode, bool coded, bool signed_) {
  scene s;
  scene_new(&s, mode, coded, signed_, false);
  for (size_t i = 0; i < junk; i++)
    EXPECT_OK(block(&s, LIAR, N, i));
  if (signed_)
    manifest(&s, 1);
  else
    end(&s);
  for (size_t i = 0; i < LAST; i++)
    EXPECT_OK(block(&s, HONEST, LAST, i));
  const weft_engine_statistics x = statistics(&s);
  EXPECT(x.segments == 1 && x.hash_failures == 0);
  EXPECT(x.received_innovative == junk + LAST);
  scene_free(&s);
}

// Packets of a full segment do not keep out those of the shorter last one, from one packet up to as
// many as either needs.
START_TEST(packets_of_a_whole_segment_keep_out_no_last_one) {
  for (size_t junk = 0; junk <= N; junk++) {
    for (int mode = WEFT_MODE_BULK; mode <= WEFT_MODE_LIVE; mode++)
      expect_complete(junk, (weft_engine_mode)mode, true, true);
    expect_complete(junk, WEFT_MODE_BULK, false, true);
    if (junk == N)
      break; // without signatures, that is the segment
    expect_complete(junk, WEFT_MODE_BULK, true, false);
    expect_complete(junk, WEFT_MODE_BULK, false, false);
  }
}
END_TEST

static void checksum(scene *s) {
  uint8_t sums[LAST * WEFT_CHECKSUM_ROWS], out[WEFT_DATAGRAM_MAX];
  for (size_t i = 0; i < LAST; i++)
    weft_checksum_of(9, s->data + i * K, K, sums + i * WEFT_CHECKSUM_ROWS);
  const weft_checksum c = {
      .segment = 1, .blocks = LAST, .made_us = (uint64_t)s->now_us, .seed = 9, .sums = sums};
  EXPECT_OK(say(s, HONEST, out, weft_checksum_write(&c, out)));
}

// Packets that wait for a checksum are judged only by as many sums as the segment has blocks.
START_TEST(no_packet_is_judged_by_sums_of_fewer_blocks) {
  for (size_t junk = 0; junk <= N; junk++) {
    scene s;
    scene_new(&s, WEFT_MODE_LIVE, true, true, true);
    for (size_t i = 0; i < junk; i++)
      EXPECT_OK(block(&s, LIAR, N, N - 1 - i));
    manifest(&s, 1);
    for (size_t i = 0; i + 1 < LAST; i++)
      EXPECT_OK(block(&s, HONEST, LAST, i));
    run(&s, 500000); // what came before the checksum is judged by it
    checksum(&s);
    EXPECT(statistics(&s).verified == LAST - 1);
    EXPECT_OK(block(&s, HONEST, LAST, LAST - 1));
    run(&s, STEP_US);
    const weft_engine_statistics x = statistics(&s);
    EXPECT(x.segments == 1 && x.hash_failures == 0 && s.lost == 0);
    EXPECT(x.received_packets == x.received_innovative + x.received_dependent + x.received_late +
                                     x.received_outside + x.received_waiting + x.received_polluted);
    scene_free(&s);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("shape");
  TCase *t = tcase_create("shape");
  tcase_add_test(t, packets_of_a_whole_segment_keep_out_no_last_one);
  tcase_add_test(t, no_packet_is_judged_by_sums_of_fewer_blocks);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
