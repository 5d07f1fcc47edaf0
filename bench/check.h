// SPDX-License-Identifier: Apache-2.0
// Checks results before timing: products are compared with the scalar row.
#ifndef WEFT_BENCH_CHECK_H
#define WEFT_BENCH_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"

// How much of a product was compared.
#define WEFT_BENCH_CHECKED_ALL "all bytes equal scalar's"
#define WEFT_BENCH_CHECKED_SOME "scalar's bytes in rows spread over the output"
#define WEFT_BENCH_CHECKED_SOURCE "all bytes equal the source"
#define WEFT_BENCH_CHECKED_NONE "no output"

// Compares y(m, len) with the scalar row's A(m, k) * X(k, len); only in some rows, spread evenly
// over the output, if all would take seconds. Ends the program if a byte differs. Returns what it
// compared. The matrices are dense but for the given strides; `who` goes into the message.
const char *weft_bench_check_product(const char *who, size_t m, size_t k, size_t len,
                                     const uint8_t *a, size_t a_stride, const uint8_t *x,
                                     size_t x_stride, const uint8_t *y, size_t y_stride);

// Ends the program if the bytes differ.
const char *weft_bench_check_source(const char *who, const uint8_t *got, const uint8_t *source,
                                    size_t bytes);

// Ends the program with a message that names `who`, unless the status is WEFT_OK.
void weft_bench_must(const char *who, weft_status status);

#endif
