// SPDX-License-Identifier: Apache-2.0
// Times the binary tensor rows on a device and prints JSON lines: coded GB/s and
// multiply-accumulates with median, min and max, beside the ceilings of the same run.
//   tensor_bench [what: all, ceilings, main, grid] [row] [reps]
//   tensor_bench shape row reps segments coded n k
#include "bench/cuda/tensor_bench.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/table_bench.h"
#include "kernels/cuda/expand.h"
#include "kernels/cuda/rows.h"
#include "kernels/device.h"

static const weft_backend rows[] = {WEFT_CUDA_TENSOR_ROWS};
enum { RowCount = sizeof rows / sizeof *rows };

static void *heap_alloc(void *user, size_t bytes, size_t align) {
  (void)user;
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}
static void heap_free(void *user, void *memory) {
  (void)user;
  free(memory);
}
static const weft_allocator allocator = {heap_alloc, heap_free, NULL};

static weft_device *device;
static weft_exec exec = {.allocator = &allocator};
static int reps = 11;

static void must(weft_status status, const char *what) {
  if (status == WEFT_OK)
    return;
  printf("%s: status %d\n", what, (int)status);
  exit(1);
}

static void *memory_new(size_t bytes) {
  void *memory;
  must(weft_device_alloc(device, WEFT_MEM_DEVICE, bytes, &memory), "memory");
  return memory;
}

static void memory_free(void *memory) { weft_device_free(device, WEFT_MEM_DEVICE, memory); }

// Random bytes on the device, made there.
static uint8_t *random_new(size_t bytes) {
  uint8_t *memory = memory_new(bytes + 65536);
  static uint8_t salt = 1;
  weft_expansion expansion = {
      .count = bytes / 65536 + 1, .k = 65536, .fresh = true, .out = memory, .out_stride = 65536};
  expansion.key[0] = salt++;
  must(weft_cuda_expand(&exec, &expansion), "random");
  return memory;
}

typedef struct Work {
  const weft_backend *row;
  weft_gemm *gemms;
  weft_operand **operands;
  size_t count;
} Work;

enum { Calls = 4 }; // in a row, so that the host works ahead of the device

static void run_gemms(void *user) {
  const Work *w = user;
  for (int i = 0; i < Calls; i++)
    must(w->row->gemm(w->row, &exec, w->gemms, w->count), "gemm");
}

static bench_timing time_gemm(Work *work) {
  bench_timing t = bench_time(exec.stream, reps, run_gemms, work);
  t.median_s /= Calls, t.min_s /= Calls, t.max_s /= Calls;
  return t;
}

static void run_prepare(void *user) {
  const Work *w = user;
  for (size_t i = 0; i < w->count; i++) {
    weft_operand *operand;
    const weft_gemm *g = &w->gemms[i];
    must(w->row->prepare(w->row, &exec, g->k, g->len, &g->x, &operand), "prepare");
    w->row->release(w->row, &exec, operand);
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

// `count` segments of n blocks of len bytes, m coded blocks of each.
static void time_shape(const weft_backend *row, size_t count, size_t m, size_t n, size_t len,
                       bool preprocessing) {
  uint8_t *a = random_new(count * m * n), *x = random_new(count * n * len);
  uint8_t *y = memory_new(count * m * len);
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
    print_timing("prepare", &work, bench_time(exec.stream, reps, run_prepare, &work),
                 (double)count * (double)n * (double)len, 0);
  }
  for (size_t i = 0; i < count; i++) {
    const weft_gemm *g = &work.gemms[i];
    must(row->prepare(row, &exec, n, len, &g->x, &work.operands[i]), "prepare");
    work.gemms[i].x_prepared = work.operands[i];
  }
  print_timing("encode", &work, time_gemm(&work), bytes, macs);
  for (size_t i = 0; i < count; i++)
    row->release(row, &exec, work.operands[i]);
  free(work.gemms), free(work.operands);
  memory_free(a), memory_free(x), memory_free(y);
}

static void time_main(const weft_backend *row) {
  time_shape(row, 1, 177333, 128, 4096, false); // live: one segment
  time_shape(row, 528, 128, 128, 4096, true);   // VoD: as many blocks of every segment as it has
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

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "all";
  const char *only = argc > 2 && strcmp(argv[2], "all") != 0 ? argv[2] : NULL;
  reps = argc > 3 ? atoi(argv[3]) : 11;
  const bool all = strcmp(what, "all") == 0;
  if (weft_device_count() == 0) {
    printf("skipped: no CUDA device\n");
    return 0;
  }
  must(weft_device_open(&device, 0, &allocator), "open");
  must(weft_device_stream_new(device, &exec.stream), "stream");
  exec.device = device;
  printf("{\"kind\": \"device\", \"name\": \"%s\"}\n", weft_device_name(device));
  for (int i = 0; (all || strcmp(what, "ceilings") == 0) && i < BENCH_TENSOR_CEILINGS; i++) {
    double rate;
    const char *name = bench_tensor_ceiling(exec.stream, i, &rate);
    printf("{\"kind\": \"ceiling\", \"name\": \"%s\", \"T_per_s\": %.3f}\n", name, rate * 1e-12);
  }
  for (size_t i = 0; i < RowCount; i++) {
    const int sm = weft_device_sm(device);
    if ((only && strcmp(only, rows[i].name) != 0) || sm < rows[i].sm_min || sm > rows[i].sm_max)
      continue;
    if (all || strcmp(what, "main") == 0)
      time_main(&rows[i]);
    if (all || strcmp(what, "grid") == 0)
      time_grid(&rows[i]);
    if (strcmp(what, "shape") == 0 && argc > 7)
      time_shape(&rows[i], strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10),
                 strtoull(argv[6], NULL, 10), strtoull(argv[7], NULL, 10), true);
  }
  weft_device_stream_free(device, exec.stream);
  weft_device_close(device);
  return 0;
}
