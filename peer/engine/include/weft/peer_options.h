// SPDX-License-Identifier: Apache-2.0
// The options of a peer's engine: those common to all peers of a stream, which many engines share,
// and those of one peer.
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
// On demand, the source's window in windows of a viewer: viewers at different positions share it.
#define WEFT_ENGINE_SOURCE_WINDOWS 4u
#define WEFT_ENGINE_MAX_NEIGHBOURS 1024u
#define WEFT_ENGINE_MAX_BATCH 256u
#define WEFT_ENGINE_MAX_GATHER 64u
#define WEFT_ENGINE_NEVER INT64_MAX
// Upper bound of every time among the options; now_us counts from 0 to 2^60. To disable a timer,
// set it to this, not to WEFT_ENGINE_NEVER.
#define WEFT_ENGINE_MAX_TIME_US (INT64_C(1) << 50)
// Upper bound of every message but a coded packet, which has at most WEFT_PACKET_ROOM_BYTES(n, k).
#define WEFT_DATAGRAM_MAX 1168u

// Where another peer can be reached: bytes that the engine passes on and never interprets.
#define WEFT_PEER_ADDRESS_BYTES 20u
typedef struct weft_peer_address {
  uint8_t length; // 0: none
  uint8_t bytes[WEFT_PEER_ADDRESS_BYTES];
} weft_peer_address;

typedef enum weft_engine_mode {
  WEFT_MODE_BULK, // as fast as possible; waits for the slowest neighbour, nothing is lost
  WEFT_MODE_VOD,  // played from any segment at its rate; late data stalls the playback
  WEFT_MODE_LIVE  // played `lag_us` behind the source, or less (below); late data is skipped
} weft_engine_mode;

// A time of 0 selects the default stated here.
typedef struct weft_engine_timers {
  int64_t hello_us;    // 200 ms: repeat the greeting until a greeting and a map have come
  int64_t map_us;      // 200 ms: announce changed ranks at the latest after this
  int64_t map_idle_us; // 1 s: repeat the announcement while something is missing, at the latest
  int64_t keep_us;     // 10 s: keep-alive to a neighbour, also for NATs on the way
  int64_t brake_us;    // 20 ms: brake a neighbour again that keeps sending
  int64_t silent_us;   // 6 s: a neighbour that does not answer for this long is lost
  int64_t ask_us;      // 100 ms: request again what did not come
  int64_t exchange_us; // 5 s: ask for addresses, replace poor neighbours
  int64_t ack_us;      // 10 ms: congestion feedback, at most this often
} weft_engine_timers;

// Immutable; shared by any number of engines.
typedef struct weft_engine_options {
  uint64_t stream;
  uint32_t blocks;      // n of every segment but the last, which may have fewer
  uint32_t block_bytes; // k
  weft_engine_mode mode;
  size_t window; // segments held at once, 1..WEFT_ENGINE_MAX_WINDOW
  size_t ahead; // bulk: accepts this many of them from the first missing one; 0, or more than that:
                // all
  size_t batch; // most packets in one burst, 1..WEFT_ENGINE_MAX_BATCH
  size_t neighbours_max; // 1..WEFT_ENGINE_MAX_NEIGHBOURS
  // Dials until it has this many, or neighbours_max if that is less. 0: only the caller adds
  // neighbours.
  size_t neighbours_target;
  size_t addresses_max; // addresses remembered to dial, up to 4096; 0: no exchange of neighbours
  size_t flights_max;   // bursts in flight to one neighbour, up to 65535; 0: 64
  size_t requests_max;  // waiting requests of one neighbour, up to 32; 0: 8
  // Bulk, VoD: full segments decoded in one call, up to WEFT_ENGINE_MAX_GATHER; 0, 1: one at a
  // time.
  size_t gather;
  // Bulk: a neighbour that for this long lacks the same segment although it is here (for twice as
  // long if its window has no room for the segment) is no longer waited for. 0: every neighbour is
  // always waited for, so that no peer loses anything, but a peer that claims for ever to lack a
  // segment holds up all the others. Four map_idle_us at least (four hello_us until its
  // HELLO has arrived): maps may be lost, and honest peers may need some of them for the last
  // packets.
  int64_t patience_us;
  size_t datagram_overhead; // bytes below each message, counted in pace and congestion; to 65535
  bool congestion;          // LEDBAT for each neighbour; else only flights_max and the upload cap
  // Playback, in paced modes.
  uint64_t rate_bits_per_s; // of the stream; 0: from the times in the manifests (needs trust)
  // Live: how far behind the source to play; 0: 3 s. Never further than the window holds, since the
  // source drops a segment when it has made `window` others: window - 2 segments, or one where the
  // window is 3 or less. A segment lasts 8 n k / rate_bits_per_s seconds. Without that rate, and
  // where the stream is faster, viewers play a segment once the signed manifest of the window - 2nd
  // after it is here, which maps announce within timers.map_us. The statistics' lag_us tells what
  // came of it. For a given lag the window should be 4/3 of it and two segments: a quarter is for
  // what has been played (`behind`). It should last for a second at least.
  int64_t lag_us;
  // Time allowed for the first segments before playback; 0: 1 s. Live: at most 3/4 of the lag.
  int64_t startup_us;
  size_t behind; // played segments kept for others, fewer than window; 0: a quarter of it
  // Pollution (needs trust).
  int64_t checksum_us; // live: interval of checksum reveals; 0: none, only hashes protect
  int64_t spread_us;   // a reveal reaches all peers within this of the first; 0: 250 ms
  weft_engine_timers timers;
  const weft_codec *codec;
  const weft_policy *policy;
  const weft_trust *trust; // NULL: no manifests, nothing is verified
} weft_engine_options;

// One peer's own.
typedef struct weft_engine_self {
  bool source;                // has the stream; else receives it
  uint64_t upload_bits_per_s; // upload cap; 0: no limit
  weft_rng rng;               // what it points to must outlive the engine
  // Receiver: where to begin. Ignored in live mode.
  uint64_t start; // a segment up to 2^48, or WEFT_START_OLDEST: the oldest that neighbours have
  // Source: the whole length, if any part is available at any time: segments are then loaded as
  // neighbours ask for them (WEFT_EVENT_LOAD). 0: segments are put in order. Not live. At most 2^48
  // segments.
  uint64_t stream_bytes;
  // Receiver, bulk, from segment 0 on: the application can give back what it has released. The
  // engine asks for it as a source with stream_bytes does (WEFT_EVENT_LOAD), so that later peers
  // can get it from here as well, and compares it with what the source signed.
  bool rereads;
  weft_peer_address address; // our own, not to be dialled; may be empty
  // Used instead of the options' codec (NULL: that one). Both must provide the calls `has` and
  // `make_token`, or both not; tokens of this codec must not be longer.
  const weft_codec *codec;
  struct weft_engine_scratch *scratch; // NULL: its own
} weft_engine_self;

#define WEFT_START_OLDEST UINT64_MAX

#ifdef __cplusplus
}
#endif
#endif
