// SPDX-License-Identifier: Apache-2.0
// The messages of a peer session as bytes, big-endian (docs/protocol.md). Reading trusts no length
// and touches nothing past the datagram. Coded packets are written by weft_packet_write_session.
#ifndef WEFT_PEER_MESSAGES_H
#define WEFT_PEER_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/packet.h"
#include "weft/status.h"

#define WEFT_MESSAGE_MAX_RANKS 4096u
#define WEFT_HELLO_BYTES 32u
#define WEFT_MAP_BYTES 44u // before the ranks
#define WEFT_NOTE_BYTES 12u
#define WEFT_MESSAGE_MAX_CONTROL (WEFT_MAP_BYTES + 2u * WEFT_MESSAGE_MAX_RANKS)

// The second byte of every message. 0..3 are the packet modes: a coded packet.
typedef enum weft_message_kind {
  WEFT_MESSAGE_DATA = 0, // stands for all modes once read
  WEFT_MESSAGE_HELLO = 16,
  WEFT_MESSAGE_MAP = 17,
  WEFT_MESSAGE_BRAKE = 18,
  WEFT_MESSAGE_BYE = 19
} weft_message_kind;

// The clock of round trips, in HELLO and MAP: microseconds of the sender's clock, modulo 2^32.
typedef struct weft_stamps {
  uint32_t stamp; // when this message was made
  uint32_t echo;  // the last stamp received from the neighbour, 0 if none
  uint32_t held;  // how long that was ago
} weft_stamps;

typedef struct weft_hello {
  bool answer_wanted;
  uint64_t stream;
  uint16_t blocks;
  uint16_t window;
  uint32_t block_bytes;
  weft_stamps stamps;
} weft_hello;

typedef struct weft_map {
  bool end_known;
  uint64_t first;     // every segment before it is complete
  uint64_t horizon;   // segments known to exist
  uint64_t end_bytes; // length of the stream, if end_known
  weft_stamps stamps;
  uint16_t degree;      // neighbours of the sender
  uint16_t count;       // ranks of segments first .. first + count - 1: those it accepts
  const uint8_t *ranks; // (count) 16-bit numbers in the datagram; read with weft_map_rank
} weft_map;

typedef enum weft_bye_reason { WEFT_BYE_LEAVING = 0, WEFT_BYE_FINISHED = 1 } weft_bye_reason;

typedef struct weft_message {
  weft_message_kind kind;
  union {
    weft_packet data;
    weft_hello hello;
    weft_map map;
    uint64_t brake; // the segment that is complete
    weft_bye_reason bye;
  } as;
} weft_message;

// stream and block_bytes are the session's, which coded packets do not repeat.
weft_status weft_message_parse(const uint8_t *datagram, size_t bytes, uint64_t stream,
                               uint32_t block_bytes, weft_message *out);

uint16_t weft_map_rank(const weft_map *map, size_t i);

// Each returns the bytes written.
size_t weft_hello_write(const weft_hello *hello, uint8_t *out);
size_t weft_map_write(const weft_map *map, const uint16_t *ranks, uint8_t *out);
size_t weft_brake_write(uint64_t segment, uint8_t *out);
size_t weft_bye_write(weft_bye_reason reason, uint8_t *out);

#endif
