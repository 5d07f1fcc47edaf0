// SPDX-License-Identifier: Apache-2.0
// Selects the backend rows of a comparison.
#ifndef WEFT_BENCH_ROWS_H
#define WEFT_BENCH_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "bench/options.h"
#include "kernels/backend.h"

// Returns host rows, to be freed with free(), and their number: those of the comma-separated
// `list`, in its order ("best" is the row that the table selects), or with "all" every row that
// runs on this machine, best first. NULL and 0 after a message that names `command`: an unknown or
// absent row is an error, not a shorter table.
const weft_backend **weft_bench_rows_choose(const char *command, const char *list,
                                            uint32_t features, size_t *count);

// Returns the one host row that --rows names, by default the best; NULL after a message.
const weft_backend *weft_bench_host_row(const weft_bench_options *options, uint32_t features);

// Returns the device row that --rows names, by default "cuda", the device's best; NULL after a
// message if it names an unknown row or several.
const char *weft_bench_device_row(const weft_bench_options *options);

#endif
