// SPDX-License-Identifier: Apache-2.0
// What the files of a swarm share: peers, each lane's share of the swarm, and which file does what.
#ifndef WEFT_SIM_SWARM_INTERNAL_H
#define WEFT_SIM_SWARM_INTERNAL_H

#include <string.h>

#include "peer/runtime/codec_gather.h"
#include "sim/core/arena.h"
#include "sim/core/core.h"
#include "sim/graph.h"
#include "sim/model.h"
#include "sim/swarm/swarm.h"

#define WEFT_SIM_NOBODY UINT32_MAX

enum {
  WEFT_SIM_DIALS = 16, // dials that one peer may have under way
  WEFT_SIM_SPARE = 8,  // by which its dials and neighbours together may exceed neighbours_max
  WEFT_SIM_BANS = 4,   // identities that it remembers to refuse
  WEFT_SIM_ANSWER = 24 // addresses in a tracker's answer
};
static const int64_t WEFT_SIM_AGAIN_US = 250000;      // a handshake message is repeated after this,
static const int64_t WEFT_SIM_AGAIN_MAX_US = 1000000; // doubling up to this
static const int64_t WEFT_SIM_TRACKER_US = 10000000;  // between requests to the tracker
static const int64_t WEFT_SIM_BOOTSTRAP_US = 3000000; // between calls to a source that was full
static const int64_t WEFT_SIM_SAMPLE_US = 500000;
// The uplink rate that a free rider's engine is given, bit/s. Its first greeting uses up minutes of
// it, so no coded packet gets a turn, whether pushed or requested. Its maps say that it has nothing
// to spare.
static const uint64_t WEFT_SIM_RIDER_BITS_PER_S = 1;

// Message kinds. The first seven open a session, in this order (docs/session.md): OPENED is the
// responder's first DATA, REFUSE the same if there is no room. With MEET the tracker announces that
// the sender is dialling the receiver. Content of TOKEN: segment, count and bytes
// (weft_sim_token_head), then the token; of BURST: count, their lengths, then the datagrams; of
// REFUSE: a message of the engine.
enum {
  WEFT_SIM_INIT,
  WEFT_SIM_RETRY,
  WEFT_SIM_INIT_COOKIE,
  WEFT_SIM_ACCEPT,
  WEFT_SIM_CONFIRM,
  WEFT_SIM_OPENED,
  WEFT_SIM_REFUSE,
  WEFT_SIM_MEET,
  WEFT_SIM_BURST,
  WEFT_SIM_TOKEN,
  WEFT_SIM_PASSED = 0x100 // has passed the downlink's queue
};

typedef struct weft_sim_token_head {
  uint64_t segment;
  uint32_t count, bytes;
} weft_sim_token_head;

// Returns the segment of a token, to prefetch it; 0 for other messages.
static inline uint64_t weft_sim_segment_of(const weft_sim_message *message) {
  const weft_sim_token_head *head = weft_sim_content(message);
  return (message->kind & ~(uint32_t)WEFT_SIM_PASSED) == WEFT_SIM_TOKEN ? head->segment : 0;
}

typedef enum weft_sim_state { WEFT_SIM_ABSENT, WEFT_SIM_ONLINE, WEFT_SIM_GONE } weft_sim_state;

typedef struct weft_sim_dial {
  uint32_t peer;             // WEFT_SIM_NOBODY: none
  uint32_t step;             // the message awaiting an answer: INIT, INIT_COOKIE or CONFIRM
  int64_t again_us, wait_us; // when it is repeated, and the wait after that
  int64_t until_us;
} weft_sim_dial;

// The peer behind one of the engine's neighbour numbers.
typedef struct weft_sim_contact {
  uint32_t peer; // WEFT_SIM_NOBODY: none
  uint32_t delay_us;
} weft_sim_contact;

