// SPDX-License-Identifier: Apache-2.0
// Storage codes on a device: every call with every memory, with a queue and without, against the
// same code on the row `scalar`, byte for byte.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "lib/ctx.h"
#include "tests/cuda/gpu.h"
#include "tests/support/test_main.h"
#include "weft/storage.h"

static bool reduced(void) { return getenv("WEFT_GPU_REDUCED") != NULL; }

// One stripe: what it must be (host), and the same in some memory of the device context.
typedef struct pair {
  weft_code *code, *device_code;
  size_t k, m, bytes, whole; // whole: of a parity shard
  uint8_t *expect;           // (k + m, whole)
  gpu_buffer buffer;         // likewise
  uint8_t *shards[2][WEFT_MAX_SHARDS];
  weft_stripe host, stripe;
} pair;

static void pair_new(pair *p, weft_ctx *scalar, weft_ctx *ctx, const weft_code_options *options,
                     size_t bytes, weft_mem mem) {
  *p = (pair){.k = options->k, .m = options->m, .bytes = bytes};
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

static void pair_compare(const pair *p, const char *what) {
  uint8_t *got = gpu_read(&p->buffer);
  for (size_t i = 0; i < p->k + p->m; i++)
    if (memcmp(got + i * p->whole, p->shards[0][i], p->whole) != 0)
      ck_abort_msg("%s: %s, k %zu m %zu, %zu bytes, memory %d: shard %zu differs (row %s)", what,
                   weft_code_name(p->code), p->k, p->m, p->bytes, (int)p->stripe.mem, i,
                   weft_ctx_backend(p->buffer.ctx));
  free(got);
}

static void pair_free(pair *p) {
  gpu_buffer_free(&p->buffer);
  free(p->expect);
  weft_code_free(p->device_code);
  weft_code_free(p->code);
}

// Encodes, loses up to m shards and recovers them, updates one, verifies before and after damage.
static void exercise(pair *p, weft_ctx *ctx, weft_queue *queue) {
  EXPECT_OK(weft_code_encode(p->code, &p->host, 1, NULL));
  EXPECT_OK(weft_code_encode(p->device_code, &p->stripe, 1, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  pair_compare(p, "encode");

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
  pair_compare(p, "recover");

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
  pair_compare(p, "update");
  gpu_buffer_free(&there);
  // The data shard itself was not written, so every parity shard that it is in is wrong now.
  bool same = memcmp(fresh, p->shards[0][index], p->bytes) == 0;
  free(fresh);
  EXPECT_OK(weft_code_verify(p->device_code, &p->stripe, wrong, &wrong_count, queue));
  EXPECT(same ? wrong_count == 0 : wrong_count == p->m);
}

static const weft_code_options shapes[] = {
    {.name = "vandermonde", .k = 10, .m = 4},   {.name = "cauchy", .k = 5, .m = 2},
    {.name = "reed_sol_van", .k = 33, .m = 16}, {.name = "raid6", .k = 8, .m = 2},
    {.name = "cauchy_good", .k = 6, .m = 3},    {.name = "cauchy_orig", .k = 10, .m = 4, .w = 8},
    {.name = "gcrs", .k = 4, .m = 2},           {.name = "perasure", .k = 7, .m = 2, .w = 5},
    {.name = "cauchy", .k = 3, .m = 40},
};

START_TEST(every_memory) {
  if (gpu_skip("every_memory"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  const size_t sizes[] = {1, 1000, 4096, 65536, 100003};
  for (size_t i = 0; i < (reduced() ? 2 : sizeof shapes / sizeof *shapes); i++)
    for (int mem = 0; mem < 3; mem++) {
      pair p;
      const size_t bytes = reduced() ? 1000 : sizes[fixture_below(5)];
      pair_new(&p, scalar, ctx, &shapes[i], bytes, (weft_mem)mem);
      exercise(&p, ctx, fixture_below(2) ? queue : NULL);
      pair_free(&p);
    }
  weft_queue_free(queue);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// More than one piece of a pipeline, from and to host memory.
START_TEST(in_pieces) {
  if (gpu_skip("in_pieces") || reduced())
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *fast = fixture_ctx(NULL, 2);
  for (size_t i = 0; i < 6; i += 4)
    for (int mem = 0; mem < 2; mem++) {
      pair p;
      pair_new(&p, fast, ctx, &shapes[i], ((size_t)9 << 20) + 77, (weft_mem)mem);
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
      pair_compare(&p, "encode in pieces");
      pair_free(&p);
    }
  weft_ctx_free(fast);
  weft_ctx_free(ctx);
}
END_TEST

// Any call of the runtime fails: what lies in host memory is computed by the CPU.
START_TEST(fails_over) {
  if (gpu_skip("fails_over"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  pair p;
  pair_new(&p, scalar, ctx, &shapes[0], 200000, WEFT_MEM_HOST);
  EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
  for (size_t skip = 0; skip < 40; skip += 1 + fixture_below(3)) {
    for (size_t i = 0; i < p.m; i++)
      memset(p.shards[1][p.k + i], 0, p.whole);
    weft_cuda_inject(skip, 2, 0);
    const weft_status status = weft_code_encode(p.device_code, &p.stripe, 1, NULL);
    weft_cuda_inject(0, 0, 0);
    // Where not even a stream could be had, the call says so.
    EXPECT(status == WEFT_OK || status == WEFT_E_DEVICE_NOMEM);
    if (status == WEFT_OK)
      pair_compare(&p, "after a fault");
  }
  pair_free(&p);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// The device's rows and the CPU's give the same shards.
START_TEST(rows_agree) {
  weft_ctx *scalar = fixture_ctx("scalar", 1);
  if (gpu_skip_row("rows_agree", _i)) {
    weft_ctx_free(scalar);
    return;
  }
  weft_ctx *ctx = fixture_ctx(gpu_row_name(_i), 1);
  const weft_code_options some[] = {{.name = "cauchy", .k = 6, .m = 3},
                                    {.name = "gcrs", .k = 5, .m = 3}};
  for (size_t i = 0; i < 2; i++) {
    pair p;
    pair_new(&p, scalar, ctx, &some[i], 8192, WEFT_MEM_DEVICE);
    EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
    EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
    pair_compare(&p, gpu_row_name(_i));
    pair_free(&p);
  }
  weft_ctx_free(ctx);
  weft_ctx_free(scalar);
}
END_TEST

// A test that failed may have left its fault behind.
static void no_faults(void) { weft_cuda_inject(0, 0, 0); }

int main(void) {
  Suite *suite = suite_create("storage on a device");
  TCase *tests = tcase_create("storage");
  tcase_set_timeout(tests, 300);
  tcase_add_checked_fixture(tests, no_faults, no_faults);
  tcase_add_test(tests, every_memory);
  tcase_add_test(tests, in_pieces);
  tcase_add_test(tests, fails_over);
  tcase_add_loop_test(tests, rows_agree, 0, gpu_row_count());
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
