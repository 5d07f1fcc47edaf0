// SPDX-License-Identifier: Apache-2.0
// Which rows of the backend table a comparison takes.
#ifndef WEFT_BENCH_ROWS_H
#define WEFT_BENCH_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "bench/options.h"
#include "kernels/backend.h"

// Writes up to `capacity` host rows to `rows` and returns how many: those of the comma-separated
// `list` in its order, "best" being the one that wins; "all" gives every row of this machine, best
// first. 0 after a message that names `command`: an unknown or absent row is an error, not a
// shorter table.
size_t weft_bench_rows_choose(const char *command, const char *list, uint32_t features,
                              const weft_backend **rows, size_t capacity);

// The one host row that --rows names, the best without it. NULL after a message.
const weft_backend *weft_bench_host_row(const weft_bench_options *options, uint32_t features);

// The device's row that --rows names, "cuda" without it: the device's best. NULL after a message
// where it names another, or several.
const char *weft_bench_device_row(const weft_bench_options *options);

#endif
