// SPDX-License-Identifier: Apache-2.0
// Computes parity in parts: one data shard's contribution, for updates and for shards that arrive
// one by one. Also compares parity with data.
#include <stdatomic.h>
#include <string.h>

#include "kernels/pool.h"
#include "lib/storage/code.h"
#include "lib/storage/device_run.h"
#include "lib/storage/packet_run.h"

// Bytes of a shard that are processed at a time where scratch is needed. VERIFY: what a
// second-level cache holds next to the parity it is compared with. UPDATE: what the first-level
// cache holds next to everything else; more for packets, since each call has to find out which
// packets contribute.
#define VERIFY_BYTES ((size_t)32 * 1024)
#define UPDATE_BYTES ((size_t)4 * 1024)
#define UPDATE_PACKETS_BYTES ((size_t)8 * 1024)

enum {
  LINE = 64,
  RANGES_PER_THREAD = 4,  // so that a thread that starts late still finds work
  RANGE_CHUNK = 64 * 1024 // longer chunks are each shared by all threads
};

// A run of parity shards [first, first + count), all of them present.
typedef struct parity_run {
  size_t first, count;
  uint8_t *const *shard; // (count)
  uint8_t *made[WEFT_MAX_SHARDS];
} parity_run;

static void begin_runs(parity_run *run) { run->first = run->count = 0; }

// Finds the next run, after the current one; its pointers are to byte `offset` of each shard.
// Pointers are copied only where the caller's cannot be used: for short shards copying is
// noticeable.
static bool next_run(const weft_code *code, const weft_stripe *stripe, size_t offset,
                     parity_run *run) {
  size_t i = run->first + run->count;
  if (i == code->m)
    return false;
  while (i < code->m && !weft_stripe_shard(stripe, code->k + i))
    i++;
  run->first = i;
  if (stripe->shards)
    while (i < code->m && stripe->shards[code->k + i])
      i++;
  else
    i = code->m;
  run->count = i - run->first;
  if (stripe->shards && !offset) {
    run->shard = stripe->shards + code->k + run->first;
    return run->count > 0;
  }
  for (i = 0; i < run->count; i++)
    run->made[i] = weft_stripe_shard(stripe, code->k + run->first + i) + offset;
  run->shard = run->made;
  return run->count > 0;
}

// Returns how many threads are worth using for a product of all parity with `sources` sources of
// `bytes` bytes each.
static size_t threads_for(const weft_code *code, size_t sources, size_t bytes) {
  const bool small = bytes < WEFT_SHARED_MACS &&
                     (uint64_t)bytes * ((sources + 1) * code->m + 1) < WEFT_SHARED_MACS;
  return small ? 1 : weft_ctx_threads(code->ctx);
}

// Computes bytes [begin, end) of all parity present from the sum of one or two sources, on this
// thread. Byte codes only; two sources are always added to what is there. Calls the panel directly:
// the checks of a product would take a short shard as long as the panel itself.
static void multiply_columns(const weft_code *code, size_t index, const uint8_t *const *x,
                             size_t sources, const weft_stripe *stripe, size_t begin, size_t end,
                             bool accumulate) {
  const weft_host_kernel *kernel = code->ctx->host->host;
  parity_run run;
  begin_runs(&run);
  while (begin < end && next_run(code, stripe, 0, &run)) {
    const uint8_t *const column = code->generator.parity + run.first * code->k + index;
    const weft_panel panel =
        weft_panel_of(run.count, sources, begin, end, column, code->k, x, run.shard, accumulate);
    (sources > 1 ? kernel->difference : kernel->panel)(&panel);
  }
}

// run->shard = or ^= column `index` of the code * x. CRS: whole units.
static weft_status multiply_run(const weft_code *code, const parity_run *run, size_t index,
                                const uint8_t *x, size_t bytes, bool accumulate, weft_pool *pool) {
  const weft_backend *row = code->ctx->host;
  const weft_exec exec = weft_ctx_host_exec(code->ctx, pool);
  if (!weft_code_is_crs(code)) {
    const uint8_t *const column = code->generator.parity + run->first * code->k + index;
    weft_gemm gemm = weft_gemm_of(run->count, 1, bytes, column, code->k, &x, run->shard);
    gemm.accumulate = accumulate;
    return row->gemm(row, &exec, &gemm, 1);
  }
  const weft_xorm xorm = {.m = run->count,
                          .k = 1,
                          .w = code->w,
                          .packet_bytes = code->packet_bytes,
                          .len = bytes,
                          .bits = code->bits + (run->first * code->w * code->k + index) * code->w,
                          .bits_stride = code->k * code->w,
                          .x = {.ptr = &x},
                          .y = {.ptr = run->shard},
                          .accumulate = accumulate};
  return row->xorm(row, &exec, &xorm);
}

