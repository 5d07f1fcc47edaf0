// SPDX-License-Identifier: Apache-2.0
// The pool: workers wait until a job is open, join it, take indices until none is left, and leave.
// A job is closed once the caller has run out of indices, so a worker that wakes late finds nothing
// and no job waits for sleepers.
//
// Each thread has a share of the indices, the same in every job of that size, so that calls on the
// same rows find them in the same core's cache. A thread that has finished its share helps with the
// others'.
//
// Waking a sleeper costs tens of microseconds, as much as a small product. A worker that has just
// worked therefore polls for the next job for about that long, yielding its core to others, before
// it sleeps; the caller polls likewise for the last workers to leave. Workers neither pass through
// a lock on the way in or out nor wake each other: of 14 threads the last would be late by as much
// as a small job takes (docs/performance/cpu-codec.md).
#define _POSIX_C_SOURCE 200809L
#include "kernels/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { THREADS_MAX = 4096, LOOK_OUT_TURNS = 64, LOOKS_PER_TURN = 64 };

// Where a thread sleeps. `asleep`: it sleeps on its semaphore, or is about to; the thread that
// clears it posts, once.
typedef struct bed {
  atomic_bool asleep;
  sem_t wake;
} bed;

// A thread, the caller's included, and the indices [next, end) that it takes first. Each has cache
// lines of its own.
typedef struct worker {
  _Alignas(64) atomic_size_t next;
  size_t end;
  size_t number; // 0: the caller's
  weft_pool *pool;
  pthread_t thread;
  bed bed;
} worker;

struct weft_pool {
  weft_allocator allocator;
  size_t threads;       // the caller's own included
  size_t beds;          // number of workers whose bed is set up, the first ones
  size_t started;       // workers 1 to `started` run
  worker *workers;      // (threads)
  pthread_mutex_t turn; // held by the caller whose job it is
  atomic_bool stop;
  atomic_size_t job;    // incremented when a job is opened, which makes it odd, and when closed
  atomic_size_t inside; // workers inside the job, or about to see that it is closed
  // The open job. Written while no worker is inside.
  void (*task)(void *user, size_t index);
  void *user;
};

// --- sleeping ---

static void wait_for_post(bed *b) {
  while (sem_wait(&b->wake) != 0 && errno == EINTR)
    ;
}

static void lie_down(bed *b) { atomic_store(&b->asleep, true); }

// Sleeps until woken, if `still` says that there is a reason to. Called after lie_down.
static void sleep_if(bed *b, bool still) {
  if (still || !atomic_exchange(&b->asleep, false)) // already cleared: a post is on its way
    wait_for_post(b);
}

static void wake(bed *b) {
  if (atomic_load(&b->asleep) && atomic_exchange(&b->asleep, false))
    sem_post(&b->wake);
}

// --- a job ---

static void take_indices(weft_pool *pool, size_t own, void (*task)(void *, size_t), void *user) {
  for (size_t i = 0; i < pool->threads; i++) {
    worker *w = &pool->workers[(own + i) % pool->threads];
    size_t index;
    while ((index = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed)) < w->end)
      task(user, index);
  }
}

// Returns whether `job` is open, and not the one seen last.
static bool is_new(size_t job, size_t seen) { return job % 2 != 0 && job != seen; }

// Polls for a new job for as long as waking would take.
static void look_out_for_job(weft_pool *pool, size_t seen) {
  for (int turn = 0; turn < LOOK_OUT_TURNS; turn++) {
    for (int look = 0; look < LOOKS_PER_TURN; look++)
      if (is_new(atomic_load_explicit(&pool->job, memory_order_relaxed), seen))
        return;
    sched_yield();
  }
}

// Polls likewise until all workers have left.
static void look_out_for_leaving(weft_pool *pool) {
  for (int turn = 0; turn < LOOK_OUT_TURNS; turn++) {
    for (int look = 0; look < LOOKS_PER_TURN; look++)
      if (atomic_load_explicit(&pool->inside, memory_order_relaxed) == 0)
        return;
    sched_yield();
  }
}

// Works on the open job, unless it has been closed: either the caller sees that a worker is inside,
// or the worker sees that the job is closed. Returns the value of pool->job that it saw.
static size_t join(weft_pool *pool, const worker *self) {
  atomic_fetch_add(&pool->inside, 1);
  const size_t job = atomic_load(&pool->job);
  if (job % 2 != 0)
    take_indices(pool, self->number, pool->task, pool->user);
  if (atomic_fetch_sub(&pool->inside, 1) == 1)
    wake(&pool->workers[0].bed);
  return job;
}

static void *work(void *argument) {
  worker *self = argument;
  weft_pool *pool = self->pool;
  size_t seen = 0;
  while (!atomic_load(&pool->stop)) {
    const size_t job = atomic_load(&pool->job);
    if (is_new(job, seen)) {
      seen = join(pool, self);
      look_out_for_job(pool, seen);
      continue;
    }
    lie_down(&self->bed);
    sleep_if(&self->bed, atomic_load(&pool->job) == job && !atomic_load(&pool->stop));
  }
  return NULL;
}

