// SPDX-License-Identifier: Apache-2.0
// A node of a stream on UDP: the engine, sessions with its neighbours, and the socket below them.
// It owns no loop and reads no clock: weft_node_source_new (peer_loop.h) puts it on a GLib main
// loop, and whoever has a loop of another kind calls receive and turn itself.
//
// Use: when the descriptor can be read, weft_node_receive; then let the application feed or read
// the engine; then weft_node_turn; sleep until weft_node_deadline or the descriptor is ready. One
// thread at a time.
#ifndef WEFT_PEER_NODE_H
#define WEFT_PEER_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/peer_engine.h"
#include "weft/peer_session.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a stream is; the source says it, everyone hands it on when a session opens.
typedef struct weft_stream {
  uint64_t id; // never 0
  uint16_t blocks;
  uint32_t block_bytes;
  weft_engine_mode mode;
  bool trusted;             // manifests are signed with source_key
  bool checksums;           // and checksums are revealed
  uint64_t rate_bits_per_s; // 0: what arrives paces it
  // Whole length, 0: unknown. Not live, a source that knows it loads what its neighbours lack (LOAD
  // events, weft_engine_load) instead of putting segments in order.
  uint64_t bytes;
  uint32_t lag_ms; // live
  uint8_t source_key[32];
} weft_stream;

typedef enum weft_node_role {
  WEFT_NODE_JOINING, // has no stream yet
  WEFT_NODE_PEER,
  WEFT_NODE_SOURCE,
  WEFT_NODE_TRACKER // knows who has which stream, and has none itself
} weft_node_role;

typedef enum weft_node_event_kind {
  WEFT_NODE_STREAM,         // joining: the stream is known now, and there is an engine
  WEFT_NODE_STREAM_FAILED,  // joining: a stream that the node cannot begin; it goes on looking
  WEFT_NODE_NEIGHBOUR,      // opened
  WEFT_NODE_NEIGHBOUR_LOST, //
  WEFT_NODE_BANNED,         // a neighbour that polluted
  WEFT_NODE_UNREACHABLE,    // a bootstrap address; it is tried again
  WEFT_NODE_MOVED,          // a neighbour, to this address
  WEFT_NODE_ENGINE,         // of the engine's own: PLAY, SKIP, STALL, RESUME, LOAD, DECODED
  WEFT_NODE_SUCCESSOR,      // live: the source has another stream now (weft_node_succeed)
  WEFT_NODE_ANOTHER_STREAM  // who is at a bootstrap address has another one than this node
} weft_node_event_kind;

typedef struct weft_node_event {
  weft_node_event_kind kind;
  weft_address address;       // not of ENGINE
  bool by_source;             // SUCCESSOR: the source itself says so; else a peer of that stream
  weft_session_reason reason; // UNREACHABLE, NEIGHBOUR_LOST
  size_t host;                // UNREACHABLE: whose (bootstrap_host)
  uint32_t failures;          // UNREACHABLE: calls of it in a row that nobody answered
  weft_status status;         // STREAM_FAILED; WEFT_E_ARGUMENT: there can be no such stream
  const uint8_t *public_key;  // (32) not of ENGINE, nor of UNREACHABLE
  weft_event engine;
} weft_node_event;

#define WEFT_NODE_BOOTSTRAP 64u // addresses to begin with, at most

// Live streams of which nobody says the rate are given windows for this one.
#define WEFT_NODE_LIVE_BITS_PER_S UINT64_C(50000000)

typedef struct weft_node_options {
  weft_ctx *ctx;
  weft_node_role role; // JOINING, SOURCE or TRACKER
  weft_address listen;
  weft_identity identity;
  weft_session_cipher cipher;
  // Whom to begin with: sources, peers or trackers.
  const weft_address *bootstrap; // (bootstrap_count)
  size_t bootstrap_count;
  // Addresses with the same number here are one host's, which is called at one after the other
  // until it answers; NULL: each is another's.
  const uint8_t *bootstrap_host; // (bootstrap_count)
  // Joining: whose stream it must be; NULL: that of the first that answers.
  const uint8_t *source_key;
  weft_stream stream; // SOURCE; source_key is the identity's
  size_t links_max;   // sessions; 0: 16 more than neighbours, or 1024 for a tracker
  // 0: 64 segments, live as many as the lag needs at the stream's rate or, where that is unknown,
  // at WEFT_NODE_LIVE_BITS_PER_S, and of a file that is fetched all of it, to 64 MiB; 16; twice
  // the target; 8
  size_t window, batch, neighbours_max, neighbours_target;
  // On demand and bulk, where segments are signed: full ones decoded in one call, on a thread
  // beside this one; 0, 1: each by itself.
  size_t gather;
  // Joining: what was fetched and released can be given again (LOAD events).
  bool rereads;
  uint64_t upload_bits_per_s; // 0: no limit
  bool congestion;            // LEDBAT
  int64_t startup_us;
  const weft_policy *policy;                               // NULL: push
  void (*event)(void *user, const weft_node_event *event); // NULL: nobody is told
  void *user;
} weft_node_options;

