// SPDX-License-Identifier: Apache-2.0
// Pages, and what a run's shows of a server and of a store beside what it shows of every run.
#ifndef WEFT_SIM_REPORT_HTML_H
#define WEFT_SIM_REPORT_HTML_H

#include "sim/report/report.h"

enum { WEFT_SIM_POINTS = 1500, WEFT_SIM_STEPS = 200 }; // of a curve over time; of a distribution

// A page of its own HTML and script and of `data`, which the script finds under `name`; what all
// pages share is put around them.
typedef struct weft_sim_page {
  const unsigned char *html, *js;
  const char *name;
  const json_t *data;
} weft_sim_page;
weft_status weft_sim_put_page(FILE *to, const weft_sim_page *page);

json_t *weft_sim_server_json(const weft_sim_report *report);
json_t *weft_sim_store_json(const weft_sim_report *report);

#endif
