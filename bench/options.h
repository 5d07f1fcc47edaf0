// SPDX-License-Identifier: Apache-2.0
// The options of all comparisons.
#ifndef WEFT_BENCH_OPTIONS_H
#define WEFT_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/timing.h"

#define WEFT_BENCH_LIST 16u
#define WEFT_BENCH_MARKS 64u // most repetitions of `sim` and `server`, which keep a mark for each

typedef struct weft_bench_sizes {
  size_t count;
  size_t value[WEFT_BENCH_LIST];
} weft_bench_sizes;

typedef struct weft_bench_options {
  weft_bench_sizes n, k, m, threads;
  weft_bench_sizes pauses; // us
  const char *rows;        // comma-separated names, "best" or "all"
  const char *operations;  // comma-separated names; NULL: all
  const char *json;        // file, or NULL
  FILE *json_stdout;       // --json -: standard output, while tables go to standard error; or NULL
  const char *isal;        // file of ISA-L's shared library; NULL: the system's; "": none
  const char *peers;       // rlnc: files of other RLNC libraries; NULL: none
  // storage: like --isal, which may be a list there.
  const char *jerasure, *klauspost;
  const char *shapes;     // "10+4,32+8": data and parity shards; NULL: each part's default
  weft_bench_sizes bytes; // of a shard
  uint64_t seed;
  bool quick;
  bool small_pages;         // no huge pages for the measured memory
  weft_bench_timing timing; // rep_s 0: it does not time calls, but counts in simulations
  int argc;                 // the command line, for the report
  char **argv;
} weft_bench_options;

// Parses the options; argv[0] is the comparison's name. Returns 0; 1 after --help; 2 after a
// message about a wrong option; WEFT_BENCH_IO after one about a --json file that cannot be written.
// Lists that the user does not give stay empty.
int weft_bench_options_parse(weft_bench_options *options, int argc, char **argv);

// Whether `name` is in the comma-separated `list`; a NULL list holds every name.
bool weft_bench_listed(const char *list, const char *name);

// Takes the next name off a comma-separated list, for the caller to free(); NULL at the end of the
// list, and of a NULL list. Skips empty names.
char *weft_bench_list_next(const char **list);

// Whether every name in `list`, the value of `option`, is among the `count` names; otherwise prints
// which exist.
bool weft_bench_names_known(const weft_bench_options *options, const char *option, const char *list,
                            const char *const *names, size_t count);

// Whether every name of --operations is among the `count` names; otherwise prints which exist.
bool weft_bench_operations_known(const weft_bench_options *options, const char *const *names,
                                 size_t count);

// Gives `sizes` a default if the user gave none.
void weft_bench_sizes_default(weft_bench_sizes *sizes, const size_t *values, size_t count);

#endif
