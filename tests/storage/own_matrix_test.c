// SPDX-License-Identifier: Apache-2.0
// Codes with a matrix provided by the user: exactly the losses that the rank of the matrix allows
// can be recovered, reading no more shards than that takes; and all other calls.
#include <stdlib.h>
#include <string.h>

#include "kernels/gf256.h"
#include "lib/storage/generator.h"
#include "tests/storage/stripes.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"

typedef struct own {
  size_t k, m;
  uint8_t parity[64 * 64];
  weft_code *code;
} own;

static const code_case *describe(const own *o) {
  static code_case c;
  c = (code_case){"matrix", o->k, o->m, 0, 0};
  return &c;
}

static void own_new(own *o, weft_ctx *ctx) {
  trying(weft_ctx_backend(ctx), describe(o));
  const weft_code_options options = {
      .name = "matrix", .k = o->k, .m = o->m, .parity = o->parity, .cached_plans = 16};
  EXPECT_OK(weft_code_new(ctx, &options, &o->code));
}

// Makes a matrix whose entries are zero with probability `zeros` / 8, sometimes with a repeated
// row.
static void random_matrix(own *o, test_rng *rng, size_t zeros) {
  for (size_t i = 0; i < o->k * o->m; i++)
    o->parity[i] = test_rng_below(rng, 8) < zeros ? 0 : (uint8_t)test_rng_next(rng);
  if (o->m > 1 && test_rng_below(rng, 3) == 0)
    memcpy(o->parity, o->parity + (o->m - 1) * o->k, o->k);
}

// Makes a local code: groups of data shards with one parity shard each, and `global` parity shards
// over all data.
static void local_repair(own *o, size_t groups, size_t each, size_t global) {
  o->k = groups * each;
  o->m = groups + global;
  memset(o->parity, 0, o->k * o->m);
  for (size_t g = 0; g < groups; g++)
    memset(o->parity + g * o->k + g * each, 1, each);
  for (size_t i = 0; i < global; i++)
    for (size_t j = 0; j < o->k; j++)
      o->parity[(groups + i) * o->k + j] = weft_gf256_exp[(i + 1) * j % 255];
}

// --- the definition: rank ---

static void generator_row(const own *o, size_t shard, uint8_t *row) {
  memset(row, 0, o->k);
  if (shard < o->k)
    row[shard] = 1;
  else
    memcpy(row, o->parity + (shard - o->k) * o->k, o->k);
}

// Returns the rank of the rows of `count` shards, by elimination in place.
static size_t rank_of(const own *o, const uint8_t *ids, size_t count) {
  static uint8_t rows[64][64];
  size_t rank = 0;
  for (size_t i = 0; i < count; i++)
    generator_row(o, ids[i], rows[i]);
  for (size_t column = 0; column < o->k && rank < count; column++) {
    size_t pivot = rank;
    while (pivot < count && !rows[pivot][column])
      pivot++;
    if (pivot == count)
      continue;
    uint8_t swap[64];
    memcpy(swap, rows[pivot], o->k);
    memcpy(rows[pivot], rows[rank], o->k);
    memcpy(rows[rank], swap, o->k);
    for (size_t i = rank + 1; i < count; i++) {
      const uint8_t factor =
          weft_gf256_product[rows[i][column]][weft_gf256_inv[rows[rank][column]]];
      for (size_t j = 0; j < o->k; j++)
        rows[i][j] ^= weft_gf256_product[factor][rows[rank][j]];
    }
    rank++;
  }
  return rank;
}

static bool follows(const own *o, const uint8_t *present, size_t count, uint8_t shard) {
  uint8_t all[64];
  if (count)
    memcpy(all, present, count);
  all[count] = shard;
  return rank_of(o, all, count + 1) == rank_of(o, present, count);
}

// --- recovery ---

