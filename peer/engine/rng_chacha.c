// SPDX-License-Identifier: Apache-2.0
// The seeded generator: libsodium's ChaCha20 keystream under a counting nonce.
#include "weft/peer_rng.h"

#include <string.h>

#include <sodium.h>

static void put64_le(uint8_t *p, uint64_t v) {
  for (unsigned i = 0; i < 8; i++)
    p[i] = (uint8_t)(v >> (8 * i));
}

void weft_rng_chacha_init(weft_rng_chacha *rng, const uint8_t key[WEFT_RNG_KEY_BYTES]) {
  memcpy(rng->key, key, sizeof rng->key);
  rng->next = 0;
  rng->used = sizeof rng->stream;
}

void weft_rng_chacha_seed(weft_rng_chacha *rng, uint64_t seed, uint64_t stream) {
  uint8_t text[16], key[WEFT_RNG_KEY_BYTES];
  put64_le(text, seed);
  put64_le(text + 8, stream);
  (void)crypto_generichash(key, sizeof key, text, sizeof text, NULL, 0); // fails for bad sizes only
  weft_rng_chacha_init(rng, key);
}

static void fill(void *user, void *out, size_t bytes) {
  weft_rng_chacha *rng = user;
  uint8_t *to = out;
  while (bytes) {
    if (rng->used == sizeof rng->stream) {
      uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
      put64_le(nonce, rng->next++);
      (void)crypto_stream_chacha20(rng->stream, sizeof rng->stream, nonce, rng->key);
      rng->used = 0;
    }
    const size_t left = sizeof rng->stream - rng->used, n = bytes < left ? bytes : left;
    memcpy(to, rng->stream + rng->used, n);
    rng->used += n;
    to += n;
    bytes -= n;
  }
}

weft_rng weft_rng_chacha_table(weft_rng_chacha *rng) {
  return (weft_rng){.fill = fill, .user = rng};
}

uint64_t weft_rng_u64(const weft_rng *rng) {
  uint8_t b[8];
  uint64_t v = 0;
  rng->fill(rng->user, b, sizeof b);
  for (unsigned i = 0; i < 8; i++)
    v |= (uint64_t)b[i] << (8 * i); // the same value on every machine
  return v;
}

uint64_t weft_rng_below(const weft_rng *rng, uint64_t bound) {
  const uint64_t reject = (0 - bound) % bound; // 2^64 mod bound values would be favoured
  uint64_t v;
  do
    v = weft_rng_u64(rng);
  while (v < reject);
  return v % bound;
}
