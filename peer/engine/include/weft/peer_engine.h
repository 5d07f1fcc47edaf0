// SPDX-License-Identifier: Apache-2.0
// The peer's protocol engine, without input or output: datagrams and the time go in; datagrams,
// events and the next deadline come out (docs/protocol.md). It reads no clock, and the same calls
// with the same arguments give the same results, whatever the backend.
//
// Use: after anything went in, take events until there are none, then datagrams until there are
// none, then sleep until weft_engine_deadline() or the next datagram. One thread at a time. But for
// the calls that say so, no pointer is NULL: they do not look.
//
// Memory: weft_engine_memory_bytes() says it: a fixed part, made at once, and window *
// codec->memory_bytes. Nothing grows with the length of the stream or with what neighbours send.
#ifndef WEFT_PEER_ENGINE_H
#define WEFT_PEER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/peer_codec.h"
#include "weft/peer_options.h"
#include "weft/peer_policy.h"
#include "weft/peer_rng.h"
#include "weft/peer_statistics.h"
#include "weft/peer_trust.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_engine weft_engine;
typedef struct weft_engine_scratch weft_engine_scratch;

// Room for one burst, which engines of one thread with the same options may share: what
// weft_engine_output gives is then valid until the next call on any of them. Errors:
// WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_engine_scratch_new(weft_ctx *ctx, const weft_engine_options *options,
                                    weft_engine_scratch **out);
void weft_engine_scratch_free(weft_engine_scratch *scratch); // accepts NULL

// Memory comes from the context, in one piece but for scratch and segments. `options` and what it
// names are not copied: they must outlive the engine and may serve any number of engines; `self` is
// copied. Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_engine_new(weft_ctx *ctx, const weft_engine_options *options,
                            const weft_engine_self *self, weft_engine **out);
void weft_engine_free(weft_engine *engine); // accepts NULL
// Of one engine, without scratch and the codec's segments. 0 for options out of range.
size_t weft_engine_memory_bytes(const weft_engine_options *options);

// For callers with so many engines that each is cold when its turn comes: nearly every call reads
// the first so many bytes at the engine's address, and input from a neighbour (of a segment) what
// the second one fetches, in two steps that each read what the step before fetched: those first
// bytes; then, with `near`, what the first call fetched. Hints.
size_t weft_engine_hot_bytes(const weft_engine_options *options);
void weft_engine_prefetch(const weft_engine *engine, size_t neighbour, uint64_t segment, bool near);

// --- Neighbours

// Where somebody comes from: numbers that the caller gives to addresses and to networks of them, so
// that one party's many identities do not count for many. 0: one of its own.
typedef struct weft_origin {
  uint16_t address, network;
} weft_origin;

// A neighbour is a number below neighbours_max that the engine hands out, anew when it is free;
// where it lives is the caller's business.
typedef struct weft_neighbour_options {
  weft_peer_address address; // length 0: not to be told to others
  weft_origin origin;
  bool is_source; // the session below has proved it: what it sends needs no checksum
  bool dialled;   // the session was opened from here
} weft_neighbour_options;

// options may be NULL. Errors: WEFT_E_STATE when there is no room (see weft_engine_refusal),
// WEFT_E_ARGUMENT (a length of the address that there is not).
weft_status weft_engine_add_neighbour(weft_engine *engine, const weft_neighbour_options *options,
                                      int64_t now_us, size_t *neighbour);
// It is at another address now: the one before is told to nobody any more, and not called.
// Errors: WEFT_E_STATE (unknown), WEFT_E_ARGUMENT (a length of the address that there is not).
weft_status weft_engine_move_neighbour(weft_engine *engine, size_t neighbour,
                                       const weft_peer_address *address);
// Forgets a neighbour at once (it went away below the engine). Errors: WEFT_E_STATE (unknown).
weft_status weft_engine_remove_neighbour(weft_engine *engine, size_t neighbour);
// What to answer whoever found no room: a message with addresses of others. Returns its bytes. Room
// may be made for him, by one whose address and network have no fewer places for it. NULL: he is of
// an address and a network of his own.
size_t weft_engine_refusal(weft_engine *engine, const weft_origin *newcomer,
                           uint8_t out[WEFT_DATAGRAM_MAX]);

