// SPDX-License-Identifier: Apache-2.0
// Runs storage codes on a device: in place in device memory, through pipelines for anything else.
#include "lib/storage/device_run.h"

#include <string.h>

#include "lib/staging.h"
#include "lib/storage/device_travel.h"

// Byte columns per call of a row, which takes fewer than 2^31. Tests set a smaller limit.
#ifndef WEFT_RANGE_BYTES
#define WEFT_RANGE_BYTES ((size_t)1 << 30)
#endif

enum {
  SMALL_BYTES = 1 << 20, // of data in host memory: computed faster than transferred
  POINTERS = WEFT_MAX_SHARDS,
  BUNDLE = 32,             // resident stripes whose products go to the row in one call
  STRIDED_BYTES = 64 << 10 // of their shards: up to here the row is faster with base and stride
};

// Shards that the device can access: the k inputs and r outputs of one product or several.
typedef struct product {
  const uint8_t *in[POINTERS];
  uint8_t *out[POINTERS];
  size_t bytes;                // CRS: whole groups
  weft_mem mem;                // DEVICE or PINNED
  const weft_factors *factors; // of the matrix; NULL: none known
} product;

// Makes one call of the row.
static weft_status multiply_columns(const weft_code *code, const weft_exec *exec, const product *p,
                                    size_t count, size_t k, size_t r, const uint8_t *matrix,
                                    size_t stride, bool accumulate) {
  const weft_backend *row = code->ctx->row;
  weft_gemm gemms[BUNDLE];
  weft_xorm xorms[BUNDLE];
  for (size_t i = 0; i < count; i++) {
    const weft_const_rows x = {.ptr = p->in + i * k, .mem = p->mem};
    const weft_rows y = {.ptr = p->out + i * r, .mem = p->mem};
    if (!weft_code_is_crs(code))
      gemms[i] = (weft_gemm){.m = r,
                             .k = k,
                             .len = p->bytes,
                             .a = matrix,
                             .a_stride = stride,
                             .x = x,
                             .y = y,
                             .accumulate = accumulate,
                             .factors = p->factors};
    else
      xorms[i] = (weft_xorm){.m = r,
                             .k = k,
                             .w = code->w,
                             .packet_bytes = code->packet_bytes,
                             .len = p->bytes,
                             .bits = matrix,
                             .bits_stride = stride,
                             .x = x,
                             .y = y,
                             .accumulate = accumulate,
                             .factors = p->factors};
  }
  if (!weft_code_is_crs(code))
    return row->gemm(row, exec, gemms, count);
  if (count > 1 && row->xorm_many)
    return row->xorm_many(row, exec, xorms, count);
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(row->xorm(row, exec, &xorms[i]));
  return WEFT_OK;
}

// Computes outputs(r) of a plan's matrix, or of some of its rows, for `count` products of one
// length.
static weft_status multiply_many(const weft_code *code, const weft_exec *exec, const product *p,
                                 size_t count, size_t k, size_t r, const uint8_t *matrix,
                                 size_t stride, bool accumulate) {
  if (p->bytes == 0 || r == 0)
    return WEFT_OK;
  if (weft_code_is_crs(code) || p->bytes <= WEFT_RANGE_BYTES)
    return multiply_columns(code, exec, p, count, k, r, matrix, stride, accumulate);
  product part = *p;
  for (size_t left = p->bytes; left > 0; left -= part.bytes) {
    part.bytes = left < WEFT_RANGE_BYTES ? left : WEFT_RANGE_BYTES;
    WEFT_TRY(multiply_columns(code, exec, &part, count, k, r, matrix, stride, accumulate));
    for (size_t i = 0; i < count * k; i++)
      part.in[i] += part.bytes;
    for (size_t i = 0; i < count * r; i++)
      part.out[i] += part.bytes;
  }
  return WEFT_OK;
}

static weft_status multiply(const weft_code *code, const weft_exec *exec, const product *p,
                            size_t k, size_t r, const uint8_t *matrix, size_t stride,
                            bool accumulate) {
  return multiply_many(code, exec, p, 1, k, r, matrix, stride, accumulate);
}

