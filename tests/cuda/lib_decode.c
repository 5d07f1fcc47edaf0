// SPDX-License-Identifier: Apache-2.0
// Batch decoding on a device: every row, any memory, some singular matrices.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/lib_cases.h"

typedef struct decoding {
  size_t n, k;
  uint8_t *c, *data;
  gpu_buffer coded, out, matrix;
  bool singular;
} decoding;

// Decodes at once, or with a queue.
static void decode(weft_ctx *ctx, weft_decode_job *jobs, size_t count) {
  weft_queue *queue = NULL;
  if (fixture_below(2))
    EXPECT_OK(weft_queue_new(ctx, &queue));
  EXPECT_OK(weft_decode_batch(ctx, jobs, count, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  weft_queue_free(queue);
}

// What all segments of one batch have in common.
typedef struct batch {
  weft_ctx *ctx;
  weft_mem mem, matrix_mem;
  size_t most_n;
  bool together;       // one array of matrices, all of one n
  gpu_buffer matrices; // if together
} batch;

// Draws a shape that often equals the last one's, random data, and a matrix that may be singular.
static void draw(const batch *b, const decoding *last, size_t same_n, decoding *d) {
  const bool like_last = last && fixture_below(8) > 0;
  d->n = b->together ? same_n : like_last ? last->n : 1 + fixture_below(b->most_n);
  d->k = like_last ? last->k : 1 + fixture_below(1500);
  d->singular = d->n > 1 && fixture_below(9) == 0;
  d->c = fixture_malloc(d->n * d->n);
  d->data = fixture_malloc(d->n * d->k);
  fixture_fill(d->data, d->n * d->k);
  fixture_fill(d->c, d->n * d->n);
  if (d->singular) // the last row repeats the first
    memcpy(d->c + (d->n - 1) * d->n, d->c, d->n);
}

static weft_decode_job make_job(const batch *b, size_t i, decoding *d) {
  uint8_t *coded = fixture_malloc(d->n * d->k);
  gpu_reference(coded, d->c, d->data, d->n, d->n, d->k);
  d->coded = gpu_input(b->ctx, b->mem, coded, d->n * d->k);
  d->out = gpu_output(b->ctx, b->mem, d->n * d->k);
  free(coded);
  uint8_t *at = b->together ? b->matrices.at + i * d->n * d->n : NULL;
  if (at)
    memcpy(at, d->c, d->n * d->n);
  else
    d->matrix =
        gpu_input(b->ctx, fixture_below(2) ? b->matrix_mem : lib_any_memory(), d->c, d->n * d->n);
  return (weft_decode_job){.blocks = d->n,
                           .block_bytes = d->k,
                           .coefficients = at ? at : d->matrix.at,
                           .coefficients_stride = d->n,
                           .coefficients_mem = at ? b->matrices.mem : d->matrix.mem,
                           .payload = d->coded.at,
                           .payload_stride = d->k,
                           .out = d->out.at,
                           .out_stride = d->k,
                           .mem = b->mem};
}

static void expect_decoded(const decoding *d, weft_status status) {
  EXPECT(!d->singular || status == WEFT_E_SINGULAR);
  uint8_t *got = gpu_read(&d->out); // checks the margins too
  if (status == WEFT_OK)
    EXPECT(memcmp(got, d->data, d->n * d->k) == 0);
  else // a random matrix is singular once in 250
    EXPECT(status == WEFT_E_SINGULAR);
  free(got);
}

static void free_decoding(const batch *b, decoding *d) {
  free(d->c), free(d->data);
  gpu_buffer_free(&d->coded);
  gpu_buffer_free(&d->out);
  if (!b->together)
    gpu_buffer_free(&d->matrix);
}

void lib_decode_once(weft_ctx *ctx, size_t most_jobs, size_t most_n) {
  const size_t count = 1 + fixture_below(most_jobs);
  batch b = {.ctx = ctx, .most_n = most_n, .mem = lib_any_memory()};
  b.together = fixture_below(2);
  b.matrix_mem = lib_any_memory();
  const size_t same_n = 1 + fixture_below(most_n);
  if (b.together) {
    uint8_t *zero = calloc(count, same_n * same_n);
    b.matrices = gpu_input(ctx, WEFT_MEM_PINNED, zero, count * same_n * same_n);
    free(zero);
  }
  decoding *all = calloc(count, sizeof *all);
  weft_decode_job *jobs = calloc(count, sizeof *jobs);
  for (size_t i = 0; i < count; i++) {
    draw(&b, i ? &all[i - 1] : NULL, same_n, &all[i]);
    jobs[i] = make_job(&b, i, &all[i]);
  }
  decode(ctx, jobs, count);
  for (size_t i = 0; i < count; i++) {
    expect_decoded(&all[i], jobs[i].status);
    free_decoding(&b, &all[i]);
  }
  if (b.together)
    gpu_buffer_free(&b.matrices);
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

// Decodes enough segments in host memory that they are transferred in pieces: next to each other,
// with gaps, and with rows at separate addresses.
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
    if (jobs[i].status == WEFT_E_SINGULAR) // one random matrix in 250
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
