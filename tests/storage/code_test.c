// SPDX-License-Identifier: Apache-2.0
// Encoding and recovery through the public calls: every row of this machine, every loss of small
// codes, random losses of large ones, and every way to pass shards.
#include <stdlib.h>
#include <string.h>

#include "tests/storage/stripes.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"

// Codes with sizes and lengths that leave tails everywhere.
static const code_case mixed[] = {
    {"vandermonde", 4, 2, 0, 0},    {"vandermonde", 10, 4, 0, 0},
    {"vandermonde", 1, 1, 0, 0},    {"vandermonde", 200, 56, 0, 0},
    {"cauchy", 6, 3, 0, 0},         {"cauchy", 32, 8, 0, 0},
    {"cauchy", 255, 1, 0, 0},       {"cauchy", 1, 255, 0, 0},
    {"reed_sol_van", 12, 4, 0, 0},  {"reed_sol_van", 5, 1, 0, 0},
    {"isal_rs", 16, 4, 0, 0},       {"isal_rs", 250, 3, 0, 0},
    {"raid6", 8, 2, 0, 0},          {"raid6", 254, 2, 0, 0},
    {"par1", 20, 3, 0, 0},          {"cauchy_orig", 2, 2, 2, 8},
    {"cauchy_orig", 5, 3, 3, 40},   {"cauchy_orig", 10, 4, 4, 64},
    {"cauchy_orig", 20, 6, 5, 16},  {"cauchy_orig", 40, 8, 6, 24},
    {"cauchy_orig", 100, 9, 7, 8},  {"cauchy_orig", 200, 4, 8, 1},
    {"cauchy_good", 10, 4, 8, 512}, {"cauchy_good", 6, 2, 3, 1000},
    {"cauchy_good", 32, 8, 6, 7},   {"cauchy_good", 10, 2, 8, 2048},
    {"gcrs", 12, 4, 0, 0},          {"perasure", 8, 8, 0, 64},
    {"cauchy_good", 10, 4, 8, 200}, {"cauchy_orig", 12, 5, 7, 5000},
};
enum { MIXED = sizeof mixed / sizeof mixed[0] };

static size_t a_length(const weft_code *code, test_rng *rng) {
  const size_t unit = weft_code_unit_bytes(code);
  switch (test_rng_below(rng, 4)) {
  case 0:
    return unit * (1 + test_rng_below(rng, 5));
  case 1:
    return 1 + test_rng_below(rng, unit + 3);
  default:
    return 1 + test_rng_below(rng, unit == 1 ? 700 : 5 * unit);
  }
}

// Spoils the lost shards, recovers the wanted ones, and checks that exactly those come back.
static void lose(weft_code *code, const stripe *whole, stripe *damaged, const weft_erasures *e) {
  stripe_copy(damaged, whole, code);
  for (size_t i = 0; i < e->lost_count; i++)
    stripe_spoil(damaged, code, e->lost[i]);
  EXPECT_OK(weft_code_recover(code, e, &damaged->view, 1, NULL));
  const uint8_t *wanted = e->wanted ? e->wanted : e->lost;
  const size_t count = e->wanted ? e->wanted_count : e->lost_count;
  for (size_t i = 0; i < count; i++)
    EXPECT(stripe_same_shard(whole, damaged, code, wanted[i]));
  for (size_t i = 0; i < e->lost_count; i++)
    if (!memchr(wanted, e->lost[i], count)) { // lost and not wanted: left alone
      const size_t bytes = shard_bytes(code, e->lost[i], whole->view.bytes);
      for (size_t b = 0; b < bytes; b++)
        EXPECT(damaged->shard[e->lost[i]][b] == 0x5A);
    } else {
      memcpy(damaged->shard[e->lost[i]], whole->shard[e->lost[i]],
             shard_bytes(code, e->lost[i], whole->view.bytes));
    }
}

static void random_losses(weft_code *code, const stripe *whole, test_rng *rng, int rounds) {
  const size_t k = weft_code_data_shards(code), m = weft_code_parity_shards(code);
  test_rng unused = *rng;
  stripe damaged;
  stripe_init(&damaged, code, whole->view.bytes, &unused, 0);
  for (int round = 0; round < rounds; round++) {
    uint8_t lost[WEFT_MAX_SHARDS], wanted[WEFT_MAX_SHARDS];
    const size_t count = round == 0 ? m : 1 + test_rng_below(rng, m);
    choose_ids(rng, lost, count, k + m);
    memcpy(wanted, lost, count); // already in random order: any prefix is one
    lose(code, whole, &damaged,
         &(weft_erasures){.lost = lost,
                          .lost_count = count,
                          .wanted = round % 2 ? wanted : NULL,
                          .wanted_count = round % 2 ? 1 + test_rng_below(rng, count) : 0});
  }
  stripe_clear(&damaged);
}

