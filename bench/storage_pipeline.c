// SPDX-License-Identifier: Apache-2.0
// Moves pieces of host stripes through a device, step by step or all steps together.
#include "bench/storage_pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/storage_gpu.h"
#include "lib/ctx.h"
#include "weft/weft.h"

enum { MADE = 512, WINDOW = 16384, ALIGN = 256 };

struct weft_bench_pipeline {
  weft_ctx *ctx, *host_ctx;
  weft_queue *queues[WEFT_BENCH_STREAMS];
  weft_mem mem;
  size_t shards, shard_bytes, device_bytes;
  uint8_t *host;   // (shards, shard_bytes)
  uint8_t *device; // pieces; random bytes once a case has been checked
  uint8_t *copied; // two halves of WEFT_BENCH_COPY_BYTES
  weft_code *codes[MADE];
  weft_plan *plans[MADE];
  size_t code_count, plan_count;
};

typedef struct piece_case {
  weft_bench_pipeline *pipeline;
  weft_bench_piecework work;
  weft_plan *plan; // NULL: encode
  size_t k, m, step;
  char variant[96];
} piece_case;

static void fill(const weft_bench_pipeline *p, uint64_t seed) {
  enum { PIECE = 4 << 20 };
  uint8_t *piece = weft_bench_alloc(1, PIECE);
  const size_t bytes = p->shards * p->shard_bytes;
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  weft_bench_random_bytes(&random, piece, PIECE);
  for (size_t at = 0; at < bytes; at += PIECE)
    memcpy(p->host + at, piece, bytes - at < PIECE ? bytes - at : PIECE);
  free(piece);
}

weft_bench_pipeline *weft_bench_pipeline_new(const weft_bench_storage_run *run, const char *row,
                                             weft_mem mem, size_t shards, size_t shard_bytes,
                                             size_t device_bytes) {
  weft_bench_pipeline *p = weft_bench_alloc(1, sizeof *p);
  // The stride must not be a multiple of PIECE, which fill() repeats: shards would be equal.
  shard_bytes = (shard_bytes + ALIGN - 1) / ALIGN * ALIGN + ALIGN;
  *p = (weft_bench_pipeline){
      .mem = mem, .shards = shards, .shard_bytes = shard_bytes, .device_bytes = device_bytes};
  void *memory = NULL;
  weft_bench_must(row,
                  weft_ctx_new(&p->ctx, &(weft_ctx_options){.backend = row, .compile_after = 1}));
  weft_bench_must("host", weft_ctx_new(&p->host_ctx, &(weft_ctx_options){.backend = "scalar"}));
  for (size_t i = 0; i < WEFT_BENCH_STREAMS; i++)
    weft_bench_must("queue", weft_queue_new(p->ctx, &p->queues[i]));
  weft_bench_must("memory", weft_alloc(p->ctx, WEFT_MEM_DEVICE, p->device_bytes, &memory));
  p->device = memory;
  weft_bench_must("memory",
                  weft_alloc(p->ctx, WEFT_MEM_DEVICE, 2 * (size_t)WEFT_BENCH_COPY_BYTES, &memory));
  p->copied = memory;
  if (mem == WEFT_MEM_PINNED)
    weft_bench_must("memory", weft_alloc(p->ctx, mem, shards * shard_bytes, &memory));
  else
    memory = weft_bench_alloc(shards, shard_bytes);
  p->host = memory;
  fill(p, run->options.seed);
  return p;
}

void weft_bench_pipeline_free(weft_bench_pipeline *p) {
  if (!p)
    return;
  while (p->plan_count > 0)
    weft_plan_free(p->plans[--p->plan_count]);
  while (p->code_count > 0)
    weft_code_free(p->codes[--p->code_count]);
  if (p->mem == WEFT_MEM_PINNED)
    weft_free(p->ctx, p->mem, p->host);
  else
    free(p->host);
  weft_free(p->ctx, WEFT_MEM_DEVICE, p->copied);
  weft_free(p->ctx, WEFT_MEM_DEVICE, p->device);
  for (size_t i = 0; i < WEFT_BENCH_STREAMS; i++)
    weft_queue_free(p->queues[i]);
  weft_ctx_free(p->host_ctx);
  weft_ctx_free(p->ctx);
  free(p);
}

static void full(void) {
  fprintf(stderr, "weft bench storage: too many codes in a pipeline\n");
  exit(WEFT_BENCH_USAGE);
}

