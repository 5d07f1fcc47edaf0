// SPDX-License-Identifier: Apache-2.0
// Emits the steps that values need. A slot counts the values that are multiples of it as its users,
// and is copied only when one of several users changes.
#include "lib/storage/step_list.h"

#include <string.h>

void weft_step_list_begin(weft_step_list *list, const weft_gfw *field,
                          const weft_step_prices *prices, bool early, size_t slots_most) {
  list->field = field;
  list->prices = *prices;
  list->early = early;
  list->slots_most = slots_most;
  list->cost_most = SIZE_MAX;
  list->failed = false;
  list->slots = list->count = list->cost = 0;
  memset(list->users, 0, sizeof list->users);
}

void weft_step_list_mark(const weft_step_list *list, weft_step_mark *mark) {
  mark->count = list->count;
  mark->cost = list->cost;
  mark->slots = list->slots;
  memcpy(mark->users, list->users, sizeof mark->users);
}

void weft_step_list_take_back(weft_step_list *list, const weft_step_mark *mark) {
  list->count = mark->count;
  list->cost = mark->cost;
  list->slots = mark->slots;
  memcpy(list->users, mark->users, sizeof list->users);
  list->failed = false;
}

static size_t cost_of(const weft_step_prices *prices, const weft_step *step, bool first) {
  const bool butterfly = weft_step_is_butterfly(step);
  const bool again = !first && weft_step_is_product(step) && weft_step_is_product(step - 1) &&
                     step->from == step[-1].from;
  size_t cost = butterfly ? prices->sum : 0;
  if (step->c > 1)
    cost += again ? prices->repeated : prices->product;
  if (step->c && (butterfly || step->kind == WEFT_STEP_ADD))
    cost += prices->sum;
  return cost;
}

static void put(weft_step_list *list, weft_step_kind kind, size_t to, size_t from, uint8_t c) {
  if (list->failed || list->count == WEFT_STEP_LIST_MOST) {
    list->failed = true;
    return;
  }
  weft_step *const step = &list->step[list->count];
  *step = (weft_step){(uint8_t)kind, (uint8_t)to, (uint8_t)from, c};
  list->cost += cost_of(&list->prices, step, list->count++ == 0);
  list->failed = list->cost > list->cost_most;
}

static uint8_t take(weft_step_list *list) {
  size_t slot = 0;
  while (slot < list->slots_most && list->users[slot])
    slot++;
  if (slot == list->slots_most) {
    list->failed = true;
    slot = 0;
  }
  list->users[slot]++;
  list->slots = slot + 1 > list->slots ? slot + 1 : list->slots;
  return (uint8_t)slot;
}

void weft_value_give(weft_step_list *list, weft_multiple *value) {
  if (!weft_is_zero(*value))
    list->users[value->slot]--;
  *value = WEFT_ZERO;
}

// Moves the value to a slot of its own, which holds c times the contents of the old one.
static void move(weft_step_list *list, weft_multiple *value, uint8_t c) {
  const uint8_t from = value->slot;
  const bool shared = list->users[from] > 1;
  if (!shared && c == 1)
    return;
  if (shared) {
    value->slot = take(list);
    list->users[from]--;
  }
  put(list, WEFT_STEP_SET, value->slot, from, c);
}

void weft_value_settle(weft_step_list *list, weft_multiple *value) {
  if (weft_is_zero(*value)) {
    list->failed = true;
    return;
  }
  move(list, value, value->factor);
  value->factor = 1;
}

weft_multiple weft_value_load(weft_step_list *list, size_t row) {
  const weft_multiple value = {take(list), 1};
  put(list, WEFT_STEP_LOAD, value.slot, row, 1);
  return value;
}

weft_multiple weft_value_zeros(weft_step_list *list) {
  const weft_multiple value = {take(list), 1};
  put(list, WEFT_STEP_SET, value.slot, value.slot, 0);
  return value;
}

void weft_value_store(weft_step_list *list, size_t row, weft_multiple *value) {
  if (value->factor != 1)
    weft_value_settle(list, value);
  put(list, WEFT_STEP_STORE, row, value->slot, 1);
  weft_value_give(list, value);
}

weft_multiple weft_value_times(weft_step_list *list, weft_multiple value, uint8_t c) {
  value.factor = weft_gfw_mul(list->field, value.factor, c);
  if (weft_is_zero(value))
    return WEFT_ZERO;
  list->users[value.slot]++;
  return value;
}

void weft_value_scale(weft_step_list *list, weft_multiple *value, uint8_t c) {
  if (c == 0)
    weft_value_give(list, value);
  else
    value->factor = weft_gfw_mul(list->field, value->factor, c);
}

void weft_value_add(weft_step_list *list, weft_multiple *to, weft_multiple from, uint8_t c) {
  const uint8_t factor = weft_gfw_mul(list->field, from.factor, c);
  if (factor == 0)
    return;
  if (weft_is_zero(*to)) {
    *to = weft_value_times(list, from, c);
  } else if (to->slot == from.slot) {
    if (to->factor == factor)
      weft_value_give(list, to);
    else
      to->factor ^= factor;
  } else {
    move(list, to, 1);
    put(list, WEFT_STEP_ADD, to->slot, from.slot, weft_gfw_div(list->field, factor, to->factor));
  }
}

// Gives both values slots of their own and the same factor.
static void align(weft_step_list *list, weft_multiple *a, weft_multiple *b) {
  if (list->users[a->slot] > 1 && list->users[b->slot] == 1) {
    align(list, b, a);
    return;
  }
  move(list, a, 1);
  move(list, b, weft_gfw_div(list->field, b->factor, a->factor));
  b->factor = a->factor;
}

static bool of_one_slot(weft_multiple low, weft_multiple high) {
  return weft_is_zero(low) || weft_is_zero(high) || low.slot == high.slot;
}

void weft_value_inverse(weft_step_list *list, weft_multiple *low, weft_multiple *high, uint8_t w) {
  if (of_one_slot(*low, *high)) {
    weft_value_add(list, high, *low, 1);
    weft_value_add(list, low, *high, w);
    return;
  }
  align(list, low, high);
  put(list, WEFT_STEP_INVERSE, low->slot, high->slot, w);
}

void weft_value_forward(weft_step_list *list, weft_multiple *low, weft_multiple *high, uint8_t w) {
  if (of_one_slot(*low, *high)) {
    weft_value_add(list, low, *high, w);
    weft_value_add(list, high, *low, 1);
    return;
  }
  align(list, low, high);
  put(list, WEFT_STEP_FORWARD, low->slot, high->slot, w);
}