// Provides a plan's matrix in the form that `multiply` takes: coefficients, or bits made for the
// call.
static weft_status matrix_of(const weft_plan *plan, const uint8_t **matrix, size_t *stride,
                             uint8_t **made) {
  const weft_code *code = plan->code;
  *made = NULL;
  *matrix = plan->matrix;
  *stride = plan->inputs;
  if (!weft_code_is_crs(code))
    return WEFT_OK;
  *stride = plan->inputs * code->w;
  *made = weft_ctx_take(code->ctx, plan->outputs * code->w * *stride, 64);
  if (!*made)
    return WEFT_E_NOMEM;
  weft_matrix_to_bits(&code->generator.field, plan->matrix, plan->outputs, plan->inputs, *made);
  *matrix = *made;
  return WEFT_OK;
}

// Returns the distance in scratch between groups of `unit` bytes.
static size_t group_step(size_t unit) { return (unit + 15) / 16 * 16; }

// Replaces the `count` inputs of a one-group product, of which held[i] bytes exist, by copies in
// `scratch` padded with zeros, made by one launch.
static weft_status pad_inputs(weft_call *call, product *p, size_t count, const size_t *held,
                              uint8_t *scratch) {
  const size_t step = group_step(p->bytes);
  weft_kept *kept;
  WEFT_TRY(weft_call_keep(call->queue->ctx, call, 2 * count * sizeof(weft_device_piece), &kept));
  weft_device_piece *const pieces = (weft_device_piece *)(void *)kept->bytes;
  for (size_t i = 0; i < count; i++) {
    uint8_t *const to = scratch + i * step;
    pieces[2 * i] = (weft_device_piece){to, p->in[i], held[i]};
    pieces[2 * i + 1] = (weft_device_piece){to + held[i], NULL, p->bytes - held[i]};
    p->in[i] = to;
  }
  p->mem = WEFT_MEM_DEVICE;
  return weft_device_copy_pieces(&call->exec, pieces, 2 * count);
}

typedef weft_device_run run;

static uint8_t *shard_of(const run *r, const weft_stripe *stripe, size_t i) {
  return weft_device_run_shard(r, stripe, i);
}

// Returns how many bytes shard i of the plan has of a group cut to `tail` bytes: parity shards have
// all of it.
static size_t held(const run *r, size_t i, size_t tail, size_t unit) {
  return r->plan->ids[i] < r->plan->code->k ? tail : unit;
}

// Processes the incomplete last group, padded with zeros in scratch.
static weft_status run_tail(const run *r, const weft_stripe *stripe, size_t done) {
  const weft_code *code = r->plan->code;
  const size_t unit = weft_code_unit_bytes(code), tail = stripe->bytes - done;
  const size_t k = r->plan->inputs, outputs = r->plan->outputs, step = group_step(unit);
  void *memory;
  WEFT_TRY(weft_device_scratch(&r->exec, (k + outputs) * step, &memory));
  product p = {.bytes = unit, .mem = stripe->mem};
  size_t bytes[POINTERS];
  for (size_t i = 0; i < k; i++) {
    p.in[i] = shard_of(r, stripe, i) + done;
    bytes[i] = held(r, i, tail, unit);
  }
  weft_call here = *r->call; // its queue, but the stream that this run uses
  here.exec = r->exec;
  weft_status status = pad_inputs(&here, &p, k, bytes, memory);
  for (size_t i = 0; i < outputs; i++)
    p.out[i] = (uint8_t *)memory + (k + i) * step;
  if (status == WEFT_OK)
    status = multiply(code, &r->exec, &p, k, outputs, r->matrix, r->stride, false);
  for (size_t i = 0; i < outputs && status == WEFT_OK; i++)
    status =
        weft_device_copy(r->exec.device, shard_of(r, stripe, k + i) + done, stripe->mem, p.out[i],
                         WEFT_MEM_DEVICE, held(r, k + i, tail, unit), r->exec.stream);
  weft_device_scratch_free(&r->exec, memory);
  return status;
}

weft_status weft_device_run_resident(const run *r, const weft_stripe *stripe) {
  const weft_code *code = r->plan->code;
  const size_t done = stripe->bytes / weft_code_unit_bytes(code) * weft_code_unit_bytes(code);
  product p = {.bytes = done, .mem = stripe->mem, .factors = r->plan->factors};
  const size_t k = r->plan->inputs, outputs = r->plan->outputs;
  for (size_t i = 0; i < k; i++)
    p.in[i] = shard_of(r, stripe, i);
  for (size_t i = 0; i < outputs; i++)
    p.out[i] = shard_of(r, stripe, k + i);
  WEFT_TRY(multiply(code, &r->exec, &p, k, outputs, r->matrix, r->stride, false));
  return done < stripe->bytes ? run_tail(r, stripe, done) : WEFT_OK;
}

