// SPDX-License-Identifier: Apache-2.0
// The peer's protocol engine, without input or output: datagrams and the time go in; datagrams,
// events and the next deadline come out (docs/protocol.md). It reads no clock, and the same calls
// with the same arguments give the same results, whatever the backend.
//
// Use: after anything went in, take events until there are none, then datagrams until there are
// none, then sleep until weft_engine_deadline() or the next datagram. One thread at a time.
//
// Memory: one window of segments per stream (window * codec->memory_bytes), one burst of datagrams,
// and per neighbour about 2 KiB + 8 bytes * window. Nothing grows with the length of the stream.
#ifndef WEFT_PEER_ENGINE_H
#define WEFT_PEER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/peer_codec.h"
#include "weft/peer_policy.h"
#include "weft/peer_rng.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ENGINE_MAX_WINDOW 4096u
#define WEFT_ENGINE_MAX_NEIGHBOURS 1024u
#define WEFT_ENGINE_MAX_BATCH 256u
#define WEFT_ENGINE_NEVER INT64_MAX

typedef struct weft_engine weft_engine;

typedef struct weft_engine_options {
  uint64_t stream;
  uint32_t blocks;            // n of every segment but the last, which may have fewer
  uint32_t block_bytes;       // k
  bool source;                // has the stream; else receives it
  size_t window;              // segments held at once, 1..WEFT_ENGINE_MAX_WINDOW
  size_t batch;               // packets in one burst at most, 1..WEFT_ENGINE_MAX_BATCH
  size_t neighbours_max;      // 1..WEFT_ENGINE_MAX_NEIGHBOURS
  uint64_t upload_bits_per_s; // pace of what it sends; 0: no limit
  const weft_codec *codec;    // the three tables are copied; what they point to must outlive
  const weft_policy *policy;  // the engine
  const weft_rng *rng;
} weft_engine_options;

// Memory comes from the context. Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_engine_new(weft_ctx *ctx, const weft_engine_options *options, weft_engine **out);
void weft_engine_free(weft_engine *engine); // accepts NULL

// A neighbour is a number that the engine hands out; where it lives is the caller's business.
// Errors: WEFT_E_STATE when there is no room.
weft_status weft_engine_add_neighbour(weft_engine *engine, int64_t now_us, size_t *neighbour);
// Forgets a neighbour at once (it went away below the engine).
weft_status weft_engine_remove_neighbour(weft_engine *engine, size_t neighbour);

// A datagram from a neighbour. WEFT_OK, or WEFT_DEPENDENT for a packet that was of no use. Refused
// and without effect but for the statistics: WEFT_E_VERSION, WEFT_E_MALFORMED, WEFT_E_FOREIGN,
// WEFT_E_STATE (neighbour unknown). Failures of the machine (WEFT_E_NOMEM, ...) lose the datagram
// and leave the engine usable.
weft_status weft_engine_input(weft_engine *engine, size_t neighbour, const uint8_t *datagram,
                              size_t bytes, int64_t now_us);

// Lets time pass: timers of greetings, announcements and silent neighbours.
void weft_engine_tick(weft_engine *engine, int64_t now_us);

// Datagrams for one neighbour, valid until the next call on the engine.
typedef struct weft_datagram {
  const uint8_t *data;
  size_t bytes;
} weft_datagram;

typedef struct weft_burst {
  size_t neighbour;
  size_t count;
  const weft_datagram *datagrams;
} weft_burst;

// The next burst to send now. WEFT_PENDING: none before the deadline or the next input.
weft_status weft_engine_output(weft_engine *engine, int64_t now_us, weft_burst *out);

// When tick and output want to be called again; WEFT_ENGINE_NEVER: only after an input.
int64_t weft_engine_deadline(const weft_engine *engine);

typedef enum weft_event_kind {
  WEFT_EVENT_DECODED,        // segment is complete
  WEFT_EVENT_NEIGHBOUR_OPEN, // neighbour answered
  WEFT_EVENT_NEIGHBOUR_LOST  // neighbour left, or was silent for too long; its number is free
} weft_event_kind;

typedef struct weft_event {
  weft_event_kind kind;
  uint64_t segment;
  size_t neighbour;
} weft_event;

bool weft_engine_event(weft_engine *engine, weft_event *out); // false: no more

// --- The source's side

// Whether the window has room for another segment.
bool weft_engine_source_ready(const weft_engine *engine);
// The next segment, n * k bytes; the last may have fewer and then ends the stream. Copied.
// Errors: WEFT_E_STATE (no source, no room, or ended), WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_engine_source_put(weft_engine *engine, const uint8_t *data, size_t bytes);
// Ends a stream whose last segment was full, or that has none.
weft_status weft_engine_source_end(weft_engine *engine);

// --- The receiver's side

// True length of the next segment in order, if it can be read now: WEFT_PENDING while it cannot.
weft_status weft_engine_readable(const weft_engine *engine, uint64_t *segment, size_t *bytes);
weft_status weft_engine_read(weft_engine *engine, size_t offset, size_t bytes, uint8_t *out);
// Done with that segment; it stays for neighbours that lack it, then makes room.
weft_status weft_engine_release(weft_engine *engine);
// The stream's end is known and everything before it was released.
bool weft_engine_done(const weft_engine *engine);
// Done, and so is every neighbour: nothing more will be sent unless somebody asks.
bool weft_engine_finished(const weft_engine *engine);

// --- Statistics

typedef struct weft_engine_statistics {
  uint64_t sent_packets;        // coded data
  uint64_t sent_payload_bytes;  // their payloads
  uint64_t sent_header_bytes;   // their headers and coefficients
  uint64_t sent_control;        // every other message
  uint64_t sent_control_bytes;  //
  uint64_t received_packets;    // coded data that was well-formed
  uint64_t received_innovative; // raised a rank
  uint64_t received_dependent;  // added nothing to an incomplete segment
  uint64_t received_late;       // for a segment that was complete already
  uint64_t received_outside;    // beyond the window
  uint64_t received_payload_bytes;
  uint64_t received_header_bytes;
  uint64_t received_control;
  uint64_t received_control_bytes;
  uint64_t refused;       // malformed, foreign, of another version
  uint64_t refused_bytes; //
  uint64_t segments;      // complete
} weft_engine_statistics;

void weft_engine_get_statistics(const weft_engine *engine, weft_engine_statistics *out);

#ifdef __cplusplus
}
#endif
#endif
