// SPDX-License-Identifier: Apache-2.0
// The window of segments: what is held, what neighbours still want of it, and when it moves on.
#include "peer/engine/internal.h"

uint64_t weft_window_total(const weft_engine *engine) {
  const uint64_t segment_bytes = (uint64_t)engine->options.blocks * engine->options.block_bytes;
  return engine->end_bytes / segment_bytes + (engine->end_bytes % segment_bytes != 0);
}

uint32_t weft_window_blocks(const weft_engine *engine, uint64_t segment) {
  const uint32_t n = engine->options.blocks, k = engine->options.block_bytes;
  if (!engine->end_known || (segment + 1) < weft_window_total(engine))
    return n;
  if (segment >= weft_window_total(engine))
    return 0;
  const uint64_t last = engine->end_bytes - segment * ((uint64_t)n * k);
  return (uint32_t)(last / k + (last % k != 0));
}

void weft_engine_changed(weft_engine *engine) {
  engine->idle = false;
  engine->version++;
}

void weft_window_refresh(weft_engine *engine, weft_neighbour *neighbour, uint64_t segment) {
  const size_t at = segment % engine->options.window;
  const uint16_t blocks = (uint16_t)weft_window_blocks(engine, segment);
  weft_policy_want *want = &neighbour->wants[at];
  engine->held[at].blocks = blocks;
  if (segment < neighbour->first_missing)
    want->rank = blocks;
  const bool accepts = segment < neighbour->accept_end && want->rank < blocks;
  want->flags = accepts ? WEFT_WANT_ACCEPTS : 0;
}

static void refresh_all(weft_engine *engine) {
  for (size_t i = 0; i < engine->options.neighbours_max; i++)
    for (uint64_t s = engine->tail; s - engine->tail < engine->options.window; s++)
      weft_window_refresh(engine, &engine->neighbours[i], s);
}

void weft_window_complete(weft_engine *engine, uint64_t segment) {
  weft_slot *slot = weft_window_slot(engine, segment);
  slot->complete = true;
  slot->decoded_event = !engine->self.source;
  engine->statistics.segments++;
  while (weft_window_has(engine, engine->missing) &&
         weft_window_slot(engine, engine->missing)->complete)
    engine->missing++;
  for (size_t i = 0; i < engine->options.neighbours_max && !engine->self.source; i++) {
    weft_neighbour *neighbour = &engine->neighbours[i];
    if (neighbour->state == WEFT_NEIGHBOUR_OPEN)
      weft_neighbour_brake(engine, neighbour, segment);
  }
  weft_window_learn_horizon(engine, segment + 1);
  weft_engine_changed(engine);
}

// Whether nobody needs the segment from here any more.
static bool segment_over(const weft_engine *engine, uint64_t segment) {
  if (segment >= engine->released)
    return false;
  for (size_t i = 0; i < engine->options.neighbours_max; i++) {
    const weft_neighbour *neighbour = &engine->neighbours[i];
    const bool waits =
        neighbour->state == WEFT_NEIGHBOUR_GREETING || neighbour->state == WEFT_NEIGHBOUR_OPEN;
    if (waits && segment >= neighbour->first_missing &&
        neighbour->wants[segment % engine->options.window].rank <
            weft_window_blocks(engine, segment))
      return false;
  }
  return true;
}

void weft_window_advance(weft_engine *engine) {
  const size_t window = engine->options.window;
  while (segment_over(engine, engine->tail)) {
    const size_t at = engine->tail % window;
    engine->codec.close(engine->codec.user, engine->slots[at].segment);
    engine->slots[at] = (weft_slot){0};
    engine->held[at] = (weft_policy_segment){0};
    engine->tail++;
    for (size_t i = 0; i < engine->options.neighbours_max; i++) {
      weft_neighbour *neighbour = &engine->neighbours[i];
      neighbour->wants[at] = (weft_policy_want){0};
      neighbour->brakes_due -= neighbour->brake_due[at];
      neighbour->brake_due[at] = false;
      weft_window_refresh(engine, neighbour, engine->tail + window - 1);
    }
    weft_engine_changed(engine);
  }
  if (weft_engine_finished(engine) && !engine->farewell) {
    engine->farewell = true;
    for (size_t i = 0; i < engine->options.neighbours_max; i++)
      engine->neighbours[i].bye_due = engine->neighbours[i].state == WEFT_NEIGHBOUR_OPEN;
  }
}

