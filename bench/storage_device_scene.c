// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L // nanosleep
#include "bench/storage_device_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "lib/ctx.h"
#include "lib/storage/code.h"
#include "weft/weft.h"

static void *room(weft_bench_device_scene *s, weft_mem mem, size_t bytes) {
  void *memory;
  weft_bench_must("memory", weft_alloc(s->ctx, mem, bytes, &memory));
  return memory;
}

static void fill(weft_bench_device_scene *s, uint8_t *to, weft_mem mem, size_t bytes,
                 uint64_t seed) {
  enum { PIECE = 8 << 20 };
  uint8_t *piece = weft_bench_alloc(1, PIECE);
  weft_bench_random random;
  weft_bench_random_seed(&random, seed);
  for (size_t at = 0; at < bytes; at += PIECE) {
    const size_t some = bytes - at < PIECE ? bytes - at : PIECE;
    if (at % (8 * (size_t)PIECE) == 0)
      weft_bench_random_bytes(&random, piece, PIECE);
    weft_bench_must("copy", weft_device_copy(s->ctx->device, to + at, mem, piece, WEFT_MEM_HOST,
                                             some, s->queue->stream));
  }
  weft_bench_must("copy", weft_queue_wait(s->queue));
  free(piece);
}

// Returns a context to check results with: a row that shares no byte product with the scene's and,
// for packets, only kernels that are not made for a matrix. Nothing is compiled for it or taken
// from a folder.
static weft_ctx *judge_new(const char *row) {
  static const weft_code_store nothing = {0};
  const bool same = strcmp(row, "cuda-nibble-prmt") == 0;
  const weft_ctx_options options = {.backend = same ? "cuda-loop" : "cuda-nibble-prmt",
                                    .compile_after = SIZE_MAX,
                                    .code_store = &nothing};
  weft_ctx *judge;
  weft_bench_must(options.backend, weft_ctx_new(&judge, &options));
  return judge;
}

weft_bench_device_scene *weft_bench_device_scene_new(const weft_bench_storage_run *run,
                                                     const char *row, weft_mem mem, size_t shards,
                                                     size_t shard_bytes) {
  weft_bench_device_scene *s = weft_bench_alloc(1, sizeof *s);
  *s = (weft_bench_device_scene){.mem = mem, .most = shards, .shard_bytes = shard_bytes};
  const weft_ctx_options options = {.backend = row, .compile_after = 1};
  weft_bench_must(row, weft_ctx_new(&s->ctx, &options));
  s->judge = mem == WEFT_MEM_DEVICE ? judge_new(weft_ctx_backend(s->ctx)) : NULL;
  weft_bench_must("queue", weft_queue_new(s->ctx, &s->queue));
  weft_bench_must("queue", weft_queue_new(s->ctx, &s->other));
  s->memory = room(s, mem, shards * shard_bytes);
  s->from = room(s, WEFT_MEM_DEVICE, WEFT_BENCH_COPY_BYTES);
  s->to = room(s, WEFT_MEM_DEVICE, WEFT_BENCH_COPY_BYTES);
  fill(s, s->memory, mem, shards * shard_bytes, run->options.seed);
  fill(s, s->from, WEFT_MEM_DEVICE, WEFT_BENCH_COPY_BYTES, run->options.seed + 1);
  return s;
}

void weft_bench_device_scene_free(weft_bench_device_scene *s) {
  weft_free(s->ctx, WEFT_MEM_DEVICE, s->to);
  weft_free(s->ctx, WEFT_MEM_DEVICE, s->from);
  weft_free(s->ctx, s->mem, s->memory);
  weft_queue_free(s->other);
  weft_queue_free(s->queue);
  weft_ctx_free(s->judge);
  weft_ctx_free(s->ctx);
  free(s);
}

// --- ceilings ---

typedef struct copy_case {
  weft_ctx *ctx;
  weft_queue *queue;
  uint8_t *to;
  const uint8_t *from;
  char variant[64];
} copy_case;

static void call_copy(void *user) {
  const copy_case *c = user;
  for (int i = 0; i < WEFT_BENCH_COPIES; i++)
    weft_bench_must("copy",
                    weft_device_copy(c->ctx->device, c->to, WEFT_MEM_DEVICE, c->from,
                                     WEFT_MEM_DEVICE, WEFT_BENCH_COPY_BYTES, c->queue->stream));
  weft_bench_must("copy", weft_queue_wait(c->queue));
}

