// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/gpu_ceilings.h"
#include "lib/ctx.h"

enum { QUEUES = 6, HELD_MAX = 4096 };

struct weft_bench_gpu {
  weft_ctx *ctx;
  weft_queue *queue[QUEUES];
  uint64_t seed;
  // Freed with the gpu, in reverse order.
  struct {
    weft_mem mem;
    void *memory;
  } held[HELD_MAX];
  size_t held_count;
};

typedef struct gpu_case {
  weft_bench_gpu *gpu;
  size_t repeat, segments, m, n, k;
  weft_gemm *products;
  weft_operand **operands;
  weft_segment **segment;
  weft_segment_options *options;
  weft_encoder **encoders;
  weft_batch *batches;
  weft_decode_job *jobs;
  uint8_t *from, *to;
  weft_mem from_mem, to_mem;
  size_t bytes;
} gpu_case;

weft_bench_gpu *weft_bench_gpu_new(const char *row, size_t device, uint64_t seed,
                                   weft_status *status) {
  weft_bench_gpu *gpu = weft_bench_alloc(1, sizeof *gpu);
  *gpu = (weft_bench_gpu){.seed = seed};
  *status = weft_ctx_new(&gpu->ctx, &(weft_ctx_options){.backend = row, .device = device});
  if (*status != WEFT_OK) {
    free(gpu);
    return NULL;
  }
  for (size_t i = 0; i < QUEUES; i++)
    weft_bench_must("queue", weft_queue_new(gpu->ctx, &gpu->queue[i]));
  return gpu;
}

void weft_bench_gpu_free(weft_bench_gpu *gpu) {
  if (!gpu)
    return;
  for (size_t i = 0; i < QUEUES; i++)
    weft_queue_free(gpu->queue[i]);
  while (gpu->held_count > 0) {
    gpu->held_count--;
    weft_free(gpu->ctx, gpu->held[gpu->held_count].mem, gpu->held[gpu->held_count].memory);
  }
  weft_ctx_free(gpu->ctx);
  free(gpu);
}

weft_ctx *weft_bench_gpu_ctx(const weft_bench_gpu *gpu) { return gpu->ctx; }

static uint8_t *memory(weft_bench_gpu *gpu, weft_mem mem, size_t bytes) {
  void *out;
  weft_bench_must("memory", weft_alloc(gpu->ctx, mem, bytes, &out));
  if (gpu->held_count == HELD_MAX)
    weft_bench_must("more buffers than a run holds", WEFT_E_NOMEM);
  gpu->held[gpu->held_count].mem = mem;
  gpu->held[gpu->held_count++].memory = out;
  return out;
}

static weft_exec exec_of(const weft_bench_gpu *gpu, size_t queue) {
  weft_exec exec = weft_ctx_host_exec(gpu->ctx, NULL);
  exec.device = gpu->ctx->device;
  exec.stream = gpu->queue[queue]->stream;
  return exec;
}

// Returns random bytes: a few megabytes, repeated.
static uint8_t *random_memory(weft_bench_gpu *gpu, weft_mem mem, size_t bytes, bool nonzero) {
  enum { PIECE = 4 << 20 };
  uint8_t *out = memory(gpu, mem, bytes);
  uint8_t *piece = weft_bench_alloc(1, PIECE);
  weft_bench_random random;
  weft_bench_random_seed(&random, gpu->seed++);
  if (nonzero)
    weft_bench_random_nonzero(&random, piece, PIECE);
  else
    weft_bench_random_bytes(&random, piece, PIECE);
  for (size_t at = 0; at < bytes; at += PIECE) {
    const size_t some = bytes - at < PIECE ? bytes - at : PIECE;
    weft_bench_must("copy", weft_device_copy(gpu->ctx->device, out + at, mem, piece, WEFT_MEM_HOST,
                                             some, gpu->queue[0]->stream));
  }
  weft_bench_must("copy", weft_queue_wait(gpu->queue[0]));
  free(piece);
  return out;
}

static void wait_all(const weft_bench_gpu *gpu) {
  for (size_t i = 0; i < QUEUES; i++)
    weft_bench_must("wait", weft_queue_wait(gpu->queue[i]));
}

