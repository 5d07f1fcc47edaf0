// SPDX-License-Identifier: Apache-2.0
// What follows from parameters and seed alone, and so is the same on every rank: the access of each
// peer, the delays between peers, arrivals and departures. Also links.
#ifndef WEFT_SIM_MODEL_H
#define WEFT_SIM_MODEL_H

#include "sim/crowd.h"
#include "sim/parameters.h"
#include "sim/rng.h"
#include "weft/status.h"

// A link, which sends one datagram after the other.
typedef struct weft_sim_link {
  int64_t free_us; // when everything it was given has left
  uint64_t rest;   // bits * 1e6 modulo the rate: the remainder of free_us
} weft_sim_link;

#define WEFT_SIM_TOGETHER_US 200000 // peers that come together arrive within this time

// Returns now + wait, or WEFT_SIM_NEVER if that does not fit.
static inline int64_t weft_sim_after(int64_t now_us, double wait_us) {
  return wait_us < 9e18 - (double)now_us ? now_us + (int64_t)wait_us : WEFT_SIM_NEVER;
}

// Sends bytes and returns when the last of them has passed.
int64_t weft_sim_link_send(weft_sim_link *link, uint64_t bits_per_s, size_t bytes, int64_t now_us);
// The same with a bounded queue. Returns < 0 if more than queue_us is waiting: the bytes are
// dropped.
int64_t weft_sim_link_queue(weft_sim_link *link, uint64_t bits_per_s, int64_t queue_us,
                            size_t bytes, int64_t now_us);

// Draws whether a packet is lost, in runs after Gilbert and Elliott: in the bad state everything is
// lost. A share `loss` of packets falls into that state, and a stay in it lasts `burst` packets on
// average; burst <= 1: losses are independent.
bool weft_sim_loses(double loss, double burst, bool *bad, weft_sim_rng *rng);

// Peer 0 is the source. It has its own uplink and delay (class 0's if none is given), no losses of
// its own, and a downlink without limit.
typedef struct weft_sim_model {
  const weft_sim_parameters *parameters;
  double share_sum;
  int64_t *arrive_us, *leave_us; // (peers + 1); arrivals ascend
  int64_t window_us;             // the least delay
  size_t trace_line;             // the wrong line of a trace; 0: none, or it has no arrival
  // The peers that a tracker knows: all, and by provider if it prefers the asker's own.
  weft_sim_crowd all, *of_isp; // (isps)
  uint32_t *by_isp;            // (peers + 1) sorted by provider
} weft_sim_model;

// Errors: WEFT_E_NOMEM, WEFT_E_IO (trace file); WEFT_E_MALFORMED and WEFT_E_BUFFER (more arrivals
// than peers) concern the line trace_line of the trace.
weft_status weft_sim_model_init(weft_sim_model *model, const weft_sim_parameters *parameters);
void weft_sim_model_clear(weft_sim_model *model);

size_t weft_sim_class_of(const weft_sim_model *model, uint32_t peer);
uint32_t weft_sim_isp_of(const weft_sim_model *model, uint32_t peer);
bool weft_sim_behind_nat(const weft_sim_model *model, uint32_t peer);
// Whether its NAT is symmetric: it maps every path to another port, so callers cannot get through.
bool weft_sim_symmetric_nat(const weft_sim_model *model, uint32_t peer);
bool weft_sim_is_free_rider(const weft_sim_model *model, uint32_t peer);
bool weft_sim_is_polluter(const weft_sim_model *model, uint32_t peer);
// Returns the least delay that any two peers may have.
int64_t weft_sim_least_delay_us(const weft_sim_parameters *parameters);
int64_t weft_sim_delay_us(const weft_sim_model *model, uint32_t a, uint32_t b);
// Returns the peer's place in the unit square.
void weft_sim_place_of(const weft_sim_model *model, uint32_t peer, double *x, double *y);
// Whether it is one of those that fail at once, unless it left before.
bool weft_sim_is_failing(const weft_sim_model *model, uint32_t peer);
// Returns the number of peers that have arrived by now, not counting the source.
uint32_t weft_sim_arrived(const weft_sim_model *model, int64_t now_us);
// Draws another peer that is present now; returns `peer` if it finds none.
uint32_t weft_sim_find_peer(const weft_sim_model *model, uint32_t peer, int64_t now_us,
                            weft_sim_rng *rng);

#endif
