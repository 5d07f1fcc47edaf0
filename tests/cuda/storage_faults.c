// SPDX-License-Identifier: Apache-2.0
// Calls of the runtime that fail, in every way that a code may go (storage_cases.h).
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "tests/cuda/storage_cases.h"

// Inverting on the device gives the matrices that the CPU's closed form gives, and where the device
// fails at it the CPU's are there.
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
        weft_cuda_inject(fixture_below(8), 2, 0);
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

// Pinned shards in place: whole groups and tails, then with failing calls.
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

// Any call of the runtime fails: what lies in host memory is computed by the CPU.
START_TEST(fails_over) {
  if (gpu_skip("fails_over"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  storage_pair p;
  storage_pair_new(&p, scalar, ctx, &storage_shapes[0], 200000, WEFT_MEM_HOST);
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
      storage_pair_compare(&p, "after a fault");
  }
  storage_pair_free(&p);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

void storage_add_inverse(TCase *cases) { tcase_add_test(cases, inverse_by_choice); }

void storage_add_zero_copy(TCase *cases) { tcase_add_test(cases, zero_copy); }

void storage_add_fails_over(TCase *cases) { tcase_add_test(cases, fails_over); }
