// SPDX-License-Identifier: Apache-2.0
// Transforms: the steps for every shape, and for any losses, represent the code's matrix, with
// fewer products if a code is large; and encoded shards are those of the definition.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/host_steps.h"
#include "lib/storage/transform.h"
#include "tests/storage/stripes.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"
#include "tests/support/test_steps.h"

static const weft_generator_kind kinds[] = {WEFT_GENERATOR_VANDERMONDE, WEFT_GENERATOR_CAUCHY,
                                            WEFT_GENERATOR_REED_SOL_VAN, WEFT_GENERATOR_CAUCHY_ORIG,
                                            WEFT_GENERATOR_CAUCHY_GOOD};
enum { KINDS = sizeof kinds / sizeof kinds[0], PARITIES = 32 };

// The shards that are read and those that are wanted.
typedef struct request {
  uint8_t in[WEFT_SHARDS_MAX], out[WEFT_SHARDS_MAX];
  size_t outputs;
} request;

static request request_without(const bool *lost, size_t k, size_t m) {
  request r = {.outputs = 0};
  for (size_t s = 0, held = 0; s < k + m; s++)
    if (lost[s])
      r.out[r.outputs++] = (uint8_t)s;
    else if (held < k)
      r.in[held++] = (uint8_t)s;
  return r;
}

static request encoding(size_t k, size_t m) {
  bool lost[WEFT_SHARDS_MAX] = {false};
  memset(lost + k, true, m);
  return request_without(lost, k, m);
}

static weft_status transform_of(const weft_generator *g, const request *r, size_t slots,
                                weft_transform_memory *memory, weft_factors **factors) {
  weft_transform_for who = slots > 32 ? weft_transform_for_host : weft_transform_for_device;
  who.slots_most = slots;
  return weft_transform_new(g, r->in, r->out, r->outputs, &who, memory, factors);
}

// Whether there is a transform for the request; checks that its steps represent the matrix.
static bool check_request(const weft_generator *g, const request *r, size_t slots,
                          weft_transform_memory *memory, const char *what) {
  static uint8_t a[WEFT_SHARDS_MAX * WEFT_SHARDS_MAX], expected[WEFT_SHARDS_MAX * WEFT_SHARDS_MAX];
  weft_factors *factors;
  const weft_status status = transform_of(g, r, slots, memory, &factors);
  if (status == WEFT_OK) {
    EXPECT_OK(weft_generator_solve(g, r->in, r->out, r->outputs, expected));
    ck_assert_uint_le(factors->slots, slots);
    if (!test_steps_matrix(factors->steps, factors->count, factors->slots, g->k, r->outputs, a) ||
        memcmp(a, expected, r->outputs * g->k) != 0)
      ck_abort_msg("%s, %zu + %zu in %zu slots: another matrix", what, g->k, g->m, slots);
  } else {
    EXPECT_STATUS(status, WEFT_E_UNSUPPORTED);
    ck_assert_ptr_null(factors);
  }
  weft_factors_free(factors, g->allocator);
  return status == WEFT_OK;
}

static bool check_shape(test_allocator *memory, weft_generator_kind kind, size_t k, size_t m,
                        size_t slots) {
  char what[32];
  weft_generator g;
  const request r = encoding(k, m);
  snprintf(what, sizeof what, "encoding, kind %d", kind);
  EXPECT_OK(weft_generator_init(&g, kind, k, m, 8, &memory->allocator));
  const bool found = check_request(&g, &r, slots, NULL, what);
  weft_generator_clear(&g);
  return found;
}

// Codes of all sizes have a transform for encoding, which represents their matrix.
START_TEST(steps_stand_for_the_matrix) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_generator_kind kind = kinds[_i % KINDS];
  const size_t m = 1 + (size_t)_i / KINDS;
  for (size_t k = 1; k + m <= 256; k += k < 64 ? 1 : 61) {
    const bool found = check_shape(&memory, kind, k, m, 256);
    if (!found && k > 1 && k + m > 3)
      ck_abort_msg("kind %d, %zu + %zu: no way", kind, k, m);
    if (k % 4 == 0)
      check_shape(&memory, kind, k, m, 24);
  }
  check_shape(&memory, kind, 256 - 7 * m, 7 * m, 256);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Makes losses of all sizes: a run of shards, or any; of data only, or of any shards; some of them
