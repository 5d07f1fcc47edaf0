// SPDX-License-Identifier: Apache-2.0
// One lane's share of the future: a ring of windows, and letters for the other lanes.
#ifndef WEFT_SIM_CORE_LANE_H
#define WEFT_SIM_CORE_LANE_H

#include "sim/core/core.h"

// What two lanes write must not lie in one cache line, nor in the pair of lines that processors
// fetch together.
enum { WEFT_SIM_LINES = 128 };
enum { WEFT_SIM_RING = 2048 }; // windows that lie ahead one by one; what is later waits in the last

typedef struct weft_sim_entry {
  uint32_t actor;                  // its number in the lane
  const weft_sim_message *message; // NULL: a wake
} weft_sim_entry;

typedef struct weft_sim_bucket {
  weft_sim_log messages;
  weft_sim_log wakes; // of two uint32_t: the actor's number in the lane, and nothing
} weft_sim_bucket;

struct weft_sim_lane {
  _Alignas(WEFT_SIM_LINES) size_t index, total; // among the lanes of all ranks
  size_t number;                                // in this rank
  uint32_t actors;
  int64_t window_us;
  int64_t window; // the one that is worked on
  bool in_turn;   // what is sent now must not arrive in `window`
  size_t parity;  // which letters are being written
  weft_sim_chunks pool;
  weft_sim_bucket ring[WEFT_SIM_RING];
  weft_sim_log *letters[2]; // (total) for each other lane
  weft_sim_entry *entries, *spare;
  size_t entries_capacity;
  const weft_sim_message **run; // the messages of one turn
  size_t run_capacity;
  uint64_t worked_ns; // in this window
  weft_status status;
};

weft_status weft_sim_lane_init(weft_sim_lane *lane);
void weft_sim_lane_clear(weft_sim_lane *lane);
// Takes messages, one after the other in `bytes` bytes, that other lanes sent.
void weft_sim_lane_take(weft_sim_lane *lane, const void *records, size_t bytes);
// Works through the lane's window.
void weft_sim_lane_work(weft_sim_lane *lane, const weft_sim_core_options *options);

#endif