// One peer of this rank. Its contacts are stored separately: share->contacts.
typedef struct weft_sim_peer {
  weft_engine *engine;
  uint32_t id;
  uint32_t sequence;
  uint8_t state, class_index;
  bool free_rider, polluter, nat, bad, sampled;
  bool has_stream; // it has learned which one: from a peer, if that is all that it was given
  weft_sim_rng engine_rng, link_rng;
  weft_sim_link up, down;
  uint64_t hash;
  int64_t deadline_us; // the engine's
  int64_t own_us;      // the earliest of tracker, dials, seeks and feeding
  int64_t wake_us;     // the earliest turn asked for
  int64_t tracker_us, sample_us, seek_us, feed_us;
  int64_t stall_us, sought_us; // since when it has stalled, or waited after a seek; -1: it does not
  uint32_t banned[WEFT_SIM_BANS];
  uint32_t degree;
  uint32_t surplus; // packets behind those that completed segments, in the same bursts (tokens)
  int64_t done_us;
  uint64_t delivered_bytes, wrong_bytes, sent_bytes; // sent: what left its uplink
  weft_sim_dial dials[WEFT_SIM_DIALS];               // rarely read, so not prefetched
} weft_sim_peer;

typedef struct weft_sim_arrived_message {
  int64_t time_us;
  weft_sim_message *message;
} weft_sim_arrived_message;

// How many items of one kind a lane has kept.
typedef struct weft_sim_kept {
  size_t count, capacity;
  int64_t full_us; // start of the window in which it had enough
  bool cut;        // there were more
} weft_sim_kept;

// One lane's share of the swarm, with its own memory. No two shares lie in one pair of cache lines.
typedef struct weft_sim_share {
  _Alignas(128) struct weft_sim_swarm *swarm;
  weft_sim_lane *lane; // valid in a turn
  int64_t begin_us, end_us;
  size_t number, index; // of the lane, in this rank and among all
  weft_sim_arena *arena;
  weft_ctx *ctx;
  weft_engine_options engine; // for all its peers
  weft_engine_options source; // for peer 0
  weft_engine_scratch *scratch;
  weft_codec_rlnc rlnc;
  weft_codec_blocks plain;
  weft_gatherer *gatherer;
  weft_sim_codec code, polluted_code;
  weft_codec codec, source_codec, polluted_codec, made_codec;
  weft_sim_peer *peers;       // (peer_count) peer i * lanes + index
  weft_sim_contact *contacts; // (peer_count, neighbours_max)
  size_t hot_bytes;           // of an engine: what every turn reads
  size_t peer_count;
  weft_sim_viewer *viewers; // (peer_count)
  weft_sim_arrived_message *inbox;
  size_t inbox_capacity;
  uint8_t *segment;         // (2, n * k) a segment on its way in or out, and room to compare it
  uint64_t surplus_segment; // of the last token, and its surplus
  size_t surplus;
  weft_sim_totals totals;
  weft_sim_second *seconds;
  weft_sim_sample *samples;
  weft_sim_trace *trace;
  weft_sim_kept sampled, traces; // of samples and trace
  int64_t progress_us;           // bulk
  uint64_t unfinished;           // bulk: peers that lack something and have not left
} weft_sim_share;

struct weft_sim_swarm {
  weft_sim_options options;
  weft_sim_parameters parameters;
  weft_sim_model model;
  weft_sim_graph graph; // empty: peers find each other
  weft_sim_core *core;
  weft_sim_share *shares; // (threads)
  size_t lanes;           // of all ranks
  uint64_t segment_bytes, segments;
  int64_t segment_us, end_us, stall_us;
  size_t second_count;
  bool fed_all;
  uint64_t fed_bytes, fed_segments;
  weft_sim_result result;
  void *gathered[4]; // arrays of the result
};

static inline weft_sim_contact *weft_sim_contacts(const weft_sim_share *share,
                                                  const weft_sim_peer *p) {
  return share->contacts + (size_t)(p - share->peers) * share->swarm->parameters.neighbours_max;
}
static inline weft_peer_address weft_sim_address(uint32_t peer) {
  weft_peer_address address = {.length = sizeof peer};
  memcpy(address.bytes, &peer, sizeof peer);
  return address;
}
// Returns the engine's number of a peer; SIZE_MAX: it is not a neighbour.
static inline size_t weft_sim_number_of(const weft_sim_share *share, const weft_sim_peer *p,
                                        uint32_t other) {
  const weft_sim_contact *contacts = weft_sim_contacts(share, p);
  for (size_t i = 0; i < share->swarm->parameters.neighbours_max; i++)
    if (contacts[i].peer == other)
      return i;
  return SIZE_MAX;
}

