// SPDX-License-Identifier: Apache-2.0
// Events in virtual time, in one total order: (time, destination, source, sequence). The order does
// not depend on when events were put in, so that peers may one day be split over threads or ranks.
#ifndef WEFT_SIM_QUEUE_H
#define WEFT_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

// Datagrams that arrive together, in one piece of memory.
typedef struct weft_sim_burst {
  size_t neighbour; // the sender's number at the destination
  size_t count;
  size_t *bytes; // (count) length of each datagram
  uint8_t *data; // one after the other
} weft_sim_burst;

typedef struct weft_sim_event {
  int64_t time_us;
  uint32_t destination, source;
  uint64_t sequence;     // counts the source's events
  weft_sim_burst *burst; // NULL: a timer of the destination's own
} weft_sim_event;

typedef struct weft_sim_queue {
  weft_sim_event *heap;
  size_t count, capacity;
} weft_sim_queue;

weft_sim_burst *weft_sim_burst_new(size_t count, size_t total_bytes); // NULL: no memory
void weft_sim_burst_free(weft_sim_burst *burst);                      // accepts NULL

// The queue owns the bursts of the events in it. WEFT_E_NOMEM: the event was not taken.
weft_status weft_sim_queue_push(weft_sim_queue *queue, const weft_sim_event *event);
bool weft_sim_queue_pop(weft_sim_queue *queue, weft_sim_event *out); // false: empty
void weft_sim_queue_clear(weft_sim_queue *queue);                    // frees all

#endif
