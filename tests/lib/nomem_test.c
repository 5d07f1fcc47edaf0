// SPDX-License-Identifier: Apache-2.0
// Every allocation of lib/ fails once: the call reports it, leaks nothing, and its handles still
// work. And a decoder never uses more memory than it promised.
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

enum { N = 9, K = 70 };

static test_allocator memory;
static bool failing;

// Checks a status. The injected failure is only noted: the caller then repeats the call, which must
// succeed.
static void expect(weft_status status, weft_status wanted) {
  if (status == WEFT_E_NOMEM)
    failing = true;
  else
    EXPECT_STATUS(status, wanted);
}

// Repeats a call that the failing allocation stopped. Only one allocation fails, so this time it
// must work.
#define RETRY(expression, wanted)                                                                  \
  do {                                                                                             \
    weft_status status_ = (expression);                                                            \
    if (status_ == WEFT_E_NOMEM) {                                                                 \
      expect(status_, wanted);                                                                     \
      status_ = (expression);                                                                      \
    }                                                                                              \
    EXPECT_STATUS(status_, wanted);                                                                \
  } while (0)

static uint8_t data[N * K - 5], out[4 * N * K], coefficients[2 * N * N];

// Checks that payloads are the products of their vectors and the segment.
static void check_products(weft_encoder *encoder, const uint8_t *vectors, const uint8_t *payloads,
                           size_t count) {
  uint8_t expected[N * K];
  const weft_batch batch = {.count = count, .payload = expected, .payload_stride = K};
  RETRY(weft_encoder_combine(encoder, count, vectors, N, &batch, NULL), WEFT_OK);
  EXPECT(memcmp(payloads, expected, count * K) == 0);
}

static void encode(weft_ctx *ctx, const weft_segment *segment, weft_decoder *decoder) {
  weft_encoder *encoder, *seeded;
  weft_packet packets[N + 1];
  uint8_t datagram[WEFT_WIRE_HEADER_BYTES + N + K];
  size_t bytes;
  RETRY(weft_encoder_new(segment, NULL, &encoder), WEFT_OK);
  RETRY(weft_encoder_new(segment, &(weft_encoder_options){.seeded = true}, &seeded), WEFT_OK);
  const weft_batch batch = {
      .count = N + 1, .packets = packets, .payload = out, .payload_stride = K};
  RETRY(weft_encoder_batch(seeded, &batch, NULL), WEFT_OK);
  EXPECT(packets[0].seed == 0 && packets[N].seed == N); // the failed call used no seed
  RETRY(weft_encoder_next(encoder, datagram, sizeof datagram, &bytes), WEFT_OK);
  for (size_t i = 0; i < N / 2; i++) {
    const weft_status status = weft_decoder_add(decoder, &packets[i]);
    EXPECT(status == WEFT_OK || status == WEFT_DEPENDENT);
  }
  uint8_t mixed[2 * N], payload[2 * K];
  const weft_batch two = {.count = 2,
                          .coefficients = mixed,
                          .coefficients_stride = N,
                          .payload = payload,
                          .payload_stride = K};
  RETRY(weft_decoder_recode_batch(decoder, &two), WEFT_OK);
  check_products(encoder, mixed, payload, 2);
  while (!weft_decoder_complete(decoder)) {
    RETRY(weft_encoder_next(encoder, datagram, sizeof datagram, &bytes), WEFT_OK);
    const weft_status status = weft_decoder_add_datagram(decoder, datagram, bytes);
    EXPECT(status == WEFT_OK || status == WEFT_DEPENDENT);
  }
  weft_recoder *recoder;
  RETRY(weft_recoder_new(ctx, weft_segment_get_id(segment), 2, &recoder), WEFT_OK);
  for (size_t i = 0; i < 3; i++)
    RETRY(weft_recoder_add(recoder, &packets[i]), WEFT_OK);
  RETRY(weft_recoder_batch(recoder, &two), WEFT_OK);
  check_products(encoder, mixed, payload, 2);
  weft_recoder_free(recoder);
  weft_encoder_free(seeded);
  weft_encoder_free(encoder);
}