static gpu_case *case_new(weft_bench_gpu *gpu, size_t segments, size_t m, size_t n, size_t k) {
  gpu_case *c = weft_bench_alloc(1, sizeof *c);
  *c = (gpu_case){.gpu = gpu, .segments = segments, .m = m, .n = n, .k = k, .repeat = 1};
  return c;
}

// Each byte of output is the sum of `sources` products; 0: nothing is multiplied, and the case
// counts the bytes that it reads instead, which are as many as it writes.
static int add(weft_bench_group *group, gpu_case *c, const char *operation, const char *variant,
               void (*call)(void *), double output, size_t sources, const char *checked,
               int ceiling) {
  const double bytes = output * (double)c->repeat;
  call(c); // warm-up
  weft_bench_case entry = {.operation = operation,
                           .row = weft_ctx_backend(c->gpu->ctx),
                           .variant = variant,
                           .n = c->n,
                           .k = c->k,
                           .m = c->m,
                           .threads = 1,
                           .amount = {[WEFT_BENCH_OUTPUT] = bytes},
                           .ceiling = ceiling,
                           .bound_by = WEFT_BENCH_OUTPUT,
                           .work = {.call = call, .user = c, .threads = 1},
                           .checked = checked,
                           .owned = c};
  if (sources > 0)
    entry.amount[WEFT_BENCH_PRODUCTS] = bytes * (double)sources;
  else
    entry.amount[WEFT_BENCH_INPUT] = bytes;
  return weft_bench_group_add(group, &entry);
}

// --- copies ---

static void call_copy(void *user) {
  const gpu_case *c = user;
  for (size_t i = 0; i < c->repeat; i++)
    weft_bench_must("copy", weft_device_copy(c->gpu->ctx->device, c->to, c->to_mem, c->from,
                                             c->from_mem, c->bytes, c->gpu->queue[0]->stream));
  wait_all(c->gpu);
}

int weft_bench_gpu_add_copy(weft_bench_gpu *gpu, weft_bench_group *group, const char *name,
                            weft_mem to, weft_mem from, size_t bytes) {
  gpu_case *c = case_new(gpu, 1, 0, 0, bytes);
  c->from = random_memory(gpu, from, bytes, false);
  c->to = memory(gpu, to, bytes);
  c->from_mem = from;
  c->to_mem = to;
  c->bytes = bytes;
  c->repeat = 4;
  return add(group, c, "ceiling", name, call_copy, (double)bytes, 0, "", -1);
}

static void call_duplex(void *user) {
  const gpu_case *c = user;
  for (size_t i = 0; i < c->repeat; i++) {
    weft_device *device = c->gpu->ctx->device;
    weft_bench_must("in", weft_device_copy(device, c->from, WEFT_MEM_DEVICE, c->to, WEFT_MEM_PINNED,
                                           c->bytes, c->gpu->queue[0]->stream));
    weft_bench_must("out",
                    weft_device_copy(device, c->to + c->bytes, WEFT_MEM_PINNED, c->from + c->bytes,
                                     WEFT_MEM_DEVICE, c->bytes, c->gpu->queue[1]->stream));
  }
  wait_all(c->gpu);
}

int weft_bench_gpu_add_duplex(weft_bench_gpu *gpu, weft_bench_group *group, size_t bytes) {
  gpu_case *c = case_new(gpu, 1, 0, 0, bytes);
  c->from = random_memory(gpu, WEFT_MEM_DEVICE, 2 * bytes, false);
  c->to = random_memory(gpu, WEFT_MEM_PINNED, 2 * bytes, false);
  c->bytes = bytes;
  c->repeat = 4;
  return add(group, c, "ceiling", "pinned copies both ways at once, bytes each way", call_duplex,
             (double)bytes, 0, "", -1);
}

// --- the tensor cores alone ---

static void call_tensor(void *user) {
  const gpu_case *c = user;
  (void)weft_bench_gpu_queue_tensor(c->gpu->queue[0]->stream, c->to, (int)c->repeat);
  wait_all(c->gpu);
}

