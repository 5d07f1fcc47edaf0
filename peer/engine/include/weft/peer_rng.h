// SPDX-License-Identifier: Apache-2.0
// The engine's source of randomness: a table, so that a run can be repeated, and a seeded generator
// for it (ChaCha20 keystream). The same key gives the same bytes on every machine.
#ifndef WEFT_PEER_RNG_H
#define WEFT_PEER_RNG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_rng {
  void (*fill)(void *user, void *out, size_t bytes); // cannot fail; one thread at a time
  void *user;
} weft_rng;

#define WEFT_RNG_KEY_BYTES 32u

typedef struct weft_rng_chacha {
  uint8_t key[WEFT_RNG_KEY_BYTES];
  uint64_t next; // nonce of the next refill
  size_t used;   // bytes of `stream` handed out
  uint8_t stream[1024];
} weft_rng_chacha;

void weft_rng_chacha_init(weft_rng_chacha *rng, const uint8_t key[WEFT_RNG_KEY_BYTES]);
// Key = BLAKE2b of (seed, stream): one seed gives any number of independent generators.
void weft_rng_chacha_seed(weft_rng_chacha *rng, uint64_t seed, uint64_t stream);
weft_rng weft_rng_chacha_table(weft_rng_chacha *rng); // `rng` must stay where it is

uint64_t weft_rng_u64(const weft_rng *rng);
// Uniform in [0, bound), bound > 0.
uint64_t weft_rng_below(const weft_rng *rng, uint64_t bound);

#ifdef __cplusplus
}
#endif
#endif