static void recover(const own *o, const stripe *whole, stripe *damaged, const weft_erasures *e) {
  uint8_t present[64];
  size_t count = 0;
  bool possible = true;
  for (size_t i = 0; i < o->k + o->m; i++)
    if (!e->lost_count || !memchr(e->lost, (int)i, e->lost_count))
      present[count++] = (uint8_t)i;
  const uint8_t *const wanted = e->wanted ? e->wanted : e->lost;
  const size_t wanted_count = e->wanted ? e->wanted_count : e->lost_count;
  for (size_t i = 0; i < wanted_count; i++)
    possible = possible && follows(o, present, count, wanted[i]);
  stripe_copy(damaged, whole, o->code);
  for (size_t i = 0; i < e->lost_count; i++)
    stripe_spoil(damaged, o->code, e->lost[i]);
  weft_plan *plan = NULL;
  const weft_status status = weft_plan_for(o->code, e, &plan);
  EXPECT(status == (possible ? WEFT_OK : WEFT_E_SINGULAR));
  EXPECT_STATUS(weft_code_recover(o->code, e, NULL, 0, NULL), status); // for no stripe at all
  uint8_t *given[WEFT_MAX_SHARDS] = {NULL}; // shards neither read nor written are NULL
  for (size_t i = 0; plan && i < weft_plan_input_count(plan); i++)
    given[weft_plan_inputs(plan)[i]] = damaged->shard[weft_plan_inputs(plan)[i]];
  for (size_t i = 0; i < wanted_count; i++)
    given[wanted[i]] = damaged->shard[wanted[i]];
  const weft_stripe view = {.shards = given, .bytes = whole->view.bytes};
  EXPECT_STATUS(weft_code_recover(o->code, e, &view, 1, NULL), status);
  for (size_t i = 0; i < wanted_count; i++)
    EXPECT(possible ? stripe_same_shard(whole, damaged, o->code, wanted[i])
                    : damaged->shard[wanted[i]][0] == 0x5A);
  if (plan) {
    for (size_t i = 0; i < wanted_count; i++)
      stripe_spoil(damaged, o->code, wanted[i]);
    EXPECT_OK(weft_plan_run(plan, &view, 1, NULL));
    for (size_t i = 0; i < wanted_count; i++)
      EXPECT(stripe_same_shard(whole, damaged, o->code, wanted[i]));
  }
  weft_plan_free(plan);
}

static void random_losses(own *o, weft_ctx *ctx, size_t bytes, test_rng *rng) {
  stripe whole, damaged;
  own_new(o, ctx);
  stripe_init(&whole, o->code, bytes, rng, 1);
  stripe_init(&damaged, o->code, bytes, rng, 1);
  EXPECT_OK(weft_code_encode(o->code, &whole.view, 1, NULL));
  stripe_copy(&damaged, &whole, o->code);
  encode_by_definition(o->code, &damaged);
  EXPECT(stripe_same(&whole, &damaged, o->code));
  for (size_t round = 0; round < 12; round++) {
    const size_t n = o->k + o->m,
                 lost_count = test_rng_below(rng, (n < o->m + 3 ? n : o->m + 3) + 1);
    uint8_t lost[64];
    choose_ids(rng, lost, lost_count, n);
    const weft_erasures all = {.lost = lost, .lost_count = lost_count};
    recover(o, &whole, &damaged, &all);
    const weft_erasures some = {.lost = lost,
                                .lost_count = lost_count,
                                .wanted = lost,
                                .wanted_count = test_rng_below(rng, lost_count + 1)};
    recover(o, &whole, &damaged, &some);
  }
  stripe_clear(&whole);
  stripe_clear(&damaged);
  weft_code_free(o->code);
}

// Losses of random matrices are recovered exactly if the rank allows it.
START_TEST(what_follows_is_recovered) {
  test_rng rng = test_rng_new(test_seed(), 60);
  weft_ctx *ctx = context_on(test_looped_row((size_t)_i)->name, 1 + (size_t)_i % 2);
  static own o;
  for (size_t round = 0; round < 25; round++) {
    o.k = 1 + test_rng_below(&rng, 20);
    o.m = test_rng_below(&rng, 9);
    random_matrix(&o, &rng, test_rng_below(&rng, 8));
    random_losses(&o, ctx, 1 + test_rng_below(&rng, round % 5 ? 300 : 20000), &rng);
  }
  local_repair(&o, 3, 5, 3);
  random_losses(&o, ctx, 4096, &rng);
  weft_ctx_free(ctx);
}
END_TEST

// --- local repair ---

static size_t inputs_for(const own *o, const uint8_t *lost, size_t count) {
  weft_plan *plan;
  EXPECT_OK(weft_plan_for(o->code, &(weft_erasures){.lost = lost, .lost_count = count}, &plan));
  const size_t inputs = weft_plan_input_count(plan);
  weft_plan_free(plan);
  return inputs;
}

