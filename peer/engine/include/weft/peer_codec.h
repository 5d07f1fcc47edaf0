// SPDX-License-Identifier: Apache-2.0
// The table of calls through which the peer's engine codes. The engine handles ranks and packets,
// never the bytes of a code. weft provides RLNC with real bytes and plain blocks (uncoded); callers
// can supply others.
#ifndef WEFT_PEER_CODEC_H
#define WEFT_PEER_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/packet.h"
#include "weft/peer_rng.h"
#include "weft/rlnc.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_CHECKSUM_ROWS 8u         // l: bytes of checksum that one block has
#define WEFT_CHECKSUM_MAX_BLOCKS 128u // n of streams with checksums: one datagram holds them all
#define WEFT_DIGEST_BYTES 32u         // BLAKE2b of a segment's true bytes

// One codec may serve several engines of one thread. `segment` is what open_* returned.
typedef struct weft_codec {
  const char *name;
  void *user; // passed to every call
  // Opens, at the source, a segment whose `bytes` bytes are known. The data is copied. rng may be
  // kept.
  weft_status (*open_source)(void *user, const weft_segment_id *id, const uint8_t *data,
                             size_t bytes, const weft_rng *rng, void **out);
  // Opens a segment that packets will fill. rng may be kept: coefficients must come from it, so
  // that the same inputs give the same packets.
  weft_status (*open_sink)(void *user, const weft_segment_id *id, const weft_rng *rng, void **out);
  void (*close)(void *user, void *segment); // accepts NULL
  // WEFT_OK: the rank rose by one. WEFT_DEPENDENT: not innovative. Anything else: nothing changed.
  weft_status (*add)(void *user, void *segment, const weft_packet *packet);
  size_t (*rank)(void *user, const void *segment); // 0..n; n: complete
  // Makes batch->count packets from the held ones: payloads into batch->payload_rows, the rest into
  // batch->packets. WEFT_PENDING at rank 0. With `has`: packets[i].index says which blocks to copy.
  weft_status (*make)(void *user, void *segment, const weft_batch *batch);
  // Copies bytes of a complete segment.
  weft_status (*read)(void *user, void *segment, size_t offset, size_t bytes, uint8_t *out);
  size_t (*memory_bytes)(void *user, const weft_segment_id *id); // of one open segment, at most

  // --- Optional; NULL where a codec does not need them

  // For a codec whose packets are blocks (uncoded): sets `n` bits of bitmap, bit i % 8 of byte i /
  // 8 for block i, to show which blocks are held.
  void (*has)(void *user, const void *segment, uint8_t *bitmap);
  // BLAKE2b of the first `bytes` bytes of a complete segment. NULL: the engine reads and hashes.
  weft_status (*digest)(void *user, void *segment, size_t bytes, uint8_t out[WEFT_DIGEST_BYTES]);
  // Decodes complete segments in one call, possibly in parallel with the caller. WEFT_OK: the work
  // has begun and lasts while `decoding` returns true; meanwhile packets may be made from the
  // segments, and they may be closed. Anything else: nothing was begun (the codec may be busy), and
  // the call can be repeated. Provide both or neither: without them each segment is decoded when it
  // is read.
  weft_status (*decode)(void *user, void *const *segments, size_t count);
  bool (*decoding)(void *user, const void *segment);
  // The checksums that the source reveals: WEFT_CHECKSUM_ROWS random linear functions, expanded
  // from seed, of each block: (n, WEFT_CHECKSUM_ROWS) bytes. NULL: no checksums with this codec.
  weft_status (*checksum)(void *user, void *segment, uint64_t seed, uint8_t *sums);
  // Whether a packet agrees with the checksums.
  bool (*verify)(void *user, const weft_packet *packet, uint64_t seed, const uint8_t *sums);

  // Packets without payload, for simulations: a burst is one token of at most token_bytes_max bytes
  // instead of datagrams. Provide all three or none; with them, make and add are not called, and
  // verify_token replaces verify.
  size_t token_bytes_max;
  weft_status (*make_token)(void *user, void *segment, size_t count, void *token, size_t *bytes);
  // *innovative: by how much the rank rose. WEFT_OK or WEFT_DEPENDENT (the rank did not rise).
  weft_status (*add_token)(void *user, void *segment, size_t count, const void *token, size_t bytes,
                           size_t *innovative);
  bool (*verify_token)(void *user, const void *token, size_t bytes);
  // The bytes that each packet of a token would have as a datagram, payload included.
  size_t (*token_packet_bytes)(void *user, const weft_segment_id *id, bool at_source);
} weft_codec;

// RLNC with real bytes. The source sends each block once uncoded, then packets that name a seed;
// all other peers recode into packets that carry their coefficient vector.
typedef struct weft_codec_rlnc {
  weft_ctx *ctx;   // must outlive the codec
  bool coded_only; // the source sends no uncoded blocks
} weft_codec_rlnc;

// The table for `rlnc`, which must stay where it is.
weft_codec weft_codec_rlnc_table(weft_codec_rlnc *rlnc);

// No code: packets are the blocks themselves (mode SYSTEMATIC), requested by number. For the policy
// weft_policy_rarest.
typedef struct weft_codec_blocks {
  weft_ctx *ctx; // must outlive the codec
} weft_codec_blocks;

weft_codec weft_codec_blocks_table(weft_codec_blocks *blocks); // `blocks` must stay where it is

#ifdef __cplusplus
}
#endif
#endif
