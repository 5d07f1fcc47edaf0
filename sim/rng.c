// SPDX-License-Identifier: Apache-2.0
// The simulator's generator as the engine's table.
#include "sim/rng.h"

#include <string.h>

static void fill(void *user, void *out, size_t bytes) {
  weft_sim_rng *rng = user;
  uint8_t *to = out;
  while (bytes) {
    const uint64_t word = weft_sim_rng_next(rng);
    const size_t n = bytes < sizeof word ? bytes : sizeof word;
    for (size_t i = 0; i < n; i++)
      to[i] = (uint8_t)(word >> 8 * i); // the same bytes on every machine
    to += n;
    bytes -= n;
  }
}

weft_rng weft_sim_rng_table(weft_sim_rng *rng) { return (weft_rng){.fill = fill, .user = rng}; }
