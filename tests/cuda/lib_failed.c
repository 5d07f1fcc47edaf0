// SPDX-License-Identifier: Apache-2.0
// Calls that fail on a queue: what they were to write belongs to the caller again when they return.
// By then it holds results or what it held before, never other bytes of the memory through which
// results pass; and nothing is written there later.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/runtime.h"
#include "lib/ctx.h"
#include "tests/cuda/lib_cases.h"
#include "tests/support/test_allocator.h"

// A segment of SHORT blocks passes through one chunk of staged memory, one of LONG blocks, on the
// device double, through more than a queue may have.
enum { N = 24, SHORT = 301, LONG = 12503, BEFORE = 0xEE, AFTER = 0x11 };

typedef struct scene {
  test_allocator memory;
  weft_ctx *ctx;
  weft_queue *queue;
  size_t k, bytes;               // of a block, of a segment
  uint8_t c[N * N];              // triangular
  uint8_t *data, *coded, *other; // segments
  uint8_t *out, *want, *kept;    // of a call, which writes `all` bytes
  size_t all;
  weft_segment *segment;
  weft_encoder *encoder; // made for each trial, so that each makes the same packets
  weft_decoder *decoder; // likewise; on the device, complete
  weft_decode_job job;
} scene;

// A call that writes to s->out.
typedef struct operation {
  weft_status (*call)(scene *s);
  const uint8_t *(*want)(const scene *s); // what it writes; NULL: what it wrote at first
  size_t more;                            // bytes that it writes beside a segment
  bool fixed;                             // the decoder has a key
  bool differs;                           // each time: a call that fails must write nothing
} operation;

static weft_status combine(scene *s) {
  const weft_batch batch = {.count = N, .payload = s->out, .payload_stride = s->k};
  return weft_encoder_combine(s->encoder, N, s->c, N, &batch, s->queue);
}

// Several products, one of which is directly behind another.
static weft_status batches(scene *s) {
  weft_encoder *const encoders[] = {s->encoder, s->encoder, s->encoder};
  weft_batch made[3];
  for (size_t i = 0; i < 3; i++)
    made[i] = (weft_batch){
        .count = N / 3, .payload = s->out + i * (N / 3) * s->k, .payload_stride = s->k};
  return weft_encoder_batches(encoders, made, 3, s->queue);
}

static weft_status recode(scene *s) {
  const weft_batch batch = {.count = N,
                            .payload = s->out,
                            .payload_stride = s->k,
                            .coefficients = s->out + s->bytes,
                            .coefficients_stride = N};
  return weft_decoders_recode(&s->decoder, &batch, 1, s->queue);
}

static weft_status read_blocks(scene *s) {
  weft_reading reading = {.decoder = s->decoder, .count = N, .out = s->out, .out_stride = s->k};
  const weft_status status = weft_decoders_read(&reading, 1, s->queue);
  EXPECT_STATUS(reading.status, status);
  return status;
}

static weft_status decode(scene *s) {
  s->job = (weft_decode_job){.blocks = N,
                             .block_bytes = s->k,
                             .coefficients = s->c,
                             .coefficients_stride = N,
                             .payload = s->coded,
                             .payload_stride = s->k,
                             .out = s->out,
                             .out_stride = s->k};
  return weft_decode_batch(s->ctx, &s->job, 1, s->queue);
}

static const uint8_t *coded_of(const scene *s) { return s->coded; }
static const uint8_t *data_of(const scene *s) { return s->data; }

static const operation operations[] = {{.call = combine, .want = coded_of},
                                       {.call = batches},
                                       {.call = recode, .more = N * N, .fixed = true},
                                       {.call = read_blocks, .want = data_of},
                                       {.call = decode, .want = data_of},
                                       {.call = recode, .more = N * N, .differs = true}};
enum { OPERATIONS = sizeof operations / sizeof *operations, OF_LONG = OPERATIONS - 1 };

static scene *scene_new(size_t k) {
  scene *s = fixture_malloc(sizeof *s);
  *s = (scene){.k = k, .bytes = N * k};
  for (size_t i = 0; i < sizeof s->c; i++)
    s->c[i] = i % N <= i / N ? (uint8_t)(1 + i % 251) : 0;
  uint8_t **const places[] = {&s->data, &s->coded, &s->other, &s->out, &s->want, &s->kept};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    *places[i] = fixture_malloc(s->bytes + N * N);
  fixture_fill(s->data, s->bytes);
  gpu_reference(s->coded, s->c, s->data, N, N, k);
  test_allocator_init(&s->memory, 0);
  EXPECT_OK(weft_ctx_new(
      &s->ctx, &(weft_ctx_options){.backend = "cuda", .allocator = &s->memory.allocator}));
  EXPECT_OK(weft_queue_new(s->ctx, &s->queue));
  const weft_segment_options options = {.id = fixture_id(N, k), .data = s->data, .bytes = s->bytes};
  EXPECT_OK(weft_segment_new(s->ctx, &options, NULL, &s->segment));
  return s;
}

