// SPDX-License-Identifier: Apache-2.0
// Random coefficients. Bytes come from libsodium's randombytes: the system supplies a 32-byte key
// for every 64 KiB, which a stream cipher expands, because asking the system for every vector would
// cost more than the product that uses it. After a fork, the child must create its handles again.
#ifndef WEFT_LIB_RANDOM_H
#define WEFT_LIB_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEFT_RANDOM_KEY_BYTES = 32, WEFT_RANDOM_BUFFER_BYTES = 4096 };

typedef struct weft_random {
  bool fixed;     // the system supplies nothing: everything follows from the first key
  unsigned fills; // buffer fills left before the next key from the system
  size_t left;
  uint8_t key[WEFT_RANDOM_KEY_BYTES];       // for the next fill
  uint8_t buffer[WEFT_RANDOM_BUFFER_BYTES]; // the last `left` bytes are unused
} weft_random;

void weft_random_init(weft_random *random);
// Makes everything drawn from now on follow from key (32 bytes).
void weft_random_fix(weft_random *random, const uint8_t *key);

void weft_random_bytes(weft_random *random, uint8_t *out, size_t bytes);
// Draws `count` coefficients, each uniform over the 255 nonzero values.
void weft_random_nonzero(weft_random *random, uint8_t *out, size_t count);
// Draws `count` coefficients, each nonzero with probability density_q16 / 65536; at least one is.
void weft_random_sparse(weft_random *random, uint16_t density_q16, uint8_t *out, size_t count);

#endif