static void check_blocks(weft_decoder *decoder) {
  uint8_t got[N * K];
  RETRY(weft_decoder_read(decoder, 0, sizeof got, got), WEFT_OK);
  EXPECT(memcmp(got, data, sizeof data) == 0);
  const uint8_t *block;
  RETRY(weft_decoder_block(decoder, 3, &block), WEFT_OK);
}

static void decode_batch(weft_ctx *ctx, const weft_segment *segment) {
  weft_encoder *encoder;
  weft_packet packets[2 * N];
  RETRY(weft_encoder_new(segment, NULL, &encoder), WEFT_OK);
  const weft_batch batch = {.count = 2 * N,
                            .packets = packets,
                            .coefficients = coefficients,
                            .coefficients_stride = N,
                            .payload = out,
                            .payload_stride = K};
  RETRY(weft_encoder_batch(encoder, &batch, NULL), WEFT_OK);
  weft_decode_job jobs[2];
  for (size_t j = 0; j < 2; j++)
    jobs[j] = (weft_decode_job){.blocks = N,
                                .block_bytes = K,
                                .coefficients = coefficients + j * N * N,
                                .coefficients_stride = N,
                                .payload = out + j * N * K,
                                .payload_stride = K,
                                .out = out + (2 + j) * N * K,
                                .out_stride = K};
  memset(out + 2 * N * K, 0, 2 * N * K);
  RETRY(weft_decode_batch(ctx, jobs, 2, NULL), WEFT_OK);
  for (size_t j = 0; j < 2; j++)
    if (jobs[j].status == WEFT_OK)
      EXPECT(memcmp(jobs[j].out, data, sizeof data) == 0);
    else
      EXPECT_STATUS(jobs[j].status, WEFT_E_SINGULAR);
  weft_encoder_free(encoder);
}

