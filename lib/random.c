// SPDX-License-Identifier: Apache-2.0
// Random coefficients from libsodium's randombytes (random.h).
#include "lib/random.h"

#include <sodium.h>
#include <string.h>

_Static_assert(WEFT_RANDOM_KEY_BYTES == randombytes_SEEDBYTES, "one key makes one keystream");

// Buffer fills per system key; fetching a key costs a quarter of a fill.
enum { FILLS_PER_KEY = 16 };

void weft_random_init(weft_random *random) {
  random->fixed = false;
  random->left = 0;
  random->fills = 0;
}

void weft_random_fix(weft_random *random, const uint8_t *key) {
  random->fixed = true;
  random->left = 0;
  memcpy(random->key, key, sizeof random->key);
}

// Each fill begins with the key of the next one, which is never handed out.
static void refill(weft_random *random) {
  if (!random->fixed && random->fills-- == 0) {
    randombytes_buf(random->key, sizeof random->key);
    random->fills = FILLS_PER_KEY - 1;
  }
  randombytes_buf_deterministic(random->buffer, sizeof random->buffer, random->key);
  memcpy(random->key, random->buffer, sizeof random->key);
  random->left = sizeof random->buffer - sizeof random->key;
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

// Reads straight from the buffer, except at its end.
static unsigned draw_u16(weft_random *random) {
  uint8_t draw[2];
  if (random->left < sizeof draw) {
    weft_random_bytes(random, draw, sizeof draw);
  } else {
    memcpy(draw, random->buffer + sizeof random->buffer - random->left, sizeof draw);
    random->left -= sizeof draw;
  }
  return (unsigned)(draw[0] | draw[1] << 8);
}

void weft_random_sparse(weft_random *random, uint16_t density_q16, uint8_t *out, size_t count) {
  bool any = false;
  while (!any && count > 0)
    for (size_t i = 0; i < count; i++) {
      const bool hit = draw_u16(random) < density_q16;
      out[i] = hit ? nonzero(random) : 0;
      any = any || hit;
    }
}
