// SPDX-License-Identifier: Apache-2.0
// `weft store`: options (store.c), names (store_paths.c) and reports (store_report.c).
#ifndef WEFT_CLI_STORE_H
#define WEFT_CLI_STORE_H

#include <stdio.h>

#include "cli/cli.h"
#include "store/store.h"

// What a call left, for the reports.
typedef struct store_outcome {
  const char *call, *folder; // "encode"
  weft_store *store;         // NULL: none is open
  weft_store_report report;
  weft_status status;
  double seconds;
  const char *backend; // NULL: there is none
  size_t threads;
} store_outcome;

// Why a call failed; "" if it did not.
const char *store_error(const store_outcome *outcome);
void store_report_text(const store_outcome *outcome, FILE *to);
void store_report_json(const store_outcome *outcome, int code, FILE *to);
// What is wrong with single shards, and which bytes are lost, on standard error.
void store_report_shards(const store_outcome *outcome);
void store_report_lost(const store_outcome *outcome);

// --- store_paths.c

// The descriptor of this process that an output is, by any of its names (-, /dev/stdout, /dev/fd/3,
// a link to one); -1: it is none, STORE_FOREIGN: one of another process. Replacing the file behind
// a descriptor would be another thing than writing to it.
enum { STORE_FOREIGN = -2 };
int store_descriptor_of(const char *output);
// Whether two inputs would take bytes from each other, by whatever names.
bool store_same_source(const char *a, const char *b);

#endif