// Calls on several handles at once. A failed call has created nothing, and the decoders that it was
// to change are unchanged.
static void many(weft_ctx *ctx, const weft_segment_options *source) {
  const weft_segment_options sources[2] = {*source, *source};
  weft_segment *segments[2];
  weft_encoder *encoders[2];
  weft_decoder *decoders[2];
  weft_packet packets[2][N];
  weft_batch batches[2];
  weft_arrival arrivals[2 * N];
  weft_status status = weft_segments_new(ctx, sources, 2, NULL, segments);
  if (status != WEFT_OK) {
    EXPECT(!segments[0] && !segments[1]);
    expect(status, WEFT_OK);
    EXPECT_OK(weft_segments_new(ctx, sources, 2, NULL, segments));
  }
  for (size_t i = 0; i < 2; i++) {
    const weft_encoder_options seeds = {.systematic = true, .seeded = true};
    RETRY(weft_encoder_new(segments[i], &seeds, &encoders[i]), WEFT_OK);
    RETRY(weft_decoder_new(ctx, &(weft_decoder_options){.id = source->id}, &decoders[i]), WEFT_OK);
    batches[i] = (weft_batch){
        .count = N, .packets = packets[i], .payload = out + i * N * K, .payload_stride = K};
  }
  RETRY(weft_encoder_batches(encoders, batches, 2, NULL), WEFT_OK);
  for (size_t i = 0; i < 2 * N; i++) // a failed call has used no block
    EXPECT(packets[i % 2][i / 2].index == i / 2);
  static uint8_t triangle[N * N]; // innovative packets, none of which is a plain block
  for (size_t i = 0; i < N * N; i++)
    triangle[i] = i % N >= i / N ? (uint8_t)(1 + i) : i % N == 0;
  for (size_t i = 0; i < 2; i++)
    RETRY(weft_encoder_combine(encoders[i], N, triangle, N, &batches[i], NULL), WEFT_OK);
  for (size_t i = 0; i < 2 * N; i++) {
    weft_packet *packet = &packets[i % 2][i / 2];
    *packet = (weft_packet){.id = source->id, .mode = WEFT_PACKET_VECTOR};
    packet->coefficients = triangle + i / 2 * N;
    packet->payload = batches[i % 2].payload + i / 2 * K;
    arrivals[i] = (weft_arrival){decoders[i % 2], *packet, WEFT_E_STATE};
  }
  status = weft_decoders_add(arrivals, 2 * N, WEFT_MEM_HOST, NULL);
  if (status != WEFT_OK) {
    EXPECT(weft_decoder_rank(decoders[0]) == 0 && weft_decoder_rank(decoders[1]) == 0);
    for (size_t i = 0; i < 2 * N; i++)
      EXPECT(arrivals[i].status == status);
    expect(status, WEFT_OK);
    EXPECT_OK(weft_decoders_add(arrivals, 2 * N, WEFT_MEM_HOST, NULL));
  }
  for (size_t i = 0; i < 2 * N; i++)
    EXPECT_OK(arrivals[i].status);
  RETRY(weft_encoder_batches(encoders, batches, 2, NULL), WEFT_OK);
  for (size_t i = 0; i < 2; i++) {
    EXPECT(packets[i][0].seed == 0 && packets[i][N - 1].seed == N - 1); // nor used a seed
    batches[i].coefficients = coefficients + i * N * N;
    batches[i].coefficients_stride = N;
  }
  RETRY(weft_decoders_recode(decoders, batches, 2, NULL), WEFT_OK);
  for (size_t i = 0; i < 2; i++)
    check_products(encoders[i], batches[i].coefficients, batches[i].payload, N);
  weft_reading readings[2];
  for (size_t i = 0; i < 2; i++)
    readings[i] = (weft_reading){
        .decoder = decoders[i], .count = N, .out = out + (2 + i) * N * K, .out_stride = K};
  memset(out + 2 * N * K, 0, 2 * N * K);
  status = weft_decoders_read(readings, 2, NULL);
  if (status != WEFT_OK) {
    for (size_t i = 0; i < 2; i++)
      EXPECT(readings[i].status != WEFT_OK || memcmp(readings[i].out, data, sizeof data) == 0);
    expect(status, WEFT_OK);
    EXPECT_OK(weft_decoders_read(readings, 2, NULL));
  }
  for (size_t i = 0; i < 2; i++) {
    EXPECT_OK(readings[i].status);
    EXPECT(memcmp(readings[i].out, data, sizeof data) == 0);
    weft_decoder_free(decoders[i]);
    weft_encoder_free(encoders[i]);
    weft_segment_free(segments[i]);
  }
}

// Runs the whole library once, on one row.
static void everything(const char *row, bool borrow, bool eager) {
  weft_ctx *ctx;
  weft_segment *segment;
  weft_decoder *decoder;
  weft_queue *queue;
  const weft_ctx_options options = {.backend = row, .threads = 2, .allocator = &memory.allocator};
  RETRY(weft_ctx_new(&ctx, &options), WEFT_OK);
  RETRY(weft_queue_new(ctx, &queue), WEFT_OK);
  const weft_segment_options source = {
      .id = fixture_id(N, K), .data = data, .bytes = sizeof data, .borrow = borrow};
  RETRY(weft_segment_new(ctx, &source, queue, &segment), WEFT_OK);
  const weft_decoder_options wanted = {.id = source.id, .eager = eager};
  RETRY(weft_decoder_new(ctx, &wanted, &decoder), WEFT_OK);
  encode(ctx, segment, decoder);
  check_blocks(decoder);
  decode_batch(ctx, segment);
  many(ctx, &source);
  void *some;
  RETRY(weft_alloc(ctx, WEFT_MEM_HOST, 100, &some), WEFT_OK);
  EXPECT(((uintptr_t)some & 63) == 0);
  weft_free(ctx, WEFT_MEM_HOST, some);
  weft_decoder_free(decoder);
  weft_segment_free(segment);
  weft_queue_free(queue);
  weft_ctx_free(ctx);
}

