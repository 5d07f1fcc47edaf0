// SPDX-License-Identifier: Apache-2.0
// Moves data between ordinary, pinned and device memory (staging.h).
#include "lib/staging.h"

#include <string.h>

enum {
  // Coded bytes computed while the previous piece is copied to the host.
  PIECE_BYTES = 8 << 20,
  // Below this a product stores to pinned memory itself: a separate copy would start later.
  DIRECT_BYTES = 256 << 10
};

weft_status weft_call_upload(weft_call *call, void *to, const void *from, weft_mem from_mem,
                             size_t bytes) {
  if (from_mem == WEFT_MEM_HOST && bytes > 0) {
    weft_kept *staged;
    WEFT_TRY(weft_call_keep(call->queue->ctx, call, bytes, &staged));
    memcpy(staged->bytes, from, bytes);
    from = staged->bytes;
    from_mem = WEFT_MEM_PINNED;
  }
  return weft_device_copy(call->queue->ctx->device, to, WEFT_MEM_DEVICE, from, from_mem, bytes,
                          call->exec.stream);
}

// --- operands in ordinary memory ---

static bool is_empty(const weft_gemm *gemm) { return gemm->m == 0 || gemm->len == 0; }

static weft_status stage_coefficients(weft_call *call, weft_gemm *gemm) {
  if (gemm->a_mem != WEFT_MEM_HOST || gemm->k == 0)
    return WEFT_OK;
  weft_kept *staged;
  WEFT_TRY(weft_call_keep(call->queue->ctx, call, gemm->m * gemm->k, &staged));
  for (size_t i = 0; i < gemm->m; i++)
    memcpy(staged->bytes + i * gemm->k, gemm->a + i * gemm->a_stride, gemm->k);
  gemm->a = staged->bytes;
  gemm->a_stride = gemm->k;
  gemm->a_mem = WEFT_MEM_PINNED;
  return WEFT_OK;
}

static weft_status stage_sources(weft_call *call, weft_gemm *gemm) {
  if (gemm->x_prepared || gemm->x.mem != WEFT_MEM_HOST || gemm->k == 0)
    return WEFT_OK;
  weft_kept *staged;
  WEFT_TRY(weft_call_keep(call->queue->ctx, call, gemm->k * gemm->len, &staged));
  for (size_t j = 0; j < gemm->k; j++)
    memcpy(staged->bytes + j * gemm->len, weft_const_row(&gemm->x, j), gemm->len);
  gemm->x = (weft_const_rows){.base = staged->bytes, .stride = gemm->len, .mem = WEFT_MEM_PINNED};
  return WEFT_OK;
}

static weft_status stage_results(weft_call *call, weft_gemm *gemm) {
  if (gemm->y.mem != WEFT_MEM_HOST)
    return WEFT_OK;
  weft_kept *kept;
  WEFT_TRY(weft_call_keep(call->queue->ctx, call, gemm->m * gemm->len, &kept));
  if (gemm->accumulate)
    for (size_t i = 0; i < gemm->m; i++)
      memcpy(kept->bytes + i * gemm->len, weft_row(&gemm->y, i), gemm->len);
  kept->results = kept->bytes;
  kept->to = gemm->y;
  kept->rows = gemm->m;
  kept->row_bytes = gemm->len;
  gemm->y = (weft_rows){.base = kept->bytes, .stride = gemm->len, .mem = WEFT_MEM_PINNED};
  return WEFT_OK;
}

// --- results in pinned memory, piece by piece ---

typedef struct piece {
  size_t first, count; // gemms
  size_t bytes;
} piece;

typedef struct pipeline {
  weft_call *call;
  const weft_gemm *gemms;
  weft_gemm *parts; // the current piece, writing to device memory
  uint8_t *to[2];   // device memory, PIECE_BYTES or one row each
  size_t room;      // bytes of each buffer
  void *copies;     // stream
  size_t pieces;
  // The previous piece, computed and not yet copied: its parts and their destinations.
  weft_gemm *last, *last_target;
  size_t last_count;
} pipeline;

// Copies `rows` rows of results, starting with those of `part`.
static weft_status send_rows(const pipeline *line, size_t part, size_t rows) {
  const weft_gemm *from = &line->last[part], *to = &line->last_target[part];
  return weft_device_copy_rows(line->call->queue->ctx->device, to->y.base, to->y.stride, to->y.mem,
                               from->y.base, from->y.stride, WEFT_MEM_DEVICE, from->len, rows,
                               line->copies);
}

// Starts copying the previous piece: the copy stream waits for all work on the queue's stream.
static weft_status send_last(pipeline *line) {
  weft_device *device = line->call->queue->ctx->device;
  if (line->last_count == 0)
    return WEFT_OK;
  WEFT_TRY(weft_device_stream_order(device, line->copies, line->call->exec.stream));
  size_t run;
  for (size_t i = 0; i < line->last_count; i += run) {
    const weft_gemm *from = &line->last[i], *to = &line->last_target[i];
    size_t rows = from->m;
    // Results are dense in device memory; those with adjacent destinations are sent in one copy.
    for (run = 1;
         i + run < line->last_count && to[run].len == to->len && to[run].y.stride == to->y.stride &&
         to[run].y.base == to->y.base + rows * to->y.stride;
         run++)
      rows += from[run].m;
    weft_status status = send_rows(line, i, rows);
    // Separate pinned allocations may be adjacent by chance, and one copy must not span two of
    // them.
    const bool apart = status == WEFT_E_DEVICE && run > 1;
    status = apart ? WEFT_OK : status;
    for (size_t part = i; apart && status == WEFT_OK && part < i + run; part++)
      status = send_rows(line, part, line->last[part].m);
    WEFT_TRY(status);
  }
  line->last_count = 0;
  return WEFT_OK;
}

