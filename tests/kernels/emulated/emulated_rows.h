// SPDX-License-Identifier: Apache-2.0
// Rows with emulated instructions: the sources of kernels/x86 on any machine.
#ifndef WEFT_TESTS_KERNELS_EMULATED_ROWS_H
#define WEFT_TESTS_KERNELS_EMULATED_ROWS_H

#include "kernels/backend.h"

extern const weft_backend weft_emulated_rows[];
extern const size_t weft_emulated_row_count;

#endif
