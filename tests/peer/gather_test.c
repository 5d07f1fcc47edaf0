// SPDX-License-Identifier: Apache-2.0
// The codec that decodes many segments in one call: its segments can be mixed at any rank, before,
// while and after they are decoded; closing a segment meanwhile does no harm; and every allocation
// may fail.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer/runtime/codec_gather.h"
#include "tests/peer/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "tests/support/test_signals.h"

enum { N = 24, K = 100, SEGMENTS = 9, BYTES = N * K };

typedef struct bench {
  weft_ctx *ctx;
  weft_codec_rlnc rlnc;
  weft_codec plain, codec;
  weft_gatherer *gatherer;
  weft_rng_chacha chance;
  weft_rng rng;
  uint8_t data[SEGMENTS][BYTES];
  void *source[SEGMENTS], *sink[SEGMENTS];
} bench;

static weft_segment_id id_of(size_t i) {
  return (weft_segment_id){.stream = 3, .segment = i, .blocks = N, .block_bytes = K};
}

static weft_status open_all(bench *b) {
  WEFT_TRY(weft_gatherer_new(b->ctx, &b->gatherer));
  b->codec = weft_gatherer_table(b->gatherer);
  for (size_t i = 0; i < SEGMENTS; i++) {
    const weft_segment_id id = id_of(i);
    WEFT_TRY(b->plain.open_source(&b->rlnc, &id, b->data[i], BYTES, &b->rng, &b->source[i]));
    WEFT_TRY(b->codec.open_sink(b->gatherer, &id, &b->rng, &b->sink[i]));
  }
  return WEFT_OK;
}

static weft_status setup(bench *b, const weft_allocator *allocator, size_t threads, bool coded) {
  memset(b, 0, sizeof *b);
  const weft_ctx_options options = {.allocator = allocator, .threads = threads};
  WEFT_TRY(weft_ctx_new(&b->ctx, &options));
  b->rlnc = (weft_codec_rlnc){.ctx = b->ctx, .coded_only = coded};
  b->plain = weft_codec_rlnc_table(&b->rlnc);
  weft_rng_chacha_seed(&b->chance, test_seed(), 4);
  b->rng = weft_rng_chacha_table(&b->chance);
  test_rng rng = test_rng_new(test_seed(), 5);
  test_rng_fill(&rng, b->data[0], sizeof b->data);
  return open_all(b);
}

static void teardown(bench *b) {
  for (size_t i = 0; i < SEGMENTS; i++) {
    if (b->ctx)
      b->plain.close(&b->rlnc, b->source[i]);
    if (b->gatherer)
      b->codec.close(b->gatherer, b->sink[i]);
  }
  weft_gatherer_free(b->gatherer);
  weft_ctx_free(b->ctx);
}

// Passes one packet of a codec's segment to a segment of another codec.
static weft_status pass_on(const weft_codec *from, void *giver, const weft_codec *to, void *taker) {
  uint8_t payload[K], vector[N], *row = payload;
  weft_packet packet;
  const weft_batch one = {.count = 1,
                          .packets = &packet,
                          .coefficients = vector,
                          .coefficients_stride = N,
                          .payload_rows = &row};
  WEFT_TRY(from->make(from->user, giver, &one));
  packet.payload = payload;
  return to->add(to->user, taker, &packet);
}

static weft_status fill(bench *b, size_t i, size_t rank) {
  while (b->codec.rank(b->gatherer, b->sink[i]) < rank) {
    const weft_status status = pass_on(&b->plain, b->source[i], &b->codec, b->sink[i]);
    if (status != WEFT_OK && status != WEFT_DEPENDENT)
      return status;
  }
  return WEFT_OK;
}

