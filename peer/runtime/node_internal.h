// SPDX-License-Identifier: Apache-2.0
// What the files of the node share. Terms:
// link: a session with another node, or one being dialled; numbered as in peer/session.
// neighbour: a link that the engine exchanges the stream with; it has a number in the engine.
// dial, call: to start a session with an address; a returned call is a dial made because a tracker
// said that a node there is dialling us (both may be behind NATs).
// bootstrap addresses: those that the user names; several may belong to one host.
// candidate: an address from a tracker's list, kept until the stream is known.
// successor: the new stream of a source that stopped and started again.
// mapped: the port of a node at its router, where it can be dialled, too.
// origin: an address and its network, as the engine counts them.
#ifndef WEFT_PEER_NODE_INTERNAL_H
#define WEFT_PEER_NODE_INTERNAL_H

#include <sodium.h>

#include "peer/runtime/codec_gather.h"
#include "peer/runtime/describe.h"
#include "peer/runtime/udp.h"
#include "peer/session/common.h"

#define NONE SIZE_MAX
#define NODE_UDP_IP_BYTES 28u // headers below each datagram

// Timers, microseconds.
enum {
  NODE_RETRY_US = 2000000,     // until a bootstrap address that did not answer is dialled again
  NODE_SEEK_US = 1000000,      // between two rounds of weft_node_seek
  NODE_REFUSE_US = 200000,     // until a node is told again that there is no room
  NODE_EXCHANGE_US = 1000000,  // between two requests to neighbours for more addresses
  NODE_ANNOUNCE_US = 30000000, // between announcements to a tracker, and of a mapped port to all
  NODE_MAPPED_US = 10000000,   // for one accepted change of a node's mapped port
  NODE_CHECKSUM_US = 200000,   // between two reveals of one segment
  NODE_ASK_US = 2000000,       // silence after which an essential node is probed
  NODE_TRACKER_US = 5000000,   // the same for a tracker
  NODE_BESIDE_US = 3000000,    // further silence after which it is dialled again, besides
  NODE_PATIENCE_US = 30000000, // how long a fetch waits for a neighbour that makes no progress
  NODE_SAID_US = 60000000,     // and the lag: how long a peer's word of a successor counts
  NODE_SLACK_US = 1000         // what is due within this time is sent at once
};
enum {
  NODE_CANDIDATES = 64,
  NODE_JOINING_DIALS = 8, // at once: most of them may be behind NATs that let nothing in
  NODE_BANS = 256,
  NODE_GONE = 256,
  NODE_RECEIVE_MOST = 512,
  NODE_SEND_MOST = 64,
  NODE_SPARE = 16
};

typedef struct node_link {
  bool used, open, tracker, dialled;
  bool returns_call;     // dialled because we were told that this node dials us
  bool asks_any;         // the last announcement to this tracker asked for any stream
  bool source_on_demand; // it is the source of its stream, which is on demand
  size_t neighbour;      // its number in the engine
  size_t bootstrap;      // index of its bootstrap address
  weft_address address;
  uint8_t public_key[32];
  int64_t since_us;             // when it opened
  int64_t next_us;              // next ANNOUNCE to a tracker, or next refusal
  uint64_t announced;           // at a tracker: the stream that the other node has
  int64_t answers_us, meets_us; // at a tracker: rate limits, see `allowed`
  weft_address mapped;          // where it says that it can be dialled, too; port 0: nowhere
  int64_t mapped_us;            // rate limit of its changes
} node_link;

typedef struct node_gone {
  uint8_t public_key[32];
  bool had_all;
  int64_t silent_us; // when it fell silent; 0: it left, or was sent away
} node_gone;

typedef struct node_bootstrap {
  weft_address address;
  size_t link;
  int64_t next_us;
  size_t host;       // addresses with the same number belong to the same host
  uint32_t failures; // unanswered calls since its last answer
  bool source;       // the stream's source was met there
  bool over;         // the source was there, and left at the end of its live stream
} node_bootstrap;

struct weft_node {
  weft_node_options options;
  weft_ctx *ctx;
  weft_node_role role;
  weft_udp udp;
  weft_sessions *sessions;
  weft_engine *engine;
  weft_engine_options engine_options;
  weft_stream stream;
  weft_rng_chacha chance; // for the engine and for choices made here
  uint8_t origin_key[crypto_shorthash_KEYBYTES];
  weft_codec_rlnc rlnc;
  weft_gatherer *gatherer; // NULL: each segment is decoded by itself
  weft_codec codec;
  weft_trust_ed25519 keys;
  weft_trust trust;
  node_link *links; // (options.links_max), by session link
  size_t *link_of;  // (options.neighbours_max), by neighbour
  size_t open_links, dials;
  node_bootstrap bootstrap[WEFT_NODE_BOOTSTRAP];
  weft_address candidates[NODE_CANDIDATES];
  size_t candidate_count, candidate_next;
  size_t candidate_dialled; // the one dialled last; NONE: none yet
  uint8_t bans[NODE_BANS][32];
  size_t ban_count;
  int64_t now_us, seek_us;
  weft_address mapped;       // weft_node_set_mapped
  int64_t mapped_us;         // when to tell all of it again; INT64_MAX: there never was one
  weft_stream successor;     // id 0: none is known
  weft_address successor_at; // the node that announced it
  bool successor_by_source;
  int64_t successor_us; // when it was announced last
  bool leaving, more_output;
  bool ended; // the end of a live stream is known, and a neighbour had all of it
  uint64_t send_dropped;
  node_gone gone[NODE_GONE]; // the last ones
  size_t gone_count;
  uint64_t had_all, left_early; // of the ones before those
};

