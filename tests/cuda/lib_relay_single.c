// SPDX-License-Identifier: Apache-2.0
// One decoder that relays one segment: in host memory, of the largest size, and in refused calls.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/lib_cases.h"

// Decoders in host memory work on a device context as on any other.
START_TEST(recode_on_a_device_context) {
  if (gpu_skip("recode_on_a_device_context"))
    return;
  fixture_start(300);
  weft_ctx *ctx = fixture_ctx("cuda", 2);
  fixture_source source = fixture_source_new(ctx, 40, 700, 40 * 700 - 3, NULL);
  weft_decoder *relay = fixture_decoder(ctx, &source.id), *sink = fixture_decoder(ctx, &source.id);
  fixture_feed(source.encoder, relay);
  uint8_t datagram[2048];
  for (size_t bytes; !weft_decoder_complete(sink);) {
    EXPECT_OK(weft_decoder_recode(relay, datagram, sizeof datagram, &bytes));
    const weft_status added = weft_decoder_add_datagram(sink, datagram, bytes);
    EXPECT(added == WEFT_OK || added == WEFT_DEPENDENT);
  }
  fixture_check_decoded(&source, sink);
  weft_decoder_free(relay);
  weft_decoder_free(sink);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(relay_large_segment) {
  if (lib_reduced() || gpu_skip("relay_large_segment"))
    return;
  fixture_start(740);
  weft_ctx *ctx = fixture_ctx("cuda", 2);
  fixture_source source = fixture_source_new(ctx, 1024, 700, 1024 * 700, NULL);
  weft_decoder *relay = NULL, *sink = fixture_decoder(ctx, &source.id);
  const weft_decoder_options wanted = {.id = source.id, .mem = WEFT_MEM_DEVICE};
  EXPECT_OK(weft_decoder_new(ctx, &wanted, &relay));
  fixture_feed(source.encoder, relay);
  uint8_t datagram[WEFT_WIRE_HEADER_BYTES + 1024 + 700];
  for (size_t bytes; !weft_decoder_complete(sink);) {
    EXPECT_OK(weft_decoder_recode(relay, datagram, sizeof datagram, &bytes));
    const weft_status added = weft_decoder_add_datagram(sink, datagram, bytes);
    EXPECT(added == WEFT_OK || added == WEFT_DEPENDENT);
  }
  fixture_check_decoded(&source, sink);
  uint8_t *out = fixture_malloc(1024 * 700);
  EXPECT_OK(weft_decoder_read(relay, 0, 1024 * 700, out));
  EXPECT(memcmp(out, source.data, 1024 * 700) == 0);
  free(out);
  weft_decoder_free(relay);
  weft_decoder_free(sink);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// A reset relay, whose slots still hold packets of the previous segment, relays the next one.
START_TEST(relay_reset) {
  if (gpu_skip("relay_reset"))
    return;
  fixture_start(750);
  enum { N = 24, K = 333 };
  weft_ctx *ctx = fixture_ctx("cuda", 2);
  weft_decoder *relay = NULL;
  weft_decoder_options wanted = {.id = fixture_id(N, K), .mem = WEFT_MEM_DEVICE};
  EXPECT_OK(weft_decoder_new(ctx, &wanted, &relay));
  uint8_t datagram[WEFT_PACKET_ROOM_BYTES(N, K)], out[N * K];
  size_t bytes;
  for (int round = 0; round < 4; round++) {
    fixture_source source = fixture_source_new(ctx, N, K, N * K, NULL);
    weft_decoder *sink = fixture_decoder(ctx, &source.id);
    EXPECT_OK(weft_decoder_reset(relay, &source.id));
    EXPECT_STATUS(weft_decoder_recode(relay, datagram, sizeof datagram, &bytes), WEFT_PENDING);
    while (weft_decoder_rank(relay) < (round % 2 ? N : N / 2)) {
      EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
      (void)weft_decoder_add_datagram(relay, datagram, bytes);
      EXPECT_OK(weft_decoder_recode(relay, datagram, sizeof datagram, &bytes));
      (void)weft_decoder_add_datagram(sink, datagram, bytes);
    }
    fixture_feed(source.encoder, sink);
    fixture_check_decoded(&source, sink);
    if (weft_decoder_complete(relay)) {
      EXPECT_OK(weft_decoder_read(relay, 0, N * K, out));
      EXPECT(memcmp(out, source.data, N * K) == 0);
    }
    weft_decoder_free(sink);
    fixture_source_free(&source);
  }
  weft_decoder_free(relay);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(relay_refuses) {
  if (gpu_skip("relay_refuses"))
    return;
  fixture_start(760);
  weft_ctx *ctx = fixture_ctx("cuda", 1), *host = fixture_ctx(NULL, 1);
  const weft_segment_id id = fixture_id(8, 100);
  uint8_t blocks[800], vector[8] = {1};
  weft_decoder *decoder = NULL, *other = fixture_decoder(ctx, &id);
  weft_decoder_options options = {.id = id, .mem = WEFT_MEM_DEVICE};
  EXPECT_STATUS(weft_decoder_new(host, &options, &decoder), WEFT_E_UNSUPPORTED);
  options.eager = true;
  EXPECT_STATUS(weft_decoder_new(ctx, &options, &decoder), WEFT_E_ARGUMENT);
  options.eager = false;
  options.blocks = blocks;
  EXPECT_STATUS(weft_decoder_new(ctx, &options, &decoder), WEFT_E_ARGUMENT);
  options.blocks = NULL;
  options.mem = WEFT_MEM_PINNED;
  EXPECT_STATUS(weft_decoder_new(ctx, &options, &decoder), WEFT_E_ARGUMENT);
  options.mem = WEFT_MEM_DEVICE;
  EXPECT_OK(weft_decoder_new(ctx, &options, &decoder));
  const uint8_t *block;
  EXPECT_STATUS(weft_decoder_block(decoder, 0, &block), WEFT_E_UNSUPPORTED);
  const weft_packet packet = {
      .id = id, .mode = WEFT_PACKET_VECTOR, .coefficients = vector, .payload = blocks};
  weft_arrival two[2] = {{.decoder = decoder, .packet = packet},
                         {.decoder = other, .packet = packet}};
  EXPECT_STATUS(weft_decoders_add(two, 2, WEFT_MEM_HOST, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoders_add(two + 1, 1, WEFT_MEM_DEVICE, NULL), WEFT_E_UNSUPPORTED);
  EXPECT_STATUS(weft_decoders_add(NULL, 1, WEFT_MEM_HOST, NULL), WEFT_E_ARGUMENT);
  const weft_batch batch = {.count = 1, .coefficients = vector, .payload = blocks};
  EXPECT_STATUS(weft_decoders_recode(&decoder, &batch, 1, NULL), WEFT_PENDING);
  const weft_batch none = {.count = 0}; // nothing to do, even if the CPU draws the weights
  EXPECT_OK(weft_decoders_recode(&decoder, &none, 1, NULL));
  const uint8_t key[32] = {1};
  EXPECT_OK(weft_decoder_fix_random(decoder, key));
  EXPECT_OK(weft_decoders_recode(&decoder, &none, 1, NULL));
  EXPECT_OK(weft_decoder_recode_batch(decoder, &none));
  weft_reading reading = {.decoder = decoder, .first = 8, .count = 1, .out = blocks};
  EXPECT_STATUS(weft_decoders_read(&reading, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT(weft_decoder_rank(decoder) == 0 && weft_decoder_rank(other) == 0);
  weft_decoder_free(decoder);
  weft_decoder_free(other);
  weft_ctx_free(ctx);
  weft_ctx_free(host);
}
END_TEST

void lib_add_single_relay_tests(TCase *cases) {
  tcase_add_test(cases, recode_on_a_device_context);
  tcase_add_test(cases, relay_large_segment);
  tcase_add_test(cases, relay_reset);
  tcase_add_test(cases, relay_refuses);
}
