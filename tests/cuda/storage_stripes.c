// SPDX-License-Identifier: Apache-2.0
// Many stripes in one call, on one device and on several (storage_cases.h).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "lib/ctx.h"
#include "tests/cuda/storage_cases.h"

// Many small stripes in device memory are coded in one call: with strided shards together, with
// pointers one by one. Some are empty.
START_TEST(many_stripes) {
  if (gpu_skip("many_stripes"))
    return;
  enum { STRIPES = 70, K = 6, M = 3, ROOM = 1200 };
  weft_ctx *ctx = fixture_ctx("cuda", 1), *scalar = fixture_ctx("scalar", 1);
  const weft_code_options options = {.name = "cauchy", .k = K, .m = M};
  weft_code *code, *expected;
  EXPECT_OK(weft_code_new(ctx, &options, &code));
  EXPECT_OK(weft_code_new(scalar, &options, &expected));
  const size_t each = (K + M) * ROOM, all = STRIPES * each;
  uint8_t *host = fixture_malloc(all);
  fixture_fill(host, all);
  gpu_buffer buffer = gpu_input(ctx, WEFT_MEM_DEVICE, host, all);
  weft_stripe here[STRIPES], there[STRIPES];
  uint8_t *pointers[STRIPES][K + M];
  for (size_t s = 0; s < STRIPES; s++) {
    here[s] = (weft_stripe){.base = host + s * each,
                            .stride = ROOM,
                            .bytes = fixture_below(9) ? 1 + fixture_below(ROOM) : 0};
    there[s] = here[s];
    there[s].mem = WEFT_MEM_DEVICE;
    there[s].base = buffer.at + s * each;
    for (size_t i = 0; i < K + M; i++)
      pointers[s][i] = there[s].base + i * ROOM;
    if (s % 37 == 20)
      there[s].shards = pointers[s];
  }
  EXPECT_OK(weft_code_encode(expected, here, STRIPES, NULL));
  EXPECT_OK(weft_code_encode(code, there, STRIPES, NULL));
  uint8_t *got = gpu_read(&buffer);
  storage_same_bytes(got, host, all);
  free(got);
  gpu_buffer_free(&buffer);
  const uint8_t lost[] = {4, 5}, edge[] = {0, 7};
  for (size_t i = 0; i < 2; i++) { // shards of the plan that are adjacent, and others
    const uint8_t *const ids = i ? edge : lost;
    uint8_t *spoilt = fixture_malloc(all);
    memcpy(spoilt, host, all);
    for (size_t s = 0; s < STRIPES; s++)
      for (size_t j = 0; j < 2; j++)
        memset(spoilt + s * each + ids[j] * ROOM, 0x5A, there[s].bytes);
    buffer = gpu_input(ctx, WEFT_MEM_DEVICE, spoilt, all);
    free(spoilt);
    for (size_t s = 0; s < STRIPES; s++) {
      there[s].base = buffer.at + s * each;
      for (size_t j = 0; j < K + M; j++)
        pointers[s][j] = there[s].base + j * ROOM;
    }
    const weft_erasures erasures = {.lost = ids, .lost_count = 2};
    EXPECT_OK(weft_code_recover(code, &erasures, there, STRIPES, NULL));
    got = gpu_read(&buffer);
    storage_same_bytes(got, host, all);
    free(got);
    gpu_buffer_free(&buffer);
  }
  free(host);
  weft_code_free(expected);
  weft_code_free(code);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// Padding a stripe that ends within its first group takes no more runtime calls for long groups
// than for short ones.
START_TEST(few_calls_for_a_tail) {
  if (gpu_skip("few_calls_for_a_tail"))
    return;
  enum { BYTES = 1001, MOST = 80 };
  weft_ctx *ctx = fixture_ctx("cuda", 1), *fast = fixture_ctx(NULL, 1);
  const weft_code_options options = {
      .name = "cauchy_good", .k = 12, .m = 2, .w = 8, .packet_bytes = 64 << 10};
  storage_pair p;
  storage_pair_new(&p, fast, ctx, &options, BYTES, WEFT_MEM_DEVICE);
  size_t wrong;
  const char *const what[] = {"encode", "verify", "delta"};
  for (size_t i = 0; i < 3; i++) {
    weft_cuda_inject(0, 0, 0); // resets the count
    if (i == 0)
      EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
    if (i == 1)
      EXPECT_OK(weft_code_verify(p.device_code, &p.stripe, NULL, &wrong, NULL));
    if (i == 2)
      EXPECT_OK(weft_code_add_delta(p.device_code, 3, p.shards[1][4], &p.stripe, NULL));
    if (weft_cuda_calls() > MOST)
      ck_abort_msg("%s: %zu calls of the runtime for a tail", what[i], weft_cuda_calls());
  }
  EXPECT(wrong == 0);
  EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
  EXPECT_OK(weft_code_add_delta(p.code, 3, p.shards[0][4], &p.host, NULL));
  storage_pair_compare(&p, "a tail");
  storage_pair_free(&p);
  weft_ctx_free(fast);
  weft_ctx_free(ctx);
}
END_TEST

// One, two and four contexts divide stripes, the columns of one, and the rows of the matrix.
START_TEST(groups) {
  if (gpu_skip("groups"))
    return;
  enum { STRIPES = 5, K = 10, M = 4 };
  const char *const names[] = {"cauchy", "cauchy_good:w=4:packet=512"};
  weft_ctx *scalar = fixture_ctx("scalar", 1), *ctx[4];
  for (size_t i = 0; i < 4; i++)
    ctx[i] = fixture_ctx(i == 3 ? NULL : "cuda", 1); // one of them on the CPU
  const size_t bytes = storage_reduced() ? 120001 : 300001;
  for (size_t n = 0; n < 2; n++) {
    const weft_code_options options = {.name = names[n], .k = K, .m = M};
    weft_code *codes[4], *code;
    EXPECT_OK(weft_code_new(scalar, &options, &code));
    for (size_t i = 0; i < 4; i++)
      EXPECT_OK(weft_code_new(ctx[i], &options, &codes[i]));
    const size_t room = weft_code_parity_bytes(code, bytes), all = STRIPES * (K + M) * room;
    uint8_t *host = fixture_malloc(all), *copy = fixture_malloc(all);
    fixture_fill(host, all);
    weft_stripe expected[STRIPES], stripes[STRIPES];
    for (size_t s = 0; s < STRIPES; s++) {
      expected[s] =
          (weft_stripe){.base = host + s * (K + M) * room, .stride = room, .bytes = bytes - s};
      stripes[s] = expected[s];
      stripes[s].base = copy + s * (K + M) * room;
    }
    memcpy(copy, host, all);
    EXPECT_OK(weft_code_encode(code, expected, STRIPES, NULL));
    for (size_t members = 1; members <= 4; members *= 2) {
      weft_code_group *group;
      EXPECT_OK(weft_code_group_new(codes + (members < 4), members, &group));
      for (size_t count = 1; count <= STRIPES; count += 4)
        for (int rows = 0; rows < 2; rows++) {
          const weft_code_split split = rows ? WEFT_CODE_SPLIT_ROWS : WEFT_CODE_SPLIT_STRIPES;
          const size_t used = count * (K + M) * room;
          for (size_t s = 0; s < count; s++)
            memset(stripes[s].base + K * room, 0xaa, M * room);
          EXPECT_OK(weft_code_group_encode(group, split, stripes, count));
          for (size_t s = 0; s < count; s++) {
            const size_t whole = weft_code_parity_bytes(code, stripes[s].bytes);
            for (size_t i = K; i < K + M; i++)
              storage_same_bytes(stripes[s].base + i * room, expected[s].base + i * room, whole);
          }
          const uint8_t lost[] = {12, 0, 9, 5}, wanted[] = {9, 12, 0};
          for (size_t s = 0; s < count; s++)
            for (size_t i = 0; i < 4; i++)
              memset(stripes[s].base + lost[i] * room, 0x55, room);
          const weft_erasures erasures = {
              .lost = lost, .lost_count = 4, .wanted = wanted, .wanted_count = 3};
          EXPECT_OK(weft_code_group_recover(group, split, &erasures, stripes, count));
          for (size_t s = 0; s < count; s++)
            for (size_t i = 0; i < 3; i++)
              storage_same_bytes(stripes[s].base + wanted[i] * room,
                                 expected[s].base + wanted[i] * room,
                                 wanted[i] < K ? stripes[s].bytes
                                               : weft_code_parity_bytes(code, stripes[s].bytes));
          memcpy(copy, host, used);
        }
      weft_code_group_free(group);
    }
    for (size_t i = 0; i < 4; i++)
      weft_code_free(codes[i]);
    weft_code_free(code);
    free(copy);
    free(host);
  }
  for (size_t i = 0; i < 4; i++)
    weft_ctx_free(ctx[i]);
  weft_ctx_free(scalar);
}
END_TEST

// Windows of long shards: the first and last columns, and those around 2^30 and 2^31.
enum { LONG_K = 2, LONG_M = 1, LONG_SHARDS = LONG_K + LONG_M, WINDOWS = 4, WINDOW = 4096 };
static const size_t long_bytes = ((size_t)2 << 30) + 3 * WINDOW + 5;
static const size_t windows[WINDOWS] = {0, ((size_t)1 << 30) - WINDOW / 2,
                                        ((size_t)2 << 30) - WINDOW / 2,
                                        ((size_t)2 << 30) + 2 * WINDOW + 5};

// Copies all windows of all shards to the device, or back.
static void copy_windows(weft_ctx *ctx, const weft_stripe *stripe, uint8_t *host, bool back) {
  void *stream;
  EXPECT_OK(weft_device_stream_new(ctx->device, &stream));
  for (size_t i = 0; i < LONG_SHARDS; i++)
    for (size_t w = 0; w < WINDOWS; w++) {
      uint8_t *const here = host + (i * WINDOWS + w) * WINDOW, *const there = stripe->base +
                                                                              i * stripe->stride +
                                                                              windows[w];
      EXPECT_OK(back ? weft_device_copy(ctx->device, here, WEFT_MEM_HOST, there, WEFT_MEM_DEVICE,
                                        WINDOW, stream)
                     : weft_device_copy(ctx->device, there, WEFT_MEM_DEVICE, here, WEFT_MEM_HOST,
                                        WINDOW, stream));
    }
  EXPECT_OK(weft_device_stream_wait(ctx->device, stream));
  weft_device_stream_free(ctx->device, stream);
}

// Shards longer than one product takes, at addresses not aligned for any special kernel, are coded
// correctly.
START_TEST(long_shards) {
  if (storage_reduced() || gpu_skip("long_shards"))
    return;
  weft_ctx *ctx = fixture_ctx(_i ? gpu_slowest_row() : "cuda", 1), *host_ctx = fixture_ctx(NULL, 1);
  const weft_code_options options = {.name = "cauchy", .k = LONG_K, .m = LONG_M};
  weft_code *code, *expected;
  EXPECT_OK(weft_code_new(ctx, &options, &code));
  EXPECT_OK(weft_code_new(host_ctx, &options, &expected));
  void *memory = NULL;
  const weft_status status =
      weft_alloc(ctx, WEFT_MEM_DEVICE, LONG_SHARDS * (long_bytes + 1), &memory);
  if (status == WEFT_E_DEVICE_NOMEM)
    printf("SKIPPED long_shards: it needs %zu bytes on the GPU\n", LONG_SHARDS * (long_bytes + 1));
  else
    EXPECT_OK(status);
  if (memory) {
    enum { ALL = LONG_SHARDS * WINDOWS * WINDOW };
    uint8_t *const expect = fixture_malloc(ALL), *const got = fixture_malloc(ALL);
    fixture_fill(expect, ALL);
    const weft_stripe there = {.base = (uint8_t *)memory + 1,
                               .stride = long_bytes,
                               .bytes = long_bytes,
                               .mem = WEFT_MEM_DEVICE};
    const weft_stripe here = {
        .base = expect, .stride = WINDOWS * WINDOW, .bytes = WINDOWS * WINDOW};
    copy_windows(ctx, &there, expect, false);
    EXPECT_OK(weft_code_encode(code, &there, 1, NULL));
    EXPECT_OK(weft_code_encode(expected, &here, 1, NULL));
    copy_windows(ctx, &there, got, true);
    storage_same_bytes(got, expect, ALL);
    size_t wrong = 99;
    EXPECT_OK(weft_code_verify(code, &there, NULL, &wrong, NULL));
    EXPECT(wrong == 0);
    free(got);
    free(expect);
  }
  weft_free(ctx, WEFT_MEM_DEVICE, memory);
  weft_code_free(expected);
  weft_code_free(code);
  weft_ctx_free(host_ctx);
  weft_ctx_free(ctx);
}
END_TEST

void storage_add_many_stripes(TCase *cases) {
  tcase_add_test(cases, many_stripes);
  tcase_add_test(cases, few_calls_for_a_tail);
  tcase_add_loop_test(cases, long_shards, 0, 2);
}

void storage_add_groups(TCase *cases) { tcase_add_test(cases, groups); }
