// SPDX-License-Identifier: Apache-2.0
// HTML pages, and the extra data that a run's page shows for a server or a store.
#ifndef WEFT_SIM_REPORT_HTML_H
#define WEFT_SIM_REPORT_HTML_H

#include "sim/report/report.h"

enum { WEFT_SIM_POINTS = 1500, WEFT_SIM_STEPS = 200 }; // of a curve over time; of a distribution

// A page's own HTML and script, and `data`, which the script finds under `name`. weft_sim_put_page
// adds what all pages share.
typedef struct weft_sim_page {
  const unsigned char *html, *js;
  const char *name;
  const json_t *data;
} weft_sim_page;
weft_status weft_sim_put_page(FILE *to, const weft_sim_page *page);

json_t *weft_sim_server_json(const weft_sim_report *report);
json_t *weft_sim_store_json(const weft_sim_report *report);

#endif
