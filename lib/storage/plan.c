// SPDX-License-Identifier: Apache-2.0
// Plans: the matrix that rebuilds some shards from k others, and its product with their bytes.
#include "lib/storage/code.h"

#include <string.h>

#include "kernels/pool.h"
#include "lib/storage/device_run.h"
#include "lib/storage/packet_run.h"
#include "lib/storage/plan_packets.h"

enum {
  POINTERS = 2 * WEFT_MAX_SHARDS, // k inputs and r outputs of one stripe always fit
  BATCH = 32,                     // stripes that one call of the kernels takes
  TAIL_SHARED = 1 << 20,          // bytes of all shards that are work enough for all threads
  // As measured, for each thread: bytes read of each shard; and bytes read, times outputs.
  FACTORS_REPAY = 16 << 10,
  DETOURS_REPAY = 2 << 20
};
#define DEVICE_FACTORS_REPAY ((size_t)16 << 30) // bytes read

// ---------------------------------------------------------------------------------------------
// Making

// The plan's matrix. A device that fails at it leaves it to the CPU.
static weft_status solve(const weft_plan *plan, const uint8_t *inputs, const uint8_t *outputs) {
  const weft_code *code = plan->code;
  weft_status status = WEFT_E_DEVICE;
  if (!code->mds)
    return weft_generator_express(&code->generator, inputs, plan->inputs, outputs, plan->outputs,
                                  plan->matrix);
  if (code->device_inverse && plan->outputs > 0)
    status = weft_device_solve(code, inputs, outputs, plan->outputs, plan->matrix);
  if (status != WEFT_E_DEVICE && status != WEFT_E_DEVICE_NOMEM && status != WEFT_E_DEVICE_LOST)
    return status;
  return weft_generator_solve(&code->generator, inputs, outputs, plan->outputs, plan->matrix);
}

// Of the inputs; for byte codes without stripes that are too short for factors.
static size_t bytes_read(const weft_code *code, const weft_stripe *stripes, size_t count) {
  size_t bytes = 0;
  for (size_t s = 0; s < count; s++)
    if (weft_code_is_crs(code) || stripes[s].bytes >= WEFT_STEPS_COLUMNS)
      bytes += stripes[s].bytes * code->k;
  return bytes;
}

// Whether factors of a recovery pay on the host in shards of so many bytes; 0: of some length.
// Outputs are rebuilt by those of encoding and a small matrix, of as many columns as parity stands
// in for data. All data from as much parity is encoding the other way round.
static bool factors_pay(const weft_code *code, size_t outputs, size_t stand_ins, size_t bytes) {
  const weft_factors *encode = code->encode ? atomic_load(&code->encode->factors) : NULL;
  const size_t k = code->k, entries = stand_ins == k && outputs == k ? 0 : outputs * stand_ins;
  return encode && weft_host_steps_pay(code->ctx->host->host, outputs, k, bytes, encode, entries);
}

// Of the inputs of stripes for which factors would be taken.
static size_t bytes_by_factors(const weft_code *code, size_t outputs, size_t stand_ins,
                               const weft_stripe *stripes, size_t count) {
  size_t bytes = 0;
  for (size_t s = 0; s < count; s++)
    if (stripes[s].bytes >= WEFT_STEPS_COLUMNS &&
        factors_pay(code, outputs, stand_ins, stripes[s].bytes))
      bytes += stripes[s].bytes * code->k;
  return bytes;
}

// Such bytes that repay factors; SIZE_MAX: they would hardly pay. `ids`: inputs, then outputs;
// NULL: not known, and then at least so many bytes.
static size_t factors_after(const weft_code *code, size_t outputs, size_t stand_ins,
                            const uint8_t *ids) {
  const size_t k = code->k;
  if (code->ctx->device || !factors_pay(code, outputs, stand_ins, 0))
    return SIZE_MAX;
  const bool soon = !ids || weft_transform_is_detour(&code->generator, ids, ids + k, outputs);
  return (soon ? DETOURS_REPAY / outputs : FACTORS_REPAY * k) * weft_pool_threads(code->ctx->pool);
}

// Bytes read on a device that make factors worth having: kernels are compiled for them, which
// takes far longer than making them.
static size_t device_factors_after(const weft_code *code, size_t outputs) {
  const size_t compile_after = code->ctx->compile_after;
  if (!code->ctx->device || outputs * code->k < WEFT_FACTORS_LEAST)
    return SIZE_MAX;
  return compile_after && compile_after < DEVICE_FACTORS_REPAY ? compile_after
                                                               : DEVICE_FACTORS_REPAY;
}

