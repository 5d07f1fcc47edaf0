// SPDX-License-Identifier: Apache-2.0
// Storage codes on a device, through the library: production path, published techniques, host to
// host. Beside every case stands its bound, measured in the same rounds: the time that a copy in
// device memory takes for the bytes that the case must read and write, or PCIe for host memory.
#define _POSIX_C_SOURCE 200809L // nanosleep
#include "bench/storage_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/gpu_ceilings.h"
#include "bench/gpu_clock.h"
#include "bench/storage_compile.h"
#include "lib/ctx.h"
#include "weft/weft.h"

enum {
  SHARD = 10 << 20,
  SHARDS_MOST = 61, // of a scene: 610 MiB, so that no stripe is in a cache when its turn comes
  HOST_SHARD = 64 << 20,
  PLANS = 64,
  MUCH_ARITHMETIC = 16 // outputs from which on the card may reach its power cap
};

// One device context with one stripe's memory.
typedef struct scene {
  weft_ctx *ctx;
  weft_queue *queue, *other;
  weft_mem mem;
  size_t most; // shards
  size_t shard_bytes;
  uint8_t *memory, *from, *to;
  weft_plan *plans[PLANS]; // of its cases
  size_t plan_count;
} scene;

// What a case calls.
typedef struct storage_case {
  scene *scene;
  weft_code *code;
  weft_plan *plan;                 // NULL: encode
  weft_stripe stripe[SHARDS_MOST]; // in different memory: taken in turn, or all by one call
  size_t stripes, at_once, calls;
  double warm_s;  // before every repetition: of the same calls; below 0: rest
  unsigned reads; // of the clock, one after every repetition
  weft_bench_gpu_clock low, high;
  char variant[128];
} storage_case;

static void *room(scene *s, weft_mem mem, size_t bytes) {
  void *memory;
  weft_bench_must("memory", weft_alloc(s->ctx, mem, bytes, &memory));
  return memory;
}

