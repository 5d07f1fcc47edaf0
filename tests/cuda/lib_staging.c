// SPDX-License-Identifier: Apache-2.0
// Calls with more ordinary memory than a queue may stage at a time: the results are those of the
// CPU, and the pinned memory stays within its bound.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/runtime.h"
#include "lib/ctx.h"
#include "tests/cuda/lib_cases.h"

enum { SMALL = 1 << 20 }; // of WEFT_STAGED_MOST: a checker can run these tests

static bool skip(const char *test) {
  return (lib_reduced() && WEFT_STAGED_MOST > SMALL) || gpu_skip(test);
}

// Unit triangular, so that it has an inverse.
static uint8_t *new_matrix(size_t n) {
  uint8_t *c = fixture_malloc(n * n);
  fixture_fill(c, n * n);
  for (size_t i = 0; i < n; i++) {
    c[i * n + i] = 1;
    memset(c + i * n + i + 1, 0, n - i - 1);
  }
  return c;
}

static uint8_t *new_bytes(size_t bytes) {
  uint8_t *memory = fixture_malloc(bytes);
  fixture_fill(memory, bytes);
  return memory;
}

// Expects that the bound was reached, almost, and kept. `beside`: bytes not for staging.
static void expect_bounded(weft_ctx *ctx, size_t beside) {
  const size_t peak = weft_device_pinned_peak(ctx->device);
  EXPECT(peak >= WEFT_STAGED_MOST - WEFT_STAGED_CHUNK);
  EXPECT(peak <= WEFT_STAGED_MOST + beside);
}

// Decodes `count` segments of one matrix, by rows and with matrices in pinned memory or not; k and
// all strides are odd.
static void decode(size_t n, size_t k, size_t count, bool by_rows, bool with_queue) {
  weft_ctx *ctx = fixture_ctx("cuda", 3);
  const size_t bytes = n * k, stride = k + 2, room = n * stride;
  uint8_t *c = new_matrix(n), *data = new_bytes(count * bytes), *one = fixture_malloc(bytes);
  uint8_t *coded = fixture_malloc(count * room), *out = fixture_malloc(count * room);
  const uint8_t **rows = fixture_malloc(count * n * sizeof *rows);
  weft_decode_job *jobs = calloc(count, sizeof *jobs);
  void *pinned; // matrices, one after the other
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_PINNED, count * n * n, &pinned));
  memset(out, 0xEE, count * room);
  for (size_t i = 0; i < count; i++) {
    uint8_t *own = memcpy((uint8_t *)pinned + i * n * n, c, n * n);
    gpu_reference(one, c, data + i * bytes, n, n, k);
    for (size_t r = 0; r < n; r++) {
      rows[i * n + r] = coded + i * room + r * stride;
      memcpy(coded + i * room + r * stride, one + r * k, k);
    }
    jobs[i] = (weft_decode_job){.blocks = n,
                                .block_bytes = k,
                                .coefficients = by_rows ? own : c,
                                .coefficients_stride = n,
                                .coefficients_mem = by_rows ? WEFT_MEM_PINNED : WEFT_MEM_HOST,
                                .payload_rows = by_rows ? rows + i * n : NULL,
                                .payload = by_rows ? NULL : coded + i * room,
                                .payload_stride = stride,
                                .out = out + i * room,
                                .out_stride = stride};
  }
  weft_queue *queue = NULL;
  if (with_queue)
    EXPECT_OK(weft_queue_new(ctx, &queue));
  (void)weft_device_pinned_peak(ctx->device);
  EXPECT_OK(weft_decode_batch(ctx, jobs, count, queue));
  memset(coded, 0, count * room); // it has been read
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  expect_bounded(ctx, 2 * count * n * n + 2 * count + 64); // and a flag for each segment
  for (size_t i = 0; i < count; i++) {
    EXPECT_OK(jobs[i].status);
    for (size_t r = 0; r < n; r++) {
      const uint8_t *row = out + i * room + r * stride;
      EXPECT(memcmp(row, data + i * bytes + r * k, k) == 0);
      EXPECT(row[k] == 0xEE && row[k + 1] == 0xEE);
    }
  }
  weft_queue_free(queue);
  weft_free(ctx, WEFT_MEM_PINNED, pinned);
  weft_ctx_free(ctx);
  free(c), free(data), free(one), free(coded), free(out), free(rows), free(jobs);
}

