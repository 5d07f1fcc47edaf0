// SPDX-License-Identifier: Apache-2.0
// The peer's protocol engine, without input or output of its own: datagrams and the time go in;
// datagrams, events and the next deadline come out (docs/protocol.md). It reads no clock, and the
// same calls with the same arguments give the same results with every backend.
//
// Use: after any input, take events until none is left, then datagrams until none is left, then
// sleep until weft_engine_deadline() or the next datagram. One thread at a time. Pointers must not
// be NULL unless a call says so; they are not checked.
//
// Memory: weft_engine_memory_bytes() for the fixed part, allocated at once, and window *
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

// Room for one burst, which engines of one thread with the same options may share: the result of
// weft_engine_output is then valid until the next call on any of them. Errors: WEFT_E_ARGUMENT,
// WEFT_E_NOMEM.
weft_status weft_engine_scratch_new(weft_ctx *ctx, const weft_engine_options *options,
                                    weft_engine_scratch **out);
void weft_engine_scratch_free(weft_engine_scratch *scratch); // accepts NULL

// Memory comes from the context, in one piece except for scratch and segments. `options` and what
// it points to are not copied: they must outlive the engine, and any number of engines may share
// them. `self` is copied. Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_engine_new(weft_ctx *ctx, const weft_engine_options *options,
                            const weft_engine_self *self, weft_engine **out);
void weft_engine_free(weft_engine *engine); // accepts NULL
// Memory of one engine, without scratch and the codec's segments. 0 for options out of range.
size_t weft_engine_memory_bytes(const weft_engine_options *options);

// Prefetching, for callers with so many engines that each is out of the caches when its turn comes.
// Nearly every call reads the first weft_engine_hot_bytes() bytes at the engine's address. Input
// from a neighbour (about a segment) reads what weft_engine_prefetch fetches. Prefetch in steps,
// since each reads what the previous one fetched: first the hot bytes; then weft_engine_prefetch
// with near = false; then with near = true. These are only hints.
size_t weft_engine_hot_bytes(const weft_engine_options *options);
void weft_engine_prefetch(const weft_engine *engine, size_t neighbour, uint64_t segment, bool near);

// --- Neighbours

// Where a peer comes from: numbers that the caller assigns to addresses and to networks of
// addresses, so that many identities of one party do not count as many. 0: one of its own.
typedef struct weft_origin {
  uint16_t address, network;
} weft_origin;

// A neighbour is a number below neighbours_max that the engine assigns, and reuses when it is free.
// The caller keeps track of the neighbour's address.
typedef struct weft_neighbour_options {
  weft_peer_address address; // length 0: not to be passed on to others
  weft_origin origin;
  bool is_source; // proved by the session below: what it sends needs no checksum
  bool dialled;   // this side opened the session
} weft_neighbour_options;

// options may be NULL. Errors: WEFT_E_STATE when there is no room (see weft_engine_refusal),
// WEFT_E_ARGUMENT (an invalid address length).
weft_status weft_engine_add_neighbour(weft_engine *engine, const weft_neighbour_options *options,
                                      int64_t now_us, size_t *neighbour);
// The neighbour has a new address; the old one is no longer passed on, nor called. Errors:
// WEFT_E_STATE (unknown), WEFT_E_ARGUMENT (an invalid address length).
weft_status weft_engine_move_neighbour(weft_engine *engine, size_t neighbour,
                                       const weft_peer_address *address);
// Forgets a neighbour at once (the layer below has lost it). Errors: WEFT_E_STATE (unknown).
weft_status weft_engine_remove_neighbour(weft_engine *engine, size_t neighbour);
// The reply to a peer for which there is no room: a message with addresses of others. Returns its
// size in bytes. A neighbour may then make room for the newcomer, unless the newcomer's address
// already has as many places here as the neighbour's address, or its network more than the
// neighbour's network (docs/protocol.md). NULL: the newcomer has an address and a network of its
// own.
size_t weft_engine_refusal(weft_engine *engine, const weft_origin *newcomer,
                           uint8_t out[WEFT_DATAGRAM_MAX]);

