// SPDX-License-Identifier: Apache-2.0
// Injected failures of the CUDA runtime: each gives a status, nothing leaks, and results before and
// after it are right. The first four tests need no GPU.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/runtime.h"
#include "kernels/device.h"
#include "tests/cuda/gpu.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

// Values of cudaError_t.
enum {
  MEMORY_ALLOCATION = 2,
  INSUFFICIENT_DRIVER = 35,
  NO_DEVICE = 100,
  ILLEGAL_ADDRESS = 700,
  LAUNCH_FAILURE = 719,
  UNKNOWN = 999
};

static void absent_with(int error) {
  weft_cuda_inject(0, error, 1);
  ck_assert_uint_eq(weft_device_count(), 0);
  ck_assert_str_ne(weft_device_absence(), "");
  weft_ctx *ctx = NULL;
  ck_assert_int_eq(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda"}),
                   WEFT_E_BACKEND_ABSENT);
  ck_assert_ptr_null(ctx);
  ck_assert_int_eq(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = gpu_row_name(0)}),
                   WEFT_E_BACKEND_ABSENT);
  ck_assert_int_eq(weft_ctx_new(&ctx, NULL), WEFT_OK); // the CPU still works
  weft_ctx_free(ctx);
  weft_cuda_inject(0, 0, 0);
}

START_TEST(no_driver) { absent_with(INSUFFICIENT_DRIVER); }
END_TEST

START_TEST(no_device) { absent_with(NO_DEVICE); }
END_TEST

START_TEST(unknown_row_is_an_error) {
  weft_ctx *ctx = NULL;
  ck_assert_int_eq(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda-nothing"}),
                   WEFT_E_BACKEND_UNKNOWN);
}
END_TEST

// What makes a context useless is not mistaken for a failed call that may be repeated, even if the
// toolkit has no name for it. By CUDA 13's driver_types.h: what leaves the process "in an
// inconsistent state", hardware that has failed, and contexts, servers and runtimes that are gone.
START_TEST(errors_that_lose_the_device) {
  static const int lost[] = {4,   46,  214, 220, 226, 700, 702, 709, 710, 714,
                             715, 716, 717, 718, 719, 721, 806, 810, 911};
  static const int failed[] = {1, 3, 35, 100, 101, 209, 400, 701, 720, 801, 900, 999, 10000};
  for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
    ck_assert_int_eq(weft_cuda_status_of(lost[i]), WEFT_E_DEVICE_LOST);
  for (size_t i = 0; i < sizeof failed / sizeof *failed; i++)
    ck_assert_int_eq(weft_cuda_status_of(failed[i]), WEFT_E_DEVICE);
  ck_assert_int_eq(weft_cuda_status_of(0), WEFT_OK);
  ck_assert_int_eq(weft_cuda_status_of(2), WEFT_E_DEVICE_NOMEM);
  ck_assert_int_eq(weft_cuda_status_of(600), WEFT_PENDING);
}
END_TEST

// --- with a device ---

enum { N = 24, K = 900, M = 40, JOBS = 3 };

typedef struct scene {
  uint8_t data[N * K], out[M * K], coded[JOBS][N * K], decoded[JOBS][N * K], c[JOBS][N * N];
} scene;

static bool is_failure(weft_status status) {
  return status == WEFT_E_DEVICE || status == WEFT_E_DEVICE_NOMEM || status == WEFT_E_DEVICE_LOST ||
         status == WEFT_E_BACKEND_ABSENT || status == WEFT_E_NOMEM;
}