int weft_bench_storage_add_copy(weft_bench_group *group, weft_ctx *ctx, weft_queue *queue,
                                uint8_t *to, const uint8_t *from, size_t k, size_t m) {
  copy_case *c = weft_bench_alloc(1, sizeof *c);
  *c = (copy_case){.ctx = ctx, .queue = queue, .to = to, .from = from};
  snprintf(c->variant, sizeof c->variant, "device memory, %zu of %zu", k, k + m);
  const double moved = 2.0 * WEFT_BENCH_COPY_BYTES * WEFT_BENCH_COPIES;
  return weft_bench_group_add(
      group,
      &(weft_bench_case){.operation = "ceiling",
                         .row = "copy",
                         .variant = c->variant,
                         .n = k,
                         .k = WEFT_BENCH_COPY_BYTES,
                         .m = m,
                         .threads = 1,
                         .amount = {[WEFT_BENCH_INPUT] = moved * (double)k / (double)(k + m)},
                         .ceiling = -1,
                         .work = {.call = call_copy, .user = c, .threads = 1},
                         .owned = c});
}

int weft_bench_device_scene_copy(weft_bench_device_scene *s, weft_bench_group *group, size_t k,
                                 size_t m) {
  return weft_bench_storage_add_copy(group, s->ctx, s->queue, s->to, s->from, k, m);
}

// Copies k shards of a piece in and m out at once.
void weft_bench_device_scene_duplex(void *user) {
  const weft_bench_device_scene_case *c = user;
  weft_bench_device_scene *s = c->scene;
  const size_t k = weft_code_data_shards(c->code), m = weft_code_parity_shards(c->code);
  for (size_t i = 0; i < k; i++)
    weft_bench_must("copy", weft_device_copy(s->ctx->device, s->to, WEFT_MEM_DEVICE,
                                             c->stripe->base + i * c->stripe->stride,
                                             WEFT_MEM_PINNED, c->stripe->bytes, s->queue->stream));
  for (size_t i = 0; i < m; i++)
    weft_bench_must("copy",
                    weft_device_copy(s->ctx->device, c->stripe->base + (k + i) * c->stripe->stride,
                                     WEFT_MEM_PINNED, s->from, WEFT_MEM_DEVICE, c->stripe->bytes,
                                     s->other->stream));
  weft_bench_must("copy", weft_queue_wait(s->queue));
  weft_bench_must("copy", weft_queue_wait(s->other));
}

// The same on one stream, as with one copy engine: k / (k + m) of the one-way rate.
void weft_bench_device_scene_one_engine(void *user) {
  const weft_bench_device_scene_case *c = user;
  weft_bench_device_scene *s = c->scene;
  const size_t k = weft_code_data_shards(c->code), m = weft_code_parity_shards(c->code);
  for (size_t i = 0; i < k + m; i++) {
    uint8_t *shard = c->stripe->base + i * c->stripe->stride;
    weft_bench_must("copy",
                    i < k ? weft_device_copy(s->ctx->device, s->to, WEFT_MEM_DEVICE, shard,
                                             WEFT_MEM_PINNED, c->stripe->bytes, s->queue->stream)
                          : weft_device_copy(s->ctx->device, shard, WEFT_MEM_PINNED, s->from,
                                             WEFT_MEM_DEVICE, c->stripe->bytes, s->queue->stream));
  }
  weft_bench_must("copy", weft_queue_wait(s->queue));
}

// --- cases ---

// Runs `count` stripes, from the case's `first` on, in one call.
static void run_stripes(const weft_bench_device_scene_case *c, size_t first, size_t count) {
  const weft_stripe *stripes = c->stripe + first;
  weft_bench_must(c->variant, c->plan ? weft_plan_run(c->plan, stripes, count, c->scene->queue)
                                      : weft_code_encode(c->code, stripes, count, c->scene->queue));
}

static void call_storage(void *user) {
  const weft_bench_device_scene_case *c = user;
  for (size_t i = 0, at = 0; i < c->calls; i++, at += c->at_once) {
    at = at + c->at_once <= c->stripes ? at : 0;
    run_stripes(c, at, c->at_once);
  }
  weft_bench_must("wait", weft_queue_wait(c->scene->queue));
}

// --- clocks ---

static void call_before(void *user) {
  const weft_bench_device_scene_case *c = user;
  const double until = weft_bench_now_s() + fabs(c->warm_s);
  const struct timespec rest = {.tv_nsec = (long)(-c->warm_s * 1e9)};
  if (c->warm_s < 0)
    (void)nanosleep(&rest, NULL);
  while (c->warm_s > 0 && weft_bench_now_s() < until)
    call_storage(user);
}

