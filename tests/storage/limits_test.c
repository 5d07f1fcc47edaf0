// SPDX-License-Identifier: Apache-2.0
// What is refused: impossible sizes, losses, plans and stripes.
#define _POSIX_C_SOURCE 200809L // posix_memalign
#include <stdlib.h>
#include <string.h>

#include "tests/storage/stripes.h"
#include "tests/support/test_main.h"

static weft_status try_code(weft_ctx *ctx, const char *name, size_t k, size_t m, size_t w,
                            size_t packet_bytes) {
  weft_code *code = NULL;
  const weft_status status = weft_code_new(
      ctx, &(weft_code_options){.name = name, .k = k, .m = m, .w = w, .packet_bytes = packet_bytes},
      &code);
  EXPECT((status == WEFT_OK) == (code != NULL));
  weft_code_free(code);
  return status;
}

START_TEST(sizes_out_of_range) {
  weft_ctx *ctx = context_on(NULL, 1);
  for (size_t i = 0; weft_code_known_name(i); i++) {
    const char *name = weft_code_known_name(i);
    const code_case c = {name, 0, 0, 0, 0};
    trying(NULL, &c);
    const int raid6 = strcmp(name, "raid6") == 0;
    EXPECT_STATUS(try_code(ctx, name, 0, 0, 0, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 0, 4, 0, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 255, 2, 0, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 257, 0, 0, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, SIZE_MAX, 2, 0, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 2, SIZE_MAX, 0, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 254, 2, 0, 0), WEFT_OK);
    EXPECT_STATUS(try_code(ctx, name, 4, 0, 0, 0), raid6 ? WEFT_E_ARGUMENT : WEFT_OK);
    EXPECT_STATUS(try_code(ctx, name, 4, 3, 0, 0), raid6 ? WEFT_E_ARGUMENT : WEFT_OK);
    EXPECT_STATUS(try_code(ctx, name, 4, 2, 9, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 4, 2, 1, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 4, 2, (UINT64_C(1) << 32) + 8, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 4, 2, (UINT64_C(1) << 63) + 8, 0), WEFT_E_ARGUMENT);
    EXPECT_STATUS(try_code(ctx, name, 4, 2, 8, 0), WEFT_OK);
  }
  const code_case c = {"", 0, 0, 0, 0};
  trying(NULL, &c);
  EXPECT_STATUS(try_code(ctx, "cauchy_good", 13, 4, 4, 8), WEFT_E_ARGUMENT); // 17 > 2^4
  EXPECT_STATUS(try_code(ctx, "cauchy_good", 12, 4, 4, 8), WEFT_OK);
  EXPECT_STATUS(try_code(ctx, "gcrs", 4, 2, 4, 16), WEFT_E_ARGUMENT);
  EXPECT_STATUS(try_code(ctx, "perasure", 4, 2, 4, 12), WEFT_E_ARGUMENT);
  EXPECT_STATUS(try_code(ctx, "cauchy_orig", 4, 2, 4, SIZE_MAX), WEFT_E_ARGUMENT);
  EXPECT_STATUS(try_code(ctx, "cauchy_orig", 4, 2, 8, SIZE_MAX / 8 + 1), WEFT_E_ARGUMENT);
  EXPECT_STATUS(try_code(ctx, "perasure", 4, 2, 8, SIZE_MAX / 8 + 1), WEFT_E_ARGUMENT);
  EXPECT_STATUS(try_code(ctx, "cauchy", 4, 2, 0, 8), WEFT_E_ARGUMENT);
  EXPECT_STATUS(try_code(ctx, "isal_rs", 22, 4, 0, 0), WEFT_E_SINGULAR);
  EXPECT_STATUS(try_code(ctx, "par1", 3, 4, 0, 0), WEFT_E_SINGULAR);
  weft_code *code = NULL;
  const weft_code_options plans = {.name = "cauchy", .k = 4, .m = 2, .cached_plans = UINT32_MAX};
  EXPECT_STATUS(weft_code_new(ctx, &plans, &code),
                WEFT_E_ARGUMENT); // more plans than cache places can be numbered
  EXPECT_STATUS(weft_code_new(NULL, &(weft_code_options){.name = "cauchy", .k = 1}, &code),
                WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_new(ctx, &(weft_code_options){.k = 1}, &code), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_new(ctx, NULL, &code), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_new(ctx, &(weft_code_options){.name = "cauchy", .k = 1}, NULL),
                WEFT_E_ARGUMENT);
  weft_ctx_free(ctx);
}
END_TEST