// Computes bytes [offset, offset + bytes) of all parity present.
static weft_status multiply(const weft_code *code, size_t index, const uint8_t *x,
                            const weft_stripe *stripe, size_t offset, size_t bytes, bool accumulate,
                            weft_pool *pool) {
  parity_run run;
  begin_runs(&run);
  while (bytes && next_run(code, stripe, offset, &run))
    WEFT_TRY(multiply_run(code, &run, index, x, bytes, accumulate, pool));
  return WEFT_OK;
}

// Processes the whole shard, with its tail group padded in scratch.
static weft_status add_shard(const weft_code *code, size_t index, const uint8_t *data,
                             const weft_stripe *stripe, bool accumulate) {
  weft_pool *const pool = code->ctx->pool;
  if (!weft_code_is_crs(code)) {
    if (threads_for(code, 1, stripe->bytes) > 1)
      return multiply(code, index, data, stripe, 0, stripe->bytes, accumulate, pool);
    multiply_columns(code, index, &data, 1, stripe, 0, stripe->bytes, accumulate);
    return WEFT_OK;
  }
  const size_t unit = weft_code_unit_bytes(code), tail = stripe->bytes % unit;
  const size_t whole = stripe->bytes - tail;
  uint8_t *padded = NULL;
  if (tail) {
    padded = weft_ctx_take(code->ctx, unit, 64);
    if (!padded)
      return WEFT_E_NOMEM;
    memcpy(padded, data + whole, tail);
    memset(padded + tail, 0, unit - tail);
  }
  weft_status status = multiply(code, index, data, stripe, 0, whole, accumulate, pool);
  if (status == WEFT_OK && tail)
    status = multiply(code, index, padded, stripe, whole, unit, accumulate, pool);
  weft_ctx_give(code->ctx, padded);
  return status;
}

static weft_status check_shard(const weft_code *code, size_t index, const uint8_t *data,
                               const weft_stripe *stripe, weft_queue *queue) {
  WEFT_TRY(weft_code_check(code, stripe, 1, queue));
  return index >= code->k || (!data && stripe->bytes) ? WEFT_E_ARGUMENT : WEFT_OK;
}

// Brings the XOR of one or two shards in DEVICE memory into the parity there.
static weft_status add_on_device(const weft_code *code, size_t index, const uint8_t *const *x,
                                 size_t sources, const weft_stripe *stripe, bool accumulate,
                                 weft_queue *queue) {
  weft_call call;
  parity_run part;
  begin_runs(&part);
  WEFT_TRY(weft_call_begin(code->ctx, queue, &call));
  weft_status status = WEFT_OK;
  while (status == WEFT_OK && next_run(code, stripe, 0, &part))
    status = weft_device_add_columns(code, part.first, part.count, index, x, sources, stripe,
                                     accumulate, &call);
  return weft_call_end(code->ctx, &call, status);
}

// Processes one shard, wherever the stripe is stored; for host memory it waits for the queue first.
static weft_status add_anywhere(const weft_code *code, size_t index, const uint8_t *data,
                                const weft_stripe *stripe, bool accumulate, weft_queue *queue) {
  if (stripe->mem == WEFT_MEM_DEVICE)
    return add_on_device(code, index, &data, 1, stripe, accumulate, queue);
  if (queue)
    WEFT_TRY(weft_queue_wait(queue));
  return add_shard(code, index, data, stripe, accumulate);
}

weft_status weft_code_add_delta(weft_code *code, size_t index, const uint8_t *delta,
                                const weft_stripe *stripe, weft_queue *queue) {
  WEFT_TRY(check_shard(code, index, delta, stripe, queue));
  return add_anywhere(code, index, delta, stripe, true, queue);
}

