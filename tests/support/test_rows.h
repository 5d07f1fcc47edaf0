// SPDX-License-Identifier: Apache-2.0
// The host rows that this machine can run, for tests that go through all of them.
#ifndef WEFT_TESTS_TEST_ROWS_H
#define WEFT_TESTS_TEST_ROWS_H

#include "kernels/backend.h"

// The i-th host row that runs here, best first, or NULL past the last.
const weft_backend *test_host_row(size_t i);
size_t test_host_row_count(void);

// A row of the table by name, NULL when it is not compiled in. Does not ask whether it runs here.
const weft_backend *test_row_named(const char *name);

#endif