// One lost shard of a local group is recovered from that group alone.
START_TEST(one_loss_reads_its_group) {
  weft_ctx *ctx = context_on(NULL, 1);
  static own o;
  local_repair(&o, 2, 6, 2); // 12 data shards, 2 local and 2 global parity shards
  own_new(&o, ctx);
  for (uint8_t i = 0; i < 14; i++)
    EXPECT(inputs_for(&o, &i, 1) == 6);
  for (uint8_t i = 14; i < 16; i++)
    EXPECT(inputs_for(&o, &i, 1) == 12);
  EXPECT(inputs_for(&o, (const uint8_t[]){0, 6}, 2) == 12);  // both groups locally
  EXPECT(inputs_for(&o, (const uint8_t[]){0, 12}, 2) == 12); // one group cannot be repaired locally
  EXPECT(inputs_for(&o, (const uint8_t[]){0, 1, 2}, 3) == 12);
  weft_code_free(o.code);
  // The same if parity over all data comes first.
  uint8_t *const last = o.parity + 2 * o.k;
  for (size_t i = 0; i < 2 * o.k; i++) {
    const uint8_t local = o.parity[i];
    o.parity[i] = last[i];
    last[i] = local;
  }
  own_new(&o, ctx);
  for (uint8_t i = 0; i < 12; i++)
    EXPECT(inputs_for(&o, &i, 1) == 6);
  weft_code_free(o.code);
  weft_ctx_free(ctx);
}
END_TEST

