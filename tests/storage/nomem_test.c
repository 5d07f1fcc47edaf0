// SPDX-License-Identifier: Apache-2.0
// Every allocation by storage codes fails once: the call reports it or succeeds without, leaks
// nothing, and the code works as before.
#include <string.h>

#include "lib/storage/plan_packets.h"
#include "tests/storage/stripes.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

// The stripe being worked on; its expected bytes; and the code that computed those, whose memory
// does not fail.
typedef struct scene {
  const code_case *c;
  weft_code *plain;
  stripe s, right;
} scene;

static void spoil(scene *t, const uint8_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++)
    stripe_spoil(&t->s, t->plain, ids[i]);
}

// Checks the result of a call that reports success, and restores the stripe.
static weft_status made(scene *t, weft_status status) {
  EXPECT(status != WEFT_OK || stripe_same(&t->s, &t->right, t->plain));
  stripe_copy(&t->s, &t->right, t->plain);
  return status;
}

static void spoil_parity(scene *t) {
  for (size_t i = 0; i < t->c->m; i++)
    stripe_spoil(&t->s, t->plain, t->c->k + i);
}

static weft_status encode(scene *t, weft_code *code) {
  spoil_parity(t);
  return made(t, weft_code_encode(code, &t->s.view, 1, NULL));
}

static weft_status recover(scene *t, weft_code *code, const weft_erasures *e) {
  spoil(t, e->lost, e->lost_count);
  return made(t, weft_code_recover(code, e, &t->s.view, 1, NULL));
}

static weft_status run(scene *t, weft_plan *plan, const weft_erasures *e) {
  spoil(t, e->lost, e->lost_count);
  return made(t, weft_plan_run(plan, &t->s.view, 1, NULL));
}

static weft_status encode_and_recover(scene *t, weft_code_group *group, weft_code_split split,
                                      const weft_erasures *e) {
  spoil_parity(t);
  WEFT_TRY(made(t, weft_code_group_encode(group, split, &t->s.view, 1)));
  spoil(t, e->lost, e->lost_count);
  return made(t, weft_code_group_recover(group, split, e, &t->s.view, 1));
}

// Applies a change twice, which undoes it.
static weft_status add_twice(scene *t, weft_code *code) {
  weft_status status = WEFT_OK;
  for (int i = 0; i < 2 && status == WEFT_OK; i++)
    status = weft_code_add_delta(code, 1, t->s.shard[2], &t->s.view, NULL);
  WEFT_TRY(made(t, status));
  status = weft_code_parity_delta(code, 1, t->s.shard[2], &t->s.view, NULL);
  stripe_copy(&t->s, &t->right, t->plain);
  return status;
}

static weft_status update_twice(scene *t, weft_code *code) {
  uint8_t *const *shard = t->s.shard;
  weft_status status = weft_code_update(code, 1, shard[1], shard[2], &t->s.view, NULL);
  if (status == WEFT_OK)
    status = weft_code_update(code, 1, shard[2], shard[1], &t->s.view, NULL);
  return made(t, status);
}

// Finds one wrong byte.
static weft_status verify(scene *t, weft_code *code) {
  size_t wrong = 0;
  t->s.shard[t->c->k][0] ^= 1;
  const weft_status status = weft_code_verify(code, &t->s.view, NULL, &wrong, NULL);
  EXPECT(status != WEFT_OK || wrong == 1);
  t->s.shard[t->c->k][0] ^= 1;
  return status;
}

static weft_status one_by_one(scene *t, weft_progress *progress) {
  weft_status status = WEFT_OK;
  spoil_parity(t);
  for (size_t i = 0; i < t->c->k && status == WEFT_OK; i++)
    status = weft_progress_add(progress, i, t->s.shard[i], NULL);
  if (status == WEFT_OK)
    status = weft_progress_finish(progress);
  return made(t, status);
}

// Makes plans, groups and progress of an existing code.
static weft_status plans_and_groups(scene *t, weft_code *code) {
  const code_case *c = t->c;
  uint8_t ids[16];
  for (size_t i = 0; i < c->k + c->m; i++) // the first parity shard replaces shard 0
    ids[i] = (uint8_t)(i == 0 ? c->k : i == c->k ? 0 : i);
  const weft_erasures e = {.lost = ids + c->k, .lost_count = 1};
  weft_plan *plan = NULL;
  weft_code_group *group = NULL;
  weft_progress *progress = NULL;
  weft_status status = weft_plan_new(code, ids, ids + c->k, 1, &plan);
  EXPECT((status == WEFT_OK) == (plan != NULL));
  if (status == WEFT_OK)
    status = run(t, plan, &e);
  if (status == WEFT_OK)
    status = weft_code_precompute(code, 1);
  if (status == WEFT_OK)
    status = add_twice(t, code);
  if (status == WEFT_OK)
    status = weft_code_group_new(&code, 1, &group);
  for (int split = 0; split < 2 && status == WEFT_OK; split++)
    status = encode_and_recover(t, group, (weft_code_split)split, &e);
  if (status == WEFT_OK)
    status = weft_progress_new(code, &t->s.view, &progress);
  if (status == WEFT_OK)
    status = one_by_one(t, progress);
  weft_progress_free(progress);
  weft_code_group_free(group);
  weft_plan_free(plan);
  return status;
}

