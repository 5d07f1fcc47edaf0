// SPDX-License-Identifier: Apache-2.0
// What the engine does with a datagram.
#include "peer/engine/internal.h"

// Not of use, but no fault of the sender's. A segment that is complete is braked once more, should
// the brake have been lost.
static weft_status useless(weft_engine *engine, weft_neighbour *neighbour, uint64_t segment,
                           int64_t now_us) {
  if (segment < engine->tail || weft_window_slot(engine, segment)->complete) {
    engine->statistics.received_late++;
    if (now_us - neighbour->brake_us >= WEFT_BRAKE_EVERY_US) {
      neighbour->brake_us = now_us;
      if (weft_window_has(engine, segment))
        weft_neighbour_brake(engine, neighbour, segment);
      else
        neighbour->map_due = true;
    }
  } else {
    engine->statistics.received_dependent++;
  }
  return WEFT_DEPENDENT;
}

static weft_status take_packet(weft_engine *engine, weft_neighbour *neighbour,
                               const weft_packet *packet, int64_t now_us) {
  const uint64_t segment = packet->id.segment;
  const bool late = segment < engine->tail;
  const uint32_t blocks = weft_window_blocks(engine, segment);
  if (!late && (packet->id.blocks > blocks || (engine->end_known && packet->id.blocks != blocks)))
    return WEFT_E_FOREIGN;
  engine->statistics.received_packets++;
  engine->statistics.received_payload_bytes += packet->id.block_bytes;
  engine->statistics.received_header_bytes +=
      weft_packet_session_bytes(&packet->id, packet->mode) - packet->id.block_bytes;
  if (late)
    return useless(engine, neighbour, segment, now_us);
  // A short segment is the stream's last; before the end is known its shape cannot be trusted.
  if (!weft_window_has(engine, segment) || packet->id.blocks != blocks) {
    engine->statistics.received_outside++;
    return WEFT_DEPENDENT;
  }
  weft_slot *slot = weft_window_slot(engine, segment);
  if (slot->complete)
    return useless(engine, neighbour, segment, now_us);
  if (!slot->segment)
    WEFT_TRY(
        engine->codec.open_sink(engine->codec.user, &packet->id, &engine->rng, &slot->segment));
  const weft_status status = engine->codec.add(engine->codec.user, slot->segment, packet);
  if (status == WEFT_DEPENDENT)
    return useless(engine, neighbour, segment, now_us);
  WEFT_TRY(status);
  engine->statistics.received_innovative++;
  const size_t rank = engine->codec.rank(engine->codec.user, slot->segment);
  engine->held[segment % engine->options.window].rank = (uint16_t)rank;
  weft_window_learn_horizon(engine, segment + 1);
  weft_engine_changed(engine);
  if (rank == blocks)
    weft_window_complete(engine, segment);
  return WEFT_OK;
}

static weft_status take_hello(weft_engine *engine, size_t index, const weft_hello *hello,
                              int64_t now_us) {
  weft_neighbour *neighbour = &engine->neighbours[index];
  const weft_engine_options *own = &engine->options;
  if (hello->stream != own->stream || hello->blocks != own->blocks ||
      hello->block_bytes != own->block_bytes)
    return WEFT_E_FOREIGN;
  weft_neighbour_heard(neighbour, &hello->stamps, now_us);
  neighbour->answer_due = hello->answer_wanted;
  if (neighbour->state == WEFT_NEIGHBOUR_GREETING) {
    neighbour->accept_end = hello->window;
    weft_neighbour_open(engine, index);
    for (uint64_t s = engine->tail; s - engine->tail < own->window; s++)
      weft_window_refresh(engine, neighbour, s);
  }
  return WEFT_OK;
}

