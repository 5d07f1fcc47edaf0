// SPDX-License-Identifier: Apache-2.0
// Ceilings as cases of a group, so that they are measured in the rounds of what they bound.
#ifndef WEFT_BENCH_CEILING_CASES_H
#define WEFT_BENCH_CEILING_CASES_H

#include <stddef.h>
#include <stdint.h>

#include "bench/ceilings.h"
#include "bench/group.h"

// Adds the ceiling of a row's technique unless the group has it; -1 where the technique has none.
int weft_bench_add_row_ceiling(weft_bench_group *group, const char *row, uint32_t row_cpu,
                               uint32_t machine_cpu);
int weft_bench_add_ceiling(weft_bench_group *group, const weft_bench_ceiling *ceiling);

// Adds "read every byte of this memory once".
int weft_bench_add_read(weft_bench_group *group, uint32_t machine_cpu, const uint8_t *data,
                        size_t bytes);
// The same, from the first byte to the last and then from the last to the first, by turns: what the
// nearest cache still has of the end of one pass is read at the beginning of the next.
int weft_bench_add_read_turning(weft_bench_group *group, uint32_t machine_cpu, const uint8_t *data,
                                size_t bytes);
// Adds "copy this memory". to and from do not overlap.
int weft_bench_add_copy(weft_bench_group *group, uint8_t *to, const uint8_t *from, size_t bytes);

// Adds "load these k rows and store m": what an encoder of k data and m parity shards cannot do
// without, row after row in runs, in whichever of some ways is quickest here: long runs or short
// ones, with or without fetching ahead and stores past the caches. With `update` the m rows
// are loaded as well as stored. x(k) and y(m) are rows of `bytes` bytes; both outlive
// the group.
int weft_bench_add_streams(weft_bench_group *group, uint32_t machine_cpu, size_t k,
                           uint8_t *const *x, size_t m, uint8_t *const *y, size_t bytes,
                           bool update);

#endif
