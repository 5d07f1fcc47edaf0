// SPDX-License-Identifier: Apache-2.0
// Seeded random numbers for tests: a failure can be repeated with WEFT_TEST_SEED.
#ifndef WEFT_TESTS_TEST_RNG_H
#define WEFT_TESTS_TEST_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct test_rng {
  uint64_t state;
} test_rng;

// Returns the seed of this run: WEFT_TEST_SEED (decimal or 0x...) or one taken from the clock; the
// same value for the whole process and the tests it forks. The first call prints it.
uint64_t test_seed(void);

// Returns a generator for one test: `salt` makes the tests of one run differ.
test_rng test_rng_new(uint64_t seed, uint64_t salt);
uint64_t test_rng_next(test_rng *rng);
// Uniform enough in [0, bound), bound > 0.
size_t test_rng_below(test_rng *rng, size_t bound);
void test_rng_fill(test_rng *rng, void *bytes, size_t len);

#endif
