// SPDX-License-Identifier: Apache-2.0
// One context under several threads at once, each with its own handles: they share the pool and a
// segment. And the library's first use, on several threads at once. For ThreadSanitizer.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_main.h"

enum { WORKERS = 4, N = 24, K = 6000 };

static pthread_barrier_t first;

typedef struct worker {
  weft_ctx *ctx;
  const fixture_source *source;
  size_t index;
  weft_status status; // the first failure
  bool same;          // the bytes came back
} worker;

// Encodes, relays and decodes one segment. EXPECT does not work on threads, so a status is
// returned.
static weft_status relay(worker *w) {
  weft_encoder *encoder;
  weft_decoder *relay_decoder, *sink;
  uint8_t *datagram = malloc(WEFT_WIRE_HEADER_BYTES + N + K);
  const weft_decoder_options options = {.id = w->source->id, .eager = w->index % 2 == 1};
  if (!datagram)
    return WEFT_E_NOMEM;
  WEFT_TRY(weft_encoder_new(w->source->segment, NULL, &encoder));
  WEFT_TRY(weft_decoder_new(w->ctx, &options, &relay_decoder));
  WEFT_TRY(weft_decoder_new(w->ctx, &options, &sink));
  while (!weft_decoder_complete(sink)) {
    size_t bytes;
    WEFT_TRY(weft_encoder_next(encoder, datagram, WEFT_WIRE_HEADER_BYTES + N + K, &bytes));
    (void)weft_decoder_add_datagram(relay_decoder, datagram, bytes);
    WEFT_TRY(weft_decoder_recode(relay_decoder, datagram, WEFT_WIRE_HEADER_BYTES + N + K, &bytes));
    (void)weft_decoder_add_datagram(sink, datagram, bytes);
  }
  uint8_t *out = malloc(N * K);
  if (!out)
    return WEFT_E_NOMEM;
  WEFT_TRY(weft_decoder_read(sink, 0, N * K, out));
  w->same = memcmp(out, w->source->data, N * K) == 0;
  free(out);
  free(datagram);
  weft_decoder_free(sink);
  weft_decoder_free(relay_decoder);
  weft_encoder_free(encoder);
  return WEFT_OK;
}

// Codes several segments in one call, from several threads at once.
static weft_status batch(worker *w) {
  enum { JOBS = 6 };
  weft_encoder *encoder;
  weft_packet packets[N];
  weft_decode_job jobs[JOBS];
  WEFT_TRY(weft_encoder_new(w->source->segment, NULL, &encoder));
  uint8_t *memory = malloc(JOBS * (N * N + 2 * N * K));
  if (!memory)
    return WEFT_E_NOMEM;
  for (size_t j = 0; j < JOBS; j++) {
    uint8_t *coefficients = memory + j * (N * N + 2 * N * K), *payload = coefficients + N * N;
    const weft_batch made = {.count = N,
                             .packets = packets,
                             .coefficients = coefficients,
                             .coefficients_stride = N,
                             .payload = payload,
                             .payload_stride = K};
    WEFT_TRY(weft_encoder_batch(encoder, &made, NULL));
    jobs[j] = (weft_decode_job){.blocks = N,
                                .block_bytes = K,
                                .coefficients = coefficients,
                                .coefficients_stride = N,
                                .payload = payload,
                                .payload_stride = K,
                                .out = payload + N * K,
                                .out_stride = K};
  }
  WEFT_TRY(weft_decode_batch(w->ctx, jobs, JOBS, NULL));
  size_t singular = 0; // about one in 250; all six never
  for (size_t j = 0; j < JOBS; j++)
    if (jobs[j].status == WEFT_E_SINGULAR)
      singular++;
    else
      w->same =
          w->same && jobs[j].status == WEFT_OK && memcmp(jobs[j].out, w->source->data, N * K) == 0;
  w->same = w->same && singular < JOBS;
  free(memory);
  weft_encoder_free(encoder);
  return WEFT_OK;
}

