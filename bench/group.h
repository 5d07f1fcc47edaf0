// SPDX-License-Identifier: Apache-2.0
// A group: cases that are measured in the same rounds, their ceilings among them, and ratios to
// compute between them. A report is the list of a run's groups, printed and as JSON.
#ifndef WEFT_BENCH_GROUP_H
#define WEFT_BENCH_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "bench/machine.h"
#include "bench/options.h"
#include "bench/stats.h"
#include "bench/timing.h"

// What a rate counts, in bytes (or byte x coefficient products) per call.
typedef enum weft_bench_metric {
  WEFT_BENCH_OUTPUT,   // bytes produced: coded, recoded or decoded
  WEFT_BENCH_PRODUCTS, // byte x coefficient multiply-accumulates
  WEFT_BENCH_INPUT,    // bytes that must be read at least once
  WEFT_BENCH_METRICS
} weft_bench_metric;

typedef struct weft_bench_case {
  const char *operation; // "encode"; ceilings: "ceiling", "read", "copy"
  const char *row;       // what did it: a backend row, "isa-l", a ceiling
  const char *variant;   // what else distinguishes it: "" or "eager", "columns", ...
  size_t n, k, m, threads;
  double amount[WEFT_BENCH_METRICS]; // of one call; 0: not meaningful
  int ceiling;                       // index of the case that bounds `bound_by`, or -1
  weft_bench_metric bound_by;
  // 1 + index of a second case, which bounds `also_by`; 0: none. The share is then that of the
  // lower bound, round by round.
  size_t also;
  weft_bench_metric also_by;
  weft_bench_candidate work;
  json_t *(*notes)(void *user); // further results of the case, from work.user; may be NULL
  const char *checked;          // how the output was checked before it was timed
  void *owned;                  // freed with the group; may be NULL
} weft_bench_case;

// A question: what multiple of case `over`'s rate does case `of` reach?
typedef struct weft_bench_question {
  const char *name; // "two threads / one"
  int of, over;     // indices of cases
  weft_bench_metric metric;
} weft_bench_question;

typedef struct weft_bench_group {
  const char *title;
  // Both grow: every row on every number of threads is several hundred cases. They move when one is
  // added, so cases refer to each other by index.
  weft_bench_case *cases;
  size_t case_count, case_room;
  weft_bench_question *questions;
  size_t question_count, question_room;
  // The metrics in the table's two columns of rates; both 0: output and products.
  weft_bench_metric shown[2];
  bool times; // the columns are times instead: per call, and per each of its m blocks
} weft_bench_group;

typedef struct weft_bench_report {
  json_t *root;
  json_t *groups;
  double start_s;
} weft_bench_report;

// Returns an empty group; the title remains the caller's.
weft_bench_group *weft_bench_group_new(const char *title);
void weft_bench_group_free(weft_bench_group *group); // accepts NULL

// Adds a case and returns its index.
int weft_bench_group_add(weft_bench_group *group, const weft_bench_case *entry);
// Returns the first case of this operation and row, or -1.
int weft_bench_group_find(const weft_bench_group *group, const char *operation, const char *row);
// Adds a question; does nothing if `of` or `over` is negative (a case that is not measured).
void weft_bench_group_ask(weft_bench_group *group, const char *name, int of, int over,
                          weft_bench_metric metric);

// Formats "1.234 (1.2..1.3)", or percent; "not separable" with the range if it is not.
void weft_bench_ratio_text(const weft_bench_ratio *ratio, bool percent, char *out, size_t room);
// Returns the technique that the row's table entry states; null for peers and ceilings.
json_t *weft_bench_technique_json(const char *row);
json_t *weft_bench_ratio_json(const weft_bench_ratio *ratio);

// Begins a report with its provenance.
void weft_bench_report_begin(weft_bench_report *report, const weft_bench_options *options,
                             const weft_bench_machine *machine);
// Measures a group, prints its table and adds it to the report.
void weft_bench_report_run(weft_bench_report *report, const weft_bench_options *options,
                           const weft_bench_group *group);
// Adds cases that were measured and printed in another way; takes over `cases`.
void weft_bench_report_add(weft_bench_report *report, const weft_bench_options *options,
                           const char *title, json_t *cases);
// Writes what the report holds so far to FILE.part, for results that are in its JSON before their
// group is complete, or beside the groups.
void weft_bench_report_keep(const weft_bench_report *report, const weft_bench_options *options);
// Writes the file if one was requested. Returns 0, or WEFT_BENCH_IO after a message.
int weft_bench_report_end(weft_bench_report *report, const weft_bench_options *options);

#endif