// An allocator that refuses large blocks and records the largest size requested.
typedef struct stingy {
  size_t largest;
  long live;
} stingy;

static void *take_small(void *user, size_t bytes, size_t align) {
  stingy *s = user;
  void *block = NULL;
  s->largest = bytes > s->largest ? bytes : s->largest;
  if (bytes > 1 << 24 || posix_memalign(&block, align < 8 ? 8 : align, bytes) != 0)
    return NULL;
  s->live++;
  return block;
}

static void give_back(void *user, void *block) {
  ((stingy *)user)->live -= block != NULL;
  free(block);
}

// The largest number of plans that the cache can number is allocated in full size, and one more is
// refused.
START_TEST(the_most_plans) {
  static const size_t counts[] = {UINT32_MAX - 1, UINT32_MAX, (size_t)UINT32_MAX + 1, SIZE_MAX / 64,
                                  SIZE_MAX - 1};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    stingy memory = {0};
    const weft_allocator allocator = {.alloc = take_small, .free = give_back, .user = &memory};
    weft_ctx *ctx = NULL;
    weft_code *code = NULL;
    EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.threads = 1, .allocator = &allocator}));
    const weft_code_options options = {.name = "cauchy", .k = 4, .m = 2, .cached_plans = counts[i]};
    EXPECT_STATUS(weft_code_new(ctx, &options, &code), i ? WEFT_E_ARGUMENT : WEFT_E_NOMEM);
    EXPECT((memory.largest / UINT32_MAX >= sizeof(void *)) == (i == 0));
    weft_ctx_free(ctx);
    EXPECT(memory.live == 0);
  }
}
END_TEST

// A code's name may contain w and the packet size; malformed and contradictory names are refused.
START_TEST(names_carry_the_layout) {
  weft_ctx *ctx = context_on(NULL, 1);
  static const char *const bad[] = {"",
                                    "cauch",
                                    "cauchyy",
                                    "cauchy:w=8:packet=1",
                                    "cauchy_good:",
                                    "cauchy_good:w=4",
                                    "cauchy_good:w=4:packet=",
                                    "cauchy_good:w=4:packet=0",
                                    "cauchy_good:packet=8:w=4",
                                    "cauchy_good:w=4:packet=8 ",
                                    "cauchy_good:w=4:packet=8:",
                                    "cauchy_good:w=x:packet=8",
                                    "cauchy_good:w=9:packet=8",
                                    "cauchy_good:w=4294967300:packet=8",          // 2^32 + 4
                                    "cauchy_good:w=9223372036854775812:packet=8", // 2^63 + 4
                                    "cauchy_good:w=4:packet=99999999999999999999999",
                                    "cauchy_good:w=4:packet=18446744073709551624", // 2^64 + 8
                                    "cauchy_good:w=8:packet=2305843009213693952",  // 2^61
                                    "gcrs:w=4:packet=16"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    const code_case c = {bad[i], 4, 2, 0, 0};
    trying(NULL, &c);
    EXPECT_STATUS(try_code(ctx, bad[i], 4, 2, 0, 0), WEFT_E_ARGUMENT);
  }
  static const char *const good[][2] = {{"cauchy", "cauchy"},
                                        {"cauchy_good", "cauchy_good:w=3:packet=512"},
                                        {"cauchy_orig:w=5:packet=24", "cauchy_orig:w=5:packet=24"},
                                        {"gcrs", "gcrs:w=3:packet=8"},
                                        {"gcrs:w=8:packet=8", "gcrs:w=8:packet=8"}};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    weft_code *code = code_on(ctx, &(code_case){good[i][0], 4, 2, 0, 0});
    ck_assert_str_eq(weft_code_name(code), good[i][1]);
    weft_code *same = code_on(ctx, &(code_case){weft_code_name(code), 4, 2, 0, 0});
    ck_assert_str_eq(weft_code_name(same), weft_code_name(code));
    weft_code_free(same);
    weft_code_free(code);
  }
  EXPECT_STATUS(try_code(ctx, "gcrs:w=4:packet=8", 4, 2, 5, 0), WEFT_E_ARGUMENT); // they disagree
  EXPECT_STATUS(try_code(ctx, "cauchy_good:w=4:packet=8", 4, 2, 0, 16), WEFT_E_ARGUMENT);
  weft_ctx_free(ctx);
}
END_TEST

