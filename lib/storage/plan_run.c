// SPDX-License-Identifier: Apache-2.0
// Runs plans on stripes in host memory: one product per stripe, a batch of them per kernel call.
#include <string.h>

#include "kernels/pool.h"
#include "lib/storage/code.h"
#include "lib/storage/packet_run.h"
#include "lib/storage/plan_packets.h"

enum {
  POINTERS = 2 * WEFT_MAX_SHARDS, // k inputs and r outputs of one stripe always fit
  BATCH = 32,                     // stripes per kernel call
  TAIL_SHARED = 1 << 20           // bytes of all shards that occupy all threads
};

// A batch of stripes: stripe s has its inputs from pointer[s * (k + r)] on, then its outputs.
typedef struct batch {
  uint8_t *pointer[POINTERS];
  const weft_stripe *stripes;
  size_t count;
  bool far; // packets are in no near cache, however few
  weft_pool *pool;
} batch;

static void collect(const weft_plan *plan, batch *b, bool in_order) {
  const size_t each = plan->inputs + plan->outputs;
  for (size_t s = 0; s < b->count; s++)
    for (size_t i = 0; i < each; i++)
      b->pointer[s * each + i] = weft_stripe_shard(&b->stripes[s], in_order ? i : plan->ids[i]);
}

static const uint8_t *const *inputs_of(const weft_plan *plan, const batch *b, size_t s) {
  return (const uint8_t *const *)&b->pointer[s * (plan->inputs + plan->outputs)];
}

static uint8_t *const *outputs_of(const weft_plan *plan, const batch *b, size_t s) {
  return &b->pointer[s * (plan->inputs + plan->outputs) + plan->inputs];
}

static weft_gemm product_of(const weft_plan *plan, const weft_factors *factors, size_t bytes,
                            const uint8_t *const *in, uint8_t *const *out) {
  weft_gemm gemm =
      weft_gemm_of(plan->outputs, plan->inputs, bytes, plan->matrix, plan->inputs, in, out);
  gemm.factors = factors;
  return gemm;
}

static const weft_factors *factors_for(weft_plan *plan, const weft_stripe *stripes, size_t count) {
  const weft_factors *factors = atomic_load_explicit(&plan->factors, memory_order_acquire);
  if (factors || plan->on_host.after == SIZE_MAX)
    return factors;
  weft_plan_repay(plan, stripes, count);
  return atomic_load_explicit(&plan->factors, memory_order_acquire);
}

static weft_status multiply(weft_plan *plan, const batch *b) {
  const weft_code *code = plan->code;
  weft_gemm gemms[BATCH];
  const weft_factors *const factors = factors_for(plan, b->stripes, b->count);
  for (size_t s = 0; s < b->count; s++)
    gemms[s] = product_of(plan, factors, b->stripes[s].bytes, inputs_of(plan, b, s),
                          outputs_of(plan, b, s));
  const weft_backend *row = code->ctx->host;
  const weft_exec exec = weft_ctx_host_exec(code->ctx, b->pool);
  return row->gemm(row, &exec, gemms, b->count);
}

// Runs one stripe of a byte code whose shards the caller lists in the plan's order: for short
// shards, copying the pointers would be noticeable.
static weft_status multiply_in_place(weft_plan *plan, const weft_stripe *stripe, weft_pool *pool) {
  const weft_ctx *ctx = plan->code->ctx;
  const weft_gemm gemm =
      product_of(plan, factors_for(plan, stripe, 1), stripe->bytes,
                 (const uint8_t *const *)stripe->shards, stripe->shards + plan->inputs);
  const weft_exec exec = weft_ctx_host_exec(ctx, pool);
  return ctx->host->gemm(ctx->host, &exec, &gemm, 1);
}

// Returns the product in its current form, improving it first if that is repaid.
static weft_packet_product product_for(weft_plan *plan, const batch *b) {
  if (!weft_plan_packets_improved(plan))
    weft_plan_repay(plan, b->stripes, b->count);
  return weft_plan_packets_product(plan);
}

// The partial last groups of a batch's stripes. Each worker takes the next stripe.
typedef struct tails {
  const weft_plan *plan;
  const weft_packet_product *product;
  const batch *b;
  weft_exec exec;      // for each product
  uint8_t *copies;     // per worker: inputs, then outputs, one unit each
  atomic_size_t taken; // stripes
  atomic_int status;   // of one that failed, or WEFT_OK
} tails;

static size_t tail_bytes(const weft_plan *plan) {
  return (plan->inputs + plan->outputs) * weft_code_unit_bytes(plan->code);
}