// Clocks change within milliseconds, so this is still the clock that the calls had.
static void read_clock(void *user) {
  weft_bench_device_scene_case *c = user;
  weft_bench_gpu_clock now;
  if (!weft_bench_gpu_clock_read(&now))
    return;
  if (c->reads++ == 0)
    c->low = c->high = now;
  c->low.mhz = now.mhz < c->low.mhz ? now.mhz : c->low.mhz;
  c->high.mhz = now.mhz > c->high.mhz ? now.mhz : c->high.mhz;
  c->high.watts = now.watts > c->high.watts ? now.watts : c->high.watts;
  c->high.throttle |= now.throttle;
}

// Clocks, and the costs of the factored matrix, from which the kernel may have been made.
static json_t *notes(void *user) {
  const weft_bench_device_scene_case *c = user;
  json_t *out =
      json_pack("{s:f, s:i, s:i, s:i, s:i, s:I}", "warm_s", c->warm_s, "clock_reads", (int)c->reads,
                "mhz_least", (int)c->low.mhz, "mhz_most", (int)c->high.mhz, "watts_most",
                (int)c->high.watts, "throttle_reasons", (json_int_t)c->high.throttle);
  weft_plan *const plan = c->plan ? c->plan : c->code->encode;
  const weft_factors *f = atomic_load(&plan->factors);
  if (f)
    json_object_set_new(out, "factors",
                        json_pack("{s:I, s:I, s:I, s:I}", "slots", (json_int_t)f->slots, "products",
                                  (json_int_t)f->products, "repeated", (json_int_t)f->repeated,
                                  "sums", (json_int_t)f->sums));
  return out;
}

// --- checks ---

// Returns the case's code in another context.
static weft_code *same_code(const weft_bench_device_scene_case *c, weft_ctx *ctx) {
  const weft_code_options options = {.name = weft_code_name(c->code),
                                     .k = weft_code_data_shards(c->code),
                                     .m = weft_code_parity_shards(c->code)};
  weft_code *code;
  weft_bench_must("code", weft_code_new(ctx, &options, &code));
  return code;
}

// Returns the number of wrong parity shards of all stripes: by the judge if they are on the device,
// otherwise by the host, which shares nothing with the device.
static size_t wrong_shards(const weft_bench_device_scene_case *c) {
  weft_code *other = c->scene->judge ? same_code(c, c->scene->judge) : NULL;
  size_t wrong = 0;
  for (size_t i = 0, some = 0; i < c->stripes; i++, wrong += some)
    weft_bench_must("verify",
                    weft_code_verify(other ? other : c->code, &c->stripe[i], NULL, &some, NULL));
  weft_code_free(other);
  return wrong;
}

// The same for `bytes` bytes of a stripe from `at` on, by the code of a host row.
static size_t wrong_in_window(const weft_bench_device_scene_case *c, weft_code *code,
                              const weft_stripe *stripe, size_t at, size_t bytes) {
  weft_bench_device_scene *s = c->scene;
  const size_t all = weft_code_data_shards(code) + weft_code_parity_shards(code);
  uint8_t *copy = weft_bench_alloc(all, bytes);
  for (size_t i = 0; i < all; i++)
    weft_bench_must("copy", weft_device_copy(s->ctx->device, copy + i * bytes, WEFT_MEM_HOST,
                                             stripe->base + i * stripe->stride + at, stripe->mem,
                                             bytes, s->queue->stream));
  weft_bench_must("copy", weft_queue_wait(s->queue));
  const weft_stripe there = {.base = copy, .stride = bytes, .bytes = bytes};
  size_t wrong = 0;
  weft_bench_must("verify", weft_code_verify(code, &there, NULL, &wrong, NULL));
  free(copy);
  return wrong;
}

// Compares parity with data: all of it by kernels other than those that made it, and the first and
// last kilobytes by the scalar row, the reference of all others.
static const char *checked(const weft_bench_device_scene_case *c) {
  const weft_stripe *last = &c->stripe[c->stripes - 1];
  const size_t unit = weft_code_unit_bytes(c->code), some = (16384 + unit - 1) / unit * unit;
  const size_t bytes = some < last->bytes ? some : last->bytes;
  weft_ctx *host;
  weft_bench_must("host", weft_ctx_new(&host, &(weft_ctx_options){.backend = "scalar"}));
  weft_code *code = same_code(c, host);
  const size_t wrong = wrong_shards(c) + wrong_in_window(c, code, c->stripe, 0, bytes) +
                       wrong_in_window(c, code, last, last->bytes - bytes, bytes);
  weft_code_free(code);
  weft_ctx_free(host);
  if (wrong) {
    fprintf(stderr, "weft bench storage: wrong bytes: %s on %s\n", c->variant,
            weft_ctx_backend(c->scene->ctx));
    exit(WEFT_BENCH_WRONG);
  }
  return c->scene->judge ? "every byte by another row of the device, 16 KiB at both ends by scalar"
                         : "every byte by the host's row, 16 KiB at both ends by scalar";
}

