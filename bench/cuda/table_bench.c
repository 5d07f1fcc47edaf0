// SPDX-License-Identifier: Apache-2.0
// Times the table, loop and nibble rows, preparation, inversion, decoding and expansion on a
// device. Prints JSON lines: coded GB/s and multiply-accumulates with median, min and max, and the
// ceilings of the same run.
//   table_bench [what: all, ceilings, rows, prepare, invert, multi, decode, expand, grid,
//   multi-grid] [row,... or all] [reps]
#include "bench/cuda/table_bench.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/harness.h"
#include "kernels/cuda/decode.h"
#include "kernels/cuda/expand.h"
#include "kernels/cuda/nomemory.h"
#include "kernels/cuda/rows.h"

static const weft_backend rows[] = {WEFT_CUDA_TABLE_ROWS};
static const weft_backend tensor_rows[] = {WEFT_CUDA_TENSOR_ROWS};
enum { RowCount = sizeof rows / sizeof *rows };
static const size_t AT_ONCE = (size_t)8 << 30;

typedef struct Product {
  const weft_backend *row; // NULL: the bound that does without memory
  weft_gemm *gemms;
  size_t count, at_once; // at_once: products per call
} Product;

static void run_product(void *user) {
  const Product *p = user;
  for (size_t i = 0; i < p->count; i += p->at_once)
    harness_must(p->row ? p->row->gemm(p->row, &harness_exec, p->gemms + i,
                                       p->count - i < p->at_once ? p->count - i : p->at_once)
                        : weft_cuda_nomemory_gemm(&harness_exec, p->gemms),
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

// Times `count` segments of n blocks of len bytes, with m coded blocks of each.
static void time_product(const weft_backend *row, size_t count, size_t m, size_t n, size_t len,
                         bool prepared) {
  uint8_t *a = harness_random_new(count * m * n), *x = harness_random_new(count * n * len);
  uint8_t *y = harness_memory_new(count * m * len);
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
      harness_must(row->prepare(row, &harness_exec, n, len, &xs, &operands[i]), "prepare");
    gemms[i].x_prepared = operands[i];
  }
  Product p = {row, gemms, count, count};
  const bench_timing t = bench_time(harness_exec.stream, harness_reps, run_product, &p);
  const double bytes = (double)count * (double)m * (double)len;
  print_timing(prepared ? "encode" : "encode+prepare", row ? row->name : "nomemory", count, m, n,
               len, bytes, bytes * (double)n, t);
  for (size_t i = 0; i < count; i++)
    if (operands[i])
      row->release(row, &harness_exec, operands[i]);
  free(gemms);
  free(operands);
  harness_memory_free(a), harness_memory_free(x), harness_memory_free(y);
}

typedef struct Preparation {
  const weft_backend *row;
  size_t n, len;
  weft_const_rows x;
} Preparation;

static void run_prepare(void *user) {
  const Preparation *p = user;
  weft_operand *operand;
  harness_must(p->row->prepare(p->row, &harness_exec, p->n, p->len, &p->x, &operand), "prepare");
  p->row->release(p->row, &harness_exec, operand);
}

static void time_prepare(const weft_backend *row) {
  const size_t n = 128, len = 4u << 20;
  uint8_t *x = harness_random_new(n * len);
  Preparation p = {row, n, len, {x, len, NULL, WEFT_MEM_DEVICE}};
  const bench_timing t = bench_time(harness_exec.stream, harness_reps, run_prepare, &p);
  print_timing("prepare", row->name, 1, 0, n, len, (double)n * (double)len, 0, t);
  harness_memory_free(x);
}

typedef struct Inversion {
  weft_invert invert;
  unsigned per_sm; // 0: the library's row
  weft_cuda_pivoting pivoting;
} Inversion;

static void run_invert(void *user) {
  const Inversion *p = user;
  harness_must(p->per_sm
                   ? weft_cuda_invert_augmented(&harness_exec, &p->invert, p->per_sm, p->pivoting)
                   : weft_cuda_invert(NULL, &harness_exec, &p->invert),
               "invert");
}

static void time_invert(const char *name, size_t count, size_t k, unsigned per_sm,
                        weft_cuda_pivoting pivoting) {
  uint8_t *in = harness_random_new(count * k * k), *out = harness_memory_new(count * k * k);
  uint8_t *singular = harness_memory_new(count);
  Inversion p = {{count, k, in, out, singular, WEFT_MEM_DEVICE}, per_sm, pivoting};
  const bench_timing t = bench_time(harness_exec.stream, harness_reps, run_invert, &p);
  const double bytes = (double)count * (double)(k * k);
  print_timing("invert", name, count, k, k, k, bytes, bytes * (double)k, t);
  harness_memory_free(in), harness_memory_free(out), harness_memory_free(singular);
}

// Decoding many segments is a batch of inversions, then a product with the blocks as received. Both
// are timed separately, and the share of the inversions is printed (Shojania and Li, Fig. 9).
static bench_timing time_step(void (*call)(void *user), void *user) {
  return bench_time(harness_exec.stream, harness_reps, call, user);
}

// If all blocks take more than AT_ONCE bytes, several calls share that much memory: every segment
// has its own coefficients, but uses the blocks of the call before.
static void time_multi(const weft_backend *row, size_t count, unsigned per_sm, size_t n,
                       size_t len) {
  const size_t at_once = count * n * len > AT_ONCE ? AT_ONCE / (n * len) : count;
  uint8_t *c = harness_random_new(count * n * n), *inverse = harness_memory_new(count * n * n);
  uint8_t *x = harness_random_new(at_once * n * len), *y = harness_memory_new(at_once * n * len);
  uint8_t *singular = harness_memory_new(count);
  weft_gemm *gemms = calloc(count, sizeof *gemms);
  for (size_t i = 0; i < count; i++)
    gemms[i] = (weft_gemm){.m = n,
                           .k = n,
                           .len = len,
                           .a = inverse + i * n * n,
                           .a_stride = n,
                           .a_mem = WEFT_MEM_DEVICE,
                           .x = {x + i % at_once * n * len, len, NULL, WEFT_MEM_DEVICE},
                           .y = {y + i % at_once * n * len, len, NULL, WEFT_MEM_DEVICE}};
  Inversion ours = {{count, n, c, inverse, singular, WEFT_MEM_DEVICE}, 0, WEFT_CUDA_PIVOT_SCAN};
  Inversion paper = ours;
  paper.per_sm = per_sm, paper.pivoting = WEFT_CUDA_PIVOT_ATOMIC_MIN;
  Product p = {row, gemms, count, at_once};
  const double product = time_step(run_product, &p).median_s;
  const double first = time_step(run_invert, &ours).median_s;
  const double augmented = per_sm ? time_step(run_invert, &paper).median_s : 0;
  const double bytes = (double)count * (double)n * (double)len;
  printf("{\"kind\": \"decode-multi\", \"row\": \"%s\", \"count\": %zu, \"at_once\": %zu, "
         "\"per_sm\": %u, \"n\": %zu, \"k\": %zu, \"product_us\": %.1f, \"invert_us\": %.1f, "
         "\"share\": %.3f, \"GBps\": %.1f, "
         "\"augmented_us\": %.1f, \"augmented_share\": %.3f}\n",
         row->name, count, at_once, per_sm, n, len, product * 1e6, first * 1e6,
         first / (first + product), bytes / (first + product) * 1e-9, augmented * 1e6,
         augmented / (augmented + product));
  fflush(stdout);
  free(gemms);
  harness_memory_free(c), harness_memory_free(inverse), harness_memory_free(singular);
  harness_memory_free(x), harness_memory_free(y);
}

static const weft_backend *best_row(void) {
  const int sm = weft_device_sm(harness_exec.device);
  const weft_backend *row = &rows[0];
  for (size_t i = sizeof tensor_rows / sizeof *tensor_rows; i-- > 0;)
    if (sm >= tensor_rows[i].sm_min && sm <= tensor_rows[i].sm_max)
      row = &tensor_rows[i];
  return row;
}

// One and two segments per multiprocessor, as in the paper, and many.
static void time_multis(const harness_request *request) {
  (void)request;
  const weft_backend *row = best_row();
  const size_t sms = (size_t)bench_multiprocessors();
  for (size_t len = 128; len <= 32768; len *= 4) {
    for (unsigned per_sm = 1; per_sm <= 2; per_sm++)
      time_multi(row, per_sm * sms, per_sm, 128, len);
    time_multi(row, 2048, 0, 128, len);
  }
}

// Many segments, for several n as well.
static void time_multi_grid(const harness_request *request) {
  static const size_t ns[] = {16, 32, 64, 256, 512, 1024};
  (void)request;
  for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
    for (size_t len = 128; len <= 32768; len *= 4)
      time_multi(best_row(), 2048, 0, ns[i], len);
}

static void run_decode(void *user) {
  harness_must(weft_cuda_decode_single(&harness_exec, (const weft_cuda_decode *)user), "decode");
}

static void time_decode(const char *name, size_t k, size_t len, weft_cuda_pivoting pivoting) {
  uint8_t *c = harness_random_new(k * k), *y = harness_random_new(k * len),
          *x = harness_memory_new(k * len);
  uint8_t *singular = harness_memory_new(1);
  weft_cuda_decode p = {k, len, c, y, x, len, len, singular, pivoting};
  const bench_timing t = bench_time(harness_exec.stream, harness_reps, run_decode, &p);
  const double bytes = (double)k * (double)len;
  print_timing("decode-single", name, 1, k, k, len, bytes, bytes * (double)k, t);
  harness_memory_free(c), harness_memory_free(y), harness_memory_free(x),
      harness_memory_free(singular);
}

static void run_expand(void *user) {
  harness_must(weft_cuda_expand(&harness_exec, (const weft_expansion *)user), "expand");
}

static void time_expand(const char *name, size_t count, size_t k, uint16_t density, bool seeds) {
  uint8_t *out = harness_memory_new(count * k);
  weft_seed *seed = seeds ? (weft_seed *)(void *)harness_random_new(count * sizeof *seed) : NULL;
  weft_expansion p = {.count = count,
                      .k = k,
                      .fresh = !seed,
                      .seeds = seed,
                      .density_q16 = density,
                      .out = out,
                      .out_stride = k};
  const bench_timing t = bench_time(harness_exec.stream, harness_reps, run_expand, &p);
  print_timing("expand", name, count, count, k, k, (double)count * (double)k, 0, t);
  harness_memory_free(out), harness_memory_free(seed);
}

static void time_ceilings(const harness_request *request) {
  (void)request;
  for (int i = 0; i < BENCH_CEILINGS; i++) {
    double rate;
    const char *name = bench_ceiling(harness_exec.stream, i, &rate);
    printf("{\"kind\": \"ceiling\", \"name\": \"%s\", \"T_per_s\": %.3f}\n", name, rate * 1e-12);
  }
}

static void time_rows(const harness_request *request) {
  for (size_t i = 0; i < RowCount; i++)
    if (harness_wants(request, rows[i].name))
      time_product(&rows[i], 1, 8448, 128, 4096, true);
  if (!request->rows)
    time_product(NULL, 1, 8448, 128, 4096, false);
}

static void time_grid(const harness_request *request) {
  const size_t ns[] = {16, 32, 64, 128, 256, 512, 1024};
  const size_t lens[] = {128, 512, 1024, 4096, 16384, 32768};
  for (size_t i = 0; i < RowCount; i++) {
    if (request->rows ? !harness_wants(request, rows[i].name) : i > 2)
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

static void time_preparations(const harness_request *request) {
  for (size_t i = 0; i < RowCount; i++)
    if (harness_wants(request, rows[i].name))
      time_prepare(&rows[i]);
}

static void time_inversions(const harness_request *request) {
  static const size_t sizes[] = {16, 32, 64, 128, 256, 512, 1024};
  (void)request;
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

static void time_decodes(const harness_request *request) {
  (void)request;
  for (size_t len = 128; len <= 32768; len *= 4) {
    time_decode("scan", 128, len, WEFT_CUDA_PIVOT_SCAN);
    time_decode("atomic-min", 128, len, WEFT_CUDA_PIVOT_ATOMIC_MIN);
  }
}

static void time_expansions(const harness_request *request) {
  (void)request;
  time_expand("dense", 65536, 128, 0, true);
  time_expand("sparse-10", 65536, 128, 6554, true);
  time_expand("fresh", 65536, 128, 0, false);
}

static void time_all(const harness_request *request);

static const harness_part parts[] = {
    {.name = "all", .run = time_all}, // all parts below up to `expand`
    {.name = "ceilings", .run = time_ceilings},
    {.name = "rows", .run = time_rows},
    {.name = "prepare", .run = time_preparations},
    {.name = "invert", .run = time_inversions},
    {.name = "multi", .run = time_multis},
    {.name = "decode", .run = time_decodes},
    {.name = "expand", .run = time_expansions},
    {.name = "grid", .run = time_grid},
    {.name = "multi-grid", .run = time_multi_grid},
};
enum { PartCount = sizeof parts / sizeof *parts };

static void time_all(const harness_request *request) {
  for (size_t i = 1; i < PartCount && parts[i].run != time_grid; i++)
    parts[i].run(request);
}

int main(int argc, char **argv) {
  const harness_program program = {
      .parts = parts, .part_count = PartCount, .rows = rows, .row_count = RowCount, .reps = 9};
  return harness_main(argc, argv, &program);
}