weft_status weft_code_parity_delta(weft_code *code, size_t index, const uint8_t *delta,
                                   const weft_stripe *stripe, weft_queue *queue) {
  WEFT_TRY(check_shard(code, index, delta, stripe, queue));
  return add_anywhere(code, index, delta, stripe, false, queue);
}

// Bytes per chunk, in whole units.
static size_t chunk_bytes(const weft_code *code, size_t wanted) {
  const size_t unit = weft_code_unit_bytes(code);
  return unit > wanted ? unit : wanted / unit * unit;
}

// The change of one data shard, in ranges that threads take. A range is processed at once where the
// row can multiply a sum, otherwise chunk by chunk.
typedef struct change {
  const weft_code *code;
  size_t index;
  const uint8_t *both[2]; // old and new bytes
  const weft_stripe *stripe;
  size_t chunk, range; // bytes, whole units
  uint8_t *deltas;     // a chunk per range; NULL: chunks are short enough for the stack
  weft_pool *pool;     // for the products of each chunk
  bool whole;          // the row multiplies the sum of both: no chunks, and no deltas
  atomic_int status;   // of a range that failed, or WEFT_OK
} change;

// Computes the change of bytes [at, at + n) in scratch, padded to whole units, and brings it into
// the parity.
static weft_status add_chunk(const change *c, size_t at, size_t n, uint8_t *delta) {
  const size_t padded = weft_code_parity_bytes(c->code, n);
  const uint8_t *const both[2] = {c->both[0] + at, c->both[1] + at};
  c->code->ctx->host->host->xor_rows(delta, both, 2, 0, n, false);
  if (padded > n)
    memset(delta + n, 0, padded - n);
  return multiply(c->code, c->index, delta, c->stripe, at, padded, true, c->pool);
}

static weft_status add_chunks(const change *c, size_t at, size_t end, uint8_t *deltas) {
  _Alignas(64) uint8_t near[UPDATE_PACKETS_BYTES];
  for (; at < end; at += c->chunk)
    WEFT_TRY(add_chunk(c, at, end - at < c->chunk ? end - at : c->chunk, deltas ? deltas : near));
  return WEFT_OK;
}

static void update_range(void *user, size_t index) {
  change *const c = user;
  const size_t at = index * c->range, left = c->stripe->bytes - at;
  const size_t end = at + (left < c->range ? left : c->range);
  if (c->whole) {
    multiply_columns(c->code, c->index, c->both, 2, c->stripe, at, end, true);
    return;
  }
  const weft_status status =
      add_chunks(c, at, end, c->deltas ? c->deltas + index * c->chunk : NULL);
  if (status != WEFT_OK)
    atomic_store_explicit(&c->status, status, memory_order_relaxed);
}

static weft_status update_on_host(change *c) {
  const weft_code *code = c->code;
  const bool packets = weft_code_is_crs(code);
  const size_t bytes = c->stripe->bytes;
  c->whole = !packets && code->ctx->host->host->difference;
  if (c->whole && threads_for(code, 1, bytes) == 1) {
    multiply_columns(code, c->index, c->both, 2, c->stripe, 0, bytes, true);
    return WEFT_OK;
  }
  c->chunk = chunk_bytes(code, packets ? UPDATE_PACKETS_BYTES : UPDATE_BYTES);
  c->pool = c->chunk > RANGE_CHUNK ? code->ctx->pool : NULL;
  const size_t chunks = bytes / c->chunk + (bytes % c->chunk != 0);
  const size_t threads = c->pool ? 1 : threads_for(code, 1, bytes);
  const size_t most = threads > 1 ? threads * RANGES_PER_THREAD : 1;
  const size_t each = chunks / most + (chunks % most != 0); // chunks per range
  if (!each)
    return WEFT_OK;
  const size_t ranges = chunks / each + (chunks % each != 0);
  c->range = each * c->chunk;
  if (c->chunk > UPDATE_PACKETS_BYTES) {
    c->deltas = weft_ctx_take(code->ctx, ranges * c->chunk, 64);
    if (!c->deltas)
      return WEFT_E_NOMEM;
  }
  weft_pool_run(code->ctx->pool, ranges, update_range, c);
  weft_ctx_give(code->ctx, c->deltas);
  return (weft_status)atomic_load(&c->status);
}

