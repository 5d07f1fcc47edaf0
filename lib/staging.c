// SPDX-License-Identifier: Apache-2.0
// Moves data between ordinary, pinned and device memory (staging.h).
#include "lib/staging.h"

#include <string.h>

#include "lib/chunks.h"

enum {
  // Coded bytes computed while the previous piece is copied to the host.
  PIECE_BYTES = 8 << 20,
  // Below this a product stores to pinned memory itself: a separate copy would start later.
  DIRECT_BYTES = 256 << 10
};

weft_status weft_call_upload(weft_call *call, void *to, const void *from, weft_mem from_mem,
                             size_t bytes) {
  void *stream = call->exec.stream;
  if (from_mem != WEFT_MEM_HOST || bytes == 0)
    return weft_device_copy(call->queue->ctx->device, to, WEFT_MEM_DEVICE, from, from_mem, bytes,
                            stream);
  const weft_const_rows row = {.base = from, .stride = bytes};
  weft_stage stage;
  weft_stage_open_tapered(&stage, call, stream, bytes);
  weft_status status = weft_stage_in(&stage, to, &row, 1, bytes);
  if (status == WEFT_OK)
    status = weft_stage_flush(&stage);
  weft_stage_close(&stage);
  return status;
}

// --- operands and small results in ordinary memory ---

static bool is_empty(const weft_gemm *gemm) { return gemm->m == 0 || gemm->len == 0; }

static size_t coefficient_bytes(const weft_gemm *gemm) {
  return gemm->a_mem == WEFT_MEM_HOST && !is_empty(gemm) ? gemm->m * gemm->k : 0;
}

static size_t result_bytes(const weft_gemm *gemm) {
  return gemm->y.mem == WEFT_MEM_HOST ? gemm->m * gemm->len : 0;
}

// What staging so many bytes may take.
static size_t with_slack(size_t bytes) { return bytes > 0 ? bytes + WEFT_LINE : 0; }

// Stages coefficients in ordinary memory; `to`: device memory for them, NULL: they stay pinned, all
// in one chunk.
static weft_status stage_coefficients(weft_stage *stage, weft_gemm *gemms, size_t count,
                                      uint8_t *to) {
  const bool pinned = !to;
  for (size_t i = 0; i < count; i++) {
    weft_gemm *gemm = &gemms[i];
    const size_t bytes = coefficient_bytes(gemm);
    if (bytes == 0)
      continue;
    const weft_const_rows from = {.base = gemm->a, .stride = gemm->a_stride};
    if (pinned)
      WEFT_TRY(weft_stage_memory(stage, &from, gemm->m, gemm->k, &to));
    else
      WEFT_TRY(weft_stage_in(stage, to, &from, gemm->m, gemm->k));
    gemm->a = to;
    gemm->a_stride = gemm->k;
    gemm->a_mem = pinned ? WEFT_MEM_PINNED : WEFT_MEM_DEVICE;
    to += bytes;
  }
  return weft_stage_flush(stage);
}

static weft_status stage_results(weft_stage *stage, weft_gemm *gemm) {
  if (result_bytes(gemm) == 0)
    return WEFT_OK;
  uint8_t *to;
  WEFT_TRY(weft_stage_results(stage, &gemm->y, gemm->m, gemm->len, &to));
  gemm->y = (weft_rows){.base = to, .stride = gemm->len, .mem = WEFT_MEM_PINNED};
  return WEFT_OK;
}

// --- results in host memory, piece by piece ---

typedef struct pipeline {
  weft_call *call;
  const weft_gemm *gemms;
  weft_gemm *parts; // the current piece, writing to device memory
  uint8_t *to[2];   // device memory, PIECE_BYTES or one row each
  size_t room;      // bytes of each buffer
  void *copies;     // stream
  weft_stage stage; // on it, for results in ordinary memory
  size_t pieces;
  // The previous piece, computed and not yet copied: its parts and their destinations.
  weft_gemm *last, *last_target;
  size_t last_count;
} pipeline;

// Copies `rows` rows of results, starting with those of `part`.
static weft_status send_rows(pipeline *line, size_t part, size_t rows) {
  const weft_gemm *from = &line->last[part], *to = &line->last_target[part];
  if (to->y.mem == WEFT_MEM_HOST)
    return weft_stage_out(&line->stage, &to->y, from->y.base, rows, from->len);
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
         i + run < line->last_count && to->y.mem == WEFT_MEM_PINNED &&
         to[run].y.mem == WEFT_MEM_PINNED && to[run].len == to->len &&
         to[run].y.stride == to->y.stride && to[run].y.base == to->y.base + rows * to->y.stride;
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
  return weft_stage_flush(&line->stage); // the buffer is written again
}

