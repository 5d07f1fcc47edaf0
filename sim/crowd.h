// SPDX-License-Identifier: Apache-2.0
// Draws from the peers that are present at a given time, at a cost that does not grow with the
// number of peers that came and left before.
#ifndef WEFT_SIM_CROWD_H
#define WEFT_SIM_CROWD_H

#include <stddef.h>
#include <stdint.h>

#include "sim/rng.h"
#include "weft/status.h"

// A list of the peers that were present at one time.
typedef struct weft_sim_look {
  int64_t time_us;
  uint32_t came;  // peers of the crowd that had arrived by then
  uint32_t count; // those of them that were present, listed in weft_sim_crowd.there
  size_t first;
} weft_sim_look;

// A look is taken whenever half of the candidates (those in the last look and later arrivals) have
// left. At least one draw in two therefore hits a peer that is present, and all looks together hold
// no more entries than peers have left.
typedef struct weft_sim_crowd {
  const int64_t *arrive_us, *leave_us; // of all peers
  const uint32_t *peers;               // (count) in order of arrival; NULL: peers 0, 1, ...
  uint32_t count;
  weft_sim_look *looks;
  size_t look_count, look_room;
  uint32_t *there;
  size_t there_count, there_room;
} weft_sim_crowd;

#define WEFT_SIM_NOBODY_CAME UINT32_MAX

void weft_sim_sort_times(int64_t *times_us, size_t count); // ascending

// The arrays must outlive the crowd. Errors: WEFT_E_NOMEM.
weft_status weft_sim_crowd_init(weft_sim_crowd *crowd, const int64_t *arrive_us,
                                const int64_t *leave_us, const uint32_t *peers, uint32_t count);
void weft_sim_crowd_clear(weft_sim_crowd *crowd);

// Draws a peer that has arrived by now. All peers present are equally likely, but the result may
// have left already. Until the first peer leaves, any arrival may be drawn. WEFT_SIM_NOBODY_CAME:
// there is no peer to draw.
uint32_t weft_sim_crowd_draw(const weft_sim_crowd *crowd, int64_t now_us, weft_sim_rng *rng);

#endif
