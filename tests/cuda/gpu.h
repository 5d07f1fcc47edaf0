// SPDX-License-Identifier: Apache-2.0
// What the Check suites of the device path share: skipping tests without a GPU, buffers in any
// memory, with poison, and reference products.
#ifndef WEFT_TESTS_CUDA_GPU_H
#define WEFT_TESTS_CUDA_GPU_H

#include <stdbool.h>

#include "tests/lib/fixture.h"

// Whether the test must be skipped; prints its name and the reason.
bool gpu_skip(const char *test);

// Compiled device rows, best first; every device can run the last one. gpu_skip_row returns whether
// device 0 cannot run a row, and prints what is skipped.
int gpu_row_count(void);
const char *gpu_row_name(int index);
const char *gpu_slowest_row(void);
bool gpu_skip_row(const char *test, int index);

// Bytes in some kind of memory. Outputs have a margin on both sides, which must keep its poison.
typedef struct gpu_buffer {
  weft_ctx *ctx;
  weft_mem mem;
  size_t bytes, margin;
  uint8_t *memory, *at; // at: after the margin
  uint8_t poison;
} gpu_buffer;

gpu_buffer gpu_input(weft_ctx *ctx, weft_mem mem, const uint8_t *from, size_t bytes);
gpu_buffer gpu_output(weft_ctx *ctx, weft_mem mem, size_t bytes);
// Returns a host copy of the bytes, which the caller frees; checks the margins.
uint8_t *gpu_read(const gpu_buffer *buffer);
void gpu_buffer_free(gpu_buffer *buffer);

// Computes Y (m, k) = C (m, n) X (n, k), all dense, with the row `scalar`, or the best host row if
// large.
void gpu_reference(uint8_t *y, const uint8_t *c, const uint8_t *x, size_t m, size_t n, size_t k);

#endif