static void scene_free(scene *s) {
  weft_segment_free(s->segment);
  weft_queue_free(s->queue);
  weft_ctx_free(s->ctx);
  EXPECT(test_allocator_live(&s->memory) == 0);
  free(s->data), free(s->coded), free(s->other), free(s->out), free(s->want), free(s->kept);
  free(s);
}

static void make_coders(scene *s, bool fixed) {
  static const uint8_t key[32] = {7};
  EXPECT_OK(weft_encoder_new(s->segment, &(weft_encoder_options){.seeded = true}, &s->encoder));
  const weft_decoder_options options = {.id = fixture_id(N, s->k), .mem = WEFT_MEM_DEVICE};
  EXPECT_OK(weft_decoder_new(s->ctx, &options, &s->decoder));
  if (fixed)
    EXPECT_OK(weft_decoder_fix_random(s->decoder, key));
  weft_arrival arrivals[N];
  for (size_t i = 0; i < N; i++)
    arrivals[i] = (weft_arrival){.decoder = s->decoder,
                                 .packet = {.id = options.id,
                                            .mode = WEFT_PACKET_VECTOR,
                                            .coefficients = s->c + i * N,
                                            .payload = s->coded + i * s->k}};
  EXPECT_OK(weft_decoders_add(arrivals, N, WEFT_MEM_HOST, NULL));
}

static void check_failed(const scene *s, const operation *what) {
  for (size_t i = 0; i < s->all; i++)
    if (s->out[i] != BEFORE && (what->differs || s->out[i] != s->want[i]))
      ck_abort_msg("operation %zu, %zu bytes a block: byte %zu is neither a result nor as before",
                   (size_t)(what - operations), s->k, i);
}

// Calls, behind another call's packets, while the `nth` allocation or the runtime call after `skip`
// others fails; returns whether it was reached.
static bool fails_at(scene *s, const operation *what, long nth, size_t skip, int error) {
  const size_t all = s->all;
  make_coders(s, what->fixed);
  memset(s->other, BEFORE, s->bytes);
  memset(s->out, BEFORE, all);
  const weft_batch before = {.count = N, .payload = s->other, .payload_stride = s->k};
  EXPECT_OK(weft_encoder_combine(s->encoder, N, s->c, N, &before, s->queue));
  s->memory.fail_at = nth > 0 ? atomic_load(&s->memory.calls) + nth : 0;
  weft_cuda_inject(skip, error, 0);
  const weft_status status = what->call(s);
  const bool reached = error ? weft_cuda_calls() > skip : test_allocator_failed(&s->memory);
  weft_cuda_inject(0, 0, 0);
  s->memory.fail_at = 0;
  if (status != WEFT_OK) {
    check_failed(s, what);
    memset(s->out, AFTER, all); // the caller's again
    memset(s->kept, AFTER, all);
  }
  const weft_status waited = weft_queue_wait(s->queue);
  EXPECT(waited != WEFT_OK || memcmp(s->other, s->coded, s->bytes) == 0);
  if (status != WEFT_OK)
    EXPECT(memcmp(s->out, s->kept, all) == 0);
  else if (waited == WEFT_OK && !what->differs)
    EXPECT(memcmp(s->out, s->want, all) == 0);
  weft_encoder_free(s->encoder);
  weft_decoder_free(s->decoder);
  EXPECT(reached || (status == WEFT_OK && waited == WEFT_OK));
  return reached;
}

static void start(scene *s, const operation *what) {
  s->all = s->bytes + what->more;
  make_coders(s, what->fixed);
  EXPECT_OK(what->call(s));
  EXPECT_OK(weft_queue_wait(s->queue));
  memcpy(s->want, s->out, s->all);
  EXPECT(!what->want || memcmp(s->want, what->want(s), s->all) == 0);
  weft_encoder_free(s->encoder);
  weft_decoder_free(s->decoder);
}

START_TEST(failed_calls_leave_no_other_bytes) {
  static const int errors[] = {WEFT_CUDA_OUT_OF_MEMORY, WEFT_CUDA_ILLEGAL_ADDRESS, 999};
  const bool is_long = _i >= OPERATIONS; // more than a queue stages at a time
  const operation *what = &operations[_i % OPERATIONS];
  if (gpu_skip("failed_calls_leave_no_other_bytes"))
    return;
  if (is_long && WEFT_STAGED_MOST >= (size_t)N * LONG) {
    printf("SKIPPED failed_calls_leave_no_other_bytes, long: it is for the device double\n");
    return;
  }
  fixture_start(900 + (uint64_t)_i);
  scene *s = scene_new(is_long ? LONG : SHORT);
  start(s, what);
  size_t reached = 0;
  for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
    for (size_t skip = 0; fails_at(s, what, 0, skip, errors[e]); skip++)
      reached++;
  for (long nth = 1; fails_at(s, what, nth, 0, 0); nth++)
    reached++;
  EXPECT(reached > 5); // or the loops have not covered enough
  scene_free(s);
}
END_TEST

void lib_add_failed_tests(TCase *cases) {
  tcase_set_tags(cases, "one-thread"); // thousands of calls, of contexts without threads
  tcase_add_loop_test(cases, failed_calls_leave_no_other_bytes, 0, OPERATIONS + OF_LONG);
}