int weft_bench_gpu_add_tensor(weft_bench_gpu *gpu, weft_bench_group *group, size_t n) {
  gpu_case *c = case_new(gpu, 1, 0, n, 0);
  c->to = memory(gpu, WEFT_MEM_DEVICE, WEFT_BENCH_TENSOR_ROOM);
  const double products = weft_bench_gpu_queue_tensor(gpu->queue[0]->stream, c->to, 1);
  wait_all(gpu);
  if (products == 0) {
    free(c);
    return -1;
  }
  c->repeat = 16;
  // A coded byte consists of 8 inner products of 8 n bits each.
  return add(group, c, "ceiling", "b1 wgmma, as bytes coded", call_tensor,
             products / (64.0 * (double)n), n, "", -1);
}

// --- products at the row ---

static void call_products(void *user) {
  const gpu_case *c = user;
  const weft_backend *row = c->gpu->ctx->row;
  const weft_exec exec = exec_of(c->gpu, 0);
  for (size_t i = 0; i < c->repeat; i++)
    weft_bench_must("gemm", row->gemm(row, &exec, c->products, c->segments));
  wait_all(c->gpu);
}

// Checks the first rows of the first product against the scalar row.
static const char *check_product(const gpu_case *c, weft_mem mem) {
  const size_t rows = c->m < 8 ? c->m : 8;
  uint8_t *a = weft_bench_alloc(rows, c->n), *x = weft_bench_alloc(c->n, c->k),
          *y = weft_bench_alloc(rows, c->k);
  const weft_bench_gpu *gpu = c->gpu;
  weft_device *device = gpu->ctx->device;
  void *stream = gpu->queue[0]->stream;
  weft_bench_must("a", weft_device_copy(device, a, WEFT_MEM_HOST, c->products[0].a, WEFT_MEM_DEVICE,
                                        rows * c->n, stream));
  weft_bench_must("x", weft_device_copy(device, x, WEFT_MEM_HOST, c->from, WEFT_MEM_DEVICE,
                                        c->n * c->k, stream));
  weft_bench_must("y", weft_device_copy(device, y, WEFT_MEM_HOST, c->products[0].y.base, mem,
                                        rows * c->k, stream));
  weft_bench_must("wait", weft_queue_wait(gpu->queue[0]));
  const char *checked =
      weft_bench_check_product(gpu->ctx->row->name, rows, c->n, c->k, a, c->n, x, c->k, y, c->k);
  free(a), free(x), free(y);
  return checked;
}

static gpu_case *products_new(weft_bench_gpu *gpu, size_t segments, size_t m, size_t n, size_t k,
                              weft_mem y_mem, bool preparing) {
  gpu_case *c = case_new(gpu, segments, m, n, k);
  const weft_backend *row = gpu->ctx->row;
  const weft_exec exec = exec_of(gpu, 0);
  c->products = weft_bench_alloc(segments, sizeof *c->products);
  c->from = random_memory(gpu, WEFT_MEM_DEVICE, segments * n * k, false);
  uint8_t *a = random_memory(gpu, WEFT_MEM_DEVICE, segments * m * n, true);
  c->to = memory(gpu, y_mem, segments * m * k);
  for (size_t s = 0; s < segments; s++) {
    weft_gemm *g = &c->products[s];
    *g = (weft_gemm){.m = m,
                     .k = n,
                     .len = k,
                     .a = a + s * m * n,
                     .a_stride = n,
                     .a_mem = WEFT_MEM_DEVICE,
                     .x = {.base = c->from + s * n * k, .stride = k, .mem = WEFT_MEM_DEVICE},
                     .y = {.base = c->to + s * m * k, .stride = k, .mem = y_mem}};
    weft_operand *operand = NULL;
    if (row->prepare && !preparing) // released when the device closes: its memory is the arena's
      weft_bench_must("prepare", row->prepare(row, &exec, n, k, &g->x, &operand));
    g->x_prepared = operand;
  }
  const double seconds = (double)segments * (double)m * (double)k * 1e-12 * 2 * (double)n / 128;
  while ((double)c->repeat * seconds < 4e-3 && c->repeat < 16)
    c->repeat++;
  return c;
}

