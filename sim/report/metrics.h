// SPDX-License-Identifier: Apache-2.0
// The figures of a run, as docs/sim.md defines them, under the names that every output uses.
#ifndef WEFT_SIM_REPORT_METRICS_H
#define WEFT_SIM_REPORT_METRICS_H

#include "sim/swarm/swarm.h"

typedef struct weft_sim_metric {
  const char *name;
  double value; // NaN: there is none
} weft_sim_metric;

#define WEFT_SIM_METRICS 40u

typedef struct weft_sim_metrics {
  weft_sim_metric items[WEFT_SIM_METRICS];
  size_t count;
} weft_sim_metrics;

// WEFT_E_NOMEM.
weft_status weft_sim_measure(const weft_sim_parameters *parameters, const weft_sim_result *result,
                             weft_sim_metrics *out);
double weft_sim_metric_of(const weft_sim_metrics *metrics, const char *name); // NaN: none

#endif
