// SPDX-License-Identifier: Apache-2.0
// The pool: workers wait until a job is open, join it, take indices until none is left, and leave.
// A job is closed once the caller has run out of indices, so a worker that wakes late finds nothing
// and no job waits for sleepers.
//
// Each thread has a share of the indices, the same in every job of that size, so that calls on the
// same rows find them in the same core's cache; who has done its own share helps with the others'.
//
// Waking a sleeper costs tens of microseconds, as much as a small product. So a worker that has
// just worked looks out for the next job for about that long, yielding its core to others, before
// it sleeps on the condition variable; so does the caller for the last workers.
#define _POSIX_C_SOURCE 200809L
#include "kernels/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { THREADS_MAX = 4096, LOOK_OUT_TURNS = 64, LOOKS_PER_TURN = 64 };

// The indices [next, end) that one thread takes first; on a cache line of its own.
typedef struct share {
  _Alignas(64) atomic_size_t next;
  size_t end;
} share;

typedef struct worker {
  pthread_t thread;
  weft_pool *pool;
  size_t share;
} worker;

struct weft_pool {
  weft_allocator allocator;
  size_t threads;       // the caller's own included
  size_t started;       // workers that run
  worker *workers;      // (threads - 1)
  share *shares;        // (threads), the caller's first
  pthread_mutex_t turn; // held by the caller whose job it is
  pthread_mutex_t lock; // guards everything below
  pthread_cond_t open;  // a job was opened, or the pool stops
  pthread_cond_t left;  // the last worker left the job
  bool stop, is_open;
  size_t asleep;     // workers that wait on `open`
  atomic_size_t job; // counts jobs, so that a worker joins each at most once; read without lock too
  atomic_size_t inside; // workers inside the job; read without lock too
  void (*task)(void *user, size_t index);
  void *user;
};

static void take_indices(weft_pool *pool, size_t own, void (*task)(void *, size_t), void *user) {
  for (size_t i = 0; i < pool->threads; i++) {
    share *s = &pool->shares[(own + i) % pool->threads];
    size_t index;
    while ((index = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end)
      task(user, index);
  }
}

// Looks out for `value` to leave `old`, for as long as waking would take.
static void look_out(atomic_size_t *value, size_t old) {
  for (int turn = 0; turn < LOOK_OUT_TURNS; turn++) {
    for (int look = 0; look < LOOKS_PER_TURN; look++)
      if (atomic_load_explicit(value, memory_order_relaxed) != old)
        return;
    sched_yield();
  }
}

static bool has_job(const weft_pool *pool, size_t seen) {
  return pool->is_open && atomic_load_explicit(&pool->job, memory_order_relaxed) != seen;
}

static void *work(void *argument) {
  const worker *self = argument;
  weft_pool *pool = self->pool;
  size_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->stop && !has_job(pool, seen)) {
      pool->asleep++;
      pthread_cond_wait(&pool->open, &pool->lock);
      pool->asleep--;
    }
    if (pool->stop)
      break;
    seen = atomic_load_explicit(&pool->job, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->inside, 1, memory_order_relaxed);
    void (*const task)(void *, size_t) = pool->task;
    void *const user = pool->user;
    pthread_mutex_unlock(&pool->lock);
    take_indices(pool, self->share, task, user);
    pthread_mutex_lock(&pool->lock);
    if (atomic_fetch_sub_explicit(&pool->inside, 1, memory_order_relaxed) == 1)
      pthread_cond_signal(&pool->left);
    pthread_mutex_unlock(&pool->lock);
    look_out(&pool->job, seen);
    pthread_mutex_lock(&pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

weft_status weft_thread_start(pthread_t *out, void *(*run)(void *user), void *user) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) // which a thread inherits
    return WEFT_E_THREAD;
  const bool started = pthread_create(out, NULL, run, user) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started ? WEFT_OK : WEFT_E_THREAD;
}

static weft_status start_workers(weft_pool *pool) {
  while (pool->started < pool->threads - 1) {
    worker *next = &pool->workers[pool->started];
    next->pool = pool;
    next->share = pool->started + 1;
    WEFT_TRY(weft_thread_start(&next->thread, work, next));
    pool->started++;
  }
  return WEFT_OK;
}

