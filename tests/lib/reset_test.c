// SPDX-License-Identifier: Apache-2.0
// Decoders and recoders that are reset to another segment behave like new ones, whatever state they
// were in.
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

enum { ROUNDS = 6, BLOCKS = 21, BLOCK_BYTES = 130 };

static const uint8_t key[32] = {9};

// Feeds packets of the source to both decoders, which must respond alike, until they have `rank`.
static void feed_both(const fixture_source *source, weft_decoder *used, weft_decoder *fresh,
                      size_t rank) {
  uint8_t datagram[WEFT_PACKET_ROOM_BYTES(BLOCKS, BLOCK_BYTES)];
  while (weft_decoder_rank(fresh) < rank) {
    size_t bytes;
    EXPECT_OK(weft_encoder_next(source->encoder, datagram, sizeof datagram, &bytes));
    EXPECT(weft_decoder_add_datagram(used, datagram, bytes) ==
           weft_decoder_add_datagram(fresh, datagram, bytes));
    EXPECT(weft_decoder_rank(used) == weft_decoder_rank(fresh));
    EXPECT(weft_decoder_prefix(used) == weft_decoder_prefix(fresh));
  }
}

static weft_segment_id next_id(const weft_segment_id *id) {
  weft_segment_id next = *id;
  next.segment++;
  return next;
}

START_TEST(a_decoder_goes_on_with_the_next_segment) {
  fixture_start(410);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 1);
  for (int variant = 0; variant < 3; variant++) {
    uint8_t own[BLOCKS * BLOCK_BYTES];
    weft_decoder_options options = {.id = fixture_id(BLOCKS, BLOCK_BYTES),
                                    .blocks = variant == 1 ? own : NULL,
                                    .eager = variant == 2};
    weft_decoder *used, *fresh;
    EXPECT_OK(weft_decoder_new(ctx, &options, &used));
    for (size_t round = 0; round < ROUNDS; round++) {
      const weft_encoder_options how = {.systematic = round % 2 == 1};
      fixture_source source =
          fixture_source_new(ctx, BLOCKS, BLOCK_BYTES, BLOCKS * BLOCK_BYTES - round, &how);
      options.id = source.id;
      EXPECT_OK(weft_decoder_reset(used, &source.id));
      EXPECT(weft_decoder_rank(used) == 0 && weft_decoder_prefix(used) == 0);
      EXPECT(!weft_decoder_has_block(used, 0) && !weft_decoder_complete(used));
      options.blocks = NULL;
      EXPECT_OK(weft_decoder_new(ctx, &options, &fresh));
      EXPECT_OK(weft_decoder_fix_random(used, key));
      EXPECT_OK(weft_decoder_fix_random(fresh, key));
      feed_both(&source, used, fresh, round < 4 ? 3 + 4 * round : BLOCKS);
      EXPECT(fixture_state(used) == fixture_state(fresh));
      if (weft_decoder_complete(used))
        fixture_check_decoded(&source, used);
      if (round == 5 && variant == 1)
        EXPECT(memcmp(own, source.data, sizeof own) == 0);
      weft_decoder_free(fresh);
      fixture_source_free(&source);
    }
    weft_decoder_free(used);
  }
  weft_ctx_free(ctx);
}
END_TEST

// A decoder works after a reset even if its deferred payloads could not be reduced for lack of
// memory.
START_TEST(a_decoder_that_failed_goes_on) {
  fixture_start(411);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_ctx *ctx, *plain = fixture_ctx(NULL, 1);
  EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.allocator = &memory.allocator}));
  fixture_source source =
      fixture_source_new(plain, BLOCKS, BLOCK_BYTES, BLOCKS * BLOCK_BYTES, NULL);
  weft_decoder *decoder = fixture_decoder(ctx, &source.id);
  fixture_feed(source.encoder, decoder);
  const uint8_t *block;
  memory.fail_at = atomic_load(&memory.calls) + 1;
  EXPECT_STATUS(weft_decoder_block(decoder, 3, &block), WEFT_E_NOMEM);
  EXPECT(test_allocator_failed(&memory));
  EXPECT_OK(weft_decoder_reset(decoder, &source.id));
  EXPECT_STATUS(weft_decoder_block(decoder, 3, &block), WEFT_PENDING);
  fixture_feed(source.encoder, decoder);
  fixture_check_decoded(&source, decoder);
  weft_decoder_free(decoder);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
  weft_ctx_free(plain);
}
END_TEST

