// SPDX-License-Identifier: Apache-2.0
// Checks products with few output rows of thousands of bytes, as storage codes have: rows flush
// with guard pages, aligned and not, sources in one group and in several.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/row_check_internal.h"
#include "tests/support/test_allocator.h"

static bool run_few(row_check *check, const row_check_shape *c, test_rng *rng) {
  test_allocator memory;
  test_allocator_init(&memory, test_rng_below(rng, 4) == 0); // sometimes out of memory
  static const weft_allocator none;                          // or without an allocator
  const uint64_t who = test_rng_below(rng, 6);
  const weft_exec exec = {.allocator = who == 0 ? NULL : who == 1 ? &none : &memory.allocator};
  row_check_rows rows;
  uint8_t a[ROW_CHECK_ROWS * ROW_CHECK_ROWS];
  row_check_rows_new(&rows, c, rng);
  test_rng_fill(rng, a, c->m * c->k);
  const weft_gemm g = row_check_rows_product(&rows, c, a);
  const bool done =
      check->row->gemm(check->row, &exec, &g, 1) == WEFT_OK && test_allocator_live(&memory) == 0;
  char text[128];
  snprintf(text, sizeof text, "m %zu, k %zu, len %zu, end - %zu%s", c->m, c->k, c->len, c->offset,
           c->accumulate ? ", accumulate" : "");
  return (row_check_rows_end(&rows) && done) || row_check_fail(check, "few outputs", text);
}

// Checks products (m, k) of rows of `len` bytes, with repeated sources.
static bool run_sizes(row_check *check, const size_t (*sizes)[2], size_t count, size_t len,
                      test_rng *rng) {
  enum { OTHERS = 7, M_MAX = 65, K_MAX = 257 };
  test_allocator memory;
  test_allocator_init(&memory, 0);
  const weft_exec exec = {.allocator = &memory.allocator};
  uint8_t *const a = row_check_memory(M_MAX * K_MAX);
  const uint8_t *x[K_MAX];
  bool good = true;
  test_guard rows[OTHERS];
  for (size_t j = 0; j < OTHERS; j++) {
    rows[j] = test_guard_new(len);
    test_rng_fill(rng, rows[j].end - len, len);
  }
  for (size_t j = 0; j < K_MAX; j++)
    x[j] = rows[j % OTHERS].end - len;
  uint8_t *const want = row_check_memory(M_MAX * len);
  uint8_t *const memory_of_got = row_check_memory(M_MAX * len + 64);
  uint8_t *const got = memory_of_got + (64 - (uintptr_t)memory_of_got % 64); // on a cache line
  for (size_t i = 0; i < count && good; i++) {
    const size_t m = sizes[i][0], k = sizes[i][1];
    test_rng_fill(rng, a, m * k);
    weft_gemm g = {.m = m, .k = k, .len = len, .a = a, .a_stride = k, .x = {.ptr = x}};
    g.y = (weft_rows){.base = want, .stride = len};
    row_check_define_gemm(&g);
    g.y.base = got;
    good = check->row->gemm(check->row, &exec, &g, 1) == WEFT_OK && memcmp(want, got, m * len) == 0;
  }
  for (size_t j = 0; j < OTHERS; j++)
    test_guard_free(&rows[j]);
  free(a);
  free(want);
  free(memory_of_got);
  return good || row_check_fail(check, "few outputs", "many sources");
}

// Checks the sizes at which rows change their method: tables and sums of a limited number of
// coefficients must not overflow. In rows longer than 64 KiB (2 KiB if emulated), more outputs than
// a panel has tables for are processed in parts.
static bool run_bounds(row_check *check, test_rng *rng) {
  static const size_t sizes[][2] = {{16, 64}, {16, 65}, {13, 79}, {12, 255}, {17, 256}, {16, 257}};
  static const size_t parts[][2] = {{8, 17},  {9, 17},  {11, 33}, {17, 40}, {24, 18},
                                    {31, 20}, {32, 65}, {40, 64}, {64, 33}, {65, 32}};
  const size_t len = (check->step == 1 ? 65536 : 2048) + 130;
  const bool long_rows = check->step > 1 || (check->row->host && check->row->host->scratch);
  return (check->step > 1 ||
          run_sizes(check, sizes, sizeof sizes / sizeof *sizes, 8192 + 130, rng)) &&
         (!long_rows || run_sizes(check, parts, sizeof parts / sizeof *parts, len, rng));
}

// Checks up to the most sources that long rows process in straight-line code, all at once.
static bool run_streams(row_check *check, test_rng *rng) {
  static const uint8_t outputs[] = {2, 3, 4, 6, 8};
  const bool emulated = check->step > 1;
  if (!emulated && !(check->row->host && check->row->host->scratch))
    return true;
  for (size_t k = 16; k <= 33; k++) {
    const size_t m = k == 32 ? 8 : outputs[k % (emulated ? 5 : 3)];
    const size_t all = emulated ? 100000 : (size_t)(m > 4 ? 25 : 7) << 20;
    const size_t size[][2] = {{m, k}};
    if (!run_sizes(check, size, 1, (all / (k + m) / 64 + 1) * 64, rng))
      return false;
  }
  return true;
}

// Checks what is left over in an update of several rows: nothing, a byte, part of a vector, several
// vectors.
static bool run_tails(row_check *check, test_rng *rng) {
  static const size_t tails[] = {0, 1, 31, 32, 33, 63, 64, 65, 129, 511};
  for (size_t t = 0; t < sizeof tails / sizeof *tails; t++)
    for (size_t k = 1; k <= 2; k++) {
      const row_check_shape c = {
          .m = 3, .k = k, .len = 4096 + tails[t], .accumulate = true, .uneven = t % 2 == 1};
      if (!run_few(check, &c, rng))
        return false;
    }
  // Larger than a second-level cache, which stores may then bypass.
  const row_check_shape large = {
      .m = 3, .k = 2, .len = check->step == 1 ? 900 * 1024 : 20480, .uneven = true};
  return run_few(check, &large, rng);
}

bool row_check_few_outputs(row_check *check) {
  static const size_t sources[] = {1, 2, 3, 10, 16, 17, 20, 33};
  test_rng rng = test_rng_new(check->seed, 7);
  if (!run_tails(check, &rng) || !run_bounds(check, &rng) || !run_streams(check, &rng))
    return false;
  for (size_t m = 1; m <= 18; m++)
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++) {
      // Emulated rows run one number of sources for each m, each number in turn.
      if (check->step > 1 && (m + s) % 4 != 0)
        continue;
      const row_check_shape c = {.m = m,
                                 .k = sources[s],
                                 .len = 900 + test_rng_below(&rng, 4000),
                                 .offset = test_rng_below(&rng, 2) * test_rng_below(&rng, 64),
                                 .accumulate = test_rng_below(&rng, 3) == 0};
      if (!run_few(check, &c, &rng))
        return false;
      // Whole lines, for stores that require them.
      const row_check_shape aligned = {.m = m, .k = sources[s], .len = 4096 + 64 * (m % 3)};
      if (!run_few(check, &aligned, &rng))
        return false;
      // Long rows of many sources, which rows process in groups; emulated ones are built to do so
      // earlier.
      const row_check_shape grouped = {.m = m,
                                       .k = sources[s],
                                       .len = 8192 + test_rng_below(&rng, 2000),
                                       .offset = test_rng_below(&rng, 64),
                                       .accumulate = m % 2 == 0};
      if (check->step == 1 && sources[s] % 16 == 1 && sources[s] > 16 && (m <= 8 || m == 16) &&
          !run_few(check, &grouped, &rng))
        return false;
    }
  return true;
}