// Encodes two stripes that are not whole groups of a CRS code; two threads can take one each.
static weft_status encode_pair(scene *t, weft_code *code) {
  stripe *s = &t->s;
  weft_stripe pair[2] = {s->view, s->view};
  uint8_t *shards[WEFT_MAX_SHARDS];
  const size_t half = weft_code_parity_bytes(code, s->view.bytes / 2);
  for (size_t i = 0; i < s->shards; i++)
    shards[i] = s->shard[i] + half;
  pair[0].bytes = half - 1;
  pair[1] = (weft_stripe){.shards = shards, .bytes = s->view.bytes - half};
  spoil_parity(t);
  const weft_status status = weft_code_encode(code, pair, 2, NULL);
  size_t wrong = 0;
  for (size_t i = 0; i < 2 && status == WEFT_OK && wrong == 0; i++)
    EXPECT_OK(weft_code_verify(t->plain, &pair[i], NULL, &wrong, NULL));
  EXPECT(wrong == 0);
  stripe_copy(s, &t->right, t->plain);
  return status;
}

// Checks that the code still does everything after any failed call.
static void check_whole(scene *t, weft_code *code) {
  const uint8_t lost[] = {1, (uint8_t)t->c->k};
  const weft_erasures e = {.lost = lost, .lost_count = 2};
  size_t wrong = 1;
  EXPECT_OK(encode(t, code));
  EXPECT_OK(recover(t, code, &e));
  EXPECT_OK(weft_code_verify(code, &t->s.view, NULL, &wrong, NULL));
  EXPECT(wrong == 0);
}

static weft_status everything(scene *t, weft_ctx *ctx, test_allocator *memory, bool *failed) {
  const code_case *c = t->c;
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
  weft_status status = weft_code_new(ctx, &options, &code);
  if (status == WEFT_OK)
    status = encode(t, code);
  if (status == WEFT_OK)
    status = encode_pair(t, code);
  if (status == WEFT_OK)
    status = encode(t, code);
  if (status == WEFT_OK)
    status = recover(t, code, &e);
  if (status == WEFT_OK)
    status = weft_plan_for(code, &e, &plan);
  if (status == WEFT_OK)
    status = run(t, plan, &e);
  if (status == WEFT_OK)
    status = update_twice(t, code);
  if (status == WEFT_OK)
    status = verify(t, code);
  if (status == WEFT_OK)
    status = weft_progress_new(code, &t->s.view, &progress);
  if (status == WEFT_OK)
    status = weft_progress_add(progress, 0, t->s.shard[0], NULL);
  weft_progress_free(progress);
  stripe_copy(&t->s, &t->right, t->plain);
  if (status == WEFT_OK)
    status = plans_and_groups(t, code);
  *failed = test_allocator_failed(memory);
  memory->fail_at = 0;
  if (code)
    check_whole(t, code);
  weft_plan_free(plan);
  weft_code_free(code);
  return status;
}

static const code_case cases[] = {{"vandermonde", 10, 4, 0, 0},   {"isal_rs", 10, 4, 0, 0},
                                  {"cauchy_good", 6, 3, 4, 40},   {"cauchy_good", 6, 3, 4, 64},
                                  {"cauchy_orig", 5, 3, 3, 1000}, {"cauchy_orig", 4, 4, 3, 4000}};
enum { CASES = sizeof cases / sizeof cases[0], FIRST_OF_BITS = 2 };

// Any allocation may fail, with one thread and with two.
START_TEST(any_allocation_may_fail) {
  scene t = {.c = &cases[_i % CASES]};
  test_rng rng = test_rng_new(test_seed(), 3);
  weft_ctx *plain = context_on(NULL, 1);
  t.plain = code_on(plain, t.c);
  // Long enough for CRS plans to be reduced.
  stripe_encode(&t.right, t.plain, 200000, &rng, 0);
  stripe_init(&t.s, t.plain, 200000, &rng, 0);
  stripe_copy(&t.s, &t.right, t.plain);
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
    const weft_status status = everything(&t, ctx, &memory, &failed);
    // If a reduction finds no memory, the plain program is kept.
    EXPECT(status == WEFT_OK || (failed && status == WEFT_E_NOMEM));
    failures += status != WEFT_OK;
    weft_ctx_free(ctx);
    EXPECT(test_allocator_live(&memory) == 0);
    if (!failed)
      break;
  }
  EXPECT(failures >= 16);
  stripe_clear(&t.s);
  stripe_clear(&t.right);
  weft_code_free(t.plain);
  weft_ctx_free(plain);
}
END_TEST