START_TEST(every_row_encodes_by_definition) {
  const weft_backend *row = test_looped_row((size_t)_i);
  test_rng rng = test_rng_new(test_seed(), 100 + (uint64_t)_i);
  weft_ctx *ctx = context_on(row->name, 1);
  for (size_t c = 0; c < MIXED; c++) {
    weft_code *code = code_on(ctx, &mixed[c]);
    for (int round = 0; round < 4; round++) {
      stripe s;
      const size_t bytes = a_length(code, &rng);
      stripe_encode(&s, code, bytes, &rng, round == 0); // guard pages: no access past any end
      random_losses(code, &s, &rng, 2);
      stripe_clear(&s);
    }
    weft_code_free(code);
  }
  weft_ctx_free(ctx);
}
END_TEST

// Codes tested with every loss of up to m shards, for every k + m <= 12.
static const char *const exhaustive[] = {"vandermonde", "cauchy", "reed_sol_van", "isal_rs",
                                         "raid6",       "par1",   "cauchy_orig",  "cauchy_good"};
enum { EXHAUSTIVE = sizeof exhaustive / sizeof exhaustive[0], SMALL = 12 };

static void every_loss_of(weft_code *code, test_rng *rng) {
  const size_t k = weft_code_data_shards(code), m = weft_code_parity_shards(code);
  stripe whole, damaged;
  stripe_init(&whole, code, weft_code_unit_bytes(code) + 5, rng, 0);
  stripe_init(&damaged, code, weft_code_unit_bytes(code) + 5, rng, 0);
  EXPECT_OK(weft_code_encode(code, &whole.view, 1, NULL));
  for (unsigned pattern = 0; pattern < 1u << (k + m); pattern++) {
    uint8_t lost[SMALL];
    size_t count = 0;
    for (size_t s = 0; s < k + m; s++)
      if ((pattern >> s) & 1u)
        lost[count++] = (uint8_t)s;
    const weft_erasures e = {.lost = lost, .lost_count = count};
    if (count > m)
      EXPECT_STATUS(weft_code_recover(code, &e, &whole.view, 1, NULL), WEFT_E_SINGULAR);
    else
      lose(code, &whole, &damaged, &e);
  }
  stripe_clear(&whole);
  stripe_clear(&damaged);
}

// Plans are cached, or made in each call.
static const size_t cached_plans[] = {0, WEFT_NO_PLANS};