// Addresses of peers to try, from a tracker or entered by hand. Known addresses and our own are
// ignored; the oldest make room for new ones.
void weft_engine_add_address(weft_engine *engine, const weft_peer_address *address);
// Where the stream's source can be called. A viewer on demand that is cut off, because no neighbour
// has what it needs next, calls it before all others; one that is not calls it after them. The
// address of a neighbour that is the source is known without this call, and may be told by others
// that met it. Ignored in other modes.
void weft_engine_set_source_address(weft_engine *engine, const weft_peer_address *address);
// Whether a caller that knows where the source is should try to reach it. On demand a viewer with
// enough neighbours does not need it, and the engine asks for it (DIAL) when it is cut off, unless
// it does not know the address, or calls there failed. True in other modes.
bool weft_engine_needs_source(const weft_engine *engine, int64_t now_us);
// A third party that knows both sides (a tracker; neighbours send a message instead) reports that
// the peer at `caller` is calling this engine. A DIAL event follows unless the caller is a
// neighbour by then: through a NAT it can get in only if this side calls it as well. A few callers
// wait at a time; others are ignored.
void weft_engine_call(weft_engine *engine, const weft_peer_address *caller, int64_t now_us);
// A WEFT_EVENT_DIAL did not lead to a session.
void weft_engine_dial_failed(weft_engine *engine, const weft_peer_address *address);

// --- Datagrams and the time

// A datagram from a neighbour. WEFT_OK, or WEFT_DEPENDENT for a packet that was of no use. Refused,
// changing nothing but the statistics: WEFT_E_VERSION, WEFT_E_MALFORMED, WEFT_E_FOREIGN,
// WEFT_E_STATE (neighbour unknown), WEFT_E_ARGUMENT (an impossible neighbour number, no datagram).
// Failures of the machine (WEFT_E_NOMEM, ...) lose the datagram and leave the engine usable.
weft_status weft_engine_input(weft_engine *engine, size_t neighbour, const uint8_t *datagram,
                              size_t bytes, int64_t now_us);

// Lets time pass: timers for greetings, announcements, playback and silent neighbours.
void weft_engine_tick(weft_engine *engine, int64_t now_us);

// Datagrams for one neighbour, valid until the next call on the engine.
typedef struct weft_datagram {
  const uint8_t *data;
  size_t bytes;
} weft_datagram;

// Coded packets of one burst have the same length, except that a short control message may come
// last.
typedef struct weft_burst {
  size_t neighbour;
  size_t count;
  const weft_datagram *datagrams; // (count)
  // With tokens (weft_codec): the coded packets, which then have no datagrams; token_count 0: none.
  uint64_t segment;
  size_t token_count, token_bytes;
  const void *token;
  size_t wire_bytes; // of all, tokens counted as their packets; without the layers below
} weft_burst;

// The next burst to send now. WEFT_PENDING: none before the deadline or the next input. Errors:
// WEFT_E_ARGUMENT (the policy's choice is outside its view), errors of the codec; the engine stays
// usable.
weft_status weft_engine_output(weft_engine *engine, int64_t now_us, weft_burst *out);

// Delivers a burst's token to its receiver, like weft_engine_input for `count` packets. The caller
// simulates losses, and must then shorten the codec's token accordingly. Errors: WEFT_E_ARGUMENT
// too (a codec without tokens, an impossible length or count).
weft_status weft_engine_input_token(weft_engine *engine, size_t neighbour, uint64_t segment,
                                    size_t count, const void *token, size_t bytes, int64_t now_us);

// When tick and output are to be called next; WEFT_ENGINE_NEVER: only after an input.
int64_t weft_engine_deadline(const weft_engine *engine);

// Leaves all neighbours: output gives the farewell messages, then nothing more.
void weft_engine_leave(weft_engine *engine);

// --- Events

typedef enum weft_event_kind {
  WEFT_EVENT_DECODED,        // segment is complete and, with a trust table, verified
  WEFT_EVENT_NEIGHBOUR_OPEN, // neighbour answered
  WEFT_EVENT_NEIGHBOUR_LOST, // neighbour is gone, for `reason`; its number is free
  WEFT_EVENT_PLAY,           // paced modes: segment is due now and can be read
  WEFT_EVENT_SKIP,           // live: segment was not complete in time and will not be played
  WEFT_EVENT_STALL,          // VoD: playback waits for segment
  WEFT_EVENT_RESUME,         // VoD: playback resumes with segment
  WEFT_EVENT_LOAD,           // if the engine loads or rereads: pass segment to weft_engine_load
  WEFT_EVENT_DIAL,           // open a session to `address`, then weft_engine_add_neighbour
  WEFT_EVENT_LONELY          // too few known addresses: ask a tracker, weft_engine_add_address
} weft_event_kind;

