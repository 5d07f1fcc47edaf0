// SPDX-License-Identifier: Apache-2.0
// A fixed set of POSIX threads that run index ranges. (TSan does not understand C11 threads.)
#ifndef WEFT_KERNELS_POOL_H
#define WEFT_KERNELS_POOL_H

#include <pthread.h>
#include <stddef.h>

#include "weft/memory.h"
#include "weft/status.h"

typedef struct weft_pool weft_pool;

// Number of byte x coefficient products below which waking a thread costs more than it saves.
enum { WEFT_SHARED_MACS = 1024 * 1024 };

// Starts a thread of the library's own. It takes no signals: they belong to the application's
// threads.
weft_status weft_thread_start(pthread_t *out, void *(*run)(void *user), void *user);

// Creates a pool. `threads`, at most 4096, includes the caller's own, so one less is started. Never
// more run than requested.
weft_status weft_pool_new(weft_pool **out, size_t threads, const weft_allocator *allocator);
// Waits for running work; accepts NULL.
void weft_pool_free(weft_pool *pool);

// The number of threads that weft_pool_run uses, at least 1 (also for NULL).
size_t weft_pool_threads(const weft_pool *pool);

// Calls task(user, i) once for every i in [0, count), on the caller's thread and the pool's, and
// returns when all have returned. Items are handed out one at a time, so they may differ in cost.
// Several threads may call it on one pool at once; their jobs are run in turn. Without a pool, or
// with a single item, it runs in place. A task must not call it on its own pool.
void weft_pool_run(weft_pool *pool, size_t count, void (*task)(void *user, size_t index),
                   void *user);

#endif
