// SPDX-License-Identifier: Apache-2.0
// Batch decoding: one inversion and one product per segment. On host rows, many segments are
// decoded at once, one thread each (Shojania and Li's multi-segment decoding); a few are decoded
// one after the other, each with all threads. Device rows: decode_device.c.
#include <stdatomic.h>
#include <string.h>

#include "lib/decode_batch.h"

enum { LINE = 64 };

static weft_status check(const weft_ctx *ctx, const weft_decode_job *job) {
  if (job->blocks < 1 || job->blocks > WEFT_MAX_BLOCKS || job->block_bytes < 1 ||
      job->block_bytes > WEFT_MAX_BLOCK_BYTES || !job->coefficients || !job->out ||
      (!job->payload_rows && !job->payload))
    return WEFT_E_ARGUMENT;
  if (!weft_stride_valid(job->blocks, job->coefficients_stride, job->blocks) ||
      !weft_stride_valid(job->blocks, job->out_stride, job->block_bytes) ||
      (!job->payload_rows &&
       !weft_stride_valid(job->blocks, job->payload_stride, job->block_bytes)))
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; job->payload_rows && i < job->blocks; i++)
    if (!job->payload_rows[i])
      return WEFT_E_ARGUMENT;
  WEFT_TRY(weft_mem_check(job->mem, ctx->device != NULL));
  return weft_mem_check(job->coefficients_mem, ctx->device != NULL);
}

// --- host ---

// Decodes one segment with the threads of `pool`.
static weft_status decode(const weft_ctx *ctx, weft_pool *pool, const weft_decode_job *job) {
  const weft_exec exec = weft_ctx_host_exec(ctx, pool);
  uint8_t *matrix = weft_ctx_take(ctx, job->blocks * job->blocks, LINE);
  if (!matrix)
    return WEFT_E_NOMEM;
  weft_decode_matrix(job, matrix);
  uint8_t singular = 0;
  const weft_invert invert = {
      .count = 1, .k = job->blocks, .in = matrix, .out = matrix, .singular = &singular};
  weft_status status = ctx->host->invert(ctx->host, &exec, &invert);
  if (status == WEFT_OK && singular)
    status = WEFT_E_SINGULAR;
  if (status == WEFT_OK) {
    const weft_gemm product = weft_decode_product(job, matrix, WEFT_MEM_HOST);
    status = ctx->host->gemm(ctx->host, &exec, &product, 1);
  }
  weft_ctx_give(ctx, matrix);
  return status;
}

typedef struct host_batch {
  const weft_ctx *ctx;
  weft_decode_job *jobs;
  weft_pool *inner; // the threads that share one segment
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

weft_status weft_decode_batch(weft_ctx *ctx, weft_decode_job *jobs, size_t count,
                              weft_queue *queue) {
  if (!jobs && count > 0)
    return WEFT_E_ARGUMENT;
  weft_status status = ctx ? WEFT_OK : WEFT_E_ARGUMENT;
  for (size_t i = 0; status == WEFT_OK && i < count; i++)
    status = check(ctx, &jobs[i]);
  weft_call call;
  if (status == WEFT_OK)
    status = weft_call_begin(ctx, queue, &call);
  for (size_t i = 0; i < count; i++)
    jobs[i].status = status == WEFT_OK ? WEFT_PENDING : status;
  WEFT_TRY(status);
  if (ctx->device && ctx->row->invert)
    return weft_call_end(ctx, &call, weft_decode_on_device(ctx, jobs, count, &call));
  decode_on_host(ctx, jobs, count);
  for (size_t i = 0; i < count && status == WEFT_OK; i++)
    if (jobs[i].status != WEFT_E_SINGULAR)
      status = jobs[i].status;
  return weft_call_end(ctx, &call, status);
}
