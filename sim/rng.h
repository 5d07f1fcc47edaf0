// SPDX-License-Identifier: Apache-2.0
// The simulator's random numbers: a generator with 8 bytes of state per peer (SplitMix64), and
// draws that depend on a few numbers only, so that every rank can compute them.
#ifndef WEFT_SIM_RNG_H
#define WEFT_SIM_RNG_H

#include <stdint.h>

#include "weft/peer_rng.h"

typedef struct weft_sim_rng {
  uint64_t state;
} weft_sim_rng;

static inline uint64_t weft_sim_mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static inline uint64_t weft_sim_rng_next(weft_sim_rng *rng) {
  rng->state += UINT64_C(0x9E3779B97F4A7C15);
  return weft_sim_mix(rng->state);
}

// In [0, bound), bound > 0; the bias is below bound / 2^64.
static inline uint64_t weft_sim_rng_below(weft_sim_rng *rng, uint64_t bound) {
  const uint64_t x = weft_sim_rng_next(rng);
  const uint64_t high = x >> 32, low = x & UINT32_MAX;
  if (bound <= UINT32_MAX)
    return (high * bound + (low * bound >> 32)) >> 32;
  return x % bound;
}

// In [0, 1).
static inline double weft_sim_unit(uint64_t x) { return (double)(x >> 11) * 0x1p-53; }

// The draw for (seed, purpose, a, b), a pure function of these.
static inline uint64_t weft_sim_draw(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b) {
  uint64_t x = weft_sim_mix(seed + UINT64_C(0x9E3779B97F4A7C15) * (purpose + 1));
  x = weft_sim_mix(x + UINT64_C(0x9E3779B97F4A7C15) * (a + 1));
  return weft_sim_mix(x + UINT64_C(0x9E3779B97F4A7C15) * (b + 1));
}

// Returns the engine's table for `rng`, which must not move while it is in use.
weft_rng weft_sim_rng_table(weft_sim_rng *rng);

#endif
