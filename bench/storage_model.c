// SPDX-License-Identifier: Apache-2.0
// What a model of encoding on a device must predict (G-CRS's cells: k = 1..45, m = 1..4, w = 4..8),
// and what it is based on, in the same rounds: the same bytes of the same shards read and written
// with hardly any arithmetic, in one launch, or in one launch per stripe like encoding.
#include "bench/storage_gpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/buffers.h"
#include "bench/check.h"
#include "bench/cuda/table_bench.h"
#include "bench/storage_compile.h"
#include "bench/storage_device_scene.h"
#include "lib/ctx.h"
#include "weft/weft.h"

#if WEFT_HAVE_CUDA

enum {
  W_LEAST = 4,
  W_MOST = 8,
  M_MOST = 4,
  CODES = 64,      // in a group
  SMALL = 16 << 10 // bytes per shard, all of which the scalar row checks
};

static const size_t ks[] = {1, 2, 4, 8, 10, 16, 24, 32, 45};
enum { KS = sizeof ks / sizeof *ks, ALONE = 8 }; // ALONE: rows that are only read, or only written

typedef struct mix_case {
  weft_bench_device_scene *scene;
  bench_mix mix;
  unsigned passes;
  bool a_launch_a_stripe;
  char variant[64];
} mix_case;

static void call_mix(void *user) {
  const mix_case *c = user;
  void *const stream = c->scene->queue->stream;
  bool launched = c->a_launch_a_stripe || bench_mix_all(stream, &c->mix, c->passes);
  for (unsigned i = 0; c->a_launch_a_stripe && launched && i < c->passes * c->mix.stripes; i++)
    launched = bench_mix_one(stream, &c->mix, i);
  weft_bench_must(c->variant, launched ? WEFT_OK : WEFT_E_DEVICE);
  weft_bench_must(c->variant, weft_queue_wait(c->scene->queue));
}

static int add_mix(weft_bench_device_scene *s, weft_bench_group *group, size_t k, size_t m,
                   bool a_launch_a_stripe) {
  const size_t all = k + m, stripes = s->most / all, stripe_bytes = all * s->shard_bytes;
  const size_t moved = 2 * (size_t)WEFT_BENCH_COPY_BYTES * WEFT_BENCH_COPIES;
  mix_case *c = weft_bench_alloc(1, sizeof *c);
  *c = (mix_case){.scene = s,
                  .mix = {.rows = s->memory,
                          .bytes = s->shard_bytes,
                          .k = (unsigned)k,
                          .m = (unsigned)m,
                          .stripes = (unsigned)stripes},
                  .passes = (unsigned)(moved / (stripes * stripe_bytes)),
                  .a_launch_a_stripe = a_launch_a_stripe};
  snprintf(c->variant, sizeof c->variant, "%zu read, %zu written%s", k, m,
           a_launch_a_stripe ? ", a launch a stripe" : "");
  const double row = (double)c->passes * (double)(stripes * s->shard_bytes);
  return weft_bench_group_add(
      group,
      &(weft_bench_case){
          .operation = "ceiling",
          .row = "mix",
          .variant = c->variant,
          .n = k,
          .k = s->shard_bytes,
          .m = m,
          .threads = 1,
          .amount = {[WEFT_BENCH_INPUT] = row * (double)k, [WEFT_BENCH_OUTPUT] = row * (double)m},
          .ceiling = -1,
          .work = {.call = call_mix, .user = c, .threads = 1},
          .owned = c});
}

// Calls with almost nothing to do: the least that a call takes, on host or device.
static void add_small(weft_bench_device_scene *s, weft_bench_group *group, weft_code *code) {
  weft_bench_device_scene_case *c = weft_bench_device_scene_case_new(s, code);
  const size_t unit = weft_code_unit_bytes(code), bytes = (SMALL + unit - 1) / unit * unit;
  for (size_t i = 0; i < c->stripes; i++)
    c->stripe[i].bytes = bytes;
  weft_bench_device_scene_add(group, c, "small", -1);
}

// RS, and CRS with every w that allows k + m.
static size_t codes_of(size_t k, size_t m, weft_code_options *out) {
  size_t count = 0;
  out[count++] = (weft_code_options){.name = "cauchy", .k = k, .m = m};
  for (size_t w = W_LEAST; w <= W_MOST; w++)
    if (k + m <= (size_t)1 << w)
      out[count++] = (weft_code_options){.name = "cauchy_good", .k = k, .m = m, .w = w};
  return count;
}

static void measure_m(weft_bench_storage_run *run, weft_bench_device_scene *s, size_t m) {
  weft_code *codes[CODES];
  size_t count = 0;
  char title[96];
  snprintf(title, sizeof title, "encoding, 10 MiB shards, for its model, m = %zu", m);
  weft_bench_group *group = weft_bench_group_new(title);
  weft_bench_device_scene_copy(s, group, ALONE, ALONE);
  add_mix(s, group, ALONE, 0, false);
  add_mix(s, group, 0, ALONE, false);
  for (size_t i = 0; i < KS; i++) {
    const int ceiling = add_mix(s, group, ks[i], m, false);
    add_mix(s, group, ks[i], m, true);
    weft_code_options wanted[1 + W_MOST];
    const size_t wanted_count = codes_of(ks[i], m, wanted);
    for (size_t j = 0; j < wanted_count; j++) {
      codes[count] = weft_bench_device_scene_code(s, &wanted[j]);
      weft_bench_device_scene_add(group, weft_bench_device_scene_case_new(s, codes[count++]),
                                  "encode", ceiling);
    }
    if (i == 0 || i == KS - 1)
      add_small(s, group, codes[count - 1]);
  }
  group->shown[0] = WEFT_BENCH_INPUT;
  group->shown[1] = WEFT_BENCH_OUTPUT;
  weft_bench_report_run(&run->report, &run->options, group);
  weft_bench_group_free(group);
  while (count > 0)
    weft_code_free(codes[--count]);
}

void weft_bench_storage_gpu_model(weft_bench_storage_run *run) {
  weft_code_options codes[KS * M_MOST * (1 + W_MOST)];
  size_t count = 0;
  for (size_t i = 0; i < KS; i++)
    for (size_t m = 1; m <= M_MOST; m++)
      count += codes_of(ks[i], m, codes + count);
  weft_bench_storage_compile(run, codes, count, false);
  weft_bench_device_scene *s = weft_bench_device_scene_new(
      run, "cuda", WEFT_MEM_DEVICE, WEFT_BENCH_DEVICE_SCENE_SHARDS, WEFT_BENCH_SHARD);
  for (size_t m = 1; m <= M_MOST; m++)
    measure_m(run, s, m);
  weft_bench_device_scene_free(s);
}

#else

void weft_bench_storage_gpu_model(weft_bench_storage_run *run) { (void)run; }

#endif
