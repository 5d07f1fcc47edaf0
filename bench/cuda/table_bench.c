// SPDX-License-Identifier: Apache-2.0
// Times the table, loop and nibble rows, preparation, inversion, decoding and expansion on a device
// and prints JSON lines: coded GB/s and multiply-accumulates with median, min and max, beside the
// ceilings of the same run.
//   table_bench [what: all, ceilings, rows, grid, prepare, invert, decode, expand] [row] [reps]
#include "bench/cuda/table_bench.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/decode.h"
#include "kernels/cuda/expand.h"
#include "kernels/cuda/nomemory.h"
#include "kernels/cuda/rows.h"
#include "kernels/device.h"

static const weft_backend rows[] = {WEFT_CUDA_TABLE_ROWS};
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
static int reps = 9;

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
      .count = bytes / 65536 + 1, .k = 65536, .out = memory, .out_stride = 65536};
  expansion.key[0] = salt++;
  must(weft_cuda_expand(&exec, &expansion), "random");
  return memory;
}

typedef struct Product {
  const weft_backend *row; // NULL: the bound without memory
  weft_gemm *gemms;
  size_t count;
} Product;

static void run_product(void *user) {
  const Product *p = user;
  must(p->row ? p->row->gemm(p->row, &exec, p->gemms, p->count)
              : weft_cuda_nomemory_gemm(&exec, p->gemms),
       "gemm");
}

static void print_timing(const char *kind, const char *name, size_t count, size_t m, size_t n,
                         size_t k, double bytes, double macs, bench_timing t) {
  printf("{\"kind\": \"%s\", \"name\": \"%s\", \"count\": %zu, \"m\": %zu, \"n\": %zu, \"k\": %zu, "
         "\"us\": %.2f, \"min_us\": %.2f, \"max_us\": %.2f, \"GBps\": %.2f, \"TMACps\": %.3f}\n",
         kind, name, count, m, n, k, t.median_s * 1e6, t.min_s * 1e6, t.max_s * 1e6,
         bytes / t.median_s * 1e-9, macs / t.median_s * 1e-12);
  fflush(stdout);
}

// `count` segments of n blocks of len bytes, m coded blocks of each.
static void time_product(const weft_backend *row, size_t count, size_t m, size_t n, size_t len,
                         bool prepared) {
  uint8_t *a = random_new(count * m * n), *x = random_new(count * n * len);
  uint8_t *y = memory_new(count * m * len);
  weft_gemm *gemms = calloc(count, sizeof *gemms);
  weft_operand **operands = calloc(count, sizeof *operands);
  for (size_t i = 0; i < count; i++) {
    const weft_const_rows xs = {x + i * n * len, len, NULL, WEFT_MEM_DEVICE};
    gemms[i] = (weft_gemm){.m = m,
                           .k = n,
                           .len = len,
                           .a = a + i * m * n,
                           .a_stride = n,
                           .a_mem = WEFT_MEM_DEVICE,
                           .x = xs,
                           .y = {y + i * m * len, len, NULL, WEFT_MEM_DEVICE}};
    if (prepared)
      must(row->prepare(row, &exec, n, len, &xs, &operands[i]), "prepare");
    gemms[i].x_prepared = operands[i];
  }
  Product p = {row, gemms, count};
  const bench_timing t = bench_time(exec.stream, reps, run_product, &p);
  const double bytes = (double)count * (double)m * (double)len;
  print_timing(prepared ? "encode" : "encode+prepare", row ? row->name : "nomemory", count, m, n,
               len, bytes, bytes * (double)n, t);
  for (size_t i = 0; i < count; i++)
    if (operands[i])
      row->release(row, &exec, operands[i]);
  free(gemms);
  free(operands);
  memory_free(a), memory_free(x), memory_free(y);
}

typedef struct Preparation {
  const weft_backend *row;
  size_t n, len;
  weft_const_rows x;
} Preparation;

static void run_prepare(void *user) {
  const Preparation *p = user;
  weft_operand *operand;
  must(p->row->prepare(p->row, &exec, p->n, p->len, &p->x, &operand), "prepare");
  p->row->release(p->row, &exec, operand);
}

static void time_prepare(const weft_backend *row) {
  const size_t n = 128, len = 4u << 20;
  uint8_t *x = random_new(n * len);
  Preparation p = {row, n, len, {x, len, NULL, WEFT_MEM_DEVICE}};
  const bench_timing t = bench_time(exec.stream, reps, run_prepare, &p);
  print_timing("prepare", row->name, 1, 0, n, len, (double)n * (double)len, 0, t);
  memory_free(x);
}

typedef struct Inversion {
  weft_invert invert;
  unsigned per_sm; // 0: the row
  weft_cuda_pivoting pivoting;
} Inversion;

static void run_invert(void *user) {
  const Inversion *p = user;
  must(p->per_sm ? weft_cuda_invert_augmented(&exec, &p->invert, p->per_sm, p->pivoting)
                 : weft_cuda_invert(NULL, &exec, &p->invert),
       "invert");
}

static void time_invert(const char *name, size_t count, size_t k, unsigned per_sm,
                        weft_cuda_pivoting pivoting) {
  uint8_t *in = random_new(count * k * k), *out = memory_new(count * k * k);
  uint8_t *singular = memory_new(count);
  Inversion p = {{count, k, in, out, singular, WEFT_MEM_DEVICE}, per_sm, pivoting};
  const bench_timing t = bench_time(exec.stream, reps, run_invert, &p);
  const double bytes = (double)count * (double)(k * k);
  print_timing("invert", name, count, k, k, k, bytes, bytes * (double)k, t);
  memory_free(in), memory_free(out), memory_free(singular);
}