// Whether the plan's inputs are consecutive shards, and its outputs too, as in encoding.
static bool runs_on(const run *r) {
  const uint8_t *ids = r->plan->ids;
  const size_t k = r->plan->inputs;
  for (size_t i = 1; i < k + r->plan->outputs && !r->in_order; i++)
    if (i != k && ids[i] != ids[i - 1] + 1)
      return false;
  return true;
}

static bool strided(const run *r, const weft_stripe *stripe) {
  return !stripe->shards && stripe->bytes <= STRIDED_BYTES && !weft_code_is_crs(r->plan->code) &&
         runs_on(r);
}

// Returns how many of the next stripes one call of the row can process; it launches once for
// products that are alike: resident, of one length in whole groups.
static size_t bundled(const run *r, const weft_stripe *stripes, size_t count) {
  const weft_code *code = r->plan->code;
  const bool by_stride = strided(r, stripes);
  const size_t room = by_stride ? BUNDLE : POINTERS / (r->plan->inputs + r->plan->outputs);
  const size_t most = room < BUNDLE ? room : BUNDLE;
  size_t n = 0;
  while (n < count && n < most && stripes[n].mem == WEFT_MEM_DEVICE && stripes[n].bytes > 0 &&
         stripes[n].bytes % weft_code_unit_bytes(code) == 0 &&
         strided(r, &stripes[n]) == by_stride &&
         (by_stride || stripes[n].bytes == stripes[0].bytes))
    n++;
  return n > 1 ? n : 0;
}

// Runs short stripes by base and stride: a launch for each would take longer than its product.
static weft_status run_strided(const run *r, const weft_stripe *stripes, size_t count) {
  const weft_code *code = r->plan->code;
  const weft_backend *row = code->ctx->row;
  weft_gemm gemms[BUNDLE];
  for (size_t s = 0; s < count; s++) {
    const weft_stripe *stripe = &stripes[s];
    gemms[s] = (weft_gemm){
        .m = r->plan->outputs,
        .k = r->plan->inputs,
        .len = stripe->bytes,
        .a = r->matrix,
        .a_stride = r->stride,
        .x = {.base = shard_of(r, stripe, 0), .stride = stripe->stride, .mem = WEFT_MEM_DEVICE},
        .y = {.base = shard_of(r, stripe, r->plan->inputs),
              .stride = stripe->stride,
              .mem = WEFT_MEM_DEVICE},
        .factors = r->plan->factors};
  }
  return row->gemm(row, &r->exec, gemms, count);
}

static weft_status run_bundle(const run *r, const weft_stripe *stripes, size_t count) {
  const weft_code *code = r->plan->code;
  const size_t k = r->plan->inputs, outputs = r->plan->outputs;
  if (strided(r, stripes))
    return run_strided(r, stripes, count);
  product p = {.bytes = stripes->bytes, .mem = WEFT_MEM_DEVICE, .factors = r->plan->factors};
  for (size_t s = 0; s < count; s++) {
    for (size_t i = 0; i < k; i++)
      p.in[s * k + i] = shard_of(r, &stripes[s], i);
    for (size_t i = 0; i < outputs; i++)
      p.out[s * outputs + i] = shard_of(r, &stripes[s], k + i);
  }
  return multiply_many(code, &r->exec, &p, count, k, outputs, r->matrix, r->stride, false);
}

static bool device_failed(weft_status status) {
  return status == WEFT_E_DEVICE || status == WEFT_E_DEVICE_NOMEM || status == WEFT_E_DEVICE_LOST;
}

// Whether the call has its own stream: nothing preceded it, and everything is done when it returns.
static bool alone(const run *r) { return r->call->queue == &r->call->own; }

static weft_status wait_for_all(run *r) {
  const weft_status status = weft_device_stream_wait(r->exec.device, r->exec.stream);
  r->waited = r->waited != WEFT_OK ? r->waited : status;
  return status;
}

