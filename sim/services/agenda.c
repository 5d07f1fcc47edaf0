// SPDX-License-Identifier: Apache-2.0
// A binary heap.
#include "sim/services/agenda.h"

#include <stdlib.h>

#include "sim/core/reserve.h"

static bool before(const weft_sim_entry *a, const weft_sim_entry *b) {
  return a->time_us != b->time_us ? a->time_us < b->time_us : a->order < b->order;
}

weft_status weft_sim_agenda_put(weft_sim_agenda *a, int64_t time_us, uint32_t kind, uint32_t who,
                                uint32_t what) {
  WEFT_TRY(weft_sim_reserve(&a->heap, &a->capacity, a->count, 1, sizeof *a->heap));
  const weft_sim_entry entry = {
      .time_us = time_us, .order = a->order++, .kind = kind, .who = who, .what = what};
  size_t at = a->count++;
  for (; at > 0 && before(&entry, &a->heap[(at - 1) / 2]); at = (at - 1) / 2)
    a->heap[at] = a->heap[(at - 1) / 2];
  a->heap[at] = entry;
  return WEFT_OK;
}

bool weft_sim_agenda_take(weft_sim_agenda *a, weft_sim_entry *out) {
  if (a->count == 0)
    return false;
  *out = a->heap[0];
  const weft_sim_entry last = a->heap[--a->count];
  size_t at = 0;
  for (size_t child = 1; child < a->count; child = 2 * at + 1) {
    child += child + 1 < a->count && before(&a->heap[child + 1], &a->heap[child]);
    if (!before(&a->heap[child], &last))
      break;
    a->heap[at] = a->heap[child];
    at = child;
  }
  if (a->count > 0)
    a->heap[at] = last;
  return true;
}

void weft_sim_agenda_clear(weft_sim_agenda *a) {
  free(a->heap);
  *a = (weft_sim_agenda){0};
}
