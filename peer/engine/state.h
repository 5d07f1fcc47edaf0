// SPDX-License-Identifier: Apache-2.0
// What an engine keeps: the segments of its window, its neighbours and what is due to each, the
// clocks, and the scratch that engines share.
#ifndef WEFT_PEER_ENGINE_STATE_H
#define WEFT_PEER_ENGINE_STATE_H

#include "peer/engine/messages.h"
#include "peer/engine/shortage.h"
#include "weft/peer_engine.h"

#define WEFT_NO_SEGMENT UINT64_MAX
#define WEFT_NO_NEIGHBOUR UINT16_MAX
// What the fields of a weft_policy_want hold; a rank is at most 1024.
#define WEFT_WANT_RANK 0x7ffu
#define WEFT_WANT_FLIGHT 0x7fffu

// A packet, or a token, that waits until a checksum has judged it (checksum.c).
typedef struct weft_held {
  struct weft_held *next;
  int64_t at_us; // when it came
  uint16_t neighbour, generation;
  uint16_t count; // packets
  uint16_t gain;  // by how much they raised the trial's rank
  bool verified;  // by a checksum, or sent by the source itself: what is mixed may contain it
  bool added;     // the trial has it
  size_t bytes;
  uint8_t data[]; // datagram or token
} weft_held;

// The newest checksum of a segment, to judge by and to hand on.
typedef struct weft_reveal {
  uint64_t made_us, seed;
  uint8_t signature[WEFT_SIGNATURE_BYTES];
  uint8_t sums[]; // (n, WEFT_CHECKSUM_ROWS)
} weft_reveal;

// Where a full segment is on its way to being decoded (gather.c).
typedef enum weft_gathering {
  WEFT_GATHERING_NONE,
  WEFT_GATHERING_WAITS, // for others
  WEFT_GATHERING_WORKS, // the codec does
  WEFT_GATHERING_DONE   // and its hash is to be looked at
} weft_gathering;

// One segment of the window; segment s stands at s % window.
typedef struct weft_slot {
  void *segment; // the codec's; NULL until its first packet. With checksums: what is verified
  void *trial;   // with checksums: everything that came, verified or not
  weft_held *held, *held_last;
  weft_reveal *reveal;
  int64_t at_us, made_us;  // of the manifest
  int64_t solo_us;         // when `solo` was chosen; live source: when a request was answered;
                           // one that loads: when it was to be loaded; bulk: complete
  int64_t next_reveal_us;  // source
  int64_t asked_reveal_us; // when the newest checksum was asked for
  uint64_t asked_made_us;
  uint32_t bytes;      // true length, of the manifest
  uint16_t waiting;    // packets held that the trial has no room for: it is spoilt
  uint16_t kept;       // packets held, all of them
  uint16_t solo;       // after a hash failure: the one neighbour that may send; else NO_NEIGHBOUR
  uint8_t reveals;     // source: made so far
  uint8_t gathering;   // weft_gathering
  uint8_t helpers;     // neighbours that have more of it, when last counted
  bool complete;       // and verified, where there is trust
  bool manifest, last; // the manifest is known, and ends the stream
  bool skipped;        // live: its time came too early
  bool failed;         // the hash did not match before
  bool tried;          // the trial has rank n and did not match: something in it is spoilt
  bool tell_decoded, tell_play, tell_skip, tell_load;
  bool load_again; // it could not be loaded
} weft_slot;

// What the source signed of the segment at a slot.
typedef struct weft_proof {
  uint8_t digest[WEFT_DIGEST_BYTES];
  uint8_t signature[WEFT_SIGNATURE_BYTES];
} weft_proof;

typedef struct weft_signed weft_signed; // loads.c

typedef struct weft_flight {
  int64_t at_us;
  uint32_t segment; // modulo 2^32
  uint16_t count;
} weft_flight;

// A request of ours that is not answered yet.
typedef struct weft_ask {
  weft_request request;
  int64_t hope_us;   // when it was asked, or the newest sign since that the answer will come
  uint16_t order;    // of this neighbour's, modulo 2^16
  uint16_t asked_ms; // when, modulo 2^16
  bool sent, begun;  // begun: a part of the answer came
  uint8_t passed;    // answers, a few at most, to what was asked later: this may have been lost
  bool blamed;       // ask_window was halved while it waited: once is enough for all of them
} weft_ask;

