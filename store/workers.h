// SPDX-License-Identifier: Apache-2.0
// Processes stripes with several threads, so that reading, coding and writing overlap.
#ifndef WEFT_STORE_WORKERS_H
#define WEFT_STORE_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

// Each stripe goes through take, work and give on one thread, in that thread's lane (0..threads-1).
typedef weft_status weft_store_step(void *user, size_t lane, uint64_t stripe);

typedef struct weft_store_run {
  size_t threads;        // 1..WEFT_STORE_MAX_THREADS
  uint64_t first, end;   // end: exclusive
  weft_store_step *take; // in order, one at a time; WEFT_PENDING: no such stripe. May be NULL
  weft_store_step *work; // in any order, concurrently
  weft_store_step *give; // in order, one at a time; may be NULL
  void *user;
  // Called after each stripe, one call at a time; false stops the run with WEFT_E_STOPPED. May be
  // NULL.
  bool (*keep_on)(void *watcher, uint64_t stripes);
  void *watcher;
} weft_store_run;

// Runs all stripes; the first status other than WEFT_OK ends the run.
weft_status weft_store_run_stripes(const weft_store_run *run);

#endif
