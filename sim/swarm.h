// SPDX-License-Identifier: Apache-2.0
// A swarm in virtual time: one source, peers on a random graph, links that delay and lose, every
// node the peer's own engine. The same options give the same run, bit for bit, on any backend and
// any number of threads.
#ifndef WEFT_SIM_SWARM_H
#define WEFT_SIM_SWARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/peer_engine.h"

#define WEFT_SWARM_MAX_PEERS 65535u
#define WEFT_SWARM_HASH_BYTES 32u
#define WEFT_SWARM_NEVER (-1)

typedef struct weft_swarm weft_swarm;

typedef struct weft_swarm_options {
  size_t peers;         // beside the source, 1..WEFT_SWARM_MAX_PEERS
  size_t degree;        // neighbours of a node at most, 2..WEFT_ENGINE_MAX_NEIGHBOURS
  uint32_t blocks;      // n
  uint32_t block_bytes; // k
  size_t window;        // segments
  size_t batch;         // packets per burst
  uint64_t source_bits_per_s, peer_bits_per_s; // uplinks, > 0
  int64_t delay_min_us, delay_max_us;          // of an edge, one way; 0 <= min <= max
  double loss;                                 // of every datagram, 0 <= loss < 1
  uint64_t seed;
  const weft_codec *source_codec, *peer_codec;
  const weft_policy *policy;
  void *user; // passed to the calls below
  // Up to `capacity` bytes of the stream; fewer only at its end. A status ends the run with it.
  weft_status (*feed)(void *user, uint8_t *out, size_t capacity, size_t *bytes);
  // What a peer (0..peers-1) decoded, in order.
  weft_status (*deliver)(void *user, size_t peer, const uint8_t *data, size_t bytes);
  // Called after every event; false ends the run with WEFT_PENDING. NULL: none.
  bool (*keep_on)(void *user, int64_t now_us);
} weft_swarm_options;

// A node's result. Node 0 is the source.
typedef struct weft_swarm_node {
  size_t degree;
  int64_t done_us; // when the last byte was decoded; WEFT_SWARM_NEVER
  uint64_t delivered_bytes;
  weft_engine_statistics statistics;
} weft_swarm_node;

typedef struct weft_swarm_result {
  int64_t end_us; // virtual time of the last event
  uint64_t events;
  uint64_t lost_packets, lost_payload_bytes, lost_header_bytes; // coded packets
  uint64_t lost_control, lost_control_bytes;
  uint64_t stream_bytes;               // fed to the source
  uint8_t hash[WEFT_SWARM_HASH_BYTES]; // of every event and every node's statistics
} weft_swarm_result;

// Memory: about (peers + 1) * window * codec->memory_bytes, and what is in flight.
// Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_swarm_new(weft_ctx *ctx, const weft_swarm_options *options, weft_swarm **out);
void weft_swarm_free(weft_swarm *swarm); // accepts NULL

// Runs until every node has everything and nothing is in flight. WEFT_PENDING: keep_on said no.
// WEFT_E_STATE: the swarm made no progress for ten minutes of virtual time (more on slow uplinks).
weft_status weft_swarm_run(weft_swarm *swarm);

weft_swarm_node weft_swarm_get_node(const weft_swarm *swarm, size_t node);
weft_swarm_result weft_swarm_get_result(const weft_swarm *swarm);

#endif