// What a neighbour asked for and has not been sent.
typedef struct weft_owed { // 24 bytes, of which there may be requests_max to each
  uint64_t segment, mask;
  uint16_t count;
  uint16_t since_ms; // modulo 2^16
  uint8_t kind;
} weft_owed;

typedef enum weft_neighbour_state {
  WEFT_NEIGHBOUR_FREE,
  WEFT_NEIGHBOUR_GREETING, // no HELLO from it yet
  WEFT_NEIGHBOUR_OPEN,
  WEFT_NEIGHBOUR_FINISHED, // has everything, and so have all it knows
  WEFT_NEIGHBOUR_LOST      // the event is still to be told
} weft_neighbour_state;

// What is to be said to a neighbour.
enum {
  WEFT_DUE_HELLO = 1,
  WEFT_DUE_ANSWER = 2,
  WEFT_DUE_BYE = 4,
  WEFT_DUE_BRAKES = 8,
  WEFT_DUE_ACK = 16,
  WEFT_DUE_MANIFESTS = 32,
  WEFT_DUE_CHECKSUMS = 64,
  WEFT_DUE_REQUEST = 128,
  WEFT_DUE_MAP = 256,
  WEFT_DUE_REFER = 512,
  WEFT_DUE_REFER_ASK = 1024,
  WEFT_DUE_MEET = 2048, // those that it told of are called: it should tell them
  WEFT_DUE_CALL = 4096, // somebody calls it
  WEFT_DUE_PACE = 8192
};

// Of one segment of our window at one neighbour.
enum {
  WEFT_MARK_BRAKE = 1,        // to be told to stop
  WEFT_MARK_HAS_MANIFEST = 2, // it was sent to it, or came from it
  WEFT_MARK_MANIFEST = 4,     // to be sent
  WEFT_MARK_REVEALED = 8,     // to be told that there is a checksum
  WEFT_MARK_CHECKSUM = 16,    // to be sent
  WEFT_MARK_SPENT = 32,       // a packet of its added nothing: its next map says so
  WEFT_MARK_ASKED = 64,       // its checksum was asked for and has not come
  WEFT_MARK_WITHHELD = 128    // it was to send the segment alone, and did not in time
};

typedef struct weft_ledbat {
  uint32_t sent, acked_sent, acked_received; // coded packets, modulo 2^32
  uint32_t base[2];                          // smallest delay of this minute and of the last
  uint32_t recent[4];                        // delays of the last acknowledgements
  uint8_t recent_at : 2, recent_count : 3;
  bool slow_start : 1;
  uint8_t fewer;  // packets lack, by so many, than lacked at most
  int16_t excess; // of losses over a part of what was sent, in parts of a packet
  uint32_t queueing_us;
  uint32_t cut_us;                     // when the window was halved, modulo 2^32
  int64_t base_us, acked_us, paced_us; // minute began; last acknowledgement; last PACE
  uint64_t window;                     // bytes
} weft_ledbat;