static void open_job(weft_pool *pool, size_t count, void (*task)(void *, size_t), void *user) {
  const size_t each = count / pool->threads, left = count % pool->threads;
  size_t begin = 0;
  for (size_t i = 0; i < pool->threads; i++) {
    atomic_store_explicit(&pool->workers[i].next, begin, memory_order_relaxed);
    begin += each + (i < left);
    pool->workers[i].end = begin;
  }
  pool->task = task;
  pool->user = user;
  atomic_fetch_add(&pool->job, 1);
  for (size_t i = 1; i < count && i <= pool->started; i++)
    wake(&pool->workers[i].bed);
}

static void close_job(weft_pool *pool) {
  bed *const own = &pool->workers[0].bed;
  atomic_fetch_add(&pool->job, 1);
  while (atomic_load(&pool->inside) > 0) {
    look_out_for_leaving(pool);
    lie_down(own);
    sleep_if(own, atomic_load(&pool->inside) > 0);
  }
}

void weft_pool_run(weft_pool *pool, size_t count, void (*task)(void *user, size_t index),
                   void *user) {
  if (!pool || pool->threads == 1 || count <= 1) {
    for (size_t i = 0; i < count; i++)
      task(user, i);
    return;
  }
  pthread_mutex_lock(&pool->turn);
  open_job(pool, count, task, user);
  take_indices(pool, 0, task, user);
  close_job(pool);
  pthread_mutex_unlock(&pool->turn);
}

// --- making one ---

weft_status weft_thread_start(pthread_t *out, void *(*run)(void *user), void *user) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) // new threads inherit the mask
    return WEFT_E_THREAD;
  const bool started = pthread_create(out, NULL, run, user) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started ? WEFT_OK : WEFT_E_THREAD;
}

static weft_status init_workers(weft_pool *pool) {
  const weft_allocator *allocator = &pool->allocator;
  if (pool->threads == 1)
    return WEFT_OK;
  pool->workers =
      allocator->alloc(allocator->user, pool->threads * sizeof(worker), _Alignof(worker));
  if (!pool->workers)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < pool->threads; i++) {
    worker *w = &pool->workers[i];
    w->number = i;
    w->pool = pool;
    w->end = 0;
    atomic_init(&w->next, 0);
    atomic_init(&w->bed.asleep, false);
    if (sem_init(&w->bed.wake, 0, 0) != 0)
      return WEFT_E_THREAD;
    pool->beds++;
  }
  return WEFT_OK;
}

static weft_status start_workers(weft_pool *pool) {
  while (pool->started < pool->threads - 1) {
    worker *next = &pool->workers[pool->started + 1];
    WEFT_TRY(weft_thread_start(&next->thread, work, next));
    pool->started++;
  }
  return WEFT_OK;
}

static void free_memory(weft_pool *pool) {
  const weft_allocator allocator = pool->allocator;
  for (size_t i = 0; i < pool->beds; i++)
    sem_destroy(&pool->workers[i].bed.wake);
  if (pool->workers)
    allocator.free(allocator.user, pool->workers);
  allocator.free(allocator.user, pool);
}

weft_status weft_pool_new(weft_pool **out, size_t threads, const weft_allocator *allocator) {
  *out = NULL;
  if (threads == 0 || threads > THREADS_MAX)
    return WEFT_E_ARGUMENT;
  weft_pool *pool = allocator->alloc(allocator->user, sizeof *pool, _Alignof(weft_pool));
  if (!pool)
    return WEFT_E_NOMEM;
  *pool = (weft_pool){.allocator = *allocator, .threads = threads};
  atomic_init(&pool->stop, false);
  atomic_init(&pool->job, 0);
  atomic_init(&pool->inside, 0);
  weft_status status = init_workers(pool);
  if (status == WEFT_OK && pthread_mutex_init(&pool->turn, NULL) != 0)
    status = WEFT_E_THREAD;
  if (status != WEFT_OK) {
    free_memory(pool);
    return status;
  }
  status = start_workers(pool);
  if (status != WEFT_OK) {
    weft_pool_free(pool);
    return status;
  }
  *out = pool;
  return WEFT_OK;
}

void weft_pool_free(weft_pool *pool) {
  if (!pool)
    return;
  pthread_mutex_lock(&pool->turn); // waits for a running job
  atomic_store(&pool->stop, true);
  for (size_t i = 1; i <= pool->started; i++)
    wake(&pool->workers[i].bed);
  pthread_mutex_unlock(&pool->turn);
  for (size_t i = 1; i <= pool->started; i++)
    pthread_join(pool->workers[i].thread, NULL);
  pthread_mutex_destroy(&pool->turn);
  free_memory(pool);
}

size_t weft_pool_threads(const weft_pool *pool) { return pool ? pool->threads : 1; }
