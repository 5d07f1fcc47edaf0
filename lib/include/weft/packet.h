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
// Upper bound, for any mode with n blocks, of what precedes the payload besides the header: n
// coefficients, or up to 10 bytes of seed and density, which is more where n is small. And room for
// a whole datagram with a payload of k bytes. Of type size_t.
#define WEFT_PACKET_COEFFICIENT_BYTES(n)                                                           \
  (sizeof(uint8_t) * (n) < 10 ? sizeof(uint8_t) * 10 : sizeof(uint8_t) * (n))
#define WEFT_PACKET_ROOM_BYTES(n, k)                                                               \
  (WEFT_WIRE_HEADER_BYTES + WEFT_PACKET_COEFFICIENT_BYTES(n) + sizeof(uint8_t) * (k))

// How a packet says which combination of the segment's blocks its payload is.
typedef enum weft_packet_mode {
  WEFT_PACKET_SYSTEMATIC = 0, // block `index` itself
  WEFT_PACKET_VECTOR = 1,     // n coefficients travel with it
  WEFT_PACKET_DENSE = 2,      // all nonzero, expanded from `seed`
  WEFT_PACKET_SPARSE = 3      // expanded from `seed`; nonzero with probability density_q16 / 65536
} weft_packet_mode;

// Which segment a packet belongs to. Packets of another shape or id are foreign. For datagrams on
// the Internet, n = 64 and k = 1024 suit live streams: weft_packet_bytes() is then at most 1112,
// which passes every path. A larger n needs less redundancy against bursts of losses and more time
// to decode.
typedef struct weft_segment_id {
  uint64_t stream;
  uint64_t segment;
  uint32_t blocks;      // n, 1..WEFT_MAX_BLOCKS
  uint32_t block_bytes; // k, 1..WEFT_MAX_BLOCK_BYTES
} weft_segment_id;

// A view of a packet: its pointers refer to the caller's bytes.
typedef struct weft_packet {
  weft_segment_id id;
  weft_packet_mode mode;
  uint32_t index;              // SYSTEMATIC: 0..n-1
  uint64_t seed;               // DENSE, SPARSE
  uint16_t density_q16;        // SPARSE: 1..65535
  const uint8_t *coefficients; // VECTOR: n bytes, else NULL
  const uint8_t *payload;      // block_bytes bytes
} weft_packet;

// Bytes of a packet of this mode on the wire, at most WEFT_PACKET_ROOM_BYTES; 0 if the id or mode
// is out of range.
size_t weft_packet_bytes(const weft_segment_id *id, weft_packet_mode mode);

// Parses one datagram. Trusts no length in it and reads nothing past `bytes`. On success `out`
// points into `datagram`; on error it is unchanged. Errors: WEFT_E_VERSION, WEFT_E_MALFORMED (too
// short, too long, a field out of range), WEFT_E_ARGUMENT (NULL).
weft_status weft_packet_parse(const uint8_t *datagram, size_t bytes, weft_packet *out);

// Writes header, mode data and payload. With payload == NULL it writes only the first two, for a
// payload that is coded in place after them. Coefficients and payload may already lie exactly where
// they are to be written; otherwise they must not overlap the datagram. *written receives the bytes
// written. Errors: WEFT_E_ARGUMENT (NULL, or a field out of range), WEFT_E_BUFFER; nothing is
// written then.
weft_status weft_packet_write(const weft_packet *packet, uint8_t *datagram, size_t capacity,
                              size_t *written);

// The same inside a session of two peers. Both know stream and block_bytes, so the header omits
// them and has 12 bytes.
size_t weft_packet_session_bytes(const weft_segment_id *id, weft_packet_mode mode);
weft_status weft_packet_parse_session(const uint8_t *datagram, size_t bytes, uint64_t stream,
                                      uint32_t block_bytes, weft_packet *out);
weft_status weft_packet_write_session(const weft_packet *packet, uint8_t *datagram, size_t capacity,
                                      size_t *written);

// The n coefficients of a packet, whatever its mode. A SPARSE seed may expand to all zeros; such a
// packet gives no decoder anything. Errors: WEFT_E_ARGUMENT (NULL, or a field out of range).
weft_status weft_packet_coefficients(const weft_packet *packet, uint8_t *coefficients);

#ifdef __cplusplus
}
#endif
#endif