START_TEST(every_allocation_fails_once) {
  fixture_start(300);
  const char *row = fixture_row_name(_i);
  fixture_row = row;
  fixture_fill(data, sizeof data);
  for (int variant = 0; variant < 4; variant++) {
    long n = 1;
    for (;; n++) {
      test_allocator_init(&memory, n);
      failing = false;
      everything(row, (variant & 1) != 0, (variant & 2) != 0);
      EXPECT(test_allocator_live(&memory) == 0);
      if (!test_allocator_failed(&memory))
        break;
      // Only an eager decoder's scratch may fail without a status: the decoder is then deferred.
      EXPECT(failing || (variant & 2) != 0);
    }
    EXPECT(n > 15); // or the loop has not covered enough
  }
}
END_TEST

// --- the promise about memory ---

typedef struct meter {
  weft_allocator allocator;
  size_t now, most;
} meter;

enum { METER_HEADER = 4096 };

static void *meter_alloc(void *user, size_t bytes, size_t align) {
  meter *m = user;
  (void)align; // the header preserves every alignment up to its own size
  uint8_t *block =
      aligned_alloc(METER_HEADER, (bytes + 2 * METER_HEADER - 1) / METER_HEADER * METER_HEADER);
  if (!block)
    return NULL;
  memcpy(block, &bytes, sizeof bytes);
  m->now += bytes;
  m->most = m->now > m->most ? m->now : m->most;
  return block + METER_HEADER;
}

static void meter_free(void *user, void *block) {
  meter *m = user;
  uint8_t *begin = (uint8_t *)block - METER_HEADER;
  size_t bytes;
  memcpy(&bytes, begin, sizeof bytes);
  m->now -= bytes;
  free(begin);
}

// Adds n / 8 dense packets, a block, and the sum of that block and another, and reads the other,
// which multiplies all payloads. When the remaining packets arrive, the decoder then has clean
// payload slots whose rows are not fully reduced.
static void ask_on_the_way(const fixture_source *source, weft_decoder *decoder) {
  const size_t n = source->id.blocks, k = source->id.block_bytes, dense = n / 8;
  uint8_t *vector = fixture_malloc(n), *payload = fixture_malloc(k);
  const weft_batch batch = {.count = 1, .payload = payload};
  const weft_packet packet = {
      .id = source->id, .mode = WEFT_PACKET_VECTOR, .coefficients = vector, .payload = payload};
  for (size_t i = 0; i < dense + 2; i++) {
    for (size_t j = 0; j < n; j++)
      vector[j] = i < dense ? (uint8_t)(1 + fixture_below(255)) : j + 1 + (i - dense) >= n;
    EXPECT_OK(weft_encoder_combine(source->encoder, 1, vector, n, &batch, NULL));
    EXPECT_OK(weft_decoder_add(decoder, &packet));
  }
  const uint8_t *block;
  EXPECT_OK(weft_decoder_block(decoder, n - 2, &block));
  EXPECT(memcmp(block, source->data + (n - 2) * k, k) == 0);
  free(payload);
  free(vector);
}

