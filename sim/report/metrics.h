// SPDX-License-Identifier: Apache-2.0
// The figures of a run, as docs/sim.md defines them, under the names that every output uses.
#ifndef WEFT_SIM_REPORT_METRICS_H
#define WEFT_SIM_REPORT_METRICS_H

#include "sim/figures.h"
#include "sim/swarm/swarm.h"

// Errors: WEFT_E_NOMEM.
weft_status weft_sim_measure(const weft_sim_parameters *parameters, const weft_sim_result *result,
                             weft_sim_metrics *out);
double weft_sim_metric_of(const weft_sim_metrics *metrics, const char *name); // NaN: none

#endif