START_TEST(every_loss_of_small_codes) {
  test_rng rng = test_rng_new(test_seed(), 200 + (uint64_t)_i);
  weft_ctx *ctx = context_on(NULL, 1);
  const char *const name = exhaustive[_i / 2];
  for (size_t k = 1; k < SMALL; k++)
    for (size_t m = 1; k + m <= SMALL; m++) {
      const code_case c = {name, k, m, 0, strncmp(name, "cauchy_", 7) ? 0 : 3};
      weft_code *code = NULL;
      trying(weft_ctx_backend(ctx), &c);
      const weft_status status =
          weft_code_new(ctx,
                        &(weft_code_options){.name = c.name,
                                             .k = k,
                                             .m = m,
                                             .packet_bytes = c.packet_bytes,
                                             .cached_plans = cached_plans[_i % 2]},
                        &code);
      if (status == WEFT_OK)
        every_loss_of(code, &rng);
      else if (strcmp(c.name, "raid6") == 0)
        EXPECT(m != 2 && status == WEFT_E_ARGUMENT);
      else
        EXPECT(m >= 4 && k >= 3 && status == WEFT_E_SINGULAR);
      weft_code_free(code);
    }
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(random_losses_of_large_codes) {
  static const code_case large[] = {
      {"vandermonde", 128, 128, 0, 0}, {"cauchy", 230, 26, 0, 0},
      {"reed_sol_van", 64, 16, 0, 0},  {"raid6", 200, 2, 0, 0},
      {"isal_rs", 21, 4, 0, 0},        {"cauchy_good", 64, 16, 8, 16},
      {"cauchy_orig", 45, 16, 6, 8},   {"cauchy_good", 24, 8, 5, 64},
      {"gcrs", 45, 4, 8, 0},           {"cauchy", 100, 20, 0, 0},
  };
  test_rng rng = test_rng_new(test_seed(), 300 + (uint64_t)_i);
  weft_ctx *ctx = context_on(NULL, 2);
  for (size_t c = 0; c < sizeof cached_plans / sizeof cached_plans[0]; c++) {
    weft_code *code = code_on(ctx, &large[_i]);
    const weft_code_options options = {.name = weft_code_name(code),
                                       .k = large[_i].k,
                                       .m = large[_i].m,
                                       .cached_plans = cached_plans[c]};
    weft_code *same = NULL;
    stripe whole;
    EXPECT_OK(weft_code_new(ctx, &options, &same));
    stripe_init(&whole, same, 1000, &rng, 0);
    EXPECT_OK(weft_code_encode(same, &whole.view, 1, NULL));
    random_losses(same, &whole, &rng, 30);
    stripe_clear(&whole);
    weft_code_free(same);
    weft_code_free(code);
  }
  weft_ctx_free(ctx);
}
END_TEST

// Long shards on several threads, with CRS plans that are reduced meanwhile, always give the same
// bytes.
START_TEST(long_shards_on_threads) {
  static const code_case cases[] = {{"cauchy", 10, 4, 0, 0},
                                    {"cauchy_good", 10, 4, 8, 512},
                                    {"cauchy_good", 10, 4, 4, 4096},
                                    {"gcrs", 10, 4, 0, 0},
                                    {"cauchy_good", 5, 3, 3, 5000}};
  enum { BYTES = 300 * 1024 + 77 };
  test_rng rng = test_rng_new(test_seed(), 400 + (uint64_t)_i);
  weft_ctx *one = context_on("scalar", 1), *many = context_on(NULL, 3);
  weft_code *reference = code_on(one, &cases[_i]), *code = code_on(many, &cases[_i]);
  stripe expected, s;
  stripe_init(&expected, code, BYTES, &rng, 0);
  stripe_init(&s, code, BYTES, &rng, 0);
  stripe_copy(&s, &expected, code);
  EXPECT_OK(weft_code_encode(reference, &expected.view, 1, NULL)); // with the plain program
  for (int round = 0; round < 6; round++) {
    for (size_t i = 0; i < cases[_i].m; i++)
      stripe_spoil(&s, code, cases[_i].k + i);
    EXPECT_OK(weft_code_encode(code, &s.view, 1, NULL));
    EXPECT(stripe_same(&expected, &s, code));
  }
  random_losses(code, &s, &rng, 12);
  stripe_clear(&expected);
  stripe_clear(&s);
  weft_code_free(reference);
  weft_code_free(code);
  weft_ctx_free(one);
  weft_ctx_free(many);
}
END_TEST

// Many strided stripes in one call give the same as one by one.
START_TEST(bundles_of_strided_stripes) {
  static const code_case cases[] = {{"vandermonde", 4, 2, 0, 0},
                                    {"cauchy", 100, 28, 0, 0},
                                    {"cauchy_good", 10, 4, 8, 8},
                                    {"cauchy_orig", 6, 3, 4, 600}};
  enum { STRIPES = 75, MOST = 2500, STRIDE = 5100 };
  const code_case *c = &cases[_i];
  test_rng rng = test_rng_new(test_seed(), 500 + (uint64_t)_i);
  weft_ctx *ctx = context_on(NULL, 2);
  weft_code *code = code_on(ctx, c);
  const size_t n = c->k + c->m, each = n * STRIDE;
  uint8_t *base = malloc(STRIPES * each);
  ck_assert_ptr_nonnull(base);
  stripe single[STRIPES];
  weft_stripe stripes[STRIPES];
  for (size_t s = 0; s < STRIPES; s++) {
    const size_t bytes = test_rng_below(&rng, MOST); // sometimes 0
    stripe_init(&single[s], code, bytes, &rng, 0);
    stripes[s] = (weft_stripe){.base = base + s * each, .stride = STRIDE, .bytes = bytes};
    for (size_t i = 0; i < c->k; i++)
      memcpy(base + s * each + i * STRIDE, single[s].shard[i], bytes);
    EXPECT_OK(weft_code_encode(code, &single[s].view, 1, NULL));
  }
  EXPECT_OK(weft_code_encode(code, stripes, STRIPES, NULL));
  const uint8_t lost[] = {0, (uint8_t)c->k, (uint8_t)(c->k - 1)};
  const size_t lost_count = c->m < 3 ? c->m : 3;
  for (int round = 0; round < 2; round++) {
    for (size_t s = 0; s < STRIPES; s++)
      for (size_t i = 0; i < n; i++)
        EXPECT(memcmp(base + s * each + i * STRIDE, single[s].shard[i],
                      shard_bytes(code, i, stripes[s].bytes)) == 0);
    for (size_t s = 0; s < STRIPES; s++)
      for (size_t i = 0; i < lost_count; i++)
        memset(base + s * each + lost[i] * STRIDE, 0x5A, STRIDE);
    EXPECT_OK(weft_code_recover(code, &(weft_erasures){.lost = lost, .lost_count = lost_count},
                                stripes, STRIPES, NULL));
  }
  for (size_t s = 0; s < STRIPES; s++)
    stripe_clear(&single[s]);
  free(base);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// Plans in the caller's own order, as in Gibraltar: first the inputs, then the outputs.
START_TEST(plans_in_an_order_of_ones_own) {
  static const code_case cases[] = {
      {"vandermonde", 10, 4, 0, 0}, {"isal_rs", 8, 3, 0, 0}, {"cauchy_good", 6, 3, 4, 16}};
  const code_case *c = &cases[_i];
  test_rng rng = test_rng_new(test_seed(), 600 + (uint64_t)_i);
  weft_ctx *ctx = context_on(NULL, 1);
  weft_code *code = code_on(ctx, c);
  stripe s;
  stripe_init(&s, code, 333, &rng, 0);
  EXPECT_OK(weft_code_encode(code, &s.view, 1, NULL));
  for (int round = 0; round < 50; round++) {
    uint8_t order[WEFT_MAX_SHARDS];
    weft_plan *plan = NULL;
    const size_t stride = weft_code_parity_bytes(code, 333);
    const size_t outputs = 1 + test_rng_below(&rng, c->m);
    choose_ids(&rng, order, c->k + outputs, c->k + c->m);
    uint8_t *base = calloc(c->k + outputs, stride);
    ck_assert_ptr_nonnull(base);
    for (size_t i = 0; i < c->k; i++)
      memcpy(base + i * stride, s.shard[order[i]], shard_bytes(code, order[i], 333));
    EXPECT_OK(weft_plan_new(code, order, order + c->k, outputs, &plan));
    EXPECT(weft_plan_outputs(plan) == outputs);
    EXPECT(memcmp(weft_plan_inputs(plan), order, c->k) == 0);
    const weft_stripe packed = {.base = base, .stride = stride, .bytes = 333};
    EXPECT_OK(weft_plan_run_in_order(plan, &packed, 1, NULL));
    for (size_t i = c->k; i < c->k + outputs; i++)
      EXPECT(memcmp(base + i * stride, s.shard[order[i]], shard_bytes(code, order[i], 333)) == 0);
    weft_plan_free(plan);
    free(base);
  }
  stripe_clear(&s);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// Returns the most of 16 shards that share a set of a first-level cache of 64 sets and lines of 64
// bytes.
static size_t most_in_a_set(size_t stride) {
  size_t in[64] = {0}, most = 0;
  for (size_t i = 0; i < 16; i++)
    in[i * stride / 64 % 64]++;
  for (size_t set = 0; set < 64; set++)
    most = in[set] > most ? in[set] : most;
  return most;
}

// The strides that weft_code_stride suggests make few shards share a cache set.
START_TEST(strides_that_share_few_sets) {
  weft_ctx *ctx = context_on(NULL, 1);
  static const code_case cases[] = {{"cauchy", 4, 2, 0, 0}, {"cauchy_good", 4, 2, 4, 24}};
  for (size_t c = 0; c < 2; c++) {
    weft_code *code = code_on(ctx, &cases[c]);
    EXPECT(weft_code_stride(code, 0) == 0);
    for (size_t bytes = 1; bytes < 20000; bytes += bytes < 200 ? 1 : 31) {
      const size_t whole = weft_code_parity_bytes(code, bytes);
      const size_t stride = weft_code_stride(code, bytes);
      EXPECT(stride % 64 == 0 && stride >= whole && stride < whole + 640);
      if (whole <= 31 * 64) // all fit
        EXPECT(stride < whole + 64);
      else
        EXPECT(most_in_a_set(stride) <= 2);
    }
    for (size_t bytes = 2048; bytes <= (size_t)16 << 20; bytes *= 2)
      EXPECT(most_in_a_set(weft_code_stride(code, bytes)) == 1);
    weft_code_free(code);
  }
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage codes");
  TCase *alone = tcase_create("alone"), *encode = tcase_create("encode"),
        *recover = tcase_create("recover"), *losses = tcase_create("every loss");
  tcase_set_tags(alone, "one-thread");
  tcase_add_loop_test(alone, every_row_encodes_by_definition, 0, (int)test_looped_row_count());
  tcase_set_tags(losses, "one-thread exhaustive");
  tcase_add_loop_test(losses, every_loss_of_small_codes, 0, 2 * EXHAUSTIVE);
  tcase_add_loop_test(alone, plans_in_an_order_of_ones_own, 0, 3);
  tcase_add_loop_test(encode, long_shards_on_threads, 0, 5);
  tcase_add_loop_test(encode, bundles_of_strided_stripes, 0, 4);
  tcase_add_test(encode, strides_that_share_few_sets);
  tcase_add_loop_test(recover, random_losses_of_large_codes, 0, 10);
  suite_add_tcase(suite, alone);
  suite_add_tcase(suite, encode);
  suite_add_tcase(suite, recover);
  suite_add_tcase(suite, losses);
  return test_main(suite);
}