// Computes a stripe's last group on copies padded with zeros.
static weft_status run_tail(const tails *t, size_t s, uint8_t *copies) {
  const weft_plan *plan = t->plan;
  const batch *b = t->b;
  const weft_code *code = plan->code;
  const size_t unit = weft_code_unit_bytes(code), tail = b->stripes[s].bytes % unit;
  const size_t done = b->stripes[s].bytes - tail;
  uint8_t *pointer[POINTERS];
  for (size_t i = 0; i < plan->inputs + plan->outputs; i++) {
    pointer[i] = copies + i * unit;
    if (i >= plan->inputs)
      continue;
    const size_t held = plan->ids[i] < code->k ? tail : unit; // parity shards are whole units
    memcpy(pointer[i], inputs_of(plan, b, s)[i] + done, held);
    memset(pointer[i] + held, 0, unit - held);
  }
  const weft_packet_job job = {
      .in = (const uint8_t *const *)pointer, .out = pointer + plan->inputs, .groups = 1};
  WEFT_TRY(weft_packet_run(&t->exec, code->ctx->host->host, t->product, code->w, code->packet_bytes,
                           &job, 1));
  for (size_t i = 0; i < plan->outputs; i++)
    memcpy(outputs_of(plan, b, s)[i] + done, pointer[plan->inputs + i],
           plan->ids[plan->inputs + i] < code->k ? tail : unit);
  return WEFT_OK;
}

static void take_tails(void *user, size_t worker) {
  tails *const t = user;
  const size_t unit = weft_code_unit_bytes(t->plan->code);
  uint8_t *const copies = t->copies + worker * tail_bytes(t->plan);
  weft_status status = WEFT_OK;
  size_t s;
  while (status == WEFT_OK &&
         (s = atomic_fetch_add_explicit(&t->taken, 1, memory_order_relaxed)) < t->b->count)
    if (t->b->stripes[s].bytes % unit)
      status = run_tail(t, s, copies);
  if (status != WEFT_OK)
    atomic_store_explicit(&t->status, status, memory_order_relaxed);
}

// Computes the tails, one thread each. If there are fewer tails than threads, or they are long, or
// memory is short, all threads share each tail.
static weft_status run_tails(const weft_plan *plan, const weft_packet_product *product,
                             const batch *b, size_t count) {
  const weft_ctx *ctx = plan->code->ctx;
  const size_t threads = weft_pool_threads(b->pool), each = tail_bytes(plan);
  tails t = {.plan = plan, .product = product, .b = b};
  size_t workers = count < threads || each > TAIL_SHARED ? 1 : threads;
  t.copies = weft_ctx_take(ctx, workers * each, 64);
  if (!t.copies && workers > 1) {
    workers = 1;
    t.copies = weft_ctx_take(ctx, each, 64);
  }
  if (!t.copies)
    return WEFT_E_NOMEM;
  t.exec = weft_ctx_host_exec(ctx, workers > 1 ? NULL : b->pool);
  weft_pool_run(b->pool, workers, take_tails, &t);
  weft_ctx_give(ctx, t.copies);
  return (weft_status)atomic_load(&t.status);
}

static weft_status add_up(weft_plan *plan, const batch *b) {
  const weft_code *code = plan->code;
  const size_t unit = weft_code_unit_bytes(code);
  const weft_exec exec = weft_ctx_host_exec(code->ctx, b->pool);
  const weft_packet_product product = product_for(plan, b);
  weft_packet_job jobs[BATCH];
  size_t tail_count = 0;
  for (size_t s = 0; s < b->count; s++) {
    jobs[s] = (weft_packet_job){.in = inputs_of(plan, b, s),
                                .out = outputs_of(plan, b, s),
                                .groups = b->stripes[s].bytes / unit,
                                .far = b->far};
    tail_count += b->stripes[s].bytes % unit != 0;
  }
  WEFT_TRY(weft_packet_run(&exec, code->ctx->host->host, &product, code->w, code->packet_bytes,
                           jobs, b->count));
  return tail_count ? run_tails(plan, &product, b, tail_count) : WEFT_OK;
}

static weft_status run_batch(weft_plan *plan, const batch *b) {
  return weft_code_is_crs(plan->code) ? add_up(plan, b) : multiply(plan, b);
}

weft_status weft_plan_execute(weft_plan *plan, const weft_stripe *stripes, size_t count,
                              bool in_order) {
  if (!plan->outputs)
    return WEFT_OK;
  if (count == 1 && stripes->shards && (in_order || plan->in_order) &&
      !weft_code_is_crs(plan->code))
    return multiply_in_place(plan, stripes, plan->code->ctx->pool);
  size_t most = POINTERS / (plan->inputs + plan->outputs);
  if (most > BATCH)
    most = BATCH;
  batch b;
  b.far = false;
  b.pool = plan->code->ctx->pool;
  for (size_t done = 0; done < count; done += b.count) {
    b.stripes = stripes + done;
    b.count = count - done < most ? count - done : most;
    collect(plan, &b, in_order);
    WEFT_TRY(run_batch(plan, &b));
  }
  return WEFT_OK;
}

weft_status weft_plan_execute_part(weft_plan *plan, const weft_stripe *part, bool far,
                                   weft_pool *pool) {
  batch b;
  if (!plan->outputs)
    return WEFT_OK;
  b.stripes = part;
  b.count = 1;
  b.far = far;
  b.pool = pool;
  collect(plan, &b, false);
  return run_batch(plan, &b);
}
