// SPDX-License-Identifier: Apache-2.0
// Storage codes on a device: every call with every memory, with and without a queue, compared byte
// for byte with the same code on the row `scalar` (storage_cases.h).
#include <stdlib.h>

#include "kernels/cuda/runtime.h"
#include "tests/cuda/storage_cases.h"
#include "tests/support/test_main.h"

// Every call of every code gives the right bytes with every kind of memory.
START_TEST(every_memory) {
  if (gpu_skip("every_memory"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  const size_t sizes[] = {1, 1000, 4096, 65536, 100003};
  for (size_t i = 0; i < STORAGE_SHAPES; i++)
    for (int mem = 0; mem < 3; mem++) {
      if (storage_reduced() && i > 1 && i != 4) // two codes of bytes, one of packets
        break;
      storage_pair p;
      const size_t bytes = storage_reduced() ? 1000 : sizes[fixture_below(5)];
      storage_pair_new(&p, scalar, ctx, &storage_shapes[i], bytes, (weft_mem)mem);
      storage_pair_exercise(&p, ctx, fixture_below(2) ? queue : NULL);
      storage_pair_free(&p);
    }
  weft_queue_free(queue);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// Shards in host memory are transferred in more than one piece.
START_TEST(in_pieces) {
  if (gpu_skip("in_pieces"))
    return;
  // More pieces than are in flight at once.
  const size_t bytes = (size_t)(storage_reduced() ? 3 : 9) << 20;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *fast = fixture_ctx(NULL, 2);
  for (size_t i = 0; i < 6; i += 4)
    for (int mem = 0; mem < 2; mem++) {
      storage_pair p;
      storage_pair_new(&p, fast, ctx, &storage_shapes[i], bytes + 77, (weft_mem)mem);
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
      storage_pair_compare(&p, "encode in pieces");
      storage_pair_free(&p);
    }
  weft_ctx_free(fast);
  weft_ctx_free(ctx);
}
END_TEST

// Calls that work on parts of a stripe in host memory come after what is on the queue: an encoding
// that is still in progress is neither compared nor overtaken.
START_TEST(parts_follow_the_queue) {
  if (gpu_skip("parts_follow_the_queue"))
    return;
  const size_t bytes = 20011;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *fast = fixture_ctx(NULL, 2);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  for (size_t i = 1; i < 6; i += 3)
    for (int mem = 0; mem < 3; mem++) {
      storage_pair p;
      size_t wrong = 99;
      weft_code_options options = storage_shapes[i];
      options.zero_copy = true; // so that pinned memory is worked on after the call, too
      storage_pair_new(&p, fast, ctx, &options, bytes, (weft_mem)mem);
      uint8_t *fresh = fixture_malloc(bytes);
      fixture_fill(fresh, bytes);
      gpu_buffer there = gpu_input(ctx, p.stripe.mem, fresh, bytes);
      EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, queue));
      EXPECT_OK(weft_code_verify(p.device_code, &p.stripe, NULL, &wrong, queue));
      EXPECT(wrong == 0);
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      EXPECT_OK(weft_code_update(p.code, 1, p.shards[0][1], fresh, &p.host, NULL));
      EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, queue));
      EXPECT_OK(weft_code_update(p.device_code, 1, p.shards[1][1], there.at, &p.stripe, queue));
      EXPECT_OK(weft_queue_wait(queue));
      storage_pair_compare(&p, "update after encode");
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      EXPECT_OK(weft_code_add_delta(p.code, 2, fresh, &p.host, NULL));
      EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, queue));
      EXPECT_OK(weft_code_add_delta(p.device_code, 2, there.at, &p.stripe, queue));
      EXPECT_OK(weft_queue_wait(queue));
      storage_pair_compare(&p, "delta after encode");
      gpu_buffer_free(&there);
      free(fresh);
      storage_pair_free(&p);
    }
  weft_queue_free(queue);
  weft_ctx_free(fast);
  weft_ctx_free(ctx);
}
END_TEST

// Shards that arrive one by one make the same parity in every memory. If none arrives, device
// memory, which nothing has written, cannot be cleared; where there are no bytes it need not be.
START_TEST(shards_arrive) {
  if (gpu_skip("shards_arrive"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  for (size_t i = 1; i < 6; i += 3)
    for (int mem = 0; mem < 3; mem++) {
      storage_pair p;
      weft_progress *progress;
      storage_pair_new(&p, scalar, ctx, &storage_shapes[i], 5003, (weft_mem)mem);
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      EXPECT_OK(weft_progress_new(p.device_code, &p.stripe, &progress));
      for (size_t j = 0; j < p.k; j++) {
        const size_t id = (j + 2) % p.k;
        EXPECT_OK(weft_progress_add(progress, id, p.shards[1][id], queue));
        EXPECT_STATUS(weft_progress_add(progress, id, p.shards[1][id], queue), WEFT_E_STATE);
      }
      EXPECT_OK(weft_progress_finish(progress));
      weft_progress_free(progress);
      EXPECT_OK(weft_queue_wait(queue));
      storage_pair_compare(&p, "progress");
      for (size_t some = 0; some < 2; some++) {
        weft_stripe stripe = p.stripe;
        stripe.bytes = some * p.bytes;
        EXPECT_OK(weft_progress_new(p.device_code, &stripe, &progress));
        EXPECT_STATUS(weft_progress_finish(progress),
                      some && p.stripe.mem == WEFT_MEM_DEVICE ? WEFT_E_UNSUPPORTED : WEFT_OK);
        weft_progress_free(progress);
      }
      storage_pair_free(&p);
    }
  weft_queue_free(queue);
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
    storage_pair p;
    storage_pair_new(&p, scalar, ctx, &some[i], 8192, WEFT_MEM_DEVICE);
    EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
    EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
    storage_pair_compare(&p, gpu_row_name(_i));
    storage_pair_free(&p);
  }
  weft_ctx_free(ctx);
  weft_ctx_free(scalar);
}
END_TEST

static void add_every_memory(TCase *cases) { tcase_add_test(cases, every_memory); }

static void add_in_pieces(TCase *cases) { tcase_add_test(cases, in_pieces); }

static void add_parts(TCase *cases) {
  tcase_add_test(cases, parts_follow_the_queue);
  tcase_add_test(cases, shards_arrive);
}

static void add_rows_agree(TCase *cases) {
  tcase_add_loop_test(cases, rows_agree, 0, gpu_row_count());
}

// A failed test may have left its fault injected.
static void no_faults(void) { weft_cuda_inject(0, 0, 0); }

int main(void) {
  Suite *suite = suite_create("storage on a device");
  // Each part has its own case, so that slow checkers can run one each (CK_RUN_CASE).
  static const struct {
    const char *name;
    void (*add)(TCase *);
  } parts[] = {{"memory", add_every_memory},
               {"pieces", add_in_pieces},
               {"parts", add_parts},
               {"stripes", storage_add_many_stripes},
               {"follow", storage_add_calls_follow},
               {"contexts", storage_add_contexts},
               {"groups", storage_add_groups},
               {"inverse", storage_add_inverse},
               {"zero_copy", storage_add_zero_copy},
               {"fails_over", storage_add_fails_over},
               {"rows", add_rows_agree},
               {"own_matrix", storage_add_own_matrix}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    TCase *cases = tcase_create(parts[i].name);
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, no_faults, no_faults);
    parts[i].add(cases);
    suite_add_tcase(suite, cases);
  }
  return test_main(suite);
}
