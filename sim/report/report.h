// SPDX-License-Identifier: Apache-2.0
// What a run leaves in a folder: run.json, summary.csv, peers.csv, series.csv, trace.jsonl and
// report.html, which needs no network. Every file is written beside its name and then renamed, so
// that an earlier one stays whole whatever happens.
#ifndef WEFT_SIM_REPORT_REPORT_H
#define WEFT_SIM_REPORT_REPORT_H

#include <jansson.h>

#include "sim/report/metrics.h"
#include "sim/services/services.h"

typedef struct weft_sim_report {
  const weft_sim_parameters *parameters;
  const weft_sim_result *result;
  const weft_sim_metrics *metrics;
  const weft_sim_service *service;  // NULL: a swarm
  const char *policy, *policy_hash; // UTF-8, of the scheme's file; NULL: it is none
  const char *revision, *backend, *machine;
  size_t ranks, threads;
  double wall_s;
} weft_sim_report;

// All of them return WEFT_OK, WEFT_E_IO (errno says why) or WEFT_E_NOMEM.
weft_status weft_sim_write_run_json(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_summary_csv(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_peers_csv(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_series_csv(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_trace_jsonl(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_html(const weft_sim_report *report, const char *path);
// A sweep's page; docs/sim.md tells what it shows, cli/sim_sweep_page.c what `sweep` holds.
weft_status weft_sim_write_sweep_html(const json_t *sweep, const char *path);
// All of a run's into a folder, which is made; of a store no peers.csv and no trace.jsonl, and
// series.csv by hours.
weft_status weft_sim_write_all(const weft_sim_report *report, const char *folder);

// run.json's object; NULL: no memory.
json_t *weft_sim_run_json(const weft_sim_report *report);
// A row of summary.csv and its heading, each with its line end; g_free is not needed: malloc'd.
char *weft_sim_summary_heading(const weft_sim_report *report);
char *weft_sim_summary_row(const weft_sim_report *report);

// Text as a table's cell, in UTF-8 and quoted where a comma or quote in it would split it; at most
// 3 bytes for each of its own and 3 more.
const char *weft_sim_cell(const char *text, char *out, size_t room);

// Seconds that a curve has, one at least. The rest of a second at the end (a swarm's runs end with
// a window) would look like one in which little happened.
size_t weft_sim_whole_seconds(const weft_sim_result *result);
// How many of the audience were there in one of them, on the mean.
double weft_sim_online(const weft_sim_result *result, size_t second);

// Writes `path` by way of a file beside it.
typedef weft_status weft_sim_writer(void *user, FILE *to);
weft_status weft_sim_write_file(const char *path, weft_sim_writer *write, void *user);

#endif
