// SPDX-License-Identifier: Apache-2.0
// Uplinks and losses.
#include "sim/link.h"

#include "weft/peer_rng.h"

int64_t weft_sim_uplink_send(weft_sim_uplink *uplink, size_t bytes, int64_t now_us) {
  if (uplink->free_us < now_us) {
    uplink->free_us = now_us;
    uplink->rest = 0;
  }
  const uint64_t work = (uint64_t)bytes * 8u * 1000000u + uplink->rest;
  uplink->free_us += (int64_t)(work / uplink->bits_per_s);
  uplink->rest = work % uplink->bits_per_s;
  return uplink->free_us;
}

bool weft_sim_lost(uint64_t loss_q32, const weft_rng *rng) {
  return (weft_rng_u64(rng) >> 32) < loss_q32;
}
