// SPDX-License-Identifier: Apache-2.0
// What the page shows of a server and of a store beside what it shows of every run.
#ifndef WEFT_SIM_REPORT_HTML_H
#define WEFT_SIM_REPORT_HTML_H

#include "sim/report/report.h"

enum { WEFT_SIM_POINTS = 1500, WEFT_SIM_STEPS = 200 }; // of a curve over time; of a distribution

json_t *weft_sim_server_json(const weft_sim_report *report);
json_t *weft_sim_store_json(const weft_sim_report *report);

#endif