static void fill(scene *s, uint8_t *to, weft_mem mem, size_t bytes, uint64_t seed) {
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

static scene *scene_new(const weft_bench_storage_run *run, const char *row, weft_mem mem,
                        size_t shards, size_t shard_bytes) {
  scene *s = weft_bench_alloc(1, sizeof *s);
  *s = (scene){.mem = mem, .most = shards, .shard_bytes = shard_bytes};
  const weft_ctx_options options = {.backend = row, .compile_after = 1};
  weft_bench_must(row, weft_ctx_new(&s->ctx, &options));
  weft_bench_must("queue", weft_queue_new(s->ctx, &s->queue));
  weft_bench_must("queue", weft_queue_new(s->ctx, &s->other));
  s->memory = room(s, mem, shards * shard_bytes);
  s->from = room(s, WEFT_MEM_DEVICE, WEFT_BENCH_COPY_BYTES);
  s->to = room(s, WEFT_MEM_DEVICE, WEFT_BENCH_COPY_BYTES);
  fill(s, s->memory, mem, shards * shard_bytes, run->options.seed);
  fill(s, s->from, WEFT_MEM_DEVICE, WEFT_BENCH_COPY_BYTES, run->options.seed + 1);
  return s;
}

static void scene_free(scene *s) {
  weft_free(s->ctx, WEFT_MEM_DEVICE, s->to);
  weft_free(s->ctx, WEFT_MEM_DEVICE, s->from);
  weft_free(s->ctx, s->mem, s->memory);
  weft_queue_free(s->other);
  weft_queue_free(s->queue);
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

static int add_dram(scene *s, weft_bench_group *group, size_t k, size_t m) {
  return weft_bench_storage_add_copy(group, s->ctx, s->queue, s->to, s->from, k, m);
}

// k shares of a piece in and m out at once, `bytes` in the larger direction.
static void call_duplex(void *user) {
  const storage_case *c = user;
  scene *s = c->scene;
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

// The same on one stream: what one copy engine would take, k / (k + m) of the one-way rate.
static void call_one_engine(void *user) {
  const storage_case *c = user;
  scene *s = c->scene;
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

// `count` stripes from the case's `first` on, by one call.
static void run_stripes(const storage_case *c, size_t first, size_t count) {
  const weft_stripe *stripes = c->stripe + first;
  weft_bench_must(c->variant, c->plan ? weft_plan_run(c->plan, stripes, count, c->scene->queue)
                                      : weft_code_encode(c->code, stripes, count, c->scene->queue));
}

static void call_storage(void *user) {
  const storage_case *c = user;
  for (size_t i = 0, at = 0; i < c->calls; i++, at += c->at_once) {
    at = at + c->at_once <= c->stripes ? at : 0;
    run_stripes(c, at, c->at_once);
  }
  weft_bench_must("wait", weft_queue_wait(c->scene->queue));
}

// --- clocks ---

static void call_before(void *user) {
  const storage_case *c = user;
  const double until = weft_bench_now_s() + fabs(c->warm_s);
  const struct timespec rest = {.tv_nsec = (long)(-c->warm_s * 1e9)};
  if (c->warm_s < 0)
    (void)nanosleep(&rest, NULL);
  while (c->warm_s > 0 && weft_bench_now_s() < until)
    call_storage(user);
}

// The clock changes in milliseconds, so that it is still the one that the calls had.
static void read_clock(void *user) {
  storage_case *c = user;
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

static json_t *clocks(void *user) {
  const storage_case *c = user;
  return json_pack("{s:f, s:i, s:i, s:i, s:i, s:I}", "warm_s", c->warm_s, "clock_reads",
                   (int)c->reads, "mhz_least", (int)c->low.mhz, "mhz_most", (int)c->high.mhz,
                   "watts_most", (int)c->high.watts, "throttle_reasons",
                   (json_int_t)c->high.throttle);
}

// --- checks ---

// Compares parity with data: by the device's own verify, whose compare is another kernel, and the
// first kilobytes of a stripe by the CPU.
static const char *checked(const storage_case *c) {
  size_t wrong = 0;
  scene *s = c->scene;
  for (size_t i = 0, some; i < c->stripes; i++, wrong += some)
    weft_bench_must("verify", weft_code_verify(c->code, &c->stripe[i], NULL, &some, s->queue));
  const size_t unit = weft_code_unit_bytes(c->code), k = weft_code_data_shards(c->code);
  const size_t bytes = (16384 + unit - 1) / unit * unit;
  const size_t all = k + weft_code_parity_shards(c->code);
  uint8_t *copy = weft_bench_alloc(all, bytes);
  for (size_t i = 0; i < all; i++)
    weft_bench_must("copy", weft_device_copy(s->ctx->device, copy + i * bytes, WEFT_MEM_HOST,
                                             c->stripe->base + i * c->stripe->stride,
                                             c->stripe->mem, bytes, s->queue->stream));
  weft_bench_must("copy", weft_queue_wait(s->queue));
  weft_ctx *host;
  weft_code *code;
  size_t wrong_here = 0;
  weft_bench_must("host", weft_ctx_new(&host, &(weft_ctx_options){.backend = "scalar"}));
  const weft_code_options options = {.name = weft_code_name(c->code), .k = k, .m = all - k};
  weft_bench_must("code", weft_code_new(host, &options, &code));
  const weft_stripe stripe = {.base = copy, .stride = bytes, .bytes = bytes};
  weft_bench_must("verify", weft_code_verify(code, &stripe, NULL, &wrong_here, NULL));
  weft_code_free(code);
  weft_ctx_free(host);
  free(copy);
  if (wrong || wrong_here) {
    fprintf(stderr, "weft bench storage: wrong bytes: %s on %s\n", c->variant,
            weft_ctx_backend(s->ctx));
    exit(WEFT_BENCH_WRONG);
  }
  return "every byte on the device, 16 KiB of each shard by row scalar";
}

static weft_code *code_with(scene *s, const weft_code_options *options) {
  weft_code *code;
  weft_bench_must(options->name, weft_code_new(s->ctx, options, &code));
  return code;
}

static weft_code *code_of(scene *s, const char *name, size_t k, size_t m, size_t w) {
  return code_with(s, &(weft_code_options){.name = name, .k = k, .m = m, .w = w});
}

// A case on every stripe that the scene's memory has room for. On the device it makes as many calls
// as move the bytes of WEFT_BENCH_COPIES copies.
static storage_case *case_new(scene *s, weft_code *code) {
  storage_case *c = weft_bench_alloc(1, sizeof *c);
  const size_t unit = weft_code_unit_bytes(code);
  const size_t all = weft_code_data_shards(code) + weft_code_parity_shards(code);
  *c = (storage_case){.scene = s, .code = code, .stripes = s->most / all, .at_once = 1, .calls = 1};
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

// Other bytes where a case's results go, so that what it does not write is found out.
static void spoil(const storage_case *c, const uint8_t *lost, size_t count) {
  scene *s = c->scene;
  for (size_t i = 0; i < c->stripes; i++)
    for (size_t j = 0; j < count; j++)
      weft_bench_must("copy", weft_device_copy(s->ctx->device,
                                               c->stripe[i].base + lost[j] * c->stripe[i].stride,
                                               s->mem, s->from, WEFT_MEM_DEVICE, c->stripe[i].bytes,
                                               s->queue->stream));
}

static void spoil_parity(const storage_case *c) {
  uint8_t lost[WEFT_MAX_SHARDS];
  const size_t k = weft_code_data_shards(c->code), m = weft_code_parity_shards(c->code);
  for (size_t i = 0; i < m; i++)
    lost[i] = (uint8_t)(k + i);
  spoil(c, lost, m);
}

static int add_case(weft_bench_group *group, storage_case *c, const char *operation, int ceiling) {
  const size_t k = weft_code_data_shards(c->code), m = weft_code_parity_shards(c->code);
  const double data = (double)k * (double)c->stripe->bytes * (double)(c->calls * c->at_once);
  if (!c->plan)
    spoil_parity(c);
  for (size_t i = 0; i < c->stripes; i += c->at_once)
    run_stripes(c, i, c->at_once);
  weft_bench_must("wait", weft_queue_wait(c->scene->queue));
  const char *how = checked(c);
  return weft_bench_group_add(
      group,
      &(weft_bench_case){
          .operation = operation,
          .row = weft_ctx_backend(c->scene->ctx),
          .variant = c->variant,
          .n = k,
          .k = c->stripe->bytes,
          .m = m,
          .threads = 1,
          .amount = {[WEFT_BENCH_INPUT] = data, [WEFT_BENCH_OUTPUT] = data * (double)m / (double)k},
          .ceiling = ceiling,
          .bound_by = WEFT_BENCH_INPUT,
          .work = {.call = call_storage,
                   .user = c,
                   .before = c->warm_s != 0 ? call_before : NULL,
                   .after = read_clock,
                   .threads = 1},
          .notes = clocks,
          .checked = how,
          .owned = c});
}

// All stripes by one call.
static int add_together(weft_bench_group *group, scene *s, weft_code *code, int ceiling) {
  storage_case *c = case_new(s, code);
  c->at_once = c->stripes;
  c->calls = (c->calls + c->stripes - 1) / c->stripes;
  snprintf(c->variant, sizeof c->variant, "%s stripes=%zu", weft_code_name(code), c->stripes);
  return add_case(group, c, "encode together", ceiling);
}

// Encoding of one kind and no other for WARM_S before every repetition, so that the card has the
// clock that its power allows; and after a rest.
static void add_sustained(weft_bench_group *group, scene *s, weft_code *code, int ceiling) {
  static const double warm_s[] = {0.1, -0.02};
  for (size_t i = 0; i < sizeof warm_s / sizeof *warm_s; i++) {
    storage_case *c = case_new(s, code);
    c->warm_s = warm_s[i];
    add_case(group, c, c->warm_s > 0 ? "encode sustained" : "encode rested", ceiling);
  }
}

// Encode, one stripe or all by a call, and recovery of min(k, m) data shards and of m shards of
// both kinds, one stripe by a call.
static void add_code(scene *s, weft_bench_group *group, weft_code *code, int ceiling) {
  const size_t k = weft_code_data_shards(code), m = weft_code_parity_shards(code);
  const int encode = add_case(group, case_new(s, code), "encode", ceiling);
  if (s->most / (k + m) > 1)
    add_together(group, s, code, ceiling);
  if (m >= MUCH_ARITHMETIC)
    add_sustained(group, s, code, ceiling);
  uint8_t lost[WEFT_MAX_SHARDS];
  for (int mixed = 0; mixed < 2; mixed++) {
    const size_t count = weft_bench_storage_lost(k, m, mixed, lost);
    storage_case *c = case_new(s, code);
    const weft_erasures erasures = {.lost = lost, .lost_count = count};
    weft_bench_must("plan", weft_plan_for(code, &erasures, &c->plan));
    s->plans[s->plan_count++] = c->plan;
    snprintf(c->variant, sizeof c->variant, "%s lost=%zu %s", weft_code_name(code), count,
             mixed ? "data and parity" : "data");
    spoil(c, lost, count);
    const int recover = add_case(group, c, "recover", ceiling);
    weft_bench_group_ask(group,
                         mixed ? "recover data and parity / encode" : "recover data / encode",
                         recover, encode, WEFT_BENCH_INPUT);
  }
}

static void run_group(weft_bench_storage_run *run, weft_bench_group *group) {
  group->shown[0] = WEFT_BENCH_INPUT;
  group->shown[1] = WEFT_BENCH_OUTPUT;
  weft_bench_report_run(&run->report, &run->options, group);
}

// Plans and codes outlive the cases that use them.
enum { CODES = 24, SHAPES = WEFT_BENCH_LIST * CODES };

// The shapes asked for that fit a scene, else all of these with as many data as parity shards or
// more.
static size_t choose_shapes(const weft_bench_storage_run *run, const size_t *ks, size_t k_count,
                            weft_bench_sizes_of_code out[SHAPES]) {
  static const size_t presets[] = {2, 4, 8, 16};
  weft_bench_sizes ms = run->options.m;
  weft_bench_sizes_default(&ms, presets, sizeof presets / sizeof *presets);
  weft_bench_sizes_of_code all[SHAPES];
  size_t count = 0;
  for (size_t a = 0; a < ms.count; a++)
    for (size_t b = 0; b < k_count; b++)
      if (ks[b] >= ms.value[a])
        all[count++] = (weft_bench_sizes_of_code){ks[b], ms.value[a]};
  const size_t asked = weft_bench_storage_shapes(run, all, count, out, SHAPES);
  count = 0;
  for (size_t i = 0; i < asked; i++)
    if (out[i].k + out[i].m <= SHARDS_MOST)
      out[count++] = out[i];
  return count;
}

// Codes of one m, on one scene.
static void resident_group(weft_bench_storage_run *run, const char *name, size_t w,
                           const char *title, const weft_bench_sizes_of_code *shapes,
                           size_t shape_count) {
  scene *s = scene_new(run, "cuda", WEFT_MEM_DEVICE, SHARDS_MOST, SHARD);
  weft_code *codes[CODES];
  char text[128];
  snprintf(text, sizeof text, "%s, 10 MiB shards, resident, m = %zu", title, shapes->m);
  weft_bench_group *group = weft_bench_group_new(text);
  for (size_t i = 0; i < shape_count; i++) {
    codes[i] = code_of(s, name, shapes[i].k, shapes[i].m, w);
    add_code(s, group, codes[i], add_dram(s, group, shapes[i].k, shapes[i].m));
  }
  run_group(run, group);
  weft_bench_group_free(group);
  while (s->plan_count > 0)
    weft_plan_free(s->plans[--s->plan_count]);
  while (shape_count > 0)
    weft_code_free(codes[--shape_count]);
  scene_free(s);
}

static void resident(weft_bench_storage_run *run, const char *name, size_t w, const char *title,
                     const size_t *ks, size_t k_count) {
  weft_bench_sizes_of_code shapes[SHAPES];
  const size_t count = choose_shapes(run, ks, k_count, shapes);
  weft_bench_storage_compile(run, name, w, shapes, count);
  for (size_t first = 0, next; first < count; first = next) {
    for (next = first; next < count && next - first < CODES && shapes[next].m == shapes[first].m;)
      next++;
    resident_group(run, name, w, title, shapes + first, next - first);
  }
}

void weft_bench_storage_gpu_rs(weft_bench_storage_run *run) {
  static const size_t ks[] = {2, 4, 8, 10, 13, 16, 20, 24, 32, 33, 45};
  resident(run, "cauchy", 0, "RS over GF(2^8)", ks, sizeof ks / sizeof *ks);
}

// Fewer shapes: each has three kernels compiled.
static const size_t crs_ks[] = {2, 4, 8, 16, 32, 45};

void weft_bench_storage_gpu_crs(weft_bench_storage_run *run) {
  resident(run, "cauchy_good", 0, "CRS, smallest w", crs_ks, sizeof crs_ks / sizeof *crs_ks);
}

void weft_bench_storage_gpu_crs8(weft_bench_storage_run *run) {
  resident(run, "cauchy_good", 8, "CRS, w = 8", crs_ks, sizeof crs_ks / sizeof *crs_ks);
}

// Every row of the table on G-CRS's own layout, or on bytes.
void weft_bench_storage_gpu_rows(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{10, 2}, {10, 4}, {16, 8}, {32, 16}};
  for (size_t a = 0; a < sizeof shapes / sizeof *shapes; a++) {
    const size_t k = shapes[a].k, m = shapes[a].m;
    char text[128];
    snprintf(text, sizeof text, "published techniques, 10 MiB shards, %zu + %zu", k, m);
    weft_bench_group *group = weft_bench_group_new(text);
    scene *scenes[2 * CODES];
    weft_code *codes[2 * CODES];
    size_t count = 0;
    int ceiling = -1;
    for (size_t r = 0; r < weft_backend_count; r++) {
      const weft_backend *row = &weft_backends[r];
      const bool bytes = strcmp(row->name, "cuda-gibraltar") == 0 || r == 0;
      const bool packets = strncmp(row->name, "cuda-gcrs", 9) == 0 ||
                           strncmp(row->name, "cuda-perasure", 13) == 0 || r == 0;
      for (int crs = 0; crs < 2 && row->mem == WEFT_MEM_DEVICE; crs++) {
        if (!(crs ? packets : bytes) || count == 2 * CODES)
          continue;
        scene *s = scene_new(run, row->name, WEFT_MEM_DEVICE, k + m, SHARD);
        scenes[count] = s;
        codes[count] = code_of(s, crs ? "gcrs" : "vandermonde", k, m, 0);
        if (ceiling < 0)
          ceiling = add_dram(s, group, k, m);
        storage_case *c = case_new(s, codes[count++]);
        c->calls = WEFT_BENCH_COPIES;
        const weft_status status = weft_code_encode(c->code, c->stripe, 1, s->queue);
        if (status == WEFT_E_UNSUPPORTED) {
          printf("%s: %s does not take %zu + %zu\n", c->variant, row->name, k, m);
          free(c);
          continue;
        }
        add_case(group, c, "encode", ceiling);
      }
    }
    run_group(run, group);
    weft_bench_group_free(group);
    while (count > 0) {
      weft_code_free(codes[--count]);
      scene_free(scenes[count]);
    }
  }
}

void weft_bench_storage_gpu_host(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{4, 2}, {10, 4}, {8, 8}};
  for (size_t a = 0; a < sizeof shapes / sizeof *shapes; a++) {
    const size_t k = shapes[a].k, m = shapes[a].m;
    scene *s = scene_new(run, "cuda", WEFT_MEM_PINNED, k + m, HOST_SHARD);
    char text[128];
    snprintf(text, sizeof text, "host to host, pinned, 64 MiB shards, %zu + %zu", k, m);
    weft_bench_group *group = weft_bench_group_new(text);
    weft_code *rs = code_of(s, "cauchy", k, m, 0), *crs = code_of(s, "cauchy_good", k, m, 0);
    const weft_code_options in_place = {.name = "cauchy", .k = k, .m = m, .zero_copy = true};
    weft_code *where_it_lies = code_with(s, &in_place);
    const double data = (double)k * HOST_SHARD;
    int bounds[2];
    for (int one = 0; one < 2; one++) {
      storage_case *c = case_new(s, rs);
      c->stripe->bytes = HOST_SHARD;
      bounds[one] = weft_bench_group_add(
          group, &(weft_bench_case){
                     .operation = "ceiling",
                     .row = "copy",
                     .variant = one ? "PCIe, one engine for k in and m out"
                                    : "PCIe, k in and m out at once",
                     .n = k,
                     .k = HOST_SHARD,
                     .m = m,
                     .threads = 1,
                     .amount = {[WEFT_BENCH_INPUT] = data},
                     .ceiling = -1,
                     .work = {.call = one ? call_one_engine : call_duplex, .user = c, .threads = 1},
                     .owned = c});
    }
    const int both[2] = {add_case(group, case_new(s, rs), "encode", bounds[0]),
                         add_case(group, case_new(s, crs), "encode", bounds[0])};
    weft_bench_group_ask(group, "RS / one engine", both[0], bounds[1], WEFT_BENCH_INPUT);
    weft_bench_group_ask(group, "CRS / one engine", both[1], bounds[1], WEFT_BENCH_INPUT);
    storage_case *c = case_new(s, where_it_lies);
    strcat(c->variant, ", zero copy");
    const int there = add_case(group, c, "encode", bounds[0]);
    weft_bench_group_ask(group, "zero copy / pieces", there, both[0], WEFT_BENCH_INPUT);
    run_group(run, group);
    weft_bench_group_free(group);
    weft_code_free(where_it_lies);
    weft_code_free(crs);
    weft_code_free(rs);
    scene_free(s);
  }
}

void weft_bench_storage_gpu_device(weft_bench_storage_run *run) {
  weft_ctx *ctx;
  weft_bench_must("device", weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda"}));
  json_t *device = json_object();
  json_object_set_new(device, "name", json_string(weft_device_name(ctx->device)));
  json_object_set_new(device, "sm", json_integer(weft_device_sm(ctx->device)));
  json_object_set_new(device, "driver", weft_bench_gpu_driver());
  json_object_set_new(device, "ceilings", weft_bench_gpu_ceilings(ctx));
  json_object_set_new(run->report.root, "device", device);
  weft_ctx_free(ctx);
}
