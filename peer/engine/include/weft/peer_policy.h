// SPDX-License-Identifier: Apache-2.0
// The table through which the peer's engine decides what to send and what to request, and the view
// that it gives a policy. weft provides random push, pull, source-only and rarest-first; callers
// can supply others.
#ifndef WEFT_PEER_POLICY_H
#define WEFT_PEER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/peer_rng.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the peer holds of one segment of its window.
typedef struct weft_policy_segment {
  uint16_t blocks;   // n; 0: past the end of the stream
  uint16_t rank;     // 0..n; what can be sent
  uint16_t received; // rank, and packets that wait for their checksum
  uint16_t asked;    // packets requested that have not come yet
  uint32_t sent;     // packets sent to all neighbours
} weft_policy_segment;

// What the peer knows of a segment at one neighbour.
typedef struct weft_policy_want { // 6 bytes: a swarm's simulator has hundreds for each peer
  uint16_t rank : 11;             // as last announced
  uint16_t helpers : 4;           // its neighbours that have more of it; 15: or more; 0: unknown
  uint16_t accepts : 1;           // inside its window, and not complete there
  uint16_t in_flight : 15;        // packets sent to it that the announcement cannot have counted
  uint16_t vain : 1; // its last packet was not innovative here, and its rank has not risen since
  uint16_t common;   // dimensions of our space that it has already, as far as known
} weft_policy_want;

typedef struct weft_policy_neighbour {
  bool open;          // accepts packets now: known, and its congestion window has room
  bool known;         // a map of it has come: the fields below are valid
  uint16_t suppliers; // among how many its map divides what it lacks, including us
  uint16_t asking;    // our requests that it has not answered
  uint16_t maps;      // number of its maps received: rises whenever its wants are updated
  uint16_t room; // packets that may be requested now: what it answers in time, less those requested
  bool source;   // of the stream
  uint8_t forgone; // live: classes of segments that it forgoes (below): it wants them last, or,
  bool narrow;     // if its own link cannot carry them, not at all (weft_policy_refused)
  uint64_t first;  // wants cover segments first .. first + count - 1, segment s at s % window
  uint32_t count;  // at most window
  uint64_t oldest; // it holds segments oldest .. first - 1 complete
  const weft_policy_want *wants; // (window)
  const uint8_t *blocks;         // (window, blocks_stride) bitmaps of what it holds; uncoded only
} weft_policy_neighbour;

// Segments first .. first + count - 1 are in our window. Place s % window holds segment s if
// `number` says so: a source that loads on demand may hold any segments.
typedef struct weft_policy_view {
  int64_t now_us;
  uint64_t salt;           // drawn once: for random choices that persist while nothing changes
  bool source, live, bulk; // neither live nor bulk: on demand
  uint64_t first, missing; // missing: the oldest that is not complete
  size_t count, window;
  uint64_t horizon;                    // segments known to exist
  uint64_t play;                       // next to be played; live: no peer needs those before it
  int64_t segment_us;                  // playing time of one segment, up to 2^48; 0: not paced
  int64_t lag_us;                      // live: how far playback is behind the source
  unsigned forgone;                    // live: classes of segments that come last (below)
  const weft_policy_segment *segments; // (window)
  const uint64_t *number;              // (window) which segment each place holds
  size_t neighbours;
  const weft_policy_neighbour *neighbour; // (neighbours)
  size_t batch_max;                       // most packets in one burst
  size_t blocks_stride;                   // bytes of one bitmap
  const uint8_t *blocks;                  // (window, blocks_stride) what we hold or have requested
  const struct weft_engine *engine;       // for weft_policy_asked; NULL: nothing was requested
} weft_policy_view;

// Packets of the segment that were requested from neighbour number `neighbour` < neighbours and
// have not come yet.
size_t weft_policy_asked(const weft_policy_view *view, size_t neighbour, uint64_t segment);

// Live, with less uplink than the stream needs: which segments a swarm gives up so that the others
// are complete. Segments fall into classes that are spread evenly over the stream, and a peer that
// forgoes more classes includes those of the peers that forgo fewer.
enum { WEFT_POLICY_CLASSES = 16 };
static inline unsigned weft_policy_class(uint64_t segment) { // its low four bits, reversed
  const unsigned s = segment & (WEFT_POLICY_CLASSES - 1u);
  return (s & 1) << 3 | (s & 2) << 1 | (s & 4) >> 1 | s >> 3;
}

