// SPDX-License-Identifier: Apache-2.0
// Where a figure comes from: commit, machine, compiler, flags, date, command line.
#ifndef WEFT_BENCH_PROVENANCE_H
#define WEFT_BENCH_PROVENANCE_H

#include <jansson.h>

#include "bench/machine.h"
#include "bench/options.h"

#define WEFT_BENCH_SCHEMA 1

// The head of a report; the caller owns it.
json_t *weft_bench_provenance(const weft_bench_options *options, const weft_bench_machine *machine);
void weft_bench_provenance_print(const weft_bench_options *options,
                                 const weft_bench_machine *machine);

#endif
