// SPDX-License-Identifier: Apache-2.0
// The threads that work on stripes.
#define _POSIX_C_SOURCE 200809L
#include <stdatomic.h>

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "store/workers.h"
#include "tests/support/test_main.h"
#include "tests/support/test_signals.h"

enum { THREADS = 4 };

typedef struct meeting {
  test_signals watch;
  atomic_size_t inside;
} meeting;

// Each thread's first stripe waits for those of the others, so that each thread gets one.
static weft_status meet(void *user, size_t lane, uint64_t stripe) {
  meeting *all = user;
  (void)lane, (void)stripe;
  atomic_fetch_add(&all->inside, 1);
  while (atomic_load(&all->inside) < THREADS)
    sched_yield();
  test_signals_look(&all->watch);
  return WEFT_OK;
}

// Workers block all signals: a program that waits for signals must not miss one.
START_TEST(workers_take_no_signals) {
  meeting all = {.inside = 0};
  test_signals_init(&all.watch);
  const weft_store_run run = {.threads = THREADS, .end = THREADS, .work = meet, .user = &all};
  ck_assert_int_eq(weft_store_run_stripes(&run), WEFT_OK);
  ck_assert_uint_eq(atomic_load(&all.watch.looks), THREADS - 1);
  ck_assert_uint_eq(atomic_load(&all.watch.open), 0);
  ck_assert(test_signals_open()); // the caller's own mask is unchanged
}
END_TEST

enum { STRIPES = 60, LAST = 57, STOP_AT = 20 };

// What a run has done, and the next stripe of each step.
typedef struct course {
  uint64_t taken, given, watched;
  atomic_size_t taking, giving, worked;
  uint64_t last, stop_at;
} course;

static weft_status take_in_order(void *user, size_t lane, uint64_t stripe) {
  course *c = user;
  (void)lane;
  ck_assert_uint_eq(atomic_fetch_add(&c->taking, 1), 0);
  ck_assert_uint_eq(stripe, c->taken);
  sched_yield();
  atomic_fetch_sub(&c->taking, 1);
  if (stripe == c->last)
    return WEFT_PENDING;
  c->taken++;
  return WEFT_OK;
}

static weft_status work_unevenly(void *user, size_t lane, uint64_t stripe) {
  course *c = user;
  (void)lane;
  for (uint64_t i = 0; i < stripe * 7 % 5; i++)
    sched_yield();
  atomic_fetch_add(&c->worked, 1);
  return WEFT_OK;
}

static weft_status give_in_order(void *user, size_t lane, uint64_t stripe) {
  course *c = user;
  (void)lane;
  ck_assert_uint_eq(atomic_fetch_add(&c->giving, 1), 0);
  ck_assert_uint_eq(stripe, c->given);
  sched_yield();
  c->given++;
  atomic_fetch_sub(&c->giving, 1);
  return WEFT_OK;
}

static bool watch(void *watcher, uint64_t stripes) {
  course *c = watcher;
  ck_assert_uint_eq(stripes, ++c->watched);
  return stripes != c->stop_at;
}

// Stripes are taken and given in order until there are no more, or the run is stopped.
START_TEST(stripes_go_in_order) {
  for (uint64_t stop_at = 0; stop_at <= STOP_AT; stop_at += STOP_AT) {
    course c = {.last = LAST, .stop_at = stop_at};
    const weft_store_run run = {.threads = THREADS,
                                .end = STRIPES,
                                .take = take_in_order,
                                .work = work_unevenly,
                                .give = give_in_order,
                                .user = &c,
                                .keep_on = watch,
                                .watcher = &c};
    ck_assert_int_eq(weft_store_run_stripes(&run), stop_at ? WEFT_E_STOPPED : WEFT_OK);
    ck_assert_uint_eq(c.given, stop_at ? stop_at : LAST);
    ck_assert(stop_at ? c.taken <= stop_at + THREADS : atomic_load(&c.worked) == LAST);
  }
}
END_TEST

// The first stripe fails once all others wait for their turn behind it.
static weft_status fail_first(void *user, size_t lane, uint64_t stripe) {
  course *c = user;
  (void)lane;
  atomic_fetch_add(&c->worked, 1);
  if (stripe > 0)
    return WEFT_OK;
  while (atomic_load(&c->worked) < THREADS)
    sched_yield();
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  return WEFT_E_DAMAGED;
}

// Threads that wait for their turn behind a failed stripe end.
START_TEST(nobody_waits_behind_a_failure) {
  course c = {.last = STRIPES};
  const weft_store_run run = {
      .threads = THREADS, .end = STRIPES, .work = fail_first, .give = give_in_order, .user = &c};
  alarm(60);
  ck_assert_int_eq(weft_store_run_stripes(&run), WEFT_E_DAMAGED);
  ck_assert_uint_eq(c.given, 0);
  ck_assert_uint_eq(atomic_load(&c.worked), THREADS);
}
END_TEST

static weft_status give_nothing(void *user, size_t lane, uint64_t stripe) {
  course *c = user;
  (void)lane, (void)stripe;
  c->given++;
  return WEFT_E_IO;
}

// No stripe is given after one that failed.
START_TEST(nothing_is_given_behind_a_failure) {
  for (int round = 0; round < 200; round++) {
    course c = {.last = STRIPES};
    const weft_store_run run = {.threads = THREADS,
                                .end = STRIPES,
                                .work = work_unevenly,
                                .give = give_nothing,
                                .user = &c};
    ck_assert_int_eq(weft_store_run_stripes(&run), WEFT_E_IO);
    ck_assert_uint_eq(c.given, 1);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("workers");
  TCase *tc = tcase_create("workers");
  tcase_add_test(tc, workers_take_no_signals);
  tcase_add_test(tc, stripes_go_in_order);
  tcase_add_test(tc, nobody_waits_behind_a_failure);
  tcase_add_test(tc, nothing_is_given_behind_a_failure);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