// peer.c: one peer's turn, and what its engine asks for
weft_status weft_sim_take_turn(void *user, weft_sim_lane *lane, const weft_sim_turn *turn);
void weft_sim_prefetch(void *user, size_t lane, uint32_t actor, const weft_sim_message *message,
                       unsigned step);
// Handles the engine's events, deliveries and bursts after any input.
weft_status weft_sim_drain(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us);
weft_status weft_sim_add_neighbour(weft_sim_share *share, weft_sim_peer *peer, uint32_t other,
                                   bool dialled, int64_t now_us, size_t *number);

// life.c: arrival, departure, the tracker, dials, feeding
weft_status weft_sim_join(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us);
weft_status weft_sim_leave(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us);
weft_status weft_sim_own_timers(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us);
int64_t weft_sim_own_time(const weft_sim_share *share, const weft_sim_peer *peer);
weft_status weft_sim_feed(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us);
weft_status weft_sim_load(weft_sim_share *share, weft_sim_peer *peer, uint64_t segment,
                          int64_t now_us);
weft_status weft_sim_deliver(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us);

// handshake.c: opening sessions
weft_status weft_sim_dial_to(weft_sim_share *share, weft_sim_peer *peer,
                             const weft_peer_address *address, bool calls_back, int64_t now_us);
// Repeats messages that were not answered, and gives up dials that take too long.
weft_status weft_sim_dial_timers(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us);
int64_t weft_sim_dial_time(const weft_sim_peer *peer); // when that is due next
weft_status weft_sim_take_handshake(weft_sim_share *share, weft_sim_peer *peer,
                                    const weft_sim_message *message, int64_t now_us);

// network.c: what goes out and what comes in
weft_status weft_sim_transmit(weft_sim_share *share, weft_sim_peer *peer, const weft_burst *burst,
                              int64_t now_us);
weft_status weft_sim_send_plain(weft_sim_share *share, weft_sim_peer *peer, uint32_t to,
                                uint32_t kind, const void *content, size_t bytes, size_t wire_bytes,
                                int64_t now_us);
// The same over a path whose delay is `to`'s.
weft_status weft_sim_send_by(weft_sim_share *share, weft_sim_peer *peer, const weft_sim_contact *to,
                             uint32_t kind, const void *content, size_t bytes, size_t wire_bytes,
                             int64_t now_us);
// Counts a message as lost; unheard: because the receiver is gone or does not know its sender.
void weft_sim_lose(weft_sim_share *share, const weft_sim_message *message, bool unheard);
// Both remove from a message what is lost of it.
weft_status weft_sim_arrive(weft_sim_share *share, weft_sim_peer *peer, weft_sim_message *message,
                            int64_t now_us);
// Returns when the message has passed the downlink; < 0: it was lost on the path, the queue is
// full, or the peer is not online.
int64_t weft_sim_pass_downlink(weft_sim_share *share, weft_sim_peer *peer,
                               weft_sim_message *message);

// results.c
void weft_sim_note(weft_sim_share *share, const weft_sim_trace *trace);
void weft_sim_take_sample(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us);
void weft_sim_count_peer(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us, bool left);
static inline weft_sim_second *weft_sim_now(const weft_sim_share *share, int64_t now_us) {
  const size_t second = (size_t)(now_us / 1000000);
  const size_t last = share->swarm->second_count - 1;
  return &share->seconds[second < last ? second : last];
}

// Whether a status is a real failure, rather than a datagram that the engine rejected.
static inline bool weft_sim_is_failure(weft_status status) {
  return status >= WEFT_E_NOMEM || status == WEFT_E_ARGUMENT || status == WEFT_E_BUFFER;
}

#endif