weft_rng weft_node_rng(weft_node *node);
void weft_node_tell(weft_node *node, weft_node_event_kind kind, size_t link);
// Seals and sends one of the node's own messages.
void weft_node_say(weft_node *node, size_t link, const uint8_t *message, size_t bytes);
// Starts a session with the address; returns NONE if that fails.
size_t weft_node_dial(weft_node *node, const weft_address *address);

// node_members.c: other nodes
void weft_node_add_candidate(weft_node *node, const weft_address *address);
// Whether the address, or another port of it, is a bootstrap address or a candidate.
bool weft_node_looks_for(const weft_node *node, const weft_address *address);
// Converts an address to the opaque form that the engine passes on.
weft_peer_address weft_node_opaque(const weft_address *address);
// Returns the address at which others are told to dial the other node.
const weft_address *weft_node_callable(const node_link *link);
void weft_node_say_mapped(weft_node *node, size_t link); // if there ever was a mapped port
// Dials a neighbour that the engine wants.
void weft_node_dial_for_engine(weft_node *node, const weft_event *dial);
void weft_node_ask_trackers(weft_node *node); // at the next turn
void weft_node_announce(weft_node *node, size_t link);
void weft_node_message(weft_node *node, size_t link, const uint8_t *data, size_t bytes);
void weft_node_seek(weft_node *node); // dials, announces
int64_t weft_node_seek_deadline(const weft_node *node);

// node_stream.c: the engine and its neighbours
weft_status weft_node_start_engine(weft_node *node, const weft_stream *stream);
// Whether an engine accepts the stream's parameters. For nodes that have a stream.
bool weft_node_can_have(const weft_node *node, const weft_stream *stream);
void weft_node_opened(weft_node *node, size_t link);
// Handles a new address of the other node, which others are told from now on.
void weft_node_moved(weft_node *node, size_t link);
// Handles a change of weft_node_callable.
void weft_node_show_callable(weft_node *node, size_t link);
// Tries once more to make a neighbour of a link for which there was no room.
void weft_node_admit_again(weft_node *node, size_t link);
// Refuses a node for lack of room: it is sent addresses of other nodes, and leaves.
void weft_node_refuse(weft_node *node, size_t link);
void weft_node_lost(weft_node *node, size_t link, weft_session_reason reason);
void weft_node_engine_events(weft_node *node);

// node_successor.c: a source that starts again
// Handles a node that has another stream than this one.
void weft_node_hear_of(weft_node *node, size_t link, const weft_stream *other);
bool weft_node_is_bootstrap(const weft_node *node, const weft_address *address);
// Probes the silent nodes that this one depends on, and dials those that do not answer in parallel
// to the session.
void weft_node_look_after(weft_node *node);
// Whether a node with a live stream has no neighbours left that could know what became of it.
bool weft_node_bereft(const weft_node *node);

// node_gone.c
// Whether the end of a live stream is known, by which nodes of it leave. An engine says so only of
// neighbours that have everything.
bool weft_node_ended(const weft_node *node);
// Takes note of a neighbour that is about to go: whether it was the source, at the end.
void weft_node_parts(weft_node *node, const node_link *link, weft_session_reason reason);
void weft_node_gone(weft_node *node, const uint8_t *public_key, bool had_all, bool silent);
// Sets had_all, left_early and silent_us.
void weft_node_count(const weft_node *node, weft_node_statistics *out);

// node_room.c
// Where all sessions are taken, ends one to make room for the newcomer: one with less of a right to
// a session, or the newcomer's own earlier one.
void weft_node_make_link_room(weft_node *node, const uint8_t public_key[32],
                              const weft_address *newcomer);
// The same for a neighbour's place. Returns false if no neighbour has less of a right to it.
bool weft_node_make_neighbour_room(weft_node *node, const weft_address *newcomer);
// Returns what the engine regards as the origin of a node.
weft_origin weft_node_origin(const weft_node *node, const weft_address *address);
// At a tracker: chooses at random some nodes that have the stream (0: any), other than the asking
// one. On demand the source comes first, because viewers that are cut off need it.
void weft_node_tell_of(weft_node *node, size_t asks, uint64_t stream, weft_list *out);
// Whether another dial would leave enough sessions for nodes that dial this one.
bool weft_node_may_dial(const weft_node *node, bool returns_call);

#endif
