// SPDX-License-Identifier: Apache-2.0
// Who of some peers is there at a time: drawn from, however many came and left before.
#ifndef WEFT_SIM_CROWD_H
#define WEFT_SIM_CROWD_H

#include <stddef.h>
#include <stdint.h>

#include "sim/rng.h"
#include "weft/status.h"

// Those that were there at a time.
typedef struct weft_sim_look {
  int64_t time_us;
  uint32_t came;  // of the crowd, at that time or before
  uint32_t count; // of them that were there, in weft_sim_crowd.there
  size_t first;
} weft_sim_look;

// Looks are taken where half of those that may be there have left since the last one. So one draw
// in two meets somebody, and all looks together hold no more than have left.
typedef struct weft_sim_crowd {
  const int64_t *arrive_us, *leave_us; // of all peers
  const uint32_t *peers;               // (count) as they come; NULL: peers 0, 1, ...
  uint32_t count;
  weft_sim_look *looks;
  size_t look_count, look_room;
  uint32_t *there;
  size_t there_count, there_room;
} weft_sim_crowd;

#define WEFT_SIM_NOBODY_CAME UINT32_MAX

void weft_sim_sort_times(int64_t *times_us, size_t count); // ascending

// The arrays must outlive it. Errors: WEFT_E_NOMEM.
weft_status weft_sim_crowd_init(weft_sim_crowd *crowd, const int64_t *arrive_us,
                                const int64_t *leave_us, const uint32_t *peers, uint32_t count);
void weft_sim_crowd_clear(weft_sim_crowd *crowd);

// Somebody who has come by now; all who are there are as likely, and it may have left. As long as
// nobody has left it is any of those who came. WEFT_SIM_NOBODY_CAME: nobody to draw from.
uint32_t weft_sim_crowd_draw(const weft_sim_crowd *crowd, int64_t now_us, weft_sim_rng *rng);

#endif
