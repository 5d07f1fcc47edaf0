// SPDX-License-Identifier: Apache-2.0
// The first bytes of session datagrams (docs/session.md), as far as the kernel's filter
// (peer/runtime/udp.c) reads them, too.
#ifndef WEFT_PEER_SESSION_DATAGRAM_H
#define WEFT_PEER_SESSION_DATAGRAM_H

// First byte of every datagram; the next three are the receiver's key id, 0 where there is none.
enum {
  WEFT_SESSION_INIT = 0x71,
  WEFT_SESSION_RETRY = 0x72,
  WEFT_SESSION_ACCEPT = 0x73,
  WEFT_SESSION_CONFIRM = 0x74,
  WEFT_SESSION_DATA = 0x75,
  WEFT_SESSION_CLOSE = 0x76,
  WEFT_SESSION_PATH = 0x77, // are you at this address?
  WEFT_SESSION_HERE = 0x78, // the PATH's content, sent back
  WEFT_SESSION_FIRST = WEFT_SESSION_INIT,
  WEFT_SESSION_LAST = WEFT_SESSION_HERE
};

enum {
  WEFT_SESSION_VERSION = 1,      // of the handshake
  WEFT_SESSION_VERSION_AT = 4,   // offset of its byte in INIT
  WEFT_SLOT_BITS = 12,           // low bits of a key id: the keys' place in weft_sessions.keys
  WEFT_INIT_BYTES = 192,         // padded, so that no answer is more than three times as long
  WEFT_SESSION_LEAST_BYTES = 28, // the shortest datagram of a link: a RETRY, or an empty DATA
  WEFT_RETRY_BYTES = WEFT_SESSION_LEAST_BYTES
};

#endif