typedef struct weft_neighbour { // in the order of use: a simulator has millions
  uint8_t state, lost;
  bool open_event : 1, knows_end : 1, timed : 1, is_source : 1, dialled : 1, doubtful : 1;
  bool leaving : 1, full : 1; // full: its uplink has no rest
  bool mapped : 1;            // a map came
  bool end_due : 1;           // the manifest that ends the stream is to be sent
  bool finished : 1;          // it said so
  bool anew : 1;              // the source: it knows of much less than it signed
  uint8_t unsettled : 4;      // maps to come until its brakes are no older than its last jump
  uint8_t bye;                // reason
  uint8_t withheld;           // segments that it was to send alone: kept back, more than sent
  uint16_t generation;        // of this number
  uint16_t epoch;             // of its maps
  uint16_t caller;            // the neighbour that calls it, to be told; NO_NEIGHBOUR: none
  uint16_t load_credit;       // share.c: packets that may be loaded for it
  uint16_t ask_delays_ms; // from asks to the begins of their answers: eight times the moving mean
  uint64_t first, accept_end, oldest; // it wants first .. accept_end - 1, holds from oldest on
  int64_t heard_us, brake_us;
  int64_t unanswered_us; // the first that called for a word since, NEVER: nothing did; in doubt:
                         // since when
  int64_t gave_us;       // its last coded packet
  int32_t round_trip_us; // smoothed
  weft_origin origin;
  int64_t spoke_us, stamp_us;
  uint32_t stamp; // what to echo, which came at stamp_us
  // share.c: packets that may be sent to it, and that it was lately sent on request
  uint16_t credit, answered;
  uint64_t received_packets, received_innovative;
  weft_policy_want *wants; // (window), its segments first .. accept_end - 1
  weft_flight *flight;     // (flights_max) a ring, oldest first
  uint16_t flight_first, flight_count, ask_count, owed_count;
  int64_t ack_due_us;
  weft_ledbat ledbat;
  uint8_t *marks;  // (window), our segments
  uint8_t *blocks; // (window, stride) uncoded
  weft_ask *asks;  // (weft_asks_room)
  weft_owed *owed; // (requests_max)
  int64_t hello_us, added_us;
  uint32_t pace_sent, pace_stamp, pace_us; // newest PACE, and when it came, modulo 2^32
  uint32_t delay_least; // of its stamps: by its clock and ours, so that only differences count
  uint64_t innovative_before;
  uint16_t asked;     // packets, of all asks
  uint8_t ask_window; // packets that it answers in time: grows with answers, halves without
  uint8_t ask_gain;   // answers towards the next step
  uint16_t ask_order; // of the next ask
  uint16_t served_ms; // when it was last sent what it asked for, modulo 2^16
  weft_peer_address address;
  bool refer_asked; // it was asked for addresses and has not answered
  uint8_t forged;   // signatures that were none, more than good ones
  uint8_t answers;  // that it was given at once, since share_us
} weft_neighbour;

// Where streams are fetched or on demand: how far a neighbour got, and since when it gets no
// further (wait.c).
typedef struct weft_wait {
  uint64_t lacks;    // the first segment that it lacks
  uint64_t furthest; // that it ever lacked: to go back is not to get on
  int64_t since_us;
  bool has_room; // for that in its window
  bool given_up; // it is waited for no more
} weft_wait;

// When a neighbour wants something next; apart and small, since all are looked at after each event.
typedef struct weft_clock {
  int64_t timer_us;       // but for maps
  int64_t map_us;         // when it was last announced what is here; NEVER: it is not open
  uint32_t told;          // the engine's version then
  uint32_t told_progress; // packets gained by then
} weft_clock;

typedef struct weft_candidate {
  weft_peer_address address;
  uint8_t failures : 2;
  bool dialling : 1;
  bool gone : 1;    // it was a neighbour, and left or fell silent
  bool calls : 1;   // it calls us, and is to be called at after_us
  bool meet : 1;    // the teller should tell it that it is called
  uint16_t teller;  // the neighbour that told of it; WEFT_NO_NEIGHBOUR: none that is here
  int64_t after_us; // not to be dialled before
} weft_candidate;

struct weft_engine_scratch {
  weft_ctx *ctx;
  uint8_t *out;
  size_t out_stride, out_payload; // bytes of one datagram's room, and where the payload goes
  size_t batch;
  uint8_t **payload_rows;
  weft_packet *packets;
  uint8_t *coefficients;
  weft_datagram *datagrams;
  uint8_t *control; // WEFT_CONTROL_ROOM messages
  uint8_t *token;
  uint8_t *hash; // libsodium's state, aligned to 64 bytes
};
#define WEFT_CONTROL_ROOM 4u

struct weft_engine {
  weft_ctx *ctx;
  const weft_engine_options *options;
  weft_engine_self self;
  const weft_codec *codec;
  weft_engine_scratch *scratch;
  size_t window, window_mask;    // the mask is 0 unless the window is a power of two
  uint64_t segment_bytes, total; // n * k; segments in the stream, if its end is known