// Groups as large as size_t allows, larger than any memory, do not overflow.
START_TEST(lengths_beyond_a_size) {
  weft_ctx *ctx = context_on(NULL, 3);
  static const code_case cases[] = {
      {"cauchy", 4, 2, 0, 0}, {"cauchy_good", 4, 2, 4, 8}, {"cauchy_orig", 4, 2, 8, SIZE_MAX / 8}};
  for (size_t i = 0; i < 3; i++) {
    weft_code *code = code_on(ctx, &cases[i]);
    const size_t unit = weft_code_unit_bytes(code);
    EXPECT(weft_code_parity_bytes(code, 0) == 0 && weft_code_parity_bytes(code, unit) == unit);
    EXPECT(weft_code_parity_bytes(code, 1) == unit);
    EXPECT(weft_code_parity_bytes(code, SIZE_MAX) == SIZE_MAX); // no overflow of the sum
    EXPECT(weft_code_parity_bytes(code, SIZE_MAX - 1) >= SIZE_MAX - 1);
    EXPECT(weft_code_stride(code, SIZE_MAX) == SIZE_MAX);
    EXPECT(weft_code_stride(code, SIZE_MAX - 1) >= SIZE_MAX - 1);
    const uint8_t byte = 1, none = 0;
    const weft_stripe elsewhere = {.bytes = 1, .shards = (uint8_t *[6]){NULL}};
    const weft_status expected = i == 2 ? WEFT_E_NOMEM : WEFT_OK; // all parity is elsewhere
    EXPECT_STATUS(weft_code_update(code, 0, &byte, &none, &elsewhere, NULL), expected);
    EXPECT_STATUS(weft_code_add_delta(code, 0, &byte, &elsewhere, NULL), expected);
    size_t wrong = 1;
    EXPECT_OK(weft_code_verify(code, &(weft_stripe){.bytes = 0}, NULL, &wrong, NULL));
    weft_code_free(code);
  }
  weft_ctx_free(ctx);
}
END_TEST