weft_status weft_code_update(weft_code *code, size_t index, const uint8_t *old_bytes,
                             const uint8_t *new_bytes, const weft_stripe *stripe,
                             weft_queue *queue) {
  WEFT_TRY(check_shard(code, index, old_bytes, stripe, queue));
  if (!new_bytes && stripe->bytes)
    return WEFT_E_ARGUMENT;
  change c = {.code = code, .index = index, .both = {old_bytes, new_bytes}, .stripe = stripe};
  if (stripe->mem == WEFT_MEM_DEVICE)
    return add_on_device(code, index, c.both, 2, stripe, true, queue);
  if (queue)
    WEFT_TRY(weft_queue_wait(queue));
  return update_on_host(&c);
}

// ---------------------------------------------------------------------------------------------

struct weft_progress {
  weft_code *code;
  weft_stripe stripe;
  uint8_t *parity[WEFT_MAX_SHARDS]; // indexed by shard id; data shards are NULL
  bool added[WEFT_MAX_SHARDS];
  size_t missing;
  bool finished;
};

weft_status weft_progress_new(weft_code *code, const weft_stripe *stripe, weft_progress **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!stripe)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(weft_code_check(code, stripe, 1, NULL));
  weft_progress *p = weft_ctx_take(code->ctx, sizeof *p, _Alignof(weft_progress));
  if (!p)
    return WEFT_E_NOMEM;
  memset(p, 0, sizeof *p);
  p->code = code;
  p->missing = code->k;
  for (size_t i = 0; i < code->m; i++)
    p->parity[code->k + i] = weft_stripe_shard(stripe, code->k + i);
  p->stripe = (weft_stripe){.shards = p->parity, .bytes = stripe->bytes, .mem = stripe->mem};
  *out = p;
  return WEFT_OK;
}

void weft_progress_free(weft_progress *progress) {
  if (progress)
    weft_ctx_give(progress->code->ctx, progress);
}

weft_status weft_progress_add(weft_progress *progress, size_t index, const uint8_t *data,
                              weft_queue *queue) {
  if (!progress)
    return WEFT_E_ARGUMENT;
  const weft_code *code = progress->code;
  WEFT_TRY(check_shard(code, index, data, &progress->stripe, queue));
  if (progress->finished || progress->added[index])
    return WEFT_E_STATE;
  // The first shard overwrites the parity, so that it need not be cleared.
  WEFT_TRY(add_anywhere(code, index, data, &progress->stripe, progress->missing < code->k, queue));
  progress->added[index] = true;
  progress->missing--;
  return WEFT_OK;
}

size_t weft_progress_missing(const weft_progress *progress) { return progress->missing; }

weft_status weft_progress_finish(weft_progress *progress) {
  if (!progress)
    return WEFT_E_ARGUMENT;
  const weft_code *code = progress->code;
  if (progress->finished)
    return WEFT_E_STATE;
  progress->finished = true;
  if (progress->missing < code->k)
    return WEFT_OK;
  const size_t bytes = weft_code_parity_bytes(code, progress->stripe.bytes);
  if (progress->stripe.mem == WEFT_MEM_DEVICE) // all-zero parity, which nothing has written yet
    return bytes ? WEFT_E_UNSUPPORTED : WEFT_OK;
  for (size_t i = 0; i < code->m; i++)
    if (progress->parity[code->k + i] && bytes)
      memset(progress->parity[code->k + i], 0, bytes);
  return WEFT_OK;
}

// ---------------------------------------------------------------------------------------------

// Parity recomputed and compared, chunk by chunk. Each worker takes the next chunk.
typedef struct comparison {
  weft_code *code;
  const weft_stripe *stripe;
  size_t chunk;        // bytes, whole units
  bool far;            // for packets: whether the whole stripe is far, which a chunk does not show
  uint8_t *scratch;    // m chunks per worker
  weft_pool *pool;     // for the products of each chunk
  atomic_size_t taken; // bytes
  atomic_bool differs[WEFT_MAX_SHARDS];
  atomic_int status; // of a chunk that failed, or WEFT_OK
} comparison;

