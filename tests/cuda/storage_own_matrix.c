// SPDX-License-Identifier: Apache-2.0
// A matrix provided by the user, with zeros where other codes have none and losses that read fewer
// than k shards, on a device (storage_cases.h).
#include <string.h>

#include "tests/cuda/storage_cases.h"

enum { GROUPS = 3, EACH = 6, GLOBAL = 3, K = GROUPS * EACH, M = GROUPS + GLOBAL + 1 };

// Makes local parity for each group, three global parity shards, and one that is always zero.
static void local_repair(uint8_t *parity) {
  memset(parity, 0, M * K);
  for (size_t g = 0; g < GROUPS; g++)
    for (size_t j = 0; j < EACH; j++)
      parity[g * K + g * EACH + j] = (uint8_t)(1 + fixture_below(255));
  for (size_t j = 0; j < GLOBAL * K; j++)
    parity[GROUPS * K + j] = (uint8_t)(j + 1);
}

// A code with the user's matrix encodes and recovers on a device, from all kinds of memory.
START_TEST(own_matrix) {
  if (gpu_skip("own_matrix"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *fast = fixture_ctx(NULL, 2);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  uint8_t parity[M * K];
  local_repair(parity);
  const weft_code_options options = {.name = "matrix", .k = K, .m = M, .parity = parity};
  weft_code_options by_device = options; // requires a code whose matrices all have inverses
  by_device.device_inverse = true;
  weft_code *none;
  EXPECT_STATUS(weft_code_new(ctx, &by_device, &none), WEFT_E_UNSUPPORTED);
  const size_t sizes[] = {1, 1000, 70001, ((size_t)1 << 20) + 5};
  for (int mem = 0; mem < 3; mem++)
    for (size_t i = 0; i < (storage_reduced() ? 2u : 4u); i++) {
      storage_pair p;
      storage_pair_new(&p, fast, ctx, &options, sizes[i], (weft_mem)mem);
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
      storage_pair_compare(&p, "encode");
      // These read six shards; all, as three local groups; all; and none for the second shard.
      storage_pair_lose(&p, ctx, (const uint8_t[]){1}, 1, NULL);
      storage_pair_lose(&p, ctx, (const uint8_t[]){1, 7, 13}, 3, queue);
      storage_pair_lose(&p, ctx, (const uint8_t[]){0, 1, 2, 9, K + 1}, 5, NULL);
      storage_pair_lose(&p, ctx, (const uint8_t[]){K, K + M - 1}, 2, queue);
      storage_pair_free(&p);
    }
  weft_queue_free(queue);
  weft_ctx_free(fast);
  weft_ctx_free(ctx);
}
END_TEST

void storage_add_own_matrix(TCase *cases) { tcase_add_test(cases, own_matrix); }
