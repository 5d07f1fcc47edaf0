// SPDX-License-Identifier: Apache-2.0
// The threads that work on stripes.
#include <stdatomic.h>

#include <sched.h>

#include "store/workers.h"
#include "tests/support/test_main.h"
#include "tests/support/test_signals.h"

enum { THREADS = 4 };

typedef struct meeting {
  test_signals watch;
  atomic_size_t inside;
} meeting;

// Each thread's first stripe waits for the others', so that none is left without one.
static weft_status meet(void *user, size_t lane, uint64_t stripe) {
  meeting *all = user;
  (void)lane, (void)stripe;
  atomic_fetch_add(&all->inside, 1);
  while (atomic_load(&all->inside) < THREADS)
    sched_yield();
  test_signals_look(&all->watch);
  return WEFT_OK;
}

// A program that waits for signals must not miss one because a stripe was worked on.
START_TEST(workers_take_no_signals) {
  meeting all = {.inside = 0};
  test_signals_init(&all.watch);
  const weft_store_run run = {.threads = THREADS, .end = THREADS, .work = meet, .user = &all};
  ck_assert_int_eq(weft_store_run_stripes(&run), WEFT_OK);
  ck_assert_uint_eq(atomic_load(&all.watch.looks), THREADS - 1);
  ck_assert_uint_eq(atomic_load(&all.watch.open), 0);
  ck_assert(test_signals_open()); // the caller's own mask is as it was
}
END_TEST

int main(void) {
  Suite *suite = suite_create("workers");
  TCase *tc = tcase_create("workers");
  tcase_add_test(tc, workers_take_no_signals);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
