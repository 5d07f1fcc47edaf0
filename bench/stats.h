// SPDX-License-Identifier: Apache-2.0
// Median, spread, and whether two measurements can be told apart at all.
#ifndef WEFT_BENCH_STATS_H
#define WEFT_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct weft_bench_spread {
  double median, min, max;
} weft_bench_spread;

// count >= 1
weft_bench_spread weft_bench_spread_of(const double *values, size_t count);

// A ratio of two candidates that were measured in the same rounds: each round gives one quotient.
// It is separable when the difference from 1 exceeds the spread (max - min) of the quotients.
typedef struct weft_bench_ratio {
  weft_bench_spread spread;
  bool separable;
} weft_bench_ratio;

// numerator[i] / denominator[i] come from round i.
weft_bench_ratio weft_bench_ratio_of(const double *numerator, const double *denominator,
                                     size_t count);

// Two sets of repetitions from different runs differ beyond noise when their ranges are apart.
bool weft_bench_ranges_apart(const weft_bench_spread *a, const weft_bench_spread *b);

#endif
