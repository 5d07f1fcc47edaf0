// SPDX-License-Identifier: Apache-2.0
// What a peer's engine is told when it is made: what all peers of a stream have in common, which
// many engines share, and what is one peer's own.
#ifndef WEFT_PEER_OPTIONS_H
#define WEFT_PEER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/peer_codec.h"
#include "weft/peer_policy.h"
#include "weft/peer_rng.h"
#include "weft/peer_trust.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ENGINE_MAX_WINDOW 4096u
#define WEFT_ENGINE_MAX_NEIGHBOURS 1024u
#define WEFT_ENGINE_MAX_BATCH 256u
#define WEFT_ENGINE_MAX_GATHER 64u
#define WEFT_ENGINE_NEVER INT64_MAX
// Of every time among the options; now_us counts from 0 to 2^60. A timer that is to do nothing is
// this, not WEFT_ENGINE_NEVER.
#define WEFT_ENGINE_MAX_TIME_US (INT64_C(1) << 50)
// Bytes of any message but a coded packet, which takes WEFT_PACKET_ROOM_BYTES(n, k) at most.
#define WEFT_DATAGRAM_MAX 1168u

// Where another peer can be reached: bytes that the engine hands on and never reads.
#define WEFT_PEER_ADDRESS_BYTES 20u
typedef struct weft_peer_address {
  uint8_t length; // 0: none
  uint8_t bytes[WEFT_PEER_ADDRESS_BYTES];
} weft_peer_address;

typedef enum weft_engine_mode {
  WEFT_MODE_BULK, // as fast as it goes; the slowest neighbour holds up the others, nothing is lost
  WEFT_MODE_VOD,  // played from any segment at its rate; what is late stalls the playback
  WEFT_MODE_LIVE  // played `lag_us` behind the source; what is late is skipped
} weft_engine_mode;

// Times of 0 mean the default that is stated.
typedef struct weft_engine_timers {
  int64_t hello_us;    // 200 ms: greeting again until answered
  int64_t map_us;      // 200 ms: announcing ranks that changed, at the latest
  int64_t map_idle_us; // 1 s: announcing again while something is missing
  int64_t keep_us;     // 10 s: a word to a neighbour, for it and for NATs between
  int64_t brake_us;    // 20 ms: braking again a neighbour that keeps sending
  int64_t silent_us;   // 6 s: a neighbour that does not answer for so long is lost
  int64_t ask_us;      // 100 ms: asking again for what did not come
  int64_t exchange_us; // 5 s: asking for addresses, replacing poor neighbours
  int64_t ack_us;      // 10 ms: congestion feedback, at most this often
} weft_engine_timers;

// Immutable; shared by any number of engines.
typedef struct weft_engine_options {
  uint64_t stream;
  uint32_t blocks;      // n of every segment but the last, which may have fewer
  uint32_t block_bytes; // k
  weft_engine_mode mode;
  size_t window;         // segments held at once, 1..WEFT_ENGINE_MAX_WINDOW
  size_t ahead;          // bulk: of these it takes so many from the first that it lacks on; 0: all
  size_t batch;          // packets in one burst at most, 1..WEFT_ENGINE_MAX_BATCH
  size_t neighbours_max; // 1..WEFT_ENGINE_MAX_NEIGHBOURS
  size_t neighbours_target; // dials until it has as many; 0: only the caller adds neighbours
  size_t addresses_max;     // addresses remembered to dial; 0: no exchange of neighbours
  size_t flights_max;       // bursts on their way to one neighbour; 0: 64
  size_t requests_max;      // requests of one neighbour that wait; 0: 8
  size_t gather;            // bulk, VoD: full segments decoded in one call; 0, 1: each by itself
  // Bulk: who lacks the same segment for so long, though it is here (twice as long: and his window
  // has no room for it), is waited for no more. 0: everybody always is, so that nothing is lost for
  // anybody, and whoever says to lack a segment for ever holds up all.
  int64_t patience_us;
  size_t datagram_overhead; // bytes below each message, counted in pace and congestion; to 65535
  bool congestion;          // LEDBAT for each neighbour; else only the flights above and the cap
  // Playback, where the mode is paced.
  uint64_t rate_bits_per_s; // of the stream; 0: by the times in the manifests (needs trust)
  int64_t lag_us;           // live: how far behind the source to play; 0: 3 s
  int64_t startup_us;       // time given to the first segments before playing; 0: 1 s
  size_t behind;            // played segments kept for others; 0: a quarter of the window
  // Pollution (needs trust).
  int64_t checksum_us; // live: reveals checksums so often; 0: none, and the hash alone decides
  int64_t spread_us;   // a reveal reaches everyone within this of the first; 0: 250 ms
  weft_engine_timers timers;
  const weft_codec *codec;
  const weft_policy *policy;
  const weft_trust *trust; // NULL: no manifests, nothing is verified
} weft_engine_options;

// One peer's own.
typedef struct weft_engine_self {
  bool source;                // has the stream; else receives it
  uint64_t upload_bits_per_s; // pace of what it sends; 0: no limit
  weft_rng rng;               // what it points to must outlive the engine
  // Receiver: where to begin. Live ignores it.
  uint64_t start; // a segment to 2^48, or WEFT_START_OLDEST: what neighbours still have
  // Source: the whole length, when any part can be had at any time: segments are then loaded as
  // neighbours ask for them (WEFT_EVENT_LOAD). 0: segments are put in order. Not live. At most 2^48
  // segments.
  uint64_t stream_bytes;
  // Receiver, bulk, from segment 0 on: what it released, the application can give again, and is
  // asked for as a source of stream_bytes is, so that who comes later has it from here as well. It
  // is compared with what the source signed.
  bool rereads;
  weft_peer_address address; // our own, not to be dialled; may be empty
  // Instead of the options' (NULL: theirs). Both have the calls `has` and `make_token`, or neither
  // has; its tokens are no longer.
  const weft_codec *codec;
  struct weft_engine_scratch *scratch; // NULL: its own
} weft_engine_self;

#define WEFT_START_OLDEST UINT64_MAX

#ifdef __cplusplus
}
#endif
#endif