// Classes that come last in what is sent to a neighbour: we forgo them, or it does.
static inline unsigned weft_policy_forgone(const weft_policy_view *view,
                                           const weft_policy_neighbour *neighbour) {
  return view->forgone > neighbour->forgone ? view->forgone : neighbour->forgone;
}

// A peer that forgoes this many because of its own link requests everything that it wants.
enum { WEFT_POLICY_ASKS = WEFT_POLICY_CLASSES - 1 };
// Whether the neighbour must not be sent the segment unless it requested it.
static inline bool weft_policy_refused(const weft_policy_neighbour *neighbour, uint64_t segment) {
  return neighbour->narrow && (neighbour->forgone == WEFT_POLICY_ASKS ||
                               weft_policy_class(segment) < neighbour->forgone);
}

typedef struct weft_policy_choice {
  size_t neighbour;
  uint64_t segment;
  size_t count; // packets; when pushed, 1..batch_max
  // Requests for blocks (uncoded): bits of blocks base .. base + 63.
  uint16_t base;
  uint64_t mask;
} weft_policy_choice;

typedef struct weft_policy {
  const char *name;
  void *user;
  // Chooses the next burst to push; false: nothing is worth sending until something changes. Must
  // draw random numbers only from `rng`. The engine refuses a choice outside the view. NULL:
  // nothing is pushed; only requests are served.
  bool (*pick)(void *user, const weft_policy_view *view, const weft_rng *rng,
               weft_policy_choice *out);
  // Chooses the next request to send; false: none. Called when something has changed, and at least
  // every `timers.ask_us` while something is missing. NULL: only the engine's own repair near
  // deadlines and, in live mode where pushed packets queue at our own link, what weft_policy_pull
  // would request.
  bool (*ask)(void *user, const weft_policy_view *view, const weft_rng *rng,
              weft_policy_choice *out);
} weft_policy;

// Random push after R2 (Wang & Li, "R2: Random push with random network coding in live peer-to-peer
// streaming", 2007): a random neighbour, and a random segment, with preference for those played
// first, but none that a brake message has stopped.
extern const weft_policy weft_policy_push;
// Receivers request coded packets of the segments that are due first; holders answer.
extern const weft_policy weft_policy_pull;
// Only the source sends, by random push, as a server without peers does.
extern const weft_policy weft_policy_source_only;
// No coding: each receiver requests the block of the playback window that the fewest neighbours
// hold, urgent ones first. For use with weft_codec_blocks and 30 to 50 neighbours.
extern const weft_policy weft_policy_rarest;

// A policy in a file of its own, for `weft sim` and `weft peer` (cc -shared -fPIC; --scheme
// ./FILE.so). The file must contain once:
//   WEFT_POLICY_FILE = {WEFT_POLICY_LAYOUT, {.name = "mine", .pick = pick}};
// Threads call it for several peers at once, each with its own rng. State that it keeps between
// calls must not be shared by peers, or the same run gives different results each time. The program
// provides weft_rng_u64, weft_rng_below, weft_policy_asked and the policies above.
typedef struct weft_policy_file {
  uint64_t layout; // WEFT_POLICY_LAYOUT at the time of compilation
  weft_policy policy;
} weft_policy_file;

// Differs where these structs differ. The first factor is raised when a field changes its meaning,
// or one is added where there was padding.
#define WEFT_POLICY_LAYOUT                                                                         \
  (((((3 * UINT64_C(4096) + sizeof(weft_policy_view)) * 1024 + sizeof(weft_policy_neighbour)) *    \
         256 +                                                                                     \
     sizeof(weft_policy_choice)) *                                                                 \
        256 +                                                                                      \
    sizeof(weft_policy_segment) * 16 + sizeof(weft_policy_want)) *                                 \
       256 +                                                                                       \
   sizeof(weft_policy))

#ifdef __cplusplus
#define WEFT_POLICY_FILE                                                                           \
  extern "C" const weft_policy_file weft_policy_in_file;                                           \
  const weft_policy_file weft_policy_in_file
#else
#define WEFT_POLICY_FILE                                                                           \
  extern const weft_policy_file weft_policy_in_file;                                               \
  const weft_policy_file weft_policy_in_file
#endif

#ifdef __cplusplus
}
#endif
#endif
