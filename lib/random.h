// SPDX-License-Identifier: Apache-2.0
// Fresh coefficients. Bytes come from libsodium's randombytes: 32 of them from the system for every
// 64 KiB, stretched by its stream cipher, since asking the system for every vector would cost more
// than the product that uses it. A process that forks must make its handles anew.
#ifndef WEFT_LIB_RANDOM_H
#define WEFT_LIB_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEFT_RANDOM_KEY_BYTES = 32, WEFT_RANDOM_BUFFER_BYTES = 4096 };

typedef struct weft_random {
  bool fixed;     // nothing comes from the system: all follows from the first key
  unsigned fills; // of the buffer, until the next key comes from the system
  size_t left;
  uint8_t key[WEFT_RANDOM_KEY_BYTES];       // of the next fill
  uint8_t buffer[WEFT_RANDOM_BUFFER_BYTES]; // the last `left` bytes are unused
} weft_random;

void weft_random_init(weft_random *random);
// From now on everything drawn follows from key (32 bytes).
void weft_random_fix(weft_random *random, const uint8_t *key);

void weft_random_bytes(weft_random *random, uint8_t *out, size_t bytes);
// `count` coefficients, each uniform over the 255 that are not zero.
void weft_random_nonzero(weft_random *random, uint8_t *out, size_t count);
// `count` coefficients, each nonzero with probability density_q16 / 65536, at least one of them.
void weft_random_sparse(weft_random *random, uint16_t density_q16, uint8_t *out, size_t count);

#endif
