// SPDX-License-Identifier: Apache-2.0
// Turns segments of a stream into datagrams, spread over the time in which they play. It uses
// neither a socket nor a clock.
#ifndef WEFT_PEER_SPREAD_H
#define WEFT_PEER_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEFT_SPREAD_BYTES = 7 * 188 }; // a datagram: 7 packets of MPEG-TS, as is usual

// All zero except `data`: empty.
typedef struct weft_spread {
  uint8_t *data;    // (a segment and a datagram more) owned by the caller
  size_t at, held;  // bytes sent, and bytes present
  size_t fresh;     // where the newest segment begins
  size_t cut;       // bytes before this one do not belong to the stream at `base`
  uint64_t base;    // the position in the stream of data[cut]
  int64_t start_us; // when the newest segment begins to play
  int64_t over_us;  // for how long it plays
  bool ended;       // nothing more will be put
} weft_spread;

// Whether no complete datagram is left, so that the next segment may be put.
bool weft_spread_has_room(const weft_spread *spread);
// Returns where to write the next segment, if there is room.
uint8_t *weft_spread_room(weft_spread *spread);
// Adds the segment written there: `bytes` from `position` in the stream on, which play for over_us,
// from when the segments before end, or from now on.
void weft_spread_put(weft_spread *spread, uint64_t position, size_t bytes, int64_t over_us,
                     int64_t now_us);
// Returns whether a datagram is due, and which: *data is valid until the next call. Datagrams end
// at multiples of WEFT_SPREAD_BYTES of the stream; a shorter rest that nothing follows for some
// time is sent as it is.
bool weft_spread_next(weft_spread *spread, int64_t now_us, const uint8_t **data, size_t *bytes);
// Returns when to call weft_spread_next again; 0: after the next weft_spread_put.
int64_t weft_spread_deadline(const weft_spread *spread);
void weft_spread_drop(weft_spread *spread); // drops all that is held

#endif
