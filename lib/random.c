// SPDX-License-Identifier: Apache-2.0
// Fresh coefficients from libsodium's randombytes (random.h).
#include "lib/random.h"

#include <sodium.h>
#include <string.h>

_Static_assert(WEFT_RANDOM_KEY_BYTES == randombytes_SEEDBYTES, "one key makes one keystream");

void weft_random_init(weft_random *random) {
  random->fixed = false;
  random->left = 0;
}

void weft_random_fix(weft_random *random, const uint8_t *key) {
  random->fixed = true;
  random->left = 0;
  memcpy(random->key, key, sizeof random->key);
}

static void refill(weft_random *random) {
  uint8_t key[WEFT_RANDOM_KEY_BYTES];
  if (random->fixed)
    memcpy(key, random->key, sizeof key);
  else
    randombytes_buf(key, sizeof key);
  randombytes_buf_deterministic(random->buffer, sizeof random->buffer, key);
  random->left = sizeof random->buffer;
  if (random->fixed) {
    memcpy(random->key, random->buffer, sizeof random->key);
    random->left -= sizeof random->key;
  }
}

void weft_random_bytes(weft_random *random, uint8_t *out, size_t bytes) {
  while (bytes > 0) {
    if (random->left == 0)
      refill(random);
    const size_t now = bytes < random->left ? bytes : random->left;
    memcpy(out, random->buffer + sizeof random->buffer - random->left, now);
    random->left -= now;
    out += now;
    bytes -= now;
  }
}

static uint8_t nonzero(weft_random *random) {
  uint8_t c;
  do
    weft_random_bytes(random, &c, 1);
  while (c == 0);
  return c;
}

void weft_random_nonzero(weft_random *random, uint8_t *out, size_t count) {
  weft_random_bytes(random, out, count);
  for (uint8_t *zero = out; (zero = memchr(zero, 0, count - (size_t)(zero - out))) != NULL;)
    *zero = nonzero(random);
}

void weft_random_sparse(weft_random *random, uint16_t density_q16, uint8_t *out, size_t count) {
  bool any = false;
  while (!any && count > 0)
    for (size_t i = 0; i < count; i++) {
      uint8_t draw[2];
      weft_random_bytes(random, draw, sizeof draw);
      const bool hit = (unsigned)(draw[0] | draw[1] << 8) < density_q16;
      out[i] = hit ? nonzero(random) : 0;
      any = any || hit;
    }
}
