// SPDX-License-Identifier: Apache-2.0
// Segments: source blocks made resident where the context's row works on them.
#include "lib/segment.h"

#include <stdbool.h>
#include <string.h>

#include "lib/coefficients.h"
#include "lib/staging.h"

// Backend rows accept products of up to 2 GiB per row, and the padding is one row.
_Static_assert((uint64_t)WEFT_MAX_BLOCKS *WEFT_MAX_BLOCK_BYTES <= INT32_MAX,
               "the padding of a segment may be too much for one product");

static weft_status check(const weft_ctx *ctx, const weft_segment_options *options) {
  if (!ctx || !options || !options->data || !weft_segment_id_valid(&options->id))
    return WEFT_E_ARGUMENT;
  const size_t capacity = (size_t)options->id.blocks * options->id.block_bytes;
  if (options->bytes < 1 || options->bytes > capacity)
    return WEFT_E_ARGUMENT;
  return weft_mem_check(options->mem, ctx->device != NULL);
}

// Makes the pointers to the blocks, of which the first `count` are evenly spaced. Made once: doing
// it for each packet on demand would take a hundredth of its product.
static weft_status point_to_blocks(weft_segment *segment, const uint8_t *blocks, size_t count,
                                   size_t stride) {
  const size_t n = segment->id.blocks;
  segment->ptr = weft_ctx_take(segment->ctx, n * sizeof *segment->ptr, _Alignof(uint8_t *));
  if (!segment->ptr)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < count; i++)
    segment->ptr[i] = blocks + i * stride;
  segment->blocks = (weft_const_rows){.base = blocks, .stride = stride, .ptr = segment->ptr};
  return WEFT_OK;
}

// Copies the data, padded with zeros. Gaps between the blocks are never read.
static weft_status copy_blocks(weft_segment *segment, const weft_segment_options *options) {
  const size_t n = options->id.blocks, k = options->id.block_bytes;
  const size_t stride = weft_row_stride(k), run = stride == k ? n * k : k;
  segment->owned = weft_ctx_take(segment->ctx, n * stride, WEFT_LINE);
  if (!segment->owned)
    return WEFT_E_NOMEM;
  uint8_t *to = segment->owned;
  for (size_t at = 0; at < n * k; at += run, to += stride) {
    const size_t left = at < options->bytes ? options->bytes - at : 0;
    const size_t filled = left < run ? left : run;
    if (filled > 0)
      memcpy(to, options->data + at, filled);
    memset(to + filled, 0, run - filled);
  }
  return point_to_blocks(segment, segment->owned, n, stride);
}

// Uses the caller's data in place. The block in which it ends is a padded copy, and one block of
// zeros serves for all that follow.
static weft_status borrow_blocks(weft_segment *segment, const weft_segment_options *options) {
  const size_t n = options->id.blocks, k = options->id.block_bytes;
  const size_t full = options->bytes / k, rest = options->bytes % k;
  WEFT_TRY(point_to_blocks(segment, options->data, full, k));
  if (full == n)
    return WEFT_OK;
  segment->owned = weft_ctx_take(segment->ctx, 2 * k, WEFT_LINE);
  if (!segment->owned)
    return WEFT_E_NOMEM;
  memset(segment->owned, 0, 2 * k);
  memcpy(segment->owned, options->data + full * k, rest);
  for (size_t i = full; i < n; i++)
    segment->ptr[i] = i == full ? segment->owned : segment->owned + k;
  return WEFT_OK;
}

// Copies the data to device memory; the padding is written by a product without terms.
static weft_status upload_blocks(weft_segment *segment, const weft_segment_options *options,
                                 weft_call *call) {
  const weft_ctx *ctx = segment->ctx;
  const size_t k = options->id.block_bytes;
  const size_t capacity = options->id.blocks * k;
  WEFT_TRY(weft_device_alloc(ctx->device, WEFT_MEM_DEVICE, capacity, &segment->device));
  uint8_t *blocks = segment->device;
  segment->blocks = (weft_const_rows){.base = blocks, .stride = k, .mem = WEFT_MEM_DEVICE};
  WEFT_TRY(weft_call_upload(call, blocks, options->data, options->mem, options->bytes));
  if (options->bytes == capacity)
    return WEFT_OK;
  const weft_gemm padding = {
      .m = 1,
      .len = capacity - options->bytes,
      .a_mem = WEFT_MEM_DEVICE,
      .x = {.mem = WEFT_MEM_DEVICE},
      .y = {.base = blocks + options->bytes, .stride = capacity, .mem = WEFT_MEM_DEVICE}};
  return ctx->row->gemm(ctx->row, &call->exec, &padding, 1);
}

