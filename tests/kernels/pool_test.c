// SPDX-License-Identifier: Apache-2.0
// The pool: it runs each index exactly once, never uses more threads than requested, and accepts
// several callers at once.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "kernels/pool.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"

enum { ITEMS = 1000, CALLERS = 4, ROUNDS = 50 };

typedef struct count {
  atomic_int runs[ITEMS];
  atomic_int inside, most;
  long pause_ns;
} count;

static void count_item(void *user, size_t index) {
  count *c = user;
  const int inside = atomic_fetch_add(&c->inside, 1) + 1;
  int most = atomic_load(&c->most);
  while (inside > most && !atomic_compare_exchange_weak(&c->most, &most, inside)) {
  }
  if (c->pause_ns)
    nanosleep(&(struct timespec){.tv_nsec = c->pause_ns}, NULL);
  atomic_fetch_add(&c->runs[index], 1);
  atomic_fetch_sub(&c->inside, 1);
}

static void expect_once(count *c, size_t items) {
  for (size_t i = 0; i < ITEMS; i++)
    ck_assert_int_eq(atomic_load(&c->runs[i]), i < items);
}

static weft_pool *pool_of(test_allocator *memory, size_t threads) {
  weft_pool *pool = NULL;
  test_allocator_init(memory, 0);
  ck_assert_int_eq(weft_pool_new(&pool, threads, &memory->allocator), WEFT_OK);
  ck_assert_uint_eq(weft_pool_threads(pool), threads);
  return pool;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Waits actively for short times, which sleeping would prolong.
static void pause_us(long us) {
  if (us >= 1000)
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
  for (const int64_t end = now_ns() + us * 1000; now_ns() < end;) {
  }
}

START_TEST(each_index_once) {
  static const size_t sizes[] = {0, 1, 2, 3, 7, 64, ITEMS};
  test_allocator memory;
  weft_pool *pool = pool_of(&memory, (size_t)_i);
  for (int round = 0; round < ROUNDS; round++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      count c = {0};
      weft_pool_run(pool, sizes[s], count_item, &c);
      expect_once(&c, sizes[s]);
      ck_assert_int_le(atomic_load(&c.most), _i);
    }
  weft_pool_free(pool);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

START_TEST(threads_share_and_stay_within_bounds) {
  enum { SLEPT = 5 };
  test_allocator memory;
  weft_pool *pool = pool_of(&memory, 3);
  int most = 0;
  for (int round = 0; round <= SLEPT; round++) {
    count c = {.pause_ns = 1000000};
    weft_pool_run(pool, 60, count_item, &c);
    expect_once(&c, 60);
    ck_assert_int_le(atomic_load(&c.most), 3);
    ck_assert_int_ge(atomic_load(&c.most), 2); // 20 ms of sleep each is time enough to join
    if (round > 0 && atomic_load(&c.most) > most)
      most = atomic_load(&c.most);
    pause_us(10000); // let the threads fall asleep
  }
  ck_assert_int_eq(most, 3); // every thread is woken
  weft_pool_free(pool);
}
END_TEST

typedef struct first_of { // each thread's first index
  pthread_t caller;
  atomic_bool begun[2]; // the other thread; the caller
  size_t first[2];
} first_of;

static void note_first(void *user, size_t index) {
  first_of *f = user;
  const int who = pthread_equal(pthread_self(), f->caller) != 0;
  if (!atomic_exchange(&f->begun[who], true))
    f->first[who] = index;
  nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

// A thread takes the same indices in every job of one size, so that their data are in its core's
// cache; the caller takes the first ones.
START_TEST(each_thread_begins_with_its_own_share) {
  enum { EACH = 8 };
  test_allocator memory;
  weft_pool *pool = pool_of(&memory, 2);
  int both = 0; // otherwise nothing was tested
  for (int round = 0; round < 10; round++) {
    first_of f = {.caller = pthread_self()};
    weft_pool_run(pool, 2 * EACH + 1, note_first, &f); // the extra index is the caller's
    ck_assert(!atomic_load(&f.begun[1]) || f.first[1] <= EACH);
    ck_assert(!atomic_load(&f.begun[0]) || f.first[0] > EACH);
    both += atomic_load(&f.begun[0]) && atomic_load(&f.begun[1]);
  }
  ck_assert_int_gt(both, 0);
  weft_pool_free(pool);
}
END_TEST

static int64_t cpu_ns(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

// Idle threads spin for a while and then sleep.
START_TEST(idle_threads_sleep) {
  test_allocator memory;
  weft_pool *pool = pool_of(&memory, 4);
  count c = {.pause_ns = 1000000};
  weft_pool_run(pool, 20, count_item, &c);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  const int64_t before = cpu_ns();
  nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
  const int64_t used = cpu_ns() - before;
  ck_assert_msg(used < 50000000, "%lld ns of the CPU in 200 ms", (long long)used);
  weft_pool_free(pool);
}
END_TEST

typedef struct long_job {
  weft_pool *pool;
  atomic_bool begun, done;
} long_job;

static void take_long(void *user, size_t index) {
  long_job *job = user;
  if (index > 0)
    return;
  atomic_store(&job->begun, true);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  atomic_store(&job->done, true);
}

static void *run_long(void *argument) {
  long_job *job = argument;
  weft_pool_run(job->pool, 4, take_long, job);
  return NULL;
}

START_TEST(freeing_waits_for_running_work) {
  test_allocator memory;
  long_job job = {.pool = pool_of(&memory, 2)};
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, run_long, &job), 0);
  while (!atomic_load(&job.begun))
    pause_us(100);
  weft_pool_free(job.pool);
  ck_assert(atomic_load(&job.done));
  pthread_join(thread, NULL);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Threads that have just started, or are falling asleep, notice that the pool is freed.
START_TEST(pools_end_at_any_moment) {
  enum { POOLS = 1000 };
  test_allocator memory;
  for (int i = 0; i < POOLS; i++) {
    count c = {0};
    weft_pool *pool = pool_of(&memory, 3);
    if (i % 2)
      weft_pool_run(pool, 3, count_item, &c);
    if (i % 3 == 0)
      pause_us(i % 50);
    weft_pool_free(pool);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
  }
}
END_TEST

// Jobs work whether they come while workers spin, fall asleep or sleep, or end while others wake.
START_TEST(jobs_come_at_any_moment) {
  enum { JOBS = 400, MOST_US = 60 };
  test_allocator memory;
  weft_pool *pool = pool_of(&memory, (size_t)_i);
  uint64_t random = test_seed();
  for (int job = 0; job < JOBS; job++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    const size_t items = 2 + (random >> 60);
    count c = {0};
    weft_pool_run(pool, items, count_item, &c);
    expect_once(&c, items);
    pause_us((long)((random >> 40) % MOST_US));
  }
  weft_pool_free(pool);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

typedef struct caller {
  weft_pool *pool;
  count *together; // counts threads over all callers
  count own;
} caller;

static void count_both(void *user, size_t index) {
  caller *c = user;
  const int inside = atomic_fetch_add(&c->together->inside, 1) + 1;
  int most = atomic_load(&c->together->most);
  while (inside > most && !atomic_compare_exchange_weak(&c->together->most, &most, inside)) {
  }
  count_item(&c->own, index);
  atomic_fetch_sub(&c->together->inside, 1);
}

static void *call(void *argument) {
  caller *c = argument;
  for (int round = 0; round < ROUNDS; round++)
    weft_pool_run(c->pool, 100, count_both, c);
  return NULL;
}

START_TEST(concurrent_callers_take_turns) {
  test_allocator memory;
  weft_pool *pool = pool_of(&memory, 2);
  static caller callers[CALLERS];
  static count together;
  pthread_t threads[CALLERS];
  for (size_t i = 0; i < CALLERS; i++) {
    callers[i].pool = pool;
    callers[i].together = &together;
    ck_assert_int_eq(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
  }
  for (size_t i = 0; i < CALLERS; i++) {
    pthread_join(threads[i], NULL);
    for (size_t item = 0; item < ITEMS; item++)
      ck_assert_int_eq(atomic_load(&callers[i].own.runs[item]), item < 100 ? ROUNDS : 0);
  }
  ck_assert_int_le(atomic_load(&together.most), 2);
  weft_pool_free(pool);
}
END_TEST

// Without a pool the caller does all the work.
START_TEST(no_pool_runs_in_place) {
  count c = {0};
  ck_assert_uint_eq(weft_pool_threads(NULL), 1);
  weft_pool_run(NULL, 10, count_item, &c);
  expect_once(&c, 10);
  ck_assert_int_eq(atomic_load(&c.most), 1);
  weft_pool_free(NULL);
}
END_TEST

START_TEST(failures_are_statuses) {
  test_allocator memory;
  weft_pool *pool = NULL;
  for (long n = 1;; n++) {
    test_allocator_init(&memory, n);
    const weft_status status = weft_pool_new(&pool, 3, &memory.allocator);
    ck_assert_int_eq(status, test_allocator_failed(&memory) ? WEFT_E_NOMEM : WEFT_OK);
    ck_assert_int_eq(pool != NULL, status == WEFT_OK);
    weft_pool_free(pool);
    ck_assert_int_eq(test_allocator_live(&memory), 0);
    if (!test_allocator_failed(&memory))
      break;
  }
  ck_assert_int_eq(weft_pool_new(&pool, 0, &memory.allocator), WEFT_E_ARGUMENT);
  ck_assert_int_eq(weft_pool_new(&pool, SIZE_MAX, &memory.allocator), WEFT_E_ARGUMENT);
  ck_assert_ptr_null(pool);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pool");
  TCase *cases = tcase_create("pool");
  tcase_add_loop_test(cases, each_index_once, 1, 5);
  tcase_add_test(cases, threads_share_and_stay_within_bounds);
  tcase_add_test(cases, each_thread_begins_with_its_own_share);
  tcase_add_test(cases, idle_threads_sleep);
  tcase_add_test(cases, freeing_waits_for_running_work);
  tcase_add_test(cases, pools_end_at_any_moment);
  tcase_add_loop_test(cases, jobs_come_at_any_moment, 2, 6);
  tcase_add_test(cases, concurrent_callers_take_turns);
  tcase_add_test(cases, no_pool_runs_in_place);
  tcase_add_test(cases, failures_are_statuses);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
