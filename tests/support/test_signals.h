// SPDX-License-Identifier: Apache-2.0
// Records whether library threads leave the application's signals blocked: only its own threads may
// take them.
#ifndef WEFT_TESTS_TEST_SIGNALS_H
#define WEFT_TESTS_TEST_SIGNALS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct test_signals {
  pthread_t caller;
  atomic_size_t looks, open; // on threads other than the caller's; those of them that take SIGTERM
} test_signals;

void test_signals_init(test_signals *watch);
void test_signals_look(test_signals *watch);
// Whether this thread takes SIGTERM.
bool test_signals_open(void);

#endif
