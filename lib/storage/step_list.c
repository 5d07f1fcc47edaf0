// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/step_list.h"

#include <string.h>

void weft_step_list_begin(weft_step_list *list, size_t slots_most) {
  list->slots_most = slots_most;
  list->cost_most = SIZE_MAX;
  list->failed = false;
  list->slots = list->cost = list->count = 0;
  memset(list->taken, 0, sizeof list->taken);
}

static void add_work(weft_step_work *work, const weft_step *one) {
  const bool moves = one->kind == WEFT_STEP_LOAD || one->kind == WEFT_STEP_STORE;
  const bool butterfly = one->kind == WEFT_STEP_INVERSE || one->kind == WEFT_STEP_FORWARD;
  work->products += !moves && one->c > 1;
  work->sums += butterfly;
  work->sums += (butterfly || one->kind == WEFT_STEP_ADD) && one->c > 0;
}

void weft_step_put(weft_step_list *list, weft_step_kind kind, int to, int from, uint8_t c) {
  if (list->failed || list->count == WEFT_STEP_LIST_MOST || to < 0 || from < 0) {
    list->failed = true;
    return;
  }
  weft_step_work work = {0, 0};
  list->step[list->count] = (weft_step){(uint8_t)kind, (uint8_t)to, (uint8_t)from, c};
  add_work(&work, &list->step[list->count++]);
  list->cost += 2 * work.products + work.sums;
  list->failed = list->cost > list->cost_most;
}

int16_t weft_slot_take(weft_step_list *list) {
  size_t slot = 0;
  while (slot < list->slots_most && list->taken[slot])
    slot++;
  if (slot == list->slots_most) {
    list->failed = true;
    return 0;
  }
  list->taken[slot] = true;
  list->slots = slot + 1 > list->slots ? slot + 1 : list->slots;
  return (int16_t)slot;
}

void weft_slot_give(weft_step_list *list, int16_t *slot) {
  if (*slot != WEFT_NO_SLOT)
    list->taken[*slot] = false;
  *slot = WEFT_NO_SLOT;
}

int16_t weft_slot_copy(weft_step_list *list, int16_t from, uint8_t c) {
  const int16_t to = weft_slot_take(list);
  weft_step_put(list, WEFT_STEP_SET, to, from, c);
  return to;
}

void weft_slot_scale(weft_step_list *list, int16_t slot, uint8_t c) {
  if (c != 1)
    weft_step_put(list, WEFT_STEP_SET, slot, slot, c);
}

void weft_slot_add(weft_step_list *list, int16_t *to, int16_t *from, uint8_t c, bool moves) {
  if (*to != WEFT_NO_SLOT)
    weft_step_put(list, WEFT_STEP_ADD, *to, *from, c);
  else if (moves) {
    *to = *from;
    *from = WEFT_NO_SLOT;
    weft_slot_scale(list, *to, c);
  } else
    *to = weft_slot_copy(list, *from, c);
}

weft_step_work weft_steps_work(const weft_step *steps, size_t count) {
  weft_step_work work = {0, 0};
  for (size_t i = 0; i < count; i++)
    add_work(&work, &steps[i]);
  return work;
}
