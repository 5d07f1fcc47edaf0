// SPDX-License-Identifier: Apache-2.0
// What happens as time passes, and the next deadline.
#include "peer/engine/internal.h"

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t weft_engine_deadline(const weft_engine *e) {
  if (e->due_count)
    return 0; // output has something to send at once
  if (e->farewell)
    return WEFT_ENGINE_NEVER; // only questions are still answered
  // Also idle while all that is owed waits for neighbours that take nothing now.
  int64_t at = e->idle || e->degree == 0 ? WEFT_ENGINE_NEVER : e->pace_us;
  for (size_t i = 0; i < e->used; i++)
    at = earlier(at, weft_neighbour_deadline(e, i));
  at = earlier(at, weft_play_deadline(e));
  at = earlier(at, weft_requests_deadline(e));
  at = earlier(at, weft_share_deadline(e));
  at = earlier(at, e->gather_us);
  if (weft_checksums_on(e))
    at = earlier(at, weft_checksum_deadline(e));
  at = earlier(at, weft_exchange_deadline(e));
  at = earlier(at, weft_meet_deadline(e));
  return at > 0 ? at : 0;
}

static void neighbour_tick(weft_engine *e, size_t i, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[i];
  const weft_clock *clock = &e->clocks[i];
  if (n->state != WEFT_NEIGHBOUR_FINISHED && weft_neighbour_gone(e, i, now_us)) {
    weft_neighbour_drop(e, i, WEFT_LOST_SILENT);
    return;
  }
  weft_wait_look(e, i, now_us);
  if (now_us >= weft_neighbour_greet_time(e, n) || weft_neighbour_probe(e, i, now_us))
    weft_neighbour_due(e, i, WEFT_DUE_HELLO);
  if (n->state == WEFT_NEIGHBOUR_GREETING)
    return;
  const int64_t patience_us = weft_flight_patience(e, n);
  if (n->flight_count && now_us >= n->flight[n->flight_first].at_us + patience_us) {
    weft_flight_forget(e, n, now_us - patience_us);
    e->idle = false;
  }
  if (now_us >= n->ack_due_us)
    weft_neighbour_due(e, i, WEFT_DUE_ACK);
  weft_ledbat_tick(e, i, now_us);
  const bool idle = weft_neighbour_repeats(e, n) && now_us >= weft_neighbour_map_again(e, i);
  const bool quiet = now_us >= n->spoke_us + WEFT_TIMER(e, keep_us, 10000000);
  const int64_t timer_us = clock->timer_us;
  e->clocks[i].timer_us = WEFT_ENGINE_NEVER; // so that only the map's deadline counts
  const bool changed = now_us >= weft_neighbour_deadline(e, i);
  e->clocks[i].timer_us = timer_us;
  if (idle || quiet || changed)
    weft_neighbour_due(e, i, WEFT_DUE_MAP);
  weft_neighbour_timer(e, i);
}

void weft_engine_tick(weft_engine *e, int64_t now_us) {
  if (e->farewell)
    return;
  weft_share_look(e, now_us);
  for (size_t i = 0; i < e->used; i++)
    if (now_us >= weft_neighbour_deadline(e, i))
      neighbour_tick(e, i, now_us);
  weft_loads_tick(e, now_us);
  weft_gather_tick(e, now_us);
  weft_play_tick(e, now_us);
  if (weft_checksums_on(e))
    weft_checksum_tick(e, now_us);
  weft_requests_tick(e, now_us);
  weft_exchange_tick(e, now_us);
  weft_meet_tick(e, now_us);
}
