// SPDX-License-Identifier: Apache-2.0
// Plans: the matrix that rebuilds some shards from k others, and what speeds up its product with
// their bytes.
#include "lib/storage/code.h"

#include <string.h>

#include "kernels/pool.h"
#include "lib/storage/device_run.h"
#include "lib/storage/plan_packets.h"

#define DEVICE_FACTORS_REPAY ((size_t)16 << 30) // bytes read

// Computes the plan's matrix. If the device fails, the CPU does it.
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

// Returns the input bytes of the stripes; for byte codes, only of stripes long enough for factors.
static size_t bytes_read(const weft_code *code, const weft_stripe *stripes, size_t count) {
  size_t bytes = 0;
  for (size_t s = 0; s < count; s++)
    if (weft_code_is_crs(code) || stripes[s].bytes >= WEFT_STEPS_COLUMNS)
      bytes += stripes[s].bytes * code->k;
  return bytes;
}

// Whether a recovery's factors pay on the host for shards of this many bytes; 0: for any length.
// Outputs are rebuilt with the factors of encoding and a small matrix, which has a column per
// parity shard that stands in for data. Rebuilding all data from as much parity is encoding in
// reverse.
static bool factors_pay(const weft_code *code, size_t outputs, size_t stand_ins, size_t bytes) {
  const weft_factors *encode = code->encode ? atomic_load(&code->encode->factors) : NULL;
  const size_t k = code->k, entries = stand_ins == k && outputs == k ? 0 : outputs * stand_ins;
  return encode && weft_host_steps_pay(code->ctx->host->host, outputs, k, bytes, encode, entries);
}

// Returns the input bytes of the stripes that would use factors.
static size_t bytes_by_factors(const weft_code *code, size_t outputs, size_t stand_ins,
                               const weft_stripe *stripes, size_t count) {
  size_t bytes = 0;
  for (size_t s = 0; s < count; s++)
    if (stripes[s].bytes >= WEFT_STEPS_COLUMNS &&
        factors_pay(code, outputs, stand_ins, stripes[s].bytes))
      bytes += stripes[s].bytes * code->k;
  return bytes;
}

// Returns how many of these bytes repay making factors; SIZE_MAX: they hardly ever pay. `ids`:
// inputs, then outputs; NULL: unknown, and the result is a lower bound.
static size_t factors_after(const weft_code *code, size_t outputs, size_t stand_ins,
                            const uint8_t *ids) {
  const size_t k = code->k;
  if (code->ctx->device || !factors_pay(code, outputs, stand_ins, 0))
    return SIZE_MAX;
  const weft_host_kernel *const kernel = code->ctx->host->host;
  const bool soon = !ids || weft_transform_is_detour(&code->generator, ids, ids + k, outputs);
  return (soon ? kernel->detour_repays : kernel->factors_repay) / outputs *
         weft_pool_threads(code->ctx->pool);
}

// Returns how many bytes read on a device repay factors: kernels are compiled for them, which takes
// far longer than making the factors.
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

// Makes the plan's factors. WEFT_E_UNSUPPORTED: none pay.
static weft_status make_factors(const weft_plan *plan, weft_factors **out) {
  const weft_code *code = plan->code;
  if (code->ctx->device) // compiling takes far longer than searching for the best layout again
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

// Without memory for an improvement, the plan stays as it is, and a later call tries again.
static void improve(weft_plan *plan, weft_improvement *i, weft_status (*give)(weft_plan *plan)) {
  if (give(plan) == WEFT_E_NOMEM)
    atomic_flag_clear(&i->begun);
}

static void work(weft_plan *plan, weft_improvement *i, size_t bytes,
                 weft_status (*give)(weft_plan *plan)) {
  if (i->after != SIZE_MAX && atomic_fetch_add(&i->worked, bytes) + bytes >= i->after &&
      !atomic_flag_test_and_set(&i->begun)) // otherwise a thread is doing it, or has done it
    improve(plan, i, give);
}

void weft_plan_repay(weft_plan *plan, const weft_stripe *stripes, size_t count) {
  const weft_code *code = plan->code;
  if (weft_code_is_crs(code))
    work(plan, &plan->on_host, bytes_read(code, stripes, count), weft_plan_packets_improve);
  else
    work(plan, &plan->on_host,
         bytes_by_factors(code, plan->outputs, plan->stand_ins, stripes, count), give_factors);
}

// Makes the improvement now, without waiting for it to be repaid.
static void improve_now(weft_plan *plan, weft_improvement *i,
                        weft_status (*give)(weft_plan *plan)) {
  if (i->after != SIZE_MAX && !atomic_flag_test_and_set(&i->begun))
    improve(plan, i, give);
}

static bool ids_in_order(const weft_plan *plan) {
  for (size_t i = 0; i < plan->inputs + plan->outputs; i++)
    if (plan->ids[i] != i)
      return false;
  return true;
}

static weft_status fill(weft_plan *plan, const uint8_t *inputs, const uint8_t *outputs,
                        bool reduce) {
  const weft_code *code = plan->code;
  const size_t k = plan->inputs, r = plan->outputs;
  memcpy(plan->ids, inputs, k);
  if (r)
    memcpy(plan->ids + k, outputs, r);
  plan->in_order = ids_in_order(plan);
  WEFT_TRY(solve(plan, inputs, outputs));
  if (!r)
    return WEFT_OK;
  plan->on_device.after = device_factors_after(code, r);
  if (reduce)
    improve_now(plan, &plan->on_device, give_factors);
  const bool crs = weft_code_is_crs(code);
  if (!crs) {
    for (size_t i = 0; i < k; i++)
      plan->stand_ins += inputs[i] >= k;
    plan->on_host.after = factors_after(code, r, plan->stand_ins, plan->ids);
  } else {
    WEFT_TRY(weft_plan_packets_begin(plan, &plan->on_host.after));
  }
  if (reduce)
    improve_now(plan, &plan->on_host, crs ? weft_plan_packets_improve : give_factors);
  return WEFT_OK;
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

// Returns the bytes of the struct, the ids and the matrix, which follow each other.
static size_t plan_bytes(size_t input_count, size_t output_count) {
  return sizeof(weft_plan) + input_count + output_count + output_count * input_count;
}

static void begin_improvement(weft_improvement *i) {
  atomic_init(&i->worked, 0);
  atomic_flag_clear_explicit(&i->begun, memory_order_relaxed); // avoids a locked instruction
  i->after = SIZE_MAX;
}

// Initialises a plan, member by member: compilers clear a struct of this size with an instruction
// whose start-up time a small recovery cannot afford.
static void begin(weft_plan *plan, weft_code *code, size_t input_count, size_t output_count,
                  uint8_t *ids, uint8_t *matrix) {
  plan->code = code;
  atomic_init(&plan->holders, 1);
  plan->inputs = input_count;
  plan->outputs = output_count;
  plan->stand_ins = 0;
  plan->in_order = false;
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

bool weft_plan_has_shards(const weft_plan *plan, const weft_stripe *stripe, bool in_order) {
  if (!stripe->shards || !stripe->bytes || !plan->outputs)
    return true; // evenly spaced, or not accessed
  const size_t each = plan->inputs + plan->outputs;
  bool all = true;
  if (in_order || plan->in_order)
    for (size_t i = 0; i < each; i++)
      all &= stripe->shards[i] != NULL;
  else
    for (size_t i = 0; i < each; i++)
      all &= stripe->shards[plan->ids[i]] != NULL;
  return all;
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
