// SPDX-License-Identifier: Apache-2.0
// One code on 1, 2, 4, ... devices at once, from and to pinned memory: either stripes are dealt to
// the devices, or each device makes some of the parity from all of the data (Gibraltar, section 6).
// Plain copies of the same bytes on as many devices are the bound of both.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/storage_gpu.h"
#include "kernels/device.h"
#include "lib/ctx.h"
#include "weft/weft.h"

enum { MOST = 16, STRIPES = 8, SHARD = 16 << 20 };

typedef struct devices {
  weft_ctx *ctx[MOST];
  weft_code *code[MOST];
  weft_queue *in[MOST], *out[MOST]; // for plain copies
  uint8_t *room[MOST];              // two shards on each device
  size_t count;
  uint8_t *memory; // (STRIPES, k + m) shards, pinned
  weft_stripe stripes[STRIPES];
} devices;

typedef struct shared_case {
  weft_code_group *members;
  weft_code_split split;
  const devices *of;
  size_t count; // devices
  char variant[64], question[64];
} shared_case;

static void call_group(void *user) {
  const shared_case *c = user;
  weft_bench_must("group", weft_code_group_encode(c->members, c->split, c->of->stripes, STRIPES));
}

// What the bus and the host's memory allow: all data in and all parity out, at once.
static void call_copies(void *user) {
  const shared_case *c = user;
  const devices *d = c->of;
  const size_t k = weft_code_data_shards(d->code[0]), m = weft_code_parity_shards(d->code[0]);
  for (size_t s = 0; s < STRIPES; s++) {
    const size_t at = s % c->count;
    weft_device *device = d->ctx[at]->device;
    for (size_t i = 0; i < k + m; i++) {
      uint8_t *shard = d->stripes[s].base + i * SHARD;
      weft_bench_must("copy",
                      i < k ? weft_device_copy(device, d->room[at], WEFT_MEM_DEVICE, shard,
                                               WEFT_MEM_PINNED, SHARD, d->in[at]->stream)
                            : weft_device_copy(device, shard, WEFT_MEM_PINNED, d->room[at] + SHARD,
                                               WEFT_MEM_DEVICE, SHARD, d->out[at]->stream));
    }
  }
  for (size_t at = 0; at < c->count; at++) {
    weft_bench_must("copy", weft_queue_wait(d->in[at]));
    weft_bench_must("copy", weft_queue_wait(d->out[at]));
  }
}

static void open_devices(const weft_bench_storage_run *run, devices *d, size_t k, size_t m) {
  *d = (devices){.count = 0};
  while (d->count < MOST && d->count < weft_device_count()) {
    const weft_ctx_options options = {.backend = "cuda", .device = d->count, .compile_after = 1};
    weft_bench_must("device", weft_ctx_new(&d->ctx[d->count], &options));
    const weft_code_options code = {.name = "cauchy", .k = k, .m = m};
    weft_bench_must("code", weft_code_new(d->ctx[d->count], &code, &d->code[d->count]));
    weft_bench_must("queue", weft_queue_new(d->ctx[d->count], &d->in[d->count]));
    weft_bench_must("queue", weft_queue_new(d->ctx[d->count], &d->out[d->count]));
    void *room;
    weft_bench_must("memory", weft_alloc(d->ctx[d->count], WEFT_MEM_DEVICE, 2 * SHARD, &room));
    d->room[d->count++] = room;
  }
  const size_t stripe_bytes = (k + m) * SHARD;
  void *memory;
  weft_bench_must("memory",
                  weft_alloc(d->ctx[0], WEFT_MEM_PINNED, STRIPES * stripe_bytes, &memory));
  d->memory = memory;
  weft_bench_random random;
  weft_bench_random_seed(&random, run->options.seed);
  for (size_t s = 0; s < STRIPES; s++) {
    d->stripes[s] = (weft_stripe){.base = d->memory + s * stripe_bytes,
                                  .stride = SHARD,
                                  .bytes = SHARD,
                                  .mem = WEFT_MEM_PINNED};
    weft_bench_random_bytes(&random, d->stripes[s].base, k * SHARD);
  }
}

static void close_devices(devices *d) {
  weft_free(d->ctx[0], WEFT_MEM_PINNED, d->memory);
  for (size_t i = d->count; i-- > 0;) {
    weft_free(d->ctx[i], WEFT_MEM_DEVICE, d->room[i]);
    weft_queue_free(d->out[i]);
    weft_queue_free(d->in[i]);
    weft_code_free(d->code[i]);
    weft_ctx_free(d->ctx[i]);
  }
}

// Checks every stripe's parity, made by all members, on the host: verifying pinned stripes uses no
// device.
static const char *checked(const devices *d, size_t k, size_t m) {
  size_t wrong = 0;
  for (size_t s = 0, some = 0; s < STRIPES; s++, wrong += some)
    weft_bench_must("verify",
                    weft_code_verify(d->code[s % d->count], &d->stripes[s], NULL, &some, NULL));
  // And a piece of the last parity shard by the scalar row, the reference of all others.
  uint8_t *piece = d->stripes[STRIPES - 1].base + (k + m - 1) * SHARD;
  uint8_t *const copy = weft_bench_alloc(m, 4096);
  weft_ctx *host;
  weft_code *code;
  weft_bench_must("host", weft_ctx_new(&host, &(weft_ctx_options){.backend = "scalar"}));
  weft_bench_must(
      "code", weft_code_new(host, &(weft_code_options){.name = "cauchy", .k = k, .m = m}, &code));
  uint8_t *shards[WEFT_MAX_SHARDS];
  for (size_t i = 0; i < k; i++)
    shards[i] = d->stripes[STRIPES - 1].base + i * SHARD;
  for (size_t i = 0; i < m; i++)
    shards[k + i] = copy + i * 4096;
  const weft_stripe first = {.shards = shards, .bytes = 4096};
  weft_bench_must("encode", weft_code_encode(code, &first, 1, NULL));
  for (size_t b = 0; b < 4096; b++)
    wrong += copy[(m - 1) * 4096 + b] != piece[b];
  weft_code_free(code);
  weft_ctx_free(host);
  free(copy);
  if (wrong) {
    fprintf(stderr, "weft bench storage: wrong bytes from several devices\n");
    exit(WEFT_BENCH_WRONG);
  }
  return "every stripe by verify on the host, 4 KiB of a shard by row scalar";
}

