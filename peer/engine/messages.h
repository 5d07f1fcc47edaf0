// SPDX-License-Identifier: Apache-2.0
// The messages of a peer session as bytes, big-endian (docs/protocol.md; state.h has the terms).
// Parsing trusts no length and reads nothing past the datagram. Coded packets are written by
// weft_packet_write_session.
#ifndef WEFT_PEER_MESSAGES_H
#define WEFT_PEER_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/packet.h"
#include "weft/peer_codec.h"
#include "weft/peer_options.h"
#include "weft/peer_trust.h"
#include "weft/status.h"

#define WEFT_MESSAGE_MAX_WINDOW 4096u
#define WEFT_MAP_BACK_ALL 65535u // the sender can give any segment
#define WEFT_MAP_HELPERS_MAX 15u
#define WEFT_HELLO_BYTES 32u
#define WEFT_MAP_BYTES 48u // before the ranks
#define WEFT_NOTE_BYTES 12u
#define WEFT_PACE_BYTES 12u
#define WEFT_ACK_BYTES 24u
#define WEFT_MANIFEST_BYTES 136u
#define WEFT_CHECKSUM_BYTES 92u // before the sums
#define WEFT_REVEALED_BYTES 20u
#define WEFT_REQUEST_BYTES 12u // before the entries
#define WEFT_REQUEST_ENTRY_BYTES 20u
#define WEFT_REQUEST_MAX_ENTRIES 32u
#define WEFT_REFER_BYTES 4u // before the addresses
#define WEFT_REFER_MAX 32u
#define WEFT_MEET_MAX 16u

// The second byte of every message. 0..3 are the packet modes: a coded packet.
typedef enum weft_message_kind {
  WEFT_MESSAGE_DATA = 0, // stands for all packet modes after parsing
  WEFT_MESSAGE_HELLO = 16,
  WEFT_MESSAGE_MAP = 17,
  WEFT_MESSAGE_BRAKE = 18,
  WEFT_MESSAGE_BYE = 19,
  WEFT_MESSAGE_PACE = 20,
  WEFT_MESSAGE_ACK = 21,
  WEFT_MESSAGE_MANIFEST = 22,
  WEFT_MESSAGE_CHECKSUM = 23,
  WEFT_MESSAGE_REVEALED = 24,
  WEFT_MESSAGE_REQUEST = 25,
  WEFT_MESSAGE_REFER = 26,
  WEFT_MESSAGE_MEET = 27
} weft_message_kind;

// Stamps, which measure round trips, in HELLO and MAP: microseconds of the sender's clock, modulo
// 2^32.
typedef struct weft_stamps {
  uint32_t stamp; // when this message was made
  uint32_t echo;  // the last stamp received from the neighbour, 0 if none
  uint32_t held;  // how long ago that arrived
} weft_stamps;

typedef struct weft_hello {
  bool answer_wanted;
  uint64_t stream;
  uint16_t blocks;
  uint16_t window; // segments 0 .. window - 1 are accepted already; 0: a MAP will say
  uint32_t block_bytes;
  weft_stamps stamps;
} weft_hello;

typedef struct weft_map {
  bool end_known;
  bool bitmaps;       // entries are bitmaps of n bits, not ranks
  bool full;          // the sender's uplink has no spare capacity
  uint8_t forgone;    // how many classes of segments the sender wants last: 0..15 of 16
  bool narrow;        // its own link cannot carry those: it wants none of them
  uint64_t first;     // the sender wants no segment before it
  uint64_t horizon;   // how many segments are known to exist
  uint64_t end_bytes; // length of the stream, if end_known
  weft_stamps stamps;
  uint16_t suppliers;     // how many peers share what it lacks
  uint16_t count;         // of entries: for segments first .. first + count - 1, which it accepts
  uint16_t epoch;         // incremented when the sender jumps: `first` and ranks may fall then
  uint16_t back;          // segments before first that it still holds; WEFT_MAP_BACK_ALL: any
  size_t entry_bytes;     // 2, or the size of n bits
  const uint8_t *entries; // in the datagram
} weft_map;

typedef enum weft_bye_reason {
  WEFT_BYE_LEAVING = 0,
  WEFT_BYE_FINISHED = 1,
  WEFT_BYE_REPLACED = 2,
  WEFT_BYE_LAST = WEFT_BYE_REPLACED
} weft_bye_reason;

typedef struct weft_pace {
  uint32_t sent;  // coded packets sent on this session, including this burst, modulo 2^32
  uint32_t stamp; // microseconds of the sender's clock, modulo 2^32
} weft_pace;

typedef struct weft_ack {
  uint32_t sent;     // of the newest PACE
  uint32_t received; // coded packets received on this session, modulo 2^32
  uint32_t delay;    // receiver's clock when that PACE arrived, minus its stamp
  uint32_t stamp;    // of the PACE
  uint32_t held;     // microseconds from its arrival to this message
} weft_ack;

