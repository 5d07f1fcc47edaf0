// SPDX-License-Identifier: Apache-2.0
// Requests that come to nothing: an answer that is refused, or for which there is no memory, is
// requested again; and requests for packets leave room for the requests that their use depends on.
#include <string.h>

#include "tests/peer/scene.h"
#include "tests/peer/swarm.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

// --- Uncoded blocks, from a source to one receiver without a network in between

enum { BLOCKS = 8, BLOCK = 50, SEGMENTS = 12, SEGMENT = BLOCKS * BLOCK, MS = 1000 };

typedef struct pair {
  weft_ctx *ctx;
  test_allocator memory;
  weft_codec_blocks blocks;
  weft_codec codec;
  weft_engine_options options;
  weft_rng_chacha chacha[2];
  weft_engine *engine[2]; // the source first
  size_t number[2];       // of the other engine
  int64_t now_us;
  // Called with the first answer for block 0 of segment 5.
  weft_status (*answer)(struct pair *p, const weft_packet *packet);
} pair;

static void pair_new(pair *p) {
  static uint8_t data[SEGMENT];
  *p = (pair){0};
  test_allocator_init(&p->memory, 0);
  EXPECT_OK(weft_ctx_new(&p->ctx, &(weft_ctx_options){.allocator = &p->memory.allocator}));
  p->blocks = (weft_codec_blocks){.ctx = p->ctx};
  p->codec = weft_codec_blocks_table(&p->blocks);
  p->options = (weft_engine_options){.stream = 1,
                                     .blocks = BLOCKS,
                                     .block_bytes = BLOCK,
                                     .mode = WEFT_MODE_BULK,
                                     .window = 16,
                                     .batch = 4,
                                     .neighbours_max = 2,
                                     .codec = &p->codec,
                                     .policy = &weft_policy_rarest};
  for (size_t i = 0; i < 2; i++) {
    weft_rng_chacha_seed(&p->chacha[i], fixture_seed(), i);
    const weft_engine_self self = {.source = i == 0,
                                   .upload_bits_per_s = 10000000,
                                   .rng = weft_rng_chacha_table(&p->chacha[i])};
    EXPECT_OK(weft_engine_new(p->ctx, &p->options, &self, &p->engine[i]));
    EXPECT_OK(weft_engine_add_neighbour(p->engine[i], NULL, 0, &p->number[i]));
  }
  for (size_t i = 0; i < SEGMENTS; i++)
    EXPECT_OK(weft_engine_source_put(p->engine[0], data, SEGMENT, 0, 0));
  EXPECT_OK(weft_engine_source_end(p->engine[0], 0));
}

static void pair_free(pair *p) {
  for (size_t i = 0; i < 2; i++)
    weft_engine_free(p->engine[i]);
  weft_ctx_free(p->ctx);
}

static weft_status hand_over(pair *p, size_t to, const uint8_t *datagram, size_t bytes) {
  return weft_engine_input(p->engine[to], p->number[to], datagram, bytes, p->now_us);
}