static weft_status encode(weft_ctx *ctx, weft_queue *queue, weft_encoder *encoder, scene *s) {
  void *pinned = NULL;
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_PINNED, M * K, &pinned));
  memset(pinned, 0xEE, M * K);
  weft_packet packets[M];
  const weft_batch batch = {.count = M,
                            .packets = packets,
                            .payload = pinned,
                            .payload_stride = K,
                            .mem = WEFT_MEM_PINNED};
  weft_status status = weft_encoder_batch(encoder, &batch, queue);
  const weft_status waited = weft_queue_wait(queue);
  status = status != WEFT_OK ? status : waited;
  if (status == WEFT_OK) {
    uint8_t c[M * N], *expect = fixture_malloc(M * K);
    for (size_t i = 0; i < M; i++)
      EXPECT_OK(weft_packet_coefficients(
          &(weft_packet){
              .id = packets[i].id, .mode = packets[i].mode, .seed = packets[i].seed, .payload = c},
          c + i * N));
    gpu_reference(expect, c, s->data, M, N, K);
    EXPECT(memcmp(pinned, expect, M * K) == 0);
    free(expect);
  }
  weft_free(ctx, WEFT_MEM_PINNED, pinned);
  return status;
}

static weft_status decode(weft_ctx *ctx, scene *s) {
  weft_decode_job jobs[JOBS];
  memset(s->decoded, 0xEE, sizeof s->decoded); // results of earlier calls must not pass
  for (size_t i = 0; i < JOBS; i++)
    jobs[i] = (weft_decode_job){.blocks = N,
                                .block_bytes = K,
                                .coefficients = s->c[i],
                                .coefficients_stride = N,
                                .payload = s->coded[i],
                                .payload_stride = K,
                                .out = s->decoded[i],
                                .out_stride = K};
  const weft_status status = weft_decode_batch(ctx, jobs, JOBS, NULL);
  for (size_t i = 0; i < JOBS; i++) {
    EXPECT(status == WEFT_OK || jobs[i].status != WEFT_PENDING);
    if (jobs[i].status == WEFT_OK)
      EXPECT(memcmp(s->decoded[i], s->data, sizeof s->data) == 0);
  }
  return status;
}

// Adds packets of JOBS segments to decoders on the device, recodes and reads; checks what is there.
static weft_status relay_with(weft_decoder *const *decoders, scene *s) {
  weft_arrival arrivals[JOBS * N];
  for (size_t i = 0; i < JOBS * N; i++)
    arrivals[i] = (weft_arrival){.decoder = decoders[i % JOBS],
                                 .packet = {.id = fixture_id(N, K),
                                            .mode = WEFT_PACKET_VECTOR,
                                            .coefficients = s->c[i % JOBS] + i / JOBS * N,
                                            .payload = s->coded[i % JOBS] + i / JOBS * K}};
  const weft_status added = weft_decoders_add(arrivals, JOBS * N, WEFT_MEM_HOST, NULL);
  for (size_t i = 0; i < JOBS * N; i++)
    EXPECT(arrivals[i].status == added);
  WEFT_TRY(added);
  uint8_t vectors[JOBS][2 * N], mixed[JOBS][2 * K], expect[2 * K];
  weft_batch batches[JOBS];
  weft_reading readings[JOBS];
  for (size_t i = 0; i < JOBS; i++) {
    batches[i] = (weft_batch){.count = 2,
                              .coefficients = vectors[i],
                              .coefficients_stride = N,
                              .payload = mixed[i],
                              .payload_stride = K};
    readings[i] =
        (weft_reading){.decoder = decoders[i], .count = N, .out = s->decoded[i], .out_stride = K};
  }
  WEFT_TRY(weft_decoders_recode(decoders, batches, JOBS, NULL));
  memset(s->decoded, 0xEE, sizeof s->decoded);
  const weft_status status = weft_decoders_read(readings, JOBS, NULL);
  for (size_t i = 0; i < JOBS; i++) {
    EXPECT(status != WEFT_OK || readings[i].status == WEFT_OK);
    EXPECT(readings[i].status != WEFT_OK || memcmp(s->decoded[i], s->data, sizeof s->data) == 0);
    gpu_reference(expect, vectors[i], s->data, 2, N, K);
    EXPECT(memcmp(mixed[i], expect, sizeof expect) == 0);
  }
  return status;
}

