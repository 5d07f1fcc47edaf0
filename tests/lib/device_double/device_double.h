// SPDX-License-Identifier: Apache-2.0
// A device double: a device made of host memory, for tests of lib/ without a GPU and under
// sanitizers.
//
// It is stricter than a real one. Work on a stream is only recorded, and done later, one operation
// at a time, in any order that the streams and their dependencies allow; memory that is freed or
// changed too early is therefore caught. Each operation may touch only live memory of the kind it
// declares. Device memory is poisoned for AddressSanitizer except while an operation works on it.
// The row "cuda-double" computes with the best host row, which tests/kernels compares with the
// scalar one.
#ifndef WEFT_TESTS_DEVICE_DOUBLE_H
#define WEFT_TESTS_DEVICE_DOUBLE_H

#include "kernels/backend.h"

struct double_stream;

// One operation on a stream. The data that run needs follows it in memory.
typedef struct double_op {
  struct double_op *next;
  void (*run)(struct double_op *op); // with the lock held
} double_op;

// Counts a call that can fail; returns the status that a test has injected, or WEFT_OK.
weft_status double_fails(void);
// Puts a copy of `op` (of `bytes` bytes) on the stream; returns WEFT_OK or the injected status.
weft_status double_enqueue(void *stream, const double_op *op, size_t bytes);

// Unpoison and poison the bytes for the time of an operation. End the program unless they lie in
// one live block of that kind of memory. Host memory is left to the sanitizer.
void double_open(weft_mem mem, const void *from, size_t bytes);
void double_close(weft_mem mem, const void *from, size_t bytes);

#endif
