// SPDX-License-Identifier: Apache-2.0
// What the programs that time CUDA rows share: a device to run on, memory full of random bytes, and
// the first line of what they print, which says where the figures come from.
#ifndef WEFT_BENCH_CUDA_HARNESS_H
#define WEFT_BENCH_CUDA_HARNESS_H

#include "kernels/device.h"

extern weft_exec harness_exec; // with the device and a stream

// The number of repetitions that a word says, `otherwise` without one. Ends the program with exit
// code 2 where it is none that bench_time has room for.
int harness_reps(const char *word, int otherwise);

// Opens device 0 and prints provenance as a line of JSON; false, with a line that says why, where
// there is none.
bool harness_open(int argc, char **argv, int reps);
void harness_close(void);

// Ends the program with what failed.
void harness_must(weft_status status, const char *what);

void *harness_memory_new(size_t bytes);
uint8_t *harness_random_new(size_t bytes); // random bytes, made on the device
void harness_memory_free(void *memory);

#endif
