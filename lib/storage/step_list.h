// SPDX-License-Identifier: Apache-2.0
// Steps of a factored matrix (kernels/factors.h) while they are written down, and the slots that
// they use. A slot that does not exist is zero.
#ifndef WEFT_LIB_STORAGE_STEP_LIST_H
#define WEFT_LIB_STORAGE_STEP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/factors.h"

enum { WEFT_NO_SLOT = -1, WEFT_STEP_LIST_MOST = 8192 };

typedef struct weft_step_list {
  size_t slots_most, cost_most;
  bool failed;     // too many steps or slots, or they cost too much
  size_t slots;    // that were ever used
  bool taken[256]; // now
  size_t cost;     // two for each product, by anything but 1, and one for each exclusive-or
  size_t count;
  weft_step step[WEFT_STEP_LIST_MOST];
} weft_step_list;

void weft_step_list_begin(weft_step_list *list, size_t slots_most);

void weft_step_put(weft_step_list *list, weft_step_kind kind, int to, int from, uint8_t c);
int16_t weft_slot_take(weft_step_list *list);
void weft_slot_give(weft_step_list *list, int16_t *slot); // and forgets it

// c times a slot, which stays, in a new one. c != 0.
int16_t weft_slot_copy(weft_step_list *list, int16_t from, uint8_t c);
void weft_slot_scale(weft_step_list *list, int16_t slot, uint8_t c);

// to += c * from, where `to` may be zero still. `moves`: nobody else wants `from`.
void weft_slot_add(weft_step_list *list, int16_t *to, int16_t *from, uint8_t c, bool moves);

// What a program costs: multiplications by anything but 1, and exclusive-ors.
typedef struct weft_step_work {
  size_t products, sums;
} weft_step_work;
weft_step_work weft_steps_work(const weft_step *steps, size_t count);

#endif