// Computes `count` parts whose results go to host memory as `targets` say. The buffer was last
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
      if (target->y.ptr)
        target->y.ptr += row;
      else
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

static weft_status copy_while_computing(weft_call *call, const weft_gemm *gemms, size_t count) {
  weft_ctx *ctx = call->queue->ctx;
  size_t bytes = 0, staged = 0;
  for (size_t i = 0; i < count; i++) {
    bytes += gemms[i].m * gemms[i].len;
    staged += result_bytes(&gemms[i]) + WEFT_LINE;
  }
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
    weft_stage_open_tapered(&line.stage, call, line.copies, staged);
    status = run_pieces(&line, count, memory, slots);
    if (status != WEFT_OK)
      weft_stage_drop(&line.stage);
    weft_stage_close(&line.stage);
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

// Whether results can leave by separate copies: all but those in device memory, and those at
// separate addresses in pinned memory, which need no copy at all.
static bool can_travel(const weft_gemm *gemm) {
  return gemm->y.mem == WEFT_MEM_HOST || (gemm->y.mem == WEFT_MEM_PINNED && !gemm->y.ptr);
}

// Moves the products with results in ordinary memory to the front, and returns how many they are.
static size_t host_first(weft_gemm *gemms, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++)
    if (result_bytes(&gemms[i]) > 0) {
      const weft_gemm other = gemms[found];
      gemms[found++] = gemms[i];
      gemms[i] = other;
    }
  return found;
}

// Runs products that write where the device can, once room for the small results in ordinary memory
// is staged. `bytes`: of that room.
static weft_status run_directly(weft_call *call, weft_gemm *gemms, size_t count, size_t bytes) {
  const weft_ctx *ctx = call->queue->ctx;
  weft_stage stage;
  weft_status status = WEFT_OK;
  weft_stage_open(&stage, call, call->exec.stream, bytes);
  for (size_t i = 0; i < count && status == WEFT_OK; i++)
    status = stage_results(&stage, &gemms[i]);
  if (status == WEFT_OK)
    status = ctx->row->gemm(ctx->row, &call->exec, gemms, count);
  if (status != WEFT_OK)
    weft_stage_drop(&stage);
  weft_stage_close(&stage);
  return status;
}

// Runs products whose coefficients the device can read.
static weft_status multiply(weft_call *call, weft_gemm *gemms, size_t count) {
  size_t bytes = 0, host = 0, room = 0; // of all results, of those in ordinary memory, for these
  bool all = count > 0;
  for (size_t i = 0; i < count; i++) {
    all = all && (is_empty(&gemms[i]) || can_travel(&gemms[i]));
    bytes += gemms[i].m * gemms[i].len;
    host += result_bytes(&gemms[i]);
    room += with_slack(result_bytes(&gemms[i]));
  }
  const bool much = host > DIRECT_BYTES || room > WEFT_STAGED_CHUNK;
  if (all && (much || bytes > DIRECT_BYTES))
    return copy_while_computing(call, gemms, count);
  if (!much)
    return run_directly(call, gemms, count, room);
  const size_t travelling = host_first(gemms, count);
  WEFT_TRY(copy_while_computing(call, gemms, travelling));
  return run_directly(call, gemms + travelling, count - travelling, 0);
}

weft_status weft_call_products(weft_call *call, weft_gemm *gemms, size_t count) {
  const weft_ctx *ctx = call->queue->ctx;
  if (!ctx->device)
    return ctx->row->gemm(ctx->row, &call->exec, gemms, count);
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    if (is_empty(&gemms[i])) // nothing to compute, wherever it would go
      gemms[i].y.mem = WEFT_MEM_PINNED;
    bytes += with_slack(coefficient_bytes(&gemms[i]));
  }
  // The products read coefficients from a chunk if they fit into one, else from a copy of them.
  void *scratch = NULL;
  if (bytes > WEFT_STAGED_CHUNK)
    WEFT_TRY(weft_device_scratch(&call->exec, bytes, &scratch));
  weft_stage stage;
  weft_stage_open(&stage, call, call->exec.stream, bytes);
  weft_status status = stage_coefficients(&stage, gemms, count, scratch);
  if (status == WEFT_OK)
    status = multiply(call, gemms, count);
  weft_stage_close(&stage);
  weft_device_scratch_free(&call->exec, scratch);
  return status;
}
