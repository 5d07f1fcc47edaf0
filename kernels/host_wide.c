// SPDX-License-Identifier: Apache-2.0
// Finds acts that are the levels of one transform of 16 or 8 rows, which a technique with enough
// registers does in one pass (host_steps.h). host_acts.c makes them one after the other.
#include "kernels/host_steps.h"

// Returns whether the last four acts end alike. c[3] is 0 where nothing joins.
static bool same_ends(const weft_act *last) {
  bool same = true;
  for (size_t j = 1; j < 4; j++)
    same = same && last[j].kind == last->kind && last[j].c[3] == last->c[3];
  return same;
}

// Returns whether the acts from `act` on, `fours` of the first two levels and four of the others,
// are one transform.
static bool is_transform(const weft_act *act, size_t fours) {
  const weft_act *const last = act + fours;
  const bool inverse = act->kind == WEFT_ACT_INVERSE4;
  const uint8_t two = inverse ? WEFT_ACT_INVERSE : WEFT_ACT_FORWARD;
  if (last->kind != (fours == 4 ? act->kind : two) || !same_ends(last))
    return false;
  for (size_t i = 0; i < fours; i++) {
    if (act[i].kind != act->kind || act[i].joins)
      return false;
    for (size_t j = 0; j < 4; j++)
      if (act[i].out[j] >= WEFT_PLACE_ZERO || last[j].in[i] != act[i].out[j])
        return false;
  }
  return true;
}

// Returns whether the transform's slots are consecutive: those in which an inverse transform leaves
// its results, adding all or none of them to what is there, and those that a forward one reads.
static bool has_slots(const weft_act *act, size_t fours) {
  const weft_act *const last = act + fours;
  const bool inverse = act->kind == WEFT_ACT_INVERSE4;
  const size_t first = inverse ? last->out[0] : act->in[0];
  const bool adds = last->joins && last->more[0] != WEFT_PLACE_ZERO;
  for (size_t i = 0; i < fours; i++)
    for (size_t j = 0; j < 4; j++) {
      const size_t row = inverse ? j + 4 * i : i + fours * j;
      const uint16_t slot = inverse ? last[j].out[i] : act[i].in[j];
      if (slot != first + row || slot >= WEFT_PLACE_ZERO)
        return false;
      if (inverse && last->joins && last[j].more[i] != (adds ? slot : WEFT_PLACE_ZERO))
        return false;
    }
  return true;
}

// Adds an act's products and sums to `work`, counted as those of its steps would be.
static void count_act(const weft_act *act, weft_acts_work *work) {
  const bool four = act->kind == WEFT_ACT_INVERSE4 || act->kind == WEFT_ACT_FORWARD4;
  const size_t rows = four ? 4 : 2;
  for (size_t c = 0; c < (four ? 3 : 1); c++) {
    const size_t butterflies = c == 2 ? 2 : 1;
    work->products += act->c[c] > 1 ? butterflies : 0;
    work->sums += butterflies * (act->c[c] > 0 ? 2 : 1);
  }
  if (act->joins) {
    work->products += act->c[3] > 1 ? rows : 0;
    work->sums += act->more[0] != WEFT_PLACE_ZERO ? rows : 0;
  }
}

static void count_transform(weft_acts *acts, const weft_act *act) {
  const size_t size = act->wide / 8u - 1;
  acts->wide[size].rows += act->wide;
  for (size_t i = 0; i < act->wide / 4u + 4; i++)
    count_act(act + i, &acts->wide[size].work);
}

void weft_acts_widen(weft_acts *acts) {
  for (size_t at = 0; at < acts->count; at++) {
    weft_act *act = &acts->act[at];
    if (act->kind != WEFT_ACT_INVERSE4 && act->kind != WEFT_ACT_FORWARD4)
      continue;
    for (size_t fours = 4; fours >= 2 && !act->wide; fours -= 2)
      if (acts->count - at >= fours + 4 && is_transform(act, fours) && has_slots(act, fours))
        act->wide = (uint8_t)(4 * fours);
    if (act->wide) {
      count_transform(acts, act);
      at += act->wide / 4u + 3;
    }
  }
}
