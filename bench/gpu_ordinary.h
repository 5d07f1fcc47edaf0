// SPDX-License-Identifier: Apache-2.0
// The cases of `weft bench gpu` whose data lie in ordinary memory, as malloc gives it.
#ifndef WEFT_BENCH_GPU_ORDINARY_H
#define WEFT_BENCH_GPU_ORDINARY_H

#include <stdint.h>

#include "bench/group.h"

typedef struct weft_bench_ordinary weft_bench_ordinary;

// Returns `segments` segments and n packets of each, with a context of their own of `threads`
// threads.
weft_bench_ordinary *weft_bench_ordinary_new(const char *row, size_t threads, size_t segments,
                                             size_t n, size_t k, uint64_t seed);
void weft_bench_ordinary_free(weft_bench_ordinary *ordinary); // after the group; accepts NULL

// Adds segments made resident, n packets made of each resident segment, and all decoded from those,
// bounded by the copies in, out and both (cases of the group). Checks the bytes first.
void weft_bench_ordinary_add(weft_bench_ordinary *ordinary, weft_bench_group *group, int in,
                             int out, int both);

#endif
