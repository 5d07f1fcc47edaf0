// SPDX-License-Identifier: Apache-2.0
// Where recovery matrices come from: computed in closed form on the CPU or inverted on the device
// (GPU-RSCode) in each call, or kept in a plan. Shards are short, so that the difference shows.
#include "bench/storage_gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/storage_compile.h"
#include "lib/ctx.h"
#include "weft/weft.h"

enum { SHARD = 64 << 10, WAYS = 3 };

typedef struct inverse_case {
  weft_queue *queue;
  weft_code *code;
  weft_stripe stripe;
  weft_erasures erasures;
} inverse_case;

static void call_recover(void *user) {
  const inverse_case *c = user;
  weft_bench_must("recover", weft_code_recover(c->code, &c->erasures, &c->stripe, 1, c->queue));
  weft_bench_must("wait", weft_queue_wait(c->queue));
}

static void must_be_right(const inverse_case *c) {
  size_t wrong = 0;
  weft_bench_must("verify", weft_code_verify(c->code, &c->stripe, NULL, &wrong, c->queue));
  if (wrong == 0)
    return;
  fprintf(stderr, "weft bench storage: wrong bytes: %s on %s\n", weft_code_name(c->code), "cuda");
  exit(WEFT_BENCH_WRONG);
}

static void put(weft_ctx *ctx, const inverse_case *c, size_t shard, const uint8_t *bytes,
                size_t shards) {
  weft_bench_must("copy",
                  weft_device_copy(ctx->device, c->stripe.base + shard * SHARD, WEFT_MEM_DEVICE,
                                   bytes, WEFT_MEM_HOST, shards * SHARD, c->queue->stream));
  weft_bench_must("wait", weft_queue_wait(c->queue));
}

// Writes random data and its parity, and other bytes to lost shards.
static void prepare(weft_ctx *ctx, const inverse_case *c, uint64_t seed) {
  const size_t k = weft_code_data_shards(c->code);
  uint8_t *data = weft_bench_alloc(k, SHARD);
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  weft_bench_random_bytes(&random, data, k * SHARD);
  put(ctx, c, 0, data, k);
  weft_bench_must("encode", weft_code_encode(c->code, &c->stripe, 1, c->queue));
  weft_bench_random_bytes(&random, data, SHARD);
  for (size_t i = 0; i < c->erasures.lost_count; i++)
    put(ctx, c, c->erasures.lost[i], data, 1);
  free(data);
}

static void measure(weft_bench_storage_run *run, weft_ctx *ctx, weft_queue *queue, size_t k,
                    size_t m) {
  static const struct {
    const char *name;
    size_t plans;
    bool on_device;
  } ways[WAYS] = {{"plan kept", 0, false},
                  {"matrix by the CPU", WEFT_NO_PLANS, false},
                  {"matrix by the GPU", WEFT_NO_PLANS, true}};
  char title[96];
  snprintf(title, sizeof title, "recovery matrices, %zu + %zu, 64 KiB shards, resident", k, m);
  weft_bench_group *group = weft_bench_group_new(title);
  uint8_t lost[WEFT_MAX_SHARDS];
  void *memory;
  weft_bench_must("memory", weft_alloc(ctx, WEFT_MEM_DEVICE, (k + m) * SHARD, &memory));
  weft_code *codes[WAYS];
  int cases[WAYS];
  const size_t lost_count = weft_bench_storage_lost(k, m, false, lost);
  for (size_t i = 0; i < WAYS; i++) {
    const weft_code_options options = {.name = "cauchy",
                                       .k = k,
                                       .m = m,
                                       .cached_plans = ways[i].plans,
                                       .device_inverse = ways[i].on_device};
    weft_bench_must("code", weft_code_new(ctx, &options, &codes[i]));
    inverse_case *c = weft_bench_alloc(1, sizeof *c);
    *c = (inverse_case){
        .queue = queue,
        .code = codes[i],
        .stripe = {.base = memory, .stride = SHARD, .bytes = SHARD, .mem = WEFT_MEM_DEVICE},
        .erasures = {.lost = lost, .lost_count = lost_count}};
    prepare(ctx, c, run->options.seed + i);
    call_recover(c);
    must_be_right(c);
    cases[i] = weft_bench_group_add(
        group, &(weft_bench_case){.operation = "recover",
                                  .row = weft_ctx_backend(ctx),
                                  .variant = ways[i].name,
                                  .n = k,
                                  .k = SHARD,
                                  .m = m,
                                  .threads = 1,
                                  .amount = {[WEFT_BENCH_INPUT] = (double)k * SHARD,
                                             [WEFT_BENCH_OUTPUT] = (double)lost_count * SHARD},
                                  .ceiling = -1,
                                  .work = {.call = call_recover, .user = c, .threads = 1},
                                  .checked = "every byte on the device",
                                  .owned = c});
  }
  weft_bench_group_ask(group, "matrix by the CPU / plan kept", cases[1], cases[0],
                       WEFT_BENCH_INPUT);
  weft_bench_group_ask(group, "matrix by the GPU / by the CPU", cases[2], cases[1],
                       WEFT_BENCH_INPUT);
  group->shown[0] = WEFT_BENCH_INPUT;
  group->shown[1] = WEFT_BENCH_OUTPUT;
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  for (size_t i = 0; i < WAYS; i++)
    weft_code_free(codes[i]);
  weft_free(ctx, WEFT_MEM_DEVICE, memory);
}

void weft_bench_storage_gpu_inverse(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {
      {10, 4}, {32, 8}, {64, 16}, {128, 32}, {200, 56}};
  weft_ctx *ctx;
  weft_queue *queue;
  weft_bench_must("device", weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda"}));
  weft_bench_must("queue", weft_queue_new(ctx, &queue));
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    measure(run, ctx, queue, shapes[i].k, shapes[i].m);
  weft_queue_free(queue);
  weft_ctx_free(ctx);
}
