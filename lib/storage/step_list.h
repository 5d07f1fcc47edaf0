// SPDX-License-Identifier: Apache-2.0
// Builds the list of steps of a factored matrix (kernels/factors.h). A slot is a register or buffer
// that holds one row of bytes. A value is a factor times the contents of a slot, so copies and
// products that are not needed by themselves are never made: several values may be multiples of one
// slot, and factors are folded into the constants of later steps.
#ifndef WEFT_LIB_STORAGE_STEP_LIST_H
#define WEFT_LIB_STORAGE_STEP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/factors.h"
#include "lib/storage/gfw.h"

enum { WEFT_STEP_LIST_MOST = 8192, WEFT_SLOTS_MOST = 256 };

// The value: factor times the contents of the slot. Factor 0 is the value zero, which has no slot.
typedef struct weft_multiple {
  uint8_t slot, factor;
} weft_multiple;

#define WEFT_ZERO ((weft_multiple){0, 0})

static inline bool weft_is_zero(weft_multiple v) { return v.factor == 0; }

// What steps cost where they are executed: multiplications by constants other than 1 (`repeated` if
// the step before is a product of the same slot), and XORs.
typedef struct weft_step_prices {
  size_t product, repeated, sum; // repeated <= product
} weft_step_prices;

// A state of a list to return to.
typedef struct weft_step_mark {
  size_t count, cost, slots;
  uint16_t users[WEFT_SLOTS_MOST];
} weft_step_mark;

typedef struct weft_step_list {
  const weft_gfw *field;
  weft_step_prices prices;
  bool early; // scales values when they are first made rather than when stored
  size_t slots_most, cost_most;
  bool failed;                     // too many steps or slots, or they cost too much
  size_t slots;                    // slots used so far
  uint16_t users[WEFT_SLOTS_MOST]; // live values that are multiples of each slot
  size_t count, cost;
  weft_step step[WEFT_STEP_LIST_MOST];
} weft_step_list;

void weft_step_list_begin(weft_step_list *list, const weft_gfw *field,
                          const weft_step_prices *prices, bool early, size_t slots_most);
void weft_step_list_mark(const weft_step_list *list, weft_step_mark *mark);
void weft_step_list_take_back(weft_step_list *list, const weft_step_mark *mark);

weft_multiple weft_value_load(weft_step_list *list, size_t row);
weft_multiple weft_value_zeros(weft_step_list *list); // zeros that occupy a slot
// Stores the value as row `row` and gives it up.
void weft_value_store(weft_step_list *list, size_t row, weft_multiple *value);
void weft_value_give(weft_step_list *list, weft_multiple *value); // *value is zero afterwards

// Returns c times a value; the value itself stays valid.
weft_multiple weft_value_times(weft_step_list *list, weft_multiple value, uint8_t c);
void weft_value_scale(weft_step_list *list, weft_multiple *value, uint8_t c);
// to += c * from
void weft_value_add(weft_step_list *list, weft_multiple *to, weft_multiple from, uint8_t c);
// Moves the value into a slot of its own, with factor 1.
void weft_value_settle(weft_step_list *list, weft_multiple *value);
// Butterflies: high += low, low += w * high; and low += w * high, high += low.
void weft_value_inverse(weft_step_list *list, weft_multiple *low, weft_multiple *high, uint8_t w);
void weft_value_forward(weft_step_list *list, weft_multiple *low, weft_multiple *high, uint8_t w);

#endif