static weft_status make_host_factors(const weft_plan *plan, weft_factors **out) {
  weft_code *code = plan->code;
  const weft_factors *encode = code->encode ? atomic_load(&code->encode->factors) : NULL;
  const uint8_t *const outputs = plan->ids + plan->inputs;
  weft_status status = WEFT_E_UNSUPPORTED;
  if (encode)
    status = weft_transform_by_encoding(&code->generator, encode, plan->ids, outputs, plan->outputs,
                                        plan->matrix, code->ctx->host->host->wide_rows, out);
  if (status == WEFT_E_UNSUPPORTED)
    status = weft_transform_new(&code->generator, plan->ids, outputs, plan->outputs,
                                &weft_transform_for_host, &code->transforms, out);
  return status;
}

// WEFT_E_UNSUPPORTED: none that pay.
static weft_status make_factors(const weft_plan *plan, weft_factors **out) {
  const weft_code *code = plan->code;
  if (code->ctx->device) // compiling takes far longer than looking for the best once more
    return weft_transform_new(&code->generator, plan->ids, plan->ids + plan->inputs, plan->outputs,
                              &weft_transform_for_device, NULL, out);
  WEFT_TRY(make_host_factors(plan, out));
  if (weft_host_steps_pay(code->ctx->host->host, plan->outputs, plan->inputs, 0, *out, 0))
    return WEFT_OK;
  weft_factors_free(*out, &code->ctx->allocator);
  *out = NULL;
  return WEFT_E_UNSUPPORTED;
}

static weft_status give_factors(weft_plan *plan) {
  weft_factors *factors = NULL;
  WEFT_TRY(make_factors(plan, &factors));
  atomic_store_explicit(&plan->factors, factors, memory_order_release);
  return WEFT_OK;
}

// Where there is no memory for an improvement, the plan goes on as it is, and tries again.
static weft_status improve(weft_plan *plan, weft_improvement *i,
                           weft_status (*give)(weft_plan *plan)) {
  const weft_status status = give(plan);
  if (status == WEFT_E_NOMEM)
    atomic_flag_clear(&i->begun);
  return status;
}

static void work(weft_plan *plan, weft_improvement *i, size_t bytes,
                 weft_status (*give)(weft_plan *plan)) {
  if (i->after != SIZE_MAX && atomic_fetch_add(&i->worked, bytes) + bytes >= i->after &&
      !atomic_flag_test_and_set(&i->begun)) // else another thread is at it, or was
    improve(plan, i, give);
}

// Makes now what would be made once it is repaid.
static weft_status improve_now(weft_plan *plan, weft_improvement *i,
                               weft_status (*give)(weft_plan *plan)) {
  if (i->after == SIZE_MAX || atomic_flag_test_and_set(&i->begun))
    return WEFT_OK;
  return improve(plan, i, give);
}

static weft_status fill(weft_plan *plan, const uint8_t *inputs, const uint8_t *outputs,
                        bool reduce) {
  const weft_code *code = plan->code;
  const size_t k = plan->inputs, r = plan->outputs;
  memcpy(plan->ids, inputs, k);
  if (r)
    memcpy(plan->ids + k, outputs, r);
  WEFT_TRY(solve(plan, inputs, outputs));
  if (!r)
    return WEFT_OK;
  plan->on_device.after = device_factors_after(code, r);
  if (reduce)
    improve_now(plan, &plan->on_device, give_factors);
  if (!weft_code_is_crs(code)) {
    for (size_t i = 0; i < k; i++)
      plan->stand_ins += inputs[i] >= k;
    plan->on_host.after = factors_after(code, r, plan->stand_ins, plan->ids);
    if (reduce)
      improve_now(plan, &plan->on_host, give_factors);
    return WEFT_OK;
  }
  WEFT_TRY(weft_plan_packets_begin(plan, &plan->on_host.after));
  return reduce ? improve_now(plan, &plan->on_host, weft_plan_packets_improve) : WEFT_OK;
}

static weft_status check_ids(const weft_code *code, const uint8_t *inputs, const uint8_t *outputs,
                             size_t output_count) {
  bool taken[WEFT_MAX_SHARDS] = {false};
  for (size_t i = 0; i < code->k; i++) {
    if (inputs[i] >= code->k + code->m || taken[inputs[i]])
      return WEFT_E_ARGUMENT;
    taken[inputs[i]] = true;
  }
  for (size_t i = 0; i < output_count; i++) {
    if (outputs[i] >= code->k + code->m || taken[outputs[i]])
      return WEFT_E_ARGUMENT;
    taken[outputs[i]] = true;
  }
  return WEFT_OK;
}

// The struct, the ids and the matrix, one behind the other.
static size_t plan_bytes(size_t input_count, size_t output_count) {
  return sizeof(weft_plan) + input_count + output_count + output_count * input_count;
}

