// SPDX-License-Identifier: Apache-2.0
// Memory that calls leave for later ones: a block is used by one call at a time, large enough, and
// freed in the end.
#include <pthread.h>
#include <string.h>

#include "kernels/scratch.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

static weft_scratch *scratch_of(test_allocator *memory) {
  weft_scratch *scratch = NULL;
  test_allocator_init(memory, 0);
  ck_assert_int_eq(weft_scratch_new(&memory->allocator, &scratch), WEFT_OK);
  return scratch;
}

static void expect_placed(const void *memory) {
  ck_assert_ptr_nonnull(memory);
  ck_assert_uint_eq((uintptr_t)memory % 64, 0);
  ck_assert_uint_ge((uintptr_t)memory % 4096, 512);  // not near the start of a page,
  ck_assert_uint_le((uintptr_t)memory % 4096, 3072); // nor near its end
}

// A returned block is used again, without another allocation.
START_TEST(what_is_left_serves_the_next_call) {
  test_allocator memory;
  weft_scratch *scratch = scratch_of(&memory);
  void *first = weft_scratch_take(scratch, &memory.allocator, 100000);
  expect_placed(first);
  memset(first, 1, 100000);
  weft_scratch_give(scratch, &memory.allocator, first);
  const long calls = atomic_load(&memory.calls);
  ck_assert_ptr_eq(weft_scratch_take(scratch, &memory.allocator, 1000), first);
  ck_assert_int_eq(atomic_load(&memory.calls), calls);
  // A block in use is not handed out again, nor one that is too small.
  void *second = weft_scratch_take(scratch, &memory.allocator, 1000);
  ck_assert_ptr_ne(second, first);
  weft_scratch_give(scratch, &memory.allocator, second);
  void *large = weft_scratch_take(scratch, &memory.allocator, 200000);
  memset(large, 2, 200000);
  weft_scratch_give(scratch, &memory.allocator, large);
  weft_scratch_give(scratch, &memory.allocator, first);
  weft_scratch_give(scratch, &memory.allocator, NULL);
  ck_assert_int_eq(test_allocator_live(&memory), 3);
  weft_scratch_free(scratch, &memory.allocator);
  weft_scratch_free(NULL, &memory.allocator);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Blocks in excess of those kept are freed when they are returned.
START_TEST(more_than_are_kept_are_freed) {
  enum { MANY = 40 };
  test_allocator memory;
  weft_scratch *scratch = scratch_of(&memory);
  void *out[MANY];
  for (size_t i = 0; i < MANY; i++)
    expect_placed(out[i] = weft_scratch_take(scratch, &memory.allocator, 64));
  for (size_t i = 0; i < MANY; i++)
    weft_scratch_give(scratch, &memory.allocator, out[i]);
  ck_assert_int_lt(test_allocator_live(&memory), MANY);
  weft_scratch_free(scratch, &memory.allocator);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Without a store, blocks come from the allocator and return to it.
START_TEST(without_a_store_it_is_the_allocators) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  void *taken = weft_scratch_take(NULL, &memory.allocator, 64);
  expect_placed(taken);
  weft_scratch_give(NULL, &memory.allocator, taken);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

START_TEST(no_memory) {
  test_allocator memory;
  weft_scratch *scratch = NULL;
  test_allocator_init(&memory, 1);
  ck_assert_int_eq(weft_scratch_new(&memory.allocator, &scratch), WEFT_E_NOMEM);
  ck_assert_ptr_null(scratch);
  test_allocator_init(&memory, 2);
  ck_assert_int_eq(weft_scratch_new(&memory.allocator, &scratch), WEFT_OK);
  ck_assert_ptr_null(weft_scratch_take(scratch, &memory.allocator, 64));
  weft_scratch_free(scratch, &memory.allocator);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

typedef struct worker {
  weft_scratch *scratch;
  test_allocator *memory;
  uint64_t seed;
  bool shared; // another thread wrote to this thread's block
} worker;

static void *work(void *user) {
  enum { ROUNDS = 3000 };
  worker *w = user;
  test_rng rng = test_rng_new(w->seed, 1);
  for (size_t round = 0; round < ROUNDS; round++) {
    const size_t bytes = 64 + test_rng_below(&rng, 5000);
    const uint8_t mark = (uint8_t)test_rng_next(&rng);
    uint8_t *mine = weft_scratch_take(w->scratch, &w->memory->allocator, bytes);
    memset(mine, mark, bytes);
    for (size_t i = 0; i < bytes; i++)
      w->shared = w->shared || mine[i] != mark;
    weft_scratch_give(w->scratch, &w->memory->allocator, mine);
  }
  return NULL;
}

START_TEST(threads_share_nothing) {
  enum { THREADS = 6 };
  test_allocator memory;
  weft_scratch *scratch = scratch_of(&memory);
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (size_t t = 0; t < THREADS; t++) {
    workers[t] = (worker){.scratch = scratch, .memory = &memory, .seed = test_seed() + t};
    ck_assert_int_eq(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
  }
  for (size_t t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    ck_assert(!workers[t].shared);
  }
  weft_scratch_free(scratch, &memory.allocator);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("scratch");
  TCase *cases = tcase_create("scratch");
  tcase_add_test(cases, what_is_left_serves_the_next_call);
  tcase_add_test(cases, more_than_are_kept_are_freed);
  tcase_add_test(cases, without_a_store_it_is_the_allocators);
  tcase_add_test(cases, no_memory);
  tcase_add_test(cases, threads_share_nothing);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