static void *work(void *argument) {
  worker *w = argument;
  w->status = relay(w);
  if (w->status == WEFT_OK)
    w->status = batch(w);
  return NULL;
}

START_TEST(one_context_many_threads) {
  fixture_start(500);
  weft_ctx *ctx = fixture_ctx(NULL, (size_t)_i);
  fixture_source source = fixture_source_new(ctx, N, K, N * K, NULL);
  pthread_t threads[WORKERS];
  worker workers[WORKERS];
  for (size_t i = 0; i < WORKERS; i++) {
    workers[i] = (worker){.ctx = ctx, .source = &source, .index = i};
    EXPECT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (size_t i = 0; i < WORKERS; i++)
    EXPECT(pthread_join(threads[i], NULL) == 0);
  for (size_t i = 0; i < WORKERS; i++) {
    EXPECT_OK(workers[i].status);
    EXPECT(workers[i].same);
  }
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// --- first use ---

// Makes the calls a program begins with, on every thread at once. The library was not used before,
// as Check runs each test in its own process.
static void *begin(void *user) {
  worker *w = user;
  pthread_barrier_wait(&first);
  for (size_t i = 0; i < weft_backend_count_all(); i++) {
    weft_backend_info info;
    w->same = weft_backend_describe(i, &info) == WEFT_OK && info.name;
  }
  const weft_segment_id id = {.stream = w->index, .blocks = 3, .block_bytes = 5};
  const uint8_t data[15] = {1, 2, 3};
  uint8_t datagram[64], out[15];
  size_t bytes;
  weft_ctx *ctx = NULL;
  weft_segment *segment = NULL;
  weft_encoder *encoder = NULL;
  weft_decoder *decoder = NULL;
  const weft_segment_options options = {.id = id, .data = data, .bytes = sizeof data};
  w->status = weft_ctx_new(&ctx, NULL);
  if (w->status == WEFT_OK)
    w->status = weft_segment_new(ctx, &options, NULL, &segment);
  if (w->status == WEFT_OK)
    w->status = weft_encoder_new(segment, NULL, &encoder);
  if (w->status == WEFT_OK)
    w->status = weft_decoder_new(ctx, &(weft_decoder_options){.id = id}, &decoder);
  while (w->status == WEFT_OK && !weft_decoder_complete(decoder)) {
    w->status = weft_encoder_next(encoder, datagram, sizeof datagram, &bytes);
    if (w->status == WEFT_OK)
      (void)weft_decoder_add_datagram(decoder, datagram, bytes);
  }
  if (w->status == WEFT_OK)
    w->status = weft_decoder_read(decoder, 0, sizeof out, out);
  w->same = w->same && w->status == WEFT_OK && memcmp(out, data, sizeof out) == 0;
  weft_decoder_free(decoder);
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  weft_ctx_free(ctx);
  return NULL;
}

START_TEST(first_use_on_many_threads) {
  pthread_t threads[WORKERS];
  worker workers[WORKERS];
  EXPECT(pthread_barrier_init(&first, NULL, WORKERS) == 0);
  for (size_t i = 0; i < WORKERS; i++) {
    workers[i] = (worker){.index = i};
    EXPECT(pthread_create(&threads[i], NULL, begin, &workers[i]) == 0);
  }
  for (size_t i = 0; i < WORKERS; i++)
    EXPECT(pthread_join(threads[i], NULL) == 0);
  for (size_t i = 0; i < WORKERS; i++) {
    EXPECT_OK(workers[i].status);
    EXPECT(workers[i].same);
  }
  pthread_barrier_destroy(&first);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("threads");
  TCase *tcase = tcase_create("shared context");
  tcase_add_loop_test(tcase, one_context_many_threads, 1, 5);
  tcase_add_loop_test(tcase, first_use_on_many_threads, 0, 8);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
