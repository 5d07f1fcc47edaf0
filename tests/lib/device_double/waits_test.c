// SPDX-License-Identifier: Apache-2.0
// Calls on a queue that is never found idle use its staging memory over and over. They wait for the
// oldest work, and never for all of a stream: then the device would have nothing left to do.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/gpu.h"
#include "tests/support/test_main.h"

enum { N = 16, TURNS = 3 }; // of the memory that a queue stages with

typedef struct shape {
  size_t m, k; // packets of a call; bytes
  bool decodes;
} shape;

static const shape shapes[] = {
    {1, 1, false},      // the smallest chunks
    {8, 1400, false},   // several of them make up a mark
    {40, 1400, false},  // less than is computed in pieces
    {300, 1400, false}, // results leave on another stream than coefficients arrive on
    {N, 30, true},      {N, 3000, true}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(calls_do_not_drain_a_queue) {
  const shape *s = &shapes[_i];
  const size_t bytes = s->m * s->k, calls = TURNS * WEFT_STAGED_MOST / (bytes + 512) + 1;
  fixture_start(920 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  fixture_source source = fixture_source_new(ctx, N, s->k, N * s->k, NULL);
  uint8_t *c = fixture_malloc(s->m * N), *want = fixture_malloc(bytes);
  uint8_t *out = fixture_malloc(bytes), *coded = fixture_malloc(N * s->k);
  fixture_fill(c, s->m * N);
  for (size_t i = 0; s->decodes && i < N * N; i++) // triangular
    c[i] = i % N == i / N ? 1 : i % N < i / N ? c[i] : 0;
  weft_decode_job *jobs = calloc(calls, sizeof *jobs);
  gpu_reference(want, c, source.data, s->m, N, s->k);
  memcpy(coded, want, s->decodes ? bytes : 0);
  const size_t waits = weft_double_stream_waits();
  for (size_t i = 0; i < calls; i++) {
    const weft_batch batch = {.count = s->m, .payload = out, .payload_stride = s->k};
    jobs[i] = (weft_decode_job){.blocks = N,
                                .block_bytes = s->k,
                                .coefficients = c,
                                .coefficients_stride = N,
                                .payload = coded,
                                .payload_stride = s->k,
                                .out = out,
                                .out_stride = s->k};
    EXPECT_OK(s->decodes ? weft_decode_batch(ctx, &jobs[i], 1, queue)
                         : weft_encoder_combine(source.encoder, s->m, c, N, &batch, queue));
  }
  ck_assert_uint_eq(weft_double_stream_waits() - waits, 0);
  EXPECT_OK(weft_queue_wait(queue));
  EXPECT(memcmp(out, s->decodes ? source.data : want, bytes) == 0);
  weft_queue_free(queue);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
  free(c), free(want), free(out), free(coded), free(jobs);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("waits for a device");
  TCase *tcase = tcase_create("waits");
  tcase_add_loop_test(tcase, calls_do_not_drain_a_queue, 0, SHAPES);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
