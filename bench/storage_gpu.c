// SPDX-License-Identifier: Apache-2.0
// Storage codes on a device, through the library: the production path, published techniques, and
// host to host. Every case has its bound, measured in the same rounds: a copy in device memory of
// the bytes that the case must read and write, or PCIe for host memory.
#include "bench/storage_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/check.h"
#include "bench/gpu_ceilings.h"
#include "bench/gpu_clock.h"
#include "bench/storage_compile.h"
#include "bench/storage_device_scene.h"
#include "lib/ctx.h"
#include "weft/weft.h"

enum { MUCH_ARITHMETIC = 16 }; // outputs from which the card may reach its power cap

static weft_code *code_of(weft_bench_device_scene *s, const char *name, size_t k, size_t m,
                          size_t w) {
  return weft_bench_device_scene_code(s,
                                      &(weft_code_options){.name = name, .k = k, .m = m, .w = w});
}

// All stripes in one call.
static int add_together(weft_bench_group *group, weft_bench_device_scene *s, weft_code *code,
                        int ceiling) {
  weft_bench_device_scene_case *c = weft_bench_device_scene_case_new(s, code);
  c->at_once = c->stripes;
  c->calls = (c->calls + c->stripes - 1) / c->stripes;
  snprintf(c->variant, sizeof c->variant, "%s stripes=%zu", weft_code_name(code), c->stripes);
  return weft_bench_device_scene_add(group, c, "encode together", ceiling);
}

// Adds cases of one kind of encoding after the same calls for a while before each repetition, so
// that the card is at the clock that its power limit allows; and after a rest. They come last,
// because they would slow down the other cases.
static void add_sustained(weft_bench_group *group, weft_bench_device_scene *s, weft_code *code,
                          int ceiling) {
  static const double warm_s[] = {0.1, -0.02};
  for (size_t i = 0; i < sizeof warm_s / sizeof *warm_s; i++) {
    weft_bench_device_scene_case *c = weft_bench_device_scene_case_new(s, code);
    c->warm_s = warm_s[i];
    weft_bench_device_scene_add(group, c, c->warm_s > 0 ? "encode sustained" : "encode rested",
                                ceiling);
  }
}

// The same stripe repeatedly: every call overwrites what the one before wrote, and waits for it.
static void add_again(weft_bench_group *group, weft_bench_device_scene *s, weft_code *code,
                      const weft_bench_device_scene_case *like, int ceiling) {
  weft_bench_device_scene_case *c = weft_bench_device_scene_case_new(s, code);
  c->plan = like ? like->plan : NULL;
  c->stripes = 1;
  snprintf(c->variant, sizeof c->variant, "%s", like ? like->variant : weft_code_name(code));
  weft_bench_device_scene_add(group, c, like ? "recover again" : "encode again", ceiling);
}

// Adds encoding, of one stripe or all stripes per call, and recovery of min(k, m) shards, of data
// only and of any kind, one stripe per call.
static void add_code(weft_bench_device_scene *s, weft_bench_group *group, weft_code *code,
                     int ceiling) {
  const size_t k = weft_code_data_shards(code), m = weft_code_parity_shards(code);
  const int encode = weft_bench_device_scene_add(group, weft_bench_device_scene_case_new(s, code),
                                                 "encode", ceiling);
  if (s->most / (k + m) > 1)
    add_together(group, s, code, ceiling);
  uint8_t lost[WEFT_MAX_SHARDS];
  for (int mixed = 0; mixed < 2; mixed++) {
    const size_t count = weft_bench_storage_lost(k, m, mixed, lost);
    weft_bench_device_scene_case *c = weft_bench_device_scene_case_new(s, code);
    const weft_erasures erasures = {.lost = lost, .lost_count = count};
    weft_bench_must("plan", weft_plan_for(code, &erasures, &c->plan));
    s->plans[s->plan_count++] = c->plan;
    snprintf(c->variant, sizeof c->variant, "%s lost=%zu %s", weft_code_name(code), count,
             mixed ? "data and parity" : "data");
    weft_bench_device_scene_spoil(c, lost, count);
    const int recover = weft_bench_device_scene_add(group, c, "recover", ceiling);
    weft_bench_group_ask(group,
                         mixed ? "recover data and parity / encode" : "recover data / encode",
                         recover, encode, WEFT_BENCH_INPUT);
    if (m >= MUCH_ARITHMETIC)
      add_again(group, s, code, c, ceiling);
  }
  if (m >= MUCH_ARITHMETIC)
    add_again(group, s, code, NULL, ceiling);
}

