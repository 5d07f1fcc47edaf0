// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes end to end: every byte comes back, for every row of this machine and many
// shapes. Recoding is in recode_test.c.
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_main.h"

typedef struct shape {
  size_t n, k, bytes; // true length; 0: n * k
} shape;

static const shape shapes[] = {
    {1, 1, 0},     {1, 1000, 1},    {2, 1, 1},      {3, 7, 20},       {5, 64, 257},
    {8, 1, 0},     {16, 100, 1599}, {17, 31, 500},  {32, 1024, 0},    {33, 257, 33 * 257 - 256},
    {64, 1024, 0}, {100, 63, 64},   {128, 129, 0},  {127, 4097, 127}, {255, 16, 0},
    {256, 3, 700}, {300, 5, 0},     {511, 2, 1000},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static size_t true_bytes(const shape *s) { return s->bytes > 0 ? s->bytes : s->n * s->k; }

static void round_trip(weft_ctx *ctx, const shape *s, const weft_encoder_options *options,
                       size_t slack) {
  fixture_source source = fixture_source_new(ctx, s->n, s->k, true_bytes(s), options);
  weft_decoder *decoder = fixture_decoder(ctx, &source.id);
  const size_t fed = fixture_feed(source.encoder, decoder);
  EXPECT(fed >= s->n && fed <= s->n + slack);
  fixture_check_decoded(&source, decoder);
  weft_decoder_free(decoder);
  fixture_source_free(&source);
}

// The probability of more than this many dependent packets in one segment is below 256^-8 for dense
// coefficients.
enum { DENSE_SLACK = 8 };

START_TEST(every_row_round_trip) {
  fixture_start(10);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 1);
  for (size_t i = 0; i < 12; i++) {
    round_trip(ctx, &shapes[i], NULL, DENSE_SLACK);
    round_trip(ctx, &shapes[i], &(weft_encoder_options){.seeded = true, .first_seed = 7},
               DENSE_SLACK);
  }
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(every_shape_and_mode) {
  fixture_start(11 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx(NULL, 2);
  const shape *s = &shapes[_i];
  const weft_encoder_options modes[] = {
      {.seeded = true, .first_seed = UINT64_MAX - 3}, // the seed wraps around
      {.systematic = true},
      {.density_q16 = 20000},
      {.seeded = true, .density_q16 = 20000},
      {.seeded = true, .systematic = true, .density_q16 = 65535},
  };
  for (int repeat = 0; repeat < 3; repeat++)
    round_trip(ctx, s, NULL, DENSE_SLACK);
  for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
    round_trip(ctx, s, &modes[m], modes[m].density_q16 != 0 ? 64 + s->n : DENSE_SLACK);
  weft_ctx_free(ctx);
}
END_TEST

// Segments with the most blocks and with the longest blocks round-trip.
START_TEST(largest_segments) {
  fixture_start(40);
  weft_ctx *ctx = fixture_ctx(NULL, 2);
  round_trip(ctx, &(shape){1024, 3, 0}, NULL, DENSE_SLACK);
  round_trip(ctx, &(shape){1024, 16, 1023 * 16 + 1}, &(weft_encoder_options){.seeded = true},
             DENSE_SLACK);
  round_trip(ctx, &(shape){2, WEFT_MAX_BLOCK_BYTES, 0}, NULL, DENSE_SLACK);
  weft_ctx_free(ctx);
}
END_TEST

// Of a very sparse code on few blocks, seeds that give only zero coefficients are skipped.
START_TEST(sparse_packets_are_never_zero) {
  fixture_start(41);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  for (int seeded = 0; seeded < 2; seeded++) {
    const weft_encoder_options options = {.seeded = seeded != 0, .density_q16 = 300};
    fixture_source source = fixture_source_new(ctx, 4, 8, 32, &options);
    uint8_t datagram[128], coefficients[4];
    uint64_t last_seed = 0;
    for (int i = 0; i < 200; i++) {
      size_t bytes;
      weft_packet packet;
      EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
      EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
      EXPECT_OK(weft_packet_coefficients(&packet, coefficients));
      EXPECT(coefficients[0] | coefficients[1] | coefficients[2] | coefficients[3]);
      EXPECT(!seeded || i == 0 || packet.seed > last_seed);
      last_seed = packet.seed;
    }
    EXPECT(!seeded || last_seed > 400); // about 98 % of the seeds give only zeros
    fixture_source_free(&source);
  }
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(dense_coefficients_are_never_zero) {
  fixture_start(42);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  for (int seeded = 0; seeded < 2; seeded++) {
    const weft_encoder_options options = {.seeded = seeded != 0};
    fixture_source source = fixture_source_new(ctx, 256, 1, 256, &options);
    uint8_t datagram[600], coefficients[256];
    bool seen[256] = {false};
    for (int i = 0; i < 100; i++) {
      size_t bytes;
      weft_packet packet;
      EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
      EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
      EXPECT_OK(weft_packet_coefficients(&packet, coefficients));
      for (int c = 0; c < 256; c++)
        seen[coefficients[c]] = true;
    }
    EXPECT(!seen[0]);
    for (int c = 1; c < 256; c++)
      EXPECT(seen[c]);
    fixture_source_free(&source);
  }
  weft_ctx_free(ctx);
}
END_TEST

// --- encoder batches ---

// Checks Y(m, k) = C(m, n) X(n, k) by the definition of the field, one packet at a time.
static void check_payload(const fixture_source *source, const uint8_t *coefficients,
                          const uint8_t *payload) {
  const size_t n = source->id.blocks, k = source->id.block_bytes;
  for (size_t at = 0; at < k; at++) {
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++)
      for (unsigned bit = 0, x = source->data[i * k + at]; bit < 8; bit++, x <<= 1) {
        x = x & 0x100 ? x ^ 0x11D : x;
        sum ^= coefficients[i] >> bit & 1 ? x : 0;
      }
    EXPECT(payload[at] == sum);
  }
}

static void check_batch(fixture_source *source, size_t count, bool rows, bool with_coefficients) {
  const size_t n = source->id.blocks, k = source->id.block_bytes;
  const size_t stride = k + 13, coefficients_stride = n + 5;
  uint8_t *payload = fixture_malloc(count * stride);
  uint8_t *coefficients = fixture_malloc(count * coefficients_stride);
  uint8_t *mine = fixture_malloc(n);
  weft_packet *packets = fixture_malloc(count * sizeof *packets);
  uint8_t **ptr = fixture_malloc(count * sizeof *ptr);
  memset(payload, 0xEE, count * stride);
  for (size_t i = 0; i < count; i++)
    ptr[i] = payload + (count - 1 - i) * stride;
  const weft_batch batch = {.count = count,
                            .packets = packets,
                            .coefficients = with_coefficients ? coefficients : NULL,
                            .coefficients_stride = coefficients_stride,
                            .payload_rows = rows ? ptr : NULL,
                            .payload = rows ? NULL : payload,
                            .payload_stride = stride};
  EXPECT_OK(weft_encoder_batch(source->encoder, &batch, NULL));
  for (size_t i = 0; i < count; i++) {
    EXPECT(packets[i].payload == (rows ? ptr[i] : payload + i * stride));
    EXPECT_OK(weft_packet_coefficients(&packets[i], mine));
    if (with_coefficients)
      EXPECT(memcmp(mine, coefficients + i * coefficients_stride, n) == 0);
    check_payload(source, mine, packets[i].payload);
    for (size_t b = k; b < stride; b++)
      EXPECT(packets[i].payload[b] == 0xEE); // nothing is written between rows
  }
  free(ptr);
  free(packets);
  free(mine);
  free(coefficients);
  free(payload);
}

START_TEST(batches_are_the_product) {
  fixture_start(50);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 2);
  for (int seeded = 0; seeded < 2; seeded++)
    for (int systematic = 0; systematic < 2; systematic++) {
      const weft_encoder_options options = {.seeded = seeded != 0, .systematic = systematic != 0};
      fixture_source source = fixture_source_new(ctx, 13, 70, 13 * 70 - 69, &options);
      check_batch(&source, 1, false, true);
      check_batch(&source, 9, true, true); // the first 10 of 13 systematic packets
      check_batch(&source, 11, false, seeded == 0);
      check_batch(&source, 30, true, seeded == 0);
      fixture_source_free(&source);
    }
  weft_ctx_free(ctx);
}
END_TEST

// Sparse batches are correct, whether each product reads only the blocks it needs or all of them
// because that is faster for many packets.
START_TEST(sparse_batches_are_the_product) {
  static const uint16_t densities[] = {1500, 16384, 16385, UINT16_MAX};
  fixture_start(52);
  for (size_t threads = 1; threads <= 2; threads++) {
    weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), threads);
    for (size_t d = 0; d < 4; d++)
      for (int seeded = 0; seeded < 2; seeded++) {
        const weft_encoder_options options = {
            .seeded = seeded != 0, .systematic = d == 1, .density_q16 = densities[d]};
        fixture_source source = fixture_source_new(ctx, 27, 50, 27 * 50 - 49, &options);
        check_batch(&source, 1, d % 2, true);
        check_batch(&source, 28, true, true);
        check_batch(&source, 70, false, seeded == 0);
        fixture_source_free(&source);
      }
    weft_ctx_free(ctx);
  }
}
END_TEST

