// SPDX-License-Identifier: Apache-2.0
// Contexts: which row they choose, what they refuse, memory, queues.

#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_main.h"
#include "weft/cuda.h"

START_TEST(every_row_is_forced_or_refused) {
  fixture_start(400);
  size_t available = 0;
  for (size_t i = 0; i < weft_backend_count_all(); i++) {
    weft_backend_info info;
    EXPECT_OK(weft_backend_describe(i, &info));
    EXPECT(info.name && info.technique && info.align > 0);
    weft_ctx *ctx = NULL;
    const weft_status status = weft_ctx_new(&ctx, &(weft_ctx_options){.backend = info.name});
    EXPECT_STATUS(status, info.available ? WEFT_OK : WEFT_E_BACKEND_ABSENT);
    if (status == WEFT_OK)
      ck_assert_str_eq(weft_ctx_backend(ctx), info.name);
    else
      EXPECT(ctx == NULL);
    weft_ctx_free(ctx);
    available += status == WEFT_OK;
  }
  EXPECT(available > 0);
  weft_backend_info none;
  EXPECT_STATUS(weft_backend_describe(weft_backend_count_all(), &none), WEFT_E_ARGUMENT);
}
END_TEST

// The row given in the options takes precedence over WEFT_BACKEND, and that over the default.
START_TEST(flag_before_environment_before_default) {
  fixture_start(401);
  weft_ctx *ctx;
  unsetenv("WEFT_BACKEND");
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  ck_assert_str_eq(weft_ctx_backend(ctx), weft_ctx_host_backend(ctx));
  ck_assert_uint_eq(weft_ctx_threads(ctx), 1);
  weft_ctx_free(ctx);
  setenv("WEFT_BACKEND", "scalar", 1);
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  ck_assert_str_eq(weft_ctx_backend(ctx), "scalar");
  weft_ctx_free(ctx);
  EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "logexp"}));
  ck_assert_str_eq(weft_ctx_backend(ctx), "logexp");
  weft_ctx_free(ctx);
  setenv("WEFT_BACKEND", "no-such-row", 1);
  EXPECT_STATUS(weft_ctx_new(&ctx, NULL), WEFT_E_BACKEND_UNKNOWN);
  EXPECT_STATUS(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda", .device = 4096}),
                WEFT_E_BACKEND_ABSENT);
  setenv("WEFT_BACKEND", "", 1);
  EXPECT_OK(weft_ctx_new(&ctx, NULL));
  weft_ctx_free(ctx);
  EXPECT_STATUS(weft_ctx_new(NULL, NULL), WEFT_E_ARGUMENT);
}
END_TEST

static void *no_memory(void *user, size_t bytes, size_t align) {
  (void)user, (void)bytes, (void)align;
  return NULL;
}

START_TEST(options_out_of_range) {
  fixture_start(403);
  weft_ctx *ctx;
  weft_ctx_options options = {.split = (weft_split)(WEFT_SPLIT_ROWS + 1)};
  EXPECT_STATUS(weft_ctx_new(&ctx, &options), WEFT_E_ARGUMENT);
  EXPECT(ctx == NULL);
  weft_allocator allocator = {.alloc = no_memory};
  options = (weft_ctx_options){.allocator = &allocator};
  EXPECT_STATUS(weft_ctx_new(&ctx, &options), WEFT_E_ARGUMENT); // no free function
  allocator = (weft_allocator){0};
  EXPECT_STATUS(weft_ctx_new(&ctx, &options), WEFT_E_ARGUMENT);
}
END_TEST

