// SPDX-License-Identifier: Apache-2.0
// Virtual time for any number of actors on threads and ranks. What happens has one total order:
// (time, destination, source, sequence), and an actor's own timers after messages of their time.
//
// Time goes in windows no longer than the least delay of a message, so that nothing sent in a
// window arrives in it: inside one, an actor's events depend on nobody else's. Each lane (a thread
// of a rank) therefore works through its actors in order of their number, all of a window's events
// of one actor together, while that actor's memory is at hand. The outcome cannot depend on the
// number of lanes, and with turns that keep to their own actor it does not.
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

// All that one actor has in the window [begin_us, end_us): `messages` in order, and the actor's own
// timers, which the turn knows. A message may have been asked for by several wakes: count may be 0.
typedef struct weft_sim_turn {
  size_t lane; // of this rank, 0..threads-1
  uint32_t actor;
  int64_t begin_us, end_us;
  const weft_sim_message *const *messages;
  size_t count;
} weft_sim_turn;

// Where processor time went. However busy the machine is, and whoever waits for whom: on idle
// processors, one for each lane, a run takes longest_ns + between_ns.
typedef struct weft_sim_effort {
  uint64_t windows;
  uint64_t lanes_ns;   // all lanes of all ranks in their windows
  uint64_t longest_ns; // each window's longest lane
  uint64_t between_ns; // lanes idle: letters packed, ranks met; of each meeting the shortest call
} weft_sim_effort;

typedef struct weft_sim_core_options {
  uint32_t actors;
  size_t threads; // lanes of this rank
  int64_t window_us;
  weft_sim_transport *transport; // NULL: one rank
  void *user;
  weft_status (*turn)(void *user, weft_sim_lane *lane, const weft_sim_turn *turn);
  // Actors that soon have turns, in four steps, so that each may follow a pointer which the one
  // before fetched: 0 and 1 once for a turn, 2 and 3 for each message (NULL: a wake). NULL: none.
  void (*prefetch)(void *user, size_t lane, uint32_t actor, const weft_sim_message *message,
                   unsigned step);
  uint64_t (*thread_ns)(void); // processor time of the calling thread; NULL: no effort is counted
} weft_sim_core_options;

// Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_THREAD.
weft_status weft_sim_core_new(const weft_sim_core_options *options, weft_sim_core **out);
void weft_sim_core_free(weft_sim_core *core); // accepts NULL

// Goes on until `until_us`, rounded up to a window. keep_on is called between windows; false ends
// the run with WEFT_PENDING. Errors: what a turn returned; WEFT_E_STATE: a message that arrives
// before the next window.
weft_status weft_sim_core_run(weft_sim_core *core, int64_t until_us,
                              bool (*keep_on)(void *user, int64_t now_us));
int64_t weft_sim_core_now(const weft_sim_core *core);
// Messages of this rank that are still to arrive. Between runs.
uint64_t weft_sim_core_under_way(const weft_sim_core *core);
uint64_t weft_sim_core_bytes(const weft_sim_core *core); // memory for what is under way
// So far: lanes_ns of this rank, the rest of all.
weft_sim_effort weft_sim_core_effort(const weft_sim_core *core);

// Whether the actor is this rank's, and of which lane.
bool weft_sim_core_owns(const weft_sim_core *core, uint32_t actor, size_t *lane);

// --- Inside a turn; `lane` is the turn's

// Room for the message's content, to be filled before the turn ends; NULL: no memory, or it arrives
// too soon, which the run then returns. To the actor itself it may arrive in any later window.
void *weft_sim_send(weft_sim_lane *lane, const weft_sim_message *message);
// A turn for the actor, which must be the lane's, in the window of at_us or, for times far off,
// before.
void weft_sim_wake(weft_sim_lane *lane, uint32_t actor, int64_t at_us);

// Before the run: the same for an actor that this rank owns.
void weft_sim_core_wake(weft_sim_core *core, uint32_t actor, int64_t at_us);

#endif
