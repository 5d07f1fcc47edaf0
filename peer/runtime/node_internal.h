// SPDX-License-Identifier: Apache-2.0
// What the files of the node share.
#ifndef WEFT_PEER_NODE_INTERNAL_H
#define WEFT_PEER_NODE_INTERNAL_H

#include <sodium.h>

#include "peer/runtime/codec_gather.h"
#include "peer/runtime/describe.h"
#include "peer/runtime/udp.h"
#include "peer/session/common.h"

#define NONE SIZE_MAX
#define NODE_UDP_IP_BYTES 28u // below each datagram

// Timers, microseconds.
enum {
  NODE_RETRY_US = 2000000,     // a bootstrap address that did not answer
  NODE_SEEK_US = 1000000,      // looking at all this again
  NODE_REFUSE_US = 200000,     // telling again that there is no room
  NODE_EXCHANGE_US = 1000000,  // asking neighbours for more of them
  NODE_ANNOUNCE_US = 30000000, // to a tracker; to all, where a port is mapped
  NODE_MAPPED_US = 10000000,   // taking a change of where another's port is mapped
  NODE_CHECKSUM_US = 200000,   // between two reveals of one segment
  NODE_ASK_US = 2000000,       // silence after which one who must be there is asked whether he is
  NODE_TRACKER_US = 5000000,   // the same of a tracker
  NODE_BESIDE_US = 3000000,    // and how long after that he is called anew, beside the session
  NODE_PATIENCE_US = 30000000, // a fetch waits so long for who does not get on
  NODE_SLACK_US = 1000         // what is due within this is sent at once
};
enum {
  NODE_CANDIDATES = 64,
  NODE_JOINING_DIALS = 8, // at once: most may be behind NATs that let nobody in
  NODE_BANS = 256,
  NODE_GONE = 256,
  NODE_RECEIVE_MOST = 512,
  NODE_SEND_MOST = 64,
  NODE_SPARE = 16
};

typedef struct node_link {
  bool used, open, tracker, dialled;
  bool returns_call; // dialled since somebody said to be called from there
  bool asks_any;     // of a tracker it asked for any stream last
  size_t neighbour;  // the engine's number
  size_t bootstrap;  // which of the bootstrap addresses this is
  weft_address address;
  uint8_t public_key[32];
  int64_t since_us;             // open
  int64_t next_us;              // ANNOUNCE to a tracker, or telling again that there is no room
  uint64_t announced;           // at a tracker: the stream that the other side has
  int64_t answers_us, meets_us; // at a tracker: by when the answers given were due
  weft_address mapped;          // where it says that it can be called, too; port 0: nowhere
  int64_t mapped_us;            // by when the changes of that were due
} node_link;

typedef struct node_gone {
  uint8_t public_key[32];
  bool had_all;
} node_gone;

typedef struct node_bootstrap {
  weft_address address;
  size_t link;
  int64_t next_us;
  size_t host;       // others with this number are of the same one
  uint32_t failures; // calls without an answer since it answered
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
  weft_rng_chacha chance; // of the engine and of choices here
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
  size_t candidate_dialled; // the one dialled last; SIZE_MAX: none yet
  uint8_t bans[NODE_BANS][32];
  size_t ban_count;
  int64_t now_us, seek_us;
  weft_address mapped;       // weft_node_set_mapped
  int64_t mapped_us;         // when all are told it again; INT64_MAX: there never was one
  weft_stream successor;     // id 0: none is known
  weft_address successor_at; // who told of it
  bool successor_by_source;
  bool leaving, more_output;
  uint64_t send_dropped;
  node_gone gone[NODE_GONE]; // the last, or fewer
  size_t gone_count;
  uint64_t had_all, left_early; // of those before them
};

weft_rng weft_node_rng(weft_node *node);
void weft_node_tell(weft_node *node, weft_node_event_kind kind, size_t link);
// Seals and sends one message of the node's own.
void weft_node_say(weft_node *node, size_t link, const uint8_t *message, size_t bytes);
// Starts a session with the address; NONE when that cannot be.
size_t weft_node_dial(weft_node *node, const weft_address *address);

// node_members.c: who else is there
void weft_node_add_candidate(weft_node *node, const weft_address *address);
// Whether one at the address, or at another port of it, was named to begin with, or by a tracker.
bool weft_node_looks_for(const weft_node *node, const weft_address *address);
// The same address as the engine hands it on.
weft_peer_address weft_node_opaque(const weft_address *address);
// Where others are told that the other side is.
const weft_address *weft_node_callable(const node_link *link);
void weft_node_say_mapped(weft_node *node, size_t link); // if there is something to say
// A neighbour that the engine wants.
void weft_node_dial_for_engine(weft_node *node, const weft_event *dial);
void weft_node_ask_trackers(weft_node *node); // soon
void weft_node_announce(weft_node *node, size_t link);
void weft_node_message(weft_node *node, size_t link, const uint8_t *data, size_t bytes);
void weft_node_seek(weft_node *node); // bootstrap again, more neighbours, trackers
int64_t weft_node_seek_deadline(const weft_node *node);

// node_stream.c: the engine and its neighbours
weft_status weft_node_start_engine(weft_node *node, const weft_stream *stream);
void weft_node_opened(weft_node *node, size_t link);
// The other side is at another address, which others are told from now on.
void weft_node_moved(weft_node *node, size_t link);
// The same of weft_node_callable.
void weft_node_show_callable(weft_node *node, size_t link);
// A session that found no room among the neighbours tries once more.
void weft_node_admit_again(weft_node *node, size_t link);
// No room: the other side learns who else there is, and goes.
void weft_node_refuse(weft_node *node, size_t link);
void weft_node_lost(weft_node *node, size_t link, weft_session_reason reason);
void weft_node_engine_events(weft_node *node);

// node_successor.c: a source that begins again
// Who has another stream than this node told of it.
void weft_node_hear_of(weft_node *node, size_t link, const weft_stream *other);
bool weft_node_is_bootstrap(const weft_node *node, const weft_address *address);
// Asks those whether they are there who are to be, and calls beside the session who does not
// answer.
void weft_node_look_after(weft_node *node);
// Whether nobody is left of a live stream who could know what became of it.
bool weft_node_bereft(const weft_node *node);

// node_gone.c
void weft_node_gone(weft_node *node, const uint8_t *public_key, bool had_all);
void weft_node_count(const weft_node *node, weft_node_statistics *out); // had_all and left_early

// node_room.c
// Ends a session for the newcomer's, where all are taken and one has less of a right to it, or is
// his own.
void weft_node_make_link_room(weft_node *node, const uint8_t public_key[32],
                              const weft_address *newcomer);
// The same of a neighbour. False: the newcomer is no better.
bool weft_node_make_neighbour_room(weft_node *node, const weft_address *newcomer);
// What the engine takes for where somebody comes from.
weft_origin weft_node_origin(const weft_node *node, const weft_address *address);
// At a tracker: of those that have the stream (0: any), but who asks, some at random. How many.
size_t weft_node_tell_of(weft_node *node, size_t asks, uint64_t stream,
                         weft_address out[WEFT_LIST_MAX]);
// Whether dialling leaves sessions for those who come.
bool weft_node_may_dial(const weft_node *node, bool returns_call);

#endif
