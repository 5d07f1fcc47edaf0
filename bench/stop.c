// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L // sigaction
#include "bench/stop.h"

#include <signal.h>
#include <stddef.h>

enum { SIGNALS = 3 };
static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[SIGNALS];
static volatile sig_atomic_t came;

// A second signal of any kind ends the program.
static void note(int number) {
  if (came) {
    (void)signal(number, SIG_DFL);
    (void)raise(number);
  }
  came = number;
}

void weft_bench_stop_begin(void) {
  const struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  came = 0;
  for (size_t i = 0; i < SIGNALS; i++) {
    (void)sigaction(signals[i], NULL, &before[i]);
    if (before[i].sa_handler == SIG_DFL) // not one that nohup ignores
      (void)sigaction(signals[i], &action, NULL);
  }
}

bool weft_bench_stop_asked(void) { return came != 0; }

void weft_bench_stop_end(void) {
  for (size_t i = 0; i < SIGNALS; i++)
    (void)sigaction(signals[i], &before[i], NULL);
  if (came)
    (void)raise(came);
}
