// SPDX-License-Identifier: Apache-2.0
// Recovers lost shards: decides which shards to read, and which plan to use.
#include <string.h>

#include "lib/storage/code.h"

// Writes a list of shards as bits, to both sets.
static weft_status mark(const weft_code *code, const uint8_t *ids, size_t count,
                        weft_shard_set *set, weft_shard_set *copy) {
  const size_t n = code->k + code->m;
  for (size_t t = 0; 64 * t < n; t++) {
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
      const uint64_t bit = UINT64_C(1) << ids[i] % 64;
      if (ids[i] >= n)
        return WEFT_E_ARGUMENT;
      if (ids[i] / 64 != t)
        continue;
      if (word & bit)
        return WEFT_E_ARGUMENT;
      word |= bit;
    }
    set->word[t] = copy->word[t] = word;
  }
  set->count = copy->count = count;
  return WEFT_OK;
}

// Returns WEFT_E_SINGULAR only if there are too many losses.
static weft_status read_loss(const weft_code *code, const weft_erasures *e, weft_loss *out) {
  if (!e || (e->lost_count && !e->lost))
    return WEFT_E_ARGUMENT;
  WEFT_TRY(mark(code, e->lost, e->lost_count, &out->lost, &out->wanted));
  if (e->wanted) {
    WEFT_TRY(mark(code, e->wanted, e->wanted_count, &out->wanted, &out->wanted));
    for (size_t t = 0; 64 * t < code->k + code->m; t++)
      if (out->wanted.word[t] & ~out->lost.word[t])
        return WEFT_E_ARGUMENT;
  }
  return code->mds && e->lost_count > code->m ? WEFT_E_SINGULAR : WEFT_OK;
}

// Lists the first `count` shards whose bits, XORed with `flip`, are set.
static void list(const weft_shard_set *set, uint64_t flip, size_t count, uint8_t *ids) {
  for (size_t t = 0, found = 0; found < count; t++)
    for (uint64_t left = set->word[t] ^ flip; left && found < count; left &= left - 1)
      ids[found++] = (uint8_t)(64 * t + (size_t)__builtin_ctzll(left));
}

// For a user's own matrix: chooses as inputs those present shards that the outputs need.
static weft_status choose_inputs(const weft_code *code, const weft_shard_set *lost,
                                 weft_plan_request *q) {
  uint8_t present[WEFT_MAX_SHARDS], wanted[WEFT_MAX_SHARDS];
  const size_t there = code->k + code->m - lost->count, outputs = q->outputs;
  memcpy(wanted, q->ids + code->k, outputs);
  list(lost, UINT64_MAX, there, present);
  uint8_t *const matrix = weft_ctx_take(code->ctx, outputs * there + 1, 64); // (outputs, there)
  if (!matrix)
    return WEFT_E_NOMEM;
  const weft_status status =
      weft_generator_express(&code->generator, present, there, wanted, outputs, matrix);
  q->inputs = 0;
  for (size_t c = 0; c < there && status == WEFT_OK; c++) {
    bool needed = false;
    for (size_t r = 0; r < outputs; r++)
      needed = needed || matrix[r * there + c];
    if (needed)
      q->ids[q->inputs++] = present[c];
  }
  weft_ctx_give(code->ctx, matrix);
  if (status == WEFT_OK)
    memcpy(q->ids + q->inputs, wanted, outputs);
  return status;
}

// Reads all present data shards, then the first present parity shards. Outputs are sorted by id, so
// that each loss has one plan.
static weft_status make_request(const weft_code *code, const weft_loss *loss,
                                weft_plan_request *out) {
  const size_t k = code->k;
  const bool all = loss->wanted.count == loss->lost.count;
  out->absent_count = 0;
  if (code->mds) {
    out->inputs = k;
    list(&loss->lost, UINT64_MAX, k, out->ids);
    while (out->absent_count < k && out->ids[k - 1 - out->absent_count] >= k)
      out->absent_count++;
  }
  out->outputs = loss->wanted.count;
  out->absent = all ? out->ids + k : out->apart;
  if (!all)
    list(&loss->lost, 0, out->absent_count, out->apart);
  list(&loss->wanted, 0, out->outputs, out->ids + k);
  return code->mds ? WEFT_OK : choose_inputs(code, &loss->lost, out);
}

weft_status weft_code_check_erasures(const weft_code *code, const weft_erasures *erasures) {
  weft_loss loss;
  weft_plan_request q;
  WEFT_TRY(read_loss(code, erasures, &loss));
  return make_request(code, &loss, &q);
}

// Makes a plan, held for the caller, and caches it if plans are cached.
static weft_status make_plan(weft_code *code, const weft_loss *loss, const weft_plan_request *q,
                             weft_plan **out) {
  WEFT_TRY(weft_plan_make(code, q->ids, q->inputs, q->ids + q->inputs, q->outputs, false, out));
  if (code->cache.capacity)
    *out = weft_plan_cache_keep(&code->cache, loss, *out);
  return WEFT_OK;
}

static weft_status run(weft_plan *plan, const weft_stripe *stripes, size_t count,
                       weft_queue *queue) {
  const weft_status status = weft_plan_dispatch(plan, stripes, count, false, queue);
  weft_plan_let_go(plan);
  return status;
}

