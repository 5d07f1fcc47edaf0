// SPDX-License-Identifier: Apache-2.0
// Queues: a device stream, and the work that calls have deferred until it is idle. On host contexts
// a queue orders nothing, since work is finished when a call returns.
#include <string.h>

#include "lib/chunks.h"
#include "lib/ctx.h"
#include "weft/cuda.h"

static void push(weft_queue *queue, weft_deferred *deferred) {
  deferred->next = queue->deferred;
  queue->deferred = deferred;
}

// Deferred work is stacked, newest first; it is finished in the order it was added.
static void finish_all(weft_queue *queue, weft_status status) {
  weft_chunks_finish(queue, status);
  weft_deferred *in_order = NULL;
  while (queue->deferred) {
    weft_deferred *deferred = queue->deferred;
    queue->deferred = deferred->next;
    deferred->next = in_order;
    in_order = deferred;
  }
  while (in_order) {
    weft_deferred *deferred = in_order;
    in_order = deferred->next;
    deferred->finish(deferred, queue->ctx, status);
  }
}

weft_status weft_queue_new(weft_ctx *ctx, weft_queue **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx)
    return WEFT_E_ARGUMENT;
  weft_queue *queue = weft_ctx_take(ctx, sizeof *queue, _Alignof(weft_queue));
  if (!queue)
    return WEFT_E_NOMEM;
  *queue = (weft_queue){.ctx = ctx};
  if (ctx->device) {
    const weft_status status = weft_device_stream_new(ctx->device, &queue->stream);
    if (status != WEFT_OK) {
      weft_ctx_give(ctx, queue);
      return status;
    }
  }
  *out = queue;
  return WEFT_OK;
}

void weft_queue_free(weft_queue *queue) {
  if (!queue)
    return;
  (void)weft_queue_wait(queue); // whatever went wrong, deferred work is freed
  if (queue->stream && !queue->foreign)
    weft_device_stream_free(queue->ctx->device, queue->stream);
  for (size_t i = 0; i < WEFT_SIDE_STREAMS; i++)
    if (queue->side[i])
      weft_device_stream_free(queue->ctx->device, queue->side[i]);
  weft_ctx_give(queue->ctx, queue);
}

weft_status weft_queue_wrap_cuda_stream(weft_ctx *ctx, void *stream, weft_queue **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx || !stream)
    return WEFT_E_ARGUMENT;
  if (!ctx->device)
    return WEFT_E_UNSUPPORTED;
  weft_queue *queue = weft_ctx_take(ctx, sizeof *queue, _Alignof(weft_queue));
  if (!queue)
    return WEFT_E_NOMEM;
  *queue = (weft_queue){.ctx = ctx, .stream = stream, .foreign = true};
  *out = queue;
  return WEFT_OK;
}

// Passes the stream's status to all deferred work.
static weft_status settle(weft_queue *queue, weft_status status) {
  status = status == WEFT_OK ? queue->failed : status;
  queue->failed = WEFT_OK;
  // Unless the device is lost, it may still be using memory that is about to be reused.
  if (status != WEFT_OK && status != WEFT_E_DEVICE_LOST)
    (void)weft_device_stream_wait(queue->ctx->device, queue->stream);
  finish_all(queue, status);
  status = status == WEFT_OK ? queue->owed : status;
  queue->owed = WEFT_OK;
  return status;
}

weft_status weft_queue_poll(weft_queue *queue) {
  if (!queue)
    return WEFT_E_ARGUMENT;
  weft_status status = WEFT_OK;
  if (queue->stream)
    status = weft_device_stream_poll(queue->ctx->device, queue->stream);
  return status == WEFT_PENDING ? status : settle(queue, status);
}

weft_status weft_queue_wait(weft_queue *queue) {
  if (!queue)
    return WEFT_E_ARGUMENT;
  weft_status status = WEFT_OK;
  if (queue->stream) {
    weft_chunks_wait(queue);
    status = weft_device_stream_wait(queue->ctx->device, queue->stream);
  }
  return settle(queue, status);
}

void weft_queue_drain(weft_queue *queue) { queue->owed = weft_queue_wait(queue); }

// --- calls ---

