// SPDX-License-Identifier: Apache-2.0
// Computes the recovery matrix by inversion on the device, as GPU-RSCode can: inverts the
// generator's rows of the k inputs there, then multiplies its rows of the outputs by the inverse.
#include <string.h>

#include "lib/storage/device_run.h"

// Writes the generator's row of one shard: a unit row for data.
static void generator_row(const weft_code *code, size_t shard, uint8_t *row) {
  memset(row, 0, code->k);
  if (shard < code->k)
    row[shard] = 1;
  else
    memcpy(row, code->generator.parity + (shard - code->k) * code->k, code->k);
}

// Inverts `square` in place by way of device memory. Waits.
static weft_status invert(const weft_code *code, uint8_t *square, weft_call *call) {
  const weft_backend *row = code->ctx->row;
  weft_device *device = code->ctx->device;
  void *stream = call->exec.stream, *memory;
  const size_t bytes = code->k * code->k;
  uint8_t singular = 1;
  WEFT_TRY(weft_device_scratch(&call->exec, bytes + 1, &memory));
  uint8_t *there = memory;
  const weft_invert inversion = {.count = 1,
                                 .k = code->k,
                                 .in = there,
                                 .out = there,
                                 .singular = there + bytes,
                                 .mem = WEFT_MEM_DEVICE};
  weft_status status =
      weft_device_copy(device, there, WEFT_MEM_DEVICE, square, WEFT_MEM_HOST, bytes, stream);
  if (status == WEFT_OK)
    status = row->invert(row, &call->exec, &inversion);
  if (status == WEFT_OK)
    status = weft_device_copy(device, square, WEFT_MEM_HOST, there, WEFT_MEM_DEVICE, bytes, stream);
  if (status == WEFT_OK)
    status = weft_device_copy(device, &singular, WEFT_MEM_HOST, there + bytes, WEFT_MEM_DEVICE, 1,
                              stream);
  const weft_status waited = weft_device_stream_wait(device, stream);
  weft_device_scratch_free(&call->exec, memory);
  status = status != WEFT_OK ? status : waited;
  return status == WEFT_OK && singular ? WEFT_E_SINGULAR : status;
}

weft_status weft_device_solve(const weft_code *code, const uint8_t *inputs, const uint8_t *outputs,
                              size_t count, uint8_t *matrix) {
  const size_t k = code->k;
  weft_ctx *ctx = code->ctx;
  uint8_t *square = weft_ctx_take(ctx, (k + count) * k, 64);
  if (!square)
    return WEFT_E_NOMEM;
  uint8_t *rows = square + k * k; // (count, k) of the outputs
  for (size_t i = 0; i < k; i++)
    generator_row(code, inputs[i], square + i * k);
  for (size_t r = 0; r < count; r++)
    generator_row(code, outputs[r], rows + r * k);
  weft_call call;
  weft_status status = weft_call_begin(ctx, NULL, &call);
  if (status == WEFT_OK)
    status = weft_call_end(ctx, &call, invert(code, square, &call));
  const weft_exec exec = weft_ctx_host_exec(ctx, NULL);
  const weft_gemm product = {.m = count,
                             .k = k,
                             .len = k,
                             .a = rows,
                             .a_stride = k,
                             .x = {.base = square, .stride = k},
                             .y = {.base = matrix, .stride = k}};
  if (status == WEFT_OK)
    status = ctx->host->gemm(ctx->host, &exec, &product, 1);
  weft_ctx_give(ctx, square);
  return status;
}
