// SPDX-License-Identifier: Apache-2.0
// What the files of row_check share.
#ifndef WEFT_TESTS_KERNELS_ROW_CHECK_INTERNAL_H
#define WEFT_TESTS_KERNELS_ROW_CHECK_INTERNAL_H

#include "tests/kernels/row_check.h"

// Notes the failure with row and seed; returns false.
bool row_check_fail(row_check *check, const char *what, const char *detail);
// At least one byte; ends the process when there is none.
void *row_check_memory(size_t bytes);
// The specification: the last row of the table.
const weft_backend *row_check_scalar(void);

#endif
