// SPDX-License-Identifier: Apache-2.0
// What follows from parameters and seed alone, the same on every rank: who has which access, how
// far apart two peers are, when each comes and goes; and links.
#ifndef WEFT_SIM_MODEL_H
#define WEFT_SIM_MODEL_H

#include "sim/crowd.h"
#include "sim/parameters.h"
#include "sim/rng.h"
#include "weft/status.h"

// A link that sends one datagram after the other.
typedef struct weft_sim_link {
  int64_t free_us; // when it has sent all it was given
  uint64_t rest;   // bits * 1e6 modulo the rate: what free_us does not hold
} weft_sim_link;

#define WEFT_SIM_TOGETHER_US 200000 // within which those come who come together

// So long after now; WEFT_SIM_NEVER where times do not reach as far.
static inline int64_t weft_sim_after(int64_t now_us, double wait_us) {
  return wait_us < 9e18 - (double)now_us ? now_us + (int64_t)wait_us : WEFT_SIM_NEVER;
}

// When the last of these bytes has passed.
int64_t weft_sim_link_send(weft_sim_link *link, uint64_t bits_per_s, size_t bytes, int64_t now_us);
// The same where the queue is bounded; < 0: more than queue_us waits already, and they are dropped.
int64_t weft_sim_link_queue(weft_sim_link *link, uint64_t bits_per_s, int64_t queue_us,
                            size_t bytes, int64_t now_us);

// Losses in runs (Gilbert and Elliott): in the bad state everything is lost. The state's share of
// packets is `loss`, a stay in it lasts `burst` packets; burst <= 1: independent losses.
bool weft_sim_loses(double loss, double burst, bool *bad, weft_sim_rng *rng);

// Peer 0 is the source: its own uplink and delay (class 0's where none is given), no losses of its
// own, a downlink without limit.
typedef struct weft_sim_model {
  const weft_sim_parameters *parameters;
  double share_sum;
  int64_t *arrive_us, *leave_us; // (peers + 1); arrivals never fall
  int64_t window_us;             // the least delay
  size_t trace_line;             // which is wrong; 0: none, or there is no arrival at all
  // Whom a tracker knows: all, and each provider's where it prefers these.
  weft_sim_crowd all, *of_isp; // (isps)
  uint32_t *by_isp;            // (peers + 1) the peers of one provider after those of another
} weft_sim_model;

// Errors: WEFT_E_NOMEM, WEFT_E_IO (trace file), in it WEFT_E_MALFORMED and WEFT_E_BUFFER (more
// arrivals than peers): trace_line.
weft_status weft_sim_model_init(weft_sim_model *model, const weft_sim_parameters *parameters);
void weft_sim_model_clear(weft_sim_model *model);

size_t weft_sim_class_of(const weft_sim_model *model, uint32_t peer);
uint32_t weft_sim_isp_of(const weft_sim_model *model, uint32_t peer);
bool weft_sim_behind_nat(const weft_sim_model *model, uint32_t peer);
// One that gives every path another port, so that it cannot be called through.
bool weft_sim_symmetric_nat(const weft_sim_model *model, uint32_t peer);
bool weft_sim_is_free_rider(const weft_sim_model *model, uint32_t peer);
bool weft_sim_is_polluter(const weft_sim_model *model, uint32_t peer);
int64_t weft_sim_delay_us(const weft_sim_model *model, uint32_t a, uint32_t b);
// Where it is, in the unit square.
void weft_sim_place_of(const weft_sim_model *model, uint32_t peer, double *x, double *y);
// One of the many that fail at once, if it has not left by then.
bool weft_sim_is_failing(const weft_sim_model *model, uint32_t peer);
// Peers that came at or before now, the source not counted.
uint32_t weft_sim_arrived(const weft_sim_model *model, int64_t now_us);
// Somebody whom `peer` can connect to and who is there now; `peer` itself: nobody was found.
uint32_t weft_sim_find_peer(const weft_sim_model *model, uint32_t peer, int64_t now_us,
                            weft_sim_rng *rng);

#endif
