// SPDX-License-Identifier: Apache-2.0
// Checks products that are large in every direction, which rows replace by seven of half the size
// (kernels/host_winograd.h): even and odd sizes, several levels, remaining columns, operands at
// guard pages, memory that fails, threads.
#include <stdio.h>
#include <string.h>

#include "kernels/host_winograd.h"
#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"

typedef struct large {
  size_t m, k, len, stride; // stride: of both X and Y
  test_guard a, x, y, want;
  weft_gemm gemm;
} large;

static uint8_t *before(const test_guard *guard, size_t bytes) { return guard->end - bytes; }

// Makes operands whose ends are flush with guard pages. The bytes between the rows of Y must not
// change.
static void large_new(large *l, size_t m, size_t k, size_t len, test_rng *rng) {
  *l = (large){.m = m, .k = k, .len = len, .stride = len + test_rng_below(rng, 3) * 33};
  const size_t x_bytes = k ? (k - 1) * l->stride + len : 0, y_bytes = (m - 1) * l->stride + len;
  l->a = test_guard_new(m * k + 1);
  l->x = test_guard_new(x_bytes + 1);
  l->y = test_guard_new(y_bytes);
  l->want = test_guard_new(y_bytes);
  test_rng_fill(rng, before(&l->a, m * k), m * k);
  test_rng_fill(rng, before(&l->x, x_bytes), x_bytes);
  test_rng_fill(rng, before(&l->y, y_bytes), y_bytes);
  memcpy(before(&l->want, y_bytes), before(&l->y, y_bytes), y_bytes);
  l->gemm = (weft_gemm){.m = m,
                        .k = k,
                        .len = len,
                        .a = before(&l->a, m * k),
                        .a_stride = k,
                        .x = {.base = before(&l->x, x_bytes), .stride = l->stride},
                        .y = {.base = before(&l->want, y_bytes), .stride = l->stride}};
  row_check_define_gemm(&l->gemm);
  l->gemm.y.base = before(&l->y, y_bytes);
}

static bool large_same(const large *l) {
  const size_t y_bytes = (l->m - 1) * l->stride + l->len;
  return memcmp(before(&l->y, y_bytes), before(&l->want, y_bytes), y_bytes) == 0;
}

static void large_free(large *l) {
  test_guard *const all[] = {&l->a, &l->x, &l->y, &l->want};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    test_guard_free(all[i]);
}

static bool told(row_check *check, const large *l, const char *how) {
  char text[160];
  snprintf(text, sizeof text, "m %zu, k %zu, len %zu, stride %zu, %s", l->m, l->k, l->len,
           l->stride, how);
  return row_check_fail(check, "large products", text);
}

static bool run(row_check *check, size_t m, size_t k, size_t len, test_rng *rng) {
  test_allocator memory, none;
  test_allocator_init(&memory, 0);
  test_allocator_init(&none, 1); // falls back to entry by entry
  const weft_exec with = {.allocator = &memory.allocator}, without = {.allocator = &none.allocator};
  large l;
  large_new(&l, m, k, len, rng);
  const char *wrong = NULL;
  if (weft_host_winograd(check->row->host, &memory.allocator, &l.gemm, 0, len) == 0)
    wrong = "by its entries";
  else if (check->row->gemm(check->row, &with, &l.gemm, 1) != WEFT_OK || !large_same(&l))
    wrong = "by halves";
  memset(before(&l.y, len), 0xA5, len); // the last row, which must be written again
  if (!wrong && (check->row->gemm(check->row, &without, &l.gemm, 1) != WEFT_OK || !large_same(&l)))
    wrong = "no memory";
  if (test_allocator_live(&memory) != 0)
    wrong = "memory is lost";
  large_free(&l);
  return !wrong || told(check, &l, wrong);
}

// Checks products on several threads, which divide the columns. Accumulation is done entry by
// entry.
static bool run_shared(row_check *check, size_t m, size_t k, size_t len, test_rng *rng) {
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_pool *pool;
  if (weft_pool_new(&pool, 3, &memory.allocator) != WEFT_OK)
    return row_check_fail(check, "large products", "no pool");
  const weft_exec exec = {.allocator = &memory.allocator, .pool = pool};
  large l;
  large_new(&l, m, k, len, rng);
  bool good = check->row->gemm(check->row, &exec, &l.gemm, 1) == WEFT_OK && large_same(&l);
  l.gemm.accumulate = true; // added again: all is zero
  const size_t y_bytes = (m - 1) * l.stride + len;
  good = good && check->row->gemm(check->row, &exec, &l.gemm, 1) == WEFT_OK;
  for (size_t i = 0; i < m && good; i++)
    for (size_t c = 0; c < len && good; c++)
      good = before(&l.y, y_bytes)[i * l.stride + c] == 0;
  weft_pool_free(pool);
  large_free(&l);
  return good || told(check, &l, "three threads");
}

// Checks long rows with hardly any outputs and sources; without sources they are zero.
static bool run_small(row_check *check, test_rng *rng) {
  static const size_t sizes[][2] = {{1, 0}, {2, 0}, {300, 0}, {1, 1}, {1, 2}, {2, 1}, {3, 1}};
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {.allocator = &memory.allocator};
  bool good = true;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && good; i++) {
    large l;
    large_new(&l, sizes[i][0], sizes[i][1], 4096 + test_rng_below(rng, 2) * 77, rng);
    good = check->row->gemm(check->row, &exec, &l.gemm, 1) == WEFT_OK && large_same(&l);
    large_free(&l);
    if (!good)
      return told(check, &l, "next to nothing");
  }
  return good;
}

bool row_check_large(row_check *check) {
  const size_t h = check->row->host ? check->row->host->winograd_half : 0;
  test_rng rng = test_rng_new(check->seed, 31);
  if (!run_small(check, &rng))
    return false;
  if (h == 0 || check->step > 1) // emulated rows have the same panels as native ones
    return true;
  return run(check, 2 * h, 2 * h, 1024, &rng) &&
         run(check, 2 * h + 1, 2 * h + 1, 1152 + test_rng_below(&rng, 128), &rng) &&
         run(check, 2 * h + 2, 4 * h + 1, 1024 + test_rng_below(&rng, 64), &rng) &&
         run(check, 4 * h + 3, 4 * h + 2, 2048 + test_rng_below(&rng, 300), &rng) && // two levels
         run(check, 3 * h, 600, 1024 + test_rng_below(&rng, 128),
             &rng) &&                                       // several packs of sources
         run(check, 2 * h, 2 * h, 4096 + 1024 + 640, &rng); // columns in two parts
}

bool row_check_large_shared(row_check *check) {
  const size_t h = check->row->host ? check->row->host->winograd_half : 0;
  test_rng rng = test_rng_new(check->seed, 32);
  return h == 0 || check->step > 1 || run_shared(check, 2 * h, 2 * h + 1, 3 * 4096 + 77, &rng);
}