// Lengths that no memory has, as a difference below zero gives, are refused also where pointers
// name the shards; so are those of which only parity, in whole groups, is too long.
START_TEST(shards_longer_than_any_object) {
  static const code_case cases[] = {{"cauchy", 4, 2, 0, 0}, {"cauchy_good", 4, 2, 4, 8}};
  static const size_t lengths[] = {SIZE_MAX, SIZE_MAX - 31, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX,
                                   PTRDIFF_MAX - 30};
  weft_ctx *ctx = context_on(NULL, 2);
  uint8_t bytes[6] = {1, 2, 3, 4, 5, 6}, before[6], *shards[6];
  for (size_t i = 0; i < 6; i++)
    shards[i] = &bytes[i];
  memcpy(before, bytes, sizeof before);
  const weft_erasures e = {.lost = (const uint8_t[]){1}, .lost_count = 1};
  for (size_t c = 0; c < 2; c++) {
    trying(NULL, &cases[c]);
    weft_code *code = code_on(ctx, &cases[c]);
    weft_plan *plan = NULL;
    EXPECT_OK(weft_plan_for(code, &e, &plan));
    // Where parity is as long as data, the last two are lengths like others.
    const size_t count = weft_code_unit_bytes(code) > 1 ? sizeof lengths / sizeof lengths[0] : 3;
    for (size_t i = 0; i < count; i++) {
      const weft_stripe s = {.shards = shards, .bytes = lengths[i]};
      weft_progress *progress = NULL;
      size_t wrong = 0;
      EXPECT_STATUS(weft_code_encode(code, &s, 1, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_code_recover(code, &e, &s, 1, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_code_verify(code, &s, NULL, &wrong, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_code_update(code, 0, bytes, bytes, &s, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_code_add_delta(code, 0, bytes, &s, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_plan_run(plan, &s, 1, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_plan_run_in_order(plan, &s, 1, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_progress_new(code, &s, &progress), WEFT_E_ARGUMENT);
    }
    weft_plan_free(plan);
    weft_code_free(code);
  }
  EXPECT(memcmp(before, bytes, sizeof before) == 0);
  weft_ctx_free(ctx);
}
END_TEST

// The shards of a group together have more bytes than size_t can count.
START_TEST(groups_beyond_a_size) {
  weft_ctx *ctx = context_on(NULL, 3);
  weft_code *code = code_on(ctx, &(code_case){"cauchy_orig", 2, 2, 8, SIZE_MAX / 32 + 1});
  EXPECT(4 * weft_code_unit_bytes(code) == 0);
  uint8_t bytes[4] = {1, 2, 3, 4}, before[4] = {1, 2, 3, 4}, *shards[4];
  for (size_t i = 0; i < 4; i++)
    shards[i] = &bytes[i];
  const weft_stripe small = {.shards = shards, .bytes = 1};
  const weft_erasures erasures = {.lost = (const uint8_t[]){1}, .lost_count = 1};
  size_t wrong = 5;
  EXPECT_STATUS(weft_code_verify(code, &small, NULL, &wrong, NULL), WEFT_E_NOMEM);
  EXPECT_STATUS(weft_code_encode(code, &small, 1, NULL), WEFT_E_NOMEM);
  EXPECT_STATUS(weft_code_recover(code, &erasures, &small, 1, NULL), WEFT_E_NOMEM);
  EXPECT(wrong == 5 && memcmp(bytes, before, sizeof bytes) == 0);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// What is recomputed to be compared has a few bytes more than size_t can count: 9 groups of 57
// shards, where more threads share the groups.
START_TEST(comparisons_beyond_a_size) {
  enum { K = 2, M = 57, GROUPS = 9, W = 8 };
  const size_t packet = SIZE_MAX / W / (M * GROUPS) + 1;
  weft_ctx *ctx = context_on(NULL, GROUPS + 1);
  weft_code *code = code_on(ctx, &(code_case){"cauchy_orig", K, M, W, packet});
  const size_t bytes = GROUPS * weft_code_unit_bytes(code);
  EXPECT(M * bytes < 8192);
  uint8_t byte = 1, *shards[K + M];
  for (size_t i = 0; i < K + M; i++)
    shards[i] = &byte;
  const weft_stripe s = {.shards = shards, .bytes = bytes};
  size_t wrong = 5;
  EXPECT_STATUS(weft_code_verify(code, &s, NULL, &wrong, NULL), WEFT_E_NOMEM);
  EXPECT(wrong == 5 && byte == 1);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(codes_without_parity_and_shards_without_bytes) {
  weft_ctx *ctx = context_on(NULL, 1);
  static const char *const names[] = {"cauchy", "cauchy_good", "vandermonde", "reed_sol_van"};
  test_rng rng = test_rng_new(test_seed(), 1);
  for (size_t i = 0; i < 4; i++) {
    const uint8_t first = 0;
    size_t wrong = 1;
    stripe s;
    weft_code *code = code_on(ctx, &(code_case){names[i], 5, 0, 0, 0});
    stripe_init(&s, code, 100, &rng, 0);
    EXPECT_OK(weft_code_encode(code, &s.view, 1, NULL));
    EXPECT_OK(weft_code_verify(code, &s.view, NULL, &wrong, NULL));
    EXPECT(wrong == 0);
    EXPECT_OK(weft_code_recover(code, &(weft_erasures){.lost_count = 0}, &s.view, 1, NULL));
    EXPECT_STATUS(weft_code_recover(code, &(weft_erasures){.lost = &first, .lost_count = 1},
                                    &s.view, 1, NULL),
                  WEFT_E_SINGULAR);
    stripe_clear(&s);
    const weft_stripe unread = {.shards = (uint8_t *[5]){NULL}, .bytes = 1 << 20};
    EXPECT_OK(weft_code_verify(code, &unread, NULL, &wrong, NULL));
    weft_code_free(code);
    code = code_on(ctx, &(code_case){names[i], 5, 2, 0, 0});
    const weft_stripe none = {.bytes = 0};
    EXPECT_OK(weft_code_encode(code, &none, 1, NULL));
    EXPECT_OK(
        weft_code_recover(code, &(weft_erasures){.lost = &first, .lost_count = 1}, &none, 1, NULL));
    EXPECT_OK(weft_code_verify(code, &none, NULL, &wrong, NULL));
    EXPECT(wrong == 0 && weft_code_parity_bytes(code, 0) == 0);
    EXPECT_OK(weft_code_encode(code, NULL, 0, NULL));
    weft_code_free(code);
  }
  weft_ctx_free(ctx);
}
END_TEST

// A single shard has none to overlap with, so its stride does not matter.
START_TEST(a_code_of_one_shard) {
  weft_ctx *ctx = context_on(NULL, 1);
  weft_code *code = code_on(ctx, &(code_case){"cauchy", 1, 0, 0, 0});
  uint8_t byte[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  size_t wrong = 1;
  const weft_stripe only = {.base = byte, .bytes = sizeof byte};
  EXPECT_OK(weft_code_encode(code, &only, 1, NULL));
  EXPECT_OK(weft_code_verify(code, &only, NULL, &wrong, NULL));
  EXPECT(wrong == 0 && byte[0] == 1 && byte[7] == 8);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// Recovery of shard 1 of 4 + 2 fails if one of 0 and 2 to 4 is NULL; 5 is not needed.
START_TEST(recovery_of_shards_that_are_not_there) {
  static const uint8_t lost[] = {1};
  static const size_t kept[] = {0, WEFT_NO_PLANS};
  const weft_erasures e = {.lost = lost, .lost_count = 1};
  weft_ctx *ctx = context_on(NULL, 1);
  test_rng rng = test_rng_new(test_seed(), 12);
  for (size_t c = 0; c < 2; c++) {
    weft_code *code;
    weft_plan *plan;
    EXPECT_OK(weft_code_new(
        ctx, &(weft_code_options){.name = "cauchy", .k = 4, .m = 2, .cached_plans = kept[c]},
        &code));
    stripe s;
    stripe_init(&s, code, 64, &rng, 0);
    EXPECT_OK(weft_plan_for(code, &e, &plan));
    for (size_t i = 0; i < 6; i++) {
      uint8_t *some[6];
      memcpy(some, s.shard, sizeof some);
      some[i] = NULL;
      const weft_stripe lacking[] = {s.view, {.shards = some, .bytes = 64}};
      const weft_status expected = i < 5 ? WEFT_E_ARGUMENT : WEFT_OK;
      EXPECT_STATUS(weft_code_recover(code, &e, lacking, 2, NULL), expected);
      EXPECT_STATUS(weft_plan_run(plan, lacking, 2, NULL), expected);
      EXPECT_STATUS(weft_plan_run_in_order(plan, lacking, 2, NULL), expected);
    }
    weft_plan_free(plan);
    stripe_clear(&s);
    weft_code_free(code);
  }
  weft_ctx_free(ctx);
}
END_TEST

// --- invalid calls ---

typedef struct subject {
  weft_ctx *ctx;
  weft_code *code; // 4 + 2
  stripe s;        // encoded
} subject;

static void subject_init(subject *o) { // must not move: the stripe's view points into it
  test_rng rng = test_rng_new(test_seed(), 2);
  o->ctx = context_on(NULL, 1);
  o->code = code_on(o->ctx, &(code_case){"cauchy", 4, 2, 0, 0});
  stripe_init(&o->s, o->code, 64, &rng, 0);
  EXPECT_OK(weft_code_encode(o->code, &o->s.view, 1, NULL));
}

static void subject_clear(subject *o) {
  stripe_clear(&o->s);
  weft_code_free(o->code);
  weft_ctx_free(o->ctx);
}

START_TEST(stripes_that_cannot_be_encoded) {
  subject o;
  subject_init(&o);
  weft_ctx *other = context_on(NULL, 1);
  weft_queue *queue = NULL, *foreign = NULL;
  size_t wrong = 0;
  EXPECT_OK(weft_queue_new(o.ctx, &queue));
  EXPECT_OK(weft_queue_new(other, &foreign));
  EXPECT_OK(weft_code_encode(o.code, &o.s.view, 1, queue));
  EXPECT_STATUS(weft_code_encode(o.code, &o.s.view, 1, foreign), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_encode(NULL, &o.s.view, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_encode(o.code, NULL, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_encode(o.code, &(weft_stripe){.bytes = 1}, 1, NULL), WEFT_E_ARGUMENT);
  const weft_stripe nothing = {.stride = 64, .bytes = 64}; // in order, but nowhere
  EXPECT_STATUS(weft_code_encode(o.code, &nothing, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_verify(o.code, &nothing, NULL, &wrong, NULL), WEFT_E_ARGUMENT);
  const weft_stripe on_device = {.shards = o.s.shard, .bytes = 64, .mem = WEFT_MEM_DEVICE};
  EXPECT_STATUS(weft_code_encode(o.code, &on_device, 1, NULL), WEFT_E_UNSUPPORTED);
  const weft_stripe nowhere = {
      .shards = o.s.shard, .bytes = 64, .mem = (weft_mem)(WEFT_MEM_DEVICE + 1)};
  EXPECT_STATUS(weft_code_encode(o.code, &nowhere, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_verify(o.code, &nowhere, NULL, &wrong, NULL), WEFT_E_ARGUMENT);
  for (size_t i = 0; i < 6; i++) { // a required shard is missing
    uint8_t *some[6];
    memcpy(some, o.s.shard, sizeof some);
    some[i] = NULL;
    const weft_stripe lacking[] = {o.s.view, {.shards = some, .bytes = 64}};
    EXPECT_STATUS(weft_code_encode(o.code, lacking, 2, NULL), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_code_verify(o.code, &lacking[1], NULL, &wrong, NULL), WEFT_E_ARGUMENT);
    // A stripe of no bytes requires nothing.
    EXPECT_OK(weft_code_encode(o.code, &(weft_stripe){.shards = some}, 1, NULL));
  }
  weft_queue_free(queue);
  weft_queue_free(foreign);
  weft_ctx_free(other);
  subject_clear(&o);
}
END_TEST

// Strides shorter than a shard, so that parity would overwrite data, or larger than any object, are
// refused.
START_TEST(strides_with_which_shards_overlap) {
  static const code_case cases[] = {{"cauchy", 4, 2, 0, 0}, {"cauchy_good", 4, 2, 4, 8}};
  enum { BYTES = 40 };
  weft_ctx *ctx = context_on(NULL, 1);
  for (size_t c = 0; c < 2; c++) {
    trying(NULL, &cases[c]);
    weft_code *code = code_on(ctx, &cases[c]);
    const size_t least = weft_code_parity_bytes(code, BYTES);
    const size_t strides[] = {0, 1, BYTES - 1, least - 1, PTRDIFF_MAX / 5, SIZE_MAX};
    const uint8_t lost[] = {1}, delta[BYTES] = {1};
    const weft_erasures e = {.lost = lost, .lost_count = 1};
    uint8_t memory[6 * 64] = {1, 2, 3}, before[sizeof memory];
    weft_plan *plan = NULL;
    weft_progress *progress = NULL;
    size_t wrong = 0;
    EXPECT_OK(weft_plan_for(code, &e, &plan));
    memcpy(before, memory, sizeof before);
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) {
      const weft_stripe s = {.base = memory, .stride = strides[i], .bytes = BYTES};
      EXPECT_STATUS(weft_code_encode(code, &s, 1, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_code_recover(code, &e, &s, 1, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_code_verify(code, &s, NULL, &wrong, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_code_add_delta(code, 0, delta, &s, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_plan_run(plan, &s, 1, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_plan_run_in_order(plan, &s, 1, NULL), WEFT_E_ARGUMENT);
      EXPECT_STATUS(weft_progress_new(code, &s, &progress), WEFT_E_ARGUMENT);
      if (strides[i] < least) // allowed for no bytes
        EXPECT_OK(
            weft_code_encode(code, &(weft_stripe){.base = memory, .stride = strides[i]}, 1, NULL));
    }
    EXPECT(memcmp(before, memory, sizeof before) == 0);
    const weft_stripe s = {.base = memory, .stride = least, .bytes = BYTES};
    EXPECT_OK(weft_code_encode(code, &s, 1, NULL));
    weft_plan_free(plan);
    weft_code_free(code);
  }
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(losses_that_cannot_be) {
  subject o;
  subject_init(&o);
  weft_plan *plan = NULL;
  static const struct {
    uint8_t lost[4];
    size_t lost_count;
    uint8_t wanted[4];
    size_t wanted_count;
    weft_status status;
  } losses[] = {
      {{6}, 1, {0}, 0, WEFT_E_ARGUMENT},       {{1, 1}, 2, {0}, 0, WEFT_E_ARGUMENT},
      {{1, 2}, 2, {3}, 1, WEFT_E_ARGUMENT},    {{1, 2}, 2, {1, 1}, 2, WEFT_E_ARGUMENT},
      {{0, 1, 2}, 3, {0}, 1, WEFT_E_SINGULAR}, {{1, 2}, 2, {9}, 1, WEFT_E_ARGUMENT},
      {{200}, 1, {0}, 0, WEFT_E_ARGUMENT},     {{1, 2}, 2, {255}, 1, WEFT_E_ARGUMENT},
      {{1, 1, 2}, 3, {0}, 0, WEFT_E_ARGUMENT}, {{1, 64}, 2, {1}, 1, WEFT_E_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
    const weft_erasures e = {.lost = losses[i].lost,
                             .lost_count = losses[i].lost_count,
                             .wanted = losses[i].wanted_count ? losses[i].wanted : NULL,
                             .wanted_count = losses[i].wanted_count};
    EXPECT_STATUS(weft_code_recover(o.code, &e, &o.s.view, 1, NULL), losses[i].status);
    EXPECT_STATUS(weft_plan_for(o.code, &e, &plan), losses[i].status);
    EXPECT(plan == NULL);
  }
  EXPECT_STATUS(weft_code_recover(o.code, NULL, &o.s.view, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_recover(o.code, &(weft_erasures){.lost_count = 1}, &o.s.view, 1, NULL),
                WEFT_E_ARGUMENT);
  subject_clear(&o);
}
END_TEST

START_TEST(plans_that_cannot_be) {
  subject o;
  subject_init(&o);
  weft_plan *plan = NULL;
  const uint8_t twice[] = {0, 1, 1, 2}, four[] = {0, 1, 2, 3}, beyond[] = {6}, input[] = {3};
  EXPECT_STATUS(weft_plan_new(o.code, twice, beyond, 0, &plan), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_plan_new(o.code, four, beyond, 1, &plan), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_plan_new(o.code, four, input, 1, &plan), WEFT_E_ARGUMENT);
  EXPECT_OK(weft_plan_new(o.code, four, NULL, 0, &plan));
  EXPECT_OK(weft_plan_run(plan, &o.s.view, 1, NULL));
  EXPECT_STATUS(weft_plan_bits(plan, o.s.shard[0]), WEFT_E_UNSUPPORTED);
  weft_plan_free(plan);
  EXPECT_STATUS(weft_plan_run(NULL, &o.s.view, 1, NULL), WEFT_E_ARGUMENT);
  weft_plan_free(NULL);
  subject_clear(&o);
}
END_TEST

START_TEST(changes_and_arrivals_that_cannot_be) {
  subject o;
  subject_init(&o);
  weft_progress *progress = NULL;
  size_t wrong = 0;
  EXPECT_STATUS(weft_code_update(o.code, 4, o.s.shard[0], o.s.shard[1], &o.s.view, NULL),
                WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_update(o.code, 0, NULL, o.s.shard[1], &o.s.view, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_update(o.code, 0, o.s.shard[0], NULL, &o.s.view, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_add_delta(o.code, 0, NULL, &o.s.view, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_verify(o.code, &o.s.view, NULL, NULL, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_code_verify(o.code, NULL, NULL, &wrong, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_progress_new(o.code, NULL, &progress), WEFT_E_ARGUMENT);
  EXPECT_OK(weft_progress_new(o.code, &o.s.view, &progress));
  EXPECT_STATUS(weft_progress_add(progress, 4, o.s.shard[0], NULL), WEFT_E_ARGUMENT);
  weft_progress_free(progress);
  weft_progress_free(NULL);
  weft_code_free(NULL);
  subject_clear(&o);
}
END_TEST

// The members of a group must have the same code.
START_TEST(groups_of_unlike_codes) {
  const code_case unlike[] = {{"cauchy", 4, 2, 0, 0},       {"vandermonde", 4, 2, 0, 0},
                              {"cauchy", 5, 2, 0, 0},       {"cauchy", 4, 3, 0, 0},
                              {"cauchy_good", 4, 2, 8, 64}, {"cauchy_good", 4, 2, 8, 128}};
  enum { UNLIKE = sizeof unlike / sizeof *unlike };
  weft_ctx *ctx[UNLIKE];
  weft_code *code[UNLIKE];
  for (size_t i = 0; i < UNLIKE; i++) {
    ctx[i] = context_on(NULL, 1);
    code[i] = code_on(ctx[i], &unlike[i]);
  }
  for (size_t i = 0; i < UNLIKE; i++)
    for (size_t j = 0; j < UNLIKE; j++) {
      weft_code *const pair[] = {code[i], code[j]};
      weft_code_group *group;
      EXPECT_STATUS(weft_code_group_new(pair, 2, &group), i == j ? WEFT_OK : WEFT_E_ARGUMENT);
      EXPECT((group == NULL) == (i != j));
      weft_code_group_free(group);
    }
  for (size_t i = 0; i < UNLIKE; i++) {
    weft_code_free(code[i]);
    weft_ctx_free(ctx[i]);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage limits");
  TCase *limits = tcase_create("limits");
  tcase_add_test(limits, sizes_out_of_range);
  tcase_add_test(limits, the_most_plans);
  tcase_add_test(limits, groups_of_unlike_codes);
  tcase_add_test(limits, names_carry_the_layout);
  tcase_add_test(limits, lengths_beyond_a_size);
  tcase_add_test(limits, shards_longer_than_any_object);
  tcase_add_test(limits, groups_beyond_a_size);
  tcase_add_test(limits, comparisons_beyond_a_size);
  tcase_add_test(limits, codes_without_parity_and_shards_without_bytes);
  tcase_add_test(limits, a_code_of_one_shard);
  tcase_add_test(limits, recovery_of_shards_that_are_not_there);
  tcase_add_test(limits, stripes_that_cannot_be_encoded);
  tcase_add_test(limits, strides_with_which_shards_overlap);
  tcase_add_test(limits, losses_that_cannot_be);
  tcase_add_test(limits, plans_that_cannot_be);
  tcase_add_test(limits, changes_and_arrivals_that_cannot_be);
  suite_add_tcase(suite, limits);
  return test_main(suite);
}
