// SPDX-License-Identifier: Apache-2.0
// Segments of a stream as datagrams, spread over the time that they play: without a socket or a
// clock.
#ifndef WEFT_PEER_SPREAD_H
#define WEFT_PEER_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEFT_SPREAD_BYTES = 7 * 188 }; // of a datagram: 7 packets of MPEG-TS, as is usual

// Zeros but for `data` is one that is empty.
typedef struct weft_spread {
  uint8_t *data;    // room for a segment and a datagram more; the caller's
  size_t at, held;  // sent, and there
  size_t fresh;     // where the newest segment begins
  size_t cut;       // what lies before is no part of the stream at `base`
  uint64_t base;    // the place in the stream of data[cut]
  int64_t start_us; // when the newest segment begins to play
  int64_t over_us;  // for how long it does
  bool ended;       // no more will come
} weft_spread;

// Whether all but the begin of a datagram is sent, and the next segment may be put.
bool weft_spread_has_room(const weft_spread *spread);
// Where it is put, if there is room.
uint8_t *weft_spread_room(weft_spread *spread);
// It was: `bytes` from `position` in the stream on, which play for over_us from when those before
// end, or from now on.
void weft_spread_put(weft_spread *spread, uint64_t position, size_t bytes, int64_t over_us,
                     int64_t now_us);
// What is to be sent now, if anything is: *data stays until the next call. Datagrams end at
// multiples of WEFT_SPREAD_BYTES of the stream; what is shorter, and followed by nothing for some
// time, goes as it is.
bool weft_spread_next(weft_spread *spread, int64_t now_us, const uint8_t **data, size_t *bytes);
// When to ask again; 0: when something was put.
int64_t weft_spread_deadline(const weft_spread *spread);
void weft_spread_drop(weft_spread *spread); // all that is there

#endif