typedef enum weft_lost_reason {
  WEFT_LOST_LEFT,     // it said goodbye
  WEFT_LOST_SILENT,   // it was silent for too long
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
  bool had_all;              // NEIGHBOUR_LOST: as in weft_neighbour_statistics
  bool calls_back;           // DIAL: the other side calls as well (weft_engine_call)
} weft_event;

bool weft_engine_event(weft_engine *engine, weft_event *out); // false: no more

// --- The source's side

// Whether the window has room for another segment. VoD and live: always; the oldest segment is
// dropped, and the caller keeps the pace of the stream (for a VoD stream available in full from the
// start, see `stream_bytes`).
bool weft_engine_source_ready(const weft_engine *engine);
// Appends the next segment, n * k bytes; the last may be shorter and then ends the stream. Copied.
// at_us: when its first byte is to be played, relative to any origin, never decreasing; 0 where the
// rate determines it (live: only for an input that never pauses). Errors: WEFT_E_STATE (not a
// source, no room, or ended), WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_engine_source_put(weft_engine *engine, const uint8_t *data, size_t bytes,
                                   int64_t at_us, int64_t now_us);
// Ends a stream whose last segment was full, or that is empty. Bulk: if no peer is there, the data
// in the window waits for the first to come. Errors: WEFT_E_STATE (not a source, or ended).
weft_status weft_engine_source_end(weft_engine *engine, int64_t now_us);

// --- A source that loads, a receiver that rereads

// Passes what a LOAD event asked for, in its true length; copied. A source (self.stream_bytes)
// signs it; if this call returns an error, the event is repeated 0.1 s later. A receiver
// (self.rereads) checks that it is what the source signed. If it is not, or data is NULL because
// the application can no longer provide it, the receiver asks for no more from then on. Errors:
// WEFT_E_STATE (neither of the two), WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_KEY; receiver:
// WEFT_E_FOREIGN (other data).
weft_status weft_engine_load(weft_engine *engine, uint64_t segment, const uint8_t *data,
                             size_t bytes, int64_t now_us);

// --- The receiver's side

// The true length of the next segment in order, if it can be read now; WEFT_PENDING while it
// cannot. In paced modes a segment can be read from its playback deadline on; in live mode the next
// segment in order is the next one not skipped. Errors: WEFT_E_STATE (on a source).
weft_status weft_engine_readable(const weft_engine *engine, uint64_t *segment, size_t *bytes);
// Copies bytes of that segment. Without a readable segment it returns the same as
// weft_engine_readable. Errors: WEFT_E_ARGUMENT (past its length), WEFT_E_NOMEM.
weft_status weft_engine_read(weft_engine *engine, size_t offset, size_t bytes, uint8_t *out);
// Releases that segment; it is kept for neighbours that lack it, and dropped when its room is
// needed. Without a readable segment it returns the same as weft_engine_readable.
weft_status weft_engine_release(weft_engine *engine);
// Continues with `segment`, in either direction. Not live. Errors: WEFT_E_STATE, WEFT_E_ARGUMENT
// (past the known end).
weft_status weft_engine_seek(weft_engine *engine, uint64_t segment, int64_t now_us);
// The stream's end is known and everything before it has been released.
bool weft_engine_done(const weft_engine *engine);
// Done, and so is every neighbour: nothing more is sent unless a peer asks.
bool weft_engine_finished(const weft_engine *engine);
// A finished fetch (bulk) has told its neighbours so once, but that message may be lost. This call
// repeats it to the neighbours that have not reported the same of themselves. False: there are
// none, or the fetch is not finished.
bool weft_engine_farewell_again(weft_engine *engine);

// When segment is to be played, on the caller's clock; live, sooner if the window fills before that
// (weft_engine_options.lag_us). WEFT_PENDING while playback has no schedule. Errors: WEFT_E_STATE
// (on a source, or bulk).
weft_status weft_engine_play_time(const weft_engine *engine, uint64_t segment, int64_t *at_us);
// Number of complete segments still to be played, from the next one on. Bulk: 0.
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