typedef struct weft_manifest {
  bool last; // the stream ends with this segment
  uint64_t segment;
  uint16_t blocks;  // n; 0 with 0 bytes: the stream ended with the segment before
  uint32_t bytes;   // true length
  uint64_t at_us;   // when to play it
  uint64_t made_us; // the source's clock when it was signed
  uint8_t digest[WEFT_DIGEST_BYTES];
  uint8_t signature[WEFT_SIGNATURE_BYTES];
} weft_manifest;

typedef struct weft_checksum {
  uint64_t segment;
  uint16_t blocks;
  uint64_t made_us; // the source's clock
  uint64_t seed;
  uint8_t signature[WEFT_SIGNATURE_BYTES];
  const uint8_t *sums; // (blocks, WEFT_CHECKSUM_ROWS), in the datagram
} weft_checksum;

typedef struct weft_revealed { // the sender has a checksum that it will give on request
  uint64_t segment, made_us;
} weft_revealed;

typedef enum weft_request_kind {
  WEFT_REQUEST_PACKETS = 0, // `count` coded packets
  WEFT_REQUEST_BLOCKS = 1,  // the blocks of `mask`: bit i is block count + i
  WEFT_REQUEST_MANIFEST = 2,
  WEFT_REQUEST_CHECKSUM = 3
} weft_request_kind;

typedef struct weft_request {
  uint64_t segment;
  weft_request_kind kind;
  uint16_t count;
  uint64_t mask;
} weft_request;

typedef struct weft_requests {
  uint16_t count;
  const uint8_t *entries; // in the datagram; read with weft_requests_get
} weft_requests;

enum { WEFT_REFER_WANTED = 1, WEFT_REFER_FULL = 2, WEFT_REFER_SOURCE = 4 };
typedef struct weft_refer {
  uint8_t flags; // WANTED: answer with addresses; FULL: the sender takes no more neighbours;
                 // SOURCE: the first address is the source's
  uint8_t count;
  const uint8_t *addresses; // in the datagram, each a length and that many bytes
} weft_refer;

// A MEET is a list of addresses, too. With the flag: these peers are calling you, so call them as
// well. Without: I am calling these peers, tell them of me.
enum { WEFT_MEET_CALL = 1 };

typedef struct weft_message {
  weft_message_kind kind;
  union {
    weft_packet data;
    weft_hello hello;
    weft_map map;
    uint64_t brake; // the segment of which no more is wanted
    weft_bye_reason bye;
    weft_pace pace;
    weft_ack ack;
    weft_manifest manifest;
    weft_checksum checksum;
    weft_revealed revealed;
    weft_requests requests;
    weft_refer refer, meet;
  } as;
} weft_message;

// Parses a datagram. Messages do not repeat stream, blocks and block_bytes, which are the
// session's.
weft_status weft_message_parse(const uint8_t *datagram, size_t bytes, uint64_t stream,
                               uint32_t blocks, uint32_t block_bytes, weft_message *out);

uint16_t weft_map_rank(const weft_map *map, size_t i);
// Whether a packet from the map's receiver for this segment added nothing.
bool weft_map_spent(const weft_map *map, size_t i);
// How many neighbours of the sender have more of it, up to WEFT_MAP_HELPERS_MAX.
uint8_t weft_map_helpers(const weft_map *map, size_t i);
weft_request weft_requests_get(const weft_requests *requests, size_t i);
// Reads the next address; `at` starts as refer->addresses and is advanced.
weft_peer_address weft_refer_next(const uint8_t **at);

// Each returns how many bytes it wrote.
size_t weft_hello_write(const weft_hello *hello, uint8_t *out);
// Writes the header only: entries follow at out + WEFT_MAP_BYTES, ranks by weft_map_put_rank.
size_t weft_map_write(const weft_map *map, uint8_t *out);
void weft_map_put_rank(uint8_t *out, size_t i, uint16_t rank, uint8_t helpers, bool spent);
size_t weft_brake_write(uint64_t segment, uint8_t *out);
size_t weft_bye_write(weft_bye_reason reason, uint8_t *out);
size_t weft_pace_write(const weft_pace *pace, uint8_t *out);
size_t weft_ack_write(const weft_ack *ack, uint8_t *out);
size_t weft_manifest_write(const weft_manifest *manifest, uint8_t *out);
size_t weft_checksum_write(const weft_checksum *checksum, uint8_t *out);
size_t weft_revealed_write(const weft_revealed *revealed, uint8_t *out);
size_t weft_request_write(const weft_request *requests, size_t count, uint8_t *out);
// kind: REFER or MEET
size_t weft_refer_write(weft_message_kind kind, uint8_t flags, const weft_peer_address *addresses,
                        size_t count, uint8_t *out);

// What the source signs: a label, the stream's id and shape, and the message without its signature.
#define WEFT_SIGNED_MAX (32u + WEFT_CHECKSUM_BYTES + WEFT_CHECKSUM_ROWS * WEFT_CHECKSUM_MAX_BLOCKS)
size_t weft_manifest_text(const weft_manifest *manifest, uint64_t stream, uint32_t block_bytes,
                          uint8_t out[WEFT_SIGNED_MAX]);
size_t weft_checksum_text(const weft_checksum *checksum, uint64_t stream, uint32_t block_bytes,
                          uint8_t out[WEFT_SIGNED_MAX]);

#endif
