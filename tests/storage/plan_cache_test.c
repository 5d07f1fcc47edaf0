// SPDX-License-Identifier: Apache-2.0
// Plans cached by a code: which one is evicted, that a loss finds its own plan, and several threads
// on one code.
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/storage/stripes.h"
#include "tests/support/test_main.h"

static void recover_one(weft_code *code, stripe *s, uint8_t id) {
  EXPECT_OK(
      weft_code_recover(code, &(weft_erasures){.lost = &id, .lost_count = 1}, &s->view, 1, NULL));
}

START_TEST(the_least_recently_used_plan_goes) {
  weft_ctx *ctx = context_on(NULL, 1);
  weft_code *code = NULL;
  weft_plan_stats stats;
  test_rng rng = test_rng_new(test_seed(), 4);
  stripe s;
  EXPECT_OK(weft_code_new(
      ctx, &(weft_code_options){.name = "cauchy", .k = 5, .m = 2, .cached_plans = 3}, &code));
  stripe_init(&s, code, 50, &rng, 0);
  EXPECT_OK(weft_code_encode(code, &s.view, 1, NULL));
  static const struct {
    uint8_t lost;
    uint64_t hits, misses;
    size_t plans;
  } steps[] = {{0, 0, 1, 1}, {1, 0, 2, 2}, {2, 0, 3, 3}, {0, 1, 3, 3},
               {3, 1, 4, 3}, {0, 2, 4, 3}, {1, 2, 5, 3}, {3, 3, 5, 3}};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    recover_one(code, &s, steps[i].lost);
    weft_code_plan_stats(code, &stats);
    EXPECT(stats.hits == steps[i].hits && stats.misses == steps[i].misses);
    EXPECT(stats.plans == steps[i].plans && stats.capacity == 3);
  }
  EXPECT_STATUS(weft_code_precompute(code, 1), WEFT_E_BUFFER);
  EXPECT_STATUS(weft_code_precompute(code, 3), WEFT_E_ARGUMENT);
  weft_code_free(code);
  EXPECT_OK(weft_code_new(
      ctx, &(weft_code_options){.name = "cauchy", .k = 5, .m = 2, .cached_plans = 28}, &code));
  EXPECT_OK(weft_code_precompute(code, 2)); // 7 + 21 patterns
  weft_code_plan_stats(code, &stats);
  EXPECT(stats.plans == 28 && stats.misses == 28 && stats.hits == 0);
  for (uint8_t i = 0; i < 7; i++)
    recover_one(code, &s, i);
  weft_code_plan_stats(code, &stats);
  EXPECT(stats.misses == 28 && stats.hits == 7);
  weft_code_free(code);
  EXPECT_OK(weft_code_new(
      ctx, &(weft_code_options){.name = "cauchy", .k = 5, .m = 2, .cached_plans = WEFT_NO_PLANS},
      &code));
  recover_one(code, &s, 1);
  recover_one(code, &s, 1);
  weft_code_plan_stats(code, &stats);
  EXPECT(stats.plans == 0 && stats.misses == 2 && stats.hits == 0);
  stripe_clear(&s);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

enum { LOSSES = 24, KEPT = 7 };

// A loss of which all shards or some are wanted.
typedef struct loss {
  uint8_t lost[WEFT_MAX_SHARDS];
  size_t lost_count, wanted_count; // the first ones are wanted
  uint64_t used;                   // time of the last use
  bool kept;
} loss;

// Models the cache; returns 1 if the plan is cached.
static int use(loss *losses, size_t at, uint64_t now) {
  const int hit = losses[at].kept;
  size_t kept = 0, oldest = LOSSES;
  for (size_t i = 0; i < LOSSES; i++) {
    kept += losses[i].kept;
    if (losses[i].kept && (oldest == LOSSES || losses[i].used < losses[oldest].used))
      oldest = i;
  }
  if (!hit && kept == KEPT)
    losses[oldest].kept = false;
  losses[at].kept = true;
  losses[at].used = now;
  return hit;
}

static bool same_loss(const loss *a, const loss *b) {
  return a->lost_count == b->lost_count && a->wanted_count == b->wanted_count &&
         memcmp(a->lost, b->lost, a->lost_count) == 0;
}

static int by_id(const void *a, const void *b) { return *(const uint8_t *)a - *(const uint8_t *)b; }