// Addresses of peers to try, from a tracker or by hand. Known ones and our own are passed over; the
// oldest make room.
void weft_engine_add_address(weft_engine *engine, const weft_peer_address *address);
// Whoever is there calls this engine, says somebody who knows both (a tracker; neighbours say so in
// messages). A DIAL event follows unless he is a neighbour by then, for through a NAT he gets in
// only if he is called as well. A few wait at once, others are passed over.
void weft_engine_call(weft_engine *engine, const weft_peer_address *caller, int64_t now_us);
// A WEFT_EVENT_DIAL led to nothing.
void weft_engine_dial_failed(weft_engine *engine, const weft_peer_address *address);

// --- Datagrams and the time

// A datagram from a neighbour. WEFT_OK, or WEFT_DEPENDENT for a packet that was of no use. Refused
// and without effect but for the statistics: WEFT_E_VERSION, WEFT_E_MALFORMED, WEFT_E_FOREIGN,
// WEFT_E_STATE (neighbour unknown), WEFT_E_ARGUMENT (a number that none can have, no datagram).
// Failures of the machine (WEFT_E_NOMEM, ...) lose the datagram and leave the engine usable.
weft_status weft_engine_input(weft_engine *engine, size_t neighbour, const uint8_t *datagram,
                              size_t bytes, int64_t now_us);

// Lets time pass: timers of greetings, announcements, playback and silent neighbours.
void weft_engine_tick(weft_engine *engine, int64_t now_us);

// Datagrams for one neighbour, valid until the next call on the engine.
typedef struct weft_datagram {
  const uint8_t *data;
  size_t bytes;
} weft_datagram;

// Coded packets of one burst have one length, except that a short control message may come last.
typedef struct weft_burst {
  size_t neighbour;
  size_t count;
  const weft_datagram *datagrams; // (count)
  // A codec with tokens: the coded packets, which have no datagrams then; token_count 0: none.
  uint64_t segment;
  size_t token_count, token_bytes;
  const void *token;
  size_t wire_bytes; // of all, tokens as their packets would be; without the layers below
} weft_burst;

// The next burst to send now. WEFT_PENDING: none before the deadline or the next input. Errors:
// WEFT_E_ARGUMENT (the policy chose what it was not shown), what the codec says; the engine stays
// usable.
weft_status weft_engine_output(weft_engine *engine, int64_t now_us, weft_burst *out);

// A burst's token at its neighbour, as weft_engine_input of `count` packets. Losses are the
// caller's: a codec's token must then be shortened by it. Errors: WEFT_E_ARGUMENT too (a codec
// without tokens, a length or count that none has).
weft_status weft_engine_input_token(weft_engine *engine, size_t neighbour, uint64_t segment,
                                    size_t count, const void *token, size_t bytes, int64_t now_us);

// When tick and output want to be called again; WEFT_ENGINE_NEVER: only after an input.
int64_t weft_engine_deadline(const weft_engine *engine);

// Says goodbye to every neighbour: output gives the messages, then nothing more.
void weft_engine_leave(weft_engine *engine);

// --- Events

typedef enum weft_event_kind {
  WEFT_EVENT_DECODED,        // segment is complete and, where there is trust, verified
  WEFT_EVENT_NEIGHBOUR_OPEN, // neighbour answered
  WEFT_EVENT_NEIGHBOUR_LOST, // neighbour is gone, for `reason`; its number is free
  WEFT_EVENT_PLAY,           // paced modes: segment is due now and can be read
  WEFT_EVENT_SKIP,           // live: segment was not complete in time and will not be played
  WEFT_EVENT_STALL,          // VoD: playback waits for segment
  WEFT_EVENT_RESUME,         // VoD: playback goes on with segment
  WEFT_EVENT_LOAD,           // one that loads or rereads: give segment with weft_engine_load
  WEFT_EVENT_DIAL,           // open a session to `address`, then weft_engine_add_neighbour
  WEFT_EVENT_LONELY          // too few addresses are known: ask a tracker, weft_engine_add_address
} weft_event_kind;

typedef enum weft_lost_reason {
  WEFT_LOST_LEFT,     // it said so
  WEFT_LOST_SILENT,   // for too long
  WEFT_LOST_FULL,     // it had no room for us
  WEFT_LOST_REPLACED, // it was of little use
  WEFT_LOST_BANNED    // it sent what the source never made: refuse its identity from now on
} weft_lost_reason;

