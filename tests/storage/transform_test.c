// SPDX-License-Identifier: Apache-2.0
// Encoding by transforms: every shape's steps stand for the matrix of its code, with fewer products
// where a code is large; and encoded shards are those of the definition.
#include <stdlib.h>
#include <string.h>

#include "lib/storage/transform.h"
#include "tests/storage/stripes.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"
#include "tests/support/test_steps.h"

static const weft_generator_kind kinds[] = {WEFT_GENERATOR_VANDERMONDE, WEFT_GENERATOR_CAUCHY};
enum { KINDS = sizeof kinds / sizeof kinds[0], PARITIES = 32 };

// Whether a way was found; its steps stand for the code's matrix.
static bool check_shape(test_allocator *memory, weft_generator_kind kind, size_t k, size_t m,
                        size_t slots) {
  static uint8_t a[WEFT_SHARDS_MAX * WEFT_SHARDS_MAX];
  weft_generator g;
  weft_factors *factors;
  EXPECT_OK(weft_generator_init(&g, kind, k, m, 8, &memory->allocator));
  const weft_status status = weft_transform_new(&g, slots, &factors);
  if (status == WEFT_OK) {
    ck_assert_uint_le(factors->slots, slots);
    if (!test_steps_matrix(factors->steps, factors->count, factors->slots, k, m, a) ||
        memcmp(a, g.parity, m * k) != 0)
      ck_abort_msg("kind %d, %zu + %zu in %zu slots: another matrix", kind, k, m, slots);
  } else {
    EXPECT_STATUS(status, WEFT_E_UNSUPPORTED);
    ck_assert_ptr_null(factors);
  }
  weft_factors_free(factors, &memory->allocator);
  weft_generator_clear(&g);
  return status == WEFT_OK;
}

START_TEST(steps_stand_for_the_matrix) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_generator_kind kind = kinds[_i % KINDS];
  const size_t m = 1 + (size_t)_i / KINDS;
  for (size_t k = 1; k + m <= 256; k += k < 64 ? 1 : 61) {
    const bool found = check_shape(&memory, kind, k, m, 256);
    if (!found && k > 1)
      ck_abort_msg("kind %d, %zu + %zu: no way", kind, k, m);
    if (k % 4 == 0)
      check_shape(&memory, kind, k, m, 24);
  }
  check_shape(&memory, kind, 256 - 7 * m, 7 * m, 256);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// What the method promises (docs/decisions/0009-encoding-by-transforms.md).
START_TEST(products_are_few) {
  static const struct {
    size_t k, m, products;
  } shapes[] = {{16, 16, 65}, {32, 8, 85}, {32, 16, 113}, {64, 16, 209}, {128, 32, 497}};
  test_allocator memory;
  test_allocator_init(&memory, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    weft_generator g;
    weft_factors *factors;
    EXPECT_OK(weft_generator_init(&g, WEFT_GENERATOR_CAUCHY, shapes[i].k, shapes[i].m, 8,
                                  &memory.allocator));
    EXPECT_OK(weft_transform_new(&g, 64, &factors));
    ck_assert_uint_le(weft_transform_count(factors).products, shapes[i].products);
    weft_factors_free(factors, &memory.allocator);
    weft_generator_clear(&g);
  }
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

START_TEST(other_codes_have_none) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  static const weft_generator_kind others[] = {WEFT_GENERATOR_REED_SOL_VAN, WEFT_GENERATOR_ISAL_RS,
                                               WEFT_GENERATOR_CAUCHY_ORIG};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    weft_generator g;
    weft_factors *factors;
    EXPECT_OK(weft_generator_init(&g, others[i], 20, 3, 8, &memory.allocator));
    EXPECT_STATUS(weft_transform_new(&g, 64, &factors), WEFT_E_UNSUPPORTED);
    weft_generator_clear(&g);
  }
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

START_TEST(fails_without_memory) {
  for (size_t fail = 1; fail <= 3; fail++) {
    test_allocator memory;
    weft_generator g;
    weft_factors *factors;
    test_allocator_init(&memory, 0);
    EXPECT_OK(weft_generator_init(&g, WEFT_GENERATOR_CAUCHY, 20, 8, 8, &memory.allocator));
    test_allocator scarce;
    test_allocator_init(&scarce, (long)fail);
    g.allocator = &scarce.allocator;
    const weft_status status = weft_transform_new(&g, 64, &factors);
    ck_assert_int_eq(status, fail <= 2 ? WEFT_E_NOMEM : WEFT_OK);
    weft_factors_free(factors, &scarce.allocator);
    g.allocator = &memory.allocator;
    weft_generator_clear(&g);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
    ck_assert_int_eq(test_allocator_live(&scarce), 0);
  }
}
END_TEST

// Shapes on both sides of what rows choose transforms for, over lengths that leave tails.
START_TEST(every_row_encodes_by_definition) {
  const weft_backend *row = test_host_row((size_t)_i);
  test_rng rng = test_rng_new(test_seed(), 900 + (uint64_t)_i);
  for (size_t threads = 1; threads <= 2; threads++) {
    weft_ctx *ctx = context_on(row->name, threads);
    for (int round = 0; round < 5; round++) {
      const bool large = round == 4; // where even the rows choose them that multiply at once
      const code_case c = {
          .name = round % 3 ? "cauchy" : "vandermonde",
          .k = large ? 64 + test_rng_below(&rng, 65) : 8 + test_rng_below(&rng, 33),
          .m = large ? 24 + test_rng_below(&rng, 17) : 4 + test_rng_below(&rng, 13)};
      weft_code *code = code_on(ctx, &c);
      stripe expected, s;
      const size_t bytes = 2048 + test_rng_below(&rng, 1500);
      stripe_init(&expected, code, bytes, &rng, 0);
      stripe_init(&s, code, bytes, &rng, round % 2 == 0);
      stripe_copy(&s, &expected, code);
      encode_by_definition(code, &expected);
      EXPECT_OK(weft_code_encode(code, &s.view, 1, NULL));
      EXPECT(stripe_same(&expected, &s, code));
      stripe_clear(&expected);
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
  tcase_add_loop_test(steps, steps_stand_for_the_matrix, 0, KINDS * PARITIES);
  tcase_add_test(steps, products_are_few);
  tcase_add_test(steps, other_codes_have_none);
  tcase_add_test(steps, fails_without_memory);
  tcase_add_loop_test(bytes, every_row_encodes_by_definition, 0, (int)test_host_row_count());
  suite_add_tcase(suite, steps);
  suite_add_tcase(suite, bytes);
  return test_main(suite);
}
