// SPDX-License-Identifier: Apache-2.0
// Batch decoding: one inverse and one product for each segment. On host rows many segments are
// decoded at once, one thread each (Shojania and Li's multi-segment decoding); few are decoded in
// turn, with all threads in each. On device rows everything is enqueued.
#include <stdatomic.h>
#include <string.h>

#include "lib/ctx.h"
#include "lib/staging.h"
#include "weft/rlnc.h"

enum { LINE = 64 };

static weft_status check(const weft_ctx *ctx, const weft_decode_job *job) {
  if (job->blocks < 1 || job->blocks > WEFT_MAX_BLOCKS || job->block_bytes < 1 ||
      job->block_bytes > WEFT_MAX_BLOCK_BYTES || !job->coefficients || !job->out ||
      (!job->payload_rows && !job->payload))
    return WEFT_E_ARGUMENT;
  if (job->blocks > 1 &&
      (job->coefficients_stride < job->blocks || job->out_stride < job->block_bytes ||
       (!job->payload_rows && job->payload_stride < job->block_bytes)))
    return WEFT_E_ARGUMENT;
  const bool on_device = job->mem == WEFT_MEM_DEVICE || job->coefficients_mem == WEFT_MEM_DEVICE;
  return on_device && !ctx->device ? WEFT_E_UNSUPPORTED : WEFT_OK;
}

static void copy_matrix(const weft_decode_job *job, uint8_t *out) {
  for (size_t i = 0; i < job->blocks; i++)
    memcpy(out + i * job->blocks, job->coefficients + i * job->coefficients_stride, job->blocks);
}

// inverse * payloads; where the inverse lies is the caller's business.
static weft_gemm product_of(const weft_decode_job *job, const uint8_t *inverse, weft_mem mem) {
  return (weft_gemm){.m = job->blocks,
                     .k = job->blocks,
                     .len = job->block_bytes,
                     .a = inverse,
                     .a_stride = job->blocks,
                     .a_mem = mem,
                     .x = {.base = job->payload,
                           .stride = job->payload_stride,
                           .ptr = job->payload_rows,
                           .mem = job->mem},
                     .y = {.base = job->out, .stride = job->out_stride, .mem = job->mem}};
}

// --- host ---

// One segment, on the threads of `pool`.
static weft_status decode(const weft_ctx *ctx, weft_pool *pool, const weft_decode_job *job) {
  const weft_exec exec = weft_ctx_host_exec(ctx, pool);
  uint8_t *matrix = weft_ctx_take(ctx, job->blocks * job->blocks, LINE);
  if (!matrix)
    return WEFT_E_NOMEM;
  copy_matrix(job, matrix);
  uint8_t singular = 0;
  const weft_invert invert = {
      .count = 1, .k = job->blocks, .in = matrix, .out = matrix, .singular = &singular};
  weft_status status = ctx->host->invert(ctx->host, &exec, &invert);
  if (status == WEFT_OK && singular)
    status = WEFT_E_SINGULAR;
  if (status == WEFT_OK) {
    const weft_gemm product = product_of(job, matrix, WEFT_MEM_HOST);
    status = ctx->host->gemm(ctx->host, &exec, &product, 1);
  }
  weft_ctx_give(ctx, matrix);
  return status;
}

typedef struct host_batch {
  const weft_ctx *ctx;
  weft_decode_job *jobs;
  weft_pool *inner; // the threads inside of one segment
} host_batch;

static void decode_one(void *user, size_t index) {
  const host_batch *batch = user;
  weft_decode_job *job = &batch->jobs[index];
  job->status = decode(batch->ctx, batch->inner, job);
}

static void decode_on_host(const weft_ctx *ctx, weft_decode_job *jobs, size_t count) {
  const bool many = count >= weft_pool_threads(ctx->pool);
  host_batch batch = {.ctx = ctx, .jobs = jobs, .inner = many ? NULL : ctx->pool};
  weft_pool_run(many ? ctx->pool : NULL, count, decode_one, &batch);
}

// --- device ---

// What one run of jobs of equal n needs until the queue has passed it.
typedef struct device_batch {
  weft_deferred deferred;
  weft_decode_job *jobs;
  size_t count;
  void *matrices; // device: (count, n, n), then (count) flags
  void *flags;    // pinned: (count)
} device_batch;

static void finish_device(weft_deferred *self, weft_ctx *ctx, weft_status status) {
  device_batch *batch = (device_batch *)self;
  for (size_t i = 0; i < batch->count; i++)
    if (batch->jobs[i].status == WEFT_PENDING)
      batch->jobs[i].status = status != WEFT_OK                    ? status
                              : ((const uint8_t *)batch->flags)[i] ? WEFT_E_SINGULAR
                                                                   : WEFT_OK;
  weft_device_free(ctx->device, WEFT_MEM_DEVICE, batch->matrices);
  weft_device_free(ctx->device, WEFT_MEM_PINNED, batch->flags);
  weft_ctx_give(ctx, batch);
}

static weft_status take_device_memory(weft_ctx *ctx, device_batch *batch, size_t bytes) {
  WEFT_TRY(weft_device_alloc(ctx->device, WEFT_MEM_DEVICE, bytes + batch->count, &batch->matrices));
  return weft_device_alloc(ctx->device, WEFT_MEM_PINNED, batch->count, &batch->flags);
}

static weft_status enqueue_products(const weft_ctx *ctx, const device_batch *batch, weft_call *call,
                                    size_t matrix_bytes) {
  weft_gemm *products = weft_ctx_take(ctx, batch->count * sizeof *products, _Alignof(weft_gemm));
  if (!products)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < batch->count; i++)
    products[i] = product_of(&batch->jobs[i], (const uint8_t *)batch->matrices + i * matrix_bytes,
                             WEFT_MEM_DEVICE);
  const weft_status status = weft_call_products(call, products, batch->count);
  weft_ctx_give(ctx, products);
  return status;
}

