// SPDX-License-Identifier: Apache-2.0
// Codecs without payload for the peer's engine. A burst crosses the network as one token.
//
// `coefficients` keeps the coefficient vectors and computes ranks exactly. `rank` keeps numbers:
// how many directions a peer has, which of the source's packets they can be made of, and how many
// came from each neighbour; whether a packet is innovative follows from these (docs/sim.md says
// how, docs/sim/rank.md what it is wrong by). One codec serves the engines of one thread.
#ifndef WEFT_SIM_CODEC_CODECS_H
#define WEFT_SIM_CODEC_CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "sim/core/arena.h"
#include "weft/peer_codec.h"

#define WEFT_SIM_TOKEN_PACKETS 64u // in a token at most

typedef enum weft_sim_fidelity {
  WEFT_SIM_BYTES,        // the peer's own codec, real payloads
  WEFT_SIM_COEFFICIENTS, // exact ranks
  WEFT_SIM_RANK          // statistical
} weft_sim_fidelity;

typedef struct weft_sim_codec {
  weft_sim_fidelity fidelity; // RANK or COEFFICIENTS
  weft_sim_arena *arena;      // its segments
  uint32_t blocks;            // n of the stream
  size_t batch;               // packets in a token at most
  size_t neighbours;          // of one engine at most
  bool pollutes;              // what it makes is no combination of the stream
  bool coded_only;            // the source sends no block as it is
  size_t from;                // set before input: the engine's number of the sender
  // The segment that the last token was made from.
  const void *made;
  // `coefficients` only.
  const weft_backend *row;
  weft_exec exec;
  weft_allocator allocator;
  uint8_t *work;
} weft_sim_codec;

// Sets what the fields above do not: call it once they are set. Errors: WEFT_E_ARGUMENT (batch,
// blocks), WEFT_E_NOMEM.
weft_status weft_sim_codec_init(weft_sim_codec *codec);
void weft_sim_codec_clear(weft_sim_codec *codec);
// `codec` must stay where it is.
weft_codec weft_sim_codec_table(weft_sim_codec *codec);

// What the network does to a token. `to`: the sender's number of the receiver; `token` is a copy of
// the burst that codec->made tells about.
void weft_sim_token_address(const weft_sim_codec *codec, void *token, size_t to);
// Takes out packet i for each set bit of `lost`; returns the new length.
size_t weft_sim_token_lose(const weft_sim_codec *codec, void *token, size_t bytes, size_t count,
                           uint64_t lost);

// What a segment without payload has, whichever it is; both kinds begin with it.
typedef struct weft_sim_held {
  uint16_t blocks, rank;
  bool source;
  bool polluted; // its digest is another one then
} weft_sim_held;

// Number of the source's first packet; the first n are the blocks as they are.
static inline uint32_t weft_sim_first_packet(const weft_sim_codec *codec,
                                             const weft_segment_id *id) {
  return codec->coded_only ? id->blocks : 0;
}

// The part of a codec's table that such segments share.
weft_codec weft_sim_held_table(weft_sim_codec *codec);

// The files' own.
void weft_sim_rank_address(const weft_sim_codec *codec, void *token, size_t to);
void weft_sim_rank_lose(const weft_sim_codec *codec, void *token, size_t count, uint64_t lost);
weft_codec weft_sim_codec_rank_table(weft_sim_codec *codec);
weft_codec weft_sim_codec_coefficients_table(weft_sim_codec *codec);

#endif
