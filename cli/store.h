// SPDX-License-Identifier: Apache-2.0
// `weft store`: calls (store.c), options (store_options.c), names (store_paths.c) and reports
// (store_report.c).
#ifndef WEFT_CLI_STORE_H
#define WEFT_CLI_STORE_H

#include <stdio.h>

#include "cli/cli.h"
#include "store/store.h"

// The outcome of a call, for the reports.
typedef struct store_outcome {
  const char *call, *folder; // "encode"
  weft_store *store;         // NULL: none is open
  weft_store_report report;
  weft_status status;
  double seconds;
  const char *backend; // NULL: none
  size_t threads;
} store_outcome;

// The values of the command line.
typedef struct store_words {
  gint64 k, m, threads;
  char *k_text, *m_text, *threads_text; // the same as they were given, or NULL
  char *code, *stripe, *backend, *key, *offset, *length, *output, *output_dir;
  char **rest;
  gboolean json;
} store_words;

typedef struct store_call {
  const char *name;
  const char *about;
  const char *takes; // its arguments
  int arguments;
  int (*run)(const store_words *w, const weft_store_options *options, store_outcome *out);
} store_call;

// --- store_options.c

extern const char store_codes[]; // the exit codes, for help
// Parses the command line of a call, argv[0] being its name; returns -1 to go on, else the exit
// code.
int store_parse(const store_call *call, const char *title, int argc, char **argv, store_words *w);
void store_words_free(store_words *w);
// Whether the data goes to standard output, judged by a command line not yet parsed.
bool store_data_to_stdout(int argc, char *const *argv);

// --- store_report.c

// Returns why a call failed; "" if it did not.
const char *store_error(const store_outcome *outcome);
void store_report_text(const store_outcome *outcome, FILE *to);
void store_report_json(const store_outcome *outcome, int code, FILE *to);
// Print on standard error what is wrong with single shards, and which bytes are lost.
void store_report_shards(const store_outcome *outcome);
void store_report_lost(const store_outcome *outcome);

// --- store_paths.c

// Returns the descriptor of this process that an output names (-, /dev/stdout, /dev/fd/3, a link to
// one); -1: none, STORE_FOREIGN: one of another process. Such an output must be written to, rather
// than its file replaced.
enum { STORE_FOREIGN = -2 };
int store_descriptor_of(const char *output);
bool store_is_stdout(const char *output);
// Returns whether two inputs, by whatever names, are one stream and would take each other's bytes.
bool store_same_source(const char *a, const char *b);

#endif
