// SPDX-License-Identifier: Apache-2.0
// Recovery by transforms: on every row the same bytes as by definition, whatever is lost, with
// plans that are cached, made to be fast from the start, or made for one call; several threads on
// one plan; memory that fails.
#include <pthread.h>
#include <string.h>

#include "kernels/pool.h"
#include "lib/storage/code.h"
#include "tests/storage/stripes.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"

// With so many stripes of at least LEAST bytes a call is worth factors, on two threads as well.
enum { STRIPES = 48, LEAST = 2048 + 1, MOST = 2600, KINDS = 4 };

// Stripes of one code with the same contents, and the expected contents.
typedef struct scene {
  weft_code *code;
  stripe whole, stripes[STRIPES];
  weft_stripe views[STRIPES];
  uint8_t lost[WEFT_MAX_SHARDS];
  size_t lost_count;
} scene;

static void scene_init(scene *s, weft_code *code, test_rng *rng) {
  const size_t bytes = LEAST + test_rng_below(rng, MOST - LEAST);
  s->code = code;
  stripe_init(&s->whole, code, bytes, rng, 0);
  encode_by_definition(code, &s->whole);
  for (size_t i = 0; i < STRIPES; i++) {
    stripe_init(&s->stripes[i], code, bytes, rng, i == 0);
    stripe_copy(&s->stripes[i], &s->whole, code);
    s->views[i] = s->stripes[i].view;
  }
}

static void scene_clear(scene *s) {
  stripe_clear(&s->whole);
  for (size_t i = 0; i < STRIPES; i++)
    stripe_clear(&s->stripes[i]);
}

// Loses as many shards as possible: any data, any shards, a run of data, or a run that ends in
// parity.
static void lose(scene *s, test_rng *rng, size_t kind) {
  const size_t k = weft_code_data_shards(s->code), m = weft_code_parity_shards(s->code);
  const size_t first = kind == 2 ? test_rng_below(rng, k - m + 1) : k - m / 2;
  s->lost_count = m;
  if (kind < 2)
    choose_ids(rng, s->lost, m, kind ? k + m : k);
  else
    for (size_t i = 0; i < m; i++)
      s->lost[i] = (uint8_t)(first + i);
}

static weft_erasures spoil(scene *s, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t l = 0; l < s->lost_count; l++)
      stripe_spoil(&s->stripes[i], s->code, s->lost[l]);
  return (weft_erasures){.lost = s->lost, .lost_count = s->lost_count};
}

static bool rebuilt(const scene *s, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!stripe_same(&s->whole, &s->stripes[i], s->code))
      return false;
  return true;
}

static bool has_factors(const weft_plan *plan) {
  return atomic_load(&((weft_plan *)(uintptr_t)plan)->factors) != NULL;
}

static weft_code *code_with(weft_ctx *ctx, const code_case *c, size_t cached_plans) {
  weft_code *code = NULL;
  trying(weft_ctx_backend(ctx), c);
  EXPECT_OK(weft_code_new(
      ctx,
      &(weft_code_options){.name = c->name, .k = c->k, .m = c->m, .cached_plans = cached_plans},
      &code));
  return code;
}

// Whether the cost of a matrix entry, compared with steps, is the same for these stripes as for
// longer ones, so that factors worth making at all are worth it here.
static bool pays_in_short_stripes(const weft_backend *row, size_t m, size_t k) {
  const weft_host_kernel *kernel = row->host;
  return !kernel->entry || kernel->entry(m, k, LEAST) == kernel->entry(m, k, 0);
}

// Whether a plan is a detour by encoding's factors (kernels/factors.h).
static bool is_detour(const weft_plan *plan) {
  return weft_transform_is_detour(&plan->code->generator, plan->ids, plan->ids + plan->inputs,
                                  plan->outputs);
}

