// SPDX-License-Identifier: Apache-2.0
// Moves stripes in host memory through a device, in pieces.
#ifndef WEFT_LIB_STORAGE_DEVICE_TRAVEL_H
#define WEFT_LIB_STORAGE_DEVICE_TRAVEL_H

#include "lib/storage/code.h"

// One run of a plan on the device.
typedef struct weft_device_run {
  weft_plan *plan;
  weft_call *call;
  weft_exec exec; // the call's, or one with a side stream
  const uint8_t *matrix;
  size_t stride;
  bool in_order;
  bool under_way;     // stripes in host memory have not been waited for yet
  bool failed;        // the device failed, so those stripes may be wrong
  weft_status waited; // the first failure reported by a wait
} weft_device_run;

static inline uint8_t *weft_device_run_shard(const weft_device_run *r, const weft_stripe *stripe,
                                             size_t i) {
  return weft_stripe_shard(stripe, r->in_order ? i : r->plan->ids[i]);
}

// Runs the plan on a stripe whose shards the device can access in place (device_run.c).
weft_status weft_device_run_resident(const weft_device_run *r, const weft_stripe *stripe);

// Runs the plan on stripes in host memory: while one piece is computed, the next arrives and the
// previous one leaves. Waiting for the run's stream waits for all of it.
weft_status weft_device_run_travelling(const weft_device_run *r, const weft_stripe *stripes,
                                       size_t count);

#endif
