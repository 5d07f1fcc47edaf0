// SPDX-License-Identifier: Apache-2.0
// The plans that a code keeps, by what is lost and wanted. Bounded: the least recently used goes
// first. Several threads may use one at once.
#ifndef WEFT_LIB_STORAGE_PLAN_CACHE_H
#define WEFT_LIB_STORAGE_PLAN_CACHE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/storage.h"

enum { WEFT_SHARD_WORDS = WEFT_MAX_SHARDS / 64 };

// Shards of one code as bits, 64 a word.
typedef struct weft_shard_set {
  uint64_t word[WEFT_SHARD_WORDS]; // as many as the code's shards take; others are not set
  size_t count;
} weft_shard_set;

// What is lost, and what of it is wanted: the key of a plan.
typedef struct weft_loss {
  weft_shard_set lost, wanted;
} weft_loss;

typedef struct weft_cached_plan {
  weft_plan *plan;
  uint64_t hash;
  uint32_t next;         // place in the same bucket
  uint32_t newer, older; // places used after and before it
} weft_cached_plan;

typedef struct weft_plan_cache {
  weft_ctx *ctx;
  size_t words;             // of a set
  size_t capacity, filled;  // plans; capacity 0: none are kept
  weft_cached_plan *places; // (capacity + 1): the last closes the ring of all by their use
  uint64_t *keys;           // (capacity, 2, words): lost, wanted
  uint32_t *buckets;        // (mask + 1): the first place of each
  size_t mask;
  uint64_t hits, misses; // found; made and brought here
  pthread_mutex_t lock;  // of all but the first two and the capacity
} weft_plan_cache;

// Without places. WEFT_E_THREAD: nothing to clear.
weft_status weft_plan_cache_begin(weft_plan_cache *cache, weft_ctx *ctx);
// Gives it places, for losses of `shards` shards; WEFT_NO_PLANS: none. Errors: WEFT_E_ARGUMENT
// (more than can be), WEFT_E_NOMEM; cleared it must be all the same.
weft_status weft_plan_cache_fill(weft_plan_cache *cache, size_t shards, size_t capacity);
void weft_plan_cache_clear(weft_plan_cache *cache);

// Held for the caller; NULL: not there.
weft_plan *weft_plan_cache_find(weft_plan_cache *cache, const weft_loss *loss);
// Keeps a plan that the caller holds, unless another thread kept one meanwhile: gives the one that
// is kept, held for the caller in place of `plan`.
weft_plan *weft_plan_cache_keep(weft_plan_cache *cache, const weft_loss *loss, weft_plan *plan);

#endif