weft_code *weft_bench_device_scene_code(weft_bench_device_scene *s,
                                        const weft_code_options *options) {
  weft_code *code;
  weft_bench_must(options->name, weft_code_new(s->ctx, options, &code));
  return code;
}

weft_bench_device_scene_case *weft_bench_device_scene_case_new(weft_bench_device_scene *s,
                                                               weft_code *code) {
  weft_bench_device_scene_case *c = weft_bench_alloc(1, sizeof *c);
  const size_t unit = weft_code_unit_bytes(code);
  const size_t all = weft_code_data_shards(code) + weft_code_parity_shards(code);
  *c = (weft_bench_device_scene_case){
      .scene = s, .code = code, .stripes = s->most / all, .at_once = 1, .calls = 1};
  for (size_t i = 0; i < c->stripes; i++)
    c->stripe[i] = (weft_stripe){.base = s->memory + i * all * s->shard_bytes,
                                 .stride = s->shard_bytes,
                                 .bytes = s->shard_bytes / unit * unit,
                                 .mem = s->mem};
  if (s->mem == WEFT_MEM_DEVICE)
    c->calls = 2 * (size_t)WEFT_BENCH_COPY_BYTES * WEFT_BENCH_COPIES / (all * s->shard_bytes);
  snprintf(c->variant, sizeof c->variant, "%s", weft_code_name(code));
  return c;
}

void weft_bench_device_scene_spoil(const weft_bench_device_scene_case *c, const uint8_t *lost,
                                   size_t count) {
  weft_bench_device_scene *s = c->scene;
  for (size_t i = 0; i < c->stripes; i++)
    for (size_t j = 0; j < count; j++)
      weft_bench_must("copy", weft_device_copy(s->ctx->device,
                                               c->stripe[i].base + lost[j] * c->stripe[i].stride,
                                               s->mem, s->from, WEFT_MEM_DEVICE, c->stripe[i].bytes,
                                               s->queue->stream));
}

static void spoil_parity(const weft_bench_device_scene_case *c) {
  uint8_t lost[WEFT_MAX_SHARDS];
  const size_t k = weft_code_data_shards(c->code), m = weft_code_parity_shards(c->code);
  for (size_t i = 0; i < m; i++)
    lost[i] = (uint8_t)(k + i);
  weft_bench_device_scene_spoil(c, lost, m);
}

int weft_bench_device_scene_add(weft_bench_group *group, weft_bench_device_scene_case *c,
                                const char *operation, int ceiling) {
  const size_t k = weft_code_data_shards(c->code), m = weft_code_parity_shards(c->code);
  const double shard = (double)c->stripe->bytes * (double)(c->calls * c->at_once);
  const size_t outputs = c->plan ? c->plan->outputs : m;
  if (!c->plan)
    spoil_parity(c);
  for (size_t i = 0; i < c->stripes; i += c->at_once)
    run_stripes(c, i, c->at_once);
  weft_bench_must("wait", weft_queue_wait(c->scene->queue));
  const char *how = checked(c);
  return weft_bench_group_add(
      group, &(weft_bench_case){
                 .operation = operation,
                 .row = weft_ctx_backend(c->scene->ctx),
                 .variant = c->variant,
                 .n = k,
                 .k = c->stripe->bytes,
                 .m = m,
                 .threads = 1,
                 .amount = {[WEFT_BENCH_INPUT] = shard * (double)k,
                            [WEFT_BENCH_OUTPUT] = shard * (double)outputs},
                 .ceiling = outputs < m ? -1 : ceiling, // a bound of m outputs does not bound fewer
                 .bound_by = WEFT_BENCH_INPUT,
                 .work = {.call = call_storage,
                          .user = c,
                          .before = c->warm_s != 0 ? call_before : NULL,
                          .after = read_clock,
                          .threads = 1},
                 .notes = notes,
                 .checked = how,
                 .owned = c});
}
