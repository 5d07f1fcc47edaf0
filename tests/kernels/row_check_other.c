// SPDX-License-Identifier: Apache-2.0
// Checks prepared operands, inverses and xorm of one row against definitions and scalar.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gf256.h"
#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_rng.h"

// Checks a product from a prepared operand, once for every allocation that fails.
static bool run_prepared(row_check *check, size_t m, size_t k, size_t len, test_rng *rng) {
  const weft_backend *row = check->row;
  uint8_t *x = row_check_memory(k * len), *a = row_check_memory(m * k);
  uint8_t *y = row_check_memory(m * len), *want = row_check_memory(m * len);
  test_rng_fill(rng, x, k * len);
  test_rng_fill(rng, a, m * k);
  bool good = true;
  test_allocator memory;
  for (long n = 1; good; n++) {
    test_allocator_init(&memory, n);
    const weft_exec exec = {.allocator = &memory.allocator};
    weft_gemm g = {.m = m,
                   .k = k,
                   .len = len,
                   .a = a,
                   .a_stride = k,
                   .x = {.base = x, .stride = len},
                   .y = {.base = want, .stride = len}};
    row_check_define_gemm(&g);
    weft_operand *operand = NULL;
    const weft_status status = row->prepare(row, &exec, k, len, &g.x, &operand);
    if (status == WEFT_OK) {
      g.x = (weft_const_rows){0}; // only the operand is given
      g.x_prepared = operand;
      g.y.base = y;
      good = row->gemm(row, &exec, &g, 1) == WEFT_OK && memcmp(y, want, m * len) == 0;
      for (int shape = 0; shape < 4 && good; shape++) { // shapes unlike the operand's are refused
        weft_gemm other = g;
        other.k = shape == 0 ? k + 1 : shape == 1 ? k - 1 : k;
        other.a_stride = k + 1;
        other.len = shape == 2 ? len + 1 : shape == 3 ? len - 1 : len;
        good = row->gemm(row, &exec, &other, 1) == WEFT_E_ARGUMENT;
      }
    } else {
      good = status == WEFT_E_NOMEM && operand == NULL;
    }
    row->release(row, &exec, operand);
    good = good && test_allocator_live(&memory) == 0;
    if (!test_allocator_failed(&memory))
      break;
  }
  free(x);
  free(a);
  free(y);
  free(want);
  return good || row_check_fail(check, "prepared", "wrong product, status or leak");
}

bool row_check_prepared(row_check *check) {
  test_rng rng = test_rng_new(check->seed, 4);
  if (!check->row->prepare)
    return !check->row->host->prepare_row || row_check_fail(check, "prepared", "not offered");
  for (size_t i = 0; i < 40; i++)
    if (!run_prepared(check, test_rng_below(&rng, 10), test_rng_below(&rng, 10),
                      test_rng_below(&rng, 300), &rng))
      return false;
  return true;
}

static bool is_identity(const uint8_t *matrix, size_t k) {
  for (size_t i = 0; i < k * k; i++)
    if (matrix[i] != (i / k == i % k))
      return false;
  return true;
}

// Makes every other matrix singular: its last row is the sum of the others (or zero).
static void fill_matrices(uint8_t *in, size_t count, size_t k, test_rng *rng) {
  test_rng_fill(rng, in, count * k * k);
  for (size_t c = 0; c < count; c++) {
    uint8_t *last = in + (c + 1) * k * k - k;
    if (c % 2 == 0 || k == 0)
      continue;
    memset(last, 0, k);
    for (size_t i = 0; i + 1 < k; i++)
      for (size_t j = 0; j < k; j++)
        last[j] ^= weft_gf256_mul((uint8_t)(i + c), in[c * k * k + i * k + j]);
  }
  // Zeros on the diagonal require swaps.
  for (size_t i = 0; count > 0 && i < k; i += 2)
    in[i * k + i] = 0;
}

// fail_at: which of the row's allocations fails; 0: none. WITHOUT: there is no allocator.
enum { WITHOUT = -1 };

static bool run_inverses(row_check *check, size_t count, size_t k, weft_pool *pool, long fail_at,
                         test_rng *rng) {
  const weft_backend *row = check->row, *scalar = row_check_scalar();
  const size_t bytes = count * k * k;
  uint8_t *in = row_check_memory(bytes), *out = row_check_memory(bytes);
  uint8_t *want = row_check_memory(bytes), *product = row_check_memory(k * k);
  uint8_t singular[8], want_singular[8];
  test_allocator memory, own;
  test_allocator_init(&memory, 0);
  test_allocator_init(&own, fail_at);
  const weft_exec exec = {.allocator = &memory.allocator, .pool = pool};
  static const weft_allocator none; // as has a program that must not allocate
  const weft_exec own_exec = {.allocator = fail_at == WITHOUT ? &none : &own.allocator,
                              .pool = pool};
  fill_matrices(in, count, k, rng);
  weft_invert spec = {.count = count, .k = k, .in = in, .out = want, .singular = want_singular};
  weft_invert mine = {.count = count, .k = k, .in = in, .out = out, .singular = singular};
  bool good = scalar->invert(scalar, &exec, &spec) == WEFT_OK;
  if (test_rng_below(rng, 2)) { // in place
    memcpy(out, in, bytes);
    mine.in = out;
  }
  good = good && row->invert(row, &own_exec, &mine) == WEFT_OK && !test_allocator_live(&own) &&
         (fail_at <= 0 || test_allocator_failed(&own));
  for (size_t c = 0; c < count && good; c++) {
    const size_t at = c * k * k;
    good = singular[c] == want_singular[c] && singular[c] == !row_check_is_regular(in + at, k);
    if (!good || singular[c])
      continue;
    const weft_gemm g = {.m = k, // A * A^-1
                         .k = k,
                         .len = k,
                         .a = in + at,
                         .a_stride = k,
                         .x = {.base = out + at, .stride = k},
                         .y = {.base = product, .stride = k}};
    row_check_define_gemm(&g);
    good = memcmp(out + at, want + at, k * k) == 0 && is_identity(product, k);
  }
  free(in);
  free(out);
  free(want);
  free(product);
  char text[60];
  snprintf(text, sizeof text, "%zu of k %zu, allocation %ld fails", count, k, fail_at);
  return good || row_check_fail(check, "inverse", text);
}