// Runs a stripe on the host row, after waiting for everything on the queue.
static weft_status run_on_host(run *r, const weft_stripe *stripe, bool failed) {
  const weft_status waited = wait_for_all(r);
  r->failed = r->failed || failed || waited != WEFT_OK;
  if (waited != WEFT_OK && !failed && !alone(r))
    return waited; // the inputs may not be there
  return weft_plan_execute(r->plan, stripe, 1, r->in_order);
}

static bool in_place(const run *r, const weft_stripe *stripe) {
  return stripe->mem == WEFT_MEM_DEVICE ||
         (r->plan->code->zero_copy && stripe->mem == WEFT_MEM_PINNED);
}

static bool travels(const run *r, const weft_stripe *stripe) {
  return !in_place(r, stripe) && r->plan->inputs * stripe->bytes >= SMALL_BYTES;
}

// Runs the first stripe of `count`, or as many as pass through the device together.
static weft_status run_stripes(run *r, const weft_stripe *stripes, size_t count, size_t *done) {
  bool ordinary = false;
  size_t n = 0;
  for (; n < count && travels(r, &stripes[n]); n++)
    ordinary = ordinary || stripes[n].mem == WEFT_MEM_HOST;
  *done = n > 0 ? n : 1;
  if (stripes->mem == WEFT_MEM_DEVICE)
    return weft_device_run_resident(r, stripes);
  if (n == 0 && !in_place(r, stripes))
    return run_on_host(r, stripes, false);
  weft_status status =
      n > 0 ? weft_device_run_travelling(r, stripes, n) : weft_device_run_resident(r, stripes);
  // Ordinary memory belongs to the caller again when the call returns; and device failures show
  // only in a wait.
  if (status == WEFT_OK && ordinary)
    status = wait_for_all(r);
  r->under_way = r->under_way || (status == WEFT_OK && !ordinary);
  if (!device_failed(status))
    return status;
  for (size_t i = 0; i < *done; i++)
    WEFT_TRY(run_on_host(r, &stripes[i], true));
  return WEFT_OK;
}

// Ends a call. Without a queue it waits here for work in progress, and if the device has failed,
// the host row recomputes everything, unless some stripes are in DEVICE memory, which it cannot
// access. For these a failure that an earlier wait reported, and that does not show again, is
// returned.
static weft_status end_call(const run *r, const weft_stripe *stripes, size_t count,
                            weft_status status) {
  const weft_status ended = weft_call_end(r->plan->code->ctx, r->call, status);
  if (status != WEFT_OK)
    return ended;
  for (size_t i = 0; i < count; i++)
    if (stripes[i].mem == WEFT_MEM_DEVICE)
      return ended != WEFT_OK ? ended : r->waited;
  if (!alone(r) || !(r->failed || device_failed(ended)))
    return ended;
  return r->under_way ? weft_plan_execute(r->plan, stripes, count, r->in_order) : WEFT_OK;
}

weft_status weft_device_run_plan(weft_plan *plan, const weft_stripe *stripes, size_t count,
                                 bool in_order, weft_queue *queue) {
  weft_ctx *ctx = plan->code->ctx;
  if (!plan->outputs || !count)
    return WEFT_OK;
  weft_call call;
  uint8_t *made;
  run r = {.plan = plan, .call = &call, .in_order = in_order};
  WEFT_TRY(matrix_of(plan, &r.matrix, &r.stride, &made));
  weft_status status = weft_call_begin(ctx, queue, &call);
  if (status == WEFT_OK) {
    r.exec = call.exec;
    for (size_t i = 0, n; i < count && status == WEFT_OK; i += n) {
      n = bundled(&r, stripes + i, count - i);
      status = n > 0 ? run_bundle(&r, stripes + i, n) : run_stripes(&r, stripes + i, count - i, &n);
    }
    status = end_call(&r, stripes, count, status);
  }
  weft_ctx_give(ctx, made);
  return status;
}

// ---------------------------------------------------------------------------------------------
// Parity in parts