static void run_group(weft_bench_storage_run *run, weft_bench_group *group) {
  group->shown[0] = WEFT_BENCH_INPUT;
  group->shown[1] = WEFT_BENCH_OUTPUT;
  weft_bench_report_run(&run->report, &run->options, group);
}

// Plans and codes outlive the cases that use them.
enum { CODES = 24, SHAPES = WEFT_BENCH_LIST * CODES };

// Returns the shapes of --shapes that fit a scene and says which do not, otherwise all presets with
// at least as many data as parity shards.
static size_t choose_shapes(const weft_bench_storage_run *run, const char *part, const size_t *ks,
                            size_t k_count, weft_bench_sizes_of_code out[SHAPES]) {
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
    if (out[i].k + out[i].m <= WEFT_BENCH_STRIPE_SHARDS)
      out[count++] = out[i];
    else
      printf("%s: %zu+%zu is left out: at most %d shards\n", part, out[i].k, out[i].m,
             WEFT_BENCH_STRIPE_SHARDS);
  if (count == 0)
    printf("%s: there is no shape to measure\n", part);
  return count;
}

// Measures codes of one m, on one scene.
static void resident_group(weft_bench_storage_run *run, const char *name, size_t w,
                           const char *title, const weft_bench_sizes_of_code *shapes,
                           size_t shape_count) {
  weft_bench_device_scene *s = weft_bench_device_scene_new(
      run, "cuda", WEFT_MEM_DEVICE, WEFT_BENCH_DEVICE_SCENE_SHARDS, WEFT_BENCH_SHARD);
  weft_code *codes[CODES];
  int ceilings[CODES];
  char text[128];
  snprintf(text, sizeof text, "%s, 10 MiB shards, resident, m = %zu", title, shapes->m);
  weft_bench_group *group = weft_bench_group_new(text);
  for (size_t i = 0; i < shape_count; i++) {
    codes[i] = code_of(s, name, shapes[i].k, shapes[i].m, w);
    ceilings[i] = weft_bench_device_scene_copy(s, group, shapes[i].k, shapes[i].m);
    add_code(s, group, codes[i], ceilings[i]);
  }
  for (size_t i = 0; i < shape_count && shapes[i].m >= MUCH_ARITHMETIC; i++)
    add_sustained(group, s, codes[i], ceilings[i]);
  run_group(run, group);
  weft_bench_group_free(group);
  while (s->plan_count > 0)
    weft_plan_free(s->plans[--s->plan_count]);
  while (shape_count > 0)
    weft_code_free(codes[--shape_count]);
  weft_bench_device_scene_free(s);
}

static void resident(weft_bench_storage_run *run, const char *name, size_t w, const char *title,
                     const size_t *ks, size_t k_count) {
  weft_bench_sizes_of_code shapes[SHAPES];
  weft_code_options codes[SHAPES];
  const size_t count = choose_shapes(run, title, ks, k_count, shapes);
  for (size_t i = 0; i < count; i++)
    codes[i] = (weft_code_options){.name = name, .k = shapes[i].k, .m = shapes[i].m, .w = w};
  weft_bench_storage_compile(run, codes, count, true);
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

// Fewer shapes, because each has three kernels compiled.
static const size_t crs_ks[] = {2, 4, 8, 16, 32, 45};

void weft_bench_storage_gpu_crs(weft_bench_storage_run *run) {
  resident(run, "cauchy_good", 0, "CRS, smallest w", crs_ks, sizeof crs_ks / sizeof *crs_ks);
}

void weft_bench_storage_gpu_crs8(weft_bench_storage_run *run) {
  resident(run, "cauchy_good", 8, "CRS, w = 8", crs_ks, sizeof crs_ks / sizeof *crs_ks);
}

// Every row of the table, on G-CRS's own layout or on bytes.
void weft_bench_storage_gpu_rows(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{10, 2}, {10, 4}, {16, 8}, {32, 16}};
  for (size_t a = 0; a < sizeof shapes / sizeof *shapes; a++) {
    const size_t k = shapes[a].k, m = shapes[a].m;
    char text[128];
    snprintf(text, sizeof text, "published techniques, 10 MiB shards, %zu + %zu", k, m);
    weft_bench_group *group = weft_bench_group_new(text);
    weft_bench_device_scene *scenes[2 * CODES];
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
        weft_bench_device_scene *s =
            weft_bench_device_scene_new(run, row->name, WEFT_MEM_DEVICE, k + m, WEFT_BENCH_SHARD);
        scenes[count] = s;
        codes[count] = code_of(s, crs ? "gcrs" : "vandermonde", k, m, 0);
        if (ceiling < 0)
          ceiling = weft_bench_device_scene_copy(s, group, k, m);
        weft_bench_device_scene_case *c = weft_bench_device_scene_case_new(s, codes[count++]);
        c->calls = WEFT_BENCH_COPIES;
        const weft_status status = weft_code_encode(c->code, c->stripe, 1, s->queue);
        if (status == WEFT_E_UNSUPPORTED) {
          printf("%s: %s does not take %zu + %zu\n", c->variant, row->name, k, m);
          free(c);
          continue;
        }
        weft_bench_device_scene_add(group, c, "encode", ceiling);
      }
    }
    run_group(run, group);
    weft_bench_group_free(group);
    while (count > 0) {
      weft_code_free(codes[--count]);
      weft_bench_device_scene_free(scenes[count]);
    }
  }
}