// Memory of an unknown kind is refused: it is neither treated as host memory nor accepted.
START_TEST(memory_of_no_known_kind) {
  fixture_start(404);
  const weft_mem none = (weft_mem)(WEFT_MEM_DEVICE + 1);
  weft_ctx *ctx = fixture_ctx("scalar", 1);
  void *memory;
  EXPECT_STATUS(weft_alloc(ctx, none, 1, &memory), WEFT_E_ARGUMENT);
  uint8_t byte = 7, one = 1, out[2], *rows[] = {out, NULL};
  const weft_segment_id id = fixture_id(1, 1);
  weft_segment_options options = {.id = id, .data = &byte, .bytes = 1, .mem = none};
  weft_segment *segment;
  EXPECT_STATUS(weft_segment_new(ctx, &options, NULL, &segment), WEFT_E_ARGUMENT);
  options.mem = WEFT_MEM_HOST;
  EXPECT_OK(weft_segment_new(ctx, &options, NULL, &segment));
  weft_encoder *encoder;
  EXPECT_OK(weft_encoder_new(segment, NULL, &encoder));
  weft_decoder *decoder;
  EXPECT_STATUS(weft_decoder_new(ctx, &(weft_decoder_options){.id = id, .mem = none}, &decoder),
                WEFT_E_ARGUMENT);
  decoder = fixture_decoder(ctx, &id);
  const weft_packet packet = {.id = id, .payload = &byte};
  weft_recoder *recoder;
  EXPECT_OK(weft_recoder_new(ctx, &id, 1, &recoder));
  EXPECT_OK(weft_recoder_add(recoder, &packet));
  weft_arrival arrival = {.decoder = decoder, .packet = packet};
  EXPECT_STATUS(weft_decoders_add(&arrival, 1, none, NULL), WEFT_E_ARGUMENT);
  EXPECT_OK(weft_decoder_add(decoder, &packet));
  weft_reading reading = {.decoder = decoder, .count = 1, .out = out, .mem = none};
  EXPECT_STATUS(weft_decoders_read(&reading, 1, NULL), WEFT_E_ARGUMENT);
  weft_packet made[2];
  uint8_t coefficients[2];
  const weft_batch good = {.count = 1,
                           .packets = made,
                           .coefficients = coefficients,
                           .coefficients_stride = 1,
                           .payload = out,
                           .payload_stride = 1};
  const struct {
    weft_status status;
    weft_batch batch;
  } cases[] = {
      {WEFT_OK, good},
      {WEFT_E_ARGUMENT, {.mem = none}},
      {WEFT_E_ARGUMENT, {.coefficients_mem = none}},
      {WEFT_E_UNSUPPORTED, {.mem = WEFT_MEM_DEVICE}},
      {WEFT_E_UNSUPPORTED, {.coefficients_mem = WEFT_MEM_DEVICE}},
      {WEFT_E_ARGUMENT, {.count = 2, .payload_rows = rows}}, // one of the rows is NULL
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_batch batch = good;
    batch.count = cases[i].batch.count ? cases[i].batch.count : 1;
    batch.mem = cases[i].batch.mem;
    batch.coefficients_mem = cases[i].batch.coefficients_mem;
    batch.payload_rows = cases[i].batch.payload_rows;
    EXPECT_STATUS(weft_encoder_batch(encoder, &batch, NULL), cases[i].status);
    EXPECT_STATUS(weft_encoder_combine(encoder, batch.count, (uint8_t[]){1, 1}, 1, &batch, NULL),
                  cases[i].status);
    EXPECT_STATUS(weft_decoder_recode_batch(decoder, &batch), cases[i].status);
    EXPECT_STATUS(weft_decoders_recode(&decoder, &batch, 1, NULL), cases[i].status);
    EXPECT_STATUS(weft_recoder_batch(recoder, &batch), cases[i].status);
  }
  weft_decode_job job = {
      .blocks = 1, .block_bytes = 1, .coefficients = &one, .payload = &byte, .out = out};
  EXPECT_OK(weft_decode_batch(ctx, &job, 1, NULL));
  job.mem = none;
  EXPECT_STATUS(weft_decode_batch(ctx, &job, 1, NULL), WEFT_E_ARGUMENT);
  job.mem = WEFT_MEM_HOST, job.coefficients_mem = none;
  EXPECT_STATUS(weft_decode_batch(ctx, &job, 1, NULL), WEFT_E_ARGUMENT);
  weft_recoder_free(recoder);
  weft_decoder_free(decoder);
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(memory_and_queues_of_a_host_context) {
  fixture_start(402);
  weft_ctx *ctx = fixture_ctx("scalar", 1), *other = fixture_ctx("scalar", 1);
  void *memory;
  EXPECT_OK(weft_alloc(ctx, WEFT_MEM_HOST, 1, &memory));
  weft_free(ctx, WEFT_MEM_HOST, memory);
  weft_free(ctx, WEFT_MEM_HOST, NULL);
  EXPECT_STATUS(weft_alloc(ctx, WEFT_MEM_HOST, 0, &memory), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_alloc(ctx, WEFT_MEM_DEVICE, 1, &memory), WEFT_E_UNSUPPORTED);
  EXPECT_STATUS(weft_alloc(ctx, WEFT_MEM_PINNED, 1, &memory), WEFT_E_UNSUPPORTED);
  uint8_t byte = 7, payload = 0;
  weft_segment_options options = {
      .id = fixture_id(1, 1), .data = &byte, .bytes = 1, .mem = WEFT_MEM_DEVICE};
  weft_segment *segment;
  EXPECT_STATUS(weft_segment_new(ctx, &options, NULL, &segment), WEFT_E_UNSUPPORTED);
  options.mem = WEFT_MEM_HOST;
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  EXPECT_OK(weft_queue_poll(queue));
  EXPECT_STATUS(weft_segment_new(other, &options, queue, &segment), WEFT_E_ARGUMENT);
  EXPECT_OK(weft_segment_new(ctx, &options, queue, &segment));
  weft_encoder *encoder;
  weft_packet packet;
  EXPECT_OK(weft_encoder_new(segment, &(weft_encoder_options){.systematic = true}, &encoder));
  uint8_t one;
  const weft_batch batch = {
      .count = 1, .packets = &packet, .coefficients = &one, .payload = &payload};
  EXPECT_OK(weft_encoder_batch(encoder, &batch, queue));
  EXPECT_OK(weft_queue_wait(queue));
  EXPECT(one == 1 && payload == 7);
  const weft_batch on_device = {
      .count = 1, .coefficients = &one, .payload = &payload, .mem = WEFT_MEM_DEVICE};
  EXPECT_STATUS(weft_encoder_batch(encoder, &on_device, NULL), WEFT_E_UNSUPPORTED);
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  weft_queue_free(queue);
  weft_ctx_free(other);
  weft_ctx_free(ctx);
}
END_TEST

// Constructors that fail set their output to NULL, which can be freed.
START_TEST(what_fails_is_null) {
  fixture_start(405);
  const weft_ctx_options no_split = {.split = (weft_split)(WEFT_SPLIT_ROWS + 1)};
  void *const something = &fixture_seed;
#define FAILS(type, call)                                                                          \
  do {                                                                                             \
    type *out = something;                                                                         \
    EXPECT_STATUS(call, WEFT_E_ARGUMENT);                                                          \
    EXPECT(out == NULL);                                                                           \
  } while (0)
  FAILS(weft_ctx, weft_ctx_new(&out, &no_split));
  FAILS(void, weft_alloc(NULL, WEFT_MEM_HOST, 1, &out));
  FAILS(weft_queue, weft_queue_new(NULL, &out));
  FAILS(weft_queue, weft_queue_wrap_cuda_stream(NULL, something, &out));
  FAILS(weft_segment, weft_segment_new(NULL, NULL, NULL, &out));
  FAILS(weft_encoder, weft_encoder_new(NULL, NULL, &out));
  FAILS(weft_decoder, weft_decoder_new(NULL, NULL, &out));
  FAILS(weft_recoder, weft_recoder_new(NULL, NULL, 0, &out));
  FAILS(weft_server, weft_server_new(NULL, &out));
  FAILS(weft_code, weft_code_new(NULL, NULL, &out));
  FAILS(weft_plan, weft_plan_for(NULL, NULL, &out));
  FAILS(weft_plan, weft_plan_new(NULL, NULL, NULL, 0, &out));
  FAILS(weft_code_group, weft_code_group_new(NULL, 0, &out));
  FAILS(weft_progress, weft_progress_new(NULL, NULL, &out));
#undef FAILS
}
END_TEST

START_TEST(free_accepts_null) {
  weft_ctx_free(NULL);
  weft_queue_free(NULL);
  weft_segment_free(NULL);
  weft_encoder_free(NULL);
  weft_decoder_free(NULL);
  weft_recoder_free(NULL);
}
END_TEST

START_TEST(version_is_as_the_header_has_it) {
  char wanted[32];
  snprintf(wanted, sizeof wanted, "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
           WEFT_VERSION_PATCH);
  ck_assert_str_eq(weft_version(), wanted);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("context");
  TCase *tcase = tcase_create("context");
  tcase_add_test(tcase, every_row_is_forced_or_refused);
  tcase_add_test(tcase, flag_before_environment_before_default);
  tcase_add_test(tcase, memory_and_queues_of_a_host_context);
  tcase_add_test(tcase, options_out_of_range);
  tcase_add_test(tcase, memory_of_no_known_kind);
  tcase_add_test(tcase, what_fails_is_null);
  tcase_add_test(tcase, free_accepts_null);
  tcase_add_test(tcase, version_is_as_the_header_has_it);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