typedef struct weft_event {
  weft_event_kind kind;
  uint64_t segment;
  size_t neighbour;
  weft_lost_reason reason;
  weft_peer_address address; // DIAL, NEIGHBOUR_LOST
  bool had_all;              // NEIGHBOUR_LOST: as weft_neighbour_statistics has it
  bool calls_back;           // DIAL: the other side calls as well (weft_engine_call)
} weft_event;

bool weft_engine_event(weft_engine *engine, weft_event *out); // false: no more

// --- The source's side

// Whether the window has room for another segment. VoD and live: always, the oldest is dropped, and
// whoever puts keeps the stream's pace (a VoD stream that can be had anywhere: `stream_bytes`).
bool weft_engine_source_ready(const weft_engine *engine);
// The next segment, n * k bytes; the last may have fewer and then ends the stream. Copied. at_us:
// when its first byte is to be played, relative to any origin, never falling; 0 where the rate
// tells (live: of an input that never pauses). Errors: WEFT_E_STATE (no source, no room, or ended),
// WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_engine_source_put(weft_engine *engine, const uint8_t *data, size_t bytes,
                                   int64_t at_us, int64_t now_us);
// Ends a stream whose last segment was full, or that has none. Bulk: where nobody is there, what
// there is waits for the first to come. Errors: WEFT_E_STATE (no source, or
// ended).
weft_status weft_engine_source_end(weft_engine *engine, int64_t now_us);

// --- A source that loads, a receiver that rereads

// What a LOAD event asked for, in its true length; copied. A source (self.stream_bytes) signs it;
// the event is repeated, 0.1 s later, when the answer was an error. A receiver (self.rereads) looks
// whether it is what the source signed; where that fails, or data is NULL, because it cannot be
// given any more, nothing is asked for from then on. Errors: WEFT_E_STATE (neither),
// WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_KEY; receiver: WEFT_E_FOREIGN (it is something else).
weft_status weft_engine_load(weft_engine *engine, uint64_t segment, const uint8_t *data,
                             size_t bytes, int64_t now_us);

// --- The receiver's side

// True length of the next segment in order, if it can be read now: WEFT_PENDING while it cannot. In
// paced modes a segment can be read from the time it is due; in live mode the next in order is the
// next that is not skipped. Errors: WEFT_E_STATE (of a source).
weft_status weft_engine_readable(const weft_engine *engine, uint64_t *segment, size_t *bytes);
// Copies bytes of that segment. As weft_engine_readable while there is none. Errors:
// WEFT_E_ARGUMENT (past its length), WEFT_E_NOMEM.
weft_status weft_engine_read(weft_engine *engine, size_t offset, size_t bytes, uint8_t *out);
// Done with that segment; it stays for neighbours that lack it, then makes room where that is
// needed. As weft_engine_readable while there is none.
weft_status weft_engine_release(weft_engine *engine);
// Goes on with `segment`, before or behind. Not live. Errors: WEFT_E_STATE, WEFT_E_ARGUMENT (past
// the known end).
weft_status weft_engine_seek(weft_engine *engine, uint64_t segment, int64_t now_us);
// The stream's end is known and everything before it was released.
bool weft_engine_done(const weft_engine *engine);
// Done, and so is every neighbour: nothing more will be sent unless somebody asks.
bool weft_engine_finished(const weft_engine *engine);
// A finished fetch (bulk) has told its neighbours so, once: tells those again who have not said the
// same, as the word may be lost. False: there is none, or it is not finished.
bool weft_engine_farewell_again(weft_engine *engine);

// When segment is to be played, in the caller's time. WEFT_PENDING while playback has no schedule.
weft_status weft_engine_play_time(const weft_engine *engine, uint64_t segment, int64_t *at_us);
// Segments that are complete and still to be played, from the next one on. Bulk: 0.
size_t weft_engine_buffered(const weft_engine *engine);

// --- Statistics

void weft_engine_get_statistics(const weft_engine *engine, weft_engine_statistics *out);
// Errors: WEFT_E_STATE (no such neighbour).
weft_status weft_engine_get_neighbour(const weft_engine *engine, size_t neighbour,
                                      weft_neighbour_statistics *out);

#ifdef __cplusplus
}
#endif
#endif
