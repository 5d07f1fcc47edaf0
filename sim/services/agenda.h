// SPDX-License-Identifier: Apache-2.0
// Events in order of time; at one time, in the order in which they were added.
#ifndef WEFT_SIM_SERVICES_AGENDA_H
#define WEFT_SIM_SERVICES_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

typedef struct weft_sim_entry {
  int64_t time_us;
  uint64_t order;
  uint32_t kind, who, what;
} weft_sim_entry;

typedef struct weft_sim_agenda { // all zero: empty
  weft_sim_entry *heap;
  size_t count, capacity;
  uint64_t order;
} weft_sim_agenda;

weft_status weft_sim_agenda_put(weft_sim_agenda *agenda, int64_t time_us, uint32_t kind,
                                uint32_t who, uint32_t what);
bool weft_sim_agenda_take(weft_sim_agenda *agenda, weft_sim_entry *out); // false: it is empty
void weft_sim_agenda_clear(weft_sim_agenda *agenda);

#endif
