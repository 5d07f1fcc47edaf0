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

void weft_bench_sort(double *values, size_t count) {
  qsort(values, count, sizeof *values, ascending);
}

// Returns the values sorted; free() them.
static double *sorted_of(const double *values, size_t count) {
  double *const sorted = weft_bench_alloc(count, sizeof(double));
  memcpy(sorted, values, count * sizeof(double));
  weft_bench_sort(sorted, count);
  return sorted;
}

weft_bench_spread weft_bench_spread_of(const double *values, size_t count) {
  double *const sorted = sorted_of(values, count);
  const weft_bench_spread spread = {
      .median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
      .min = sorted[0],
      .max = sorted[count - 1],
  };
  free(sorted);
  return spread;
}

double weft_bench_quantile_of(const double *values, size_t count, double share) {
  double *const sorted = sorted_of(values, count);
  const size_t rank = (size_t)ceil(share * (double)count);
  const double value = sorted[rank > 0 ? rank - 1 : 0];
  free(sorted);
  return value;
}

weft_bench_ratio weft_bench_ratio_of(const double *numerator, const bool *numerator_usable,
                                     const double *denominator, const bool *denominator_usable,
                                     size_t count, size_t needed) {
  double *const quotients = weft_bench_alloc(count, sizeof(double));
  weft_bench_ratio ratio = {.rounds = 0};
  for (size_t i = 0; i < count; i++)
    if (numerator_usable[i] && denominator_usable[i])
      quotients[ratio.rounds++] = numerator[i] / denominator[i];
  const bool enough = ratio.rounds >= needed;
  for (size_t i = 0; i < count && !enough; i++)
    quotients[i] = numerator[i] / denominator[i];
  ratio.spread = weft_bench_spread_of(quotients, enough ? ratio.rounds : count);
  ratio.separable = enough && fabs(ratio.spread.median - 1) > ratio.spread.max - ratio.spread.min;
  free(quotients);
  return ratio;
}

bool weft_bench_ranges_apart(const weft_bench_spread *a, const weft_bench_spread *b) {
  return a->max < b->min || b->max < a->min;
}