START_TEST(decode_more_than_is_staged) {
  if (skip("decode_more_than_is_staged"))
    return;
  fixture_start(260 + (uint64_t)_i);
  const size_t all = WEFT_STAGED_MOST * 5 / 4; // each way
  if (_i & 1) {                                // segments that share chunks
    const size_t n = 23, k = all / n / 200 | 1;
    decode(n, k, 200, (_i & 2) != 0, (_i & 4) != 0);
  } else { // one that takes all of them
    const size_t n = 199, k = all / n | 1;
    decode(n, k, 1, (_i & 2) != 0, (_i & 4) != 0);
  }
}
END_TEST

// Uploads a segment, and gets it back as packets of its blocks, followed by `more` mixed ones.
static void encode(size_t n, size_t k, size_t more, bool by_rows, bool with_queue) {
  weft_ctx *ctx = fixture_ctx("cuda", 3);
  const size_t m = n + more, stride = k + 2;
  uint8_t *data = new_bytes(n * k), *copy = fixture_malloc(n * k), *c = new_bytes(m * n);
  uint8_t *out = fixture_malloc(m * stride), *want = fixture_malloc(m * k);
  uint8_t **rows = fixture_malloc(m * sizeof *rows);
  memset(c, 0, n * n);
  for (size_t i = 0; i < n; i++)
    c[i * n + i] = 1;
  for (size_t i = 0; i < m; i++)
    rows[i] = out + (m - 1 - i) * stride;
  memset(out, 0xEE, m * stride);
  memcpy(copy, data, n * k);
  gpu_reference(want, c, data, m, n, k);
  weft_queue *queue = NULL;
  if (with_queue)
    EXPECT_OK(weft_queue_new(ctx, &queue));
  weft_segment *segment;
  weft_encoder *encoder;
  (void)weft_device_pinned_peak(ctx->device);
  const weft_segment_options options = {.id = fixture_id(n, k), .data = copy, .bytes = n * k};
  EXPECT_OK(weft_segment_new(ctx, &options, queue, &segment));
  memset(copy, 0, n * k);
  EXPECT_OK(weft_encoder_new(segment, NULL, &encoder));
  const weft_batch batch = {.count = m,
                            .payload = by_rows ? NULL : out,
                            .payload_rows = by_rows ? rows : NULL,
                            .payload_stride = stride};
  EXPECT_OK(weft_encoder_combine(encoder, m, c, n, &batch, queue));
  memset(c, 0, m * n);
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  expect_bounded(ctx, 0);
  for (size_t i = 0; i < m; i++) {
    const uint8_t *row = by_rows ? rows[i] : out + i * stride;
    EXPECT(memcmp(row, want + i * k, k) == 0);
    EXPECT(row[k] == 0xEE && row[k + 1] == 0xEE);
  }
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  weft_queue_free(queue);
  weft_ctx_free(ctx);
  free(data), free(copy), free(c), free(out), free(want), free(rows);
}

START_TEST(encode_more_than_is_staged) {
  if (skip("encode_more_than_is_staged"))
    return;
  fixture_start(270 + (uint64_t)_i);
  if (_i & 1) { // long blocks
    const size_t n = 199;
    encode(n, WEFT_STAGED_MOST * 5 / 4 / n | 1, 3, (_i & 2) != 0, (_i & 4) != 0);
  } else { // many packets, whose coefficients are too many for a chunk as well
    const size_t n = 61, k = 601;
    encode(n, k, WEFT_STAGED_MOST * 5 / 4 / k, (_i & 2) != 0, (_i & 4) != 0);
  }
}
END_TEST

