// SPDX-License-Identifier: Apache-2.0
// Memory between two inaccessible pages: a read or write outside it ends the test.
#ifndef WEFT_TESTS_TEST_GUARD_H
#define WEFT_TESTS_TEST_GUARD_H

#include <stddef.h>
#include <stdint.h>

typedef struct test_guard {
  uint8_t *begin; // first usable byte, page-aligned; begin[-1] faults
  uint8_t *end;   // *end faults; end - begin is `bytes` rounded up to pages
} test_guard;

// Allocates at least `bytes`; ends the process without memory.
test_guard test_guard_new(size_t bytes);
void test_guard_free(test_guard *guard);

#endif