  // The window: segments tail .. tail + window - 1.
  uint64_t tail;     // oldest segment that is kept
  uint64_t missing;  // oldest segment that is neither complete nor skipped
  uint64_t released; // segments the application is done with
  uint64_t horizon;  // segments known to exist
  uint64_t rumour;   // the same, by those who cannot prove it
  uint64_t end_bytes;
  weft_manifest *end; // where there is trust: the one that ends the stream, if end_known
  bool started;       // it is known where to begin
  bool end_known, farewell, leaving;
  bool lonely; // to be told
  uint16_t epoch;
  weft_slot *slots;
  weft_proof *proofs;        // (window), where there is trust
  weft_policy_segment *held; // what the policy sees of the slots
  uint64_t *number;          // which segment stands at each place
  uint8_t *blocks;           // uncoded: (window, stride) what we hold or asked for
  size_t blocks_stride;
  uint32_t tell; // slots with something to tell
  uint32_t next_owed;
  int64_t gather_us; // when full segments are looked at again; one that loads: what failed to load

  // Playback (playback.c).
  uint64_t play;          // next to be played
  uint64_t timed_segment; // the newest whose time is known, and what followed from it
  int64_t timed_us, segment_us;
  weft_shortage shortage;
  uint64_t due_segment; // live: the media time of `play`, kept since each deadline wants it
  int64_t due_us;
  union {                   // a simulator has many engines
    int64_t origin_us;      // VoD: local time less media time
    int64_t back_us;        // live: what is due before tells nothing, after an absence
    weft_signed *signed_of; // bulk: (total), where it rereads and there is trust
  };
  int64_t offset_us[2]; // live: smallest seen in this minute and the last
  union {
    int64_t stall_us;   // VoD
    int64_t awaited_us; // live: when the last look wanted the next one
  };
  int64_t offset_turn_us, joined_us, ask_us;
  int64_t begin_us;    // live: one time is known, and a second is waited for until then
  int64_t clock_us[2]; // local less the source's clock, the same way
  int64_t clock_turn_us;
  int64_t alert_until_us; // mixes nothing that is not verified

  weft_neighbour *neighbours;         // (neighbours_max)
  weft_policy_want *wants;            // (neighbours_max, window)
  weft_policy_neighbour *policy_view; // (neighbours_max)
  weft_clock *clocks;                 // (neighbours_max)
  uint16_t *due;                      // (neighbours_max)
  weft_wait *waits;                   // (neighbours_max), not live
  uint8_t *marks;                     // (neighbours_max, window)
  uint32_t degree;                    // neighbours that are neither FREE nor LOST
  uint32_t doubtful;                  // of these, those that may be gone
  int64_t suppliers_us;               // when these and `helpers` were counted
  uint32_t used;                      // one more than the last number ever used
  uint32_t due_count, lost_count, owed_count;
  uint32_t ask_count;         // requests of ours that are not answered, at all neighbours
  weft_origin sought_by;      // of those who sought places here one whose address has fewest
  weft_candidate *candidates; // (addresses_max)
  uint32_t candidate_count;
  uint32_t dial;           // neighbours to be had
  uint64_t reached_before; // at the last look
  int64_t exchange_us, dial_us, replace_us, room_us;
  int64_t moved_us; // exchange.c: a look found that it had got on
  int64_t share_us; // share.c: the last look

  int64_t pace_us;        // no data before this time
  uint64_t pace_rest;     // bits * 1e6 that pace_us does not hold yet
  uint32_t version;       // counts changes that neighbours should hear of
  uint32_t progress;      // counts packets gained
  uint64_t salt;          // weft_policy_view
  uint32_t share_horizon; // `horizon` at share_us, modulo 2^32
  uint16_t suppliers;     // by how many what is lacked here is divided
  uint16_t sated;         // neighbours without credit
  uint16_t sought;        // places here that somebody wanted in vain
  uint16_t missed;        // segments before `tail` that were skipped, which is still to be told
  bool idle : 1;          // the policy found nothing since the last change
  bool ask_idle : 1;
  bool skipped : 1; // a segment was, since exchange.c last looked
  bool called : 1;  // some candidate calls us
  bool calling : 1; // and is to be called now
  bool own_scratch : 1, playing : 1, stalled : 1;
  bool rereads : 1; // anything before `released` may be given again
  bool tell_stall, tell_resume;
  weft_engine_statistics statistics;
};

#endif
