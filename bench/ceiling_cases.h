// SPDX-License-Identifier: Apache-2.0
// Ceilings (upper bounds of speed, ceilings.h) as cases of a group, so that they are measured in
// the same rounds as what they bound.
#ifndef WEFT_BENCH_CEILING_CASES_H
#define WEFT_BENCH_CEILING_CASES_H

#include <stddef.h>
#include <stdint.h>

#include "bench/ceilings.h"
#include "bench/group.h"

// Adds the ceiling of a row's technique unless the group has it; -1 if the technique has none.
int weft_bench_add_row_ceiling(weft_bench_group *group, const char *row);
int weft_bench_add_ceiling(weft_bench_group *group, const weft_bench_ceiling *ceiling);

// Adds "read every byte of this memory once".
int weft_bench_add_read(weft_bench_group *group, uint32_t machine_cpu, const uint8_t *data,
                        size_t bytes);
// The same, alternately from first byte to last and back: each pass begins with what the nearest
// cache still holds from the end of the pass before.
int weft_bench_add_read_turning(weft_bench_group *group, uint32_t machine_cpu, const uint8_t *data,
                                size_t bytes);
// Adds "copy this memory". to and from do not overlap.
int weft_bench_add_copy(weft_bench_group *group, uint8_t *to, const uint8_t *from, size_t bytes);

// Adds "load these k rows and store m": the memory traffic that an encoder of k data and m parity
// shards cannot avoid, row after row in runs, in whichever way is fastest here: long or short runs,
// with or without prefetching and stores past the caches. With `update` the m rows are loaded as
// well as stored. x(k) and y(m) are rows of `bytes` bytes, which must outlive the group.
int weft_bench_add_streams(weft_bench_group *group, uint32_t machine_cpu, size_t k,
                           uint8_t *const *x, size_t m, uint8_t *const *y, size_t bytes,
                           bool update);

#endif
