// SPDX-License-Identifier: Apache-2.0
// Virtual time for any number of actors, spread over the threads of one or more ranks (processes).
// Events have one total order: (time, destination, source, sequence); an actor's own timers come
// after messages of the same time.
//
// Time is divided into windows no longer than the least delay of a message, so nothing sent in a
// window arrives in it, and within a window actors are independent of each other. Each lane (a
// thread of a rank) therefore processes its actors in order of their number. In its turn an actor
// gets all its events of the window, while its memory is in the cache. A wake asks for a turn
// without a message; letters are the messages from one lane to another. If turns touch only their
// own actor, the outcome does not depend on the number of lanes.
#ifndef WEFT_SIM_CORE_CORE_H
#define WEFT_SIM_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/core/log.h"
#include "sim/core/transport.h"
#include "weft/status.h"

typedef struct weft_sim_core weft_sim_core;
typedef struct weft_sim_lane weft_sim_lane;

// All events of one actor in the window [begin_us, end_us): `messages` in order, and the actor's
// own timers, which the callback keeps. `count` is 0 if only wakes asked for the turn.
typedef struct weft_sim_turn {
  size_t lane; // of this rank, 0..threads-1
  uint32_t actor;
  int64_t begin_us, end_us;
  const weft_sim_message *const *messages;
  size_t count;
} weft_sim_turn;

// Where processor time went, independent of other load and of waiting: given an idle processor for
// each lane, a run would take longest_ns + between_ns.
typedef struct weft_sim_effort {
  uint64_t windows;
  uint64_t lanes_ns;   // all lanes of all ranks in their windows
  uint64_t longest_ns; // each window's longest lane
  uint64_t between_ns; // no lane works: packing, and each exchange's shortest call
} weft_sim_effort;

typedef struct weft_sim_core_options {
  uint32_t actors;
  size_t threads; // lanes of this rank
  int64_t window_us;
  weft_sim_transport *transport; // NULL: one rank
  void *user;
  weft_status (*turn)(void *user, weft_sim_lane *lane, const weft_sim_turn *turn);
  // Called for actors that will soon have turns, in four steps so that each can follow a pointer
  // that the one before fetched: steps 0 and 1 once per turn, 2 and 3 for each message (NULL: a
  // wake). NULL: no prefetching.
  void (*prefetch)(void *user, size_t lane, uint32_t actor, const weft_sim_message *message,
                   unsigned step);
  uint64_t (*thread_ns)(void); // processor time of the calling thread; NULL: effort is not counted
} weft_sim_core_options;

// Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_THREAD.
weft_status weft_sim_core_new(const weft_sim_core_options *options, weft_sim_core **out);
void weft_sim_core_free(weft_sim_core *core); // accepts NULL

// Runs until `until_us`, rounded up to a whole window. Calls keep_on between windows; false ends
// the run with WEFT_PENDING. Errors: those of a turn; WEFT_E_STATE: a message was to arrive before
// the next window.
weft_status weft_sim_core_run(weft_sim_core *core, int64_t until_us,
                              bool (*keep_on)(void *user, int64_t now_us));
int64_t weft_sim_core_now(const weft_sim_core *core);
// Returns the number of this rank's messages that have not arrived yet. Only between runs.
uint64_t weft_sim_core_under_way(const weft_sim_core *core);
uint64_t weft_sim_core_bytes(const weft_sim_core *core); // memory for messages under way
// Returns the effort so far: lanes_ns of this rank, the other fields of all ranks.
weft_sim_effort weft_sim_core_effort(const weft_sim_core *core);

// Whether the actor belongs to this rank, and to which lane.
bool weft_sim_core_owns(const weft_sim_core *core, uint32_t actor, size_t *lane);

// --- Inside a turn; `lane` is the turn's lane

// Returns room for the message's content, which must be filled before the turn ends. NULL: no
// memory, or the message would arrive in the current window; the run then returns that error. An
// actor may send to itself, for any later window.
void *weft_sim_send(weft_sim_lane *lane, const weft_sim_message *message);
// Asks for a turn of the actor, which must belong to the lane, in the window of at_us. If that is
// far off, the turn comes earlier.
void weft_sim_wake(weft_sim_lane *lane, uint32_t actor, int64_t at_us);

// The same before the run; ignored unless this rank owns the actor.
void weft_sim_core_wake(weft_sim_core *core, uint32_t actor, int64_t at_us);

#endif
