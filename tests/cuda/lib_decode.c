// SPDX-License-Identifier: Apache-2.0
// Batch decoding on a device: every row, any memory, singular matrices among the others.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/lib_cases.h"

typedef struct decoding {
  size_t n, k;
  uint8_t *c, *data;
  gpu_buffer coded, out, matrix;
  bool singular;
} decoding;

// At once, or in a queue.
static void decode(weft_ctx *ctx, weft_decode_job *jobs, size_t count) {
  weft_queue *queue = NULL;
  if (fixture_below(2))
    EXPECT_OK(weft_queue_new(ctx, &queue));
  EXPECT_OK(weft_decode_batch(ctx, jobs, count, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  weft_queue_free(queue);
}

void lib_decode_once(weft_ctx *ctx, size_t most_jobs, size_t most_n) {
  const size_t count = 1 + fixture_below(most_jobs);
  const weft_mem mem = lib_any_memory();
  const bool together = fixture_below(2); // one array of matrices, all of one n
  const weft_mem matrix_mem = lib_any_memory();
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
      d->matrix =
          gpu_input(ctx, fixture_below(2) ? matrix_mem : lib_any_memory(), d->c, d->n * d->n);
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
  decode(ctx, jobs, count);
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
  free(all);
  free(jobs);
}

START_TEST(decode_many_segments) {
  if (gpu_skip_row("decode_many_segments", _i))
    return;
  fixture_start(200 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx(gpu_row_name(_i), 1);
  for (int round = 0; round < (lib_reduced() ? 1 : _i < 2 ? 12 : 2); round++)
    lib_decode_once(ctx, lib_reduced() ? 6 : 40, lib_reduced() ? 70 : 150);
  weft_ctx_free(ctx);
}
END_TEST

// Enough segments in the host's memory that they go over the bus in pieces: next to each other,
// with gaps, and in rows at addresses of their own.
static void decode_pieces(weft_ctx *ctx, weft_mem mem, bool dense, bool by_rows) {
  const size_t n = 40, k = 4000 + fixture_below(200), count = 40, bytes = n * k;
  const size_t stride = dense ? k : k + 1 + fixture_below(40), room = n * stride;
  uint8_t *data = fixture_malloc(count * bytes), *coded = fixture_malloc(count * room);
  uint8_t *c = fixture_malloc(count * n * n), *one = fixture_malloc(bytes);
  const uint8_t **rows = fixture_malloc(count * n * sizeof *rows);
  weft_decode_job *jobs = calloc(count, sizeof *jobs);
  fixture_fill(data, count * bytes);
  fixture_fill(c, count * n * n);
  memset(c + n * n, 0, n); // a row of zeros: singular
  for (size_t i = 0; i < count; i++) {
    gpu_reference(one, c + i * n * n, data + i * bytes, n, n, k);
    for (size_t r = 0; r < n; r++)
      memcpy(coded + i * room + r * stride, one + r * k, k);
  }
  gpu_buffer in = gpu_input(ctx, mem, coded, count * room);
  gpu_buffer out = gpu_output(ctx, mem, count * room);
  for (size_t i = 0; i < count * n; i++)
    rows[i] = in.at + i * stride;
  for (size_t i = 0; i < count; i++)
    jobs[i] = (weft_decode_job){.blocks = n,
                                .block_bytes = k,
                                .coefficients = c + i * n * n,
                                .coefficients_stride = n,
                                .payload_rows = by_rows ? rows + i * n : NULL,
                                .payload = by_rows ? NULL : in.at + i * room,
                                .payload_stride = stride,
                                .out = out.at + i * room,
                                .out_stride = stride,
                                .mem = mem};
  decode(ctx, jobs, count);
  uint8_t *got = gpu_read(&out);
  EXPECT_STATUS(jobs[1].status, WEFT_E_SINGULAR);
  for (size_t i = 0; i < count; i++) {
    if (jobs[i].status == WEFT_E_SINGULAR) // a random matrix is once in 250
      continue;
    EXPECT_OK(jobs[i].status);
    for (size_t r = 0; r < n; r++) {
      const uint8_t *row = got + i * room + r * stride;
      EXPECT(memcmp(row, data + i * bytes + r * k, k) == 0);
      for (size_t at = k; at < stride; at++)
        EXPECT(row[at] == out.poison);
    }
  }
  gpu_buffer_free(&in);
  gpu_buffer_free(&out);
  free(data), free(coded), free(c), free(one), free(rows), free(jobs), free(got);
}

START_TEST(decode_over_the_bus) {
  if (gpu_skip("decode_over_the_bus"))
    return;
  fixture_start(250 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  decode_pieces(ctx, _i & 1 ? WEFT_MEM_HOST : WEFT_MEM_PINNED, (_i & 2) != 0, (_i & 4) != 0);
  weft_ctx_free(ctx);
}
END_TEST

void lib_add_decode_tests(TCase *cases) {
  tcase_add_loop_test(cases, decode_over_the_bus, 0, 8);
  tcase_add_loop_test(cases, decode_many_segments, 0, gpu_row_count());
}