weft_code *weft_bench_pipeline_code(weft_bench_pipeline *p, const char *name, size_t k, size_t m,
                                    size_t w) {
  if (p->code_count == MADE)
    full();
  const weft_code_options options = {.name = name, .k = k, .m = m, .w = w};
  weft_bench_must(name, weft_code_new(p->ctx, &options, &p->codes[p->code_count]));
  return p->codes[p->code_count++];
}

// --- pieces ---

static void must(const piece_case *c, weft_status status) { weft_bench_must(c->variant, status); }

static uint8_t *host_shard(const piece_case *c, size_t i) {
  return c->pipeline->host + i * c->pipeline->shard_bytes;
}

static bool is_output(const piece_case *c, size_t shard) {
  return c->work.lost ? shard < c->work.lost : shard >= c->k;
}

static bool is_input(const piece_case *c, size_t shard) {
  return shard < c->k + c->work.lost && !is_output(c, shard);
}

// Runs one piece on one queue. `all` copies the outputs in as well, so that missing writes are
// detected.
static weft_status run_piece(const piece_case *c, size_t at, size_t slot, weft_bench_step steps,
                             bool all) {
  const weft_bench_pipeline *p = c->pipeline;
  const weft_queue *queue = p->queues[slot];
  const size_t left = c->work.bytes - at, n = left < c->step ? left : c->step;
  const size_t room = (c->step + ALIGN - 1) / ALIGN * ALIGN;
  uint8_t *base = p->device + slot * (c->k + c->m) * room;
  for (size_t i = 0; (steps & WEFT_BENCH_STEP_IN) && i < c->k + c->m; i++)
    if (all || is_input(c, i))
      must(c, weft_device_copy(p->ctx->device, base + i * room, WEFT_MEM_DEVICE,
                               host_shard(c, i) + at, p->mem, n, queue->stream));
  if (steps & WEFT_BENCH_STEP_COMPUTE) {
    const weft_stripe stripe = {.base = base, .stride = room, .bytes = n, .mem = WEFT_MEM_DEVICE};
    WEFT_TRY(c->plan ? weft_plan_run(c->plan, &stripe, 1, p->queues[slot])
                     : weft_code_encode(c->work.code, &stripe, 1, p->queues[slot]));
  }
  for (size_t i = 0; (steps & WEFT_BENCH_STEP_OUT) && i < c->k + c->m; i++)
    if (is_output(c, i))
      must(c, weft_device_copy(p->ctx->device, host_shard(c, i) + at, p->mem, base + i * room,
                               WEFT_MEM_DEVICE, n, queue->stream));
  return WEFT_OK;
}

static weft_status run_pieces(const piece_case *c, weft_bench_step steps, bool all) {
  weft_status status = WEFT_OK;
  for (size_t r = 0; r < (all ? 1 : c->work.repeat); r++)
    for (size_t at = 0, piece = 0; at < c->work.bytes && status == WEFT_OK; at += c->step, piece++)
      status = run_piece(c, at, piece % c->work.streams, steps, all);
  for (size_t i = 0; i < c->work.streams; i++)
    must(c, weft_queue_wait(c->pipeline->queues[i]));
  return status;
}

static void call_pieces(void *user) {
  const piece_case *c = user;
  must(c, run_pieces(c, c->work.steps, false));
}

// --- checks ---

// Checks the same bytes of all shards against the code, by the scalar row.
static void check_window(const piece_case *c, weft_code *code, size_t at, size_t bytes) {
  size_t wrong = 0;
  const weft_stripe stripe = {
      .base = c->pipeline->host + at, .stride = c->pipeline->shard_bytes, .bytes = bytes};
  must(c, weft_code_verify(code, &stripe, NULL, &wrong, NULL));
  if (wrong) {
    fprintf(stderr, "weft bench storage: wrong bytes: %s on %s\n", c->variant,
            weft_ctx_backend(c->pipeline->ctx));
    exit(WEFT_BENCH_WRONG);
  }
}