static weft_status wait_for(bench *b, size_t i) {
  while (b->codec.decoding(b->gatherer, b->sink[i]))
    (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  return WEFT_OK;
}

static weft_status check(bench *b, size_t i) {
  uint8_t out[BYTES];
  WEFT_TRY(b->codec.read(b->gatherer, b->sink[i], 0, BYTES, out));
  EXPECT(memcmp(out, b->data[i], BYTES) == 0);
  WEFT_TRY(b->codec.read(b->gatherer, b->sink[i], 7, BYTES - 9, out));
  EXPECT(memcmp(out, b->data[i] + 7, BYTES - 9) == 0);
  return WEFT_OK;
}

// Expects that a plain receiver learns from the gathered segment all that it knows, and nothing
// else.
static void expect_mixes(bench *b, size_t i) {
  const weft_segment_id id = id_of(i);
  const size_t rank = b->codec.rank(b->gatherer, b->sink[i]);
  void *taker;
  EXPECT_OK(b->plain.open_sink(&b->rlnc, &id, &b->rng, &taker));
  for (size_t tries = 0; tries < rank + 20; tries++) {
    const weft_status status = pass_on(&b->codec, b->sink[i], &b->plain, taker);
    EXPECT(status == WEFT_OK || status == WEFT_DEPENDENT);
  }
  EXPECT(b->plain.rank(&b->rlnc, taker) == rank);
  if (rank == N) {
    uint8_t out[BYTES];
    EXPECT_OK(b->plain.read(&b->rlnc, taker, 0, BYTES, out));
    EXPECT(memcmp(out, b->data[i], BYTES) == 0);
  }
  b->plain.close(&b->rlnc, taker);
}

static void together(size_t threads, bool coded) {
  bench b;
  EXPECT_OK(setup(&b, NULL, threads, coded));
  EXPECT_STATUS(pass_on(&b.codec, b.sink[0], &b.plain, b.source[0]), WEFT_PENDING);
  for (size_t i = 0; i < SEGMENTS; i++) {
    EXPECT_OK(fill(&b, i, 1 + i));
    expect_mixes(&b, i);
    EXPECT_STATUS(b.codec.read(b.gatherer, b.sink[i], 0, 1, b.data[i]), WEFT_PENDING);
    EXPECT_OK(fill(&b, i, N));
  }
  EXPECT_OK(b.codec.decode(b.gatherer, b.sink, SEGMENTS));
  expect_mixes(&b, 0); // while it is being decoded, or not
  for (size_t i = 0; i < SEGMENTS; i++) {
    EXPECT_OK(wait_for(&b, i));
    EXPECT_OK(check(&b, i));
    expect_mixes(&b, i);
    EXPECT_STATUS(pass_on(&b.plain, b.source[i], &b.codec, b.sink[i]), WEFT_DEPENDENT);
  }
  EXPECT_OK(b.codec.decode(b.gatherer, b.sink, SEGMENTS)); // nothing is left to do
  EXPECT(!b.codec.decoding(b.gatherer, b.sink[0]));
  teardown(&b);
}

START_TEST(segments_are_decoded_together) {
  together(1, true);
  together(1, false);
  together(3, true);
}
END_TEST

START_TEST(closing_waits_for_the_run) {
  for (int round = 0; round < 50; round++) {
    bench b;
    EXPECT_OK(setup(&b, NULL, 1, true));
    for (size_t i = 0; i < SEGMENTS; i++)
      EXPECT_OK(fill(&b, i, N));
    EXPECT_OK(b.codec.decode(b.gatherer, b.sink, SEGMENTS - 1));
    const weft_status again = b.codec.decode(b.gatherer, &b.sink[SEGMENTS - 1], 1);
    EXPECT(again == WEFT_PENDING || again == WEFT_OK); // it may have finished
    b.codec.close(b.gatherer, b.sink[0]);
    b.sink[0] = NULL;
    EXPECT_OK(check(&b, 1));
    EXPECT_OK(check(&b, SEGMENTS - 1)); // reading does not wait for a run
    teardown(&b);
  }
}
END_TEST

static void *watching_alloc(void *user, size_t bytes, size_t align) {
  void *block = NULL;
  test_signals_look(user);
  return posix_memalign(&block, align < sizeof block ? sizeof block : align, bytes) == 0 ? block
                                                                                         : NULL;
}

static void watching_free(void *user, void *block) {
  test_signals_look(user);
  free(block);
}

// The codec's thread takes no signals: the node's program waits for them besides its loop.
START_TEST(the_thread_takes_no_signals) {
  test_signals watch;
  test_signals_init(&watch);
  const weft_allocator allocator = {watching_alloc, watching_free, &watch};
  bench b;
  EXPECT_OK(setup(&b, &allocator, 1, true));
  EXPECT_OK(fill(&b, 0, N));
  EXPECT_OK(b.codec.decode(b.gatherer, b.sink, 1));
  EXPECT_OK(wait_for(&b, 0));
  teardown(&b);
  EXPECT(atomic_load(&watch.looks) > 0);
  EXPECT(atomic_load(&watch.open) == 0);
  EXPECT(test_signals_open()); // the caller's own mask is unchanged
}
END_TEST

static weft_status everything(bench *b, const weft_allocator *allocator) {
  WEFT_TRY(setup(b, allocator, 1, true));
  for (size_t i = 0; i < SEGMENTS; i++)
    WEFT_TRY(fill(b, i, N));
  WEFT_TRY(b->codec.decode(b->gatherer, b->sink, SEGMENTS));
  for (size_t i = 0; i < SEGMENTS; i++) {
    WEFT_TRY(wait_for(b, i));
    WEFT_TRY(check(b, i));
    const weft_status status = pass_on(&b->codec, b->sink[i], &b->codec, b->sink[i]);
    if (status != WEFT_DEPENDENT)
      return status;
  }
  return WEFT_OK;
}

START_TEST(every_allocation_may_fail) {
  for (long nth = 1;; nth++) {
    test_allocator memory;
    test_allocator_init(&memory, nth);
    bench b;
    const weft_status status = everything(&b, &memory.allocator);
    teardown(&b);
    EXPECT(test_allocator_live(&memory) == 0);
    if (!test_allocator_failed(&memory)) {
      EXPECT_OK(status);
      break;
    }
    EXPECT(status == WEFT_OK || status == WEFT_E_NOMEM); // a failed run is repeated
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gather");
  TCase *tc = tcase_create("gather");
  tcase_set_timeout(tc, 120);
  tcase_add_test(tc, segments_are_decoded_together);
  tcase_add_test(tc, closing_waits_for_the_run);
  tcase_add_test(tc, the_thread_takes_no_signals);
  tcase_add_test(tc, every_allocation_may_fail);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
