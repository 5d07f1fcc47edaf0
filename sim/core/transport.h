// SPDX-License-Identifier: Apache-2.0
// How ranks communicate: a table, so that only sim/mpi knows MPI.
#ifndef WEFT_SIM_CORE_TRANSPORT_H
#define WEFT_SIM_CORE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

typedef struct weft_sim_transport {
  size_t rank, ranks;
  // The memory that each rank has at least, as its share of its machine's. The same number on all
  // ranks, so that all of them decide alike.
  double rank_bytes;
  bool parted; // set by the simulator: this rank failed while the others wait for it
  void *user;
  // Sends `bytes[r]` bytes at `data[r]` to every other rank r and returns what they sent here,
  // valid until the next call. All ranks call it once per window.
  weft_status (*exchange)(void *user, const void *const *data, const size_t *bytes, const void **in,
                          size_t *in_bytes);
  // values[i] = the sum over all ranks, modulo 2^64. All ranks call it.
  weft_status (*sum)(void *user, uint64_t *values, size_t count);
  // values[i] = the maximum over all ranks. All ranks call it.
  weft_status (*most)(void *user, int64_t *values, size_t count);
  // Gives rank 0 `bytes` bytes of every rank, in rank order: (ranks, bytes); the others pass NULL.
  weft_status (*gather)(void *user, const void *own, size_t bytes, void *all);
} weft_sim_transport;

// Marks an error that the other ranks do not learn of (transport NULL: there are none); whoever
// started the ranks must then end them all. Returns `status`.
static inline weft_status weft_sim_part(weft_sim_transport *transport, weft_status status) {
  if (transport && transport->ranks != 1 && status != WEFT_OK)
    transport->parted = true;
  return status;
}

#endif
