// SPDX-License-Identifier: Apache-2.0
// Median, spread, and whether two measurements can be distinguished.
#ifndef WEFT_BENCH_STATS_H
#define WEFT_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct weft_bench_spread {
  double median, min, max;
} weft_bench_spread;

void weft_bench_sort(double *values, size_t count); // ascending

// count >= 1.
weft_bench_spread weft_bench_spread_of(const double *values, size_t count);

// Returns the value that a share of the values, above 0 and at most 1, does not exceed. count >= 1.
double weft_bench_quantile_of(const double *values, size_t count, double share);

// The ratio of two candidates measured in the same rounds, each of which gives one quotient. It is
// separable if its difference from 1 exceeds the spread (max - min) of the quotients.
typedef struct weft_bench_ratio {
  weft_bench_spread spread;
  size_t rounds; // that the spread covers; if too few: all, and not separable
  bool separable;
} weft_bench_ratio;

// numerator[i] / denominator[i] come from round i, which counts if both flags are set. needed: how
// many such rounds a ratio requires.
weft_bench_ratio weft_bench_ratio_of(const double *numerator, const bool *numerator_usable,
                                     const double *denominator, const bool *denominator_usable,
                                     size_t count, size_t needed);

// Two sets of repetitions from different runs differ beyond noise if their ranges do not overlap.
bool weft_bench_ranges_apart(const weft_bench_spread *a, const weft_bench_spread *b);

#endif