static weft_status verify_chunk(comparison *c, size_t at, uint8_t *scratch) {
  weft_code *const code = c->code;
  const size_t left = c->stripe->bytes - at, n = left < c->chunk ? left : c->chunk;
  const size_t padded = weft_code_parity_bytes(code, n);
  uint8_t *shards[WEFT_MAX_SHARDS];
  for (size_t i = 0; i < code->k; i++)
    shards[i] = weft_stripe_shard(c->stripe, i) + at;
  for (size_t i = 0; i < code->m; i++)
    shards[code->k + i] = scratch + i * padded;
  const weft_stripe part = {.shards = shards, .bytes = n, .mem = c->stripe->mem};
  WEFT_TRY(weft_plan_execute_part(code->encode, &part, c->far, c->pool));
  for (size_t i = 0; i < code->m; i++)
    if (!atomic_load_explicit(&c->differs[i], memory_order_relaxed) &&
        memcmp(weft_stripe_shard(c->stripe, code->k + i) + at, shards[code->k + i], padded) != 0)
      atomic_store_explicit(&c->differs[i], true, memory_order_relaxed);
  return WEFT_OK;
}

static void verify_chunks(void *user, size_t worker) {
  comparison *const c = user;
  uint8_t *const scratch = c->scratch + worker * c->code->m * c->chunk;
  size_t at;
  weft_status status = WEFT_OK;
  while (status == WEFT_OK && (at = atomic_fetch_add_explicit(
                                   &c->taken, c->chunk, memory_order_relaxed)) < c->stripe->bytes)
    status = verify_chunk(c, at, scratch);
  if (status != WEFT_OK)
    atomic_store_explicit(&c->status, status, memory_order_relaxed);
}

static weft_status verify_on_host(weft_code *code, const weft_stripe *stripe, bool *differs,
                                  weft_queue *queue) {
  if (queue)
    WEFT_TRY(weft_queue_wait(queue));
  if (!code->m) // with nothing to compare, data may be NULL
    return WEFT_OK;
  const size_t each = chunk_bytes(code, VERIFY_BYTES), all = weft_ctx_threads(code->ctx);
  const size_t there = weft_code_parity_bytes(code, stripe->bytes);
  // With fewer chunks than threads, the threads share each product instead.
  const bool few = there / each < all;
  const size_t workers = few ? 1 : threads_for(code, code->k, stripe->bytes);
  comparison c; // member by member: clearing all of it would take longer than a small stripe
  c.code = code;
  c.stripe = stripe;
  c.chunk = few ? there : each;
  c.far = weft_code_is_crs(code) && weft_packets_are_far(code->k * stripe->bytes);
  c.pool = few ? code->ctx->pool : NULL;
  atomic_init(&c.taken, 0);
  atomic_init(&c.status, WEFT_OK);
  for (size_t i = 0; i < code->m; i++)
    atomic_init(&c.differs[i], false);
  // Far outputs that start on a cache line may be stored bypassing the caches, but these are read
  // next.
  const size_t off_line = c.far ? LINE / 2 : 0;
  if (c.chunk > (SIZE_MAX - off_line) / code->m / workers)
    return WEFT_E_NOMEM;
  uint8_t *scratch = weft_ctx_take(code->ctx, off_line + workers * code->m * c.chunk, LINE);
  if (!scratch)
    return WEFT_E_NOMEM;
  c.scratch = scratch + off_line;
  weft_pool_run(code->ctx->pool, workers, verify_chunks, &c);
  weft_ctx_give(code->ctx, scratch);
  for (size_t i = 0; i < code->m; i++)
    differs[i] = atomic_load(&c.differs[i]);
  return (weft_status)atomic_load(&c.status);
}

weft_status weft_code_verify(weft_code *code, const weft_stripe *stripe, uint8_t *wrong,
                             size_t *wrong_count, weft_queue *queue) {
  if (!wrong_count || !stripe)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(weft_code_check(code, stripe, 1, queue));
  if (!weft_plan_has_shards(code->encode, stripe, false))
    return WEFT_E_ARGUMENT;
  bool differs[WEFT_MAX_SHARDS] = {false};
  if (stripe->mem == WEFT_MEM_DEVICE)
    WEFT_TRY(weft_device_verify(code, stripe, differs, queue));
  else
    WEFT_TRY(verify_on_host(code, stripe, differs, queue));
  *wrong_count = 0;
  for (size_t i = 0; i < code->m; i++) {
    *wrong_count += differs[i];
    if (wrong)
      wrong[i] = differs[i];
  }
  return WEFT_OK;
}
