// SPDX-License-Identifier: Apache-2.0
// Random steps of factored matrices (kernels/factors.h), and the matrix that they represent.
#ifndef WEFT_TESTS_TEST_STEPS_H
#define WEFT_TESTS_TEST_STEPS_H

#include <stdbool.h>

#include "kernels/factors.h"
#include "tests/support/test_rng.h"

enum { TEST_STEPS_MAX = 1024, TEST_STEPS_SLOTS = 64, TEST_STEPS_ROWS = 64 };

typedef struct test_steps {
  size_t k, m, slots, count;
  weft_step step[TEST_STEPS_MAX];
  uint8_t a[TEST_STEPS_ROWS * TEST_STEPS_ROWS]; // (m, k)
} test_steps;

// Makes k loads, m stores and about `work` other steps, among them butterflies in fours; 1 <= k, m
// <= 64 and 4 <= slots <= 64.
void test_steps_random(test_rng *rng, size_t k, size_t m, size_t slots, size_t work,
                       test_steps *out);

// The same, including whole transforms of 8 and 16 slots; slots >= 17, and 33 for both.
void test_steps_transforms(test_rng *rng, size_t k, size_t m, size_t slots, test_steps *out);

// Computes the matrix (m, k) of any steps. Returns false if a row is not stored exactly once, or a
// slot is used that is unset or out of range.
bool test_steps_matrix(const weft_step *steps, size_t count, size_t slots, size_t k, size_t m,
                       uint8_t *a);

// bits(8 m, 8 k), dense: each entry of (m, k) becomes the matrix whose column x is entry * 2^x.
void test_steps_bits(const uint8_t *a, size_t m, size_t k, uint8_t *bits);

#endif