int weft_bench_gpu_add_product(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                               size_t m, size_t n, size_t k, bool preparing, int ceiling) {
  gpu_case *c = products_new(gpu, segments, m, n, k, WEFT_MEM_DEVICE, preparing);
  call_products(c);
  const char *checked = check_product(c, WEFT_MEM_DEVICE);
  return add(group, c, segments > 1 ? "encode, many segments" : "encode",
             preparing ? "preprocessing counted" : "kernel", call_products,
             (double)segments * (double)m * (double)k, n, checked, ceiling);
}

int weft_bench_gpu_add_direct(weft_bench_gpu *gpu, weft_bench_group *group, size_t m, size_t n,
                              size_t k, int ceiling) {
  gpu_case *c = products_new(gpu, 1, m, n, k, WEFT_MEM_PINNED, false);
  c->repeat = 1;
  call_products(c);
  const char *checked = check_product(c, WEFT_MEM_PINNED);
  return add(group, c, "encode", "kernel stores to pinned memory", call_products,
             (double)m * (double)k, n, checked, ceiling);
}

// --- the library ---

static void call_encode(void *user) {
  const gpu_case *c = user;
  for (size_t i = 0; i < c->repeat; i++)
    weft_bench_must("encode",
                    weft_encoder_batches(c->encoders, c->batches, c->segments, c->gpu->queue[0]));
  wait_all(c->gpu);
}

static void encoders_new(gpu_case *c) {
  c->segment = weft_bench_alloc(c->segments, sizeof *c->segment);
  c->encoders = weft_bench_alloc(c->segments, sizeof *c->encoders);
  c->batches = weft_bench_alloc(c->segments, sizeof *c->batches);
}

static weft_segment_options segment_options(const gpu_case *c, size_t s) {
  const weft_segment_id id = {
      .stream = 1, .segment = s, .blocks = (uint32_t)c->n, .block_bytes = (uint32_t)c->k};
  return (weft_segment_options){
      .id = id, .data = c->from + s * c->n * c->k, .bytes = c->n * c->k, .mem = c->from_mem};
}

int weft_bench_gpu_add_encode(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                              size_t m, size_t n, size_t k, weft_mem to, int ceiling) {
  gpu_case *c = case_new(gpu, segments, m, n, k);
  c->from_mem = WEFT_MEM_DEVICE;
  c->from = random_memory(gpu, WEFT_MEM_DEVICE, segments * n * k, false);
  c->to = memory(gpu, to, segments * m * k);
  c->repeat = to == WEFT_MEM_DEVICE ? 4 : 1;
  encoders_new(c);
  for (size_t s = 0; s < segments; s++) {
    const weft_segment_options options = segment_options(c, s);
    weft_bench_must("segment", weft_segment_new(gpu->ctx, &options, NULL, &c->segment[s]));
    weft_bench_must(
        "encoder",
        weft_encoder_new(c->segment[s], &(weft_encoder_options){.seeded = true}, &c->encoders[s]));
    c->batches[s] =
        (weft_batch){.count = m, .payload = c->to + s * m * k, .payload_stride = k, .mem = to};
  }
  return add(group, c, segments > 1 ? "encode, many segments" : "encode",
             to == WEFT_MEM_DEVICE ? "library, seeds expanded" : "library, to pinned memory",
             call_encode, (double)segments * (double)m * (double)k, n, "by tests/cuda", ceiling);
}

// Each queue takes every QUEUES-th group of segments, so that upload, preparation, product and
// download of different groups overlap.
static void call_host_to_host(void *user) {
  gpu_case *c = user;
  const size_t group_bytes = (size_t)8 << 20, segment_bytes = c->n * c->k;
  const size_t together = segment_bytes < group_bytes ? group_bytes / segment_bytes : 1;
  for (size_t s = 0, turn = 0; s < c->segments; s += together, turn++) {
    weft_queue *queue = c->gpu->queue[turn % QUEUES];
    const size_t some = c->segments - s < together ? c->segments - s : together;
    for (size_t i = s; i < s + some; i++) {
      c->options[i] = segment_options(c, i);
      c->options[i].once = true;
    }
    weft_bench_must("segments",
                    weft_segments_new(c->gpu->ctx, c->options + s, some, queue, c->segment + s));
    for (size_t i = s; i < s + some; i++)
      weft_bench_must("encoder",
                      weft_encoder_new(c->segment[i], &(weft_encoder_options){.seeded = true},
                                       &c->encoders[i]));
    weft_bench_must("encode", weft_encoder_batches(c->encoders + s, c->batches + s, some, queue));
  }
  wait_all(c->gpu);
  for (size_t s = 0; s < c->segments; s++) {
    weft_encoder_free(c->encoders[s]);
    weft_segment_free(c->segment[s]);
  }
}