static weft_status prepare(weft_segment *segment, const weft_segment_options *options,
                           weft_call *call) {
  const weft_backend *row = segment->ctx->row;
  if (!row->prepare || options->once)
    return WEFT_OK;
  return row->prepare(row, &call->exec, segment->id.blocks, segment->id.block_bytes,
                      &segment->blocks, &segment->operand);
}

static weft_status make_resident(weft_segment *segment, const weft_segment_options *options,
                                 weft_call *call) {
  const weft_ctx *ctx = segment->ctx;
  if (ctx->device)
    WEFT_TRY(upload_blocks(segment, options, call));
  else if (options->borrow)
    WEFT_TRY(borrow_blocks(segment, options));
  else
    WEFT_TRY(copy_blocks(segment, options));
  return prepare(segment, options, call);
}

weft_status weft_segment_new(weft_ctx *ctx, const weft_segment_options *options, weft_queue *queue,
                             weft_segment **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  WEFT_TRY(check(ctx, options));
  weft_segment *segment = weft_ctx_take(ctx, sizeof *segment, _Alignof(weft_segment));
  if (!segment)
    return WEFT_E_NOMEM;
  *segment = (weft_segment){.ctx = ctx, .id = options->id};
  weft_call call;
  weft_status status = weft_call_begin(ctx, queue, &call);
  if (status == WEFT_OK) {
    status = make_resident(segment, options, &call);
    status = weft_call_end(ctx, &call, status);
  }
  if (status != WEFT_OK) {
    weft_segment_free(segment);
    return status;
  }
  *out = segment;
  return WEFT_OK;
}

// --- several at once ---

// Whether a device can hold the segments in one block, without padding.
static bool fit_together(const weft_ctx *ctx, const weft_segment_options *options, size_t count) {
  const weft_segment_id *first = &options[0].id;
  const size_t bytes = (size_t)first->blocks * first->block_bytes;
  if (!ctx->device || count > SIZE_MAX / 2 / bytes)
    return false;
  for (size_t i = 0; i < count; i++)
    if (options[i].id.blocks != first->blocks || options[i].id.block_bytes != first->block_bytes ||
        options[i].bytes != bytes)
      return false;
  return true;
}

// Prepares all segments in one launch where the row can; a launch for each would take longer than
// its copy.
static weft_status prepare_together(weft_segment_group *group, const weft_segment_options *options,
                                    size_t count, weft_call *call) {
  const weft_ctx *ctx = call->queue->ctx;
  const weft_backend *row = ctx->row;
  if (!row->prepare_many || count == 1) {
    for (size_t i = 0; i < count; i++)
      WEFT_TRY(prepare(&group->segments[i], &options[i], call));
    return WEFT_OK;
  }
  const size_t each = sizeof(uint8_t *) + sizeof(weft_operand *);
  void *memory = weft_ctx_take(ctx, count * each, _Alignof(uint8_t *));
  if (!memory)
    return WEFT_E_NOMEM;
  const uint8_t **x = memory;
  weft_operand **operands = (weft_operand **)(x + count);
  size_t wanted = 0;
  for (size_t i = 0; i < count; i++)
    if (!options[i].once)
      x[wanted++] = group->segments[i].blocks.base;
  const weft_segment_id *id = &options[0].id;
  const weft_status status = row->prepare_many(row, &call->exec, id->blocks, id->block_bytes, x,
                                               id->block_bytes, wanted, operands);
  for (size_t i = 0, made = 0; status == WEFT_OK && i < count; i++)
    if (!options[i].once)
      group->segments[i].operand = operands[made++];
  weft_ctx_give(ctx, memory);
  return status;
}

