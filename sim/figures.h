// SPDX-License-Identifier: Apache-2.0
// Figures of a run, under the names that every output uses (docs/sim.md defines them).
#ifndef WEFT_SIM_FIGURES_H
#define WEFT_SIM_FIGURES_H

#include <stddef.h>

typedef struct weft_sim_metric {
  const char *name;
  double value; // NaN: no value
} weft_sim_metric;

#define WEFT_SIM_METRICS 64u

typedef struct weft_sim_metrics {
  weft_sim_metric items[WEFT_SIM_METRICS];
  size_t count;
} weft_sim_metrics;

static inline void weft_sim_add_metric(weft_sim_metrics *m, const char *name, double value) {
  if (m->count < WEFT_SIM_METRICS)
    m->items[m->count++] = (weft_sim_metric){.name = name, .value = value};
}

void weft_sim_sort(double *values, size_t count); // ascending
// Returns the nearest-rank quantile: the value that a share q of the values does not exceed; NaN:
// there are no values.
double weft_sim_quantile(const double *sorted, size_t count, double q);

// Sorts the values and adds their 0.5, 0.95 and 0.99 quantiles (nearest rank) under three names.
void weft_sim_add_quantiles(weft_sim_metrics *metrics, double *values, size_t count,
                            const char *const names[3]);

#endif
