// SPDX-License-Identifier: Apache-2.0
// The host rows that this machine can run, for tests that cover all of them.
#ifndef WEFT_TESTS_TEST_ROWS_H
#define WEFT_TESTS_TEST_ROWS_H

#include "kernels/backend.h"

// Returns the i-th host row that this machine can run, best first, or NULL past the last.
const weft_backend *test_host_row(size_t i);
size_t test_host_row_count(void);

// Returns a row of the table by name, or NULL if it is not compiled in. It may not run here.
const weft_backend *test_row_named(const char *name);

#endif
