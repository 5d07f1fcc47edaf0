// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "tests/support/test_rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t test_seed(void) {
  static uint64_t seed;
  static int known;
  if (!known) {
    const char *wanted = getenv("WEFT_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = wanted ? strtoull(wanted, NULL, 0) : (uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec;
    known = 1;
    printf("seed: WEFT_TEST_SEED=%#llx\n", (unsigned long long)seed);
    fflush(stdout);
  }
  return seed;
}

test_rng test_rng_new(uint64_t seed, uint64_t salt) {
  test_rng rng = {seed ^ salt * UINT64_C(0x9E3779B97F4A7C15)};
  test_rng_next(&rng);
  return rng;
}

// splitmix64
uint64_t test_rng_next(test_rng *rng) {
  uint64_t z = rng->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

size_t test_rng_below(test_rng *rng, size_t bound) { return (size_t)(test_rng_next(rng) % bound); }

void test_rng_fill(test_rng *rng, void *bytes, size_t len) {
  uint8_t *out = bytes;
  for (size_t i = 0; i < len; i += 8) {
    const uint64_t word = test_rng_next(rng);
    memcpy(out + i, &word, len - i < 8 ? len - i : 8);
  }
}
