// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/plan_cache.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/hash.h"
#include "lib/ctx.h"
#include "lib/storage/code.h"

#define NO_PLACE UINT32_MAX

weft_status weft_plan_cache_begin(weft_plan_cache *cache, weft_ctx *ctx) {
  *cache = (weft_plan_cache){.ctx = ctx};
  return pthread_mutex_init(&cache->lock, NULL) == 0 ? WEFT_OK : WEFT_E_THREAD;
}

// Returns the number of buckets for `capacity` places: a power of two, so most buckets hold at most
// one.
static size_t bucket_count(size_t capacity) {
  size_t buckets = 1;
  while (buckets < capacity)
    buckets *= 2;
  return buckets;
}

weft_status weft_plan_cache_fill(weft_plan_cache *cache, size_t shards, size_t capacity) {
  cache->words = (shards + 63) / 64;
  if (capacity == WEFT_NO_PLANS || !shards)
    return WEFT_OK;
  const size_t key_bytes = 2 * cache->words * sizeof *cache->keys;
  if (capacity >= NO_PLACE || capacity > SIZE_MAX / 2 / (sizeof *cache->places + key_bytes))
    return WEFT_E_ARGUMENT;
  const size_t buckets = bucket_count(capacity);
  cache->places = weft_ctx_take(cache->ctx, (capacity + 1) * sizeof *cache->places, 64);
  cache->keys = weft_ctx_take(cache->ctx, capacity * key_bytes, 64);
  cache->buckets = weft_ctx_take(cache->ctx, buckets * sizeof *cache->buckets, 64);
  if (!cache->places || !cache->keys || !cache->buckets)
    return WEFT_E_NOMEM;
  memset(cache->buckets, 0xff, buckets * sizeof *cache->buckets); // NO_PLACE
  cache->places[capacity].newer = cache->places[capacity].older = (uint32_t)capacity;
  cache->mask = buckets - 1;
  cache->capacity = capacity;
  return WEFT_OK;
}

void weft_plan_cache_clear(weft_plan_cache *cache) {
  for (size_t i = 0; i < cache->filled; i++)
    weft_plan_let_go(cache->places[i].plan);
  weft_ctx_give(cache->ctx, cache->places);
  weft_ctx_give(cache->ctx, cache->keys);
  weft_ctx_give(cache->ctx, cache->buckets);
  pthread_mutex_destroy(&cache->lock);
}

static uint64_t hash_of(const weft_plan_cache *cache, const weft_loss *loss) {
  uint64_t hash = WEFT_HASH_BEGIN;
  for (size_t t = 0; t < cache->words; t++)
    hash = weft_hash_word(weft_hash_word(hash, loss->lost.word[t]), loss->wanted.word[t]);
  return hash;
}

static bool is_key(const weft_plan_cache *cache, size_t place, const weft_loss *loss) {
  const uint64_t *const key = cache->keys + place * 2 * cache->words;
  for (size_t t = 0; t < cache->words; t++)
    if (key[t] != loss->lost.word[t] || key[cache->words + t] != loss->wanted.word[t])
      return false;
  return true;
}

// Unlinks a place from the LRU ring, whose head is followed by the oldest place and preceded by the
// newest.
static void take_out(weft_plan_cache *cache, uint32_t at) {
  const weft_cached_plan *const place = &cache->places[at];
  cache->places[place->newer].older = place->older;
  cache->places[place->older].newer = place->newer;
}

// Links a place into the ring as the newest.
static void put_in(weft_plan_cache *cache, uint32_t at) {
  weft_cached_plan *const end = &cache->places[cache->capacity];
  cache->places[at].newer = (uint32_t)cache->capacity;
  cache->places[at].older = end->older;
  cache->places[end->older].newer = at;
  end->older = at;
}

// Returns the plan, held for the caller, or NULL. Lock held.
static weft_plan *look_up(weft_plan_cache *cache, const weft_loss *loss, uint64_t hash) {
  for (uint32_t at = cache->buckets[hash & cache->mask]; at != NO_PLACE;
       at = cache->places[at].next) {
    weft_cached_plan *const place = &cache->places[at];
    if (place->hash != hash || !is_key(cache, at, loss))
      continue;
    if (place->newer != cache->capacity) { // otherwise it is already the newest
      take_out(cache, at);
      put_in(cache, at);
    }
    atomic_fetch_add_explicit(&place->plan->holders, 1, memory_order_relaxed);
    return place->plan;
  }
  return NULL;
}

weft_plan *weft_plan_cache_find(weft_plan_cache *cache, const weft_loss *loss) {
  const uint64_t hash = hash_of(cache, loss);
  pthread_mutex_lock(&cache->lock);
  weft_plan *const plan = look_up(cache, loss, hash);
  cache->hits += plan != NULL;
  pthread_mutex_unlock(&cache->lock);
  return plan;
}

// Returns a free place, or evicts the least recently used one from its ring and bucket.
static uint32_t make_room(weft_plan_cache *cache) {
  if (cache->filled < cache->capacity)
    return (uint32_t)cache->filled++;
  const uint32_t oldest = cache->places[cache->capacity].newer;
  take_out(cache, oldest);
  uint32_t *link = &cache->buckets[cache->places[oldest].hash & cache->mask];
  while (*link != oldest)
    link = &cache->places[*link].next;
  *link = cache->places[oldest].next;
  return oldest;
}

// Adds the plan and returns the evicted one, or NULL. Lock held.
static weft_plan *put(weft_plan_cache *cache, const weft_loss *loss, uint64_t hash,
                      weft_plan *plan) {
  const size_t words = cache->words;
  const bool full = cache->filled == cache->capacity;
  const uint32_t at = make_room(cache);
  weft_cached_plan *const place = &cache->places[at];
  weft_plan *const gone = full ? place->plan : NULL;
  uint32_t *const bucket = &cache->buckets[hash & cache->mask];
  *place = (weft_cached_plan){.plan = plan, .hash = hash, .next = *bucket};
  *bucket = at;
  put_in(cache, at);
  uint64_t *const key = cache->keys + (size_t)at * 2 * words;
  memcpy(key, loss->lost.word, words * sizeof *key);
  memcpy(key + words, loss->wanted.word, words * sizeof *key);
  atomic_fetch_add_explicit(&plan->holders, 1, memory_order_relaxed);
  return gone;
}

weft_plan *weft_plan_cache_keep(weft_plan_cache *cache, const weft_loss *loss, weft_plan *plan) {
  const uint64_t hash = hash_of(cache, loss);
  pthread_mutex_lock(&cache->lock);
  cache->misses++;
  weft_plan *const other = look_up(cache, loss, hash);
  weft_plan *const gone = other ? plan : put(cache, loss, hash, plan);
  pthread_mutex_unlock(&cache->lock);
  weft_plan_let_go(gone); // outside the lock
  return other ? other : plan;
}