START_TEST(a_recoder_goes_on_with_the_next_segment) {
  fixture_start(412);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 1);
  const size_t room = WEFT_PACKET_ROOM_BYTES(BLOCKS, BLOCK_BYTES);
  uint8_t in[WEFT_PACKET_ROOM_BYTES(BLOCKS, BLOCK_BYTES)], mine[sizeof in], wanted[sizeof in];
  weft_segment_id id = fixture_id(BLOCKS, BLOCK_BYTES);
  weft_recoder *used, *fresh;
  size_t bytes;
  EXPECT_OK(weft_recoder_new(ctx, &id, 7, &used));
  for (size_t round = 0; round < ROUNDS; round++) {
    fixture_source source =
        fixture_source_new(ctx, BLOCKS, BLOCK_BYTES, BLOCKS * BLOCK_BYTES, NULL);
    EXPECT_OK(weft_recoder_reset(used, &source.id));
    EXPECT(weft_recoder_held(used) == 0);
    EXPECT_STATUS(weft_recoder_next(used, mine, room, &bytes), WEFT_PENDING);
    EXPECT_OK(weft_recoder_new(ctx, &source.id, 7, &fresh));
    EXPECT_OK(weft_recoder_fix_random(used, key));
    EXPECT_OK(weft_recoder_fix_random(fresh, key));
    for (size_t i = 0; i < 2 + 2 * round; i++) {
      EXPECT_OK(weft_encoder_next(source.encoder, in, room, &bytes));
      EXPECT_OK(weft_recoder_add_datagram(used, in, bytes));
      EXPECT_OK(weft_recoder_add_datagram(fresh, in, bytes));
    }
    for (int i = 0; i < 3; i++) {
      EXPECT_OK(weft_recoder_next(used, mine, room, &bytes));
      EXPECT_OK(weft_recoder_next(fresh, wanted, room, &bytes));
      EXPECT(memcmp(mine, wanted, bytes) == 0);
    }
    weft_recoder_free(fresh);
    fixture_source_free(&source);
  }
  weft_recoder_free(used);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(only_the_same_shape) {
  fixture_start(413);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  fixture_source source = fixture_source_new(ctx, 8, 40, 320, NULL);
  weft_decoder *decoder = fixture_decoder(ctx, &source.id);
  weft_recoder *recoder;
  EXPECT_OK(weft_recoder_new(ctx, &source.id, 8, &recoder));
  uint8_t datagram[WEFT_PACKET_ROOM_BYTES(8, 40)];
  size_t bytes;
  EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
  EXPECT_OK(weft_recoder_add_datagram(recoder, datagram, bytes));
  fixture_feed(source.encoder, decoder);
  weft_segment_id other[3] = {source.id, source.id, source.id};
  other[0].blocks = 9;
  other[1].block_bytes = 39;
  other[2].blocks = 0;
  for (size_t i = 0; i < 3; i++) {
    EXPECT_STATUS(weft_decoder_reset(decoder, &other[i]), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_recoder_reset(recoder, &other[i]), WEFT_E_ARGUMENT);
  }
  EXPECT_STATUS(weft_decoder_reset(NULL, &source.id), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_reset(decoder, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_reset(NULL, &source.id), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_reset(recoder, NULL), WEFT_E_ARGUMENT);
  fixture_check_decoded(&source, decoder);
  EXPECT(weft_recoder_held(recoder) == 1);
  const weft_segment_id next = next_id(&source.id);
  EXPECT_OK(weft_decoder_reset(decoder, &next)); // packets of the previous segment are foreign now
  EXPECT_STATUS(weft_decoder_add_datagram(decoder, datagram, bytes), WEFT_E_FOREIGN);
  EXPECT_OK(weft_recoder_reset(recoder, &next));
  EXPECT_STATUS(weft_recoder_add_datagram(recoder, datagram, bytes), WEFT_E_FOREIGN);
  weft_recoder_free(recoder);
  weft_decoder_free(decoder);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("reset");
  TCase *tcase = tcase_create("segments");
  tcase_add_loop_test(tcase, a_decoder_goes_on_with_the_next_segment, 0, fixture_row_count());
  tcase_add_test(tcase, a_decoder_that_failed_goes_on);
  tcase_add_loop_test(tcase, a_recoder_goes_on_with_the_next_segment, 0, fixture_row_count());
  tcase_add_test(tcase, only_the_same_shape);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
