// SPDX-License-Identifier: Apache-2.0
// A random call of the encoder: every mode with every memory, one segment or many, with and without
// a queue; against the specification.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/lib_cases.h"

void lib_coding_start(lib_coding *c, weft_ctx *ctx, weft_queue *queue, size_t n, size_t k,
                      size_t m) {
  *c = (lib_coding){.ctx = ctx, .id = fixture_id(n, k)};
  c->id.segment = fixture_next();
  const size_t bytes = fixture_below(2) ? n * k : 1 + fixture_below(n * k);
  c->data = fixture_malloc(n * k);
  fixture_fill(c->data, bytes);
  memset(c->data + bytes, 0, n * k - bytes);
  c->source = gpu_input(ctx, lib_any_memory(), c->data, bytes);
  const weft_segment_options segment = {
      .id = c->id, .data = c->source.at, .bytes = bytes, .mem = c->source.mem};
  EXPECT_OK(weft_segment_new(ctx, &segment, queue, &c->segment));
  const uint16_t densities[] = {0, 0, 0, 20000, 700};
  c->options = (weft_encoder_options){.systematic = fixture_below(4) == 0,
                                      .seeded = fixture_below(2),
                                      .first_seed = fixture_next(),
                                      .density_q16 = densities[fixture_below(5)]};
  EXPECT_OK(weft_encoder_new(c->segment, &c->options, &c->encoder));
  if (fixture_below(8) == 0) {
    uint8_t key[32];
    fixture_fill(key, sizeof key);
    EXPECT_OK(weft_encoder_fix_random(c->encoder, key));
  }
  const size_t stride = k + fixture_below(40) * fixture_below(2);
  c->payloads = gpu_output(ctx, lib_any_memory(), m * stride);
  c->batch = (weft_batch){.count = m,
                          .payload = c->payloads.at,
                          .payload_stride = stride,
                          .mem = c->payloads.mem,
                          .packets = calloc(m, sizeof(weft_packet))};
  if (fixture_below(3) == 0) {
    c->rows = fixture_malloc(m * sizeof *c->rows);
    for (size_t i = 0; i < m; i++)
      c->rows[i] = c->payloads.at + (m - 1 - i) * stride;
    c->batch.payload_rows = c->rows;
  }
  c->has_coefficients = !c->options.seeded || fixture_below(2);
  if (c->has_coefficients) {
    c->batch.coefficients_stride = n + fixture_below(9);
    c->batch.coefficients_mem = lib_any_memory();
    c->coefficients = gpu_output(ctx, c->batch.coefficients_mem, m * c->batch.coefficients_stride);
    c->batch.coefficients = c->coefficients.at;
  }
}

// Returns the coefficients of each payload, from the packets or from the coefficients output; they
// must agree.
static uint8_t *coefficients_of(const lib_coding *c) {
  const size_t m = c->batch.count, n = c->id.blocks;
  uint8_t *all = fixture_malloc(m * n);
  uint8_t *handed = c->has_coefficients ? gpu_read(&c->coefficients) : NULL;
  for (size_t i = 0; i < m; i++) {
    weft_packet packet = c->batch.packets[i];
    const uint8_t *row = handed ? handed + i * c->batch.coefficients_stride : NULL;
    if (packet.mode == WEFT_PACKET_VECTOR) {
      EXPECT(handed &&
             (packet.coefficients != NULL) == (c->batch.coefficients_mem != WEFT_MEM_DEVICE));
      packet.coefficients = row;
    }
    packet.payload = all; // only has to be set
    EXPECT_OK(weft_packet_coefficients(&packet, all + i * n));
    EXPECT(!row || memcmp(all + i * n, row, n) == 0);
    bool any = false;
    for (size_t j = 0; j < n; j++) {
      any = any || all[i * n + j] != 0;
      EXPECT(all[i * n + j] != 0 || c->options.density_q16 > 0 ||
             packet.mode == WEFT_PACKET_SYSTEMATIC);
    }
    EXPECT(any);
  }
  free(handed);
  return all;
}

void lib_coding_finish(lib_coding *c) {
  const size_t m = c->batch.count, n = c->id.blocks, k = c->id.block_bytes;
  uint8_t *all = coefficients_of(c), *expect = fixture_malloc(m * k);
  uint8_t *got = gpu_read(&c->payloads);
  gpu_reference(expect, all, c->data, m, n, k);
  for (size_t i = 0; i < m; i++) {
    const size_t place = c->rows ? m - 1 - i : i;
    const uint8_t *row = got + place * c->batch.payload_stride;
    if (memcmp(row, expect + i * k, k) != 0)
      ck_abort_msg("payload %zu of %zu, n %zu k %zu stride %zu, memories %d %d %d, seeded %d, "
                   "systematic %d, density %u, rows %d (row %s, WEFT_TEST_SEED=%#llx)",
                   i, m, n, k, c->batch.payload_stride, c->source.mem, c->payloads.mem,
                   c->has_coefficients ? (int)c->coefficients.mem : -1, c->options.seeded,
                   c->options.systematic, c->options.density_q16, c->rows != NULL, fixture_row,
                   (unsigned long long)fixture_seed);
    for (size_t at = k; at < c->batch.payload_stride; at++)
      EXPECT(row[at] == c->payloads.poison);
  }
  free(all), free(expect), free(got), free(c->data), free(c->batch.packets), free(c->rows);
  weft_encoder_free(c->encoder);
  weft_segment_free(c->segment);
  gpu_buffer_free(&c->source);
  gpu_buffer_free(&c->payloads);
  if (c->has_coefficients)
    gpu_buffer_free(&c->coefficients);
}

enum { MOST_TOGETHER = 7 };

void lib_encode_once(weft_ctx *ctx) {
  weft_queue *queue = NULL;
  if (fixture_below(3) > 0)
    EXPECT_OK(weft_queue_new(ctx, &queue));
  const size_t count = fixture_below(2) ? 1 : 1 + fixture_below(MOST_TOGETHER);
  const size_t same_n = fixture_below(2) ? PICK(8, 32, 128) : 0;
  lib_coding all[MOST_TOGETHER];
  weft_encoder *encoders[MOST_TOGETHER];
  weft_batch batches[MOST_TOGETHER];
  for (size_t i = 0; i < count; i++) {
    const size_t n = same_n ? same_n : PICK(1, 2, 3, 16, 31, 64, 127, 128, 129, 200, 256, 300);
    const size_t k = PICK(1, 3, 8, 64, 127, 128, 255, 512, 1000, 1024, 4096, 4097);
    lib_coding_start(&all[i], ctx, queue, n, k, PICK(1, 2, 7, 32, 33, 64, 129, 300));
    encoders[i] = all[i].encoder;
    batches[i] = all[i].batch;
  }
  if (count == 1)
    EXPECT_OK(weft_encoder_batch(encoders[0], &all[0].batch, queue));
  else
    EXPECT_OK(weft_encoder_batches(encoders, batches, count, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  for (size_t i = 0; i < count; i++)
    lib_coding_finish(&all[i]);
  weft_queue_free(queue);
}
