// SPDX-License-Identifier: Apache-2.0
// What storage.h promises about threads: several may use a code and its plans at once, for any
// calls, while a group has the code as a member as well. For ThreadSanitizer.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>

#include "tests/storage/stripes.h"
#include "tests/support/test_main.h"

enum { THREADS = 4, ROUNDS = 80, BYTES = 9000, K = 9, M = 3 };

typedef struct worker {
  weft_code *code;
  weft_code_group *group; // used by one thread only
  weft_plan *plan;        // shared: rebuilds shard 0
  test_rng rng;
  stripe truth, s;
  int wrong; // Check's own assertions work only on the main thread
} worker;

static void lose(worker *w, const weft_erasures *e) {
  for (size_t i = 0; i < e->lost_count; i++)
    stripe_spoil(&w->s, w->code, e->lost[i]);
}

static weft_status recover(worker *w, size_t how) {
  uint8_t lost[M];
  const size_t count = 1 + test_rng_below(&w->rng, M);
  choose_ids(&w->rng, lost, count, K + M);
  const weft_erasures e = {.lost = lost, .lost_count = count};
  lose(w, &e);
  if (how == 0)
    return weft_code_recover(w->code, &e, &w->s.view, 1, NULL);
  if (how == 1 && w->group)
    return weft_code_group_recover(w->group, (weft_code_split)(lost[0] % 2), &e, &w->s.view, 1);
  weft_plan *plan;
  WEFT_TRY(weft_plan_for(w->code, &e, &plan));
  const weft_status status = weft_plan_run(plan, &w->s.view, 1, NULL);
  weft_plan_free(plan);
  return status;
}

static weft_status run_shared_plan(worker *w) {
  stripe_spoil(&w->s, w->code, 0);
  return weft_plan_run(w->plan, &w->s.view, 1, NULL);
}

static weft_status update(worker *w) {
  const size_t index = test_rng_below(&w->rng, K);
  test_rng_fill(&w->rng, w->truth.shard[index], BYTES);
  const weft_status status =
      weft_code_update(w->code, index, w->s.shard[index], w->truth.shard[index], &w->s.view, NULL);
  memcpy(w->s.shard[index], w->truth.shard[index], BYTES);
  const weft_status encoded = weft_code_encode(w->code, &w->truth.view, 1, NULL);
  return status != WEFT_OK ? status : encoded;
}

static weft_status arrive(worker *w) {
  weft_progress *progress;
  WEFT_TRY(weft_progress_new(w->code, &w->s.view, &progress));
  weft_status status = WEFT_OK;
  for (size_t i = 0; i < K && status == WEFT_OK; i++)
    status = weft_progress_add(progress, K - 1 - i, w->s.shard[K - 1 - i], NULL);
  weft_progress_free(progress);
  return status;
}

static weft_status look(worker *w) {
  weft_plan_stats stats;
  size_t wrong = 1;
  weft_code_plan_stats(w->code, &stats);
  WEFT_TRY(weft_code_verify(w->code, &w->s.view, NULL, &wrong, NULL));
  return wrong == 0 && stats.plans <= stats.capacity ? WEFT_OK : WEFT_E_STATE;
}

static void *work(void *user) {
  worker *w = user;
  for (int round = 0; round < ROUNDS; round++) {
    weft_status status = WEFT_OK;
    switch (test_rng_below(&w->rng, 8)) {
    case 0:
      status = run_shared_plan(w);
      break;
    case 1:
      status = update(w);
      break;
    case 2:
      status = arrive(w);
      break;
    case 3:
      status = weft_code_precompute(w->code, 1);
      break;
    case 4:
      status = look(w);
      break;
    default:
      status = recover(w, test_rng_below(&w->rng, 3));
    }
    w->wrong += status != WEFT_OK || !stripe_same(&w->truth, &w->s, w->code);
  }
  return NULL;
}

