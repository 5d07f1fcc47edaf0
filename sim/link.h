// SPDX-License-Identifier: Apache-2.0
// What a network does to datagrams: an uplink that sends one after the other at its rate, and edges
// that delay and lose.
#ifndef WEFT_SIM_LINK_H
#define WEFT_SIM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/peer_rng.h"

typedef struct weft_sim_uplink {
  uint64_t bits_per_s; // > 0
  int64_t free_us;     // when it has sent all it was given
  uint64_t rest;       // bits * 1e6 modulo the rate: what free_us does not hold
} weft_sim_uplink;

// When the last of these bytes has left.
int64_t weft_sim_uplink_send(weft_sim_uplink *uplink, size_t bytes, int64_t now_us);

#define WEFT_SIM_CERTAIN (UINT64_C(1) << 32)

// Loses with probability loss_q32 / 2^32, independently.
bool weft_sim_lost(uint64_t loss_q32, const weft_rng *rng);

#endif