// Local repair with 12 + 2 + 2 shards survives as many losses as possible: any three, and 86 % of
// four (Huang et al., Erasure coding in Windows Azure Storage, 2012).
START_TEST(losses_that_local_repair_survives) {
  weft_ctx *ctx = context_on(NULL, 1);
  static own o;
  local_repair(&o, 2, 6, 2);
  own_new(&o, ctx);
  for (size_t losses = 3; losses <= 4; losses++) {
    uint8_t lost[4];
    size_t survived = 0;
    weft_first_subset(lost, losses);
    do {
      weft_plan *plan;
      const weft_erasures erasures = {.lost = lost, .lost_count = losses};
      survived += weft_plan_for(o.code, &erasures, &plan) == WEFT_OK;
      weft_plan_free(plan);
    } while (weft_next_subset(lost, losses, 16));
    EXPECT(survived == (losses == 3 ? 560 : 1568));
  }
  weft_code_free(o.code);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(every_loss_of_a_local_code) {
  test_rng rng = test_rng_new(test_seed(), 61);
  weft_ctx *ctx = context_on(NULL, 1);
  static own o;
  stripe whole, damaged;
  local_repair(&o, 2, 4, 2);
  own_new(&o, ctx);
  stripe_init(&whole, o.code, 100, &rng, 0);
  stripe_init(&damaged, o.code, 100, &rng, 0);
  EXPECT_OK(weft_code_encode(o.code, &whole.view, 1, NULL));
  for (unsigned set = 0; set < 1u << 12; set++) {
    uint8_t lost[12];
    size_t count = 0;
    for (uint8_t i = 0; i < 12; i++)
      if (set >> i & 1u)
        lost[count++] = i;
    recover(&o, &whole, &damaged, &(weft_erasures){.lost = lost, .lost_count = count});
  }
  stripe_clear(&whole);
  stripe_clear(&damaged);
  weft_code_free(o.code);
  weft_ctx_free(ctx);
}
END_TEST

// --- the other calls ---

START_TEST(parts_plans_and_groups) {
  test_rng rng = test_rng_new(test_seed(), 62);
  weft_ctx *ctx = context_on(NULL, 1), *second = context_on(NULL, 1);
  static own o, other;
  stripe s, t;
  local_repair(&o, 2, 3, 1);
  own_new(&o, ctx);
  stripe_init(&s, o.code, 777, &rng, 0);
  stripe_init(&t, o.code, 777, &rng, 0);
  EXPECT_OK(weft_code_encode(o.code, &s.view, 1, NULL));
  size_t wrong = 9;
  EXPECT_OK(weft_code_verify(o.code, &s.view, NULL, &wrong, NULL));
  EXPECT(wrong == 0);
  EXPECT_OK(weft_code_update(o.code, 2, s.shard[2], t.shard[2], &s.view, NULL));
  memcpy(s.shard[2], t.shard[2], 777);
  EXPECT_OK(weft_code_verify(o.code, &s.view, NULL, &wrong, NULL));
  EXPECT(wrong == 0);
  weft_progress *progress;
  EXPECT_OK(weft_progress_new(o.code, &t.view, &progress));
  for (size_t i = 0; i < o.k; i++)
    EXPECT_OK(weft_progress_add(progress, o.k - 1 - i, s.shard[o.k - 1 - i], NULL));
  EXPECT_OK(weft_progress_finish(progress));
  weft_progress_free(progress);
  for (size_t i = 0; i < o.m; i++)
    EXPECT(memcmp(s.shard[o.k + i], t.shard[o.k + i], 777) == 0);

  weft_plan *plan;
  const uint8_t dependent[] = {0, 1, 2, 3, 4, 6}; // the first group and its parity; 5 is missing
  EXPECT_STATUS(weft_plan_new(o.code, dependent, (const uint8_t[]){5}, 1, &plan), WEFT_E_SINGULAR);
  EXPECT_OK(weft_plan_new(o.code, dependent, (const uint8_t[]){7}, 0, &plan));
  weft_plan_free(plan);
  EXPECT_OK(weft_code_precompute(o.code, 1));
  EXPECT_STATUS(weft_code_precompute(o.code, 3), WEFT_E_BUFFER);

  other = o;
  own_new(&other, second);
  weft_code_group *group;
  EXPECT_OK(weft_code_group_new((weft_code *const[]){o.code, other.code}, 2, &group));
  memset(s.shard[o.k], 0x5A, 777);
  EXPECT_OK(weft_code_group_encode(group, WEFT_CODE_SPLIT_ROWS, &s.view, 1));
  EXPECT_OK(weft_code_verify(o.code, &s.view, NULL, &wrong, NULL));
  EXPECT(wrong == 0);
  weft_code_group_free(group);
  weft_code_free(other.code);
  other.parity[0] ^= 1;
  own_new(&other, second);
  EXPECT_STATUS(weft_code_group_new((weft_code *const[]){o.code, other.code}, 2, &group),
                WEFT_E_ARGUMENT);
  stripe_clear(&s);
  stripe_clear(&t);
  weft_code_free(other.code);
  weft_code_free(o.code);
  weft_ctx_free(second);
  weft_ctx_free(ctx);
}
END_TEST

// Precomputing skips losses that cannot be recovered.
START_TEST(precomputed_where_it_can_be) {
  weft_ctx *ctx = context_on(NULL, 1);
  const uint8_t twice[] = {1, 1, 1, 1}; // two equal parity shards for two data shards
  weft_code *code;
  weft_plan_stats stats;
  EXPECT_OK(weft_code_new(
      ctx, &(weft_code_options){.name = "matrix", .k = 2, .m = 2, .parity = twice}, &code));
  EXPECT_OK(weft_code_precompute(code, 2));
  weft_code_plan_stats(code, &stats);
  EXPECT(stats.plans == 4 + 5); // of the six pairs, only the two data shards cannot be recovered
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(options_that_make_no_sense) {
  weft_ctx *ctx = context_on(NULL, 1);
  const uint8_t parity[] = {1, 2, 3};
  weft_code *code;
  const weft_code_options wrong[] = {
      {.name = "matrix", .k = 3, .m = 1},
      {.name = "matrix", .k = 3, .m = 1, .w = 4, .parity = parity},
      {.name = "matrix", .k = 3, .m = 1, .packet_bytes = 8, .parity = parity},
      {.name = "matrix", .k = 0, .m = 1, .parity = parity},
      {.name = "matrix", .k = 200, .m = 57, .parity = parity},
      {.name = "matrix:w=8", .k = 3, .m = 1, .parity = parity},
      {.name = "cauchy", .k = 3, .m = 1, .parity = parity},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    EXPECT_STATUS(weft_code_new(ctx, &wrong[i], &code), WEFT_E_ARGUMENT);
  const weft_code_options inverse = {
      .name = "matrix", .k = 3, .m = 1, .parity = parity, .device_inverse = true};
  EXPECT_STATUS(weft_code_new(ctx, &inverse, &code), WEFT_E_UNSUPPORTED);
  EXPECT_OK(weft_code_new(ctx, &(weft_code_options){.name = "matrix", .k = 3}, &code));
  EXPECT(strcmp(weft_code_name(code), "matrix") == 0 && weft_code_unit_bytes(code) == 1);
  weft_code_free(code);
  for (size_t i = 0; weft_code_known_name(i); i++)
    EXPECT(strcmp(weft_code_known_name(i), "matrix") != 0);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("own matrix");
  TCase *recovery = tcase_create("recovery"), *calls = tcase_create("calls");
  tcase_add_loop_test(recovery, what_follows_is_recovered, 0, (int)test_looped_row_count());
  tcase_add_test(recovery, one_loss_reads_its_group);
  tcase_add_test(recovery, losses_that_local_repair_survives);
  tcase_add_test(recovery, every_loss_of_a_local_code);
  tcase_add_test(calls, parts_plans_and_groups);
  tcase_add_test(calls, precomputed_where_it_can_be);
  tcase_add_test(calls, options_that_make_no_sense);
  suite_add_tcase(suite, recovery);
  suite_add_tcase(suite, calls);
  return test_main(suite);
}