static int add_copies(weft_bench_group *group, const devices *d, size_t count) {
  const size_t k = weft_code_data_shards(d->code[0]), m = weft_code_parity_shards(d->code[0]);
  shared_case *c = weft_bench_alloc(1, sizeof *c);
  *c = (shared_case){.of = d, .count = count};
  snprintf(c->variant, sizeof c->variant, "PCIe, k in and m out at once, %zu device%s", count,
           count == 1 ? "" : "s");
  return weft_bench_group_add(
      group, &(weft_bench_case){.operation = "ceiling",
                                .row = "copy",
                                .variant = c->variant,
                                .n = k,
                                .k = SHARD,
                                .m = m,
                                .threads = 1, // the calling one
                                .amount = {[WEFT_BENCH_INPUT] = (double)k * SHARD * STRIPES},
                                .ceiling = -1,
                                .work = {.call = call_copies, .user = c, .threads = 1},
                                .owned = c});
}

// `one`: the case of one device, or -1.
static int add_shared(weft_bench_group *group, const devices *d, size_t count,
                      weft_code_split split, int ceiling, int one) {
  const size_t k = weft_code_data_shards(d->code[0]), m = weft_code_parity_shards(d->code[0]);
  shared_case *c = weft_bench_alloc(1, sizeof *c);
  *c = (shared_case){.split = split, .of = d, .count = count};
  weft_bench_must("group", weft_code_group_new(d->code, count, &c->members));
  for (size_t s = 0; s < STRIPES; s++) // bytes left by another case must not count as right
    memset(d->stripes[s].base + k * SHARD, 0x5a, m * SHARD);
  call_group(c);
  const char *how = checked(d, k, m);
  const char *by = split == WEFT_CODE_SPLIT_ROWS ? "rows" : "stripes";
  snprintf(c->variant, sizeof c->variant, "cauchy, pinned, %zu device%s, by %s", count,
           count == 1 ? "" : "s", by);
  snprintf(c->question, sizeof c->question, "%zu devices / one, by %s", count, by);
  const double data = (double)k * SHARD * STRIPES;
  const int index = weft_bench_group_add(
      group,
      &(weft_bench_case){
          .operation = "encode-devices",
          .row = weft_ctx_backend(d->ctx[0]),
          .variant = c->variant,
          .n = k,
          .k = SHARD,
          .m = m,
          .threads = 1, // the calling one
          .amount = {[WEFT_BENCH_INPUT] = data, [WEFT_BENCH_OUTPUT] = data * (double)m / (double)k},
          .ceiling = ceiling,
          .bound_by = WEFT_BENCH_INPUT,
          .work = {.call = call_group, .user = c, .threads = 1},
          .checked = how,
          .owned = c});
  if (one >= 0)
    weft_bench_group_ask(group, c->question, index, one, WEFT_BENCH_INPUT);
  return index;
}

void weft_bench_storage_gpu_devices(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code preset[] = {{10, 4}, {8, 8}};
  weft_bench_sizes_of_code shapes[WEFT_BENCH_STORAGE_SHAPES];
  const size_t count = weft_bench_storage_shapes(run, preset, sizeof preset / sizeof *preset,
                                                 shapes, WEFT_BENCH_STORAGE_SHAPES);
  // The members' threads inherit the cores that this thread may use.
  weft_bench_unpin(&run->machine);
  for (size_t a = 0; a < count; a++) {
    devices d;
    open_devices(run, &d, shapes[a].k, shapes[a].m);
    char *title = weft_bench_text("one code on several devices, pinned, %d stripes of 16 MiB "
                                  "shards, %zu + %zu",
                                  STRIPES, shapes[a].k, shapes[a].m);
    weft_bench_group *group = weft_bench_group_new(title);
    group->shown[0] = WEFT_BENCH_INPUT;
    group->shown[1] = WEFT_BENCH_OUTPUT;
    const int one = add_shared(group, &d, 1, WEFT_CODE_SPLIT_STRIPES, add_copies(group, &d, 1), -1);
    for (size_t some = 2; some <= d.count; some *= 2) {
      const int copies = add_copies(group, &d, some);
      add_shared(group, &d, some, WEFT_CODE_SPLIT_STRIPES, copies, one);
      add_shared(group, &d, some, WEFT_CODE_SPLIT_ROWS, copies, one);
    }
    weft_bench_report_run(&run->report, &run->options, group);
    for (size_t i = 0; i < group->case_count; i++)
      weft_code_group_free(((shared_case *)group->cases[i].work.user)->members);
    weft_bench_group_free(group);
    free(title);
    close_devices(&d);
  }
  weft_bench_pin(&run->machine, 0);
}
