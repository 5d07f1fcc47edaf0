// SPDX-License-Identifier: Apache-2.0
// Selects the backend rows of a comparison.
#ifndef WEFT_BENCH_ROWS_H
#define WEFT_BENCH_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "bench/options.h"
#include "kernels/backend.h"

// Writes up to `capacity` host rows to `rows` and returns their number: those of the
// comma-separated `list`, in its order ("best" is the row that the table selects), or with "all"
// every row that runs on this machine, best first. Returns 0 after a message that names `command`:
// an unknown or absent row is an error, not a shorter table.
size_t weft_bench_rows_choose(const char *command, const char *list, uint32_t features,
                              const weft_backend **rows, size_t capacity);

// Returns the one host row that --rows names, by default the best; NULL after a message.
const weft_backend *weft_bench_host_row(const weft_bench_options *options, uint32_t features);

// Returns the device row that --rows names, by default "cuda", the device's best; NULL after a
// message if it names an unknown row or several.
const char *weft_bench_device_row(const weft_bench_options *options);

#endif