// Whether the host row should compute the recovery matrix itself: it can, and the job is small or
// has no factors that would be faster.
static bool rebuilds(const weft_code *code, const weft_loss *loss, const weft_stripe *stripes,
                     size_t count) {
  if (!code->rebuilds || !weft_code_has_factors(code))
    return code->rebuilds;
  const uint64_t data = UINT64_MAX >> (WEFT_LOSS_SHARDS - code->k);
  const size_t stand_ins = (size_t)__builtin_popcountll(loss->lost.word[0] & data);
  return weft_plan_is_small(code, code->k, loss->wanted.count, stand_ins, NULL, stripes, count);
}

static void count_unkept(weft_code *code) {
  atomic_fetch_add_explicit(&code->unkept, 1, memory_order_relaxed);
}

// Recovers with a newly made plan.
static weft_status recover_anew(weft_code *code, const weft_loss *loss, const weft_stripe *stripes,
                                size_t count, weft_queue *queue) {
  const bool kept = code->cache.capacity;
  weft_plan_request q;
  weft_plan *plan = NULL;
  WEFT_TRY(make_request(code, loss, &q));
  if (!kept)
    count_unkept(code);
  if (!kept && weft_plan_is_small(code, q.inputs, q.outputs, q.absent_count, q.ids, stripes, count))
    return weft_plan_run_once(code, &q, stripes, count, queue);
  WEFT_TRY(make_plan(code, loss, &q, &plan));
  return run(plan, stripes, count, queue);
}

weft_status weft_code_recover(weft_code *code, const weft_erasures *erasures,
                              const weft_stripe *stripes, size_t count, weft_queue *queue) {
  weft_loss loss;
  WEFT_TRY(weft_code_check(code, stripes, count, queue));
  WEFT_TRY(read_loss(code, erasures, &loss));
  if (!loss.wanted.count)
    return WEFT_OK;
  if (!count)
    return weft_code_check_erasures(code, erasures);
  if (!code->cache.capacity && rebuilds(code, &loss, stripes, count)) {
    count_unkept(code);
    return weft_plan_rebuild_once(code, &loss, stripes, count, queue);
  }
  weft_plan *const plan = code->cache.capacity ? weft_plan_cache_find(&code->cache, &loss) : NULL;
  return plan ? run(plan, stripes, count, queue) : recover_anew(code, &loss, stripes, count, queue);
}

weft_status weft_plan_for(weft_code *code, const weft_erasures *erasures, weft_plan **out) {
  weft_loss loss;
  weft_plan_request q;
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!code)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(read_loss(code, erasures, &loss));
  WEFT_TRY(make_request(code, &loss, &q));
  return weft_plan_make(code, q.ids, q.inputs, q.ids + q.inputs, q.outputs, true, out);
}

// Counts the ways to lose 1..losses of n shards; returns `most` + 1 if there are more than `most`.
static size_t count_patterns(size_t n, size_t losses, size_t most) {
  size_t sum = 0, ways = 1;
  for (size_t r = 1; r <= losses; r++) {
    ways = ways * (n - r + 1) / r;
    if (ways > most || sum + ways > most)
      return most + 1;
    sum += ways;
  }
  return sum;
}

// Adds the plan for a loss to the cache, unless it is there.
static weft_status precompute(weft_code *code, const weft_erasures *erasures) {
  weft_loss loss;
  weft_plan_request q;
  WEFT_TRY(read_loss(code, erasures, &loss));
  weft_plan *plan = weft_plan_cache_find(&code->cache, &loss);
  if (!plan) {
    WEFT_TRY(make_request(code, &loss, &q));
    WEFT_TRY(make_plan(code, &loss, &q, &plan));
  }
  weft_plan_let_go(plan);
  return WEFT_OK;
}

weft_status weft_code_precompute(weft_code *code, size_t losses) {
  if (!code || losses > code->m)
    return WEFT_E_ARGUMENT;
  const size_t n = code->k + code->m;
  if (count_patterns(n, losses, code->cache.capacity) > code->cache.capacity)
    return WEFT_E_BUFFER;
  for (size_t lost_count = 1; lost_count <= losses; lost_count++) {
    uint8_t lost[WEFT_MAX_SHARDS];
    weft_first_subset(lost, lost_count);
    do {
      const weft_erasures erasures = {.lost = lost, .lost_count = lost_count};
      const weft_status status = precompute(code, &erasures);
      if (status == WEFT_E_SINGULAR && !code->mds)
        continue; // this loss cannot be recovered
      WEFT_TRY(status);
    } while (weft_next_subset(lost, lost_count, n));
  }
  return WEFT_OK;
}

void weft_code_plan_stats(weft_code *code, weft_plan_stats *out) {
  weft_plan_cache *const cache = &code->cache;
  pthread_mutex_lock(&cache->lock);
  *out = (weft_plan_stats){.plans = cache->filled,
                           .capacity = cache->capacity,
                           .hits = cache->hits,
                           .misses = cache->misses + atomic_load(&code->unkept)};
  pthread_mutex_unlock(&cache->lock);
}
