// SPDX-License-Identifier: Apache-2.0
// A node of a stream on UDP: the engine, sessions with its neighbours, and the socket below them.
// It has no loop and reads no clock: weft_node_source_new (peer_loop.h) puts it on a GLib main
// loop; with another kind of loop, call receive and turn yourself.
//
// Use: when the descriptor is readable, weft_node_receive; then let the application feed or read
// the engine; then weft_node_turn; then sleep until weft_node_deadline or until the descriptor is
// ready. One thread at a time.
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

// The description of a stream: the source sets it, and every node passes it on when a session
// opens.
typedef struct weft_stream {
  uint64_t id; // never 0
  uint16_t blocks;
  uint32_t block_bytes;
  weft_engine_mode mode;
  bool trusted;             // manifests are signed with source_key
  bool checksums;           // and checksums are revealed
  uint64_t rate_bits_per_s; // 0: paced by what arrives
  // Whole length, 0: unknown. Not live: a source that knows it loads what its neighbours lack (LOAD
  // events, weft_engine_load) instead of putting segments in order.
  uint64_t bytes;
  uint32_t lag_ms; // live
  uint8_t source_key[32];
} weft_stream;

typedef enum weft_node_role {
  WEFT_NODE_JOINING, // has no stream yet
  WEFT_NODE_PEER,
  WEFT_NODE_SOURCE,
  WEFT_NODE_TRACKER // knows which nodes have which stream, and has none itself
} weft_node_role;

typedef enum weft_node_event_kind {
  WEFT_NODE_STREAM,         // joining: the stream is known now, and there is an engine
  WEFT_NODE_STREAM_FAILED,  // joining: a stream that the node cannot begin; it keeps looking
  WEFT_NODE_NEIGHBOUR,      // opened
  WEFT_NODE_NEIGHBOUR_LOST, //
  WEFT_NODE_BANNED,         // a neighbour that polluted
  WEFT_NODE_UNREACHABLE,    // a bootstrap address; it is tried again
  WEFT_NODE_MOVED,          // a neighbour, to this address
  WEFT_NODE_ENGINE,         // an event of the engine: PLAY, SKIP, STALL, RESUME, LOAD, DECODED
  WEFT_NODE_SUCCESSOR,      // live: the source has another stream now (weft_node_succeed)
  WEFT_NODE_ANOTHER_STREAM  // the node at a bootstrap address has a different stream
} weft_node_event_kind;

typedef struct weft_node_event {
  weft_node_event_kind kind;
  weft_address address;       // not for ENGINE
  bool by_source;             // SUCCESSOR: reported by the source itself; else by a peer of it
  weft_session_reason reason; // UNREACHABLE, NEIGHBOUR_LOST
  size_t host;                // UNREACHABLE: its number (bootstrap_host)
  uint32_t failures;          // UNREACHABLE: consecutive calls without an answer
  bool ended;                 // UNREACHABLE: a live stream has ended, so nodes of it leave
  weft_status status;         // STREAM_FAILED; WEFT_E_ARGUMENT: no such stream is possible
  const uint8_t *public_key;  // (32) not for ENGINE or UNREACHABLE
  weft_event engine;
} weft_node_event;

#define WEFT_NODE_BOOTSTRAP 64u // most addresses to begin with

// Live streams of unknown rate get windows for this rate.
#define WEFT_NODE_LIVE_BITS_PER_S UINT64_C(50000000)

typedef struct weft_node_options {
  weft_ctx *ctx;
  weft_node_role role; // JOINING, SOURCE or TRACKER
  weft_address listen;
  weft_identity identity;
  weft_session_cipher cipher;
  // Where to begin: addresses of sources, peers or trackers.
  const weft_address *bootstrap; // (bootstrap_count)
  size_t bootstrap_count;
  // Addresses with the same number belong to one host, which is called at one after the other until
  // it answers; NULL: each address is a host of its own.
  const uint8_t *bootstrap_host; // (bootstrap_count)
  // Joining: the key of the stream's source; NULL: that of the first that answers.
  const uint8_t *source_key;
  weft_stream stream; // SOURCE; source_key is the identity's
  size_t links_max;   // sessions; 0: 16 more than neighbours, or 1024 for a tracker
  // Defaults for 0. window: 64 segments; live: as many as the lag needs at the stream's rate, or at
  // WEFT_NODE_LIVE_BITS_PER_S if the rate is unknown; for a file that is fetched: all of it, up to
  // 64 MiB. batch: 16; neighbours_max: twice the target; neighbours_target: 8.
  size_t window, batch, neighbours_max, neighbours_target;
  // On demand and bulk, where segments are signed: full segments decoded in one call, on a thread
  // beside this one; 0, 1: one at a time.
  size_t gather;
  // Joining: the application can give back what was fetched and released (LOAD events).
  bool rereads;
  uint64_t upload_bits_per_s; // 0: no limit
  bool congestion;            // LEDBAT
  int64_t startup_us;
  const weft_policy *policy;                               // NULL: push
  void (*event)(void *user, const weft_node_event *event); // NULL: no events
  void *user;
} weft_node_options;