// A plan of bits that should be fast from the start is made even if there is no memory for that.
START_TEST(a_quick_plan_needs_no_memory_for_that) {
  static const uint8_t lost[] = {1, 4};
  test_rng rng = test_rng_new(test_seed(), 5);
  test_allocator memory;
  weft_ctx *ctx;
  stripe s, right;
  test_allocator_init(&memory, 0);
  EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.allocator = &memory.allocator}));
  weft_code *code = code_on(ctx, &cases[_i]);
  stripe_encode(&right, code, 5000, &rng, 0);
  stripe_init(&s, code, 5000, &rng, 0);
  size_t slow = 0;
  for (long n = 1, failed = 1; failed; n++) {
    weft_plan *plan = NULL;
    memory.fail_at = memory.calls + n;
    const weft_status status =
        weft_plan_for(code, &(weft_erasures){.lost = lost, .lost_count = 2}, &plan);
    failed = test_allocator_failed(&memory);
    memory.fail_at = 0;
    EXPECT(status == WEFT_OK || (failed && status == WEFT_E_NOMEM));
    if (status != WEFT_OK)
      continue;
    slow += !weft_plan_packets_improved(plan);
    stripe_copy(&s, &right, code);
    for (size_t i = 0; i < 2; i++)
      stripe_spoil(&s, code, lost[i]);
    EXPECT_OK(weft_plan_run(plan, &s.view, 1, NULL));
    EXPECT(stripe_same(&s, &right, code));
    weft_plan_free(plan);
  }
  EXPECT(slow > 0);
  stripe_clear(&s);
  stripe_clear(&right);
  weft_code_free(code);
  weft_ctx_free(ctx);
  EXPECT(test_allocator_live(&memory) == 0);
}
END_TEST

// The members of a group run out of memory in turn: the call reports it, whichever it is.
START_TEST(any_member_may_lack_memory) {
  enum { MEMBERS = 3 };
  test_rng rng = test_rng_new(test_seed(), 4);
  for (size_t lacks = 0; lacks < MEMBERS; lacks++) {
    test_allocator memory[MEMBERS];
    weft_ctx *ctx[MEMBERS];
    weft_code *codes[MEMBERS];
    weft_code_group *group;
    for (size_t i = 0; i < MEMBERS; i++) {
      test_allocator_init(&memory[i], 0);
      EXPECT_OK(weft_ctx_new(&ctx[i], &(weft_ctx_options){.allocator = &memory[i].allocator}));
      codes[i] = code_on(ctx[i], &cases[2]); // which gathers packets, in memory
    }
    EXPECT_OK(weft_code_group_new(codes, MEMBERS, &group));
    stripe s[MEMBERS];
    weft_stripe views[MEMBERS];
    for (size_t i = 0; i < MEMBERS; i++) {
      stripe_encode(&s[i], codes[0], 5000, &rng, 0);
      views[i] = s[i].view;
    }
    memory[lacks].fail_at = memory[lacks].calls + 1;
    EXPECT_STATUS(weft_code_group_encode(group, WEFT_CODE_SPLIT_STRIPES, views, MEMBERS),
                  WEFT_E_NOMEM);
    EXPECT(test_allocator_failed(&memory[lacks]));
    for (size_t i = 0; i < MEMBERS; i++)
      stripe_clear(&s[i]);
    weft_code_group_free(group);
    for (size_t i = 0; i < MEMBERS; i++) {
      weft_code_free(codes[i]);
      weft_ctx_free(ctx[i]);
    }
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("storage memory");
  TCase *tcase = tcase_create("allocation");
  tcase_set_tags(tcase, "one-thread");
  tcase_add_loop_test(tcase, any_allocation_may_fail, 0, CASES);
  tcase_add_loop_test(tcase, a_quick_plan_needs_no_memory_for_that, FIRST_OF_BITS, CASES);
  suite_add_tcase(suite, tcase);
  TCase *shared = tcase_create("allocation, two threads");
  tcase_add_loop_test(shared, any_allocation_may_fail, CASES, CASES + 1);         // of bytes
  tcase_add_loop_test(shared, any_allocation_may_fail, 2 * CASES - 1, 2 * CASES); // of bits
  tcase_add_test(shared, any_member_may_lack_memory);
  suite_add_tcase(suite, shared);
  TCase *further = tcase_create("allocation, two threads, further codes");
  tcase_set_tags(further, "repeats");
  tcase_add_loop_test(further, any_allocation_may_fail, CASES + 1, 2 * CASES - 1);
  suite_add_tcase(suite, further);
  return test_main(suite);
}