static weft_status relay(weft_ctx *ctx, scene *s) {
  weft_decoder *decoders[JOBS] = {NULL};
  const weft_decoder_options options = {.id = fixture_id(N, K), .mem = WEFT_MEM_DEVICE};
  weft_status status = WEFT_OK;
  for (size_t i = 0; i < JOBS && status == WEFT_OK; i++)
    status = weft_decoder_new(ctx, &options, &decoders[i]);
  if (status == WEFT_OK)
    status = relay_with(decoders, s);
  for (size_t i = 0; i < JOBS; i++)
    weft_decoder_free(decoders[i]);
  return status;
}

// Does everything from opening the device to closing it; returns the status of the first failed
// step.
static weft_status all_of_it(const weft_allocator *allocator, scene *s) {
  weft_ctx *ctx;
  WEFT_TRY(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda", .allocator = allocator}));
  weft_queue *queue = NULL;
  weft_segment *segment = NULL;
  weft_encoder *encoder = NULL;
  const weft_segment_options options = {
      .id = fixture_id(N, K), .data = s->data, .bytes = sizeof s->data};
  weft_status status = weft_queue_new(ctx, &queue);
  if (status == WEFT_OK)
    status = weft_segment_new(ctx, &options, queue, &segment);
  if (status == WEFT_OK)
    status = weft_encoder_new(segment, &(weft_encoder_options){.seeded = true}, &encoder);
  if (status == WEFT_OK)
    status = encode(ctx, queue, encoder, s);
  if (status == WEFT_OK)
    status = decode(ctx, s);
  if (status == WEFT_OK)
    status = relay(ctx, s);
  if (queue)
    (void)weft_queue_wait(queue); // it may still use what is freed below
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  weft_queue_free(queue);
  weft_ctx_free(ctx);
  return status;
}

static scene *scene_new(uint64_t salt) {
  fixture_start(salt);
  scene *s = fixture_malloc(sizeof *s);
  fixture_fill(s->data, sizeof s->data);
  for (size_t i = 0; i < JOBS; i++) {
    memset(s->c[i], 0, sizeof s->c[i]);
    for (size_t r = 0; r < N; r++) // triangular, so it has an inverse
      for (size_t c = 0; c <= r; c++)
        s->c[i][r * N + c] = (uint8_t)(1 + fixture_below(255));
    gpu_reference(s->coded[i], s->c[i], s->data, N, N, K);
  }
  return s;
}

static const int errors[] = {MEMORY_ALLOCATION, ILLEGAL_ADDRESS, LAUNCH_FAILURE, UNKNOWN};

START_TEST(every_runtime_call_fails_once) {
  const char *const how = _i % 2 ? "lasting" : "once";
  if (gpu_skip(_i % 2 ? "every_runtime_call_fails_from_then_on" : "every_runtime_call_fails_once"))
    return;
  scene *s = scene_new(500);
  const int error = errors[_i / 2];
  size_t survived = 0;
  for (size_t skip = 0;; skip++) {
    test_allocator memory;
    test_allocator_init(&memory, 0);
    weft_cuda_inject(skip, error, _i % 2);
    const weft_status status = all_of_it(&memory.allocator, s);
    const bool reached = weft_cuda_calls() > skip;
    weft_cuda_inject(0, 0, 0);
    if (test_allocator_live(&memory) != 0)
      ck_abort_msg("error %d %s after %zu calls: %ld allocations live", error, how, skip,
                   test_allocator_live(&memory));
    if (!reached) {
      EXPECT_OK(status);
      printf("error %d %s at each of %zu runtime calls; survived %zu times\n", error, how, skip,
             survived);
      break;
    }
    survived += status == WEFT_OK;
    if (status != WEFT_OK && !is_failure(status))
      ck_abort_msg("error %d %s after %zu calls: %s", error, how, skip, weft_status_name(status));
  }
  free(s);
}
END_TEST

// Encodes to pinned memory and decodes it to pinned memory, enough for further streams besides the
// call's own to be used. The memory is freed as soon as the calls have returned.
static weft_status in_pieces(weft_ctx *ctx, weft_encoder *encoder, const uint8_t *vectors,
                             const uint8_t *data) {
  enum { JOBS_LONG = 10, BLOCKS = 16, BYTES = 16384, SEGMENT = BLOCKS * BYTES };
  void *coded = NULL, *out = NULL;
  weft_status status = weft_alloc(ctx, WEFT_MEM_PINNED, JOBS_LONG * SEGMENT, &coded);
  if (status == WEFT_OK)
    status = weft_alloc(ctx, WEFT_MEM_PINNED, JOBS_LONG * SEGMENT, &out);
  if (status == WEFT_OK) {
    memset(coded, 0, JOBS_LONG * SEGMENT);
    memset(out, 0xEE, JOBS_LONG * SEGMENT);
    const weft_batch batch = {.count = JOBS_LONG * BLOCKS,
                              .payload = coded,
                              .payload_stride = BYTES,
                              .mem = WEFT_MEM_PINNED};
    status = weft_encoder_combine(encoder, batch.count, vectors, BLOCKS, &batch, NULL);
  }
  if (status == WEFT_OK) {
    weft_decode_job jobs[JOBS_LONG];
    for (size_t i = 0; i < JOBS_LONG; i++)
      jobs[i] = (weft_decode_job){.blocks = BLOCKS,
                                  .block_bytes = BYTES,
                                  .coefficients = vectors + i * BLOCKS * BLOCKS,
                                  .coefficients_stride = BLOCKS,
                                  .payload = (uint8_t *)coded + i * SEGMENT,
                                  .payload_stride = BYTES,
                                  .out = (uint8_t *)out + i * SEGMENT,
                                  .out_stride = BYTES,
                                  .mem = WEFT_MEM_PINNED};
    status = weft_decode_batch(ctx, jobs, JOBS_LONG, NULL);
    for (size_t i = 0; i < JOBS_LONG; i++) {
      EXPECT((status == WEFT_OK) <= (jobs[i].status == WEFT_OK) && jobs[i].status != WEFT_PENDING);
      EXPECT(jobs[i].status != WEFT_OK || memcmp((uint8_t *)out + i * SEGMENT, data, SEGMENT) == 0);
    }
  }
  weft_free(ctx, WEFT_MEM_PINNED, coded);
  weft_free(ctx, WEFT_MEM_PINNED, out);
  return status;
}

START_TEST(every_call_of_long_transfers_fails_once) {
  if (gpu_skip("every_call_of_long_transfers_fails_once"))
    return;
  fixture_start(530);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  fixture_source source = fixture_source_new(ctx, 16, 16384, 16 * 16384, NULL);
  uint8_t vectors[160 * 16]; // the same triangular matrix for every segment
  for (size_t i = 0; i < sizeof vectors; i++)
    vectors[i] = i % 16 <= i / 16 % 16 ? (uint8_t)(1 + i % 251) : 0;
  for (size_t skip = 0;; skip++) {
    weft_cuda_inject(skip, UNKNOWN, 0);
    const weft_status status = in_pieces(ctx, source.encoder, vectors, source.data);
    const bool reached = weft_cuda_calls() > skip;
    weft_cuda_inject(0, 0, 0);
    EXPECT(status == WEFT_OK || is_failure(status));
    if (!reached) {
      EXPECT_OK(status);
      EXPECT(skip > 30); // or the loop has not covered enough
      break;
    }
  }
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// Each allocation of the operation fails once.
static void starve(uint64_t salt, weft_status (*operation)(const weft_allocator *, scene *)) {
  scene *s = scene_new(salt);
  for (long n = 1;; n++) {
    test_allocator memory;
    test_allocator_init(&memory, n);
    const weft_status status = operation(&memory.allocator, s);
    EXPECT(status == WEFT_OK || status == WEFT_E_NOMEM);
    EXPECT(test_allocator_live(&memory) == 0);
    if (!test_allocator_failed(&memory)) {
      EXPECT_OK(status);
      break;
    }
  }
  free(s);
}

START_TEST(host_memory_fails) {
  if (!gpu_skip("host_memory_fails"))
    starve(510, all_of_it);
}
END_TEST

// Codes packets of two segments to host memory; those of the first are in progress when memory for
// the second is lacking. Coded again they are right, and stay so once the queue is idle.
static weft_status again_elsewhere(weft_ctx *ctx, weft_encoder *const *encoders, scene *s) {
  weft_queue *queue = NULL;
  WEFT_TRY(weft_queue_new(ctx, &queue));
  uint8_t *out[2] = {s->out, fixture_malloc(M * K)}, *kept = fixture_malloc(M * K);
  const weft_batch batches[2] = {{.count = M, .payload = out[0], .payload_stride = K},
                                 {.count = M, .payload = out[1], .payload_stride = K}};
  const weft_status status = weft_encoder_batches(encoders, batches, 2, queue);
  if (status != WEFT_OK) {
    EXPECT_OK(weft_encoder_batches(encoders, batches, 2, NULL));
    memcpy(kept, out[0], M * K);
  }
  EXPECT_OK(weft_queue_wait(queue));
  EXPECT(status == WEFT_OK || memcmp(kept, out[0], M * K) == 0);
  EXPECT(memcmp(out[0], out[1], M * K) == 0); // the same segment with two ids
  weft_queue_free(queue);
  free(kept);
  free(out[1]);
  return status;
}

static weft_status batches_on_a_queue(const weft_allocator *allocator, scene *s) {
  weft_ctx *ctx;
  WEFT_TRY(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda", .allocator = allocator}));
  weft_segment *segment[2] = {NULL, NULL};
  weft_encoder *encoder[2] = {NULL, NULL};
  const weft_segment_options options = {
      .id = fixture_id(N, K), .data = s->data, .bytes = sizeof s->data};
  weft_status status = WEFT_OK;
  for (size_t i = 0; i < 2 && status == WEFT_OK; i++) {
    status = weft_segment_new(ctx, &options, NULL, &segment[i]);
    if (status == WEFT_OK)
      status = weft_encoder_new(segment[i], &(weft_encoder_options){.seeded = true}, &encoder[i]);
  }
  if (status == WEFT_OK)
    status = again_elsewhere(ctx, encoder, s);
  for (size_t i = 0; i < 2; i++) {
    weft_encoder_free(encoder[i]);
    weft_segment_free(segment[i]);
  }
  weft_ctx_free(ctx);
  return status;
}

// A failed call on a queue leaves no packets behind that would be written later.
START_TEST(a_call_that_failed_leaves_nothing_to_write) {
  if (!gpu_skip("a_call_that_failed_leaves_nothing_to_write"))
    starve(540, batches_on_a_queue);
}
END_TEST

// Packets to host memory are in progress when the `nth` allocation for `count` later segments fails
// and the device fails at call `skip`: either the packets arrive, or the queue reports that they
// did not. *told counts the latter; returns whether the allocation was reached.
static bool lack_behind(scene *s, size_t count, long nth, size_t skip, size_t *told) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_ctx *ctx;
  weft_queue *queue;
  weft_segment *segment, *behind[2] = {NULL, NULL};
  weft_encoder *encoder;
  const weft_segment_options one = {
      .id = fixture_id(N, K), .data = s->data, .bytes = sizeof s->data};
  const weft_segment_options options[2] = {one, one};
  EXPECT_OK(
      weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda", .allocator = &memory.allocator}));
  EXPECT_OK(weft_queue_new(ctx, &queue));
  EXPECT_OK(weft_segment_new(ctx, &one, NULL, &segment));
  EXPECT_OK(weft_encoder_new(segment, NULL, &encoder));
  memset(s->out, 0, sizeof s->out);
  const weft_batch batch = {.count = N, .payload = s->out, .payload_stride = K};
  EXPECT_OK(weft_encoder_combine(encoder, N, s->c[0], N, &batch, queue));
  memory.fail_at = atomic_load(&memory.calls) + nth;
  weft_cuda_inject(skip, UNKNOWN, 0);
  const weft_status status = count == 1 ? weft_segment_new(ctx, &one, queue, behind)
                                        : weft_segments_new(ctx, options, count, queue, behind);
  weft_cuda_inject(0, 0, 0);
  const bool reached = test_allocator_failed(&memory);
  memory.fail_at = 0;
  const weft_status waited = weft_queue_wait(queue);
  if (waited == WEFT_OK && memcmp(s->out, s->coded[0], sizeof s->coded[0]) != 0)
    ck_abort_msg("%zu segments, allocation %ld and call %zu: %s, and packets lost unheard", count,
                 nth, skip, weft_status_name(status));
  *told += status == WEFT_E_NOMEM && waited != WEFT_OK;
  EXPECT_OK(weft_queue_wait(queue)); // an error is reported once
  weft_segment_free(behind[0]);
  weft_segment_free(behind[1]);
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  weft_queue_free(queue);
  weft_ctx_free(ctx);
  EXPECT(test_allocator_live(&memory) == 0);
  return reached;
}

// A failed call does not lose the packets, or the errors, of earlier calls on its queue.
START_TEST(a_call_that_failed_keeps_what_is_owed) {
  if (gpu_skip("a_call_that_failed_keeps_what_is_owed"))
    return;
  scene *s = scene_new(550);
  for (size_t count = 1; count <= 2; count++) {
    size_t told = 0;
    for (size_t skip = 0; skip < 12; skip++)
      for (long nth = 1; lack_behind(s, count, nth, skip, &told);)
        nth++;
    EXPECT(told > 0); // or the loop has not covered enough
  }
  free(s);
}
END_TEST

// A request for more memory than the device has is refused, and the context still works.
START_TEST(more_memory_than_there_is) {
  if (gpu_skip("more_memory_than_there_is"))
    return;
  fixture_start(520);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  void *memory = NULL;
  EXPECT_STATUS(weft_alloc(ctx, WEFT_MEM_DEVICE, (size_t)1 << 46, &memory), WEFT_E_DEVICE_NOMEM);
  EXPECT(memory == NULL);
  fixture_source source = fixture_source_new(ctx, 8, 100, 800, NULL); // and it still works
  weft_decoder *decoder = fixture_decoder(ctx, &source.id);
  fixture_feed(source.encoder, decoder);
  fixture_check_decoded(&source, decoder);
  weft_decoder_free(decoder);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// A failed test may have left its fault injected.
static void no_faults(void) { weft_cuda_inject(0, 0, 0); }

int main(void) {
  Suite *suite = suite_create("failures of a device");
  TCase *cases = tcase_create("injected");
  tcase_add_checked_fixture(cases, no_faults, no_faults);
  tcase_add_test(cases, no_driver);
  tcase_add_test(cases, no_device);
  tcase_add_test(cases, unknown_row_is_an_error);
  tcase_add_test(cases, errors_that_lose_the_device);
  tcase_add_loop_test(cases, every_runtime_call_fails_once, 0,
                      2 * (int)(sizeof errors / sizeof *errors));
  tcase_add_test(cases, every_call_of_long_transfers_fails_once);
  tcase_add_test(cases, host_memory_fails);
  tcase_add_test(cases, a_call_that_failed_leaves_nothing_to_write);
  tcase_add_test(cases, a_call_that_failed_keeps_what_is_owed);
  tcase_add_test(cases, more_memory_than_there_is);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
