// SPDX-License-Identifier: Apache-2.0
// Median, spread, separability.
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

weft_bench_spread weft_bench_spread_of(const double *values, size_t count) {
  double *const sorted = weft_bench_alloc(count, sizeof(double));
  memcpy(sorted, values, count * sizeof(double));
  qsort(sorted, count, sizeof(double), ascending);
  const weft_bench_spread spread = {
      .median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
      .min = sorted[0],
      .max = sorted[count - 1],
  };
  free(sorted);
  return spread;
}

weft_bench_ratio weft_bench_ratio_of(const double *numerator, const double *denominator,
                                     size_t count) {
  double *const quotients = weft_bench_alloc(count, sizeof(double));
  for (size_t i = 0; i < count; i++)
    quotients[i] = numerator[i] / denominator[i];
  weft_bench_ratio ratio = {.spread = weft_bench_spread_of(quotients, count)};
  ratio.separable = fabs(ratio.spread.median - 1) > ratio.spread.max - ratio.spread.min;
  free(quotients);
  return ratio;
}

bool weft_bench_ranges_apart(const weft_bench_spread *a, const weft_bench_spread *b) {
  return a->max < b->min || b->max < a->min;
}
