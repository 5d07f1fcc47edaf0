// SPDX-License-Identifier: Apache-2.0
// The pool: workers sleep on a condition variable until a job is open, join it, take indices from
// an atomic counter until none is left, and leave. A job is closed once the caller has run out of
// indices, so a worker that wakes late finds nothing and no job waits for sleepers.
#define _POSIX_C_SOURCE 200809L
#include "kernels/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct weft_pool {
  weft_allocator allocator;
  size_t threads;       // the caller's own included
  size_t started;       // workers that run
  pthread_t *workers;   // (threads - 1)
  pthread_mutex_t turn; // held by the caller whose job it is
  pthread_mutex_t lock; // guards everything below but `next`
  pthread_cond_t open;  // a job was opened, or the pool stops
  pthread_cond_t left;  // the last worker left the job
  bool stop, is_open;
  uint64_t job;  // counts jobs, so that a worker joins each at most once
  size_t inside; // workers inside the job
  size_t count;
  void (*task)(void *user, size_t index);
  void *user;
  atomic_size_t next;
};

static void take_indices(weft_pool *pool, size_t count, void (*task)(void *, size_t), void *user) {
  for (;;) {
    const size_t index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
    if (index >= count)
      return;
    task(user, index);
  }
}

static void *work(void *argument) {
  weft_pool *pool = argument;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->stop && !(pool->is_open && pool->job != seen))
      pthread_cond_wait(&pool->open, &pool->lock);
    if (pool->stop)
      break;
    seen = pool->job;
    pool->inside++;
    const size_t count = pool->count;
    void (*const task)(void *, size_t) = pool->task;
    void *const user = pool->user;
    pthread_mutex_unlock(&pool->lock);
    take_indices(pool, count, task, user);
    pthread_mutex_lock(&pool->lock);
    if (--pool->inside == 0)
      pthread_cond_signal(&pool->left);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

// Workers take no signals: they belong to the application's own threads.
static weft_status start_workers(weft_pool *pool) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
    return WEFT_E_THREAD;
  weft_status status = WEFT_OK;
  while (status == WEFT_OK && pool->started < pool->threads - 1) {
    if (pthread_create(&pool->workers[pool->started], NULL, work, pool) == 0)
      pool->started++;
    else
      status = WEFT_E_THREAD;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
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
  allocator.free(allocator.user, pool);
}

weft_status weft_pool_new(weft_pool **out, size_t threads, const weft_allocator *allocator) {
  *out = NULL;
  if (threads == 0 || threads > SIZE_MAX / sizeof(pthread_t))
    return WEFT_E_ARGUMENT;
  weft_pool *pool = allocator->alloc(allocator->user, sizeof *pool, _Alignof(weft_pool));
  if (!pool)
    return WEFT_E_NOMEM;
  *pool = (weft_pool){.allocator = *allocator, .threads = threads};
  atomic_init(&pool->next, 0);
  if (threads > 1) {
    pool->workers = allocator->alloc(allocator->user, (threads - 1) * sizeof *pool->workers,
                                     _Alignof(pthread_t));
    if (!pool->workers) {
      free_memory(pool);
      return WEFT_E_NOMEM;
    }
  }
  const weft_status locks = init_locks(pool);
  if (locks != WEFT_OK) {
    free_memory(pool);
    return locks;
  }
  const weft_status workers = start_workers(pool);
  if (workers != WEFT_OK) {
    weft_pool_free(pool);
    return workers;
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
    pthread_join(pool->workers[i], NULL);
  pthread_cond_destroy(&pool->left);
  pthread_cond_destroy(&pool->open);
  pthread_mutex_destroy(&pool->lock);
  pthread_mutex_destroy(&pool->turn);
  free_memory(pool);
}

size_t weft_pool_threads(const weft_pool *pool) { return pool ? pool->threads : 1; }

static void open_job(weft_pool *pool, size_t count, void (*task)(void *, size_t), void *user) {
  pthread_mutex_lock(&pool->lock);
  pool->count = count;
  pool->task = task;
  pool->user = user;
  pool->job++;
  pool->is_open = true;
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  if (count - 1 >= pool->started)
    pthread_cond_broadcast(&pool->open);
  else
    for (size_t i = 1; i < count; i++)
      pthread_cond_signal(&pool->open);
  pthread_mutex_unlock(&pool->lock);
}

static void close_job(weft_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->is_open = false;
  while (pool->inside > 0)
    pthread_cond_wait(&pool->left, &pool->lock);
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
  take_indices(pool, count, task, user);
  close_job(pool);
  pthread_mutex_unlock(&pool->turn);
}
