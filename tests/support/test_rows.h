// SPDX-License-Identifier: Apache-2.0
// The host rows that this machine can run, for tests that cover all of them.
#ifndef WEFT_TESTS_TEST_ROWS_H
#define WEFT_TESTS_TEST_ROWS_H

#include "kernels/backend.h"

// Returns the i-th host row that this machine can run, best first, or NULL past the last.
const weft_backend *test_host_row(size_t i);
size_t test_host_row_count(void);

// Those that tests of what is above the kernels loop over: the same, or where test_only_ends the
// first and the last, which are the best row and the specification.
const weft_backend *test_looped_row(size_t i);
size_t test_looped_row_count(void);

// Whether TEST_ROWS is `ends` (--config=tsan): threads divide work the same way for each row,
// and those of tests/kernels are all run on threads.
bool test_only_ends(void);

// Returns a row of the table by name, or NULL if it is not compiled in. It may not run here.
const weft_backend *test_row_named(const char *name);

#endif
