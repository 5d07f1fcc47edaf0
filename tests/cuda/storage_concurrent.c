// SPDX-License-Identifier: Apache-2.0
// Calls that may run at the same time: on one queue, or from several threads (storage_cases.h).
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/storage_cases.h"

// Calls follow each other on a queue, and some read or write what an earlier one does: kernels that
// can start before the previous one ends must not do so then.
START_TEST(calls_follow) {
  if (gpu_skip("calls_follow"))
    return;
  enum { POOL = 26, KINDS = 4, CALLS = 60, LONG = 10 << 20, SHORT = 96 << 10, TURNS = 3 };
  weft_ctx *host_ctx = fixture_ctx(NULL, 1);
  static const weft_code_options some[] = {{.name = "cauchy", .k = 2, .m = 2},
                                           {.name = "gcrs", .k = 2, .m = 2, .w = 8},
                                           {.name = "cauchy", .k = 3, .m = 1},
                                           {.name = "cauchy", .k = 16, .m = 8}}; // by factors
  for (size_t turn = 0; turn < TURNS; turn++) {
    const size_t bytes = storage_reduced() || turn == TURNS - 1 ? SHORT : LONG;
    // First kernels are made at once, and later none, so that bytes use the tensor kernel.
    const size_t compile_after = turn == 1 ? SIZE_MAX : 1;
    weft_ctx *ctx;
    EXPECT_OK(
        weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda", .compile_after = compile_after}));
    weft_code *codes[2][KINDS];
    for (size_t c = 0; c < KINDS; c++) {
      EXPECT_OK(weft_code_new(host_ctx, &some[c], &codes[0][c]));
      EXPECT_OK(weft_code_new(ctx, &some[c], &codes[1][c]));
    }
    uint8_t *expect = fixture_malloc(POOL * bytes);
    fixture_fill(expect, POOL * bytes);
    gpu_buffer buffer = gpu_input(ctx, WEFT_MEM_DEVICE, expect, POOL * bytes);
    weft_queue *queue;
    EXPECT_OK(weft_queue_new(ctx, &queue));
    for (size_t i = 0; i < CALLS; i++) {
      // stripes side by side or across each other
      const size_t c = fixture_below(KINDS);
      const size_t first = fixture_below(POOL + 1 - some[c].k - some[c].m);
      const weft_stripe host = {
          .base = expect + first * bytes, .stride = bytes, .bytes = bytes, .mem = WEFT_MEM_HOST};
      weft_stripe there = host;
      there.base = buffer.at + first * bytes;
      there.mem = WEFT_MEM_DEVICE;
      EXPECT_OK(weft_code_encode(codes[1][c], &there, 1, queue));
      EXPECT_OK(weft_code_encode(codes[0][c], &host, 1, NULL));
    }
    EXPECT_OK(weft_queue_wait(queue));
    uint8_t *got = gpu_read(&buffer);
    for (size_t i = 0; i < POOL; i++)
      if (memcmp(got + i * bytes, expect + i * bytes, bytes) != 0)
        ck_abort_msg("calls that follow each other, shards of %zu bytes: shard %zu differs", bytes,
                     i);
    free(got);
    weft_queue_free(queue);
    gpu_buffer_free(&buffer);
    free(expect);
    for (size_t c = 0; c < KINDS; c++) {
      weft_code_free(codes[1][c]);
      weft_code_free(codes[0][c]);
    }
    weft_ctx_free(ctx);
  }
  weft_ctx_free(host_ctx);
}
END_TEST

// A thread with its own context and stripe.
typedef struct neighbour {
  storage_pair p;
  size_t calls;
  weft_status status;
} neighbour;

static void *encode_often(void *user) {
  neighbour *n = user;
  for (size_t i = 0; i < n->calls && n->status == WEFT_OK; i++)
    n->status = weft_code_encode(n->p.device_code, &n->p.stripe, 1, NULL);
  return NULL;
}

// Threads that launch the same kernel for different shapes do not affect each other's shared
// memory.
START_TEST(contexts_side_by_side) {
  enum { NEIGHBOURS = 4, BYTES = 96 << 10 };
  static const size_t k[NEIGHBOURS] = {33, 45, 41, 37}; // all use one variant of the tensor kernel
  if (gpu_skip("contexts_side_by_side"))
    return;
  weft_ctx *scalar = fixture_ctx(NULL, 1), *ctx[NEIGHBOURS];
  static neighbour all[NEIGHBOURS];
  pthread_t thread[NEIGHBOURS];
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    EXPECT_OK(
        weft_ctx_new(&ctx[i], &(weft_ctx_options){.backend = "cuda", .compile_after = SIZE_MAX}));
    all[i] = (neighbour){.calls = storage_reduced() ? 4 : 300, .status = WEFT_OK};
    storage_pair_new(&all[i].p, scalar, ctx[i],
                     &(weft_code_options){.name = "cauchy", .k = k[i], .m = 16}, BYTES,
                     WEFT_MEM_DEVICE);
    EXPECT_OK(weft_code_encode(all[i].p.code, &all[i].p.host, 1, NULL));
  }
  for (size_t i = 0; i < NEIGHBOURS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, encode_often, &all[i]), 0);
  for (size_t i = 0; i < NEIGHBOURS; i++)
    pthread_join(thread[i], NULL);
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    EXPECT_OK(all[i].status);
    storage_pair_compare(&all[i].p, "side by side");
    storage_pair_free(&all[i].p);
    weft_ctx_free(ctx[i]);
  }
  weft_ctx_free(scalar);
}
END_TEST

void storage_add_calls_follow(TCase *cases) { tcase_add_test(cases, calls_follow); }

void storage_add_contexts(TCase *cases) { tcase_add_test(cases, contexts_side_by_side); }