// Calls that each stage a part of what a queue may, and that nobody polls for: in all it is more.
// The last one's packets remain where two write to the same place.
START_TEST(many_calls_stage_no_more) {
  enum { CALLS = 7, PLACES = 5 };
  if (skip("many_calls_stage_no_more"))
    return;
  fixture_start(280);
  weft_ctx *ctx = fixture_ctx("cuda", 3);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  const size_t n = 9, k = 4001, m = WEFT_STAGED_MOST / 3 / k;
  fixture_source source = fixture_source_new(ctx, n, k, n * k, NULL);
  uint8_t *c = new_bytes(CALLS * m * n), *want = fixture_malloc(m * k);
  uint8_t *out = fixture_malloc(PLACES * m * k);
  (void)weft_device_pinned_peak(ctx->device);
  for (size_t i = 0; i < CALLS; i++) {
    const weft_batch batch = {.count = m, .payload = out + i % PLACES * m * k, .payload_stride = k};
    EXPECT_OK(weft_encoder_combine(source.encoder, m, c + i * m * n, n, &batch, queue));
  }
  EXPECT_OK(weft_queue_wait(queue));
  expect_bounded(ctx, 0);
  for (size_t i = CALLS - PLACES; i < CALLS; i++) {
    gpu_reference(want, c + i * m * n, source.data, m, n, k);
    EXPECT(memcmp(out + i % PLACES * m * k, want, m * k) == 0);
  }
  weft_queue_free(queue);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
  free(c), free(want), free(out);
}
END_TEST