static void exchange(pair *p, size_t from) {
  weft_burst burst;
  while (weft_engine_output(p->engine[from], p->now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++) {
      const uint8_t *datagram = burst.datagrams[i].data;
      const size_t bytes = burst.datagrams[i].bytes;
      weft_packet packet;
      const bool chosen =
          p->answer && weft_packet_parse_session(datagram, bytes, 1, BLOCK, &packet) == WEFT_OK &&
          packet.id.segment == 5 && packet.index == 0;
      if (chosen) {
        const weft_status status = p->answer(p, &packet);
        p->answer = NULL;
        EXPECT(status != WEFT_OK);
      } else {
        (void)hand_over(p, 1 - from, datagram, bytes);
      }
    }
}

static void expect_whole(pair *p) {
  for (; p->now_us < 20000 * MS && !weft_engine_done(p->engine[1]); p->now_us += MS)
    for (size_t i = 0; i < 2; i++) {
      weft_event event;
      uint64_t segment;
      size_t bytes;
      weft_engine_tick(p->engine[i], p->now_us);
      while (weft_engine_event(p->engine[i], &event))
        continue;
      while (i == 1 && weft_engine_readable(p->engine[1], &segment, &bytes) == WEFT_OK)
        EXPECT_OK(weft_engine_release(p->engine[1]));
      exchange(p, i);
    }
  EXPECT(!p->answer);
  EXPECT(weft_engine_done(p->engine[1]));
}

// Serializes a packet again and hands it to the receiver.
static weft_status hand_over_packet(pair *p, weft_packet packet) {
  uint8_t payload[BLOCK], out[WEFT_DATAGRAM_MAX];
  size_t bytes;
  memcpy(payload, packet.payload, BLOCK);
  packet.payload = payload;
  EXPECT_OK(weft_packet_write_session(&packet, out, sizeof out, &bytes));
  return hand_over(p, 1, out, bytes);
}

static weft_status of_another_kind(pair *p, const weft_packet *packet) {
  const weft_packet dense = {
      .id = packet->id, .mode = WEFT_PACKET_DENSE, .seed = 77, .payload = packet->payload};
  const weft_status status = hand_over_packet(p, dense);
  EXPECT(status == WEFT_E_FOREIGN);
  return status;
}

static weft_status without_memory(pair *p, const weft_packet *packet) {
  p->memory.fail_at = p->memory.calls + 1;
  const weft_status status = hand_over_packet(p, *packet);
  EXPECT(test_allocator_failed(&p->memory));
  p->memory.fail_at = 0;
  EXPECT(status == WEFT_E_NOMEM);
  return status;
}

// Answers with a packet shorter than the segment's, whose shape may not be known by then.
static weft_status of_another_shape(pair *p, const weft_packet *packet) {
  weft_packet shorter = *packet;
  shorter.id.blocks--;
  return hand_over_packet(p, shorter);
}

START_TEST(a_block_that_was_not_taken_is_asked_for_again) {
  static weft_status (*const answers[])(pair *, const weft_packet *) = {
      of_another_kind, without_memory, of_another_shape};
  pair p;
  pair_new(&p);
  p.answer = answers[_i];
  expect_whole(&p);
  pair_free(&p);
}
END_TEST

// --- Room for requests

// A viewer requests blocks by number, more than two requests have room for: what one neighbour was
// asked for is not requested from another meanwhile.
START_TEST(blocks_under_way_are_not_asked_of_another) {
  enum { ALL = 256, NEIGHBOURS = 2 };
  scene s = {.now_us = 5 * SECOND};
  weft_codec_blocks plain;
  uint64_t asked[ALL / 64] = {0}, again = 0;
  uint8_t out[WEFT_DATAGRAM_MAX];
  EXPECT_OK(weft_ctx_new(&s.ctx, NULL));
  plain = (weft_codec_blocks){.ctx = s.ctx};
  s.codec = weft_codec_blocks_table(&plain);
  weft_rng_chacha_seed(&s.chacha, fixture_seed(), 1);
  s.options = (weft_engine_options){.stream = 5,
                                    .blocks = ALL,
                                    .block_bytes = 4,
                                    .mode = WEFT_MODE_VOD,
                                    .window = WINDOW,
                                    .batch = BATCH,
                                    .neighbours_max = MOST,
                                    .requests_max = 2,
                                    .codec = &s.codec,
                                    .policy = &scene_silent,
                                    .rate_bits_per_s = 8 * ALL * 4};
  const weft_engine_self self = {.rng = weft_rng_chacha_table(&s.chacha)};
  EXPECT_OK(weft_engine_new(s.ctx, &s.options, &self, &s.engine));
  const weft_hello hello = {.stream = 5, .blocks = ALL, .block_bytes = 4, .stamps = {.stamp = 1}};
  for (size_t i = 0, at; i < NEIGHBOURS; i++) {
    EXPECT_OK(weft_engine_add_neighbour(s.engine, NULL, s.now_us, &at));
    EXPECT_OK(scene_say(&s, at, out, weft_hello_write(&hello, out)));
    scene_map(&s, at, 20, 0);
  }
  for (size_t requests = 0; requests < 2 * NEIGHBOURS; s.now_us += STEP_US) {
    EXPECT(s.now_us < 7 * SECOND);
    weft_engine_tick(s.engine, s.now_us);
    weft_burst burst;
    while (weft_engine_output(s.engine, s.now_us, &burst) == WEFT_OK)
      for (size_t i = 0; i < burst.count; i++) {
        weft_message m;
        if (weft_message_parse(burst.datagrams[i].data, burst.datagrams[i].bytes, 5, ALL, 4, &m) !=
                WEFT_OK ||
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

// The last segment is short, as only its manifest says; so requests for its packets, useless
// without the manifest, leave room for requesting it. Losses may delay it long in one run, so the
// runs are counted together: without that room they cost 3, 5 and 7 packets each, and more.
START_TEST(packets_leave_room_for_a_manifest) {
  enum { LAST = 3 * 64 - 7, ALL = 10 * 1024 + LAST, RUNS = 80 };
  static uint8_t input[ALL];
  test_rng rng = test_rng_new(test_seed(), 31);
  test_rng_fill(&rng, input, sizeof input);
  uint64_t useless = 0;
  for (uint64_t run = 0; run < RUNS; run++) {
    swarm *s = swarm_new(input, sizeof input, 100 + run);
    s->fate = swarm_lossy;
    s->loss_percent = 10;
    s->options.window = 8;
    s->options.batch = 8;
    s->options.policy = &weft_policy_pull;
    s->options.requests_max = (size_t)_i;
    swarm_start(s, NULL);
    swarm_connect(s, swarm_add(s, NULL), 0);
    swarm_run_until_read(s, 1, 11);
    useless += swarm_statistics(s, 1).received_outside;
    swarm_free(s);
  }
  EXPECT(useless < 2 * RUNS * (uint64_t)_i);
}
END_TEST

// --- A codec of the test's own

START_TEST(a_codec_takes_the_place_of_one_of_its_kind) {
  pair p;
  pair_new(&p);
  weft_codec_rlnc rlnc = {.ctx = p.ctx};
  const weft_codec coded = weft_codec_rlnc_table(&rlnc);
  for (size_t i = 0; i < 4; i++) {
    weft_engine_options options = p.options;
    weft_engine *engine = NULL;
    options.codec = i & 1 ? &p.codec : &coded;
    const weft_engine_self self = {.rng = weft_rng_chacha_table(&p.chacha[0]),
                                   .codec = i & 2 ? &p.codec : &coded};
    const bool alike = options.codec == self.codec;
    EXPECT_STATUS(weft_engine_new(p.ctx, &options, &self, &engine),
                  alike ? WEFT_OK : WEFT_E_ARGUMENT);
    EXPECT(!engine == !alike);
    weft_engine_free(engine);
  }
  pair_free(&p);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("asked");
  TCase *t = tcase_create("asked");
  tcase_add_loop_test(t, a_block_that_was_not_taken_is_asked_for_again, 0, 3);
  tcase_add_test(t, blocks_under_way_are_not_asked_of_another);
  tcase_add_loop_test(t, packets_leave_room_for_a_manifest, 1, 4);
  tcase_add_test(t, a_codec_takes_the_place_of_one_of_its_kind);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