bool row_check_inverses(row_check *check) {
  test_rng rng = test_rng_new(check->seed, 5);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_pool *pool = NULL;
  if (weft_pool_new(&pool, 2, &memory.allocator) != WEFT_OK)
    return row_check_fail(check, "inverse", "no pool");
  bool good = true;
  for (size_t k = 0; k <= 40 && good; k++)
    good = run_inverses(check, 1 + test_rng_below(&rng, 6), k, k % 2 ? pool : NULL, 0, &rng);
  good = good && run_inverses(check, 2, check->step > 1 ? 70 : 150, NULL, 0, &rng);
  // Above 192 rows the steps lie in memory of the allocator, if there is any.
  const long first = check->row->host ? WITHOUT : 0;
  for (long fail_at = first; check->step == 1 && fail_at <= 1 && good; fail_at++)
    good = run_inverses(check, 1, 195 + test_rng_below(&rng, 40), NULL, fail_at, &rng);
  weft_pool_free(pool);
  const weft_invert large = {.count = 1, .k = WEFT_PANEL_ROWS + 1};
  const weft_exec exec = {.allocator = &memory.allocator};
  if (good && check->row->invert(check->row, &exec, &large) != WEFT_E_ARGUMENT)
    return row_check_fail(check, "inverse", "beyond WEFT_PANEL_ROWS was not refused");
  return good;
}

static bool run_xorm(row_check *check, weft_xorm *o, weft_pool *pool, test_rng *rng) {
  const weft_backend *row = check->row;
  const size_t bits_bytes = o->m * o->w * o->bits_stride, stride = o->len + 1;
  uint8_t *bits = row_check_memory(bits_bytes), *x = row_check_memory(o->k * stride);
  uint8_t *y = row_check_memory(o->m * stride), *want = row_check_memory(o->m * stride);
  test_rng_fill(rng, bits, bits_bytes);
  const size_t mask = test_rng_below(rng, 4) ? 1 : 7; // one bit in two, or sparse with empty rows
  for (size_t i = 0; i < bits_bytes; i++)
    bits[i] = (bits[i] & mask) == mask;
  test_rng_fill(rng, x, o->k * stride);
  test_rng_fill(rng, y, o->m * stride);
  memcpy(want, y, o->m * stride);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {.allocator = &memory.allocator, .pool = pool};
  o->bits = bits;
  o->x = (weft_const_rows){.base = x, .stride = stride};
  o->y = (weft_rows){.base = want, .stride = stride};
  row_check_define_xorm(o);
  o->y.base = y;
  const bool good = row->xorm(row, &exec, o) == WEFT_OK && memcmp(y, want, o->m * stride) == 0;
  free(bits);
  free(x);
  free(y);
  free(want);
  char text[120];
  snprintf(text, sizeof text, "m %zu, k %zu, w %zu, packet %zu, len %zu, %zu threads", o->m, o->k,
           o->w, o->packet_bytes, o->len, weft_pool_threads(pool));
  return good || row_check_fail(check, "xorm", text);
}

bool row_check_xorm(row_check *check) {
  static const size_t packets[] = {1, 7, 8, 16, 31, 64, 100, 257, 1024, 5000};
  test_rng rng = test_rng_new(check->seed, 6);
  test_allocator memory;
  test_allocator_init(&memory, 0);
  weft_pool *pool = NULL;
  if (weft_pool_new(&pool, 3, &memory.allocator) != WEFT_OK)
    return row_check_fail(check, "xorm", "no pool");
  bool good = true;
  for (size_t w = 1; w <= 8 && good; w++)
    for (size_t p = 0; p < sizeof packets / sizeof *packets && good; p++) {
      weft_xorm o = {.m = test_rng_below(&rng, 5),
                     .k = test_rng_below(&rng, 2) ? 1 : test_rng_below(&rng, 8),
                     .w = w,
                     .packet_bytes = packets[p],
                     .accumulate = test_rng_below(&rng, 2)};
      o.len = w * packets[p] * test_rng_below(&rng, 4);
      o.bits_stride = o.k * w + 2;
      good = run_xorm(check, &o, p % 2 ? pool : NULL, &rng);
    }
  // Usually more bits are set than one call of the kernel takes sources.
  weft_xorm wide = {.m = 1, .k = 90, .w = 8, .packet_bytes = 24, .len = 192, .bits_stride = 720};
  for (size_t i = 0; i < 6 && good; i++)
    good = run_xorm(check, &wide, NULL, &rng);
  weft_pool_free(pool);
  const weft_exec exec = {.allocator = &memory.allocator};
  for (size_t part = 1; part < 6; part++) {
    const weft_xorm odd = {
        .m = 1, .k = 1, .w = 2, .packet_bytes = 3, .len = 6 + part, .bits_stride = 2};
    if (good && check->row->xorm(check->row, &exec, &odd) != WEFT_E_ARGUMENT)
      return row_check_fail(check, "xorm", "a part of a group was not refused");
  }
  return good;
}