// wanted.
static request losses(test_rng *rng, size_t k, size_t m) {
  bool lost[WEFT_SHARDS_MAX] = {false};
  const size_t most = test_rng_below(rng, 3) ? k + m : k;
  const size_t count = 1 + test_rng_below(rng, m < most ? m : most);
  const size_t first = test_rng_below(rng, most - count + 1);
  const bool run = test_rng_below(rng, 2);
  for (size_t found = 0; found < count;) {
    const size_t s = run ? first + found : test_rng_below(rng, most);
    found += !lost[s];
    lost[s] = true;
  }
  request r = request_without(lost, k, m);
  if (test_rng_below(rng, 4) == 0)
    r.outputs = 1 + test_rng_below(rng, r.outputs);
  return r;
}

// Transforms for random losses represent the matrix of recovery.
START_TEST(any_losses) {
  enum { Shapes = 60, Times = 4 };
  static const size_t slots[] = {256, 64, 24};
  test_allocator memory;
  test_allocator_init(&memory, 0);
  test_rng rng = test_rng_new(test_seed(), 1300 + (uint64_t)_i);
  size_t found = 0;
  for (size_t shape = 0; shape < Shapes; shape++) {
    const size_t m = 1 + test_rng_below(&rng, 32), k = 2 + test_rng_below(&rng, 254 - m);
    char what[64];
    weft_generator g;
    EXPECT_OK(weft_generator_init(&g, kinds[_i], k, m, 8, &memory.allocator));
    weft_transform_memory known[sizeof slots / sizeof *slots] = {0}; // whatever was lost before
    for (size_t time = 0; time < Times; time++) {
      const request r = losses(&rng, k, m);
      snprintf(what, sizeof what, "kind %d, shape %zu, losses %zu, seed %llu", kinds[_i], shape,
               time, (unsigned long long)test_seed());
      for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
        found += check_request(&g, &r, slots[s], &known[s], what);
    }
    weft_generator_clear(&g);
  }
  ck_assert_uint_ge(found, Shapes * Times); // of three times as many
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// One of the smallest codes that use transforms recovers all losses of data, and losses of up to
// three of any shards.
START_TEST(every_pattern_of_a_small_code) {
  enum { K = 16, M = 8 };
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_generator g;
  weft_transform_memory known = {0};
  EXPECT_OK(weft_generator_init(&g, kinds[_i], K, M, 8, &memory.allocator));
  for (size_t count = 1; count <= M; count += count < 3 ? 1 : M - 3) {
    uint8_t set[WEFT_SHARDS_MAX];
    weft_first_subset(set, count);
    do {
      bool lost[WEFT_SHARDS_MAX] = {false};
      for (size_t i = 0; i < count; i++)
        lost[set[i]] = true;
      const request r = request_without(lost, K, M);
      if (!check_request(&g, &r, 64, &known, "every pattern"))
        ck_abort_msg("kind %d, %zu lost: no way", kinds[_i], count);
    } while (weft_next_subset(set, count, count == M ? K : K + M));
  }
  weft_generator_clear(&g);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Transforms of recovery are as regular as those of encoding, since zeros replace lost data.
START_TEST(losses_leave_butterflies_in_fours) {
  enum { K = 64, M = 16 };
  test_allocator memory;
  test_allocator_init(&memory, 0);
  test_rng rng = test_rng_new(test_seed(), 1400);
  weft_generator g;
  weft_transform_memory known = {0};
  size_t most = 0;
  EXPECT_OK(weft_generator_init(&g, WEFT_GENERATOR_CAUCHY, K, M, 8, &memory.allocator));
  for (size_t round = 0; round < 50; round++) {
    bool lost[WEFT_SHARDS_MAX] = {false};
    uint8_t ids[M];
    weft_factors *factors;
    choose_ids(&rng, ids, M, K);
    for (size_t i = 0; i < M; i++)
      lost[ids[i]] = true;
    const request r = round ? request_without(lost, K, M) : encoding(K, M);
    EXPECT_OK(transform_of(&g, &r, 64, round ? &known : NULL, &factors));
    ck_assert_ptr_nonnull(factors->acts);
    if (!round)
      most = factors->acts->count;
    ck_assert_uint_le(factors->acts->count, most + (round > 0)); // plus the small matrix
    weft_factors_free(factors, &memory.allocator);
  }
  weft_generator_clear(&g);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Checks that scattered losses of codes whose parity has one scale are a detour by encoding's own
// acts, which takes about as much work as steps made for them.
static void check_detour(const weft_generator *g, const weft_factors *encode, const request *r) {
  static uint8_t a[WEFT_SHARDS_MAX * WEFT_SHARDS_MAX];
  weft_factors *detour, *own;
  EXPECT_OK(weft_generator_solve(g, r->in, r->out, r->outputs, a));
  EXPECT_OK(
      weft_transform_by_encoding(g, encode, r->in, r->out, r->outputs, a, WEFT_ACT_WIDE, &detour));
  EXPECT_OK(transform_of(g, r, 64, NULL, &own));
  ck_assert_ptr_nonnull(detour->acts);
  ck_assert_uint_le(detour->acts->entries, own->acts->entries);
  ck_assert_uint_le(detour->acts->work.products, own->acts->work.products * 4 / 3);
  weft_factors_free(own, g->allocator);
  weft_factors_free(detour, g->allocator);
}

// Recovery from scattered losses is a detour by encoding's factors.
START_TEST(scattered_losses_go_by_encoding) {
  static const size_t shapes[][2] = {{16, 16}, {32, 8}, {48, 12}, {61, 13}, {64, 16}, {128, 32}};
  enum { SHAPES = sizeof shapes / sizeof *shapes, ROUNDS = 20 };
  const weft_generator_kind kind = kinds[_i / SHAPES];
  const size_t k = shapes[_i % SHAPES][0], m = shapes[_i % SHAPES][1];
  test_allocator memory;
  test_allocator_init(&memory, 0);
  test_rng rng = test_rng_new(test_seed(), 1500 + (uint64_t)_i);
  weft_generator g;
  weft_factors *encode;
  const request all = encoding(k, m);
  EXPECT_OK(weft_generator_init(&g, kind, k, m, 8, &memory.allocator));
  EXPECT_OK(transform_of(&g, &all, 64, NULL, &encode));
  size_t found = 0;
  for (size_t round = 0; round < ROUNDS; round++) {
    bool lost[WEFT_SHARDS_MAX] = {false};
    uint8_t ids[WEFT_SHARDS_MAX];
    const size_t count = m - test_rng_below(&rng, m / 4);
    choose_ids(&rng, ids, count, round % 2 ? k : k + m);
    for (size_t i = 0; i < count; i++)
      lost[ids[i]] = true;
    const request r = request_without(lost, k, m);
    const bool is = weft_transform_is_detour(&g, r.in, r.out, r.outputs);
    found += is;
    if (is)
      check_detour(&g, encode, &r);
  }
  if (kind == WEFT_GENERATOR_REED_SOL_VAN || kind == WEFT_GENERATOR_CAUCHY_GOOD)
    ck_assert_uint_eq(found, 0);
  else if (k % 16 == 0)
    ck_assert_uint_ge(found, k > m ? ROUNDS * 3 / 4 : 1);
  weft_factors_free(encode, &memory.allocator);
  weft_generator_clear(&g);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// The numbers of products that the method promises (docs/decisions/0009-encoding-by-transforms.md).
START_TEST(products_are_few) {
  static const struct {
    size_t k, m, products;
  } shapes[] = {{16, 16, 65}, {32, 8, 85}, {32, 16, 113}, {64, 16, 209}, {128, 32, 497}};
  test_allocator memory;
  test_allocator_init(&memory, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    weft_generator g;
    weft_factors *factors;
    const request r = encoding(shapes[i].k, shapes[i].m);
    EXPECT_OK(weft_generator_init(&g, WEFT_GENERATOR_CAUCHY, shapes[i].k, shapes[i].m, 8,
                                  &memory.allocator));
    EXPECT_OK(transform_of(&g, &r, 64, NULL, &factors));
    ck_assert_uint_le(factors->products, shapes[i].products);
    weft_factors_free(factors, &memory.allocator);
    weft_generator_clear(&g);
  }
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Codes without suitable points have no transforms.
START_TEST(other_codes_have_none) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  static const weft_generator_kind others[] = {WEFT_GENERATOR_ISAL_RS, WEFT_GENERATOR_PAR1};
  const request r = encoding(20, 3);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    weft_generator g;
    weft_factors *factors;
    EXPECT_OK(weft_generator_init(&g, others[i], 20, 3, 8, &memory.allocator));
    EXPECT_STATUS(transform_of(&g, &r, 64, NULL, &factors), WEFT_E_UNSUPPORTED);
    weft_generator_clear(&g);
  }
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Nothing is written past the end of a full list or without a free slot; steps that are taken back
// leave no trace.
START_TEST(lists_end_where_they_are_full) {
  enum { SLOTS = 5 };
  static const weft_step_prices prices = {.product = 2, .repeated = 2, .sum = 1};
  weft_gfw field;
  weft_step_mark mark;
  struct {
    weft_step_list list;
    uint8_t behind[64];
  } *room = calloc(1, sizeof *room);
  EXPECT(room && weft_gfw_init(&field, 8));
  weft_step_list *list = &room->list;
  weft_step_list_begin(list, &field, &prices, false, SLOTS);
  weft_step_list_mark(list, &mark);
  for (size_t i = 0; i < WEFT_STEP_LIST_MOST + sizeof room->behind / sizeof(weft_step); i++) {
    EXPECT(list->failed == (i > WEFT_STEP_LIST_MOST));
    weft_multiple value = weft_value_load(list, i % 256);
    weft_value_give(list, &value);
  }
  EXPECT(list->failed && list->count == WEFT_STEP_LIST_MOST && list->slots == 1);
  for (size_t i = 0; i < sizeof room->behind; i++)
    EXPECT(room->behind[i] == 0);
  weft_step_list_take_back(list, &mark);
  EXPECT(!list->failed && list->count == 0);
  for (size_t i = 0; i <= SLOTS; i++) {
    EXPECT(!list->failed);
    (void)weft_value_load(list, i);
  }
  EXPECT(list->failed && list->slots == SLOTS);
  free(room);
}
END_TEST

START_TEST(fails_without_memory) {
  const request r = encoding(20, 8);
  for (size_t fail = 1; fail <= 4; fail++) {
    test_allocator memory;
    weft_generator g;
    weft_factors *factors;
    test_allocator_init(&memory, 0);
    EXPECT_OK(weft_generator_init(&g, WEFT_GENERATOR_CAUCHY, 20, 8, 8, &memory.allocator));
    test_allocator scarce;
    test_allocator_init(&scarce, (long)fail);
    g.allocator = &scarce.allocator;
    const weft_status status = transform_of(&g, &r, 64, NULL, &factors);
    ck_assert_int_eq(status, fail <= 3 ? WEFT_E_NOMEM : WEFT_OK);
    weft_factors_free(factors, &scarce.allocator);
    g.allocator = &memory.allocator;
    weft_generator_clear(&g);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
    ck_assert_int_eq(test_allocator_live(&scarce), 0);
  }
}
END_TEST

// Shapes for which rows choose transforms, and shapes for which they do not, with lengths that
// leave tails.
START_TEST(every_row_encodes_by_definition) {
  const weft_backend *row = test_looped_row((size_t)_i);
  test_rng rng = test_rng_new(test_seed(), 900 + (uint64_t)_i);
  for (size_t threads = 1; threads <= 2; threads++) {
    weft_ctx *ctx = context_on(row->name, threads);
    for (int round = 0; round < 5; round++) {
      const bool large = round == 4; // even rows with a multiply instruction choose them
      const code_case c = {
          .name = round % 3 ? "cauchy" : "vandermonde",
          .k = large ? 64 + test_rng_below(&rng, 65) : 8 + test_rng_below(&rng, 33),
          .m = large ? 24 + test_rng_below(&rng, 17) : 4 + test_rng_below(&rng, 13)};
      weft_code *code = code_on(ctx, &c);
      stripe s;
      const size_t bytes = 2048 + test_rng_below(&rng, 1500);
      stripe_encode(&s, code, bytes, &rng, round % 2 == 0);
      stripe_clear(&s);
      weft_code_free(code);
    }
    weft_ctx_free(ctx);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("transforms of storage codes");
  TCase *steps = tcase_create("steps"), *bytes = tcase_create("bytes");
  tcase_set_tags(steps, "one-thread");
  tcase_add_loop_test(steps, steps_stand_for_the_matrix, 0, KINDS * PARITIES);
  tcase_add_loop_test(steps, any_losses, 0, KINDS);
  tcase_add_loop_test(steps, every_pattern_of_a_small_code, 0, KINDS);
  tcase_add_test(steps, losses_leave_butterflies_in_fours);
  tcase_add_loop_test(steps, scattered_losses_go_by_encoding, 0, KINDS * 6);
  tcase_add_test(steps, products_are_few);
  tcase_add_test(steps, other_codes_have_none);
  tcase_add_test(steps, lists_end_where_they_are_full);
  tcase_add_test(steps, fails_without_memory);
  tcase_add_loop_test(bytes, every_row_encodes_by_definition, 0, (int)test_looped_row_count());
  suite_add_tcase(suite, steps);
  suite_add_tcase(suite, bytes);
  return test_main(suite);
}
