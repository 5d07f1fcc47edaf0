// SPDX-License-Identifier: Apache-2.0
// Stripes in host memory on their way through a device, in pieces.
#ifndef WEFT_LIB_STORAGE_DEVICE_TRAVEL_H
#define WEFT_LIB_STORAGE_DEVICE_TRAVEL_H

#include "lib/storage/code.h"

// One plan on its way through the device.
typedef struct weft_device_run {
  weft_plan *plan;
  weft_call *call;
  weft_exec exec; // the call's, or one of a side stream
  const uint8_t *matrix;
  size_t stride;
  bool in_order;
  bool under_way;     // stripes in host memory that nobody has waited for
  bool failed;        // the device, so that those may have failed, too
  weft_status waited; // how the first wait ended that did not end well
} weft_device_run;

static inline uint8_t *weft_device_run_shard(const weft_device_run *r, const weft_stripe *stripe,
                                             size_t i) {
  return weft_stripe_shard(stripe, r->in_order ? i : r->plan->ids[i]);
}

// A stripe whose shards the device works on where they are (device_run.c).
weft_status weft_device_run_resident(const weft_device_run *r, const weft_stripe *stripe);

// Stripes in host memory: while a piece of them is computed, the next arrives and the one before
// leaves. Whoever waits for the run's stream waits for all of it.
weft_status weft_device_run_travelling(const weft_device_run *r, const weft_stripe *stripes,
                                       size_t count);

#endif