// Chooses distinct losses. Wanted and unwanted shards are sorted, since the key of a plan consists
// of sets.
static void choose_losses(loss *losses, test_rng *rng, size_t n, size_t m) {
  for (size_t i = 0; i < LOSSES; i++) {
    loss *const l = &losses[i];
    bool again = true;
    while (again) {
      *l = (loss){.lost_count = 1 + test_rng_below(rng, m)};
      choose_ids(rng, l->lost, l->lost_count, n);
      l->wanted_count = 1 + test_rng_below(rng, l->lost_count);
      qsort(l->lost, l->wanted_count, 1, by_id);
      qsort(l->lost + l->wanted_count, l->lost_count - l->wanted_count, 1, by_id);
      again = false;
      for (size_t j = 0; j < i; j++)
        again = again || same_loss(l, &losses[j]);
    }
  }
}

static void recover_and_compare(weft_code *code, stripe *s, const stripe *whole, const loss *l) {
  stripe_copy(s, whole, code);
  for (size_t i = 0; i < l->lost_count; i++)
    stripe_spoil(s, code, l->lost[i]);
  const weft_erasures erasures = {.lost = l->lost,
                                  .lost_count = l->lost_count,
                                  .wanted = l->lost,
                                  .wanted_count = l->wanted_count};
  EXPECT_OK(weft_code_recover(code, &erasures, &s->view, 1, NULL));
  for (size_t i = 0; i < l->wanted_count; i++)
    EXPECT(stripe_same_shard(whole, s, code, l->lost[i]));
}