// Decoders stay within their promised memory, whether blocks are read at full rank or one on the
// way. With 1024 blocks of 2560 bytes on nine threads, panels and matrices take almost all of what
// is promised.
START_TEST(decoders_keep_their_promise) {
  fixture_start(301);
  static const struct {
    size_t n, k, threads;
  } cases[] = {{1, 1, 1},      {5, 300, 4},   {64, 1024, 1},  {64, 1024, 8},
               {128, 257, 3},  {200, 255, 2}, {60, 70000, 4}, {512, 16, 2},
               {1024, 300, 2}, {16, 1025, 5}, {1024, 2560, 9}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const size_t n = cases[i].n, k = cases[i].k;
    meter m = {.allocator = {.alloc = meter_alloc, .free = meter_free}};
    m.allocator.user = &m;
    weft_ctx *ctx, *plain = fixture_ctx(NULL, 1);
    EXPECT_OK(weft_ctx_new(
        &ctx, &(weft_ctx_options){.threads = cases[i].threads, .allocator = &m.allocator}));
    fixture_source source = fixture_source_new(plain, n, k, n * k, NULL);
    uint8_t *blocks = fixture_malloc(n * k);
    for (int variant = 0; variant < 4; variant++) {
      const bool own = variant % 2, on_the_way = variant / 2;
      if (on_the_way && n < 16)
        continue;
      const size_t before = m.now;
      m.most = m.now;
      weft_decoder *decoder;
      const weft_decoder_options options = {.id = source.id, .blocks = own ? NULL : blocks};
      EXPECT_OK(weft_decoder_new(ctx, &options, &decoder));
      if (on_the_way)
        ask_on_the_way(&source, decoder);
      fixture_feed(source.encoder, decoder);
      fixture_check_decoded(&source, decoder);
      const size_t promised = weft_decoder_memory_bytes(&source.id, own);
      if (m.most - before > promised)
        ck_abort_msg("%zu blocks of %zu bytes, %zu threads%s: %zu bytes, %zu promised", n, k,
                     cases[i].threads, on_the_way ? ", a block on the way" : "", m.most - before,
                     promised);
      // The promise is not much too high either.
      EXPECT(promised <= n * k + 2 * n * n + 16 * n + (2u << 20) + 8192);
      weft_decoder_free(decoder);
    }
    free(blocks);
    fixture_source_free(&source);
    weft_ctx_free(ctx);
    weft_ctx_free(plain);
  }
}
END_TEST

// The same with sizes at which panels take all of the memory promised for them: 16 coded packets
// and 16 source blocks, on more threads than that memory suffices for.
START_TEST(decoders_keep_their_promise_where_panels_are_large) {
  enum { BLOCKS = 32, BLOCK_BYTES = 128 << 10, THREADS = 8 };
  fixture_start(302);
  meter m = {.allocator = {.alloc = meter_alloc, .free = meter_free}};
  m.allocator.user = &m;
  weft_ctx *ctx, *plain = fixture_ctx(NULL, 1);
  EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.threads = THREADS, .allocator = &m.allocator}));
  const weft_encoder_options blocks_first = {.systematic = true};
  fixture_source source =
      fixture_source_new(plain, BLOCKS, BLOCK_BYTES, BLOCKS * BLOCK_BYTES, &blocks_first);
  weft_encoder *coded;
  EXPECT_OK(weft_encoder_new(source.segment, NULL, &coded));
  const size_t before = m.now;
  m.most = m.now;
  weft_decoder *decoder;
  EXPECT_OK(weft_decoder_new(ctx, &(weft_decoder_options){.id = source.id}, &decoder));
  uint8_t *datagram = fixture_malloc(WEFT_PACKET_ROOM_BYTES(BLOCKS, BLOCK_BYTES));
  for (size_t i = 0; i < BLOCKS / 2; i++) {
    size_t bytes;
    EXPECT_OK(weft_encoder_next(source.encoder, datagram,
                                WEFT_PACKET_ROOM_BYTES(BLOCKS, BLOCK_BYTES), &bytes));
    EXPECT_OK(weft_decoder_add_datagram(decoder, datagram, bytes));
  }
  fixture_feed(coded, decoder);
  fixture_check_decoded(&source, decoder);
  EXPECT(m.most - before <= weft_decoder_memory_bytes(&source.id, true));
  free(datagram);
  weft_decoder_free(decoder);
  weft_encoder_free(coded);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
  weft_ctx_free(plain);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("memory");
  TCase *tcase = tcase_create("allocation");
  tcase_add_loop_test(tcase, every_allocation_fails_once, 0, fixture_row_count());
  tcase_add_test(tcase, decoders_keep_their_promise);
  tcase_add_test(tcase, decoders_keep_their_promise_where_panels_are_large);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