// Computes `count` parts whose results go to pinned memory as `targets` say. The buffer was last
// read by the copies of two pieces ago, which the queue's stream waits for; copies of the previous
// piece are enqueued only afterwards.
static weft_status compute(pipeline *line, weft_gemm *parts, weft_gemm *targets, size_t count) {
  const weft_ctx *ctx = line->call->queue->ctx;
  WEFT_TRY(weft_device_stream_order(ctx->device, line->call->exec.stream, line->copies));
  WEFT_TRY(send_last(line));
  WEFT_TRY(ctx->row->gemm(ctx->row, &line->call->exec, parts, count));
  line->last = parts;
  line->last_target = targets;
  line->last_count = count;
  line->pieces++;
  return WEFT_OK;
}

// Cuts the products into pieces of whole rows. `memory` holds parts and targets of two pieces.
static weft_status run_pieces(pipeline *line, size_t count, weft_gemm *memory, size_t slots) {
  size_t used = 0, at = 0;
  weft_gemm *parts = memory, *targets = memory + slots;
  for (size_t g = 0; g < count; g++) {
    const weft_gemm *whole = &line->gemms[g];
    for (size_t row = 0; row < whole->m && whole->len > 0;) {
      const size_t fit = (line->room - at) / whole->len;
      if (fit == 0 || used == slots) {
        WEFT_TRY(compute(line, parts, targets, used));
        parts = memory + (line->pieces % 2) * 2 * slots;
        targets = parts + slots;
        used = at = 0;
        continue;
      }
      const size_t rows = fit < whole->m - row ? fit : whole->m - row;
      weft_gemm *part = &parts[used], *target = &targets[used];
      *part = *target = *whole;
      part->m = target->m = rows;
      part->a += row * whole->a_stride;
      target->y.base += row * whole->y.stride;
      part->y = (weft_rows){
          .base = line->to[line->pieces % 2] + at, .stride = whole->len, .mem = WEFT_MEM_DEVICE};
      at += rows * whole->len;
      row += rows;
      used++;
    }
  }
  if (used > 0)
    WEFT_TRY(compute(line, parts, targets, used));
  return send_last(line);
}

static weft_status copy_while_computing(weft_call *call, const weft_gemm *gemms, size_t count,
                                        size_t bytes) {
  weft_ctx *ctx = call->queue->ctx;
  const size_t pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
  pipeline line = {.call = call, .gemms = gemms, .room = (bytes + pieces - 1) / pieces};
  size_t longest = 0; // rows are not split
  for (size_t i = 0; i < count; i++)
    longest = gemms[i].len > longest ? gemms[i].len : longest;
  line.room += pieces > 1 ? longest : 0;
  const size_t slots = count + 1; // a piece holds at most one part of each product
  weft_gemm *memory = weft_ctx_take(ctx, 4 * slots * sizeof *memory, _Alignof(weft_gemm));
  if (!memory)
    return WEFT_E_NOMEM;
  void *buffers = NULL;
  weft_status status = weft_queue_side(call->queue, 0, &line.copies);
  if (status == WEFT_OK)
    status = weft_device_scratch(&call->exec, 2 * line.room, &buffers);
  if (status == WEFT_OK) {
    line.to[0] = buffers;
    line.to[1] = line.to[0] + line.room;
    status = run_pieces(&line, count, memory, slots);
    // Waiting for the queue waits for the copies too.
    const weft_status joined =
        weft_device_stream_order(ctx->device, call->exec.stream, line.copies);
    if (joined != WEFT_OK)
      (void)weft_device_stream_wait(ctx->device, line.copies);
    if (status == WEFT_OK)
      status = joined;
    weft_device_scratch_free(&call->exec, buffers);
  }
  weft_ctx_give(ctx, memory);
  return status;
}

// --- all of it ---

weft_status weft_call_products(weft_call *call, weft_gemm *gemms, size_t count) {
  const weft_ctx *ctx = call->queue->ctx;
  if (!ctx->device)
    return ctx->row->gemm(ctx->row, &call->exec, gemms, count);
  size_t bytes = 0;
  bool by_copies = count > 0;
  for (size_t i = 0; i < count; i++) {
    if (is_empty(&gemms[i])) { // nothing to compute, wherever it would go
      gemms[i].y.mem = WEFT_MEM_PINNED;
      continue;
    }
    WEFT_TRY(stage_coefficients(call, &gemms[i]));
    WEFT_TRY(stage_sources(call, &gemms[i]));
    WEFT_TRY(stage_results(call, &gemms[i]));
    by_copies =
        by_copies && gemms[i].y.mem == WEFT_MEM_PINNED && !gemms[i].y.ptr && !gemms[i].accumulate;
    bytes += gemms[i].m * gemms[i].len;
  }
  if (by_copies && bytes > DIRECT_BYTES)
    return copy_while_computing(call, gemms, count, bytes);
  return ctx->row->gemm(ctx->row, &call->exec, gemms, count);
}