// Combinations with the caller's coefficients are correct, even if they are all zero.
START_TEST(caller_owned_coefficients) {
  fixture_start(51);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  fixture_source source = fixture_source_new(ctx, 6, 40, 240, NULL);
  uint8_t coefficients[4 * 8], payload[4 * 40];
  fixture_fill(coefficients, sizeof coefficients);
  memset(coefficients, 0, 6);
  const weft_batch batch = {.count = 4, .payload = payload, .payload_stride = 40};
  EXPECT_OK(weft_encoder_combine(source.encoder, 4, coefficients, 8, &batch, NULL));
  for (size_t i = 0; i < 4; i++)
    check_payload(&source, coefficients + 8 * i, payload + 40 * i);
  EXPECT_STATUS(weft_encoder_combine(source.encoder, 4, coefficients, 5, &batch, NULL),
                WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_combine(source.encoder, 3, coefficients, 8, &batch, NULL),
                WEFT_E_ARGUMENT);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// Borrowed data is used in place for every true length: with whole blocks only, with a partial
// block, and with blocks that are all padding.
START_TEST(borrowed_segments) {
  fixture_start(52);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 1);
  const size_t n = 5, k = 24;
  uint8_t payload[24], one[5] = {0};
  for (size_t bytes = 1; bytes <= n * k; bytes++) {
    uint8_t *data = fixture_malloc(bytes), *again = fixture_malloc(n * k);
    fixture_fill(data, bytes);
    memset(again, 0, n * k);
    memcpy(again, data, bytes);
    weft_segment *segment;
    weft_encoder *encoder;
    const weft_segment_options options = {
        .id = fixture_id(n, k), .data = data, .bytes = bytes, .borrow = true};
    EXPECT_OK(weft_segment_new(ctx, &options, NULL, &segment));
    EXPECT_OK(weft_encoder_new(segment, NULL, &encoder));
    for (size_t i = 0; i < n; i++) {
      memset(one, 0, sizeof one);
      one[i] = 1;
      const weft_batch batch = {.count = 1, .payload = payload};
      EXPECT_OK(weft_encoder_combine(encoder, 1, one, n, &batch, NULL));
      EXPECT(memcmp(payload, again + i * k, k) == 0);
    }
    weft_encoder_free(encoder);
    weft_segment_free(segment);
    free(again);
    free(data);
  }
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(segments_out_of_range) {
  fixture_start(53);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  uint8_t byte = 1;
  const struct {
    size_t n, k, bytes;
  } bad[] = {{0, 1, 1}, {1025, 1, 1}, {1, 0, 1}, {1, WEFT_MAX_BLOCK_BYTES + 1, 1},
             {1, 1, 0}, {2, 2, 5}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    weft_segment *segment;
    weft_decoder *decoder;
    weft_recoder *recoder;
    const weft_segment_options options = {
        .id = fixture_id(bad[i].n, bad[i].k), .data = &byte, .bytes = bad[i].bytes};
    EXPECT_STATUS(weft_segment_new(ctx, &options, NULL, &segment), WEFT_E_ARGUMENT);
    EXPECT(segment == NULL);
    if (i >= 4)
      continue;
    EXPECT_STATUS(weft_decoder_new(ctx, &(weft_decoder_options){.id = options.id}, &decoder),
                  WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_recoder_new(ctx, &options.id, 1, &recoder), WEFT_E_ARGUMENT);
    EXPECT(weft_decoder_memory_bytes(&options.id, true) == 0);
  }
  weft_ctx_free(ctx);
}
END_TEST

// --- batch decoding ---

static void batch_decode(weft_ctx *ctx, size_t jobs_count, weft_queue *queue) {
  fixture_source *sources = fixture_malloc(jobs_count * sizeof *sources);
  weft_decode_job *jobs = fixture_malloc(jobs_count * sizeof *jobs);
  uint8_t **memory = fixture_malloc(jobs_count * sizeof *memory);
  for (size_t j = 0; j < jobs_count; j++) {
    const size_t n = 1 + fixture_below(40), k = 1 + fixture_below(200);
    sources[j] = fixture_source_new(ctx, n, k, n * k, NULL);
    memory[j] = fixture_malloc(n * (n + 3) + 2 * n * k);
    uint8_t *coefficients = memory[j], *payload = coefficients + n * (n + 3);
    weft_packet *packets = fixture_malloc(n * sizeof *packets);
    const weft_batch batch = {.count = n,
                              .packets = packets,
                              .coefficients = coefficients,
                              .coefficients_stride = n + 3,
                              .payload = payload,
                              .payload_stride = k};
    EXPECT_OK(weft_encoder_batch(sources[j].encoder, &batch, NULL));
    free(packets);
    if (j % 5 == 4 && n > 1) // two equal rows
      memcpy(coefficients + (n - 1) * (n + 3), coefficients, n);
    jobs[j] = (weft_decode_job){.blocks = n,
                                .block_bytes = k,
                                .coefficients = coefficients,
                                .coefficients_stride = n + 3,
                                .payload = payload,
                                .payload_stride = k,
                                .out = payload + n * k,
                                .out_stride = k};
  }
  EXPECT_OK(weft_decode_batch(ctx, jobs, jobs_count, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  for (size_t j = 0; j < jobs_count; j++) {
    const size_t n = jobs[j].blocks, k = jobs[j].block_bytes;
    // The progressive decoder decides whether the matrix is regular.
    weft_decoder *decoder = fixture_decoder(ctx, &sources[j].id);
    for (size_t i = 0; i < n; i++)
      weft_decoder_add(decoder, &(weft_packet){.id = sources[j].id,
                                               .mode = WEFT_PACKET_VECTOR,
                                               .coefficients = jobs[j].coefficients + i * (n + 3),
                                               .payload = jobs[j].payload + i * k});
    const bool regular = weft_decoder_complete(decoder);
    weft_decoder_free(decoder);
    EXPECT(!(regular && j % 5 == 4 && n > 1));
    EXPECT_STATUS(jobs[j].status, regular ? WEFT_OK : WEFT_E_SINGULAR);
    if (regular)
      EXPECT(memcmp(jobs[j].out, sources[j].data, n * k) == 0);
    free(memory[j]);
    fixture_source_free(&sources[j]);
  }
  free(memory);
  free(jobs);
  free(sources);
}

START_TEST(batch_decoder) {
  fixture_start(90);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 3);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  batch_decode(ctx, 1, NULL);
  batch_decode(ctx, 2, queue);
  batch_decode(ctx, 25, NULL);
  batch_decode(ctx, 25, queue);
  EXPECT_OK(weft_decode_batch(ctx, NULL, 0, NULL));
  EXPECT_STATUS(weft_decode_batch(ctx, NULL, 1, NULL), WEFT_E_ARGUMENT);
  weft_queue_free(queue);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("codec");
  TCase *tcase = tcase_create("round trips");
  tcase_add_loop_test(tcase, every_row_round_trip, 0, fixture_row_count());
  tcase_add_loop_test(tcase, every_shape_and_mode, 0, SHAPES);
  tcase_add_test(tcase, largest_segments);
  tcase_add_test(tcase, sparse_packets_are_never_zero);
  tcase_add_test(tcase, dense_coefficients_are_never_zero);
  suite_add_tcase(suite, tcase);
  tcase = tcase_create("encoder");
  tcase_add_loop_test(tcase, batches_are_the_product, 0, fixture_row_count());
  tcase_add_loop_test(tcase, sparse_batches_are_the_product, 0, fixture_row_count());
  tcase_add_test(tcase, caller_owned_coefficients);
  tcase_add_loop_test(tcase, borrowed_segments, 0, fixture_row_count());
  tcase_add_test(tcase, segments_out_of_range);
  suite_add_tcase(suite, tcase);
  tcase = tcase_create("batch decoder");
  tcase_add_loop_test(tcase, batch_decoder, 0, fixture_row_count());
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