static void begin_improvement(weft_improvement *i) {
  atomic_init(&i->worked, 0);
  atomic_flag_clear_explicit(&i->begun, memory_order_relaxed); // else an instruction with a lock
  i->after = SIZE_MAX;
}

// Member by member: compilers clear a struct of this size by an instruction that takes longer to
// start than a small recovery has to spare.
static void begin(weft_plan *plan, weft_code *code, size_t input_count, size_t output_count,
                  uint8_t *ids, uint8_t *matrix) {
  plan->code = code;
  atomic_init(&plan->holders, 1);
  plan->inputs = input_count;
  plan->outputs = output_count;
  plan->stand_ins = 0;
  plan->ids = ids;
  plan->matrix = matrix;
  atomic_init(&plan->factors, NULL);
  weft_plan_packets_init(plan);
  begin_improvement(&plan->on_host);
  begin_improvement(&plan->on_device);
}

weft_status weft_plan_make(weft_code *code, const uint8_t *inputs, size_t input_count,
                           const uint8_t *outputs, size_t output_count, bool reduce,
                           weft_plan **out) {
  weft_plan *plan =
      weft_ctx_take(code->ctx, plan_bytes(input_count, output_count), _Alignof(weft_plan));
  if (!plan)
    return WEFT_E_NOMEM;
  uint8_t *const ids = (uint8_t *)(plan + 1);
  begin(plan, code, input_count, output_count, ids, ids + input_count + output_count);
  const weft_status status = fill(plan, inputs, outputs, reduce);
  if (status == WEFT_OK)
    *out = plan;
  else
    weft_plan_let_go(plan);
  return status;
}

void weft_plan_let_go(weft_plan *plan) {
  if (!plan || atomic_fetch_sub(&plan->holders, 1) != 1)
    return;
  weft_ctx *ctx = plan->code->ctx;
  weft_plan_packets_free(plan);
  weft_factors_free(atomic_load(&plan->factors), &ctx->allocator);
  weft_ctx_give(ctx, plan);
}

weft_status weft_plan_new(weft_code *code, const uint8_t *inputs, const uint8_t *outputs,
                          size_t output_count, weft_plan **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!code || !inputs || (output_count && !outputs))
    return WEFT_E_ARGUMENT;
  WEFT_TRY(check_ids(code, inputs, outputs, output_count));
  return weft_plan_make(code, inputs, code->k, outputs, output_count, true, out);
}

void weft_plan_free(weft_plan *plan) { weft_plan_let_go(plan); }

size_t weft_plan_outputs(const weft_plan *plan) { return plan->outputs; }
size_t weft_plan_input_count(const weft_plan *plan) { return plan->inputs; }
const uint8_t *weft_plan_inputs(const weft_plan *plan) { return plan->ids; }
const uint8_t *weft_plan_matrix(const weft_plan *plan) { return plan->matrix; }

weft_status weft_plan_bits(const weft_plan *plan, uint8_t *bits) {
  if (!plan || !bits)
    return WEFT_E_ARGUMENT;
  if (!weft_code_is_crs(plan->code))
    return WEFT_E_UNSUPPORTED;
  weft_matrix_to_bits(&plan->code->generator.field, plan->matrix, plan->outputs, plan->inputs,
                      bits);
  return WEFT_OK;
}

// ---------------------------------------------------------------------------------------------
// Running

