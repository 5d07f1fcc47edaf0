// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/device.h"
#include "lib/ctx.h"

bool gpu_skip(const char *test) {
  if (weft_device_count() > 0)
    return false;
  printf("SKIPPED %s: it needs a GPU (%s)\n", test, weft_device_absence());
  fflush(stdout);
  return true;
}

static const weft_backend *row_at(int index) {
  for (size_t i = 0; i < weft_backend_count; i++)
    if (weft_backends[i].mem == WEFT_MEM_DEVICE && index-- == 0)
      return &weft_backends[i];
  return NULL;
}

int gpu_row_count(void) {
  int count = 0;
  while (row_at(count))
    count++;
  return count;
}

const char *gpu_row_name(int index) { return row_at(index)->name; }

const char *gpu_slowest_row(void) { return gpu_row_name(gpu_row_count() - 1); }

bool gpu_skip_row(const char *test, int index) {
  const weft_backend *row = row_at(index);
  char name[128];
  snprintf(name, sizeof name, "%s on %s", test, row->name);
  if (gpu_skip(name))
    return true;
  static weft_machine machine; // with device 0
  if (machine.sm == 0) {
    weft_ctx *ctx = fixture_ctx("cuda", 1);
    machine = (weft_machine){.cpu = weft_cpu_features(),
                             .sm = weft_device_sm(ctx->device),
                             .block_bytes = weft_device_block_bytes(ctx->device)};
    weft_ctx_free(ctx);
  }
  if (weft_backend_runs_on(row, &machine))
    return false;
  printf("SKIPPED %s: it needs sm_%d..%d and %d bytes of shared memory, this is sm_%d with %d\n",
         name, row->sm_min, row->sm_max, row->block_bytes, machine.sm, machine.block_bytes);
  return true;
}

// --- buffers ---

static void copy(weft_ctx *ctx, void *to, weft_mem to_mem, const void *from, weft_mem from_mem,
                 size_t bytes) {
  void *stream;
  EXPECT_OK(weft_device_stream_new(ctx->device, &stream));
  EXPECT_OK(weft_device_copy(ctx->device, to, to_mem, from, from_mem, bytes, stream));
  EXPECT_OK(weft_device_stream_wait(ctx->device, stream));
  weft_device_stream_free(ctx->device, stream);
}

static gpu_buffer buffer_new(weft_ctx *ctx, weft_mem mem, const uint8_t *from, size_t bytes,
                             size_t margin) {
  gpu_buffer buffer = {.ctx = ctx, .mem = mem, .bytes = bytes, .margin = margin};
  void *memory;
  EXPECT_OK(weft_alloc(ctx, mem, bytes + 2 * margin + 1, &memory));
  buffer.memory = memory;
  buffer.at = buffer.memory + margin;
  if (bytes + 2 * margin > 0)
    copy(ctx, buffer.memory, mem, from, WEFT_MEM_HOST, bytes + 2 * margin);
  return buffer;
}

gpu_buffer gpu_input(weft_ctx *ctx, weft_mem mem, const uint8_t *from, size_t bytes) {
  return buffer_new(ctx, mem, from, bytes, 0);
}

gpu_buffer gpu_output(weft_ctx *ctx, weft_mem mem, size_t bytes) {
  const size_t margin = 1 + fixture_below(70);
  const uint8_t poison = (uint8_t)fixture_next();
  uint8_t *bad = fixture_malloc(bytes + 2 * margin);
  memset(bad, poison, bytes + 2 * margin);
  gpu_buffer buffer = buffer_new(ctx, mem, bad, bytes, margin);
  buffer.poison = poison;
  free(bad);
  return buffer;
}

uint8_t *gpu_read(const gpu_buffer *buffer) {
  const size_t all = buffer->bytes + 2 * buffer->margin;
  uint8_t *whole = fixture_malloc(all), *out = fixture_malloc(buffer->bytes);
  copy(buffer->ctx, whole, WEFT_MEM_HOST, buffer->memory, buffer->mem, all);
  for (size_t i = 0; i < buffer->margin; i++)
    EXPECT(whole[i] == buffer->poison && whole[all - 1 - i] == buffer->poison);
  memcpy(out, whole + buffer->margin, buffer->bytes);
  free(whole);
  return out;
}

void gpu_buffer_free(gpu_buffer *buffer) { weft_free(buffer->ctx, buffer->mem, buffer->memory); }

static const char *best_host_row(void) {
  const weft_machine machine = {.cpu = weft_cpu_features()};
  const weft_backend *row = NULL;
  EXPECT_OK(weft_backend_select(&machine, WEFT_MEM_HOST, NULL, &row));
  return row->name;
}

void gpu_reference(uint8_t *y, const uint8_t *c, const uint8_t *x, size_t m, size_t n, size_t k) {
  // Above this size the scalar row would take too long: the best host row is used, which its own
  // tests compare with it.
  const size_t slow = (size_t)4 << 20;
  const weft_ctx_options options = {.backend = m * n * k <= slow ? "scalar" : best_host_row()};
  weft_ctx *ctx;
  EXPECT_OK(weft_ctx_new(&ctx, &options));
  const weft_gemm product = {.m = m,
                             .k = n,
                             .len = k,
                             .a = c,
                             .a_stride = n,
                             .x = {.base = x, .stride = k},
                             .y = {.base = y, .stride = k}};
  const weft_exec exec = weft_ctx_host_exec(ctx, NULL);
  EXPECT_OK(ctx->host->gemm(ctx->host, &exec, &product, 1));
  weft_ctx_free(ctx);
}
