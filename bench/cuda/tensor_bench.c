// SPDX-License-Identifier: Apache-2.0
// Times the binary tensor rows on a device. Prints JSON lines: coded GB/s and multiply-accumulates
// with median, min and max, and the ceilings of the same run.
//   tensor_bench [what: all, ceilings, main, grid] [row,... or all] [reps]
//   tensor_bench shape row,... reps segments coded n k
#include "bench/cuda/tensor_bench.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/harness.h"
#include "bench/cuda/table_bench.h"
#include "kernels/cuda/rows.h"

static const weft_backend rows[] = {WEFT_CUDA_TENSOR_ROWS};
enum { RowCount = sizeof rows / sizeof *rows };

typedef struct Work {
  const weft_backend *row;
  weft_gemm *gemms;
  weft_operand **operands;
  size_t count;
} Work;

enum { Calls = 4 }; // in succession, so that the host works ahead of the device

static void run_gemms(void *user) {
  const Work *w = user;
  for (int i = 0; i < Calls; i++)
    harness_must(w->row->gemm(w->row, &harness_exec, w->gemms, w->count), "gemm");
}

static bench_timing time_gemm(Work *work) {
  bench_timing t = bench_time(harness_exec.stream, harness_reps, run_gemms, work);
  t.median_s /= Calls, t.min_s /= Calls, t.max_s /= Calls;
  return t;
}

static void run_prepare(void *user) {
  const Work *w = user;
  for (size_t i = 0; i < w->count; i++) {
    weft_operand *operand;
    const weft_gemm *g = &w->gemms[i];
    harness_must(w->row->prepare(w->row, &harness_exec, g->k, g->len, &g->x, &operand), "prepare");
    w->row->release(w->row, &harness_exec, operand);
  }
}

static void print_timing(const char *kind, const Work *w, bench_timing t, double bytes,
                         double macs) {
  const weft_gemm *g = w->gemms;
  printf(
      "{\"kind\": \"%s\", \"row\": \"%s\", \"count\": %zu, \"m\": %zu, \"n\": %zu, \"k\": %zu, "
      "\"us\": %.2f, \"GBps\": %.1f, \"GBps_min\": %.1f, \"GBps_max\": %.1f, \"TMACps\": %.2f}\n",
      kind, w->row->name, w->count, g->m, g->k, g->len, t.median_s * 1e6, bytes / t.median_s * 1e-9,
      bytes / t.max_s * 1e-9, bytes / t.min_s * 1e-9, macs / t.median_s * 1e-12);
  fflush(stdout);
}

// Times `count` segments of n blocks of len bytes, with m coded blocks of each.
static void time_shape(const weft_backend *row, size_t count, size_t m, size_t n, size_t len,
                       bool preprocessing) {
  uint8_t *a = harness_random_new(count * m * n), *x = harness_random_new(count * n * len);
  uint8_t *y = harness_memory_new(count * m * len);
  Work work = {row, calloc(count, sizeof(weft_gemm)), calloc(count, sizeof(weft_operand *)), count};
  for (size_t i = 0; i < count; i++) {
    const weft_const_rows xs = {x + i * n * len, len, NULL, WEFT_MEM_DEVICE};
    work.gemms[i] = (weft_gemm){.m = m,
                                .k = n,
                                .len = len,
                                .a = a + i * m * n,
                                .a_stride = n,
                                .a_mem = WEFT_MEM_DEVICE,
                                .x = xs,
                                .y = {y + i * m * len, len, NULL, WEFT_MEM_DEVICE}};
  }
  const double bytes = (double)count * (double)m * (double)len, macs = bytes * (double)n;
  if (preprocessing) {
    print_timing("encode+prepare", &work, time_gemm(&work), bytes, macs);
    print_timing("prepare", &work,
                 bench_time(harness_exec.stream, harness_reps, run_prepare, &work),
                 (double)count * (double)n * (double)len, 0);
  }
  for (size_t i = 0; i < count; i++) {
    const weft_gemm *g = &work.gemms[i];
    harness_must(row->prepare(row, &harness_exec, n, len, &g->x, &work.operands[i]), "prepare");
    work.gemms[i].x_prepared = work.operands[i];
  }
  print_timing("encode", &work, time_gemm(&work), bytes, macs);
  for (size_t i = 0; i < count; i++)
    row->release(row, &harness_exec, work.operands[i]);
  free(work.gemms), free(work.operands);
  harness_memory_free(a), harness_memory_free(x), harness_memory_free(y);
}

static void time_main(const weft_backend *row) {
  time_shape(row, 1, 177333, 128, 4096, false); // live: one segment
  time_shape(row, 528, 128, 128, 4096, true);   // VoD: n coded blocks of every segment
  time_shape(row, 2112, 128, 128, 4096, true);
  time_shape(row, 1, 128, 128, 4096, true);
  time_shape(row, 16, 128, 128, 4096, true);
}

static void time_grid(const weft_backend *row) {
  const size_t ns[] = {16, 32, 64, 96, 128, 160, 192, 256, 384, 512, 1024};
  const size_t lens[] = {128, 512, 1024, 4096, 16384, 32768};
  for (size_t n = 0; n < sizeof ns / sizeof *ns; n++)
    for (size_t k = 0; k < sizeof lens / sizeof *lens; k++)
      time_shape(row, 1, ((size_t)384 << 20) / lens[k], ns[n], lens[k], false);
}

static void time_ceilings(const harness_request *request) {
  (void)request;
  for (int i = 0; i < BENCH_TENSOR_CEILINGS; i++) {
    double rate;
    const char *name = bench_tensor_ceiling(harness_exec.stream, i, &rate);
    printf("{\"kind\": \"ceiling\", \"name\": \"%s\", \"T_per_s\": %.3f}\n", name, rate * 1e-12);
  }
}

// Whether the row was requested and runs on this device.
static bool is_due(const harness_request *request, const weft_backend *row) {
  const int sm = weft_device_sm(harness_exec.device);
  return harness_wants(request, row->name) && sm >= row->sm_min && sm <= row->sm_max;
}

static void time_mains(const harness_request *request) {
  for (size_t i = 0; i < RowCount; i++)
    if (is_due(request, &rows[i]))
      time_main(&rows[i]);
}

static void time_grids(const harness_request *request) {
  for (size_t i = 0; i < RowCount; i++)
    if (is_due(request, &rows[i]))
      time_grid(&rows[i]);
}

static void time_shapes(const harness_request *request) {
  const size_t *sizes = request->sizes;
  for (size_t i = 0; i < RowCount; i++)
    if (is_due(request, &rows[i]))
      time_shape(&rows[i], sizes[0], sizes[1], sizes[2], sizes[3], true);
}

static void time_all(const harness_request *request) {
  time_ceilings(request);
  for (size_t i = 0; i < RowCount; i++)
    if (is_due(request, &rows[i])) {
      time_main(&rows[i]);
      time_grid(&rows[i]);
    }
}

int main(int argc, char **argv) {
  static const harness_part parts[] = {
      {.name = "all", .run = time_all},
      {.name = "ceilings", .run = time_ceilings},
      {.name = "main", .run = time_mains},
      {.name = "grid", .run = time_grids},
      {.name = "shape", .run = time_shapes, .takes_sizes = true},
  };
  const harness_program program = {.parts = parts,
                                   .part_count = sizeof parts / sizeof *parts,
                                   .rows = rows,
                                   .row_count = RowCount,
                                   .reps = 11};
  return harness_main(argc, argv, &program);
}
