// SPDX-License-Identifier: Apache-2.0
// How the stream enters at the source, and leaves at a receiver.
#include "peer/engine/internal.h"

// --- Source

bool weft_engine_source_ready(const weft_engine *e) {
  return e->self.source && !weft_loads(e) && !e->end_known &&
         (weft_is_paced(e) || weft_window_tail_wanted(e) + e->window > e->horizon);
}

weft_status weft_source_open(weft_engine *e, uint64_t segment, const uint8_t *data, size_t bytes) {
  const size_t k = e->options->block_bytes;
  weft_slot *slot = weft_window_slot(e, segment);
  const weft_segment_id id = {.stream = e->options->stream,
                              .segment = segment,
                              .blocks = (uint32_t)((bytes + k - 1) / k),
                              .block_bytes = (uint32_t)k};
  WEFT_TRY(e->codec->open_source(e->codec->user, &id, data, bytes, &e->self.rng, &slot->segment));
  weft_window_held(e, segment)->blocks = (uint16_t)id.blocks;
  slot->bytes = (uint32_t)bytes;
  return WEFT_OK;
}

// The first segment that a source keeps when this segment comes, if the stream plays and so waits
// for no peer. Live, a wide window keeps only what may still be played, not what was due long ago.
static uint64_t kept_from(const weft_engine *e, uint64_t segment, int64_t at_us) {
  enum { ALWAYS = 64, SECOND_US = 1000000 };
  uint64_t first = segment >= e->window ? segment - e->window + 1 : 0;
  first = first > e->tail ? first : e->tail;
  if (!weft_is_live(e))
    return first;
  while (first + ALWAYS <= segment &&
         weft_segment_at(e, first) + 2 * weft_lag_us(e) + SECOND_US < at_us)
    first++;
  return first;
}

weft_status weft_engine_source_put(weft_engine *e, const uint8_t *data, size_t bytes, int64_t at_us,
                                   int64_t now_us) {
  const size_t segment_bytes = (size_t)weft_segment_bytes(e);
  if (!weft_engine_source_ready(e))
    return WEFT_E_STATE;
  if (!data || bytes == 0 || bytes > segment_bytes || at_us < 0)
    return WEFT_E_ARGUMENT;
  const uint64_t segment = e->horizon;
  if (!weft_is_paced(e))
    weft_window_move(e, weft_window_tail_wanted(e));
  else
    weft_window_move(e, kept_from(e, segment, at_us));
  WEFT_TRY(weft_source_open(e, segment, data, bytes));
  const weft_status status =
      weft_manifest_make(e, segment, data, bytes, at_us, bytes < segment_bytes, now_us);
  if (status != WEFT_OK) {
    weft_window_place(e, segment);
    return status;
  }
  if (weft_checksums_on(e))
    weft_window_slot(e, segment)->next_reveal_us = now_us + e->options->checksum_us;
  e->released = segment + 1;
  weft_window_complete(e, segment, now_us);
  return bytes == segment_bytes
             ? WEFT_OK
             : weft_window_learn_end(e, segment * (uint64_t)segment_bytes + bytes);
}

weft_status weft_engine_source_end(weft_engine *e, int64_t now_us) {
  if (!e->self.source || e->end_known)
    return WEFT_E_STATE;
  (void)now_us;
  WEFT_TRY(weft_manifest_end(e, e->horizon, e->horizon * weft_segment_bytes(e)));
  WEFT_TRY(weft_window_learn_end(e, e->horizon * weft_segment_bytes(e)));
  if (e->degree || e->horizon == 0) // or it would finish before its first peer comes
    weft_window_advance(e);
  return WEFT_OK;
}

// --- Receiver

weft_status weft_engine_readable(const weft_engine *e, uint64_t *segment, size_t *bytes) {
  const uint64_t s = e->released;
  if (e->self.source)
    return WEFT_E_STATE;
  if (weft_is_paced(e) && s >= e->play)
    return WEFT_PENDING; // not due yet
  if (!e->started || !weft_window_has(e, s) || !weft_window_slot(e, s)->complete)
    return WEFT_PENDING;
  // Without a manifest, the last segment known to exist may be the stream's last, whose true length
  // comes with the end.
  if (!weft_window_slot(e, s)->manifest && !e->end_known && s + 1 >= e->horizon)
    return WEFT_PENDING;
  *segment = s;
  *bytes = weft_window_bytes(e, s);
  return WEFT_OK;
}

weft_status weft_engine_read(weft_engine *e, size_t offset, size_t bytes, uint8_t *out) {
  uint64_t segment;
  size_t length;
  WEFT_TRY(weft_engine_readable(e, &segment, &length));
  if (offset > length || bytes > length - offset)
    return WEFT_E_ARGUMENT;
  return e->codec->read(e->codec->user, weft_window_slot(e, segment)->segment, offset, bytes, out);
}

weft_status weft_engine_release(weft_engine *e) {
  uint64_t segment;
  size_t bytes;
  WEFT_TRY(weft_engine_readable(e, &segment, &bytes));
  e->released++;
  while (weft_window_has(e, e->released) && weft_window_slot(e, e->released)->skipped)
    e->released++;
  weft_window_advance(e);
  return WEFT_OK;
}

weft_status weft_engine_seek(weft_engine *e, uint64_t segment, int64_t now_us) {
  if (e->self.source || weft_is_live(e) || e->farewell)
    return WEFT_E_STATE;
  if (segment > WEFT_MESSAGE_MAX_SEGMENT || (e->end_known && segment > weft_window_total(e)))
    return WEFT_E_ARGUMENT;
  weft_rereads_end(e); // what the application was given may have gaps
  if (e->started && segment >= e->tail && segment - e->tail < e->window) {
    for (uint64_t s = e->tail; s < e->tail + e->window; s++)
      weft_window_slot(e, s)->skipped = false;
    e->released = e->play = e->missing = segment; // what is already here stays
    e->epoch++;
    weft_window_in_order(e);
    weft_window_advance(e);
  } else {
    weft_window_jump(e, segment);
  }
  if (e->stalled)
    e->statistics.stalled_us += now_us - e->stall_us;
  e->started = true;
  e->playing = e->stalled = false;
  for (size_t i = 0; i < e->used; i++)
    if (e->neighbours[i].state == WEFT_NEIGHBOUR_OPEN)
      weft_neighbour_due(e, i, WEFT_DUE_MAP);
  weft_exchange_sought(e, now_us);
  weft_engine_changed(e);
  return WEFT_OK;
}
