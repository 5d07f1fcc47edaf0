// SPDX-License-Identifier: Apache-2.0
// What the programs that time CUDA rows share: the command line (part, rows, repetitions), a device
// to run on, memory filled with random bytes, and a first line of output that says where the
// figures come from. A part is one set of measurements of such a program.
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
  const harness_part *parts; // the first is the default
  size_t part_count;
  const weft_backend *rows;
  size_t row_count;
  int reps; // the default
} harness_program;

// Runs the program: PART ROW,... REPS [SIZE SIZE SIZE SIZE] on device 0. Prints provenance as the
// first line of JSON; without a device, a line that says so. Exit code 2, after one line on
// standard error, if a word is not valid.
int harness_main(int argc, char **argv, const harness_program *program);

// Whether the row is to be measured.
bool harness_wants(const harness_request *request, const char *row);

// Ends the program, naming what failed, unless the status is WEFT_OK.
void harness_must(weft_status status, const char *what);

void *harness_memory_new(size_t bytes);
uint8_t *harness_random_new(size_t bytes); // generated on the device
void harness_memory_free(void *memory);

#endif
