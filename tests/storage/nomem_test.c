// SPDX-License-Identifier: Apache-2.0
// Every allocation that storage codes make fails once: the call says so, leaks nothing, and the
// code works as before.
#include <string.h>

#include "tests/storage/stripes.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

// What is made of other things, on a code that is there.
static weft_status plans_and_groups(weft_code *code, const code_case *c, stripe *s) {
  uint8_t ids[16];
  for (size_t i = 0; i < c->k + c->m; i++) // the first parity shard stands in for shard 0
    ids[i] = (uint8_t)(i == 0 ? c->k : i == c->k ? 0 : i);
  const weft_erasures e = {.lost = ids + c->k, .lost_count = 1};
  weft_plan *plan = NULL;
  weft_code_group *group = NULL;
  weft_progress *progress = NULL;
  weft_status status = weft_plan_new(code, ids, ids + c->k, 1, &plan);
  EXPECT((status == WEFT_OK) == (plan != NULL));
  if (status == WEFT_OK)
    status = weft_plan_run(plan, &s->view, 1, NULL);
  if (status == WEFT_OK)
    status = weft_code_precompute(code, 1);
  if (status == WEFT_OK)
    status = weft_code_add_delta(code, 1, s->shard[2], &s->view, NULL);
  if (status == WEFT_OK)
    status = weft_code_parity_delta(code, 1, s->shard[2], &s->view, NULL);
  if (status == WEFT_OK)
    status = weft_code_group_new(&code, 1, &group);
  for (int split = 0; split < 2 && status == WEFT_OK; split++) {
    status = weft_code_group_encode(group, (weft_code_split)split, &s->view, 1);
    if (status == WEFT_OK)
      status = weft_code_group_recover(group, (weft_code_split)split, &e, &s->view, 1);
  }
  if (status == WEFT_OK)
    status = weft_progress_new(code, &s->view, &progress);
  for (size_t i = 0; i < c->k && status == WEFT_OK; i++)
    status = weft_progress_add(progress, i, s->shard[i], NULL);
  if (status == WEFT_OK)
    status = weft_progress_finish(progress);
  weft_progress_free(progress);
  weft_code_group_free(group);
  weft_plan_free(plan);
  return status;
}

// Two stripes that are not whole groups of a CRS code, of which each thread may take one.
static weft_status encode_pair(weft_code *code, stripe *s) {
  weft_stripe pair[2] = {s->view, s->view};
  uint8_t *shards[WEFT_MAX_SHARDS];
  const size_t half = weft_code_parity_bytes(code, s->view.bytes / 2);
  for (size_t i = 0; i < s->shards; i++)
    shards[i] = s->shard[i] + half;
  pair[0].bytes = half - 1;
  pair[1] = (weft_stripe){.shards = shards, .bytes = s->view.bytes - half};
  return weft_code_encode(code, pair, 2, NULL);
}

// After a call that failed, whatever it was, the code does all it did before.
static void check_whole(weft_code *code, const code_case *c, stripe *s) {
  const uint8_t lost[] = {1, (uint8_t)c->k};
  const weft_erasures e = {.lost = lost, .lost_count = 2};
  size_t wrong = 1;
  EXPECT_OK(weft_code_encode(code, &s->view, 1, NULL));
  EXPECT_OK(weft_code_recover(code, &e, &s->view, 1, NULL));
  EXPECT_OK(weft_code_verify(code, &s->view, NULL, &wrong, NULL));
  EXPECT(wrong == 0);
}

