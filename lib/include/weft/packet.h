// SPDX-License-Identifier: Apache-2.0
// Coded packets and their wire format, version 1 (docs/wire.md).
#ifndef WEFT_PACKET_H
#define WEFT_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MAX_BLOCKS 1024u               // n: blocks in a segment
#define WEFT_MAX_BLOCK_BYTES (1024u * 1024) // k: bytes in a block
#define WEFT_WIRE_VERSION 1u
#define WEFT_WIRE_HEADER_BYTES 24u         // before the mode's data
#define WEFT_WIRE_SESSION_HEADER_BYTES 12u // the same inside a peer session
// What stands in front of the payload, of any mode with n blocks, is at most this: n coefficients,
// or up to 10 bytes of seed, which are more where n is small. And room for such a datagram with k
// bytes.
#define WEFT_PACKET_COEFFICIENT_BYTES(n) ((size_t)(n) < 10 ? (size_t)10 : (size_t)(n))
#define WEFT_PACKET_ROOM_BYTES(n, k)                                                               \
  (WEFT_WIRE_HEADER_BYTES + WEFT_PACKET_COEFFICIENT_BYTES(n) + (size_t)(k))

// How a packet says which combination of the segment's blocks its payload is.
typedef enum weft_packet_mode {
  WEFT_PACKET_SYSTEMATIC = 0, // block `index` itself
  WEFT_PACKET_VECTOR = 1,     // n coefficients travel with it
  WEFT_PACKET_DENSE = 2,      // all nonzero, expanded from `seed`
  WEFT_PACKET_SPARSE = 3      // expanded from `seed`; nonzero with probability density_q16 / 65536
} weft_packet_mode;

// Which segment a packet belongs to. Packets of another shape or id are foreign. For datagrams on
// the Internet n = 64, k = 1024 serves live streams: weft_packet_bytes() is 1112 at most then,
// which passes every path; larger n takes less redundancy for runs of losses and more time to
// decode.
typedef struct weft_segment_id {
  uint64_t stream;
  uint64_t segment;
  uint32_t blocks;      // n, 1..WEFT_MAX_BLOCKS
  uint32_t block_bytes; // k, 1..WEFT_MAX_BLOCK_BYTES
} weft_segment_id;

// A packet as a view: its pointers lead into the caller's bytes.
typedef struct weft_packet {
  weft_segment_id id;
  weft_packet_mode mode;
  uint32_t index;              // SYSTEMATIC: 0..n-1
  uint64_t seed;               // DENSE, SPARSE
  uint16_t density_q16;        // SPARSE: 1..65535
  const uint8_t *coefficients; // VECTOR: n bytes, else NULL
  const uint8_t *payload;      // block_bytes bytes
} weft_packet;

// The bytes that a packet of this mode takes on the wire, WEFT_PACKET_ROOM_BYTES at most; 0 if the
// id or mode is out of range.
size_t weft_packet_bytes(const weft_segment_id *id, weft_packet_mode mode);

// Reads one datagram. Trusts no length in it and reads nothing past `bytes`; `out` then points into
// `datagram`, and is untouched on error. Errors: WEFT_E_VERSION, WEFT_E_MALFORMED (too short, too
// long, a field out of range), WEFT_E_ARGUMENT (NULL).
weft_status weft_packet_parse(const uint8_t *datagram, size_t bytes, weft_packet *out);

// Writes header, mode data and payload. payload == NULL writes the first two only, for a payload
// that is coded in place behind them. Coefficients and payload may lie exactly where they go, and
// overlap the datagram in no other way. *written gets the bytes written.
// Errors: WEFT_E_ARGUMENT (NULL, or a field out of range), WEFT_E_BUFFER; nothing is written then.
weft_status weft_packet_write(const weft_packet *packet, uint8_t *datagram, size_t capacity,
                              size_t *written);

// The same inside a session of two peers, which have agreed on stream and block_bytes: these stay
// out of the header, which has 12 bytes then.
size_t weft_packet_session_bytes(const weft_segment_id *id, weft_packet_mode mode);
weft_status weft_packet_parse_session(const uint8_t *datagram, size_t bytes, uint64_t stream,
                                      uint32_t block_bytes, weft_packet *out);
weft_status weft_packet_write_session(const weft_packet *packet, uint8_t *datagram, size_t capacity,
                                      size_t *written);

// The n coefficients that a packet stands for, whatever its mode; a SPARSE seed may stand for all
// zeros, which no decoder gains from. Errors: WEFT_E_ARGUMENT (NULL, or a field out of range).
weft_status weft_packet_coefficients(const weft_packet *packet, uint8_t *coefficients);

#ifdef __cplusplus
}
#endif
#endif
