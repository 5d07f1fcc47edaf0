// SPDX-License-Identifier: Apache-2.0
// The library on a device: every mode of the encoder with every memory, with a queue and without,
// many segments in one call, batch decoding; against the specification, byte for byte.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/ctx.h"
#include "tests/cuda/gpu.h"
#include "tests/support/test_main.h"
#include "weft/cuda.h"

#define PICK(...)                                                                                  \
  ((const size_t[]){                                                                               \
      __VA_ARGS__})[fixture_below(sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))]

// Under a checker that makes the device a thousand times slower: fewer and smaller cases.
static bool reduced(void) { return getenv("WEFT_GPU_REDUCED") != NULL; }

static weft_mem any_memory(void) { return (weft_mem)fixture_below(3); }

// One encoder's batch and all that belongs to it.
typedef struct coding {
  weft_ctx *ctx;
  weft_segment_id id;
  uint8_t *data; // (n, k)
  gpu_buffer source, payloads, coefficients;
  bool has_coefficients;
  weft_segment *segment;
  weft_encoder *encoder;
  weft_encoder_options options;
  weft_batch batch;
  uint8_t **rows;
} coding;

static void start(coding *c, weft_ctx *ctx, weft_queue *queue, size_t n, size_t k, size_t m) {
  *c = (coding){.ctx = ctx, .id = fixture_id(n, k)};
  c->id.segment = fixture_next();
  const size_t bytes = fixture_below(2) ? n * k : 1 + fixture_below(n * k);
  c->data = fixture_malloc(n * k);
  fixture_fill(c->data, bytes);
  memset(c->data + bytes, 0, n * k - bytes);
  c->source = gpu_input(ctx, any_memory(), c->data, bytes);
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
  c->payloads = gpu_output(ctx, any_memory(), m * stride);
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
    c->batch.coefficients_mem = any_memory();
    c->coefficients = gpu_output(ctx, c->batch.coefficients_mem, m * c->batch.coefficients_stride);
    c->batch.coefficients = c->coefficients.at;
  }
}