static weft_status everything(weft_ctx *ctx, const code_case *c, stripe *s, test_allocator *memory,
                              bool *failed) {
  const weft_code_options options = {.name = c->name,
                                     .k = c->k,
                                     .m = c->m,
                                     .w = c->w,
                                     .packet_bytes = c->packet_bytes,
                                     .cached_plans = c->k + c->m};
  const uint8_t lost[] = {0, (uint8_t)c->k};
  const weft_erasures e = {.lost = lost, .lost_count = 2};
  weft_code *code = NULL;
  weft_plan *plan = NULL;
  weft_progress *progress = NULL;
  size_t wrong = 0;
  weft_status status = weft_code_new(ctx, &options, &code);
  if (status == WEFT_OK)
    status = weft_code_encode(code, &s->view, 1, NULL);
  if (status == WEFT_OK)
    status = encode_pair(code, s);
  if (status == WEFT_OK)
    status = weft_code_encode(code, &s->view, 1, NULL);
  if (status == WEFT_OK)
    status = weft_code_recover(code, &e, &s->view, 1, NULL);
  if (status == WEFT_OK)
    status = weft_plan_for(code, &e, &plan);
  if (status == WEFT_OK)
    status = weft_plan_run(plan, &s->view, 1, NULL);
  if (status == WEFT_OK)
    status = weft_code_update(code, 1, s->shard[1], s->shard[1], &s->view, NULL);
  if (status == WEFT_OK)
    status = weft_code_verify(code, &s->view, NULL, &wrong, NULL);
  if (status == WEFT_OK)
    status = weft_progress_new(code, &s->view, &progress);
  if (status == WEFT_OK)
    status = weft_progress_add(progress, 0, s->shard[0], NULL);
  EXPECT(status != WEFT_OK || wrong == 0);
  weft_progress_free(progress);
  if (status == WEFT_OK)
    status = plans_and_groups(code, c, s);
  *failed = test_allocator_failed(memory);
  memory->fail_at = 0;
  if (code)
    check_whole(code, c, s);
  weft_plan_free(plan);
  weft_code_free(code);
  return status;
}

static const code_case cases[] = {{"vandermonde", 10, 4, 0, 0},   {"isal_rs", 10, 4, 0, 0},
                                  {"cauchy_good", 6, 3, 4, 40},   {"cauchy_good", 6, 3, 4, 64},
                                  {"cauchy_orig", 5, 3, 3, 1000}, {"cauchy_orig", 4, 4, 3, 4000}};
enum { CASES = sizeof cases / sizeof cases[0] };

// By one thread, and by two.
START_TEST(any_allocation_may_fail) {
  const code_case *c = &cases[_i % CASES];
  test_rng rng = test_rng_new(test_seed(), 3);
  weft_ctx *plain = context_on(NULL, 1);
  weft_code *code = code_on(plain, c);
  stripe s;
  stripe_init(&s, code, 200000, &rng, 0); // enough for CRS plans to be reduced
  long failures = 0;
  for (long n = 1;; n++) {
    test_allocator memory;
    weft_ctx *ctx = NULL;
    test_allocator_init(&memory, 0);
    EXPECT_OK(weft_ctx_new(
        &ctx, &(weft_ctx_options){.threads = _i < CASES ? 1 : 2, .allocator = &memory.allocator}));
    const long calls = memory.calls;
    memory.fail_at = calls + n;
    bool failed = false;
    const weft_status status = everything(ctx, c, &s, &memory, &failed);
    // A reduction that finds no memory leaves the plain program to serve.
    EXPECT(status == WEFT_OK || (failed && status == WEFT_E_NOMEM));
    failures += status != WEFT_OK;
    weft_ctx_free(ctx);
    EXPECT(test_allocator_live(&memory) == 0);
    if (!failed)
      break;
  }
  EXPECT(failures >= 16);
  stripe_clear(&s);
  weft_code_free(code);
  weft_ctx_free(plain);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage memory");
  TCase *tcase = tcase_create("allocation");
  tcase_set_tags(tcase, "one-thread");
  tcase_add_loop_test(tcase, any_allocation_may_fail, 0, CASES);
  suite_add_tcase(suite, tcase);
  TCase *shared = tcase_create("allocation, two threads");
  tcase_add_loop_test(shared, any_allocation_may_fail, CASES, 2 * CASES);
  suite_add_tcase(suite, shared);
  return test_main(suite);
}
