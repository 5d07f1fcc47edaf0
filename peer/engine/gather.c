// SPDX-License-Identifier: Apache-2.0
// Catching up (bulk and VoD): full segments wait a moment for others and are decoded by one call of
// the codec, which may work in parallel with the engine. Their hashes are checked when it is done.
#include "peer/engine/internal.h"

enum { WAIT_US = 5000, LOOK_US = 500 };

static bool on(const weft_engine *e) {
  return e->options->gather > 1 && e->codec->decode && !weft_is_live(e) && e->options->trust;
}

static size_t count(const weft_engine *e, weft_gathering state) {
  size_t found = 0;
  for (size_t at = 0; at < e->window; at++)
    found += e->slots[at].gathering == state;
  return found;
}

bool weft_gather_take(weft_engine *e, uint64_t segment, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, segment);
  if (slot->gathering == WEFT_GATHERING_DONE) {
    slot->gathering = WEFT_GATHERING_NONE;
    return false;
  }
  if (!on(e) || slot->gathering != WEFT_GATHERING_NONE)
    return slot->gathering != WEFT_GATHERING_NONE;
  slot->gathering = WEFT_GATHERING_WAITS;
  if (e->gather_us == WEFT_ENGINE_NEVER)
    e->gather_us = now_us + WAIT_US;
  if (count(e, WEFT_GATHERING_WAITS) >= e->options->gather)
    e->gather_us = now_us;
  return true;
}

// Passes those that wait to the codec, the oldest first.
static void begin(weft_engine *e) {
  void *run[WEFT_ENGINE_MAX_GATHER];
  weft_slot *slots[WEFT_ENGINE_MAX_GATHER];
  size_t many = 0;
  for (uint64_t s = e->tail; s < e->tail + e->window && many < e->options->gather; s++) {
    weft_slot *slot = weft_window_slot(e, s);
    if (slot->gathering != WEFT_GATHERING_WAITS)
      continue;
    slots[many] = slot;
    run[many++] = slot->segment;
  }
  if (many == 0 || e->codec->decode(e->codec->user, run, many) != WEFT_OK)
    return; // it is busy, or there is no memory: they keep waiting
  for (size_t i = 0; i < many; i++)
    slots[i]->gathering = WEFT_GATHERING_WORKS;
  e->statistics.gathered_runs++;
  e->statistics.gathered_segments += many;
}

static void finish(weft_engine *e, int64_t now_us) {
  for (uint64_t s = e->tail; s < e->tail + e->window; s++) {
    weft_slot *slot = weft_window_slot(e, s);
    if (!weft_window_has(e, s) || slot->gathering != WEFT_GATHERING_WORKS ||
        e->codec->decoding(e->codec->user, slot->segment))
      continue;
    slot->gathering = WEFT_GATHERING_DONE;
    weft_data_full(e, s, now_us);
  }
}

void weft_gather_tick(weft_engine *e, int64_t now_us) {
  if (now_us < e->gather_us)
    return;
  finish(e, now_us);
  if (count(e, WEFT_GATHERING_WAITS))
    begin(e);
  finish(e, now_us); // the codec may have finished at once
  const bool more = count(e, WEFT_GATHERING_WORKS) || count(e, WEFT_GATHERING_WAITS);
  e->gather_us = more ? now_us + LOOK_US : WEFT_ENGINE_NEVER;
}
