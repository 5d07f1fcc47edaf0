// SPDX-License-Identifier: Apache-2.0
// `weft store`: options (store.c) and reports (store_report.c).
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

#endif