typedef struct weft_node weft_node;

// *error: an errno when the status is WEFT_E_IO (the address cannot be listened on).
// Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_RANDOM, WEFT_E_IO.
weft_status weft_node_new(const weft_node_options *options, int64_t now_us, weft_node **out,
                          int *error);
void weft_node_free(weft_node *node); // accepts NULL

int weft_node_fd(const weft_node *node);
bool weft_node_wants_write(const weft_node *node); // call turn when it is writable
weft_status weft_node_address(const weft_node *node, weft_address *out);
const weft_stream *weft_node_stream(const weft_node *node); // NULL while there is none
weft_engine *weft_node_engine(weft_node *node);             // NULL while there is none
size_t weft_node_links(const weft_node *node);              // open sessions
size_t weft_node_neighbours(const weft_node *node); // sessions with nodes that have the stream, too
// The source is a neighbour, and has not restarted since.
bool weft_node_has_source(const weft_node *node);
// Live: how many segments it has made, as far as it said; 0: it is no neighbour.
uint64_t weft_node_source_segments(const weft_node *node);

// Sets the addresses of the host with that number (bootstrap_host), in the order in which they
// should be tried. An address that is being called, or has a session, stays. As many are accepted
// as there is room for (WEFT_NODE_BOOTSTRAP).
void weft_node_set_host(weft_node *node, size_t host, const weft_address *addresses, size_t count);

// Another address where the node can be called: its port at the router. Nodes that it has sessions
// with learn of it, and pass it on instead of the address at which they see the node, if both have
// the same IP address. NULL: none (any more).
void weft_node_set_mapped(weft_node *node, const weft_address *mapped);

// Switches to the stream that the last SUCCESSOR named: leaves all neighbours and begins with a new
// engine, like a node that has just learned of the stream. The old engine and what it holds are
// gone; pointers to it are invalid. Do not call inside an event. Errors: WEFT_E_STATE (no
// successor; or only peers named it, a minute and the stream's lag ago or earlier); those of
// weft_engine_new: the node then has no stream.
weft_status weft_node_succeed(weft_node *node, int64_t now_us);

// Receives what has come, a bounded share at a time. True: there may be more.
bool weft_node_receive(weft_node *node, int64_t now_us);
// Runs timers, events and sending. Failures of the machine are returned; the node stays usable.
weft_status weft_node_turn(weft_node *node, int64_t now_us);
// At or before the last time given: at once. INT64_MAX: never. Times are never negative, so now can
// be subtracted from the result.
int64_t weft_node_deadline(const weft_node *node);
// Leaves all neighbours; the next turn sends the farewell.
void weft_node_leave(weft_node *node, int64_t now_us);

typedef struct weft_node_statistics {
  weft_engine_statistics engine;
  weft_session_statistics sessions;
  uint64_t links;                                                   // open
  uint64_t sent, sent_bytes, send_calls, send_errors, send_dropped; // datagrams
  uint64_t received, received_bytes, receive_calls;
  int send_error;     // errno of the last of send_errors
  uint64_t announced; // nodes that a tracker knows
  // Neighbours that reported to have all of the stream, and those that were gone before. An
  // identity is counted once; one that returns after 256 others have gone counts as a new one.
  uint64_t had_all, left_early;
  int64_t silent_us; // when the last of left_early fell silent, which may still return; 0: none did
} weft_node_statistics;

void weft_node_get_statistics(const weft_node *node, weft_node_statistics *out);

#define WEFT_ADDRESS_TEXT 64u
// Accepts "1.2.3.4:5", "[::1]:5", "[fe80::1%eth0]:5", "name:5" (looked up, which may block), ":5"
// and "5" (any address).
bool weft_address_parse(const char *text, weft_address *out);
// All addresses of a name, at most `most`, in the order in which they should be tried. 0: invalid.
size_t weft_address_parse_all(const char *text, size_t most, weft_address *out);
const char *weft_address_text(const weft_address *address, char out[WEFT_ADDRESS_TEXT]);
// Same IPv4 address, or same /64 of IPv6: the least that one party has.
bool weft_address_same_origin(const weft_address *a, const weft_address *b);
// Same /24 of IPv4, or same /48 of IPv6: what one party may well have all of.
bool weft_address_same_network(const weft_address *a, const weft_address *b);

#ifdef __cplusplus
}
#endif
#endif