// Uploads adjacent segments in one copy.
static weft_status upload_together(weft_segment_group *group, const weft_segment_options *options,
                                   size_t count, weft_call *call) {
  const size_t bytes = options[0].bytes;
  size_t run;
  for (size_t i = 0; i < count; i += run) {
    for (run = 1; i + run < count && options[i + run].mem == options[i].mem &&
                  options[i + run].data == options[i].data + run * bytes;)
      run++;
    WEFT_TRY(weft_call_upload(call, (uint8_t *)group->device + i * bytes, options[i].data,
                              options[i].mem, run * bytes));
  }
  return prepare_together(group, options, count, call);
}

static weft_status new_together(weft_ctx *ctx, const weft_segment_options *options, size_t count,
                                weft_queue *queue, weft_segment **out) {
  const size_t bytes = options[0].bytes;
  weft_segment_group *group = weft_ctx_take(ctx, sizeof *group + count * sizeof group->segments[0],
                                            _Alignof(weft_segment_group));
  if (!group)
    return WEFT_E_NOMEM;
  atomic_init(&group->left, count);
  weft_status status =
      weft_device_alloc(ctx->device, WEFT_MEM_DEVICE, count * bytes, &group->device);
  if (status != WEFT_OK) {
    weft_ctx_give(ctx, group);
    return status;
  }
  for (size_t i = 0; i < count; i++) {
    group->segments[i] = (weft_segment){.ctx = ctx,
                                        .id = options[i].id,
                                        .blocks = {.base = (uint8_t *)group->device + i * bytes,
                                                   .stride = options[i].id.block_bytes,
                                                   .mem = WEFT_MEM_DEVICE},
                                        .group = group};
    out[i] = &group->segments[i];
  }
  weft_call call;
  status = weft_call_begin(ctx, queue, &call);
  if (status == WEFT_OK) {
    status = upload_together(group, options, count, &call);
    status = weft_call_end(ctx, &call, status);
  }
  return status;
}

static weft_status new_in_turn(weft_ctx *ctx, const weft_segment_options *options, size_t count,
                               weft_queue *queue, weft_segment **out) {
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(weft_segment_new(ctx, &options[i], queue, &out[i]));
  return WEFT_OK;
}

weft_status weft_segments_new(weft_ctx *ctx, const weft_segment_options *options, size_t count,
                              weft_queue *queue, weft_segment **out) {
  for (size_t i = 0; out && i < count; i++)
    out[i] = NULL;
  if (!ctx || (count > 0 && (!options || !out)))
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(check(ctx, &options[i]));
  if (count == 0)
    return WEFT_OK;
  const weft_status status = fit_together(ctx, options, count)
                                 ? new_together(ctx, options, count, queue, out)
                                 : new_in_turn(ctx, options, count, queue, out);
  if (status == WEFT_OK)
    return WEFT_OK;
  // Segments created before the failure may still be in use in memory that is about to be freed. A
  // queue of another context has no work on them, and may be in use by another thread.
  if (queue && ctx->device && queue->ctx == ctx)
    weft_queue_drain(queue);
  for (size_t i = 0; i < count; i++) {
    weft_segment_free(out[i]);
    out[i] = NULL;
  }
  return status;
}

void weft_segment_free(weft_segment *segment) {
  if (!segment)
    return;
  weft_ctx *ctx = segment->ctx;
  if (segment->operand) {
    weft_exec exec = weft_ctx_host_exec(ctx, ctx->pool);
    exec.device = ctx->device;
    ctx->row->release(ctx->row, &exec, segment->operand);
  }
  weft_segment_group *group = segment->group;
  if (group) {
    if (atomic_fetch_sub(&group->left, 1) == 1) {
      weft_device_free(ctx->device, WEFT_MEM_DEVICE, group->device);
      weft_ctx_give(ctx, group);
    }
    return;
  }
  if (ctx->device)
    weft_device_free(ctx->device, WEFT_MEM_DEVICE, segment->device);
  weft_ctx_give(ctx, segment->owned);
  weft_ctx_give(ctx, segment->ptr);
  weft_ctx_give(ctx, segment);
}

const weft_segment_id *weft_segment_get_id(const weft_segment *segment) { return &segment->id; }
