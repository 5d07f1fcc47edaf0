// SPDX-License-Identifier: Apache-2.0
// A stripe on the device and the expected one (storage_cases.h).
#include <stdlib.h>
#include <string.h>

#include "lib/ctx.h"
#include "tests/cuda/storage_cases.h"

const weft_code_options storage_shapes[STORAGE_SHAPES] = {
    {.name = "vandermonde", .k = 10, .m = 4},   {.name = "cauchy", .k = 5, .m = 2},
    {.name = "reed_sol_van", .k = 33, .m = 16}, {.name = "raid6", .k = 8, .m = 2},
    {.name = "cauchy_good", .k = 6, .m = 3},    {.name = "cauchy_orig", .k = 10, .m = 4, .w = 8},
    {.name = "gcrs", .k = 4, .m = 2},           {.name = "perasure", .k = 7, .m = 2, .w = 5},
    {.name = "cauchy", .k = 3, .m = 40},
};

bool storage_reduced(void) { return getenv("WEFT_GPU_REDUCED") != NULL; }

void storage_same_bytes(const uint8_t *got, const uint8_t *wanted, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (got[i] != wanted[i])
      ck_abort_msg("byte %zu of %zu is %d, not %d", i, bytes, got[i], wanted[i]);
}

void storage_pair_new(storage_pair *p, weft_ctx *scalar, weft_ctx *ctx,
                      const weft_code_options *options, size_t bytes, weft_mem mem) {
  *p = (storage_pair){.k = options->k, .m = options->m, .bytes = bytes};
  EXPECT_OK(weft_code_new(scalar, options, &p->code));
  EXPECT_OK(weft_code_new(ctx, options, &p->device_code));
  p->whole = weft_code_parity_bytes(p->code, bytes);
  const size_t all = (p->k + p->m) * p->whole;
  p->expect = fixture_malloc(all);
  fixture_fill(p->expect, all);
  p->buffer = gpu_input(ctx, mem, p->expect, all);
  for (size_t i = 0; i < p->k + p->m; i++) {
    p->shards[0][i] = p->expect + i * p->whole;
    p->shards[1][i] = p->buffer.at + i * p->whole;
  }
  p->host = (weft_stripe){.shards = p->shards[0], .bytes = bytes};
  p->stripe = (weft_stripe){.shards = p->shards[1], .bytes = bytes, .mem = mem};
}

void storage_pair_compare(const storage_pair *p, const char *what) {
  uint8_t *got = gpu_read(&p->buffer);
  for (size_t i = 0; i < p->k + p->m; i++)
    if (memcmp(got + i * p->whole, p->shards[0][i], p->whole) != 0)
      ck_abort_msg("%s: %s, k %zu m %zu, %zu bytes, memory %d: shard %zu differs (row %s)", what,
                   weft_code_name(p->code), p->k, p->m, p->bytes, (int)p->stripe.mem, i,
                   weft_ctx_backend(p->buffer.ctx));
  free(got);
}

void storage_pair_free(storage_pair *p) {
  gpu_buffer_free(&p->buffer);
  free(p->expect);
  weft_code_free(p->device_code);
  weft_code_free(p->code);
}

void storage_pair_lose(storage_pair *p, weft_ctx *ctx, const uint8_t *lost, size_t count,
                       weft_queue *queue) {
  const weft_erasures erasures = {.lost = lost, .lost_count = count};
  void *stream;
  uint8_t *bad = fixture_malloc(p->whole);
  memset(bad, 0x3c, p->whole);
  EXPECT_OK(weft_device_stream_new(ctx->device, &stream));
  for (size_t i = 0; i < count; i++)
    EXPECT_OK(weft_device_copy(ctx->device, p->shards[1][lost[i]], p->stripe.mem, bad,
                               WEFT_MEM_HOST, lost[i] < p->k ? p->bytes : p->whole, stream));
  EXPECT_OK(weft_device_stream_wait(ctx->device, stream));
  weft_device_stream_free(ctx->device, stream);
  free(bad);
  EXPECT_OK(weft_code_recover(p->device_code, &erasures, &p->stripe, 1, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  storage_pair_compare(p, "recover");
}

void storage_pair_exercise(storage_pair *p, weft_ctx *ctx, weft_queue *queue) {
  EXPECT_OK(weft_code_encode(p->code, &p->host, 1, NULL));
  EXPECT_OK(weft_code_encode(p->device_code, &p->stripe, 1, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  storage_pair_compare(p, "encode");

  uint8_t lost[WEFT_MAX_SHARDS];
  const size_t count = 1 + fixture_below(p->m);
  for (size_t i = 0; i < count; i++) {
    bool again = true;
    while (again) {
      lost[i] = (uint8_t)fixture_below(p->k + p->m);
      again = false;
      for (size_t j = 0; j < i; j++)
        again = again || lost[j] == lost[i];
    }
  }
  storage_pair_lose(p, ctx, lost, count, queue);

  uint8_t wrong[WEFT_MAX_SHARDS];
  size_t wrong_count = 99;
  EXPECT_OK(weft_code_verify(p->device_code, &p->stripe, wrong, &wrong_count, queue));
  EXPECT(wrong_count == 0);

  const size_t index = fixture_below(p->k);
  uint8_t *fresh = fixture_malloc(p->bytes);
  fixture_fill(fresh, p->bytes);
  gpu_buffer there = gpu_input(ctx, p->stripe.mem, fresh, p->bytes);
  EXPECT_OK(weft_code_update(p->code, index, p->shards[0][index], fresh, &p->host, NULL));
  EXPECT_OK(
      weft_code_update(p->device_code, index, p->shards[1][index], there.at, &p->stripe, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  storage_pair_compare(p, "update");
  gpu_buffer_free(&there);
  // The data shard itself was not written, so every parity shard that depends on it is wrong now.
  bool same = memcmp(fresh, p->shards[0][index], p->bytes) == 0;
  free(fresh);
  EXPECT_OK(weft_code_verify(p->device_code, &p->stripe, wrong, &wrong_count, queue));
  EXPECT(same ? wrong_count == 0 : wrong_count == p->m);
}
