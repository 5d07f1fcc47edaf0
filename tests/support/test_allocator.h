// SPDX-License-Identifier: Apache-2.0
// An allocator that counts, and that fails one chosen call: code that allocates through it must
// then return WEFT_E_NOMEM and leak nothing. The usual loop:
//
//   for (long n = 1;; n++) {
//     test_allocator_init(&memory, n);
//     status = operation(&memory.allocator);
//     if (status == WEFT_OK) { undo(); }        // the N-th call was never made
//     else ck_assert_int_eq(status, WEFT_E_NOMEM);
//     ck_assert_int_eq(test_allocator_live(&memory), 0);
//     if (!test_allocator_failed(&memory)) break;
//   }
#ifndef WEFT_TESTS_TEST_ALLOCATOR_H
#define WEFT_TESTS_TEST_ALLOCATOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include "weft/memory.h"

typedef struct test_allocator {
  weft_allocator allocator; // to be passed on; points back here
  long fail_at;             // the call that fails, counted from 1; 0: none
  atomic_long calls, live;
} test_allocator;

void test_allocator_init(test_allocator *memory, long fail_at);
long test_allocator_live(test_allocator *memory);   // blocks not freed yet
bool test_allocator_failed(test_allocator *memory); // the chosen call was made
#endif