// What each payload is made of: as the packets say, or the coefficients handed out; they must
// agree.
static uint8_t *coefficients_of(const coding *c) {
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
    packet.payload = all; // only has to be there
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

static void finish(coding *c) {
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

static void encode_once(weft_ctx *ctx) {
  weft_queue *queue = NULL;
  if (fixture_below(3) > 0)
    EXPECT_OK(weft_queue_new(ctx, &queue));
  const size_t count = fixture_below(2) ? 1 : 1 + fixture_below(MOST_TOGETHER);
  const size_t same_n = fixture_below(2) ? PICK(8, 32, 128) : 0;
  coding all[MOST_TOGETHER];
  weft_encoder *encoders[MOST_TOGETHER];
  weft_batch batches[MOST_TOGETHER];
  for (size_t i = 0; i < count; i++) {
    const size_t n = same_n ? same_n : PICK(1, 2, 3, 16, 31, 64, 127, 128, 129, 200, 256, 300);
    const size_t k = PICK(1, 3, 8, 64, 127, 128, 255, 512, 1000, 1024, 4096, 4097);
    start(&all[i], ctx, queue, n, k, PICK(1, 2, 7, 32, 33, 64, 129, 300));
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
    finish(&all[i]);
  weft_queue_free(queue);
}

START_TEST(encode_modes_and_memories) {
  if (gpu_skip_row("encode_modes_and_memories", _i))
    return;
  fixture_start(100 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx(gpu_row_name(_i), 1);
  for (int round = 0; round < (reduced() ? 2 : _i < 2 ? 60 : 15); round++)
    encode_once(ctx);
  weft_ctx_free(ctx);
}
END_TEST

// More coded bytes than one piece of the pipeline into pinned memory, dense and strided.
START_TEST(pinned_pieces) {
  if (gpu_skip("pinned_pieces"))
    return;
  fixture_start(150);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  const size_t n = 16, k = 4096, m = reduced() ? 2200 : 9000;
  fixture_source source =
      fixture_source_new(ctx, n, k, n * k, &(weft_encoder_options){.seeded = true});
  for (size_t extra = 0; extra <= 32; extra += 32) {
    const size_t stride = k + extra;
    gpu_buffer out = gpu_output(ctx, WEFT_MEM_PINNED, m * stride);
    const weft_batch batch = {
        .count = m, .payload = out.at, .payload_stride = stride, .mem = WEFT_MEM_PINNED};
    EXPECT_OK(weft_encoder_batch(source.encoder, &batch, NULL));
    uint8_t *got = gpu_read(&out), *c = fixture_malloc(m * n), *expect = fixture_malloc(m * k);
    for (size_t i = 0; i < m; i++)
      EXPECT_OK(weft_packet_coefficients(&(weft_packet){.id = source.id,
                                                        .mode = WEFT_PACKET_DENSE,
                                                        .seed = i + (extra ? m : 0),
                                                        .payload = got},
                                         c + i * n));
    gpu_reference(expect, c, source.data, m, n, k);
    for (size_t i = 0; i < m; i++)
      EXPECT(memcmp(got + i * stride, expect + i * k, k) == 0);
    free(got), free(c), free(expect);
    gpu_buffer_free(&out);
  }
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(combine_memories) {
  if (gpu_skip("combine_memories"))
    return;
  fixture_start(160);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  for (int round = 0; round < (reduced() ? 9 : 27); round++) {
    const size_t n = 1 + fixture_below(200), k = 1 + fixture_below(2000), m = 1 + fixture_below(90);
    fixture_source source = fixture_source_new(ctx, n, k, n * k, NULL);
    uint8_t *c = fixture_malloc(m * n), *expect = fixture_malloc(m * k);
    fixture_fill(c, m * n);
    gpu_buffer a = gpu_input(ctx, (weft_mem)(round % 3), c, m * n);
    gpu_buffer y = gpu_output(ctx, (weft_mem)(round / 3 % 3), m * k);
    const weft_batch batch = {
        .count = m, .payload = y.at, .payload_stride = k, .mem = y.mem, .coefficients_mem = a.mem};
    weft_queue *queue;
    EXPECT_OK(weft_queue_new(ctx, &queue));
    EXPECT_OK(weft_encoder_combine(source.encoder, m, a.at, n, &batch, queue));
    EXPECT_OK(weft_queue_wait(queue));
    gpu_reference(expect, c, source.data, m, n, k);
    uint8_t *got = gpu_read(&y);
    EXPECT(memcmp(got, expect, m * k) == 0);
    free(got), free(c), free(expect);
    weft_queue_free(queue);
    gpu_buffer_free(&a);
    gpu_buffer_free(&y);
    fixture_source_free(&source);
  }
  weft_ctx_free(ctx);
}
END_TEST

// Segments made in one call, for one batch or more, coded by one call into rows that lie next to
// each other or do not: the same bytes as from the specification.
static void code_together(weft_ctx *ctx, weft_queue *queue, bool contiguous) {
  const size_t n = 1 + fixture_below(140), k = 1 + fixture_below(5000);
  const size_t count = 1 + fixture_below(40), m = 1 + fixture_below(150), bytes = n * k;
  const size_t stride = contiguous ? k : k + 16;
  const weft_mem mem = any_memory();
  uint8_t *data = fixture_malloc(count * bytes), *c = fixture_malloc(m * n);
  uint8_t *expect = fixture_malloc(m * k);
  fixture_fill(data, count * bytes);
  gpu_buffer source = gpu_input(ctx, mem, data, count * bytes);
  gpu_buffer out = gpu_output(ctx, WEFT_MEM_PINNED, count * m * stride);
  weft_segment_options *options = fixture_malloc(count * sizeof *options);
  weft_segment **segments = fixture_malloc(count * sizeof *segments);
  weft_encoder **encoders = fixture_malloc(count * sizeof *encoders);
  weft_batch *batches = fixture_malloc(count * sizeof *batches);
  const bool once = fixture_below(2), backwards = fixture_below(3) == 0;
  for (size_t i = 0; i < count; i++) {
    options[i] = (weft_segment_options){.id = fixture_id(n, k), .bytes = bytes, .mem = mem};
    options[i].data = source.at + (backwards ? count - 1 - i : i) * bytes;
    options[i].id.segment = i;
    options[i].once = once;
  }
  EXPECT_OK(weft_segments_new(ctx, options, count, queue, segments));
  for (size_t i = 0; i < count; i++) {
    EXPECT_OK(weft_encoder_new(segments[i], &(weft_encoder_options){.seeded = true}, &encoders[i]));
    batches[i] = (weft_batch){.count = m,
                              .payload = out.at + i * m * stride,
                              .payload_stride = stride,
                              .mem = WEFT_MEM_PINNED};
  }
  EXPECT_OK(weft_encoder_batches(encoders, batches, count, queue));
  EXPECT_OK(weft_queue_wait(queue));
  uint8_t *got = gpu_read(&out);
  for (size_t i = 0; i < count; i++) {
    weft_packet packet = {.id = options[i].id, .mode = WEFT_PACKET_DENSE};
    for (size_t j = 0; j < m; j++, packet.seed++)
      EXPECT_OK(weft_packet_coefficients(&packet, c + j * n));
    gpu_reference(expect, c, data + (backwards ? count - 1 - i : i) * bytes, m, n, k);
    for (size_t j = 0; j < m; j++)
      EXPECT(memcmp(got + (i * m + j) * stride, expect + j * k, k) == 0);
    weft_encoder_free(encoders[i]);
    weft_segment_free(segments[i]);
  }
  gpu_buffer_free(&source);
  gpu_buffer_free(&out);
  free(got), free(data), free(c), free(expect);
  free(options), free(segments), free(encoders), free(batches);
}

START_TEST(segments_made_together) {
  if (gpu_skip("segments_made_together"))
    return;
  fixture_start(180);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  for (int i = 0; i < (reduced() ? 2 : 24); i++)
    code_together(ctx, queue, i % 2 == 0);
  weft_queue_free(queue);
  weft_ctx_free(ctx);
}
END_TEST

// Behind a product that takes long, calls with pinned and device memory return at once: the queue
// is still busy then. Ordinary memory waits for nothing either.
START_TEST(nothing_waits_with_a_queue) {
  if (reduced() || gpu_skip("nothing_waits_with_a_queue"))
    return;
  fixture_start(170);
  weft_ctx *ctx = fixture_ctx("cuda-logexp-global", 1);
  const size_t n = 128, k = 4096, m = 40000;
  fixture_source source =
      fixture_source_new(ctx, n, k, n * k, &(weft_encoder_options){.seeded = true});
  gpu_buffer slow = gpu_output(ctx, WEFT_MEM_DEVICE, m * k);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  const weft_batch first = {
      .count = m, .payload = slow.at, .payload_stride = k, .mem = WEFT_MEM_DEVICE};
  for (int mem = 0; mem < 3; mem++) {
    const size_t few = 200;
    gpu_buffer out = gpu_output(ctx, (weft_mem)mem, few * k);
    gpu_buffer data = gpu_input(ctx, (weft_mem)mem, source.data, n * k);
    const weft_batch second = {
        .count = few, .payload = out.at, .payload_stride = k, .mem = (weft_mem)mem};
    for (int warm = 0; warm < 2; warm++) { // memory for staging is allocated once, which does wait
      weft_segment *other;
      EXPECT_OK(weft_encoder_batch(source.encoder, &first, queue));
      EXPECT_OK(weft_encoder_batch(source.encoder, &second, queue));
      const weft_segment_options segment = {
          .id = source.id, .data = data.at, .bytes = n * k, .mem = (weft_mem)mem};
      EXPECT_OK(weft_segment_new(ctx, &segment, queue, &other));
      const weft_status busy = weft_queue_poll(queue);
      EXPECT(warm == 0 || busy == WEFT_PENDING);
      EXPECT_OK(weft_queue_wait(queue));
      EXPECT_OK(weft_queue_poll(queue));
      weft_segment_free(other);
    }
    gpu_buffer_free(&out);
    gpu_buffer_free(&data);
  }
  weft_queue_free(queue);
  gpu_buffer_free(&slow);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// --- decoding ---

typedef struct decoding {
  size_t n, k;
  uint8_t *c, *data;
  gpu_buffer coded, out, matrix;
  bool singular;
} decoding;

static void decode_once(weft_ctx *ctx, size_t most_jobs, size_t most_n) {
  const size_t count = 1 + fixture_below(most_jobs);
  const weft_mem mem = any_memory();
  const bool together = fixture_below(2); // one array of matrices, all of one n
  const weft_mem matrix_mem = any_memory();
  const size_t same_n = 1 + fixture_below(most_n);
  gpu_buffer matrices = {0};
  if (together) {
    uint8_t *zero = calloc(count, same_n * same_n);
    matrices = gpu_input(ctx, WEFT_MEM_PINNED, zero, count * same_n * same_n);
    free(zero);
  }
  decoding *all = calloc(count, sizeof *all);
  weft_decode_job *jobs = calloc(count, sizeof *jobs);
  for (size_t i = 0; i < count; i++) {
    decoding *d = &all[i];
    const bool like_last = i > 0 && fixture_below(8) > 0;
    d->n = together ? same_n : like_last ? all[i - 1].n : 1 + fixture_below(most_n);
    d->k = like_last ? all[i - 1].k : 1 + fixture_below(1500);
    d->singular = d->n > 1 && fixture_below(9) == 0;
    d->c = fixture_malloc(d->n * d->n);
    d->data = fixture_malloc(d->n * d->k);
    fixture_fill(d->data, d->n * d->k);
    fixture_fill(d->c, d->n * d->n);
    if (d->singular) // the last row repeats the first
      memcpy(d->c + (d->n - 1) * d->n, d->c, d->n);
    uint8_t *coded = fixture_malloc(d->n * d->k);
    gpu_reference(coded, d->c, d->data, d->n, d->n, d->k);
    d->coded = gpu_input(ctx, mem, coded, d->n * d->k);
    d->out = gpu_output(ctx, mem, d->n * d->k);
    free(coded);
    if (together)
      memcpy(matrices.at + i * d->n * d->n, d->c, d->n * d->n);
    else
      d->matrix = gpu_input(ctx, fixture_below(2) ? matrix_mem : any_memory(), d->c, d->n * d->n);
    jobs[i] =
        (weft_decode_job){.blocks = d->n,
                          .block_bytes = d->k,
                          .coefficients = together ? matrices.at + i * d->n * d->n : d->matrix.at,
                          .coefficients_stride = d->n,
                          .coefficients_mem = together ? matrices.mem : d->matrix.mem,
                          .payload = d->coded.at,
                          .payload_stride = d->k,
                          .out = d->out.at,
                          .out_stride = d->k,
                          .mem = mem};
  }
  weft_queue *queue = NULL;
  if (fixture_below(2))
    EXPECT_OK(weft_queue_new(ctx, &queue));
  EXPECT_OK(weft_decode_batch(ctx, jobs, count, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  for (size_t i = 0; i < count; i++) {
    decoding *d = &all[i];
    EXPECT(!d->singular || jobs[i].status == WEFT_E_SINGULAR);
    uint8_t *got = gpu_read(&d->out); // the margins too
    if (jobs[i].status == WEFT_OK)
      EXPECT(memcmp(got, d->data, d->n * d->k) == 0);
    else // a random matrix is singular once in 250
      EXPECT(jobs[i].status == WEFT_E_SINGULAR);
    free(got), free(d->c), free(d->data);
    gpu_buffer_free(&d->coded);
    gpu_buffer_free(&d->out);
    if (!together)
      gpu_buffer_free(&d->matrix);
  }
  if (together)
    gpu_buffer_free(&matrices);
  weft_queue_free(queue);
  free(all);
  free(jobs);
}

START_TEST(decode_many_segments) {
  if (gpu_skip_row("decode_many_segments", _i))
    return;
  fixture_start(200 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx(gpu_row_name(_i), 1);
  for (int round = 0; round < (reduced() ? 1 : _i < 2 ? 12 : 2); round++)
    decode_once(ctx, reduced() ? 6 : 40, reduced() ? 70 : 150);
  weft_ctx_free(ctx);
}
END_TEST

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

START_TEST(foreign_stream) {
  if (gpu_skip("foreign_stream"))
    return;
  fixture_start(310);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  void *stream;
  EXPECT_OK(weft_device_stream_new(ctx->device, &stream));
  weft_queue *queue = NULL;
  EXPECT_STATUS(weft_queue_wrap_cuda_stream(ctx, NULL, &queue), WEFT_E_ARGUMENT);
  EXPECT_OK(weft_queue_wrap_cuda_stream(ctx, stream, &queue));
  coding c;
  start(&c, ctx, queue, 20, 300, 50);
  EXPECT_OK(weft_encoder_batch(c.encoder, &c.batch, queue));
  EXPECT_OK(weft_device_stream_wait(ctx->device, stream)); // the caller's own way to wait
  EXPECT_OK(weft_queue_poll(queue));
  finish(&c);
  weft_queue_free(queue);
  EXPECT_OK(weft_device_stream_wait(ctx->device, stream)); // it is still there
  weft_device_stream_free(ctx->device, stream);
  weft_ctx_free(ctx);
}
END_TEST

// WEFT_SOAK_SECONDS of random shapes; a moment by default.
START_TEST(soak) {
  if (gpu_skip("soak"))
    return;
  const char *text = getenv("WEFT_SOAK_SECONDS");
  const time_t until = time(NULL) + (text ? atoi(text) : 2);
  unsigned long rounds = 0;
  fixture_start(400);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  do {
    encode_once(ctx);
    if (!reduced() && rounds++ % 8 == 0)
      decode_once(ctx, 20, rounds % 128 == 65 ? 1024 : 200);
  } while (time(NULL) < until);
  printf("soak: %lu rounds of random shapes\n", rounds);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("library on a device");
  TCase *cases = tcase_create("device");
  tcase_add_loop_test(cases, encode_modes_and_memories, 0, gpu_row_count());
  tcase_add_test(cases, pinned_pieces);
  tcase_add_test(cases, segments_made_together);
  tcase_add_test(cases, combine_memories);
  tcase_add_test(cases, nothing_waits_with_a_queue);
  tcase_add_loop_test(cases, decode_many_segments, 0, gpu_row_count());
  tcase_add_test(cases, recode_on_a_device_context);
  tcase_add_test(cases, foreign_stream);
  tcase_add_test(cases, soak);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