// Runs all steps on overwritten outputs, and checks both ends of the shards.
static weft_status check(const piece_case *c) {
  const size_t unit = weft_code_unit_bytes(c->work.code);
  const size_t most = c->work.bytes < WINDOW ? c->work.bytes : WINDOW;
  const size_t bytes = most < unit ? unit : most / unit * unit, last = c->work.bytes - bytes;
  for (size_t i = 0; i < c->k + c->m; i++)
    if (is_output(c, i)) {
      memset(host_shard(c, i), 0xa5, bytes);
      memset(host_shard(c, i) + last, 0x5a, bytes);
    }
  WEFT_TRY(run_pieces(c, WEFT_BENCH_STEP_ALL, true));
  weft_code *code;
  const weft_code_options options = {
      .name = weft_code_name(c->work.code), .k = c->k, .m = c->m, .cached_plans = WEFT_NO_PLANS};
  must(c, weft_code_new(c->pipeline->host_ctx, &options, &code));
  check_window(c, code, 0, bytes);
  check_window(c, code, last, bytes);
  weft_code_free(code);
  return WEFT_OK;
}

// Recovery starts from a complete stripe.
static weft_status prepare(piece_case *c) {
  if (!c->work.lost)
    return WEFT_OK;
  piece_case encode = *c;
  encode.work.lost = 0;
  WEFT_TRY(run_pieces(&encode, WEFT_BENCH_STEP_ALL, true));
  uint8_t lost[WEFT_MAX_SHARDS];
  for (size_t i = 0; i < c->work.lost; i++)
    lost[i] = (uint8_t)i;
  const weft_erasures erasures = {.lost = lost, .lost_count = c->work.lost};
  if (c->pipeline->plan_count == MADE)
    full();
  WEFT_TRY(weft_plan_for(c->work.code, &erasures, &c->plan));
  c->pipeline->plans[c->pipeline->plan_count++] = c->plan;
  return WEFT_OK;
}

int weft_bench_pipeline_add(weft_bench_pipeline *p, weft_bench_group *group,
                            const weft_bench_piecework *work, int ceiling) {
  piece_case *c = weft_bench_alloc(1, sizeof *c);
  const size_t unit = weft_code_unit_bytes(work->code), piece = work->piece_bytes;
  *c = (piece_case){.pipeline = p,
                    .work = *work,
                    .k = weft_code_data_shards(work->code),
                    .m = weft_code_parity_shards(work->code),
                    .step = piece < unit ? unit : piece / unit * unit};
  c->work.bytes = work->bytes < unit ? unit : work->bytes / unit * unit;
  snprintf(c->variant, sizeof c->variant, "%s", work->variant);
  const size_t room = (c->step + ALIGN - 1) / ALIGN * ALIGN;
  if (c->k + c->m > p->shards || c->work.bytes > p->shard_bytes ||
      work->streams > WEFT_BENCH_STREAMS ||
      work->streams * (c->k + c->m) * room > p->device_bytes) {
    fprintf(stderr, "weft bench storage: %s does not fit its pipeline\n", c->variant);
    exit(WEFT_BENCH_USAGE);
  }
  weft_status status = prepare(c);
  if (status == WEFT_OK)
    status = check(c);
  if (status == WEFT_E_UNSUPPORTED) {
    printf("%s does not take %s, %zu + %zu\n", weft_ctx_backend(p->ctx), weft_code_name(work->code),
           c->k, c->m);
    free(c);
    return -1;
  }
  must(c, status);
  const double data = (double)(c->k * c->work.bytes * work->repeat);
  const double outputs = (double)(work->lost ? work->lost : c->m);
  return weft_bench_group_add(
      group,
      &(weft_bench_case){
          .operation = work->lost ? "recover" : "encode",
          .row = weft_ctx_backend(p->ctx),
          .variant = c->variant,
          .n = c->k,
          .k = c->work.bytes,
          .m = c->m,
          .threads = 1,
          .amount =
              {[WEFT_BENCH_INPUT] = data, [WEFT_BENCH_OUTPUT] = data * outputs / (double)c->k},
          .ceiling = ceiling,
          .bound_by = WEFT_BENCH_INPUT,
          .work = {.call = call_pieces, .user = c, .threads = 1},
          .checked = "all steps before, 16 KiB at both ends of each shard by row scalar",
          .owned = c});
}

int weft_bench_pipeline_add_dram(weft_bench_pipeline *p, weft_bench_group *group, size_t k,
                                 size_t m) {
  return weft_bench_storage_add_copy(group, p->ctx, p->queues[0], p->copied,
                                     p->copied + WEFT_BENCH_COPY_BYTES, k, m);
}
