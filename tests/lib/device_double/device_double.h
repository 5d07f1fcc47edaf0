// SPDX-License-Identifier: Apache-2.0
// A device made of host memory, for tests of lib/ where there is no GPU and under sanitizers.
//
// It is stricter than a real one. Work on a stream is only noted down and done later, an operation
// at a time, in any order that streams and their meetings allow; so memory that is given back too
// early, or changed, is caught. Each operation may touch only live memory of the kind that it says.
// Device memory is poisoned for AddressSanitizer but while an operation works on it. The row
// "cuda-double" computes with the best host row, which tests/kernels compares with the scalar one.
#ifndef WEFT_TESTS_DEVICE_DOUBLE_H
#define WEFT_TESTS_DEVICE_DOUBLE_H

#include "kernels/backend.h"

struct double_stream;

// One thing to be done by a stream. What run needs lies behind it.
typedef struct double_op {
  struct double_op *next;
  void (*run)(struct double_op *op); // with the lock held
} double_op;

// Counts a call that can fail; what a test wants it to return, or WEFT_OK.
weft_status double_fails(void);
// Puts a copy of `op` (of `bytes` bytes) on the stream; WEFT_OK, or what a test wants instead.
weft_status double_enqueue(void *stream, const double_op *op, size_t bytes);

// Ends the program when the bytes are not in one live block of that memory; opens and closes them
// for the time of an operation. Ordinary memory is the sanitizer's business.
void double_open(weft_mem mem, const void *from, size_t bytes);
void double_close(weft_mem mem, const void *from, size_t bytes);

#endif
