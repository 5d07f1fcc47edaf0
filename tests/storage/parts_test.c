// SPDX-License-Identifier: Apache-2.0
// Parity in parts (updates, deltas, shards that arrive one by one, incomplete groups) and
// verification: the parity must be the same as when everything is encoded at once, however threads
// share the work.
#include <stdlib.h>
#include <string.h>

#include "tests/storage/stripes.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"

static const code_case cases[] = {
    {"vandermonde", 4, 2, 0, 0},     {"cauchy", 10, 4, 0, 0},        {"raid6", 6, 2, 0, 0},
    {"reed_sol_van", 3, 1, 0, 0},    {"cauchy_good", 10, 4, 4, 8},   {"cauchy_good", 5, 3, 8, 1024},
    {"cauchy_orig", 4, 4, 3, 20000}, {"gcrs", 8, 3, 0, 0},           {"cauchy_orig", 5, 3, 7, 100},
    {"cauchy_good", 6, 9, 8, 64},    {"cauchy_orig", 4, 3, 3, 4000},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static const size_t lengths[] = {0, 1, 63, 1000, 32 * 1024, 70001};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

typedef struct fixture {
  weft_ctx *ctx;
  weft_code *code;
  stripe whole, s; // encoded; and a copy to work on
  test_rng rng;
} fixture;

static void set_up_threads(fixture *f, const weft_backend *row, const code_case *c, size_t bytes,
                           size_t threads) {
  f->rng = test_rng_new(test_seed(), bytes);
  f->ctx = context_on(row->name, threads);
  f->code = code_on(f->ctx, c);
  stripe_init(&f->whole, f->code, bytes, &f->rng, 0);
  stripe_init(&f->s, f->code, bytes, &f->rng, 0);
  EXPECT_OK(weft_code_encode(f->code, &f->whole.view, 1, NULL));
  stripe_copy(&f->s, &f->whole, f->code);
}

static void set_up(fixture *f, const weft_backend *row, const code_case *c, size_t bytes) {
  set_up_threads(f, row, c, bytes, 2);
}

static void tear_down(fixture *f) {
  stripe_clear(&f->whole);
  stripe_clear(&f->s);
  weft_code_free(f->code);
  weft_ctx_free(f->ctx);
}

// The best row and the definition; the other rows are covered by code_test.
static const weft_backend *row_of(int i) {
  return i % 2 ? test_row_named("scalar") : test_host_row(0);
}

static void update_shard(fixture *f, size_t bytes, size_t index) {
  uint8_t *old_bytes = malloc(bytes + 1);
  ck_assert_ptr_nonnull(old_bytes);
  memcpy(old_bytes, f->whole.shard[index], bytes);
  test_rng_fill(&f->rng, f->whole.shard[index], bytes);
  EXPECT_OK(weft_code_update(f->code, index, old_bytes, f->whole.shard[index], &f->s.view, NULL));
  memcpy(f->s.shard[index], f->whole.shard[index], bytes);
  EXPECT_OK(weft_code_encode(f->code, &f->whole.view, 1, NULL));
  EXPECT(stripe_same(&f->whole, &f->s, f->code));
  free(old_bytes);
}

START_TEST(updates_keep_parity) {
  for (size_t l = 0; l < LENGTHS; l++) {
    fixture f;
    set_up(&f, row_of(_i), &cases[_i / 2], lengths[l]);
    for (int round = 0; round < 3; round++)
      update_shard(&f, lengths[l], test_rng_below(&f.rng, cases[_i / 2].k));
    tear_down(&f);
  }
}
END_TEST

// Deltas are applied to parity shards kept elsewhere; the others are updated directly.
START_TEST(deltas_travel) {
  const code_case *c = &cases[_i / 2];
  for (size_t l = 0; l < LENGTHS; l++) {
    fixture f;
    set_up(&f, row_of(_i), c, lengths[l]);
    const size_t index = test_rng_below(&f.rng, c->k), away = test_rng_below(&f.rng, c->m);
    const size_t parity_bytes = weft_code_parity_bytes(f.code, lengths[l]);
    uint8_t *delta = malloc(lengths[l] + 1), *there = calloc(parity_bytes + 1, 1);
    ck_assert(delta && there);
    test_rng_fill(&f.rng, delta, lengths[l]);
    for (size_t b = 0; b < lengths[l]; b++)
      f.whole.shard[index][b] ^= delta[b];
    EXPECT_OK(weft_code_encode(f.code, &f.whole.view, 1, NULL));
    uint8_t *here[WEFT_MAX_SHARDS] = {NULL}, *gone[WEFT_MAX_SHARDS] = {NULL};
    for (size_t i = 0; i < c->m; i++)
      here[c->k + i] = i == away ? NULL : f.s.shard[c->k + i];
    gone[c->k + away] = there;
    EXPECT_OK(weft_code_add_delta(f.code, index, delta,
                                  &(weft_stripe){.shards = here, .bytes = lengths[l]}, NULL));
    EXPECT_OK(weft_code_parity_delta(f.code, index, delta,
                                     &(weft_stripe){.shards = gone, .bytes = lengths[l]}, NULL));
    for (size_t b = 0; b < parity_bytes; b++)
      f.s.shard[c->k + away][b] ^= there[b];
    for (size_t i = 0; i < c->m; i++)
      EXPECT(stripe_same_shard(&f.whole, &f.s, f.code, c->k + i));
    free(delta);
    free(there);
    tear_down(&f);
  }
}
END_TEST

START_TEST(shards_arrive_in_any_order) {
  const code_case *c = &cases[_i / 2];
  for (size_t l = 0; l < LENGTHS; l++) {
    fixture f;
    weft_progress *progress = NULL;
    uint8_t order[WEFT_MAX_SHARDS];
    set_up(&f, row_of(_i), c, lengths[l]);
    for (size_t i = 0; i < c->m; i++)
      stripe_spoil(&f.s, f.code, c->k + i);
    choose_ids(&f.rng, order, c->k, c->k);
    EXPECT_OK(weft_progress_new(f.code, &f.s.view, &progress));
    for (size_t i = 0; i < c->k; i++) {
      EXPECT(weft_progress_missing(progress) == c->k - i);
      EXPECT_OK(weft_progress_add(progress, order[i], f.whole.shard[order[i]], NULL));
      EXPECT_STATUS(weft_progress_add(progress, order[i], f.whole.shard[order[i]], NULL),
                    WEFT_E_STATE);
    }
    EXPECT_OK(weft_progress_finish(progress));
    EXPECT_STATUS(weft_progress_finish(progress), WEFT_E_STATE);
    weft_progress_free(progress);
    EXPECT(stripe_same(&f.whole, &f.s, f.code));
    tear_down(&f);
  }
}
END_TEST

// Shards that never arrive count as zeros, even if none arrives. One parity shard is elsewhere.
START_TEST(shards_that_never_come_are_zeros) {
  const code_case *c = &cases[_i / 2];
  for (size_t come = 0; come <= 1; come++) {
    fixture f;
    weft_progress *progress = NULL;
    set_up(&f, row_of(_i), c, 1000);
    for (size_t j = come; j < c->k; j++)
      memset(f.whole.shard[j], 0, 1000);
    EXPECT_OK(weft_code_encode(f.code, &f.whole.view, 1, NULL));
    const size_t here = c->m > 1 ? c->m - 1 : 1;
    uint8_t *shards[WEFT_MAX_SHARDS] = {NULL};
    for (size_t i = 0; i < here; i++)
      shards[c->k + i] = f.s.shard[c->k + i];
    const weft_stripe view = {.shards = shards, .bytes = 1000};
    EXPECT_OK(weft_progress_new(f.code, &view, &progress));
    if (come)
      EXPECT_OK(weft_progress_add(progress, 0, f.whole.shard[0], NULL));
    EXPECT_OK(weft_progress_finish(progress));
    EXPECT_STATUS(weft_progress_add(progress, c->k - 1, f.whole.shard[0], NULL), WEFT_E_STATE);
    weft_progress_free(progress);
    for (size_t i = 0; i < here; i++)
      EXPECT(stripe_same_shard(&f.whole, &f.s, f.code, c->k + i));
    tear_down(&f);
  }
}
END_TEST

// Flips a bit of parity, which verification must report and nothing else.
static void check_seen(fixture *f, const code_case *c, size_t i, size_t at) {
  uint8_t wrong[WEFT_MAX_SHARDS];
  size_t count = 99;
  f->s.shard[c->k + i][at] ^= (uint8_t)(1u << test_rng_below(&f->rng, 8));
  EXPECT_OK(weft_code_verify(f->code, &f->s.view, wrong, &count, NULL));
  EXPECT(count == 1);
  for (size_t p = 0; p < c->m; p++)
    EXPECT(wrong[p] == (p == i));
  f->s.shard[c->k + i][at] = f->whole.shard[c->k + i][at];
}

START_TEST(verify_names_what_is_wrong) {
  const code_case *c = &cases[_i / 2];
  for (size_t l = 0; l < LENGTHS; l++) {
    fixture f;
    uint8_t wrong[WEFT_MAX_SHARDS];
    size_t count = 99;
    set_up(&f, row_of(_i), c, lengths[l]);
    EXPECT_OK(weft_code_verify(f.code, &f.s.view, wrong, &count, NULL));
    EXPECT(count == 0);
    const size_t parity_bytes = weft_code_parity_bytes(f.code, lengths[l]);
    for (int round = 0; round < 8 && lengths[l]; round++)
      check_seen(&f, c, test_rng_below(&f.rng, c->m), test_rng_below(&f.rng, parity_bytes));
    if (lengths[l]) { // one wrong bit of data affects every parity shard
      f.s.shard[c->k - 1][lengths[l] - 1] ^= 0x10;
      EXPECT_OK(weft_code_verify(f.code, &f.s.view, NULL, &count, NULL));
      // A row of a CRS code may not depend on that bit.
      EXPECT(count == c->m || weft_code_unit_bytes(f.code) > 1);
      EXPECT(count > 0);
    }
    tear_down(&f);
  }
}
END_TEST

// Codes with stripes long enough for threads to share, divided anywhere; some groups are longer
// than what one thread takes at a time.
static const code_case shared_cases[] = {
    {"vandermonde", 10, 4, 0, 0},    {"cauchy_good", 10, 4, 4, 8},
    {"cauchy_good", 5, 3, 8, 1024},  {"cauchy_orig", 4, 4, 3, 20000},
    {"cauchy_orig", 4, 4, 3, 60000}, {"cauchy_orig", 5, 3, 7, 100},
    {"cauchy_good", 20, 8, 5, 4096},
};
static const size_t shared_threads[] = {1, 2, 3, 5};
enum {
  SHARED_CASES = sizeof shared_cases / sizeof shared_cases[0],
  SHARED_THREADS = sizeof shared_threads / sizeof shared_threads[0]
};

START_TEST(any_number_of_threads_makes_the_same_bytes) {
  static const size_t shared_lengths[] = {131072, 300001};
  const code_case *c = &shared_cases[_i / SHARED_THREADS];
  for (size_t l = 0; l < sizeof shared_lengths / sizeof shared_lengths[0]; l++) {
    const size_t bytes = shared_lengths[l];
    fixture f;
    size_t count = 99;
    set_up_threads(&f, test_host_row(0), c, bytes, shared_threads[_i % SHARED_THREADS]);
    update_shard(&f, bytes, test_rng_below(&f.rng, c->k));
    EXPECT_OK(weft_code_verify(f.code, &f.s.view, NULL, &count, NULL));
    EXPECT(count == 0);
    const size_t parity_bytes = weft_code_parity_bytes(f.code, bytes);
    check_seen(&f, c, 0, 0);
    check_seen(&f, c, c->m - 1, parity_bytes - 1);
    for (int round = 0; round < 3; round++)
      check_seen(&f, c, test_rng_below(&f.rng, c->m), test_rng_below(&f.rng, parity_bytes));
    tear_down(&f);
  }
}
END_TEST

// Stripes of all lengths up to several groups, with tails that a batch handles separately.
START_TEST(tails_are_shared) {
  enum { STRIPES = 45 };
  const code_case *c = &shared_cases[_i / SHARED_THREADS];
  weft_ctx *one = context_on(NULL, 1);
  weft_ctx *several = context_on(NULL, shared_threads[_i % SHARED_THREADS]);
  weft_code *alone = code_on(one, c), *code = code_on(several, c);
  test_rng rng = test_rng_new(test_seed(), 900);
  stripe *whole = calloc(STRIPES, sizeof *whole), *s = calloc(STRIPES, sizeof *s);
  weft_stripe views[STRIPES];
  ck_assert(whole && s);
  const size_t unit = weft_code_unit_bytes(code), most = unit < 5000 ? 3 * unit + 40 : unit + 9;
  for (size_t i = 0; i < STRIPES; i++) {
    const size_t bytes = i % 9 == 4 ? unit : test_rng_below(&rng, most);
    stripe_init(&whole[i], alone, bytes, &rng, 0);
    EXPECT_OK(weft_code_encode(alone, &whole[i].view, 1, NULL));
    stripe_init(&s[i], code, bytes, &rng, 0);
    stripe_copy(&s[i], &whole[i], code);
    for (size_t p = 0; p < c->m; p++)
      stripe_spoil(&s[i], code, c->k + p);
    views[i] = s[i].view;
  }
  for (size_t count = 1; count <= STRIPES; count += 11) {
    EXPECT_OK(weft_code_encode(code, views, count, NULL));
    for (size_t i = 0; i < count; i++) {
      EXPECT(stripe_same(&whole[i], &s[i], code));
      stripe_spoil(&s[i], code, c->k);
    }
  }
  for (size_t i = 0; i < STRIPES; i++) {
    stripe_clear(&whole[i]);
    stripe_clear(&s[i]);
  }
  free(whole);
  free(s);
  weft_code_free(alone);
  weft_code_free(code);
  weft_ctx_free(one);
  weft_ctx_free(several);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("parity in parts");
  TCase *parts = tcase_create("parts");
  tcase_add_loop_test(parts, updates_keep_parity, 0, 2 * CASES);
  tcase_add_loop_test(parts, deltas_travel, 0, 2 * CASES);
  tcase_add_loop_test(parts, shards_arrive_in_any_order, 0, 2 * CASES);
  tcase_add_loop_test(parts, shards_that_never_come_are_zeros, 0, 2 * CASES);
  tcase_add_loop_test(parts, verify_names_what_is_wrong, 0, 2 * CASES);
  tcase_add_loop_test(parts, any_number_of_threads_makes_the_same_bytes, 0,
                      SHARED_CASES * SHARED_THREADS);
  tcase_add_loop_test(parts, tails_are_shared, 0, SHARED_CASES * SHARED_THREADS);
  suite_add_tcase(suite, parts);
  return test_main(suite);
}