// Decoders on the device receive all packets of their segments in one call, and are read in
// another. Segments alternate between two, and it takes several to fill what is staged.
START_TEST(relay_more_than_is_staged) {
  if (skip("relay_more_than_is_staged"))
    return;
  fixture_start(290 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx("cuda", 2);
  const size_t n = 99, k = WEFT_STAGED_MOST > SMALL ? 4001 : 1001, bytes = n * k;
  const size_t count = WEFT_STAGED_MOST * 5 / 4 / bytes + 1;
  uint8_t *c = new_matrix(n), *data = new_bytes(2 * bytes), *coded = fixture_malloc(2 * bytes);
  uint8_t *out = fixture_malloc(count * bytes);
  weft_decoder **decoders = calloc(count, sizeof(weft_decoder *));
  weft_arrival *arrivals = calloc(count * n, sizeof *arrivals);
  weft_reading *readings = calloc(count, sizeof *readings);
  for (size_t i = 0; i < 2; i++)
    gpu_reference(coded + i * bytes, c, data + i * bytes, n, n, k);
  for (size_t d = 0; d < count; d++) {
    const weft_decoder_options options = {.id = fixture_id(n, k), .mem = WEFT_MEM_DEVICE};
    EXPECT_OK(weft_decoder_new(ctx, &options, &decoders[d]));
    readings[d] =
        (weft_reading){.decoder = decoders[d], .count = n, .out = out + d * bytes, .out_stride = k};
    for (size_t i = 0; i < n; i++)
      arrivals[i * count + d] =
          (weft_arrival){.decoder = decoders[d],
                         .packet = {.id = options.id,
                                    .mode = WEFT_PACKET_VECTOR,
                                    .coefficients = c + i * n,
                                    .payload = coded + d % 2 * bytes + i * k}};
  }
  weft_queue *queue = NULL;
  if (_i & 1)
    EXPECT_OK(weft_queue_new(ctx, &queue));
  (void)weft_device_pinned_peak(ctx->device);
  EXPECT_OK(weft_decoders_add(arrivals, count * n, WEFT_MEM_HOST, queue));
  EXPECT_OK(weft_decoders_read(readings, count, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  // What clears the slots is listed in pinned memory.
  expect_bounded(ctx, count * n * 2 * sizeof(weft_device_piece) + count * n * n);
  for (size_t i = 0; i < count * n; i++)
    EXPECT_OK(arrivals[i].status);
  for (size_t d = 0; d < count; d++) {
    EXPECT_OK(readings[d].status);
    EXPECT(memcmp(out + d * bytes, data + d % 2 * bytes, bytes) == 0);
    weft_decoder_free(decoders[d]);
  }
  weft_queue_free(queue);
  weft_ctx_free(ctx);
  free(c), free(data), free(coded), free(out), free(decoders), free(arrivals), free(readings);
}
END_TEST

// --- failures ---

// More ordinary memory than a queue stages at a time, up, through a product and down, and through a
// decoding; `c`: triangular. Checks what is returned.
static weft_status staged(weft_ctx *ctx, const weft_segment_id *id, const uint8_t *c,
                          const uint8_t *data, uint8_t *coded, uint8_t *out) {
  const size_t n = id->blocks, k = id->block_bytes;
  weft_segment *segment = NULL;
  weft_encoder *encoder = NULL;
  const weft_segment_options options = {.id = *id, .data = data, .bytes = n * k};
  weft_status status = weft_segment_new(ctx, &options, NULL, &segment);
  if (status == WEFT_OK)
    status = weft_encoder_new(segment, NULL, &encoder);
  const weft_batch batch = {.count = n, .payload = coded, .payload_stride = k};
  if (status == WEFT_OK)
    status = weft_encoder_combine(encoder, n, c, n, &batch, NULL);
  if (status == WEFT_OK) {
    weft_decode_job job = {.blocks = n,
                           .block_bytes = k,
                           .coefficients = c,
                           .coefficients_stride = n,
                           .payload = coded,
                           .payload_stride = k,
                           .out = out,
                           .out_stride = k};
    memset(out, 0xEE, n * k);
    status = weft_decode_batch(ctx, &job, 1, NULL);
    EXPECT((status == WEFT_OK) == (job.status == WEFT_OK));
    EXPECT(status != WEFT_OK || memcmp(out, data, n * k) == 0);
  }
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  return status;
}

START_TEST(every_call_of_staging_fails_once) {
  static const int errors[] = {WEFT_CUDA_OUT_OF_MEMORY, WEFT_CUDA_ILLEGAL_ADDRESS, 999};
  enum { BLOCKS = 24, BYTES = 12503, ALL = BLOCKS * BYTES };
  if (gpu_skip("every_call_of_staging_fails_once"))
    return;
  if (WEFT_STAGED_MOST >= ALL) { // real devices stage more, and would take too long
    printf("SKIPPED every_call_of_staging_fails_once: it is for the device double\n");
    return;
  }
  fixture_start(535 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx("cuda", 3);
  const weft_segment_id id = fixture_id(BLOCKS, BYTES);
  uint8_t *data = fixture_malloc(ALL), *coded = fixture_malloc(ALL), *out = fixture_malloc(ALL);
  uint8_t c[BLOCKS * BLOCKS];
  fixture_fill(data, ALL);
  for (size_t i = 0; i < sizeof c; i++)
    c[i] = i % BLOCKS <= i / BLOCKS ? (uint8_t)(1 + i % 251) : 0;
  for (size_t skip = 0;; skip++) {
    weft_cuda_inject(skip, errors[_i], 0);
    const weft_status status = staged(ctx, &id, c, data, coded, out);
    const bool reached = weft_cuda_calls() > skip;
    weft_cuda_inject(0, 0, 0);
    EXPECT(status == WEFT_OK || status == WEFT_E_DEVICE || status == WEFT_E_DEVICE_NOMEM ||
           status == WEFT_E_DEVICE_LOST);
    if (!reached) {
      EXPECT_OK(status);
      EXPECT(skip > 100); // or the loop has not covered enough
      break;
    }
  }
  free(data), free(coded), free(out);
  weft_ctx_free(ctx);
}
END_TEST

void lib_add_staging_tests(TCase *cases) {
  tcase_add_loop_test(cases, decode_more_than_is_staged, 0, 8);
  tcase_add_loop_test(cases, encode_more_than_is_staged, 0, 8);
  tcase_add_test(cases, many_calls_stage_no_more);
  tcase_add_loop_test(cases, relay_more_than_is_staged, 0, 2);
  tcase_add_loop_test(cases, every_call_of_staging_fails_once, 0, 3);
}