// A loss finds its own plan, with keys of one, two and four words of shards.
START_TEST(a_loss_finds_its_own_plan) {
  static const code_case cases[] = {
      {"cauchy", 10, 4, 0, 0}, {"cauchy_good", 60, 8, 0, 8}, {"vandermonde", 200, 56, 0, 0}};
  const code_case *const c = &cases[_i];
  trying(NULL, c);
  weft_ctx *ctx = context_on(NULL, 1);
  weft_code *code = NULL;
  EXPECT_OK(weft_code_new(ctx,
                          &(weft_code_options){.name = c->name,
                                               .k = c->k,
                                               .m = c->m,
                                               .packet_bytes = c->packet_bytes,
                                               .cached_plans = KEPT},
                          &code));
  test_rng rng = test_rng_new(test_seed(), 40 + (uint64_t)_i);
  loss losses[LOSSES];
  choose_losses(losses, &rng, c->k + c->m, c->m);
  stripe whole, s;
  stripe_encode(&whole, code, 64, &rng, 0);
  stripe_init(&s, code, 64, &rng, 0);
  weft_plan_stats stats;
  uint64_t hits = 0;
  const uint64_t steps = c->k > 100 ? 100 : 400;
  for (uint64_t step = 1; step <= steps; step++) {
    const size_t at = test_rng_below(&rng, test_rng_below(&rng, 2) ? LOSSES : KEPT);
    hits += (uint64_t)use(losses, at, step);
    recover_and_compare(code, &s, &whole, &losses[at]);
    weft_code_plan_stats(code, &stats);
    EXPECT(stats.hits == hits && stats.misses == step - hits && stats.plans <= KEPT);
  }
  EXPECT(hits > 0 && stats.plans == KEPT && stats.misses > KEPT);
  stripe_clear(&whole);
  stripe_clear(&s);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// Losses that differ only in the last shard, which may be alone in the last word of a key, and
// losses of which other shards are wanted, have plans of their own.
START_TEST(every_shard_counts) {
  static const size_t shards[] = {63, 64, 65, 128, 129, 192, 193, 256};
  const size_t n = shards[_i];
  const code_case c = {"cauchy", n - 2, 2, 0, 0};
  const uint8_t last = (uint8_t)(n - 1);
  const loss losses[] = {{.lost = {3}, .lost_count = 1, .wanted_count = 1},
                         {.lost = {3, last}, .lost_count = 2, .wanted_count = 2},
                         {.lost = {3, last}, .lost_count = 2, .wanted_count = 1},
                         {.lost = {last, 3}, .lost_count = 2, .wanted_count = 1},
                         {.lost = {last}, .lost_count = 1, .wanted_count = 1}};
  enum { ALL = sizeof losses / sizeof losses[0] };
  trying(NULL, &c);
  weft_ctx *ctx = context_on(NULL, 1);
  weft_code *code = code_on(ctx, &c);
  test_rng rng = test_rng_new(test_seed(), 50 + (uint64_t)_i);
  stripe whole, s;
  stripe_encode(&whole, code, 40, &rng, 0);
  stripe_init(&s, code, 40, &rng, 0);
  for (uint64_t use = 0; use < 2; use++)
    for (uint64_t i = 0; i < ALL; i++) {
      weft_plan_stats stats;
      recover_and_compare(code, &s, &whole, &losses[i]);
      weft_code_plan_stats(code, &stats);
      EXPECT(stats.misses == (use ? ALL : i + 1) && stats.hits == (use ? i + 1 : 0));
    }
  stripe_clear(&whole);
  stripe_clear(&s);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// Groups encode with what their members' codes have prepared for encoding, which does not count as
// recovery. Only when rows are split do the members need plans, as each computes some of them.
START_TEST(groups_encode_without_plans) {
  weft_ctx *ctx[2] = {context_on(NULL, 1), context_on(NULL, 2)};
  const code_case *const c = &(code_case){_i ? "cauchy_good" : "vandermonde", 10, 4, 0, 0};
  weft_code *codes[2] = {code_on(ctx[0], c), code_on(ctx[1], c)};
  weft_code_group *group = NULL;
  weft_plan_stats stats;
  test_rng rng = test_rng_new(test_seed(), 60);
  stripe whole, s;
  stripe_encode(&whole, codes[0], 9001, &rng, 0);
  stripe_init(&s, codes[0], 9001, &rng, 0);
  for (int split = 0; split < 2; split++)
    for (size_t members = 1; members <= 2; members++) {
      stripe_copy(&s, &whole, codes[0]);
      for (size_t i = 0; i < c->m; i++)
        stripe_spoil(&s, codes[0], c->k + i);
      EXPECT_OK(weft_code_group_new(codes, members, &group));
      EXPECT_OK(weft_code_group_encode(group, (weft_code_split)split, &s.view, 1));
      EXPECT(stripe_same(&whole, &s, codes[0]));
      weft_code_group_free(group);
      weft_code_plan_stats(codes[0], &stats);
      const size_t plans = split == WEFT_CODE_SPLIT_ROWS && members > 1;
      EXPECT(stats.plans == plans && stats.misses == plans && stats.hits == 0);
    }
  stripe_clear(&whole);
  stripe_clear(&s);
  for (int i = 0; i < 2; i++) {
    weft_code_free(codes[i]);
    weft_ctx_free(ctx[i]);
  }
}
END_TEST

enum { THREADS = 4, ROUNDS = 60, BYTES = 40000 };

typedef struct worker {
  weft_code *code;
  uint64_t salt;
  int wrong;
} worker;

// Check's own assertions work only on the main thread.
static void *recover_much(void *user) {
  worker *w = user;
  test_rng rng = test_rng_new(test_seed(), w->salt);
  stripe whole, s;
  stripe_init(&whole, w->code, BYTES, &rng, 0);
  stripe_init(&s, w->code, BYTES, &rng, 0);
  w->wrong += weft_code_encode(w->code, &whole.view, 1, NULL) != WEFT_OK;
  for (int round = 0; round < ROUNDS; round++) {
    uint8_t lost[2];
    choose_ids(&rng, lost, 2, 8);
    stripe_copy(&s, &whole, w->code);
    stripe_spoil(&s, w->code, lost[0]);
    stripe_spoil(&s, w->code, lost[1]);
    w->wrong += weft_code_recover(w->code, &(weft_erasures){.lost = lost, .lost_count = 2}, &s.view,
                                  1, NULL) != WEFT_OK;
    w->wrong += !stripe_same(&whole, &s, w->code);
  }
  stripe_clear(&whole);
  stripe_clear(&s);
  return NULL;
}

START_TEST(threads_share_a_code) {
  static const char *const names[] = {"cauchy", "cauchy_good"};
  weft_ctx *ctx = context_on(NULL, 2);
  weft_code *code = NULL;
  EXPECT_OK(weft_code_new(
      ctx, &(weft_code_options){.name = names[_i], .k = 6, .m = 2, .cached_plans = 4}, &code));
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (size_t t = 0; t < THREADS; t++) {
    workers[t] = (worker){.code = code, .salt = 700 + t};
    ck_assert_int_eq(pthread_create(&threads[t], NULL, recover_much, &workers[t]), 0);
  }
  for (size_t t = 0; t < THREADS; t++) {
    ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
    EXPECT(workers[t].wrong == 0);
  }
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan cache");
  TCase *tcase = tcase_create("plan cache");
  tcase_add_test(tcase, the_least_recently_used_plan_goes);
  tcase_add_loop_test(tcase, a_loss_finds_its_own_plan, 0, 3);
  tcase_add_loop_test(tcase, every_shard_counts, 0, 8);
  tcase_add_loop_test(tcase, groups_encode_without_plans, 0, 2);
  tcase_add_loop_test(tcase, threads_share_a_code, 0, 2);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