typedef struct weft_node weft_node;

// *error: an errno when the status is WEFT_E_IO (the address cannot be listened on).
// Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_RANDOM, WEFT_E_IO.
weft_status weft_node_new(const weft_node_options *options, int64_t now_us, weft_node **out,
                          int *error);
void weft_node_free(weft_node *node); // accepts NULL

int weft_node_fd(const weft_node *node);
bool weft_node_wants_write(const weft_node *node); // call turn when it can be written
weft_status weft_node_address(const weft_node *node, weft_address *out);
const weft_stream *weft_node_stream(const weft_node *node); // NULL while there is none
weft_engine *weft_node_engine(weft_node *node);             // NULL while there is none
size_t weft_node_links(const weft_node *node);              // open sessions
size_t weft_node_neighbours(const weft_node *node); // those of them that have the stream, too
// The source is a neighbour, and has not begun anew since.
bool weft_node_has_source(const weft_node *node);

// The host of that number (bootstrap_host) has these addresses from now on, in the order in which
// they should be tried. One that is being called, or has a session, stays. As many are taken as
// there is room for (WEFT_NODE_BOOTSTRAP).
void weft_node_set_host(weft_node *node, size_t host, const weft_address *addresses, size_t count);

// Where the node can be called, too: its port at the router. Those it has sessions with are told,
// and tell others of that instead of where they see the node, if it is at the same address. NULL:
// nowhere (any more).
void weft_node_set_mapped(weft_node *node, const weft_address *mapped);

// Goes over to the stream that the last SUCCESSOR told of: leaves all neighbours, and begins with
// a new engine, as a node that has just learned of it. What the old one holds is gone, and pointers
// to it are. Not inside an event. Errors: WEFT_E_STATE (there is none); those of weft_engine_new:
// the node has no stream then.
weft_status weft_node_succeed(weft_node *node, int64_t now_us);

// Takes what has come, a bounded share at a time. True: there may be more.
bool weft_node_receive(weft_node *node, int64_t now_us);
// Timers, events, sending. Failures of the machine come back; the node stays usable.
weft_status weft_node_turn(weft_node *node, int64_t now_us);
// At or before the last time given: at once. INT64_MAX: never. Times are never negative, so that
// now can be taken from this.
int64_t weft_node_deadline(const weft_node *node);
// Says goodbye; then a turn sends it.
void weft_node_leave(weft_node *node, int64_t now_us);

typedef struct weft_node_statistics {
  weft_engine_statistics engine;
  weft_session_statistics sessions;
  uint64_t links;                                                   // open
  uint64_t sent, sent_bytes, send_calls, send_errors, send_dropped; // datagrams
  uint64_t received, received_bytes, receive_calls;
  int send_error;     // why the last of send_errors could not be sent: an errno
  uint64_t announced; // nodes that a tracker knows
  // Neighbours that told to have all of the stream, and those that were gone before. An identity is
  // counted once; one that comes again after 256 others went is another.
  uint64_t had_all, left_early;
} weft_node_statistics;

void weft_node_get_statistics(const weft_node *node, weft_node_statistics *out);

#define WEFT_ADDRESS_TEXT 64u
// "1.2.3.4:5", "[::1]:5", "[fe80::1%eth0]:5", "name:5" (looked up, which may wait), ":5" and "5"
// (any address).
bool weft_address_parse(const char *text, weft_address *out);
// All that a name has, `most` at most, in the order in which they should be tried. 0: it is none.
size_t weft_address_parse_all(const char *text, size_t most, weft_address *out);
const char *weft_address_text(const weft_address *address, char out[WEFT_ADDRESS_TEXT]);
// Of one IPv4 address, or one /64 of IPv6: what one party has at least.
bool weft_address_same_origin(const weft_address *a, const weft_address *b);
// Of one /24 of IPv4, or one /48 of IPv6: what one party may well have all of.
bool weft_address_same_network(const weft_address *a, const weft_address *b);

#ifdef __cplusplus
}
#endif
#endif