int weft_bench_gpu_add_host_to_host(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                                    size_t n, size_t k, int ceiling) {
  gpu_case *c = case_new(gpu, segments, n, n, k);
  c->from_mem = WEFT_MEM_PINNED;
  c->from = random_memory(gpu, WEFT_MEM_PINNED, segments * n * k, false);
  c->to = memory(gpu, WEFT_MEM_PINNED, segments * n * k);
  encoders_new(c);
  c->options = weft_bench_alloc(segments, sizeof *c->options);
  for (size_t s = 0; s < segments; s++)
    c->batches[s] = (weft_batch){
        .count = n, .payload = c->to + s * n * k, .payload_stride = k, .mem = WEFT_MEM_PINNED};
  return add(group, c, "encode, many segments", "pinned to pinned, both ways at once",
             call_host_to_host, (double)segments * (double)n * (double)k, n, "by tests/cuda",
             ceiling);
}

// Makes all segments resident in one call and frees them again.
static void call_upload(void *user) {
  gpu_case *c = user;
  weft_bench_must("segments", weft_segments_new(c->gpu->ctx, c->options, c->segments,
                                                c->gpu->queue[0], c->segment));
  wait_all(c->gpu);
  for (size_t s = 0; s < c->segments; s++)
    weft_segment_free(c->segment[s]);
}

int weft_bench_gpu_add_upload(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                              size_t n, size_t k, bool preparing, int ceiling) {
  gpu_case *c = case_new(gpu, segments, 0, n, k);
  c->from_mem = WEFT_MEM_PINNED;
  c->from = random_memory(gpu, WEFT_MEM_PINNED, segments * n * k, false);
  encoders_new(c);
  c->options = weft_bench_alloc(segments, sizeof *c->options);
  for (size_t s = 0; s < segments; s++) {
    c->options[s] = segment_options(c, s);
    c->options[s].once = !preparing;
  }
  return add(group, c, "segments from pinned memory", preparing ? "prepared" : "not prepared",
             call_upload, (double)segments * (double)n * (double)k, 0, "by tests/cuda", ceiling);
}

static void call_decode(void *user) {
  const gpu_case *c = user;
  weft_bench_must("decode", weft_decode_batch(c->gpu->ctx, c->jobs, c->segments, c->gpu->queue[0]));
  wait_all(c->gpu);
}

int weft_bench_gpu_add_decode(weft_bench_gpu *gpu, weft_bench_group *group, size_t segments,
                              size_t n, size_t k, weft_mem mem, int ceiling) {
  gpu_case *c = case_new(gpu, segments, n, n, k);
  c->from = random_memory(gpu, mem, segments * n * k, false);
  c->to = memory(gpu, mem, segments * n * k);
  c->jobs = weft_bench_alloc(segments, sizeof *c->jobs);
  const uint8_t *a = random_memory(gpu, mem, segments * n * n, true);
  for (size_t s = 0; s < segments; s++)
    c->jobs[s] = (weft_decode_job){.blocks = n,
                                   .block_bytes = k,
                                   .coefficients = a + s * n * n,
                                   .coefficients_stride = n,
                                   .coefficients_mem = mem,
                                   .payload = c->from + s * n * k,
                                   .payload_stride = k,
                                   .out = c->to + s * n * k,
                                   .out_stride = k,
                                   .mem = mem};
  call_decode(c);
  size_t singular = 0; // about one in 250
  for (size_t s = 0; s < segments; s++)
    singular += c->jobs[s].status == WEFT_E_SINGULAR;
  if (singular > segments / 16 + 4)
    weft_bench_must("too many singular matrices", WEFT_E_SINGULAR);
  return add(group, c, "decode, many segments",
             mem == WEFT_MEM_DEVICE ? "inversion and preprocessing counted" : "pinned to pinned",
             call_decode, (double)segments * (double)n * (double)k, n, "by tests/cuda", ceiling);
}
