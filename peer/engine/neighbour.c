// SPDX-License-Identifier: Apache-2.0
// Neighbours: coming and going, round trips, and what is on its way to each.
#include "peer/engine/internal.h"

weft_status weft_engine_add_neighbour(weft_engine *engine, const weft_neighbour_options *options,
                                      int64_t now_us, size_t *neighbour) {
  (void)options;
  for (size_t i = 0; i < engine->options.neighbours_max; i++) {
    weft_neighbour *n = &engine->neighbours[i];
    if (n->state != WEFT_NEIGHBOUR_FREE)
      continue;
    *n = (weft_neighbour){.state = WEFT_NEIGHBOUR_GREETING,
                          .wants = n->wants,
                          .brake_due = n->brake_due,
                          .heard_us = now_us,
                          .hello_us = now_us,
                          .map_us = now_us,
                          .brake_us = now_us,
                          .round_trip_us = WEFT_ROUND_TRIP_GUESS_US};
    n->hello_due = true;
    for (size_t s = 0; s < engine->options.window; s++) {
      n->wants[s] = (weft_policy_want){0};
      n->brake_due[s] = false;
    }
    engine->policy_view[i] = (weft_policy_neighbour){
        .degree = 1, .wants = n->wants, .count = (uint32_t)engine->options.window};
    engine->degree++;
    *neighbour = i;
    return WEFT_OK;
  }
  return WEFT_E_STATE;
}

void weft_neighbour_show(weft_engine *engine, const weft_neighbour *neighbour) {
  engine->policy_view[neighbour - engine->neighbours].open =
      neighbour->state == WEFT_NEIGHBOUR_OPEN && neighbour->flight_count < WEFT_FLIGHT_BURSTS;
}

void weft_neighbour_drop(weft_engine *engine, size_t index, weft_lost_reason reason) {
  engine->neighbours[index].state = WEFT_NEIGHBOUR_LOST; // free once the event is told
  engine->neighbours[index].lost = reason;
  weft_neighbour_show(engine, &engine->neighbours[index]);
  engine->degree--;
  weft_window_advance(engine); // may have waited for this one
}

weft_status weft_engine_remove_neighbour(weft_engine *engine, size_t neighbour) {
  if (neighbour >= engine->options.neighbours_max ||
      engine->neighbours[neighbour].state == WEFT_NEIGHBOUR_FREE ||
      engine->neighbours[neighbour].state == WEFT_NEIGHBOUR_LOST)
    return WEFT_E_STATE;
  weft_neighbour_drop(engine, neighbour, WEFT_LOST_LEFT);
  engine->neighbours[neighbour].state = WEFT_NEIGHBOUR_FREE; // the caller knows
  return WEFT_OK;
}

void weft_neighbour_open(weft_engine *engine, size_t index) {
  weft_neighbour *neighbour = &engine->neighbours[index];
  if (neighbour->state != WEFT_NEIGHBOUR_GREETING)
    return;
  neighbour->state = WEFT_NEIGHBOUR_OPEN;
  neighbour->open_event = neighbour->map_due = true;
  weft_neighbour_show(engine, neighbour);
  engine->idle = false;
}

void weft_neighbour_brake(weft_engine *engine, weft_neighbour *neighbour, uint64_t segment) {
  bool *due = &neighbour->brake_due[segment % engine->options.window];
  neighbour->brakes_due += !*due;
  *due = true;
}

void weft_neighbour_heard(weft_neighbour *neighbour, const weft_stamps *stamps, int64_t now_us) {
  neighbour->stamp = stamps->stamp;
  neighbour->stamp_us = now_us;
  if (stamps->echo == 0)
    return;
  const int64_t sample = (int64_t)(uint32_t)((uint32_t)now_us - stamps->echo - stamps->held);
  if (sample > WEFT_SILENT_US) // a clock that jumped, or a liar
    return;
  // Up at once, down slowly: forgetting too early what is on its way costs packets sent twice.
  neighbour->round_trip_us = neighbour->timed && sample < neighbour->round_trip_us
                                 ? (7 * neighbour->round_trip_us + sample) / 8
                                 : sample;
  neighbour->timed = true;
}

weft_stamps weft_neighbour_stamps(const weft_neighbour *neighbour, int64_t now_us) {
  const uint32_t stamp = (uint32_t)now_us;
  return (weft_stamps){.stamp = stamp ? stamp : 1, // 0 stands for none
                       .echo = neighbour->stamp,
                       .held = neighbour->stamp ? (uint32_t)(now_us - neighbour->stamp_us) : 0};
}

// --- What is on its way

static void forget_oldest(weft_engine *engine, weft_neighbour *neighbour) {
  const weft_flight *flight = &neighbour->flight[neighbour->flight_first];
  weft_policy_want *want = &neighbour->wants[flight->segment % engine->options.window];
  if (weft_window_has(engine, flight->segment)) // else its place has another segment by now
    want->in_flight = (uint16_t)(want->in_flight - flight->count);
  neighbour->flight_first = (neighbour->flight_first + 1) % WEFT_FLIGHT_BURSTS;
  neighbour->flight_count--;
}

void weft_flight_add(weft_engine *engine, weft_neighbour *neighbour, const weft_flight *flight) {
  const size_t at = (neighbour->flight_first + neighbour->flight_count) % WEFT_FLIGHT_BURSTS;
  neighbour->flight[at] = *flight;
  neighbour->flight_count++;
  weft_policy_want *want = &neighbour->wants[flight->segment % engine->options.window];
  want->in_flight = (uint16_t)(want->in_flight + flight->count);
  weft_neighbour_show(engine, neighbour);
}

void weft_flight_forget(weft_engine *engine, weft_neighbour *neighbour, int64_t until_us) {
  while (neighbour->flight_count && neighbour->flight[neighbour->flight_first].at_us <= until_us)
    forget_oldest(engine, neighbour);
  weft_neighbour_show(engine, neighbour);
}