static weft_status borrow_stream(weft_ctx *ctx, void **out) {
  pthread_mutex_lock(&ctx->spare_lock);
  void *stream = ctx->spares > 0 ? ctx->spare[--ctx->spares] : NULL;
  pthread_mutex_unlock(&ctx->spare_lock);
  *out = stream;
  return stream ? WEFT_OK : weft_device_stream_new(ctx->device, out);
}

static void return_stream(weft_ctx *ctx, void *stream) {
  pthread_mutex_lock(&ctx->spare_lock);
  const bool kept = ctx->spares < WEFT_SPARE_STREAMS;
  if (kept)
    ctx->spare[ctx->spares++] = stream;
  pthread_mutex_unlock(&ctx->spare_lock);
  if (!kept)
    weft_device_stream_free(ctx->device, stream);
}

weft_status weft_queue_side(weft_queue *queue, size_t index, void **out) {
  weft_status status = WEFT_OK;
  if (!queue->side[index])
    status = borrow_stream(queue->ctx, &queue->side[index]);
  *out = queue->side[index];
  return status;
}

weft_status weft_call_begin(weft_ctx *ctx, weft_queue *queue, weft_call *call) {
  if (queue && queue->ctx != ctx)
    return WEFT_E_ARGUMENT;
  *call = (weft_call){.own = {.ctx = ctx}, .exec = weft_ctx_host_exec(ctx, ctx->pool)};
  call->queue = queue ? queue : &call->own;
  if (!queue && ctx->device)
    WEFT_TRY(borrow_stream(ctx, &call->own.stream));
  call->exec.device = ctx->device;
  call->exec.stream = call->queue->stream;
  return WEFT_OK;
}

weft_status weft_call_end(weft_ctx *ctx, weft_call *call, weft_status status) {
  if (!ctx->device) { // the work is done: free what it left at once, with or without a queue
    finish_all(call->queue, WEFT_OK);
    return status;
  }
  if (call->queue != &call->own) {
    // Work on the queue uses buffers that now belong to the caller again.
    if (status != WEFT_OK && status != WEFT_DEPENDENT && status != WEFT_PENDING)
      weft_queue_drain(call->queue);
    return status;
  }
  const weft_status waited = weft_queue_wait(call->queue);
  if (call->own.stream)
    return_stream(ctx, call->own.stream);
  for (size_t i = 0; i < WEFT_SIDE_STREAMS; i++)
    if (call->own.side[i])
      return_stream(ctx, call->own.side[i]);
  return status != WEFT_OK ? status : waited;
}

void weft_call_defer(weft_call *call, weft_deferred *deferred) { push(call->queue, deferred); }

// --- memory that lasts ---

static void finish_kept(weft_deferred *self, weft_ctx *ctx, weft_status status) {
  weft_kept *kept = (weft_kept *)self;
  (void)status;
  weft_free(ctx, kept->mem, kept->bytes);
  weft_ctx_give(ctx, kept);
}

static weft_status keep(weft_ctx *ctx, weft_call *call, weft_mem mem, size_t bytes,
                        weft_kept **out) {
  weft_kept *kept = weft_ctx_take(ctx, sizeof *kept, _Alignof(weft_kept));
  if (!kept)
    return WEFT_E_NOMEM;
  *kept = (weft_kept){.deferred = {.finish = finish_kept}, .mem = mem};
  void *memory;
  const weft_status status = weft_alloc(ctx, mem, bytes, &memory);
  if (status != WEFT_OK) {
    weft_ctx_give(ctx, kept);
    return status;
  }
  kept->bytes = memory;
  weft_call_defer(call, &kept->deferred);
  *out = kept;
  return WEFT_OK;
}

weft_status weft_call_keep(weft_ctx *ctx, weft_call *call, size_t bytes, weft_kept **out) {
  return keep(ctx, call, ctx->device ? WEFT_MEM_PINNED : WEFT_MEM_HOST, bytes, out);
}

weft_status weft_call_keep_source(weft_ctx *ctx, weft_call *call, size_t bytes, weft_kept **out) {
  const bool pinned = ctx->device && bytes <= WEFT_STAGED_CHUNK;
  return keep(ctx, call, pinned ? WEFT_MEM_PINNED : WEFT_MEM_HOST, bytes, out);
}