// Whether what the first `count` stripes read repays making a plan's factors.
static bool repaid(const weft_plan *plan, const scene *s, size_t count) {
  const weft_ctx *ctx = plan->code->ctx;
  const weft_host_kernel *kernel = ctx->host->host;
  const size_t products = is_detour(plan) ? kernel->detour_repays : kernel->factors_repay;
  size_t read = 0;
  for (size_t i = 0; i < count; i++)
    read += s->views[i].bytes * plan->inputs;
  return read >= products / plan->outputs * weft_pool_threads(ctx->pool);
}

// Recovers with a cached plan, which becomes faster meanwhile; with a plan made to be fast; and
// with one made for the call.
static void recover_all_ways(scene *s, weft_code *uncached, bool quicker, bool any_length) {
  weft_plan *plan = NULL;
  weft_erasures e = spoil(s, STRIPES);
  EXPECT_OK(weft_code_recover(s->code, &e, s->views, 1, NULL));
  EXPECT(rebuilt(s, 1));
  const weft_plan *kept = s->code->cache.places[s->code->cache.filled - 1].plan;
  EXPECT(!has_factors(kept) || repaid(kept, s, 1));
  EXPECT(has_factors(kept) || !repaid(kept, s, 1) || !quicker);
  e = spoil(s, 1);
  EXPECT_OK(weft_code_recover(s->code, &e, s->views, STRIPES, NULL));
  EXPECT(rebuilt(s, STRIPES));
  EXPECT(has_factors(kept) || !repaid(kept, s, STRIPES) || !quicker);
  e = spoil(s, STRIPES);
  EXPECT_OK(weft_plan_for(s->code, &e, &plan));
  EXPECT(has_factors(plan) || !has_factors(kept));
  EXPECT(has_factors(plan) == has_factors(kept) || !any_length);
  EXPECT_OK(weft_plan_run(plan, s->views, 1, NULL));
  EXPECT(rebuilt(s, 1));
  weft_plan_free(plan);
  EXPECT_OK(weft_code_recover(uncached, &e, s->views, STRIPES, NULL));
  EXPECT(rebuilt(s, STRIPES));
}

static void recover_by_definition(const weft_backend *row, const code_case *c, size_t threads,
                                  test_rng *rng) {
  weft_ctx *ctx = context_on(row->name, threads);
  weft_code *code = code_with(ctx, c, KINDS), *uncached = code_with(ctx, c, WEFT_NO_PLANS);
  scene s;
  scene_init(&s, code, rng);
  for (size_t kind = 0; kind < KINDS; kind++) {
    lose(&s, rng, kind);
    recover_all_ways(&s, uncached, row->host->steps && c->k == 128,
                     pays_in_short_stripes(row, s.lost_count, c->k));
  }
  scene_clear(&s);
  weft_code_free(uncached);
  weft_code_free(code);
  weft_ctx_free(ctx);
}

START_TEST(every_row_recovers_by_definition) {
  static const code_case cases[] = {{"cauchy", 32, 16, 0, 0},
                                    {"vandermonde", 61, 13, 0, 0},
                                    {"cauchy", 128, 32, 0, 0}}; // worth factors on all rows
  const weft_backend *row = test_looped_row((size_t)_i);
  test_rng rng = test_rng_new(test_seed(), 2100 + (uint64_t)_i);
  for (size_t i = 0; i < (row->host->steps ? sizeof cases / sizeof *cases : 1); i++)
    recover_by_definition(row, &cases[i], 1, &rng);
}
END_TEST

START_TEST(every_row_recovers_on_threads) {
  static const code_case cases[] = {{"cauchy", 64, 16, 0, 0}, {"reed_sol_van", 70, 20, 0, 0}};
  const weft_backend *row = test_looped_row((size_t)_i);
  test_rng rng = test_rng_new(test_seed(), 2600 + (uint64_t)_i);
  for (size_t i = 0; row->host->steps && i < sizeof cases / sizeof *cases; i++)
    recover_by_definition(row, &cases[i], 2, &rng);
}
END_TEST