// Whether the run's matrices are one dense array that the device reaches.
static bool matrices_follow(const device_batch *batch) {
  const weft_decode_job *first = &batch->jobs[0];
  const size_t n = first->blocks;
  for (size_t i = 0; i < batch->count; i++) {
    const weft_decode_job *job = &batch->jobs[i];
    if (job->coefficients_mem == WEFT_MEM_HOST ||
        job->coefficients_mem != first->coefficients_mem ||
        (n > 1 && job->coefficients_stride != n) ||
        job->coefficients != first->coefficients + i * n * n)
      return false;
  }
  return true;
}

// Dense copies of the run's matrices, on the device.
static weft_status gather_matrices(weft_ctx *ctx, const device_batch *batch, weft_call *call,
                                   uint8_t *out) {
  const size_t n = batch->jobs[0].blocks, matrix_bytes = n * n;
  if (matrices_follow(batch))
    return weft_call_upload(call, out, batch->jobs[0].coefficients, batch->jobs[0].coefficients_mem,
                            batch->count * matrix_bytes);
  size_t host = 0; // jobs whose matrices lie where the CPU reads them: staged together
  for (size_t i = 0; i < batch->count; i++)
    host += batch->jobs[i].coefficients_mem != WEFT_MEM_DEVICE;
  weft_kept *staged = NULL;
  if (host > 0)
    WEFT_TRY(weft_call_keep(ctx, call, batch->count * matrix_bytes, &staged));
  for (size_t i = 0; staged && i < batch->count; i++)
    if (batch->jobs[i].coefficients_mem != WEFT_MEM_DEVICE)
      copy_matrix(&batch->jobs[i], staged->bytes + i * matrix_bytes);
  if (staged)
    WEFT_TRY(weft_call_upload(call, out, staged->bytes, staged->mem, batch->count * matrix_bytes));
  for (size_t i = 0; i < batch->count; i++) {
    const weft_decode_job *job = &batch->jobs[i];
    if (job->coefficients_mem == WEFT_MEM_DEVICE)
      WEFT_TRY(weft_device_copy_rows(ctx->device, out + i * matrix_bytes, n, WEFT_MEM_DEVICE,
                                     job->coefficients, n > 1 ? job->coefficients_stride : n,
                                     WEFT_MEM_DEVICE, n, n, call->exec.stream));
  }
  return WEFT_OK;
}

// Inverts and multiplies jobs of one n.
static weft_status enqueue(weft_ctx *ctx, device_batch *batch, weft_call *call) {
  const size_t n = batch->jobs[0].blocks, matrix_bytes = n * n;
  const size_t bytes = batch->count * matrix_bytes;
  WEFT_TRY(take_device_memory(ctx, batch, bytes));
  uint8_t *matrices = batch->matrices, *flags = matrices + bytes;
  WEFT_TRY(gather_matrices(ctx, batch, call, matrices));
  const weft_invert invert = {.count = batch->count,
                              .k = n,
                              .in = matrices,
                              .out = matrices,
                              .singular = flags,
                              .mem = WEFT_MEM_DEVICE};
  WEFT_TRY(ctx->row->invert(ctx->row, &call->exec, &invert));
  WEFT_TRY(weft_device_copy(ctx->device, batch->flags, WEFT_MEM_PINNED, flags, WEFT_MEM_DEVICE,
                            batch->count, call->exec.stream));
  return enqueue_products(ctx, batch, call, matrix_bytes);
}

static weft_status decode_on_device(weft_ctx *ctx, weft_decode_job *jobs, size_t count,
                                    weft_call *call) {
  size_t equal;
  for (size_t first = 0; first < count; first += equal) {
    for (equal = 1; first + equal < count && jobs[first + equal].blocks == jobs[first].blocks;)
      equal++;
    device_batch *batch = weft_ctx_take(ctx, sizeof *batch, _Alignof(device_batch));
    if (!batch) {
      for (size_t i = first; i < count; i++)
        jobs[i].status = WEFT_E_NOMEM;
      return WEFT_E_NOMEM;
    }
    *batch =
        (device_batch){.deferred = {.finish = finish_device}, .jobs = jobs + first, .count = equal};
    weft_call_defer(call, &batch->deferred); // from here on the queue frees it
    const weft_status status = enqueue(ctx, batch, call);
    if (status != WEFT_OK) {
      for (size_t i = first; i < count; i++)
        jobs[i].status = status;
      return status;
    }
  }
  return WEFT_OK;
}

weft_status weft_decode_batch(weft_ctx *ctx, weft_decode_job *jobs, size_t count,
                              weft_queue *queue) {
  if (!ctx || (!jobs && count > 0))
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(check(ctx, &jobs[i]));
  weft_call call;
  weft_status status = weft_call_begin(ctx, queue, &call);
  for (size_t i = 0; i < count; i++)
    jobs[i].status = status == WEFT_OK ? WEFT_PENDING : status;
  WEFT_TRY(status);
  if (ctx->device && ctx->row->invert)
    return weft_call_end(ctx, &call, decode_on_device(ctx, jobs, count, &call));
  decode_on_host(ctx, jobs, count);
  for (size_t i = 0; i < count && status == WEFT_OK; i++)
    if (jobs[i].status != WEFT_E_SINGULAR)
      status = jobs[i].status;
  return weft_call_end(ctx, &call, status);
}