static weft_status take_map(weft_engine *engine, size_t index, const weft_map *map,
                            int64_t now_us) {
  weft_neighbour *neighbour = &engine->neighbours[index];
  if (neighbour->state == WEFT_NEIGHBOUR_GREETING)
    return WEFT_E_STATE; // its HELLO was lost: ours is repeated until answered
  if (map->end_known)
    WEFT_TRY(weft_window_learn_end(engine, map->end_bytes));
  if (engine->end_known && map->horizon > engine->horizon)
    return WEFT_E_FOREIGN; // past the end
  weft_window_learn_horizon(engine, map->horizon);
  weft_neighbour_heard(neighbour, &map->stamps, now_us);
  weft_flight_forget(engine, neighbour, now_us - neighbour->round_trip_us);
  neighbour->knows_end = neighbour->knows_end || map->end_known;
  // An older map may come after a newer one; what was complete stays so, and ranks never fall.
  if (map->first > neighbour->first_missing)
    neighbour->first_missing = map->first;
  if (map->first + map->count > neighbour->accept_end)
    neighbour->accept_end = map->first + map->count;
  engine->policy_view[index].degree = map->degree;
  for (uint64_t s = engine->tail; s - engine->tail < engine->options.window; s++) {
    weft_policy_want *want = &neighbour->wants[s % engine->options.window];
    if (s >= map->first && s - map->first < map->count) {
      const uint16_t rank = weft_map_rank(map, (size_t)(s - map->first));
      want->rank = rank > want->rank ? rank : want->rank;
    }
    weft_window_refresh(engine, neighbour, s);
  }
  engine->idle = false;
  weft_window_advance(engine);
  return WEFT_OK;
}

static void take_brake(weft_engine *engine, weft_neighbour *neighbour, uint64_t segment) {
  if (!weft_window_has(engine, segment))
    return;
  neighbour->wants[segment % engine->options.window].rank =
      (uint16_t)weft_window_blocks(engine, segment);
  weft_window_refresh(engine, neighbour, segment);
  engine->idle = false; // others may be served instead
  weft_window_advance(engine);
}

static void take_bye(weft_engine *engine, size_t index, weft_bye_reason reason) {
  weft_neighbour *neighbour = &engine->neighbours[index];
  if (reason == WEFT_BYE_LEAVING) {
    weft_neighbour_drop(engine, index, WEFT_LOST_LEFT);
    return;
  }
  neighbour->state = WEFT_NEIGHBOUR_FINISHED;
  weft_neighbour_show(engine, neighbour);
  weft_window_advance(engine);
}

static weft_status take_message(weft_engine *engine, size_t index, const weft_message *message,
                                size_t bytes, int64_t now_us) {
  weft_neighbour *neighbour = &engine->neighbours[index];
  if (message->kind == WEFT_MESSAGE_DATA)
    return take_packet(engine, neighbour, &message->as.data, now_us);
  engine->statistics.received_control++;
  engine->statistics.received_control_bytes += bytes;
  switch (message->kind) {
  case WEFT_MESSAGE_HELLO:
    return take_hello(engine, index, &message->as.hello, now_us);
  case WEFT_MESSAGE_MAP:
    return take_map(engine, index, &message->as.map, now_us);
  case WEFT_MESSAGE_BRAKE:
    take_brake(engine, neighbour, message->as.brake);
    return WEFT_OK;
  case WEFT_MESSAGE_BYE:
    take_bye(engine, index, message->as.bye);
    return WEFT_OK;
  case WEFT_MESSAGE_DATA:
    break;
  }
  return WEFT_E_MALFORMED;
}

weft_status weft_engine_input(weft_engine *engine, size_t neighbour, const uint8_t *datagram,
                              size_t bytes, int64_t now_us) {
  if (neighbour >= engine->options.neighbours_max || (!datagram && bytes))
    return WEFT_E_ARGUMENT;
  weft_neighbour *from = &engine->neighbours[neighbour];
  if (from->state == WEFT_NEIGHBOUR_FREE || from->state == WEFT_NEIGHBOUR_LOST)
    return WEFT_E_STATE;
  weft_message message;
  const weft_status parsed = weft_message_parse(datagram, bytes, engine->options.stream,
                                                engine->options.block_bytes, &message);
  const weft_status status =
      parsed == WEFT_OK ? take_message(engine, neighbour, &message, bytes, now_us) : parsed;
  if (status == WEFT_E_VERSION || status == WEFT_E_MALFORMED || status == WEFT_E_FOREIGN) {
    engine->statistics.refused++;
    engine->statistics.refused_bytes += bytes;
    return status;
  }
  from->heard_us = now_us;
  if (engine->farewell && message.kind != WEFT_MESSAGE_BYE &&
      now_us - from->brake_us >= WEFT_BRAKE_EVERY_US) {
    from->brake_us = now_us;
    from->bye_due = from->state == WEFT_NEIGHBOUR_OPEN;
  }
  return status;
}