// Recovers some of the lost shards, in stripes of several strips of columns, with odd lengths and
// so odd alignments, that end at guard pages.
static void recover_some(weft_code *code, test_rng *rng, size_t bytes) {
  const size_t k = weft_code_data_shards(code), m = weft_code_parity_shards(code);
  uint8_t lost[WEFT_MAX_SHARDS], wanted[WEFT_MAX_SHARDS], order[WEFT_MAX_SHARDS];
  stripe whole, s;
  stripe_init(&whole, code, bytes, rng, 0);
  stripe_init(&s, code, bytes, rng, 1);
  encode_by_definition(code, &whole);
  stripe_copy(&s, &whole, code);
  for (size_t round = 0; round < 3; round++) {
    const size_t count = m - test_rng_below(rng, m / 4), some = round ? count - count / 4 : count;
    choose_ids(rng, lost, count, round < 2 ? k : k + m);
    choose_ids(rng, order, some, count);
    for (size_t i = 0; i < count; i++)
      stripe_spoil(&s, code, lost[i]);
    for (size_t i = 0; i < some; i++)
      wanted[i] = lost[order[i]];
    const weft_erasures e = {
        .lost = lost, .lost_count = count, .wanted = wanted, .wanted_count = some};
    EXPECT_OK(weft_code_recover(code, &e, &s.view, 1, NULL));
    for (size_t i = 0; i < some; i++)
      EXPECT(stripe_same_shard(&whole, &s, code, wanted[i]));
    stripe_copy(&s, &whole, code);
  }
  stripe_clear(&s);
  stripe_clear(&whole);
}

START_TEST(every_row_recovers_some_of_long_stripes) {
  static const code_case cases[] = {{"cauchy", 16, 16, 0, 0},      {"cauchy", 32, 16, 0, 0},
                                    {"vandermonde", 64, 16, 0, 0}, {"reed_sol_van", 40, 8, 0, 0},
                                    {"cauchy", 67, 21, 0, 0},      {"cauchy", 128, 32, 0, 0}};
  const weft_backend *row = test_looped_row((size_t)_i);
  test_rng rng = test_rng_new(test_seed(), 2200 + (uint64_t)_i);
  for (size_t i = 0; row->host->steps && i < sizeof cases / sizeof *cases; i++) {
    weft_ctx *ctx = context_on(row->name, 1 + i % 2);
    weft_code *code = code_with(ctx, &cases[i], 1 + test_rng_below(&rng, 2));
    recover_some(code, &rng, (32u << 10) + test_rng_below(&rng, 2000));
    EXPECT(code->cache.filled <= code->cache.capacity && code->cache.capacity <= 2);
    weft_code_free(code);
    weft_ctx_free(ctx);
  }
}
END_TEST

static const code_case large = {"cauchy", 128, 32, 0, 0};

// Returns the best row that has steps and uses them for its losses in stripes of any length, or
// NULL if this machine cannot run one.
static const weft_backend *row_with_steps(void) {
  for (size_t i = 0; i < test_host_row_count(); i++) {
    const weft_backend *row = test_host_row(i);
    if (row->host->steps && pays_in_short_stripes(row, large.m, large.k) &&
        pays_in_short_stripes(row, large.m / 2, large.k))
      return row;
  }
  return NULL;
}

static weft_ctx *context_with_steps(void) {
  const weft_backend *row = row_with_steps();
  return context_on(row ? row->name : NULL, 1);
}

// Shards of a packet are encoded by steps; and where those pay, they pay in longer rows.
START_TEST(short_stripes_are_encoded_by_steps) {
  for (size_t i = 0; i < test_host_row_count(); i++) {
    const weft_backend *row = test_host_row(i);
    if (!row->host->steps)
      continue;
    weft_ctx *ctx = context_on(row->name, 1);
    weft_code *code = code_with(ctx, &large, 1);
    const weft_factors *factors = atomic_load(&code->encode->factors);
    bool pays = false;
    for (size_t bytes = WEFT_STEPS_COLUMNS; bytes <= 4096; bytes += 128) {
      const bool now = weft_host_steps_pay(row->host, large.m, large.k, bytes, factors, 0);
      EXPECT(now || (!pays && bytes < 1024));
      pays = now;
    }
    weft_code_free(code);
    weft_ctx_free(ctx);
  }
}
END_TEST