static weft_status init_locks(weft_pool *pool) {
  if (pthread_mutex_init(&pool->turn, NULL) != 0)
    return WEFT_E_THREAD;
  if (pthread_mutex_init(&pool->lock, NULL) != 0)
    goto no_lock;
  if (pthread_cond_init(&pool->open, NULL) != 0)
    goto no_open;
  if (pthread_cond_init(&pool->left, NULL) != 0)
    goto no_left;
  return WEFT_OK;
no_left:
  pthread_cond_destroy(&pool->open);
no_open:
  pthread_mutex_destroy(&pool->lock);
no_lock:
  pthread_mutex_destroy(&pool->turn);
  return WEFT_E_THREAD;
}

static void free_memory(weft_pool *pool) {
  const weft_allocator allocator = pool->allocator;
  if (pool->workers)
    allocator.free(allocator.user, pool->workers);
  if (pool->shares)
    allocator.free(allocator.user, pool->shares);
  allocator.free(allocator.user, pool);
}

static weft_status init_memory(weft_pool *pool) {
  const weft_allocator *allocator = &pool->allocator;
  if (pool->threads == 1)
    return WEFT_OK;
  pool->workers =
      allocator->alloc(allocator->user, (pool->threads - 1) * sizeof(worker), _Alignof(worker));
  pool->shares = allocator->alloc(allocator->user, pool->threads * sizeof(share), _Alignof(share));
  if (!pool->workers || !pool->shares)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < pool->threads; i++)
    atomic_init(&pool->shares[i].next, 0);
  return WEFT_OK;
}

weft_status weft_pool_new(weft_pool **out, size_t threads, const weft_allocator *allocator) {
  *out = NULL;
  if (threads == 0 || threads > THREADS_MAX)
    return WEFT_E_ARGUMENT;
  weft_pool *pool = allocator->alloc(allocator->user, sizeof *pool, _Alignof(weft_pool));
  if (!pool)
    return WEFT_E_NOMEM;
  *pool = (weft_pool){.allocator = *allocator, .threads = threads};
  atomic_init(&pool->job, 0);
  atomic_init(&pool->inside, 0);
  weft_status status = init_memory(pool);
  if (status == WEFT_OK)
    status = init_locks(pool);
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
  pthread_mutex_lock(&pool->turn); // running work ends first
  pthread_mutex_lock(&pool->lock);
  pool->stop = true;
  pthread_cond_broadcast(&pool->open);
  pthread_mutex_unlock(&pool->lock);
  pthread_mutex_unlock(&pool->turn);
  for (size_t i = 0; i < pool->started; i++)
    pthread_join(pool->workers[i].thread, NULL);
  pthread_cond_destroy(&pool->left);
  pthread_cond_destroy(&pool->open);
  pthread_mutex_destroy(&pool->lock);
  pthread_mutex_destroy(&pool->turn);
  free_memory(pool);
}

size_t weft_pool_threads(const weft_pool *pool) { return pool ? pool->threads : 1; }

static void open_job(weft_pool *pool, size_t count, void (*task)(void *, size_t), void *user) {
  pthread_mutex_lock(&pool->lock);
  const size_t each = count / pool->threads, left = count % pool->threads;
  size_t begin = 0;
  for (size_t i = 0; i < pool->threads; i++) {
    atomic_store_explicit(&pool->shares[i].next, begin, memory_order_relaxed);
    begin += each + (i < left);
    pool->shares[i].end = begin;
  }
  pool->task = task;
  pool->user = user;
  pool->is_open = true;
  atomic_fetch_add_explicit(&pool->job, 1, memory_order_relaxed);
  if (pool->asleep > 0 && count - 1 >= pool->started)
    pthread_cond_broadcast(&pool->open);
  else
    for (size_t i = 1; i < count && i <= pool->asleep; i++)
      pthread_cond_signal(&pool->open);
  pthread_mutex_unlock(&pool->lock);
}

static void close_job(weft_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->is_open = false;
  size_t inside;
  while ((inside = atomic_load_explicit(&pool->inside, memory_order_relaxed)) > 0) {
    pthread_mutex_unlock(&pool->lock);
    look_out(&pool->inside, inside);
    pthread_mutex_lock(&pool->lock);
    if (atomic_load_explicit(&pool->inside, memory_order_relaxed) == inside)
      pthread_cond_wait(&pool->left, &pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
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
