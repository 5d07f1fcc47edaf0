// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, SIGTERM and a terminal that closes end a measurement after its current repetition, so
// that the repetitions so far are kept. A second signal ends the program at once.
#ifndef WEFT_BENCH_STOP_H
#define WEFT_BENCH_STOP_H

#include <stdbool.h>

void weft_bench_stop_begin(void); // from now on, signals wait
bool weft_bench_stop_asked(void); // whether one has come
// Signals act as before, also the one that has come: then it does not return.
void weft_bench_stop_end(void);

#endif
