// SPDX-License-Identifier: Apache-2.0
// Recovery by what is lost: which shards to read, and the cache of plans by erasure pattern, which
// forgets the least recently used.
#include <string.h>

#include "kernels/hash.h"
#include "lib/storage/code.h"

enum { WORDS = WEFT_MAX_SHARDS / 64 };

// A list of shards as bits.
static weft_status mark(const weft_code *code, const uint8_t *ids, size_t count, uint64_t *marked) {
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
    marked[t] = word;
  }
  return WEFT_OK;
}

// The first `count` shards whose bits, each exclusive-or `flip`, are set.
static void list(const uint64_t *marked, uint64_t flip, size_t count, uint8_t *ids) {
  for (size_t t = 0, found = 0; found < count; t++)
    for (uint64_t left = marked[t] ^ flip; left && found < count; left &= left - 1)
      ids[found++] = (uint8_t)(64 * t + (size_t)__builtin_ctzll(left));
}

// Reads what is needed of all that is there, where the matrix is the user's own.
static weft_status choose_inputs(const weft_code *code, const uint64_t *lost, size_t lost_count,
                                 weft_request *q) {
  uint8_t present[WEFT_MAX_SHARDS], wanted[WEFT_MAX_SHARDS];
  const size_t there = code->k + code->m - lost_count, outputs = q->outputs;
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

// What is wanted of what is lost, in order of the ids, so that one pattern has one plan.
static inline weft_status list_outputs(const weft_code *code, const weft_erasures *e,
                                       const uint64_t *lost, weft_request *out) {
  const size_t k = code->k;
  if (!e->wanted) {
    out->outputs = e->lost_count;
    out->absent = out->ids + k;
    list(lost, 0, e->lost_count, out->ids + k);
    return WEFT_OK;
  }
  uint64_t wanted[WORDS];
  WEFT_TRY(mark(code, e->wanted, e->wanted_count, wanted));
  for (size_t t = 0; 64 * t < k + code->m; t++)
    if (wanted[t] & ~lost[t])
      return WEFT_E_ARGUMENT;
  out->outputs = e->wanted_count;
  out->absent = out->apart;
  list(lost, 0, out->absent_count, out->apart);
  list(wanted, 0, e->wanted_count, out->ids + k);
  return WEFT_OK;
}

// Reads all data shards that are there, then the first parity shards.
static weft_status make_request(const weft_code *code, const weft_erasures *e, weft_request *out) {
  const size_t k = code->k;
  uint64_t lost[WORDS];
  if (!e || (e->lost_count && !e->lost))
    return WEFT_E_ARGUMENT;
  WEFT_TRY(mark(code, e->lost, e->lost_count, lost));
  out->absent_count = 0;
  if (code->mds) {
    if (e->lost_count > code->m)
      return WEFT_E_SINGULAR;
    out->inputs = k;
    list(lost, UINT64_MAX, k, out->ids);
    while (out->absent_count < k && out->ids[k - 1 - out->absent_count] >= k)
      out->absent_count++;
  }
  WEFT_TRY(list_outputs(code, e, lost, out));
  return code->mds ? WEFT_OK : choose_inputs(code, lost, e->lost_count, out);
}

weft_status weft_code_check_erasures(const weft_code *code, const weft_erasures *erasures) {
  weft_request q;
  return make_request(code, erasures, &q);
}

// Held for the caller, or NULL. Under the lock.
static weft_plan *look_up(weft_code *code, const weft_request *q, uint64_t hash) {
  for (size_t i = 0; i < code->filled; i++) {
    weft_cached_plan *c = &code->cached[i];
    if (c->hash != hash || c->plan->outputs != q->outputs || c->plan->inputs != q->inputs ||
        memcmp(c->plan->ids, q->ids, q->inputs + q->outputs) != 0)
      continue;
    c->used = ++code->now;
    atomic_fetch_add(&c->plan->holders, 1);
    return c->plan;
  }
  return NULL;
}

// Keeps `plan` as well; gives the plan that made room, to be let go outside the lock.
static weft_plan *keep(weft_code *code, weft_plan *plan, uint64_t hash) {
  weft_cached_plan *place = &code->cached[0];
  if (code->filled < code->capacity)
    place = &code->cached[code->filled++];
  else
    for (size_t i = 1; i < code->filled; i++)
      if (code->cached[i].used < place->used)
        place = &code->cached[i];
  weft_plan *gone = place->plan;
  atomic_fetch_add(&plan->holders, 1);
  *place = (weft_cached_plan){.plan = plan, .hash = hash, .used = ++code->now};
  return gone;
}

static weft_status obtain(weft_code *code, const weft_request *q, weft_plan **out) {
  const uint64_t hash = weft_hash(q->ids, q->inputs + q->outputs);
  pthread_mutex_lock(&code->lock);
  *out = look_up(code, q, hash);
  *(*out ? &code->hits : &code->misses) += 1;
  pthread_mutex_unlock(&code->lock);
  if (*out)
    return WEFT_OK;
  WEFT_TRY(weft_plan_make(code, q->ids, q->inputs, q->ids + q->inputs, q->outputs, false, out));
  if (!code->capacity)
    return WEFT_OK;
  pthread_mutex_lock(&code->lock);
  weft_plan *gone = NULL, *other = look_up(code, q, hash); // made by another thread meanwhile
  if (other) {
    gone = *out;
    *out = other;
  } else {
    gone = keep(code, *out, hash);
  }
  pthread_mutex_unlock(&code->lock);
  weft_plan_let_go(gone);
  return WEFT_OK;
}

weft_status weft_code_cache_new(weft_code *code, size_t capacity) {
  if (capacity == WEFT_NO_PLANS)
    return WEFT_OK;
  if (capacity > SIZE_MAX / sizeof *code->cached)
    return WEFT_E_ARGUMENT;
  code->cached = weft_ctx_take(code->ctx, capacity * sizeof *code->cached, 64);
  if (!code->cached)
    return WEFT_E_NOMEM;
  memset(code->cached, 0, capacity * sizeof *code->cached);
  code->capacity = capacity;
  return WEFT_OK;
}

void weft_code_cache_free(weft_code *code) {
  for (size_t i = 0; i < code->filled; i++)
    weft_plan_let_go(code->cached[i].plan);
  weft_ctx_give(code->ctx, code->cached);
}

weft_status weft_code_recover(weft_code *code, const weft_erasures *erasures,
                              const weft_stripe *stripes, size_t count, weft_queue *queue) {
  weft_request q;
  weft_plan *plan = NULL;
  WEFT_TRY(weft_code_check(code, stripes, count, queue));
  WEFT_TRY(make_request(code, erasures, &q));
  if (!q.outputs || !count)
    return WEFT_OK;
  if (!code->capacity && weft_plan_is_small(code, &q, stripes, count)) {
    atomic_fetch_add_explicit(&code->unkept, 1, memory_order_relaxed);
    return weft_plan_run_once(code, &q, stripes, count, queue);
  }
  WEFT_TRY(obtain(code, &q, &plan));
  const weft_status status = weft_plan_dispatch(plan, stripes, count, false, queue);
  weft_plan_let_go(plan);
  return status;
}

weft_status weft_plan_for(weft_code *code, const weft_erasures *erasures, weft_plan **out) {
  weft_request q;
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!code)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(make_request(code, erasures, &q));
  return weft_plan_make(code, q.ids, q.inputs, q.ids + q.inputs, q.outputs, true, out);
}