void weft_bench_storage_gpu_host(weft_bench_storage_run *run) {
  static const weft_bench_sizes_of_code shapes[] = {{4, 2}, {10, 4}, {8, 8}};
  for (size_t a = 0; a < sizeof shapes / sizeof *shapes; a++) {
    const size_t k = shapes[a].k, m = shapes[a].m;
    weft_bench_device_scene *s =
        weft_bench_device_scene_new(run, "cuda", WEFT_MEM_PINNED, k + m, WEFT_BENCH_HOST_SHARD);
    char text[128];
    snprintf(text, sizeof text, "host to host, pinned, 64 MiB shards, %zu + %zu", k, m);
    weft_bench_group *group = weft_bench_group_new(text);
    weft_code *rs = code_of(s, "cauchy", k, m, 0), *crs = code_of(s, "cauchy_good", k, m, 0);
    const weft_code_options in_place = {.name = "cauchy", .k = k, .m = m, .zero_copy = true};
    weft_code *where_it_lies = weft_bench_device_scene_code(s, &in_place);
    const double data = (double)k * WEFT_BENCH_HOST_SHARD;
    int bounds[2];
    for (int one = 0; one < 2; one++) {
      weft_bench_device_scene_case *c = weft_bench_device_scene_case_new(s, rs);
      c->stripe->bytes = WEFT_BENCH_HOST_SHARD;
      bounds[one] = weft_bench_group_add(
          group, &(weft_bench_case){.operation = "ceiling",
                                    .row = "copy",
                                    .variant = one ? "PCIe, one engine for k in and m out"
                                                   : "PCIe, k in and m out at once",
                                    .n = k,
                                    .k = WEFT_BENCH_HOST_SHARD,
                                    .m = m,
                                    .threads = 1,
                                    .amount = {[WEFT_BENCH_INPUT] = data},
                                    .ceiling = -1,
                                    .work = {.call = one ? weft_bench_device_scene_one_engine
                                                         : weft_bench_device_scene_duplex,
                                             .user = c,
                                             .threads = 1},
                                    .owned = c});
    }
    const int both[2] = {weft_bench_device_scene_add(group, weft_bench_device_scene_case_new(s, rs),
                                                     "encode", bounds[0]),
                         weft_bench_device_scene_add(
                             group, weft_bench_device_scene_case_new(s, crs), "encode", bounds[0])};
    weft_bench_group_ask(group, "RS / one engine", both[0], bounds[1], WEFT_BENCH_INPUT);
    weft_bench_group_ask(group, "CRS / one engine", both[1], bounds[1], WEFT_BENCH_INPUT);
    weft_bench_device_scene_case *c = weft_bench_device_scene_case_new(s, where_it_lies);
    strcat(c->variant, ", zero copy");
    const int there = weft_bench_device_scene_add(group, c, "encode", bounds[0]);
    weft_bench_group_ask(group, "zero copy / pieces", there, both[0], WEFT_BENCH_INPUT);
    run_group(run, group);
    weft_bench_group_free(group);
    weft_code_free(where_it_lies);
    weft_code_free(crs);
    weft_code_free(rs);
    weft_bench_device_scene_free(s);
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
