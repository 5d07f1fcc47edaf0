// SPDX-License-Identifier: Apache-2.0
#include "sim/crowd.h"

#include <stdlib.h>
#include <string.h>

#include "sim/core/reserve.h"

static uint32_t peer_at(const weft_sim_crowd *c, uint32_t index) {
  return c->peers ? c->peers[index] : index;
}

static uint32_t came_by(const weft_sim_crowd *c, int64_t now_us) {
  uint32_t low = 0, high = c->count; // the first that comes later
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (c->arrive_us[peer_at(c, middle)] <= now_us)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static weft_sim_look last_look(const weft_sim_crowd *c) {
  return c->look_count ? c->looks[c->look_count - 1] : (weft_sim_look){0};
}

static weft_status take_look(weft_sim_crowd *c, int64_t now_us, uint32_t came) {
  const weft_sim_look last = last_look(c);
  const size_t most = last.count + (came - last.came);
  weft_sim_look look = {.time_us = now_us, .came = came, .first = c->there_count};
  WEFT_TRY(weft_sim_reserve(&c->looks, &c->look_room, c->look_count, 1, sizeof *c->looks));
  WEFT_TRY(weft_sim_reserve(&c->there, &c->there_room, c->there_count, most, sizeof *c->there));
  for (size_t i = 0; i < most; i++) {
    const uint32_t peer = i < last.count ? c->there[last.first + i]
                                         : peer_at(c, last.came + (uint32_t)(i - last.count));
    if (c->leave_us[peer] > now_us)
      c->there[look.first + look.count++] = peer;
  }
  c->there_count += look.count;
  c->looks[c->look_count++] = look;
  return WEFT_OK;
}

static int ascending(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

void weft_sim_sort_times(int64_t *times_us, size_t count) {
  qsort(times_us, count, sizeof *times_us, ascending);
}

static weft_status take_looks(weft_sim_crowd *c, const int64_t *leaves_us, size_t count) {
  uint32_t came = 0;
  for (size_t i = 0, gone = 0; i < count;) {
    const int64_t now_us = leaves_us[i];
    for (; i < count && leaves_us[i] == now_us; i++)
      gone++;
    while (came < c->count && c->arrive_us[peer_at(c, came)] <= now_us)
      came++;
    const weft_sim_look last = last_look(c);
    if (2 * gone < last.count + (size_t)(came - last.came))
      continue;
    WEFT_TRY(take_look(c, now_us, came));
    gone = 0;
  }
  return WEFT_OK;
}

weft_status weft_sim_crowd_init(weft_sim_crowd *c, const int64_t *arrive_us,
                                const int64_t *leave_us, const uint32_t *peers, uint32_t count) {
  *c = (weft_sim_crowd){
      .arrive_us = arrive_us, .leave_us = leave_us, .peers = peers, .count = count};
  size_t leaving = 0;
  for (uint32_t i = 0; i < count; i++)
    leaving += leave_us[peer_at(c, i)] != INT64_MAX;
  if (leaving == 0)
    return WEFT_OK;
  int64_t *leaves_us = malloc(leaving * sizeof *leaves_us);
  if (!leaves_us)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0, at = 0; i < count; i++)
    if (leave_us[peer_at(c, i)] != INT64_MAX)
      leaves_us[at++] = leave_us[peer_at(c, i)];
  weft_sim_sort_times(leaves_us, leaving);
  const weft_status status = take_looks(c, leaves_us, leaving);
  free(leaves_us);
  return status;
}

void weft_sim_crowd_clear(weft_sim_crowd *c) {
  free(c->looks);
  free(c->there);
  *c = (weft_sim_crowd){0};
}

uint32_t weft_sim_crowd_draw(const weft_sim_crowd *c, int64_t now_us, weft_sim_rng *rng) {
  size_t low = 0, high = c->look_count; // the first look that is later
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (c->looks[middle].time_us <= now_us)
      low = middle + 1;
    else
      high = middle;
  }
  const weft_sim_look look = low ? c->looks[low - 1] : (weft_sim_look){0};
  const uint32_t since = came_by(c, now_us) - look.came;
  if (look.count + since == 0)
    return WEFT_SIM_NOBODY_CAME;
  const uint32_t at = (uint32_t)weft_sim_rng_below(rng, (uint64_t)look.count + since);
  return at < look.count ? c->there[look.first + at] : peer_at(c, look.came + (at - look.count));
}
