// SPDX-License-Identifier: Apache-2.0
// Failing runtime calls, on every path of a code (storage_cases.h).
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "tests/cuda/storage_cases.h"

// Values of cudaError_t.
enum { MEMORY_ALLOCATION = 2, LAUNCH_FAILURE = 719 };

// Inversion on the device gives the same matrices as the CPU's closed form, and if the device fails
// the CPU's are used.
START_TEST(inverse_by_choice) {
  if (gpu_skip("inverse_by_choice"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 1), *scalar = fixture_ctx("scalar", 1);
  for (size_t i = 0; i < STORAGE_SHAPES; i++) {
    weft_code_options options = storage_shapes[i];
    options.device_inverse = true;
    weft_code *code, *expected;
    const weft_status status = weft_code_new(ctx, &options, &code);
    EXPECT_STATUS(weft_code_new(scalar, &options, &expected), WEFT_E_UNSUPPORTED);
    EXPECT_OK(weft_code_new(scalar, &storage_shapes[i], &expected));
    if (weft_code_word_bits(expected) != 8) {
      EXPECT(status == WEFT_E_UNSUPPORTED);
      weft_code_free(expected);
      continue;
    }
    EXPECT_OK(status);
    const size_t k = options.k, m = options.m;
    for (size_t round = 0; round < (storage_reduced() ? 4 : 20); round++) {
      uint8_t ids[WEFT_MAX_SHARDS];
      for (size_t s = 0; s < k + m; s++) { // a permutation: inputs, then outputs
        const size_t at = fixture_below(s + 1);
        ids[s] = ids[at];
        ids[at] = (uint8_t)s;
      }
      weft_plan *plan, *wanted;
      if (round % 2)
        weft_cuda_inject(fixture_below(8), round % 4 == 1 ? MEMORY_ALLOCATION : LAUNCH_FAILURE, 0);
      EXPECT_OK(weft_plan_new(code, ids, ids + k, m, &plan));
      weft_cuda_inject(0, 0, 0);
      EXPECT_OK(weft_plan_new(expected, ids, ids + k, m, &wanted));
      storage_same_bytes(weft_plan_matrix(plan), weft_plan_matrix(wanted), m * k);
      weft_plan_free(wanted);
      weft_plan_free(plan);
    }
    weft_code_free(expected);
    weft_code_free(code);
  }
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// Pinned shards are used in place: whole groups and tails, also with failing calls.
START_TEST(zero_copy) {
  if (gpu_skip("zero_copy"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 1), *scalar = fixture_ctx("scalar", 1);
  for (size_t i = 0; i < STORAGE_SHAPES; i++) {
    weft_code_options options = storage_shapes[i];
    options.zero_copy = true;
    storage_pair p;
    storage_pair_new(&p, scalar, ctx, &options, storage_reduced() ? 3001 : 70001, WEFT_MEM_PINNED);
    storage_pair_exercise(&p, ctx, NULL);
    for (size_t skip = 0; skip < 8; skip++) {
      weft_cuda_inject(skip, 2, 0);
      const weft_status status = weft_code_encode(p.device_code, &p.stripe, 1, NULL);
      weft_cuda_inject(0, 0, 0);
      EXPECT(status == WEFT_OK || status == WEFT_E_DEVICE_NOMEM);
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      if (status == WEFT_OK)
        storage_pair_compare(&p, "in place, after a fault");
    }
    storage_pair_free(&p);
  }
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// Host memory that a device works in.
typedef struct place {
  weft_mem mem;
  bool zero_copy;
} place;

static const place places[] = {
    {WEFT_MEM_HOST, false}, {WEFT_MEM_PINNED, false}, {WEFT_MEM_PINNED, true}};
enum { PLACES = sizeof places / sizeof *places };

static void pair_in(const place *where, storage_pair *p, weft_ctx *scalar, weft_ctx *ctx) {
  weft_code_options options = storage_shapes[0];
  options.zero_copy = where->zero_copy;
  storage_pair_new(p, scalar, ctx, &options, 200000, where->mem);
  EXPECT_OK(weft_code_encode(p->code, &p->host, 1, NULL));
}

static void spoil_parity(const storage_pair *p) {
  for (size_t i = 0; i < p->m; i++)
    memset(p->shards[1][p->k + i], 0, p->whole);
}

// Each runtime call fails, alone or with all that follow: without a queue the CPU then computes the
// stripes in host memory, even if the failure shows only at the end.
START_TEST(fails_over) {
  if (gpu_skip("fails_over"))
    return;
  const int errors[] = {MEMORY_ALLOCATION, LAUNCH_FAILURE};
  const int error = errors[_i % 2], lasting = _i / 2 % 2;
  const size_t count = 1 + (size_t)_i / 4 % 2;
  const place *const where = &places[_i / 8];
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  storage_pair p, small; // the second is always done by the CPU
  pair_in(where, &p, scalar, ctx);
  storage_pair_new(&small, scalar, ctx, &storage_shapes[0], 100, WEFT_MEM_HOST);
  EXPECT_OK(weft_code_encode(small.code, &small.host, 1, NULL));
  const weft_stripe both[] = {p.stripe, small.stripe};
  for (unsigned i = 0; i < 2; i++) { // afterwards the context keeps streams
    weft_cuda_inject(0, 0, 0);
    EXPECT_OK(weft_code_encode(p.device_code, both, count, NULL));
  }
  const size_t calls = weft_cuda_calls();
  // The last call, which waits for everything, is always among them.
  for (size_t back = 1; back <= calls; back += storage_reduced() ? 1 + fixture_below(3) : 1) {
    const size_t skip = calls - back;
    spoil_parity(&p);
    spoil_parity(&small);
    weft_cuda_inject(skip, error, lasting);
    const weft_status status = weft_code_encode(p.device_code, both, count, NULL);
    weft_cuda_inject(0, 0, 0);
    if (status != WEFT_OK)
      ck_abort_msg("memory %d%s, %zu stripes, error %d %s after %zu calls: status %d",
                   (int)where->mem, where->zero_copy ? " in place" : "", count, error,
                   lasting ? "lasting" : "once", skip, (int)status);
    storage_pair_compare(&p, "after a fault");
    if (count > 1)
      storage_pair_compare(&small, "beside it, after a fault");
  }
  storage_pair_free(&small);
  storage_pair_free(&p);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// Packets whose last group is incomplete are padded on other streams than the call's own, according
// to lists in pinned memory that are freed with the call: nothing may be left on a stream then,
// even if the device fails to order streams after each other.
START_TEST(nothing_is_left_beside_a_call_that_failed) {
  if (gpu_skip("nothing_is_left_beside_a_call_that_failed"))
    return;
  const weft_mem mem = _i % 2 ? WEFT_MEM_PINNED : WEFT_MEM_HOST;
  const int lasting = _i / 2;
  weft_ctx *ctx = fixture_ctx("cuda", 1), *scalar = fixture_ctx("scalar", 1);
  storage_pair p;
  storage_pair_new(&p, scalar, ctx, &storage_shapes[5], 200001, mem);
  EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
  for (unsigned i = 0; i < 2; i++) { // afterwards the context keeps streams
    weft_cuda_inject(0, 0, 0);
    EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
  }
  const size_t calls = weft_cuda_calls();
  for (size_t skip = 0; skip < calls; skip += storage_reduced() ? 1 + fixture_below(2) : 1) {
    spoil_parity(&p);
    weft_cuda_inject(skip, MEMORY_ALLOCATION, lasting);
    const weft_status status = weft_code_encode(p.device_code, &p.stripe, 1, NULL);
    weft_cuda_inject(0, 0, 0);
    EXPECT_OK(status);
    storage_pair_compare(&p, "after a fault");
    spoil_parity(&p);
    EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL)); // on the same streams
    storage_pair_compare(&p, "after the call that failed");
  }
  storage_pair_free(&p);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// The wait for stripes in host memory may meet the failure of a stripe in device memory, which is
// reported only once: the call must return it.
START_TEST(fails_beside_device_memory) {
  if (gpu_skip("fails_beside_device_memory"))
    return;
  const size_t host_bytes = _i % 2 ? 200000 : 100; // transferred; for the CPU
  weft_ctx *ctx = fixture_ctx("cuda", 1), *scalar = fixture_ctx("scalar", 1);
  weft_queue *queue = NULL;
  if (_i / 2)
    EXPECT_OK(weft_queue_new(ctx, &queue));
  storage_pair there, here;
  storage_pair_new(&there, scalar, ctx, &storage_shapes[0], 5000, WEFT_MEM_DEVICE);
  storage_pair_new(&here, scalar, ctx, &storage_shapes[0], host_bytes, WEFT_MEM_HOST);
  EXPECT_OK(weft_code_encode(here.code, &here.host, 1, NULL));
  const weft_stripe both[] = {there.stripe, here.stripe};
  for (size_t i = 0; i < 2; i++) { // afterwards the context keeps streams
    weft_cuda_inject(0, 0, 0);
    EXPECT_OK(weft_code_encode(there.device_code, both, 2, queue));
    if (queue)
      EXPECT_OK(weft_queue_wait(queue));
  }
  weft_cuda_inject(0, 0, 0);
  EXPECT_OK(weft_code_encode(there.device_code, both, 2, queue));
  const size_t calls = weft_cuda_calls(), waits = queue ? 1 : 2; // these come last
  for (size_t skip = 0; skip < calls; skip++) {
    if (queue)
      EXPECT_OK(weft_queue_wait(queue));
    spoil_parity(&here);
    weft_cuda_inject(skip, LAUNCH_FAILURE, 0);
    const weft_status status = weft_code_encode(there.device_code, both, 2, queue);
    weft_cuda_inject(0, 0, 0);
    if (status == WEFT_OK)
      storage_pair_compare(&here, "after a fault");
    if (status == WEFT_OK && skip + waits >= calls)
      ck_abort_msg("%zu bytes%s: wait %zu of %zu failed, and the call did not", host_bytes,
                   queue ? " on a queue" : "", skip + waits - calls + 1, waits);
  }
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  storage_pair_free(&here);
  storage_pair_free(&there);
  weft_queue_free(queue);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// With a queue, work on pinned memory is in progress when the call returns: errors show when the
// queue is waited for, and the next call works normally.
START_TEST(fails_on_a_queue) {
  if (gpu_skip("fails_on_a_queue"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  for (size_t i = 1; i < PLACES; i++) {
    storage_pair p;
    pair_in(&places[i], &p, scalar, ctx);
    EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, queue));
    weft_cuda_inject(0, LAUNCH_FAILURE, 0);
    EXPECT_STATUS(weft_queue_wait(queue), WEFT_E_DEVICE_LOST);
    weft_cuda_inject(0, 0, 0);
    spoil_parity(&p);
    EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, queue));
    EXPECT_OK(weft_queue_wait(queue));
    storage_pair_compare(&p, "after a fault that a queue told of");
    storage_pair_free(&p);
  }
  weft_queue_free(queue);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

void storage_add_inverse(TCase *cases) { tcase_add_test(cases, inverse_by_choice); }

void storage_add_zero_copy(TCase *cases) { tcase_add_test(cases, zero_copy); }

void storage_add_fails_over(TCase *cases) {
  tcase_add_loop_test(cases, fails_over, 0, 8 * PLACES);
  tcase_add_loop_test(cases, nothing_is_left_beside_a_call_that_failed, 0, 4);
  tcase_add_loop_test(cases, fails_beside_device_memory, 0, 4);
  tcase_add_test(cases, fails_on_a_queue);
}