// Pointers of a batch of stripes: stripe s has its inputs at pointer[s * (k + r)], then outputs.
typedef struct batch {
  uint8_t *pointer[POINTERS];
  const weft_stripe *stripes;
  size_t count;
  bool far; // packets are in no near cache, however few these are
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

static weft_status multiply(weft_plan *plan, const batch *b) {
  const weft_code *code = plan->code;
  weft_gemm gemms[BATCH];
  const weft_factors *factors = atomic_load_explicit(&plan->factors, memory_order_acquire);
  if (!factors && plan->on_host.after != SIZE_MAX) {
    work(plan, &plan->on_host,
         bytes_by_factors(code, plan->outputs, plan->stand_ins, b->stripes, b->count),
         give_factors);
    factors = atomic_load_explicit(&plan->factors, memory_order_acquire);
  }
  for (size_t s = 0; s < b->count; s++) {
    gemms[s] = weft_gemm_of(plan->outputs, plan->inputs, b->stripes[s].bytes, plan->matrix,
                            plan->inputs, inputs_of(plan, b, s), outputs_of(plan, b, s));
    gemms[s].factors = factors;
  }
  const weft_backend *row = code->ctx->host;
  const weft_exec exec = weft_ctx_host_exec(code->ctx, b->pool);
  return row->gemm(row, &exec, gemms, b->count);
}

// The product to run now.
static weft_packet_product product_for(weft_plan *plan, const batch *b) {
  if (!weft_plan_packets_improved(plan))
    work(plan, &plan->on_host, bytes_read(plan->code, b->stripes, b->count),
         weft_plan_packets_improve);
  return weft_plan_packets_product(plan);
}

// The groups of a batch that are not whole. Each worker takes the next stripe.
typedef struct tails {
  const weft_plan *plan;
  const weft_packet_product *product;
  const batch *b;
  weft_exec exec;      // of each product
  uint8_t *copies;     // for each worker inputs, then outputs, a unit each
  atomic_size_t taken; // stripes
  atomic_int status;   // of one that failed, or WEFT_OK
} tails;

static size_t tail_bytes(const weft_plan *plan) {
  return (plan->inputs + plan->outputs) * weft_code_unit_bytes(plan->code);
}

// On copies padded with zeros.
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
    const size_t held = plan->ids[i] < code->k ? tail : unit; // parity shards are whole
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

// By a thread each. Threads share each of those that are fewer than threads, or long, or more than
// there is memory for.
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

bool weft_plan_has_shards(const weft_plan *plan, const weft_stripe *stripe, bool in_order) {
  if (!stripe->shards || !stripe->bytes || !plan->outputs)
    return true; // evenly apart, or untouched
  for (size_t i = 0; i < plan->inputs + plan->outputs; i++)
    if (!stripe->shards[in_order ? i : plan->ids[i]])
      return false;
  return true;
}

weft_status weft_plan_dispatch(weft_plan *plan, const weft_stripe *stripes, size_t count,
                               bool in_order, weft_queue *queue) {
  for (size_t i = 0; i < count; i++)
    if (!weft_plan_has_shards(plan, &stripes[i], in_order))
      return WEFT_E_ARGUMENT;
  if (plan->code->ctx->device) {
    if (!atomic_load_explicit(&plan->factors, memory_order_acquire))
      work(plan, &plan->on_device, bytes_read(plan->code, stripes, count), give_factors);
    return weft_device_run_plan(plan, stripes, count, in_order, queue);
  }
  if (queue)
    WEFT_TRY(weft_queue_wait(queue));
  return weft_plan_execute(plan, stripes, count, in_order);
}

bool weft_plan_is_small(const weft_code *code, size_t inputs, size_t outputs, size_t stand_ins,
                        const uint8_t *ids, const weft_stripe *stripes, size_t count) {
  return !code->ctx->device && !weft_code_is_crs(code) &&
         plan_bytes(inputs, outputs) <= WEFT_SMALL_PLAN_BYTES &&
         bytes_by_factors(code, outputs, stand_ins, stripes, count) <
             factors_after(code, outputs, stand_ins, ids);
}

weft_status weft_plan_run_once(weft_code *code, weft_plan_request *q, const weft_stripe *stripes,
                               size_t count, weft_queue *queue) {
  const weft_generator *const g = &code->generator;
  const uint8_t *const outputs = q->ids + q->inputs;
  const weft_absence absence = {q->absent_count, q->absent, outputs - q->absent_count};
  uint8_t matrix[WEFT_SMALL_PLAN_BYTES];
  weft_plan plan;
  begin(&plan, code, q->inputs, q->outputs, q->ids, matrix);
  if (g->by_points)
    weft_generator_solve_absence(g, &absence, q->ids, outputs, q->outputs, matrix);
  else
    WEFT_TRY(solve(&plan, q->ids, outputs));
  return weft_plan_dispatch(&plan, stripes, count, false, queue);
}

weft_status weft_plan_rebuild_once(weft_code *code, const weft_loss *loss,
                                   const weft_stripe *stripes, size_t count, weft_queue *queue) {
  const weft_point_code points = {
      .k = code->k, .m = code->m, .point = code->generator.point, .scale = code->generator.scale};
  uint8_t ids[2 * WEFT_LOSS_SHARDS], matrix[WEFT_LOSS_SHARDS * (WEFT_LOSS_SHARDS / 4 + 1)];
  weft_plan plan;
  begin(&plan, code, code->k, loss->wanted.count, ids, matrix);
  code->ctx->host->host->rebuild(&points, loss->lost.word[0], loss->wanted.word[0], ids, matrix);
  return weft_plan_dispatch(&plan, stripes, count, false, queue);
}

weft_status weft_plan_run(weft_plan *plan, const weft_stripe *stripes, size_t count,
                          weft_queue *queue) {
  if (!plan)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(weft_code_check(plan->code, stripes, count, queue));
  return weft_plan_dispatch(plan, stripes, count, false, queue);
}

weft_status weft_plan_run_in_order(weft_plan *plan, const weft_stripe *stripes, size_t count,
                                   weft_queue *queue) {
  if (!plan)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(weft_code_check(plan->code, stripes, count, queue));
  return weft_plan_dispatch(plan, stripes, count, true, queue);
}