weft_status weft_device_add_columns(const weft_code *code, size_t first, size_t count, size_t index,
                                    const uint8_t *const *x, size_t sources,
                                    const weft_stripe *stripe, bool accumulate, weft_call *call) {
  const size_t w = weft_code_is_crs(code) ? code->w : 1, unit = weft_code_unit_bytes(code);
  const uint8_t *all = weft_code_is_crs(code) ? code->bits : code->generator.parity;
  uint8_t matrix[WEFT_MAX_SHARDS * 8 * 16]; // (count * w, sources * w), sources <= 2
  const size_t stride = sources * w;
  for (size_t r = 0; r < count * w; r++)
    for (size_t s = 0; s < sources; s++)
      memcpy(matrix + r * stride + s * w, all + ((first * w + r) * code->k + index) * w, w);
  const size_t tail = stripe->bytes % unit, whole = stripe->bytes - tail;
  product p = {.bytes = whole, .mem = WEFT_MEM_DEVICE};
  for (size_t s = 0; s < sources; s++)
    p.in[s] = x[s];
  for (size_t i = 0; i < count; i++)
    p.out[i] = weft_stripe_shard(stripe, code->k + first + i);
  const weft_exec *exec = &call->exec;
  WEFT_TRY(multiply(code, exec, &p, sources, count, matrix, stride, accumulate));
  if (!tail)
    return WEFT_OK;
  const size_t bytes[] = {tail, tail};
  void *memory;
  WEFT_TRY(weft_device_scratch(exec, sources * group_step(unit), &memory));
  for (size_t s = 0; s < sources; s++)
    p.in[s] += whole;
  for (size_t i = 0; i < count; i++)
    p.out[i] += whole;
  p.bytes = unit;
  weft_status status = pad_inputs(call, &p, sources, bytes, memory);
  if (status == WEFT_OK)
    status = multiply(code, exec, &p, sources, count, matrix, stride, accumulate);
  weft_device_scratch_free(exec, memory);
  return status;
}

// Recomputes the parity in scratch, and compares it there.
static weft_status compare(weft_code *code, const weft_stripe *stripe, weft_call *call,
                           const run *r, uint8_t *memory, size_t place, uint32_t *flags) {
  uint8_t *shards[POINTERS];
  const size_t k = code->k, bytes = weft_code_parity_bytes(code, stripe->bytes);
  for (size_t i = 0; i < k + code->m; i++)
    shards[i] = i < k ? weft_stripe_shard(stripe, i) : memory + (i - k) * place;
  const weft_stripe made = {.shards = shards, .bytes = stripe->bytes, .mem = WEFT_MEM_DEVICE};
  WEFT_TRY(weft_device_run_resident(r, &made));
  static const uint32_t none[WEFT_MAX_SHARDS];
  WEFT_TRY(weft_call_upload(call, flags, none, WEFT_MEM_HOST, code->m * sizeof *flags));
  for (size_t i = 0; i < code->m; i++)
    WEFT_TRY(weft_device_compare(&call->exec, shards[k + i], weft_stripe_shard(stripe, k + i),
                                 bytes, flags + i));
  return WEFT_OK;
}

weft_status weft_device_verify(weft_code *code, const weft_stripe *stripe, bool *differs,
                               weft_queue *queue) {
  weft_ctx *ctx = code->ctx;
  if (!code->m)
    return WEFT_OK;
  const size_t place = (weft_code_parity_bytes(code, stripe->bytes) + 255) / 256 * 256;
  uint32_t flags[WEFT_MAX_SHARDS] = {0};
  weft_call call;
  uint8_t *made;
  void *memory = NULL;
  run r = {.plan = code->encode, .call = &call};
  WEFT_TRY(matrix_of(code->encode, &r.matrix, &r.stride, &made));
  weft_status status = weft_call_begin(ctx, queue, &call);
  if (status == WEFT_OK) {
    r.exec = call.exec;
    status = weft_device_scratch(&call.exec, code->m * (place + sizeof(uint32_t)), &memory);
    uint32_t *const at = (uint32_t *)(void *)((uint8_t *)memory + code->m * place);
    if (status == WEFT_OK)
      status = compare(code, stripe, &call, &r, memory, place, at);
    if (status == WEFT_OK)
      status = weft_device_copy(ctx->device, flags, WEFT_MEM_HOST, at, WEFT_MEM_DEVICE,
                                code->m * sizeof *flags, call.exec.stream);
    if (status == WEFT_OK)
      status = weft_device_stream_wait(ctx->device, call.exec.stream);
    weft_device_scratch_free(&call.exec, memory);
    status = weft_call_end(ctx, &call, status);
  }
  for (size_t i = 0; i < code->m; i++)
    differs[i] = flags[i] != 0;
  weft_ctx_give(ctx, made);
  return status;
}
