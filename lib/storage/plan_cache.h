// SPDX-License-Identifier: Apache-2.0
// The plans that a code keeps, keyed by which shards are lost and which are wanted. Bounded: the
// least recently used plan is evicted first. Safe for concurrent use.
#ifndef WEFT_LIB_STORAGE_PLAN_CACHE_H
#define WEFT_LIB_STORAGE_PLAN_CACHE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/storage.h"

enum { WEFT_SHARD_WORDS = WEFT_MAX_SHARDS / 64 };

// A set of a code's shards as bits, 64 per word.
typedef struct weft_shard_set {
  uint64_t word[WEFT_SHARD_WORDS]; // only the words the code needs are set
  size_t count;
} weft_shard_set;

// The lost shards, and which of them are wanted: the key of a plan.
typedef struct weft_loss {
  weft_shard_set lost, wanted;
} weft_loss;

typedef struct weft_cached_plan {
  weft_plan *plan;
  uint64_t hash;
  uint32_t next;         // next place in the same bucket
  uint32_t newer, older; // the places used just after and just before it
} weft_cached_plan;

typedef struct weft_plan_cache {
  weft_ctx *ctx;
  size_t words;             // per set
  size_t capacity, filled;  // plans; capacity 0: keeps none
  weft_cached_plan *places; // (capacity + 1): the last one is the head of the LRU ring
  uint64_t *keys;           // (capacity, 2, words): lost, wanted
  uint32_t *buckets;        // (mask + 1): the first place of each bucket
  size_t mask;
  uint64_t hits, misses; // found; not found, then made and kept
  pthread_mutex_t lock;  // guards all but ctx, words and capacity
} weft_plan_cache;

// Initialises a cache without places. WEFT_E_THREAD: nothing to clear.
weft_status weft_plan_cache_begin(weft_plan_cache *cache, weft_ctx *ctx);
// Allocates the places, for a code of `shards` shards; WEFT_NO_PLANS: none. Errors: WEFT_E_ARGUMENT
// (capacity too large), WEFT_E_NOMEM; the cache must be cleared even after an error.
weft_status weft_plan_cache_fill(weft_plan_cache *cache, size_t shards, size_t capacity);
void weft_plan_cache_clear(weft_plan_cache *cache);

// Returns the plan, held for the caller, or NULL if it is not cached.
weft_plan *weft_plan_cache_find(weft_plan_cache *cache, const weft_loss *loss);
// Adds a plan that the caller holds, unless another thread has added one meanwhile. Returns the
// cached one, held for the caller in place of `plan`.
weft_plan *weft_plan_cache_keep(weft_plan_cache *cache, const weft_loss *loss, weft_plan *plan);

#endif