// Plans for short stripes or few losses make no factors.
START_TEST(short_stripes_and_few_losses_ask_for_none) {
  weft_ctx *ctx = context_with_steps();
  weft_code *code = code_with(ctx, &large, 1);
  test_rng rng = test_rng_new(test_seed(), 2200);
  scene s;
  scene_init(&s, code, &rng);
  lose(&s, &rng, 0);
  for (size_t i = 0; i < STRIPES; i++)
    s.views[i].bytes = WEFT_STEPS_COLUMNS - 1;
  for (int call = 0; call < 2; call++) {
    const weft_erasures e = spoil(&s, STRIPES);
    EXPECT_OK(weft_code_recover(code, &e, s.views, STRIPES, NULL));
    EXPECT(!has_factors(code->cache.places[0].plan));
  }
  s.lost_count = 2;
  for (size_t i = 0; i < STRIPES; i++) {
    stripe_copy(&s.stripes[i], &s.whole, code);
    s.views[i] = s.stripes[i].view;
  }
  const weft_erasures e = spoil(&s, STRIPES);
  EXPECT_OK(weft_code_recover(code, &e, s.views, STRIPES, NULL));
  EXPECT(rebuilt(&s, STRIPES));
  EXPECT(!has_factors(code->cache.places[0].plan));
  scene_clear(&s);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// --- threads ---

enum { THREADS = 4 };

typedef struct worker {
  scene *scene;
  size_t first; // of its stripes, one per call
  int wrong;
} worker;

static void *recover_own(void *user) {
  worker *w = user;
  scene *s = w->scene;
  const weft_erasures e = {.lost = s->lost, .lost_count = s->lost_count};
  for (size_t i = w->first; i < STRIPES; i += THREADS)
    w->wrong += weft_code_recover(s->code, &e, &s->views[i], 1, NULL) != WEFT_OK;
  return NULL;
}

START_TEST(threads_share_a_plan) {
  weft_ctx *ctx = context_with_steps();
  weft_code *code = code_with(ctx, &large, 1);
  test_rng rng = test_rng_new(test_seed(), 2300);
  scene s;
  scene_init(&s, code, &rng);
  lose(&s, &rng, 1);
  (void)spoil(&s, STRIPES);
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (size_t t = 0; t < THREADS; t++) {
    workers[t] = (worker){.scene = &s, .first = t};
    ck_assert_int_eq(pthread_create(&threads[t], NULL, recover_own, &workers[t]), 0);
  }
  for (size_t t = 0; t < THREADS; t++) {
    ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
    EXPECT(workers[t].wrong == 0);
  }
  EXPECT(rebuilt(&s, STRIPES));
  EXPECT(has_factors(code->cache.places[0].plan) == (row_with_steps() != NULL));
  scene_clear(&s);
  weft_code_free(code);
  weft_ctx_free(ctx);
}
END_TEST

// --- memory ---

// Allocations for factors. A detour by encoding's: the factors. Others: the writer, the steps, the
// factors.
enum { FACTORS_PIECES = 3 };

// A cached plan works by its matrix if there is no memory for factors, and gets them later.
START_TEST(a_plan_goes_on_without_memory) {
  const weft_backend *row = row_with_steps();
  const long pieces = _i ? FACTORS_PIECES : 1;
  test_rng rng = test_rng_new(test_seed(), 2400);
  long tries = 0;
  for (bool failed = true; failed && row;) {
    test_allocator memory;
    weft_ctx *ctx = NULL;
    scene s;
    test_allocator_init(&memory, 0);
    EXPECT_OK(weft_ctx_new(
        &ctx,
        &(weft_ctx_options){.backend = row->name, .threads = 1, .allocator = &memory.allocator}));
    weft_code *code = code_with(ctx, &large, 1);
    scene_init(&s, code, &rng);
    lose(&s, &rng, 0);
    s.lost_count /= _i ? 2 : 1;
    weft_erasures e = spoil(&s, STRIPES);
    s.views[0].bytes = WEFT_STEPS_COLUMNS - 1; // not worth factors
    EXPECT_OK(weft_code_recover(code, &e, s.views, 1, NULL));
    stripe_copy(&s.stripes[0], &s.whole, code);
    s.views[0] = s.stripes[0].view;
    e = spoil(&s, 1);
    EXPECT(!has_factors(code->cache.places[0].plan));
    EXPECT(is_detour(code->cache.places[0].plan) == !_i);
    memory.fail_at = memory.calls + ++tries;
    EXPECT_OK(weft_code_recover(code, &e, s.views, STRIPES, NULL));
    EXPECT(rebuilt(&s, STRIPES));
    failed = memory.calls >= memory.fail_at;
    memory.fail_at = 0;
    e = spoil(&s, STRIPES);
    EXPECT_OK(weft_code_recover(code, &e, s.views, STRIPES, NULL));
    EXPECT(rebuilt(&s, STRIPES) && has_factors(code->cache.places[0].plan));
    scene_clear(&s);
    weft_code_free(code);
    weft_ctx_free(ctx);
    EXPECT(test_allocator_live(&memory) == 0);
    failed = failed && tries < pieces + 3; // later ones only allocate columns to work on
  }
  EXPECT(!row || tries >= pieces + 1);
}
END_TEST

// A plan that should be fast from the start is made even without memory for that.
START_TEST(a_quick_plan_is_made_without_memory) {
  const weft_backend *row = row_with_steps();
  test_rng rng = test_rng_new(test_seed(), 2500);
  test_allocator memory;
  weft_ctx *ctx = NULL;
  scene s;
  test_allocator_init(&memory, 0);
  EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = row ? row->name : NULL,
                                                   .allocator = &memory.allocator}));
  weft_code *code = code_with(ctx, &large, 1);
  scene_init(&s, code, &rng);
  lose(&s, &rng, 0);
  s.lost_count /= _i ? 2 : 1;
  size_t without = 0;
  for (long n = 1, failed = 1; failed; n++) {
    weft_plan *plan = NULL;
    const weft_erasures e = spoil(&s, 1);
    memory.fail_at = memory.calls + n;
    const weft_status status = weft_plan_for(code, &e, &plan);
    failed = memory.calls >= memory.fail_at;
    memory.fail_at = 0;
    EXPECT(status == WEFT_OK || (failed && status == WEFT_E_NOMEM));
    if (status != WEFT_OK)
      continue;
    without += !has_factors(plan);
    EXPECT_OK(weft_plan_run(plan, s.views, 1, NULL));
    EXPECT(rebuilt(&s, 1));
    weft_plan_free(plan);
  }
  EXPECT(without == (row && _i ? FACTORS_PIECES : 1));
  scene_clear(&s);
  weft_code_free(code);
  weft_ctx_free(ctx);
  EXPECT(test_allocator_live(&memory) == 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("recovery by transforms");
  TCase *alone = tcase_create("alone"), *bytes = tcase_create("bytes"),
        *shared = tcase_create("shared");
  tcase_set_tags(alone, "one-thread");
  tcase_add_test(alone, short_stripes_are_encoded_by_steps);
  tcase_add_test(alone, short_stripes_and_few_losses_ask_for_none);
  tcase_add_loop_test(alone, a_plan_goes_on_without_memory, 0, 2);
  tcase_add_loop_test(alone, every_row_recovers_by_definition, 0, (int)test_looped_row_count());
  tcase_add_loop_test(bytes, every_row_recovers_on_threads, 0, (int)test_looped_row_count());
  tcase_add_loop_test(bytes, every_row_recovers_some_of_long_stripes, 0,
                      (int)test_looped_row_count());
  tcase_add_test(shared, threads_share_a_plan);
  tcase_add_loop_test(shared, a_quick_plan_is_made_without_memory, 0, 2);
  suite_add_tcase(suite, alone);
  suite_add_tcase(suite, bytes);
  suite_add_tcase(suite, shared);
  return test_main(suite);
}
