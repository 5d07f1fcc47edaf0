// SPDX-License-Identifier: Apache-2.0
// Queues on a device: calls do not wait, and the caller's own streams work.
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "lib/ctx.h"
#include "tests/cuda/lib_cases.h"
#include "weft/cuda.h"

// Behind a product that takes long, calls with pinned and device memory return at once: the queue
// is still busy then. Calls with host memory do not wait either.
START_TEST(nothing_waits_with_a_queue) {
  if (lib_reduced() || gpu_skip("nothing_waits_with_a_queue"))
    return;
  fixture_start(170);
  weft_ctx *ctx = fixture_ctx(gpu_slowest_row(), 1);
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
    // The first call allocates memory for staging, which does wait.
    for (int warm = 0; warm < 2; warm++) {
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

// A queue can wrap a stream of the caller's, which the caller may wait for itself and keeps.
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
  lib_coding c;
  lib_coding_start(&c, ctx, queue, 20, 300, 50);
  EXPECT_OK(weft_encoder_batch(c.encoder, &c.batch, queue));
  EXPECT_OK(weft_device_stream_wait(ctx->device, stream)); // the caller waits in its own way
  EXPECT_OK(weft_queue_poll(queue));
  lib_coding_finish(&c);
  weft_queue_free(queue);
  EXPECT_OK(weft_device_stream_wait(ctx->device, stream)); // it still exists
  weft_device_stream_free(ctx->device, stream);
  weft_ctx_free(ctx);
}
END_TEST

// Once a poll reports success, results are in host memory, where nothing is written before that; of
// two calls that write to the same place the later one's results remain.
START_TEST(a_poll_that_says_so_has_delivered) {
  if (gpu_skip("a_poll_that_says_so_has_delivered"))
    return;
  for (uint64_t round = 0; round < 8; round++) {
    fixture_start(350 + round);
    weft_ctx *ctx = fixture_ctx("cuda", 1);
    weft_queue *queue;
    EXPECT_OK(weft_queue_new(ctx, &queue));
    const weft_encoder_options options = {.seeded = true, .first_seed = fixture_next()};
    const size_t n = 20, k = 300, bytes = 50 * k;
    fixture_source source = fixture_source_new(ctx, n, k, n * k, &options);
    weft_encoder *again;
    EXPECT_OK(weft_encoder_new(source.segment, &options, &again));
    gpu_buffer polled = gpu_output(ctx, WEFT_MEM_HOST, bytes);
    gpu_buffer waited = gpu_output(ctx, WEFT_MEM_HOST, bytes);
    weft_batch batch = {.count = bytes / k, .payload = polled.at, .payload_stride = k};
    for (int call = 0; call < 2; call++)
      EXPECT_OK(weft_encoder_batch(source.encoder, &batch, queue));
    weft_status status;
    while ((status = weft_queue_poll(queue)) == WEFT_PENDING)
      for (size_t i = 0; i < bytes; i++)
        EXPECT(polled.at[i] == polled.poison);
    EXPECT_OK(status);
    batch.payload = waited.at;
    for (int call = 0; call < 2; call++)
      EXPECT_OK(weft_encoder_batch(again, &batch, NULL));
    EXPECT(memcmp(polled.at, waited.at, bytes) == 0);
    gpu_buffer_free(&polled);
    gpu_buffer_free(&waited);
    weft_encoder_free(again);
    weft_queue_free(queue);
    fixture_source_free(&source);
    weft_ctx_free(ctx);
  }
}
END_TEST

// Results on a queue are decoded by the next call on it, in pieces on other streams.
START_TEST(pieces_wait_for_what_is_on_the_queue) {
  enum { JOBS = 12, BLOCKS = 16, BYTES = 16384, ALL = JOBS * BLOCKS };
  if (gpu_skip("pieces_wait_for_what_is_on_the_queue"))
    return;
  fixture_start(340);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  fixture_source source = fixture_source_new(ctx, BLOCKS, BYTES, BLOCKS * BYTES, NULL);
  gpu_buffer coded = gpu_output(ctx, WEFT_MEM_PINNED, (size_t)ALL * BYTES);
  gpu_buffer out = gpu_output(ctx, WEFT_MEM_PINNED, (size_t)ALL * BYTES);
  uint8_t *vectors = fixture_malloc(ALL * BLOCKS);
  const weft_batch batch = {.count = ALL,
                            .coefficients = vectors,
                            .coefficients_stride = BLOCKS,
                            .payload = coded.at,
                            .payload_stride = BYTES,
                            .mem = WEFT_MEM_PINNED};
  weft_decode_job jobs[JOBS];
  for (size_t i = 0; i < JOBS; i++)
    jobs[i] = (weft_decode_job){.blocks = BLOCKS,
                                .block_bytes = BYTES,
                                .coefficients = vectors + i * BLOCKS * BLOCKS,
                                .coefficients_stride = BLOCKS,
                                .payload = coded.at + i * BLOCKS * BYTES,
                                .payload_stride = BYTES,
                                .out = out.at + i * BLOCKS * BYTES,
                                .out_stride = BYTES,
                                .mem = WEFT_MEM_PINNED};
  EXPECT_OK(weft_encoder_batch(source.encoder, &batch, queue));
  EXPECT_OK(weft_decode_batch(ctx, jobs, JOBS, queue));
  EXPECT_OK(weft_queue_wait(queue));
  uint8_t *got = gpu_read(&out);
  for (size_t i = 0; i < JOBS; i++)
    if (jobs[i].status == WEFT_OK)
      EXPECT(memcmp(got + i * BLOCKS * BYTES, source.data, BLOCKS * BYTES) == 0);
    else
      EXPECT_STATUS(jobs[i].status, WEFT_E_SINGULAR);
  free(got);
  free(vectors);
  gpu_buffer_free(&coded);
  gpu_buffer_free(&out);
  weft_queue_free(queue);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// Memory that calls left on a queue stays in use until the device is done with it, even if a poll
// of the queue fails.
START_TEST(a_failing_poll_takes_nothing_back_too_early) {
  enum { UNKNOWN = 999 }; // of cudaError_t
  if (gpu_skip("a_failing_poll_takes_nothing_back_too_early"))
    return;
  for (uint64_t round = 0; round < 8; round++) {
    fixture_start(320 + round);
    weft_ctx *ctx = fixture_ctx("cuda", 1);
    weft_queue *queue;
    EXPECT_OK(weft_queue_new(ctx, &queue));
    const size_t n = 20, k = 300, m = 50;
    fixture_source source =
        fixture_source_new(ctx, n, k, n * k, &(weft_encoder_options){.seeded = true});
    uint8_t *out = fixture_malloc(m * k);
    const weft_batch batch = {.count = m, .payload = out, .payload_stride = k};
    EXPECT_OK(weft_encoder_batch(source.encoder, &batch, queue));
    weft_cuda_inject(0, UNKNOWN, 0);
    EXPECT_STATUS(weft_queue_poll(queue), WEFT_E_DEVICE);
    weft_cuda_inject(0, 0, 0);
    EXPECT_OK(weft_queue_wait(queue));
    EXPECT_OK(weft_encoder_batch(source.encoder, &batch, queue)); // the queue still works
    EXPECT_OK(weft_queue_wait(queue));
    weft_queue_free(queue);
    free(out);
    fixture_source_free(&source);
    weft_ctx_free(ctx);
  }
}
END_TEST

// A call that refuses another context's queue does not wait for it: it may be another thread's.
START_TEST(queues_of_other_contexts_are_left_alone) {
  if (!lib_reduced() || gpu_skip("queues_of_other_contexts_are_left_alone"))
    return; // a fast device may be done before it is asked
  fixture_start(330);
  weft_ctx *ctx = fixture_ctx("cuda", 1), *other = fixture_ctx("cuda", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(other, &queue));
  const size_t n = 20, k = 300, calls = 40;
  fixture_source source =
      fixture_source_new(other, n, k, n * k, &(weft_encoder_options){.seeded = true});
  uint8_t *out = fixture_malloc(calls * k);
  for (size_t i = 0; i < calls; i++) {
    const weft_batch batch = {.count = 1, .payload = out + i * k};
    EXPECT_OK(weft_encoder_batch(source.encoder, &batch, queue));
  }
  const weft_segment_options options[2] = {{.id = source.id, .data = source.data, .bytes = n * k},
                                           {.id = source.id, .data = source.data, .bytes = n * k}};
  weft_segment *segments[2];
  EXPECT_STATUS(weft_segment_new(ctx, options, queue, segments), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_segments_new(ctx, options, 2, queue, segments), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_queue_poll(queue), WEFT_PENDING);
  weft_queue_free(queue);
  free(out);
  fixture_source_free(&source);
  weft_ctx_free(other);
  weft_ctx_free(ctx);
}
END_TEST

// More calls at once than streams are kept: a call that gets no stream reports that, in its
// arrivals too. The device double aborts if a stream is left over or returned twice.
START_TEST(more_calls_at_once_than_spare_streams) {
  if (gpu_skip("more_calls_at_once_than_spare_streams"))
    return;
  enum { CALLS = WEFT_SPARE_STREAMS + 3, UNKNOWN = 999 };
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  uint8_t bytes[16] = {1};
  weft_decoder *decoder;
  const weft_segment_id id = fixture_id(4, sizeof bytes);
  EXPECT_OK(
      weft_decoder_new(ctx, &(weft_decoder_options){.id = id, .mem = WEFT_MEM_DEVICE}, &decoder));
  for (int round = 0; round < 2; round++) {
    weft_call calls[CALLS];
    for (size_t i = 0; i < CALLS; i++) {
      EXPECT_OK(weft_call_begin(ctx, NULL, &calls[i]));
      for (size_t j = 0; j < i; j++)
        EXPECT(calls[i].own.stream != calls[j].own.stream);
    }
    EXPECT(ctx->spares == 0);
    weft_arrival arrival = {.decoder = decoder,
                            .packet = {.id = id, .mode = WEFT_PACKET_SYSTEMATIC, .payload = bytes}};
    weft_cuda_inject(0, UNKNOWN, 0);
    EXPECT_STATUS(weft_decoders_add(&arrival, 1, WEFT_MEM_HOST, NULL), WEFT_E_DEVICE);
    weft_cuda_inject(0, 0, 0);
    EXPECT_STATUS(arrival.status, WEFT_E_DEVICE);
    for (size_t i = 0; i < CALLS; i++)
      EXPECT_OK(weft_call_end(ctx, &calls[i], WEFT_OK));
    EXPECT(ctx->spares == WEFT_SPARE_STREAMS);
    EXPECT_OK(weft_decoders_add(&arrival, 1, WEFT_MEM_HOST, NULL));
    EXPECT_STATUS(arrival.status, round ? WEFT_DEPENDENT : WEFT_OK);
  }
  weft_decoder_free(decoder);
  weft_ctx_free(ctx);
}
END_TEST

void lib_add_queue_tests(TCase *cases) {
  tcase_add_test(cases, nothing_waits_with_a_queue);
  tcase_add_test(cases, foreign_stream);
  tcase_add_test(cases, a_poll_that_says_so_has_delivered);
  tcase_add_test(cases, pieces_wait_for_what_is_on_the_queue);
  tcase_add_test(cases, a_failing_poll_takes_nothing_back_too_early);
  tcase_add_test(cases, queues_of_other_contexts_are_left_alone);
  tcase_add_test(cases, more_calls_at_once_than_spare_streams);
}