weft_status weft_window_learn_end(weft_engine *engine, uint64_t end_bytes) {
  if (engine->end_known)
    return engine->end_bytes == end_bytes ? WEFT_OK : WEFT_E_FOREIGN;
  engine->end_known = true;
  engine->end_bytes = end_bytes;
  if (engine->horizon > weft_window_total(engine)) { // contradicts what was seen
    engine->end_known = false;
    engine->end_bytes = 0;
    return WEFT_E_FOREIGN;
  }
  engine->horizon = weft_window_total(engine);
  refresh_all(engine);
  weft_engine_changed(engine);
  for (size_t i = 0; i < engine->options.neighbours_max; i++) // worth telling at once
    engine->neighbours[i].map_due = engine->neighbours[i].state == WEFT_NEIGHBOUR_OPEN;
  return WEFT_OK;
}

void weft_window_learn_horizon(weft_engine *engine, uint64_t horizon) {
  if (horizon <= engine->horizon)
    return;
  engine->horizon = horizon;
  weft_engine_changed(engine);
}

// --- What the application does with it

bool weft_engine_source_ready(const weft_engine *engine) {
  return engine->self.source && !engine->end_known && weft_window_has(engine, engine->horizon);
}

weft_status weft_engine_source_put(weft_engine *engine, const uint8_t *data, size_t bytes,
                                   int64_t at_us, int64_t now_us) {
  (void)at_us, (void)now_us;
  const size_t k = engine->options.block_bytes, segment_bytes = engine->options.blocks * k;
  if (!weft_engine_source_ready(engine))
    return WEFT_E_STATE;
  if (!data || bytes == 0 || bytes > segment_bytes)
    return WEFT_E_ARGUMENT;
  const uint64_t segment = engine->horizon;
  const weft_segment_id id = {.stream = engine->options.stream,
                              .segment = segment,
                              .blocks = (uint32_t)((bytes + k - 1) / k),
                              .block_bytes = (uint32_t)k};
  weft_slot *slot = weft_window_slot(engine, segment);
  WEFT_TRY(engine->codec.open_source(engine->codec.user, &id, data, bytes, &engine->rng,
                                     &slot->segment));
  engine->held[segment % engine->options.window] =
      (weft_policy_segment){.blocks = (uint16_t)id.blocks, .rank = (uint16_t)id.blocks};
  engine->released = segment + 1;
  weft_window_complete(engine, segment);
  return bytes == segment_bytes
             ? WEFT_OK
             : weft_window_learn_end(engine, segment * (uint64_t)segment_bytes + bytes);
}

weft_status weft_engine_source_end(weft_engine *engine, int64_t now_us) {
  (void)now_us;
  if (!engine->self.source || engine->end_known)
    return WEFT_E_STATE;
  const uint64_t segment_bytes = (uint64_t)engine->options.blocks * engine->options.block_bytes;
  WEFT_TRY(weft_window_learn_end(engine, engine->horizon * segment_bytes));
  weft_window_advance(engine);
  return WEFT_OK;
}

weft_status weft_engine_readable(const weft_engine *engine, uint64_t *segment, size_t *bytes) {
  const uint64_t s = engine->released;
  const uint64_t segment_bytes = (uint64_t)engine->options.blocks * engine->options.block_bytes;
  if (engine->self.source)
    return WEFT_E_STATE;
  if (!weft_window_has(engine, s) || !weft_window_slot(engine, s)->complete)
    return WEFT_PENDING;
  // The last segment known to exist may be the stream's last, whose true length comes with the end.
  if (!engine->end_known && s + 1 >= engine->horizon)
    return WEFT_PENDING;
  const uint64_t left = engine->end_bytes - s * segment_bytes;
  *segment = s;
  *bytes = (size_t)(engine->end_known && left < segment_bytes ? left : segment_bytes);
  return WEFT_OK;
}

weft_status weft_engine_read(weft_engine *engine, size_t offset, size_t bytes, uint8_t *out) {
  uint64_t segment;
  size_t length;
  WEFT_TRY(weft_engine_readable(engine, &segment, &length));
  if (offset > length || bytes > length - offset)
    return WEFT_E_ARGUMENT;
  return engine->codec.read(engine->codec.user, weft_window_slot(engine, segment)->segment, offset,
                            bytes, out);
}

weft_status weft_engine_release(weft_engine *engine) {
  uint64_t segment;
  size_t bytes;
  WEFT_TRY(weft_engine_readable(engine, &segment, &bytes));
  engine->released++;
  weft_window_advance(engine);
  return WEFT_OK;
}

bool weft_engine_done(const weft_engine *engine) {
  return engine->end_known && engine->released >= weft_window_total(engine);
}

bool weft_engine_finished(const weft_engine *engine) {
  if (!weft_engine_done(engine) || engine->tail < weft_window_total(engine))
    return false;
  for (size_t i = 0; i < engine->options.neighbours_max; i++) {
    const weft_neighbour *neighbour = &engine->neighbours[i];
    if (neighbour->state == WEFT_NEIGHBOUR_GREETING ||
        (neighbour->state == WEFT_NEIGHBOUR_OPEN && !neighbour->knows_end))
      return false;
  }
  return true;
}