START_TEST(any_calls_at_once) {
  static const code_case cases[] = {{"vandermonde", K, M, 0, 0},
                                    {"cauchy_good", K, M, 4, 64},
                                    {"cauchy_orig", K, M, 5, 600},
                                    {"isal_rs", K, M, 0, 0}};
  static const uint8_t lost[] = {0};
  const code_case *c = &cases[_i];
  weft_ctx *ctx = context_on(NULL, 2), *other = context_on(NULL, 1);
  weft_code *codes[2] = {NULL, code_on(other, c)};
  weft_code_group *group;
  weft_plan *plan;
  EXPECT_OK(weft_code_new(ctx,
                          &(weft_code_options){.name = c->name,
                                               .k = K,
                                               .m = M,
                                               .w = c->w,
                                               .packet_bytes = c->packet_bytes,
                                               .cached_plans = K + M},
                          &codes[0]));
  EXPECT_OK(weft_code_group_new(codes, 2, &group));
  EXPECT_OK(weft_plan_for(codes[0], &(weft_erasures){.lost = lost, .lost_count = 1}, &plan));
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (size_t t = 0; t < THREADS; t++) {
    worker *w = &workers[t];
    *w = (worker){.code = codes[0], .group = t == 0 ? group : NULL, .plan = plan};
    w->rng = test_rng_new(test_seed(), 800 + t);
    stripe_init(&w->truth, w->code, BYTES, &w->rng, 0);
    stripe_init(&w->s, w->code, BYTES, &w->rng, 0);
    EXPECT_OK(weft_code_encode(w->code, &w->truth.view, 1, NULL));
    stripe_copy(&w->s, &w->truth, w->code);
  }
  for (size_t t = 0; t < THREADS; t++)
    ck_assert_int_eq(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
  for (size_t t = 0; t < THREADS; t++) {
    ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
    EXPECT(workers[t].wrong == 0);
    stripe_clear(&workers[t].truth);
    stripe_clear(&workers[t].s);
  }
  weft_plan_free(plan);
  weft_code_group_free(group);
  weft_code_free(codes[0]);
  weft_code_free(codes[1]);
  weft_ctx_free(ctx);
  weft_ctx_free(other);
}
END_TEST

// --- one plan ---

enum { LOSSES = 60 };
static pthread_barrier_t together;

static void *lose_the_same(void *user) {
  worker *w = user;
  for (uint8_t i = 0; i < LOSSES; i++) {
    const uint8_t lost[2] = {i % (K + M), (uint8_t)((i % (K + M) + 1 + i / (K + M)) % (K + M))};
    const weft_erasures e = {.lost = lost, .lost_count = 2};
    lose(w, &e);
    pthread_barrier_wait(&together);
    w->wrong += weft_code_recover(w->code, &e, &w->s.view, 1, NULL) != WEFT_OK;
    w->wrong += !stripe_same(&w->truth, &w->s, w->code);
  }
  return NULL;
}

// Threads that find no plan for a loss at the same time make one each, and one is cached. There are
// 12 * 11 / 2 pairs of shards, of which 60 are lost.
START_TEST(one_plan_for_one_loss) {
  weft_ctx *ctx = context_on(NULL, 1);
  weft_code *code = code_on(ctx, &(code_case){"cauchy_good", K, M, 4, 8});
  worker workers[THREADS];
  pthread_t threads[THREADS];
  EXPECT(pthread_barrier_init(&together, NULL, THREADS) == 0);
  for (size_t t = 0; t < THREADS; t++) {
    worker *w = &workers[t];
    *w = (worker){.code = code, .rng = test_rng_new(test_seed(), 850 + t)};
    stripe_init(&w->truth, code, 100, &w->rng, 0);
    stripe_init(&w->s, code, 100, &w->rng, 0);
    EXPECT_OK(weft_code_encode(code, &w->truth.view, 1, NULL));
    stripe_copy(&w->s, &w->truth, code);
  }
  for (size_t t = 0; t < THREADS; t++)
    ck_assert_int_eq(pthread_create(&threads[t], NULL, lose_the_same, &workers[t]), 0);
  for (size_t t = 0; t < THREADS; t++) {
    ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
    EXPECT(workers[t].wrong == 0);
    stripe_clear(&workers[t].truth);
    stripe_clear(&workers[t].s);
  }
  weft_plan_stats stats;
  weft_code_plan_stats(code, &stats);
  EXPECT(stats.plans == LOSSES && stats.hits + stats.misses == THREADS * LOSSES);
  pthread_barrier_destroy(&together);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage threads");
  TCase *tcase = tcase_create("shared");
  tcase_add_loop_test(tcase, any_calls_at_once, 0, 4);
  tcase_add_test(tcase, one_plan_for_one_loss);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
