// SPDX-License-Identifier: Apache-2.0
#include "peer/runtime/spread.h"

#include <string.h>

enum {
  STEP_US = 2000,  // datagrams that are due within it are sent together
  REST_US = 50000, // how long after its segment an incomplete datagram waits for the next one
};

// Whether the datagram that begins at `at` is complete; sets *end to its end.
static bool whole(const weft_spread *s, size_t *end) {
  const uint64_t place = s->base + (s->at - s->cut);
  *end = s->at < s->cut ? s->cut : s->at + (size_t)(WEFT_SPREAD_BYTES - place % WEFT_SPREAD_BYTES);
  return *end <= s->held && s->at < s->held;
}

bool weft_spread_has_room(const weft_spread *s) {
  size_t end;
  return !whole(s, &end);
}

uint8_t *weft_spread_room(weft_spread *s) {
  s->base += s->at - s->cut; // drop what was sent, and with it what lay before the cut
  s->held -= s->at;
  memmove(s->data, s->data + s->at, s->held);
  s->at = s->cut = 0;
  return s->data + s->held;
}

void weft_spread_put(weft_spread *s, uint64_t position, size_t bytes, int64_t over_us,
                     int64_t now_us) {
  const int64_t end_us = s->start_us + s->over_us;
  const bool goes_on = end_us >= now_us - over_us && end_us <= now_us + over_us;
  s->fresh = s->held;
  if (position != s->base + s->held) {
    s->cut = s->held;
    s->base = position;
  }
  s->held += bytes;
  s->start_us = goes_on ? end_us : now_us;
  s->over_us = over_us;
}

// Returns when the byte at `at` plays; the rest of the segment before is due at once.
static int64_t due_us(const weft_spread *s) {
  const size_t into = s->at > s->fresh ? s->at - s->fresh : 0, all = s->held - s->fresh;
  return s->start_us + (all ? (int64_t)((double)into / (double)all * (double)s->over_us) : 0);
}

bool weft_spread_next(weft_spread *s, int64_t now_us, const uint8_t **data, size_t *bytes) {
  size_t end;
  if (s->at == s->held)
    return false;
  if (whole(s, &end) ? now_us < due_us(s) : !s->ended && now_us < weft_spread_deadline(s))
    return false;
  *data = s->data + s->at;
  *bytes = (end < s->held ? end : s->held) - s->at;
  s->at += *bytes;
  return true;
}

int64_t weft_spread_deadline(const weft_spread *s) {
  size_t end;
  if (s->at == s->held)
    return 0;
  if (whole(s, &end))
    return due_us(s) + STEP_US;
  return s->ended ? 1 : s->start_us + s->over_us + REST_US;
}

void weft_spread_drop(weft_spread *s) {
  s->base += s->held - s->cut;
  s->at = s->held = s->fresh = s->cut = 0;
}
