// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "tests/support/test_signals.h"

#include <signal.h>

bool test_signals_open(void) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  return !sigismember(&blocked, SIGTERM);
}

void test_signals_init(test_signals *watch) {
  watch->caller = pthread_self();
  atomic_init(&watch->looks, 0);
  atomic_init(&watch->open, 0);
}

void test_signals_look(test_signals *watch) {
  if (pthread_equal(pthread_self(), watch->caller))
    return;
  atomic_fetch_add(&watch->looks, 1);
  atomic_fetch_add(&watch->open, test_signals_open());
}
