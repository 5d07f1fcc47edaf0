// SPDX-License-Identifier: Apache-2.0
// What the programs that time CUDA rows share: their command line (part, rows, repetitions), a
// device to run on, memory full of random bytes, and the first line of what they print, which says
// where the figures come from.
#ifndef WEFT_BENCH_CUDA_HARNESS_H
#define WEFT_BENCH_CUDA_HARNESS_H

#include "kernels/backend.h"
#include "kernels/device.h"

extern weft_exec harness_exec; // with the device and a stream
extern int harness_reps;       // repetitions, 1 to BENCH_REPS_MAX

enum { HARNESS_SIZES = 4 };
typedef struct harness_request {
  const char *rows; // comma-separated names; NULL: all
  size_t sizes[HARNESS_SIZES];
} harness_request;

typedef struct harness_part {
  const char *name;
  void (*run)(const harness_request *request);
  bool takes_sizes;
} harness_part;

typedef struct harness_program {
  const harness_part *parts; // the first is what runs unasked
  size_t part_count;
  const weft_backend *rows;
  size_t row_count;
  int reps; // unasked
} harness_program;

// The program: PART ROW,... REPS [SIZE SIZE SIZE SIZE] on device 0, with provenance as the first
// line of JSON; where there is no device, a line that says so. The exit code: 2, after one line on
// standard error, for a word that is none of these.
int harness_main(int argc, char **argv, const harness_program *program);

// Whether a row was asked for.
bool harness_wants(const harness_request *request, const char *row);

// Ends the program with what failed.
void harness_must(weft_status status, const char *what);

void *harness_memory_new(size_t bytes);
uint8_t *harness_random_new(size_t bytes); // random bytes, made on the device
void harness_memory_free(void *memory);

#endif