static void run_decode(void *user) {
  must(weft_cuda_decode_single(&exec, (const weft_cuda_decode *)user), "decode");
}

static void time_decode(const char *name, size_t k, size_t len, weft_cuda_pivoting pivoting) {
  uint8_t *c = random_new(k * k), *y = random_new(k * len), *x = memory_new(k * len);
  uint8_t *singular = memory_new(1);
  weft_cuda_decode p = {k, len, c, y, x, len, len, singular, pivoting};
  const bench_timing t = bench_time(exec.stream, reps, run_decode, &p);
  const double bytes = (double)k * (double)len;
  print_timing("decode-single", name, 1, k, k, len, bytes, bytes * (double)k, t);
  memory_free(c), memory_free(y), memory_free(x), memory_free(singular);
}

static void run_expand(void *user) {
  must(weft_cuda_expand(&exec, (const weft_expansion *)user), "expand");
}

static void time_expand(const char *name, size_t count, size_t k, uint16_t density, bool seeds) {
  uint8_t *out = memory_new(count * k);
  weft_seed *seed = seeds ? (weft_seed *)(void *)random_new(count * sizeof *seed) : NULL;
  weft_expansion p = {.count = count,
                      .k = k,
                      .fresh = !seed,
                      .seeds = seed,
                      .density_q16 = density,
                      .out = out,
                      .out_stride = k};
  const bench_timing t = bench_time(exec.stream, reps, run_expand, &p);
  print_timing("expand", name, count, count, k, k, (double)count * (double)k, 0, t);
  memory_free(out), memory_free(seed);
}

static void time_rows(const char *only) {
  for (size_t i = 0; i < RowCount; i++)
    if (!only || strcmp(only, rows[i].name) == 0)
      time_product(&rows[i], 1, 8448, 128, 4096, true);
  if (!only)
    time_product(NULL, 1, 8448, 128, 4096, false);
}

static void time_grid(const char *only) {
  const size_t ns[] = {16, 32, 64, 128, 256, 512, 1024};
  const size_t lens[] = {128, 512, 1024, 4096, 16384, 32768};
  for (size_t i = 0; i < RowCount; i++) {
    if (only ? strcmp(only, rows[i].name) != 0 : i > 2)
      continue;
    for (size_t n = 0; n < sizeof ns / sizeof *ns; n++)
      for (size_t k = 0; k < sizeof lens / sizeof *lens; k++)
        if (ns[n] == 128 || lens[k] == 4096)
          time_product(&rows[i], 1, (size_t)34603008 / lens[k], ns[n], lens[k], true);
    time_product(&rows[i], 1, 177333, 128, 4096, true);
    time_product(&rows[i], 64, 128, 128, 4096, true);
    time_product(&rows[i], 64, 128, 128, 4096, false);
  }
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "all";
  const char *only = argc > 2 && strcmp(argv[2], "all") != 0 ? argv[2] : NULL;
  reps = argc > 3 ? atoi(argv[3]) : 9;
  const bool all = strcmp(what, "all") == 0;
  if (weft_device_count() == 0) {
    printf("skipped: no CUDA device\n");
    return 0;
  }
  must(weft_device_open(&device, 0, &allocator), "open");
  must(weft_device_stream_new(device, &exec.stream), "stream");
  exec.device = device;
  for (int i = 0; (all || strcmp(what, "ceilings") == 0) && i < BENCH_CEILINGS; i++) {
    double rate;
    const char *name = bench_ceiling(exec.stream, i, &rate);
    printf("{\"kind\": \"ceiling\", \"name\": \"%s\", \"T_per_s\": %.3f}\n", name, rate * 1e-12);
  }
  if (all || strcmp(what, "rows") == 0)
    time_rows(only);
  if (all || strcmp(what, "prepare") == 0)
    for (size_t i = 0; i < RowCount; i++)
      if (!only || strcmp(only, rows[i].name) == 0)
        time_prepare(&rows[i]);
  if (all || strcmp(what, "invert") == 0) {
    const size_t sizes[] = {16, 32, 64, 128, 256, 512, 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      time_invert("blocked", 256, sizes[i], 0, WEFT_CUDA_PIVOT_SCAN);
      time_invert("blocked", 2048, sizes[i] > 512 ? 512 : sizes[i], 0, WEFT_CUDA_PIVOT_SCAN);
    }
    time_invert("blocked", 1, 128, 0, WEFT_CUDA_PIVOT_SCAN);
    for (unsigned per_sm = 1; per_sm <= 2; per_sm++)
      for (size_t count = 256; count <= 2048; count *= 8) {
        time_invert(per_sm == 1 ? "augmented-1-scan" : "augmented-2-scan", count, 128, per_sm,
                    WEFT_CUDA_PIVOT_SCAN);
        time_invert(per_sm == 1 ? "augmented-1-atomic" : "augmented-2-atomic", count, 128, per_sm,
                    WEFT_CUDA_PIVOT_ATOMIC_MIN);
      }
  }
  if (all || strcmp(what, "decode") == 0)
    for (size_t len = 128; len <= 32768; len *= 4) {
      time_decode("scan", 128, len, WEFT_CUDA_PIVOT_SCAN);
      time_decode("atomic-min", 128, len, WEFT_CUDA_PIVOT_ATOMIC_MIN);
    }
  if (all || strcmp(what, "expand") == 0) {
    time_expand("dense", 65536, 128, 0, true);
    time_expand("sparse-10", 65536, 128, 6554, true);
    time_expand("fresh", 65536, 128, 0, false);
  }
  if (strcmp(what, "grid") == 0)
    time_grid(only);
  weft_device_stream_free(device, exec.stream);
  weft_device_close(device);
  return 0;
}
