// SPDX-License-Identifier: Apache-2.0
#include "sim/figures.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void weft_sim_sort(double *values, size_t count) {
  if (count > 0)
    qsort(values, count, sizeof *values, ascending);
}

double weft_sim_quantile(const double *sorted, size_t count, double q) {
  if (count == 0)
    return (double)NAN;
  const double at = ceil(q * (double)count);
  return sorted[at < 1 ? 0 : (size_t)at - 1];
}

void weft_sim_add_quantiles(weft_sim_metrics *m, double *values, size_t count,
                            const char *const names[3]) {
  static const double q[] = {0.5, 0.95, 0.99};
  weft_sim_sort(values, count);
  for (size_t i = 0; i < 3; i++)
    weft_sim_add_metric(m, names[i], weft_sim_quantile(values, count, q[i]));
}
