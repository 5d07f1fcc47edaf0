// SPDX-License-Identifier: Apache-2.0
// Checks one row of the table (kernels/table.c) against the row `scalar`, the specification. Free
// of Check, so that the same checks run under it, on emulated instructions, and in the static
// program for Arm.
#ifndef WEFT_TESTS_KERNELS_ROW_CHECK_H
#define WEFT_TESTS_KERNELS_ROW_CHECK_H

#include <stdbool.h>

#include "kernels/backend.h"

typedef struct row_check {
  const weft_backend *row;
  uint64_t seed;
  size_t step;       // 1: every case; s: about one in s, for slow machines (emulated ones)
  char failure[320]; // row, seed and case, once a check has returned false
} row_check;

// All 65,536 products against the definition of the field.
bool row_check_products(row_check *check);
// All lengths 0..260, offsets 0..63 and both ends of a page, overwrite and accumulate.
bool row_check_lengths(row_check *check);
// m and k from 0 up to beyond a panel, strided and pointer rows, batches.
bool row_check_shapes(row_check *check);
// m 1..18 over rows of thousands of bytes, at guard pages.
bool row_check_few_outputs(row_check *check);
// Sizes for which Strassen's method pays, at guard pages, with memory that fails; and with threads.
bool row_check_large(row_check *check);
bool row_check_large_shared(row_check *check);
// Random bits times packets, as blocks of bits, by rows that accept them.
bool row_check_bits(row_check *check);
// Random bits times packets, as machine code, by rows that compile it.
bool row_check_code(row_check *check);
// Random bits times the packets of one shard.
bool row_check_spread(row_check *check);
// The sum of two sources added to many rows, by rows with their own method for it.
bool row_check_difference(row_check *check);
// Random losses of codes by points, by rows that determine themselves how to rebuild them.
bool row_check_rebuild(row_check *check);
// Random factors instead of their matrices, rows at guard pages, memory that fails.
bool row_check_factors(row_check *check);
// 1..3 threads, by columns, by rows and automatic, at guard pages.
bool row_check_threads(row_check *check);
// The operand made by prepare, or its refusal by rows without.
bool row_check_prepared(row_check *check);
// Random and singular matrices: the same status and bytes as scalar, and A * A^-1 = I.
bool row_check_inverses(row_check *check);
// States that packets are added to one by one: their definition, and scalar's bytes.
bool row_check_eliminate(row_check *check);
// Dense coefficients from seeds, at guard pages, or the refusal by rows without.
bool row_check_expand(row_check *check);
// w 1..8, odd packet sizes, several groups.
bool row_check_xorm(row_check *check);

#endif
