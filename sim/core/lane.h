// SPDX-License-Identifier: Apache-2.0
// One lane's pending events: a ring of buckets, one for each of the next windows, and letters for
// the other lanes.
#ifndef WEFT_SIM_CORE_LANE_H
#define WEFT_SIM_CORE_LANE_H

#include "sim/core/core.h"

// Data that two lanes write must share neither a cache line nor the pair of lines that processors
// fetch together.
enum { WEFT_SIM_LINES = 128 };
enum { WEFT_SIM_RING = 2048 }; // windows in the ring; later events wait in the last one

typedef struct weft_sim_entry {
  uint32_t actor;                  // number within the lane
  const weft_sim_message *message; // NULL: a wake
} weft_sim_entry;

typedef struct weft_sim_bucket {
  weft_sim_log messages;
  weft_sim_log wakes; // each two uint32_t: the actor's number within the lane, and padding
} weft_sim_bucket;

struct weft_sim_lane {
  _Alignas(WEFT_SIM_LINES) size_t index, total; // among the lanes of all ranks
  size_t number;                                // within this rank
  uint32_t actors;
  int64_t window_us;
  int64_t window; // the current one
  bool in_turn;   // what is sent now must not arrive in `window`
  size_t parity;  // which of the two sets of letters is being written
  weft_sim_chunks pool;
  weft_sim_bucket ring[WEFT_SIM_RING];
  weft_sim_log *letters[2]; // (total) one for each other lane
  weft_sim_entry *entries, *spare;
  size_t entries_capacity;
  const weft_sim_message **run; // the messages of one turn
  size_t run_capacity;
  uint64_t worked_ns; // in this window
  weft_status status;
};

weft_status weft_sim_lane_init(weft_sim_lane *lane);
void weft_sim_lane_clear(weft_sim_lane *lane);
// Takes over `bytes` bytes of messages that other lanes sent.
void weft_sim_lane_take(weft_sim_lane *lane, const void *records, size_t bytes);
// Processes the lane's current window.
void weft_sim_lane_work(weft_sim_lane *lane, const weft_sim_core_options *options);

#endif
