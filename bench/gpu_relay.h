// SPDX-License-Identifier: Apache-2.0
// The relay's cases of `weft bench gpu`.
#ifndef WEFT_BENCH_GPU_RELAY_H
#define WEFT_BENCH_GPU_RELAY_H

#include <stdint.h>

#include "bench/group.h"

typedef struct weft_bench_relay weft_bench_relay;

// Returns a relay with its own context, `threads` threads for elimination, and n packets of each
// segment.
weft_bench_relay *weft_bench_relay_new(const char *row, size_t threads, size_t segments, size_t n,
                                       size_t k, uint64_t seed);
void weft_bench_relay_free(weft_bench_relay *relay); // after the group; accepts NULL

// Adds arrivals alone, recoding alone, reading alone, and arrivals with as many recoded packets,
// bounded by the copies in, out and both (cases of the group). Checks the bytes first.
void weft_bench_relay_add(weft_bench_relay *relay, weft_bench_group *group, int in, int out,
                          int both);

#endif
