// SPDX-License-Identifier: Apache-2.0
// How ranks meet: a table, so that nothing but sim/mpi knows MPI.
#ifndef WEFT_SIM_CORE_TRANSPORT_H
#define WEFT_SIM_CORE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

typedef struct weft_sim_transport {
  size_t rank, ranks;
  // What a rank has of its machine's memory, at least: the same number for all, who must not part
  // over it.
  double rank_bytes;
  bool parted; // set by the simulator: this rank failed where the others wait for it, for ever
  void *user;
  // Hands `bytes[r]` bytes at `data[r]` to every other rank r and takes what they have for us,
  // which stays until the next call. All ranks call it once in each window.
  weft_status (*exchange)(void *user, const void *const *data, const size_t *bytes, const void **in,
                          size_t *in_bytes);
  // values[i] = the sum over all ranks, modulo 2^64. All ranks call it.
  weft_status (*sum)(void *user, uint64_t *values, size_t count);
  // values[i] = the largest of all ranks'. All ranks call it.
  weft_status (*most)(void *user, int64_t *values, size_t count);
  // Rank 0 gets `bytes` bytes of every rank, one after the other: (ranks, bytes); others pass NULL.
  weft_status (*gather)(void *user, const void *own, size_t bytes, void *all);
} weft_sim_transport;

// What a rank returns that others do not hear of (NULL: there are none). Whoever runs the ranks has
// to end them all.
static inline weft_status weft_sim_part(weft_sim_transport *transport, weft_status status) {
  if (transport && transport->ranks != 1 && status != WEFT_OK)
    transport->parted = true;
  return status;
}

#endif
