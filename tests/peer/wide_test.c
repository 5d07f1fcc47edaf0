// SPDX-License-Identifier: Apache-2.0
// A live stream with a window that is wider than it needs, as where its rate is unknown: the source
// keeps what a node may still play, and maps do not grow with the window.
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

enum { BLOCKS = 4, BLOCK = 16, SEGMENT = BLOCKS * BLOCK, MS = 1000, SECOND = 1000 * MS };
enum { NARROW = 64, WIDE = 200, LAG_S = 1 };

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
  size_t maps, longest; // of the receiver
} pair;

static void pair_new(pair *p, size_t window) {
  *p = (pair){.now_us = SECOND};
  test_allocator_init(&p->memory, 0);
  EXPECT_OK(weft_ctx_new(&p->ctx, &(weft_ctx_options){.allocator = &p->memory.allocator}));
  p->blocks = (weft_codec_blocks){.ctx = p->ctx};
  p->codec = weft_codec_blocks_table(&p->blocks);
  p->options = (weft_engine_options){.stream = 5,
                                     .blocks = BLOCKS,
                                     .block_bytes = BLOCK,
                                     .mode = WEFT_MODE_LIVE,
                                     .window = window,
                                     .behind = 16,
                                     .batch = BLOCKS,
                                     .neighbours_max = 1,
                                     .lag_us = LAG_S * SECOND,
                                     .codec = &p->codec,
                                     .policy = &weft_policy_rarest,
                                     .trust = &weft_trust_counted};
  for (size_t i = 0; i < 2; i++) {
    weft_rng_chacha_seed(&p->chacha[i], fixture_seed(), i);
    const weft_engine_self self = {.source = i == 0, .rng = weft_rng_chacha_table(&p->chacha[i])};
    EXPECT_OK(weft_engine_new(p->ctx, &p->options, &self, &p->engine[i]));
  }
}

static void pair_free(pair *p) {
  for (size_t i = 0; i < 2; i++)
    weft_engine_free(p->engine[i]);
  weft_ctx_free(p->ctx);
}

static void put(pair *p) {
  static uint8_t data[SEGMENT];
  EXPECT_OK(weft_engine_source_put(p->engine[0], data, SEGMENT, p->now_us, p->now_us));
}

// Returns what the source holds after making `segments` segments, one every each_us.
static long held(size_t window, int64_t each_us, size_t segments) {
  pair p;
  pair_new(&p, window);
  for (size_t i = 0; i < segments; i++, p.now_us += each_us)
    put(&p);
  const long live = test_allocator_live(&p.memory);
  pair_free(&p);
  return live;
}

START_TEST(a_source_keeps_what_may_be_played_yet) {
  const long narrow = held(NARROW, 100 * MS, 3 * WIDE);
  EXPECT(held(WIDE, 100 * MS, 3 * WIDE) == narrow); // 64 are 6.4 s
  const long each = held(WIDE, 100 * MS, 2) - held(WIDE, 100 * MS, 1);
  EXPECT(each > 0);
  // Everything of the last two lags and a second, 3 s, is kept, if there is room for it.
  const long most = held(WIDE, 20 * MS, 3 * WIDE) - narrow;
  EXPECT(most >= (150 - NARROW) * each && most <= (153 - NARROW) * each);
  EXPECT(held(WIDE, 10 * MS, 3 * WIDE) - narrow == (WIDE - NARROW) * each);
}
END_TEST

static void look_at_map(pair *p, const weft_datagram *datagram) {
  weft_message m;
  if (weft_message_parse(datagram->data, datagram->bytes, 5, BLOCKS, BLOCK, &m) != WEFT_OK ||
      m.kind != WEFT_MESSAGE_MAP)
    return;
  const uint64_t known = m.as.map.horizon > m.as.map.first ? m.as.map.horizon - m.as.map.first : 0;
  EXPECT(m.as.map.count <= NARROW || m.as.map.count <= known + 48);
  p->longest = m.as.map.count > p->longest ? m.as.map.count : p->longest;
  p->maps++;
}

static void exchange(pair *p, size_t from) {
  weft_burst burst;
  while (weft_engine_output(p->engine[from], p->now_us, &burst) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++) {
      if (from == 1)
        look_at_map(p, &burst.datagrams[i]);
      (void)weft_engine_input(p->engine[1 - from], p->number[1 - from], burst.datagrams[i].data,
                              burst.datagrams[i].bytes, p->now_us);
    }
}

// With 100 segments a second, of which 64 hold less than the lag, maps do not list segments that
// were not made.
START_TEST(maps_do_not_tell_of_what_is_not_made) {
  enum { SEGMENTS = 600 };
  pair p;
  pair_new(&p, WIDE);
  for (size_t i = 0; i < 2; i++)
    EXPECT_OK(weft_engine_add_neighbour(p.engine[i], NULL, p.now_us, &p.number[i]));
  for (size_t made = 0; made < SEGMENTS; made++, p.now_us += 10 * MS) {
    put(&p);
    for (size_t i = 0; i < 2; i++) {
      weft_event event;
      uint64_t segment;
      size_t bytes;
      weft_engine_tick(p.engine[i], p.now_us);
      while (weft_engine_event(p.engine[i], &event))
        continue;
      while (i == 1 && weft_engine_readable(p.engine[1], &segment, &bytes) == WEFT_OK)
        EXPECT_OK(weft_engine_release(p.engine[1]));
      exchange(&p, i);
    }
  }
  weft_engine_statistics s;
  weft_engine_get_statistics(p.engine[1], &s);
  EXPECT(s.due >= 400 && s.in_time == s.due && s.skipped == 0);
  EXPECT(p.maps > 50 && p.longest < WIDE - 16);
  pair_free(&p);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("wide windows");
  TCase *t = tcase_create("wide windows");
  tcase_add_test(t, a_source_keeps_what_may_be_played_yet);
  tcase_add_test(t, maps_do_not_tell_of_what_is_not_made);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
