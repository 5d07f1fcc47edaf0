// SPDX-License-Identifier: Apache-2.0
// What the files of row_check share.
#ifndef WEFT_TESTS_KERNELS_ROW_CHECK_INTERNAL_H
#define WEFT_TESTS_KERNELS_ROW_CHECK_INTERNAL_H

#include "tests/kernels/row_check.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_rng.h"

// Records the failure with row and seed; returns false.
bool row_check_fail(row_check *check, const char *what, const char *detail);
// Allocates at least one byte; ends the process without memory.
void *row_check_memory(size_t bytes);
// Returns the specification: the last row of the table.
const weft_backend *row_check_scalar(void);

// --- row_check_define.c ---

uint8_t row_check_times(unsigned a, unsigned b); // by shift and add
void row_check_define_gemm(const weft_gemm *g);  // in host memory
void row_check_define_xorm(const weft_xorm *o);
bool row_check_is_regular(const uint8_t *matrix, size_t k); // (k, k)

enum { ROW_CHECK_ROWS = 64 };

// Random rows of a product that end before guard pages, with the expected outputs and the bytes
// around them.
typedef struct row_check_rows {
  size_t k, m, bytes; // bytes: compared in every output
  test_guard x_memory[ROW_CHECK_ROWS], y_memory[ROW_CHECK_ROWS];
  const uint8_t *x[ROW_CHECK_ROWS];
  uint8_t *y[ROW_CHECK_ROWS], *want[ROW_CHECK_ROWS];
} row_check_rows;

// Their sizes, and the distance of each row's end from the guard page. `uneven`: every other output
// row ends one byte earlier, so that not all are aligned.
typedef struct row_check_shape {
  size_t m, k, len, offset;
  bool accumulate, uneven;
} row_check_shape;

void row_check_rows_new(row_check_rows *rows, const row_check_shape *shape, test_rng *rng);
// Returns the product of these rows with a (m, k), and sets what is expected.
weft_gemm row_check_rows_product(row_check_rows *rows, const row_check_shape *shape,
                                 const uint8_t *a);
// Frees the rows; returns whether everything is as expected.
bool row_check_rows_end(row_check_rows *rows);

#endif
