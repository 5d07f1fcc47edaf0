// SPDX-License-Identifier: Apache-2.0
// The parts of `weft bench mul` other than the host rows' products.
#ifndef WEFT_BENCH_MUL_CASES_H
#define WEFT_BENCH_MUL_CASES_H

#include <stddef.h>

#include "bench/group.h"
#include "kernels/backend.h"

// Times single products y[i] = a[i] * b[i] on rows that multiply byte by byte: no factor repeats,
// so nothing can be looked up or computed once for many bytes.
void weft_bench_mul_singles(weft_bench_report *report, const weft_bench_options *options,
                            const weft_backend *const *rows, size_t count);

// Times one product on every row of device 0, with resident and prepared operands. Without a device
// it says so and does nothing.
void weft_bench_mul_devices(weft_bench_report *report, const weft_bench_options *options);

#endif
