// SPDX-License-Identifier: Apache-2.0
// Memory between two pages that must not be touched: a read or write outside ends the test.
#ifndef WEFT_TESTS_TEST_GUARD_H
#define WEFT_TESTS_TEST_GUARD_H

#include <stddef.h>
#include <stdint.h>

typedef struct test_guard {
  uint8_t *begin; // first usable byte, page-aligned; begin[-1] faults
  uint8_t *end;   // *end faults; end - begin is `bytes` rounded up to pages
} test_guard;

// Ends the process when memory cannot be had.
test_guard test_guard_new(size_t bytes);
void test_guard_free(test_guard *guard);

#endif
