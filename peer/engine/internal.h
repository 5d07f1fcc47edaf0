// SPDX-License-Identifier: Apache-2.0
// What the files of the engine share: its state, its timers, and who does what to the window.
#ifndef WEFT_PEER_ENGINE_INTERNAL_H
#define WEFT_PEER_ENGINE_INTERNAL_H

#include "peer/engine/messages.h"
#include "weft/peer_engine.h"
#include "weft/peer_rng.h"

// Timers, microseconds (docs/protocol.md).
enum {
  WEFT_HELLO_EVERY_US = 200000,     // greeting again until answered
  WEFT_MAP_EVERY_US = 50000,        // announcing ranks that changed
  WEFT_MAP_IDLE_US = 500000,        // announcing them again when they did not
  WEFT_BRAKE_EVERY_US = 20000,      // braking again a neighbour that keeps sending
  WEFT_SILENT_US = 30000000,        // after this a neighbour is lost
  WEFT_ROUND_TRIP_GUESS_US = 200000 // before the first measurement
};

// Bursts on their way to one neighbour, at most: no more is sent until an announcement counts some.
// Without this bound a fast uplink floods a distant neighbour with what it no longer needs.
#define WEFT_FLIGHT_BURSTS 64u

// One segment of the window; segment s stands at s % window.
typedef struct weft_slot {
  void *segment; // the codec's; NULL until its first packet
  bool complete;
  bool decoded_event; // to be told
} weft_slot;

typedef struct weft_flight {
  int64_t at_us;
  uint64_t segment;
  uint16_t count;
} weft_flight;

typedef enum weft_neighbour_state {
  WEFT_NEIGHBOUR_FREE,
  WEFT_NEIGHBOUR_GREETING, // no HELLO from it yet
  WEFT_NEIGHBOUR_OPEN,
  WEFT_NEIGHBOUR_FINISHED, // has everything, and so have all it knows
  WEFT_NEIGHBOUR_LOST      // the event is still to be told
} weft_neighbour_state;

typedef struct weft_neighbour {
  weft_neighbour_state state;
  weft_lost_reason lost;
  bool open_event, hello_due, answer_due, map_due, bye_due;
  bool knows_end;         // of the stream
  bool timed;             // round_trip_us was measured
  uint64_t told;          // the engine's version when it was last announced
  uint64_t first_missing; // every segment before it is complete there
  uint64_t accept_end;    // it takes segments before this one
  int64_t heard_us, hello_us, map_us, brake_us;
  // Round trips: what to echo, when it came, and the smallest seen.
  uint32_t stamp;
  int64_t stamp_us, round_trip_us;
  // Per segment of our window, at s % window.
  weft_policy_want *wants;
  bool *brake_due;
  size_t brakes_due;
  weft_flight flight[WEFT_FLIGHT_BURSTS]; // a ring, oldest first
  size_t flight_first, flight_count;
} weft_neighbour;

struct weft_engine {
  weft_ctx *ctx;
  weft_engine_options options; // its table pointers lead to the copies below
  weft_engine_self self;
  weft_codec codec;
  weft_policy policy;
  weft_rng rng;

  // The window: segments tail .. tail + window - 1.
  uint64_t tail;     // oldest segment that is kept
  uint64_t missing;  // oldest segment that is not complete
  uint64_t released; // segments the application is done with
  uint64_t horizon;  // segments known to exist
  bool end_known;
  bool farewell; // everybody has everything, and was told so
  uint64_t end_bytes;
  weft_slot *slots;
  weft_policy_segment *held; // what the policy sees of the slots

  weft_neighbour *neighbours;         // (neighbours_max)
  weft_policy_neighbour *policy_view; // (neighbours_max)
  size_t degree;                      // neighbours that are not FREE

  int64_t pace_us;    // no data before this time
  uint64_t pace_rest; // bits * 1e6 that pace_us does not hold yet
  uint64_t version;   // counts changes that neighbours should hear of
  bool idle;          // the policy found nothing since the last change
  weft_engine_statistics statistics;

  // One burst.
  uint8_t *out;
  size_t out_stride, out_payload; // bytes of one datagram's room, and where in it the payload goes
  uint8_t **payload_rows;
  weft_packet *packets;
  uint8_t *coefficients;
  weft_datagram *datagrams;
  uint8_t *control; // one control message
  uint16_t *ranks;
};

// window.c
// n of a segment; 0 if it lies past the end of the stream.
uint32_t weft_window_blocks(const weft_engine *engine, uint64_t segment);
// Segments in the stream, if its end is known.
uint64_t weft_window_total(const weft_engine *engine);
static inline weft_slot *weft_window_slot(const weft_engine *engine, uint64_t segment) {
  return &engine->slots[segment % engine->options.window];
}
static inline bool weft_window_has(const weft_engine *engine, uint64_t segment) {
  return segment >= engine->tail && segment - engine->tail < engine->options.window;
}
// A segment became complete: brakes, events, announcements.
void weft_window_complete(weft_engine *engine, uint64_t segment);
// Drops segments that the application and every neighbour are done with.
void weft_window_advance(weft_engine *engine);
// What is seen of the neighbour's wants after it announced something, or after the window moved.
void weft_window_refresh(weft_engine *engine, weft_neighbour *neighbour, uint64_t segment);
// Learns the end of the stream, or that it is longer than known.
weft_status weft_window_learn_end(weft_engine *engine, uint64_t end_bytes);
void weft_window_learn_horizon(weft_engine *engine, uint64_t horizon);
// Something changed that neighbours should hear of and the policy should look at again.
void weft_engine_changed(weft_engine *engine);

// neighbour.c
void weft_neighbour_open(weft_engine *engine, size_t index);
// Tells the policy whether the neighbour takes packets now.
void weft_neighbour_show(weft_engine *engine, const weft_neighbour *neighbour);
void weft_neighbour_brake(weft_engine *engine, weft_neighbour *neighbour, uint64_t segment);
void weft_neighbour_drop(weft_engine *engine, size_t index, weft_lost_reason reason);
void weft_flight_add(weft_engine *engine, weft_neighbour *neighbour, const weft_flight *flight);
// Forgets bursts sent at or before `until_us`: announcements count them now.
void weft_flight_forget(weft_engine *engine, weft_neighbour *neighbour, int64_t until_us);
void weft_neighbour_heard(weft_neighbour *neighbour, const weft_stamps *stamps, int64_t now_us);
weft_stamps weft_neighbour_stamps(const weft_neighbour *neighbour, int64_t now_us);

#endif
