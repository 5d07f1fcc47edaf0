// SPDX-License-Identifier: Apache-2.0
// Compares results with the scalar row.
#include "bench/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/buffers.h"
#include "kernels/cpu.h"

// Above this many byte x coefficient products only some rows are compared.
#define ALL_PRODUCTS ((size_t)1 << 27)

void weft_bench_must(const char *who, weft_status status) {
  if (status == WEFT_OK)
    return;
  fprintf(stderr, "weft bench: %s: %s (%s)\n", who, weft_status_text(status),
          weft_status_name(status));
  exit(WEFT_BENCH_MACHINE);
}

static _Noreturn void wrong(const char *who, size_t row, size_t at) {
  fprintf(stderr, "weft bench: %s gave a wrong byte in row %zu at %zu; nothing is timed\n", who,
          row, at);
  exit(WEFT_BENCH_WRONG);
}

static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t bytes) {
  size_t at = 0;
  while (at < bytes && a[at] == b[at])
    at++;
  return at;
}

const char *weft_bench_check_product(const char *who, size_t m, size_t k, size_t len,
                                     const uint8_t *a, size_t a_stride, const uint8_t *x,
                                     size_t x_stride, const uint8_t *y, size_t y_stride) {
  const weft_machine machine = {.cpu = weft_cpu_features()};
  const weft_exec exec = {.allocator = &weft_bench_allocator};
  const weft_backend *scalar = NULL;
  weft_bench_must("scalar", weft_backend_select(&machine, WEFT_MEM_HOST, "scalar", &scalar));
  const size_t affordable = ALL_PRODUCTS / (k * len + 1) + 1;
  const size_t rows = m < affordable ? m : affordable;
  uint8_t *const expected = weft_bench_alloc(len, 1);
  for (size_t i = 0; i < rows; i++) {
    const size_t row = rows == m ? i : rows == 1 ? m - 1 : i * (m - 1) / (rows - 1);
    const weft_gemm gemm = {
        .m = 1,
        .k = k,
        .len = len,
        .a = a + row * a_stride,
        .a_stride = a_stride,
        .x = {.base = x, .stride = x_stride},
        .y = {.base = expected, .stride = len},
    };
    weft_bench_must("scalar", scalar->gemm(scalar, &exec, &gemm, 1));
    const size_t at = first_difference(expected, y + row * y_stride, len);
    if (at < len)
      wrong(who, row, at);
  }
  free(expected);
  return rows == m ? WEFT_BENCH_CHECKED_ALL : WEFT_BENCH_CHECKED_SOME;
}

const char *weft_bench_check_source(const char *who, const uint8_t *got, const uint8_t *source,
                                    size_t bytes) {
  if (memcmp(got, source, bytes) != 0)
    wrong(who, 0, first_difference(got, source, bytes));
  return WEFT_BENCH_CHECKED_SOURCE;
}
