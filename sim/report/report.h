// SPDX-License-Identifier: Apache-2.0
// The files that a run leaves in a folder: run.json, summary.csv, peers.csv, series.csv,
// trace.jsonl and report.html, which needs no network. Each file is written under a temporary name
// and then renamed, so that a failure leaves an earlier file intact.
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
  const char *policy, *policy_hash; // UTF-8, of the scheme's file; NULL: a built-in scheme
  const char *revision, *backend, *machine;
  size_t ranks, threads;
  double wall_s;
} weft_sim_report;

// All of these return WEFT_OK, WEFT_E_IO (with errno set) or WEFT_E_NOMEM.
weft_status weft_sim_write_run_json(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_summary_csv(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_peers_csv(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_series_csv(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_trace_jsonl(const weft_sim_report *report, const char *path);
weft_status weft_sim_write_html(const weft_sim_report *report, const char *path);
// The page of a sweep: docs/sim.md describes what it shows, cli/sim_sweep_page.c what `sweep`
// holds.
weft_status weft_sim_write_sweep_html(const json_t *sweep, const char *path);
// Writes all of a run's files into a folder, which it creates. A store has no peers.csv and no
// trace.jsonl, and its series.csv has one row per hour.
weft_status weft_sim_write_all(const weft_sim_report *report, const char *folder);

// Returns what run.json has of the access classes: an array of objects.
json_t *weft_sim_classes_json(const weft_sim_parameters *parameters);
// Returns run.json's object; NULL: no memory.
json_t *weft_sim_run_json(const weft_sim_report *report);
// Return summary.csv's heading and row, each with its line end, from malloc; NULL: no memory.
char *weft_sim_summary_heading(const weft_sim_report *report);
char *weft_sim_summary_row(const weft_sim_report *report);

// Writes text as a CSV cell: valid UTF-8, quoted if it contains a comma, a quote or a line end.
// Takes at most 3 bytes for each byte of `text`, plus 3.
const char *weft_sim_cell(const char *text, char *out, size_t room);

// Returns the number of whole seconds that a curve shows, at least one. A partial second at the end
// (runs of a swarm end with a window) would look like one in which little happened.
size_t weft_sim_whole_seconds(const weft_sim_result *result);
// Returns the mean size of the audience in that second.
double weft_sim_online(const weft_sim_result *result, size_t second);

// Writes `path` through a temporary file next to it, which it then renames.
typedef weft_status weft_sim_writer(void *user, FILE *to);
weft_status weft_sim_write_file(const char *path, weft_sim_writer *write, void *user);

#endif
