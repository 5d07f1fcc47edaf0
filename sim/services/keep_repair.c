// SPDX-License-Identifier: Apache-2.0
// Repair in the store: a peer that is away too long counts as gone, and the library's recovery
// rebuilds its parts elsewhere from those that are online.
#include <string.h>

#include "sim/services/keeping.h"

// Whether the other peers believe that the part still exists.
static bool counts(const weft_sim_keeping *s, const weft_sim_way *w, uint32_t object, uint32_t part,
                   int64_t now_us) {
  const uint32_t holder = *weft_sim_holder_of(w, object, part);
  if (holder == WEFT_SIM_NO_HOLDER)
    return now_us < *weft_sim_counted_until_of(w, object, part);
  return s->peers[holder].online || now_us - s->peers[holder].since_us < s->p->repair_after_us;
}

// Begins a repair if too few parts are counted. It moves the needed parts to one peer, which
// rebuilds the missing ones and keeps one of them; a copy moves whole from one peer to another.
static weft_status look_at(weft_sim_keeping *s, size_t kind, uint32_t object, int64_t now_us) {
  weft_sim_way *w = &s->ways[kind];
  if (w->lost[object] || w->under_repair[object])
    return WEFT_OK;
  uint32_t counted = 0;
  for (uint32_t i = 0; i < w->parts; i++)
    counted += counts(s, w, object, i, now_us);
  const uint32_t below =
      kind == WEFT_SIM_CODED && s->p->repair_below ? s->p->repair_below : w->parts;
  if (counted >= below || weft_sim_online_parts(s, w, object) < w->needed)
    return WEFT_OK; // enough, or too few to begin now; the next hour checks again
  const uint32_t missing = w->parts - counted;
  const uint64_t moved =
      kind == WEFT_SIM_CODED ? (w->needed + missing - 1) * w->part_bytes : missing * w->part_bytes;
  w->under_repair[object] = true;
  w->repairs++;
  w->repair_bytes += moved;
  w->hour_bytes += moved;
  const double us = (double)moved * 8e6 / (double)s->p->repair_bits_per_s;
  return weft_sim_agenda_put(&s->agenda, now_us + (int64_t)us, WEFT_SIM_REPAIRED, object,
                             (uint32_t)kind);
}

// Makes missing parts from those that are online.
static weft_status make_parts(weft_sim_keeping *s, weft_sim_way *w, size_t kind, uint32_t object,
                              const uint8_t *missing, size_t count) {
  if (kind == WEFT_SIM_COPIED) {
    for (uint32_t i = 0; i < w->parts; i++)
      if (weft_sim_is_online(s, *weft_sim_holder_of(w, object, i))) {
        for (size_t m = 0; m < count; m++)
          memcpy(weft_sim_bytes_of(w, object, missing[m]), weft_sim_bytes_of(w, object, i),
                 w->part_bytes);
        return WEFT_OK;
      }
    return WEFT_OK;
  }
  uint8_t absent[WEFT_SIM_SHARDS]; // must not be read: missing, or the peer is away
  uint8_t *shards[WEFT_SIM_SHARDS];
  size_t absent_count = 0;
  for (uint32_t i = 0; i < w->parts; i++) {
    shards[i] = weft_sim_bytes_of(w, object, i);
    if (!weft_sim_is_online(s, *weft_sim_holder_of(w, object, i)))
      absent[absent_count++] = (uint8_t)i;
  }
  const weft_stripe stripe = {.shards = shards, .bytes = w->part_bytes, .mem = WEFT_MEM_HOST};
  const weft_erasures erasures = {
      .lost = absent, .lost_count = absent_count, .wanted = missing, .wanted_count = count};
  return weft_code_recover(s->code, &erasures, &stripe, 1, NULL);
}

weft_status weft_sim_end_repair(weft_sim_keeping *s, size_t kind, uint32_t object, int64_t now_us) {
  weft_sim_way *w = &s->ways[kind];
  uint8_t missing[WEFT_SIM_SHARDS];
  size_t count = 0;
  w->under_repair[object] = false;
  if (w->lost[object] || weft_sim_online_parts(s, w, object) < w->needed)
    return WEFT_OK; // in vain: a peer left meanwhile; a later look tries again
  for (uint32_t i = 0; i < w->parts; i++)
    if (!counts(s, w, object, i, now_us))
      missing[count++] = (uint8_t)i;
  // A part stays missing if no peer is left to hold it. If a peer returns after its part was
  // rebuilt elsewhere, it is too late.
  size_t placed = 0;
  uint32_t to[WEFT_SIM_SHARDS];
  for (; placed < count && (to[placed] = weft_sim_place(s, w, object)) != WEFT_SIM_NO_HOLDER;
       placed++)
    *weft_sim_holder_of(w, object, missing[placed]) = to[placed]; // no peer gets two
  for (size_t m = 0; m < placed; m++)
    *weft_sim_holder_of(w, object, missing[m]) = WEFT_SIM_NO_HOLDER; // must not be read
  if (placed > 0)
    WEFT_TRY(make_parts(s, w, kind, object, missing, placed));
  for (size_t m = 0; m < placed; m++) {
    *weft_sim_holder_of(w, object, missing[m]) = to[m];
    *weft_sim_intact_of(w, object, missing[m]) = true;
  }
  w->repaired_parts += placed;
  return WEFT_OK;
}

weft_status weft_sim_look_at_all(weft_sim_keeping *s, int64_t now_us) {
  for (size_t k = 0; k < WEFT_SIM_WAYS; k++)
    for (uint32_t o = 0; o < s->p->objects; o++)
      WEFT_TRY(look_at(s, k, o, now_us));
  return WEFT_OK;
}

// Whether a part that nobody holds ceases to be counted now.
static bool counted_no_longer(const weft_sim_way *w, uint32_t object, int64_t now_us) {
  for (uint32_t i = 0; i < w->parts; i++)
    if (*weft_sim_holder_of(w, object, i) == WEFT_SIM_NO_HOLDER &&
        *weft_sim_counted_until_of(w, object, i) == now_us)
      return true;
  return false;
}

weft_status weft_sim_look_after(weft_sim_keeping *s, uint32_t who, int64_t now_us) {
  const bool away = !s->peers[who].online &&
                    now_us - s->peers[who].since_us >= s->p->repair_after_us; // not back since
  for (size_t k = 0; k < WEFT_SIM_WAYS; k++)
    for (uint32_t o = 0; o < s->p->objects; o++)
      if ((away && weft_sim_holds_one(&s->ways[k], o, who)) ||
          counted_no_longer(&s->ways[k], o, now_us))
        WEFT_TRY(look_at(s, k, o, now_us));
  return WEFT_OK;
}
