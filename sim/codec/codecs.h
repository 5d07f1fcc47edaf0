// SPDX-License-Identifier: Apache-2.0
// Codecs without payload for the peer's engine. A token stands for a burst of packets on its way
// through the network.
//
// `coefficients` keeps the coefficient vectors and computes exact ranks. `rank` keeps numbers: how
// many directions a peer has, which of the source's packets they come from, and how many innovative
// packets came from each neighbour. From these it draws whether a packet is innovative (docs/sim.md
// says how, docs/sim/rank.md how accurate that is). One codec serves the engines of one thread.
#ifndef WEFT_SIM_CODEC_CODECS_H
#define WEFT_SIM_CODEC_CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "sim/core/arena.h"
#include "weft/peer_codec.h"

#define WEFT_SIM_TOKEN_PACKETS 64u // in a token, at most

typedef enum weft_sim_fidelity {
  WEFT_SIM_BYTES,        // the peer's own codec, real payloads
  WEFT_SIM_COEFFICIENTS, // exact ranks
  WEFT_SIM_RANK          // statistical
} weft_sim_fidelity;

typedef struct weft_sim_codec {
  weft_sim_fidelity fidelity; // RANK or COEFFICIENTS
  weft_sim_arena *arena;      // that segments are allocated from
  uint32_t blocks;            // n of the stream
  size_t batch;               // packets in a token, at most
  size_t neighbours;          // of one engine, at most
  bool pollutes;              // makes tokens that are not combinations of the stream
  bool coded_only;            // the source sends no uncoded blocks
  // Packets of a token behind the one that completed its segment; set when that happens.
  size_t surplus;
  // The segment that the last token was made from.
  const void *made;
  // `coefficients` only.
  const weft_backend *row;
  weft_exec exec;
  weft_allocator allocator;
  uint8_t *work;
} weft_sim_codec;

// Initializes the other fields from the ones above, which the caller has set. Errors:
// WEFT_E_ARGUMENT (batch, blocks), WEFT_E_NOMEM.
weft_status weft_sim_codec_init(weft_sim_codec *codec);
void weft_sim_codec_clear(weft_sim_codec *codec);
// Returns the codec's table; `codec` must not move while it is in use.
weft_codec weft_sim_codec_table(weft_sim_codec *codec);

// Addresses `token`, a copy of the token that codec->made produced last, to one receiver. `to` is
// the sender's number for the receiver.
void weft_sim_token_address(const weft_sim_codec *codec, void *token, size_t to);
// Before input: `from` is the receiver's number for the sender.
void weft_sim_token_arrive(const weft_sim_codec *codec, void *token, size_t from);
// Removes packet i for each set bit of `lost`; returns the new length.
size_t weft_sim_token_lose(const weft_sim_codec *codec, void *token, size_t bytes, size_t count,
                           uint64_t lost);

// What every segment without payload has; both kinds of segment begin with it.
typedef struct weft_sim_held {
  uint16_t blocks, rank;
  bool source;
  bool polluted; // it then has a different digest
} weft_sim_held;

// Returns the number of the source's first packet; packets 0 to n - 1 are the uncoded blocks.
static inline uint32_t weft_sim_first_packet(const weft_sim_codec *codec,
                                             const weft_segment_id *id) {
  return codec->coded_only ? id->blocks : 0;
}

// Returns the part of the codec's table that both kinds of segment share.
weft_codec weft_sim_held_table(weft_sim_codec *codec);

// Defined by each kind's own file.
void weft_sim_rank_address(const weft_sim_codec *codec, void *token, size_t to);
void weft_sim_rank_arrive(void *token, size_t from);
void weft_sim_rank_lose(const weft_sim_codec *codec, void *token, size_t count, uint64_t lost);
weft_codec weft_sim_codec_rank_table(weft_sim_codec *codec);
weft_codec weft_sim_codec_coefficients_table(weft_sim_codec *codec);

#endif