// How many ways there are to lose 1..losses of n shards, or `most` + 1 if more than that.
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

weft_status weft_code_precompute(weft_code *code, size_t losses) {
  if (!code || losses > code->m)
    return WEFT_E_ARGUMENT;
  const size_t n = code->k + code->m;
  if (count_patterns(n, losses, code->capacity) > code->capacity)
    return WEFT_E_BUFFER;
  for (size_t lost_count = 1; lost_count <= losses; lost_count++) {
    uint8_t lost[WEFT_MAX_SHARDS];
    weft_first_subset(lost, lost_count);
    do {
      weft_request q;
      weft_plan *plan = NULL;
      const weft_erasures erasures = {.lost = lost, .lost_count = lost_count};
      const weft_status status = make_request(code, &erasures, &q);
      if (status == WEFT_E_SINGULAR && !code->mds)
        continue; // such a loss cannot be made good
      WEFT_TRY(status);
      WEFT_TRY(obtain(code, &q, &plan));
      weft_plan_let_go(plan);
    } while (weft_next_subset(lost, lost_count, n));
  }
  return WEFT_OK;
}

void weft_code_plan_stats(weft_code *code, weft_plan_stats *out) {
  pthread_mutex_lock(&code->lock);
  *out = (weft_plan_stats){.plans = code->filled,
                           .capacity = code->capacity,
                           .hits = code->hits,
                           .misses = code->misses + atomic_load(&code->unkept)};
  pthread_mutex_unlock(&code->lock);
}
