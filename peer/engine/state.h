// SPDX-License-Identifier: Apache-2.0
// What an engine keeps: the segments of its window, its neighbours and what is due to each, the
// clocks, and the scratch that engines share.
//
// Terms of the engine (docs/protocol.md):
// - place: index s % window, at which every array of (window) keeps segment s; also one of the
//   neighbours_max numbers that neighbours can have here;
// - horizon: how many segments are known to exist, 0 .. horizon - 1;
// - epoch: counts the jumps of a peer's window (a seek, the start of a live stream); what its maps
//   say only grows within one;
// - supplier: a neighbour that sends a peer packets; suppliers share the work (output.c);
// - class, forgo: each segment has one of 16 classes (weft_policy_class); a live peer that forgoes
//   n classes wants segments of classes below n last, or not at all (shortage.c);
// - doubt: a neighbour that does not answer in time is in doubt: it is sent HELLOs only
//   (neighbour.c);
// - need: a peer with less than half of the neighbours that it looks for is in need (exchange.c);
// - candidate: an address that may be dialled for another neighbour (exchange.c);
// - stamp: the sender's clock in a message, modulo 2^32, which the neighbour echoes;
// - trust: the stream is signed (options->trust), so nothing that is not signed is believed;
// - loads, rereads: a source that loads is given segments by the application when neighbours lack
//   them; a receiver that rereads is given again what it had released (loads.c).
#ifndef WEFT_PEER_ENGINE_STATE_H
#define WEFT_PEER_ENGINE_STATE_H

#include "peer/engine/messages.h"
#include "peer/engine/shortage.h"
#include "weft/peer_engine.h"

#define WEFT_NO_SEGMENT UINT64_MAX
#define WEFT_NO_NEIGHBOUR UINT16_MAX
// The largest values of weft_policy_want's bit-fields; a rank is at most 1024.
#define WEFT_WANT_RANK 0x7ffu
#define WEFT_WANT_FLIGHT 0x7fffu

// A packet, or a token, kept until a checksum has judged it (checksum.c).
typedef struct weft_held {
  struct weft_held *next;
  int64_t at_us; // when it arrived
  uint16_t neighbour, generation;
  uint16_t count; // packets
  uint16_t gain;  // how much it raised the trial's rank
  bool verified;  // by a checksum, or sent by the source itself: recoded packets may contain it
  bool added;     // to the trial
  size_t bytes;
  uint8_t data[]; // datagram or token
} weft_held;

// The newest checksum of a segment: packets are judged by it, and it is passed on.
typedef struct weft_reveal {
  uint64_t made_us, seed;
  uint8_t signature[WEFT_SIGNATURE_BYTES];
  uint8_t sums[]; // (n, WEFT_CHECKSUM_ROWS)
} weft_reveal;

// How far a full segment is on its way to being decoded in a batch (gather.c).
typedef enum weft_gathering {
  WEFT_GATHERING_NONE,
  WEFT_GATHERING_WAITS, // for others to join the batch
  WEFT_GATHERING_WORKS, // the codec is decoding it
  WEFT_GATHERING_DONE   // decoded; its hash is still to be checked
} weft_gathering;

// One segment of the window: segment s is in slot s % window.
typedef struct weft_slot {
  void *segment; // the codec's; NULL until its first packet. With checksums: verified packets only
  void *trial;   // with checksums: all packets that came, verified or not
  weft_held *held, *held_last;
  weft_reveal *reveal;
  int64_t at_us, made_us; // from the manifest
  int64_t solo_us; // when `solo` was chosen; live source: when a request was last answered; a
                   // source that loads: when loading was requested; bulk: when it was completed
  int64_t next_reveal_us; // source
  union {
    int64_t asked_reveal_us; // when the newest checksum was requested
    int64_t asked_us;        // loaded: when a neighbour last requested it
  };
  uint64_t asked_made_us;
  uint32_t bytes;    // true length, from the manifest
  uint16_t waiting;  // held packets for which the trial has no room: it is full, but spoilt
  uint16_t kept;     // all held packets
  uint16_t solo;     // after a hash failure: the only neighbour that may send it; else NO_NEIGHBOUR
  uint8_t reveals;   // source: checksums revealed so far
  uint8_t gathering; // weft_gathering
  uint8_t helpers;   // neighbours that had more of it at the last count
  bool complete;     // and verified, where there is trust
  bool manifest, last; // the manifest is known; last: it ends the stream
  bool skipped;        // live: it was not complete when it was due
  bool failed;         // a check of its hash has failed
  bool tried; // the trial reached rank n and its hash did not match: something in it is spoilt
  bool tell_decoded, tell_play, tell_skip, tell_load;
  bool load_again; // loading it failed
} weft_slot;

// What the source signed about the segment in a slot.
typedef struct weft_proof {
  uint8_t digest[WEFT_DIGEST_BYTES];
  uint8_t signature[WEFT_SIGNATURE_BYTES];
} weft_proof;

typedef struct weft_signed weft_signed; // loads.c

// A burst sent to a neighbour whose maps cannot have counted it yet.
typedef struct weft_flight {
  int64_t at_us;
  uint32_t segment; // modulo 2^32
  uint16_t count;
} weft_flight;

// A request of ours that has not been answered yet.
typedef struct weft_ask {
  weft_request request;
  int64_t hope_us;   // when it was made, or the last sign since then that its answer will come
  uint16_t order;    // its number among those to this neighbour, modulo 2^16
  uint16_t asked_ms; // when it was made, modulo 2^16
  bool sent, begun;  // begun: part of the answer has come
  uint8_t passed; // answers since then to later requests, up to a few: this one may have been lost
  bool blamed;    // ask_window was halved while it waited: that happens once for all that wait
} weft_ask;

// What a neighbour requested and has not been sent yet.
typedef struct weft_owed { // 24 bytes, up to requests_max for each neighbour
  uint64_t segment, mask;
  uint16_t count;
  uint16_t since_ms; // modulo 2^16
  uint8_t kind;
} weft_owed;

typedef enum weft_neighbour_state {
  WEFT_NEIGHBOUR_FREE,
  WEFT_NEIGHBOUR_GREETING, // no HELLO from it yet
  WEFT_NEIGHBOUR_OPEN,
  WEFT_NEIGHBOUR_FINISHED, // it has everything, and so do all peers that it knows
  WEFT_NEIGHBOUR_LOST      // its event has not been reported yet
} weft_neighbour_state;

// Messages that are due to a neighbour; lower bits are more urgent.
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
  WEFT_DUE_MEET = 2048, // we are calling peers that it told us of: it should tell them
  WEFT_DUE_CALL = 4096, // another peer is calling it
  WEFT_DUE_PACE = 8192
};

// Marks of one segment of our window at one neighbour.
enum {
  WEFT_MARK_BRAKE = 1,        // to be sent a BRAKE
  WEFT_MARK_HAS_MANIFEST = 2, // it has been sent the manifest, or has sent it
  WEFT_MARK_MANIFEST = 4,     // to be sent the manifest
  WEFT_MARK_REVEALED = 8,     // to be told that there is a checksum
  WEFT_MARK_CHECKSUM = 16,    // to be sent the checksum
  WEFT_MARK_SPENT = 32,       // a packet from it added nothing: the next map to it says so
  WEFT_MARK_ASKED = 64,       // it was asked for the checksum, which has not come
  WEFT_MARK_WITHHELD = 128    // it alone was to send the segment, and did not in time
};

typedef struct weft_ledbat {
  uint32_t sent, acked_sent, acked_received; // coded packets, modulo 2^32
  uint32_t base[2];                          // smallest delay of this minute and of the last
  uint32_t recent[4];                        // delays of the last acknowledgements
  uint8_t recent_at : 2, recent_count : 3;
  bool slow_start : 1;
  bool was_cut : 1;       // the window was halved, and losses from before that still come up
  bool rests : 1;         // no burst is sent to it until next_us
  uint8_t acks : 3;       // of this round trip, up to a few
  uint8_t turns_past : 2; // round trips begun since what was sent after the cut is acknowledged
  int16_t excess; // losses beyond the tolerated fraction of what was sent, in fractions of a packet
  uint16_t missing[2];   // fewest packets missing in this round trip and in the last, modulo 2^16
  uint16_t missing_most; // most that ever were
  uint16_t cut_sent;     // what `sent` was when the window was halved, modulo 2^16
  uint32_t queueing_us;
  uint32_t turn_us;           // when this round trip began, modulo 2^32
  uint32_t base_ms;           // start of the minute, of 1024 us each, modulo 2^32
  uint32_t window;            // bytes
  int64_t acked_us;           // last acknowledgement
  uint32_t paced_us, next_us; // last PACE; when the next burst is due: modulo 2^32
} weft_ledbat;

typedef struct weft_neighbour { // fields in order of use: a simulator has millions of these
  uint8_t state, lost;
  bool open_event : 1, knows_end : 1, timed : 1, is_source : 1, dialled : 1, doubtful : 1;
  bool leaving : 1, full : 1; // full: its uplink has no spare capacity
  bool mapped : 1;            // a map has come
  bool end_due : 1;           // the manifest that ends the stream is to be sent to it
  bool finished : 1;          // it said that it has finished
  bool anew : 1; // the source: it has restarted, and knows of far fewer segments than it signed
  uint8_t unsettled : 4;  // after a jump: maps still to come before its BRAKEs are believed, as
                          // older ones may arrive
  uint8_t bye;            // reason of the BYE that is due
  uint8_t withheld;       // segments that it alone was to send: how many more it withheld than sent
  uint16_t generation;    // how many neighbours have had this number, modulo 2^16
  uint16_t epoch;         // of its newest map
  uint16_t caller;        // the neighbour that is calling it, to be announced; or NO_NEIGHBOUR
  uint16_t load_credit;   // share.c: packets that may still be loaded for it
  uint16_t ask_delays_ms; // time from requests to the start of their answers: eight times the
                          // moving average
  uint64_t first, accept_end, oldest; // it wants first .. accept_end - 1, has oldest .. first - 1
  int64_t heard_us, brake_us;
  int64_t unanswered_us; // since when it owes an answer, or NEVER; in doubt: since when
  int64_t gave_us;       // when its last coded packet came
  int32_t round_trip_us; // smoothed
  weft_origin origin;
  int64_t spoke_us, stamp_us;
  uint32_t stamp; // its newest stamp, to be echoed, which came at stamp_us
  // share.c: packets that may still be sent to it; packets recently sent on request
  uint16_t credit, answered;
  uint64_t received_packets, received_innovative;
  weft_policy_want *wants; // (window), of its segments first .. accept_end - 1
  weft_flight *flight;     // (flights_max) a ring, oldest first
  uint16_t flight_first, flight_count, ask_count, owed_count;
  int64_t ack_due_us;
  weft_ledbat ledbat;
  uint8_t *marks;  // (window), our segments
  uint8_t *blocks; // (window, stride) uncoded
  weft_ask *asks;  // (weft_asks_room)
  weft_owed *owed; // (requests_max)
  int64_t hello_us, added_us;
  uint32_t pace_sent, pace_stamp, pace_us; // of the newest PACE; pace_us: when it came, modulo 2^32
  uint32_t delay_least; // smallest delay of its stamps: between two clocks, so only differences
                        // mean anything
  uint64_t innovative_before;
  uint16_t asked;     // packets in all asks
  uint8_t ask_window; // packets that may be outstanding: grows with answers, halves without
  uint8_t ask_gain;   // answers towards the next step
  uint16_t ask_order; // of the next ask
  uint16_t served_ms; // when a request from it was last served, modulo 2^16
  weft_peer_address address;
  bool refer_asked; // it was asked for addresses and has not answered
  uint8_t forged;   // invalid signatures from it, less valid ones
  uint8_t answers;  // immediate answers that it was given since share_us
} weft_neighbour;

// In bulk and on demand: how far a neighbour has got, and since when it has made no progress
// (wait.c).
typedef struct weft_wait {
  uint64_t lacks;    // the first segment that it lacks
  uint64_t furthest; // the furthest it ever lacked: going back is no progress
  int64_t since_us;
  bool has_room; // its window has room for that segment
  bool given_up; // it is not waited for any more
} weft_wait;

// When a neighbour wants something next. Separate and small, since all are scanned after each
// event.
typedef struct weft_clock {
  int64_t timer_us;       // next deadline, except for maps
  int64_t map_us;         // when it was last sent a map; NEVER: it is not open
  uint32_t told;          // the engine's `version` then
  uint32_t told_progress; // the engine's `progress` then
} weft_clock;

// An address that may be dialled for another neighbour.
typedef struct weft_candidate {
  weft_peer_address address;
  uint8_t failures : 2;
  bool dialling : 1;
  bool gone : 1;    // it was a neighbour, and left or fell silent
  bool calls : 1;   // it is calling us, and is to be called back at after_us
  bool meet : 1;    // the teller should tell it that we are calling
  bool source : 1;  // on demand: the stream's source can be called there
  bool met : 1;     // and was met there: its key proved it
  uint16_t teller;  // the neighbour that told us of it; WEFT_NO_NEIGHBOUR: none that is still here
  int64_t after_us; // not to be dialled before
} weft_candidate;

struct weft_engine_scratch {
  weft_ctx *ctx;
  uint8_t *out;
  size_t out_stride, out_payload; // room for one datagram in bytes; offset of the payload in it
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
  size_t window;
  uint32_t window_mask; // 0 unless the window is a power of two
  uint32_t blocks_stride;
  uint64_t segment_bytes, total; // n * k; segments in the stream, if its end is known

  // The window: segments tail .. tail + window - 1.
  uint64_t tail;     // oldest segment that is kept
  uint64_t missing;  // oldest segment that is neither complete nor skipped
  uint64_t released; // segments the application is done with
  uint64_t horizon;  // segments known to exist
  uint64_t rumour;   // the same, as claimed without proof
  uint64_t end_bytes;
  weft_manifest *end; // with trust: the manifest that ends the stream, if end_known
  bool started;       // where to begin is known
  bool end_known, farewell, leaving;
  bool lonely;        // the event is to be reported
  uint8_t late_count; // live: times in a row that were late, up to a few
  uint16_t epoch;
  weft_slot *slots;
  weft_proof *proofs;        // (window), where there is trust
  weft_policy_segment *held; // what the policy sees of the slots
  uint64_t *number;          // which segment is in each place
  uint8_t *blocks;           // uncoded: (window, stride) blocks that we hold or have asked for
  uint32_t tell;             // events to be reported (weft_tell)
  uint32_t next_owed;
  int64_t gather_us; // when to look at full segments again; a source that loads: when to retry
                     // failed loads

  // Playback (playback.c).
  uint64_t play;          // next to be played
  uint64_t timed_segment; // the newest whose time is known: timed_us, and segment_us for each one
                          // after it
  int64_t timed_us, segment_us;
  int64_t lag_us; // live
  weft_shortage shortage;
  union {                 // unions because a simulator has many engines
    uint64_t due_segment; // live, by the rate: the segment with media time due_us, cached because
                          // each deadline needs it
    int64_t late_us;      // live, by manifests: since when times are late
  };
  union {
    int64_t due_us;
    int64_t late_least_us; // the smallest offset since then
  };
  union {
    int64_t origin_us;      // VoD: local time minus media time
    int64_t back_us;        // live, after an absence: lateness of what was due before says nothing
    weft_signed *signed_of; // bulk: (total), if it rereads and there is trust
  };
  int64_t offset_us[2]; // live: smallest delay in this minute and in the last
  union {
    int64_t stall_us;   // VoD
    int64_t awaited_us; // live: when the last look expected the next one
    int64_t gain_us;    // bulk: when a packet last added something
  };
  int64_t offset_turn_us, joined_us, ask_us;
  int64_t begin_us;    // live: one segment's time is known; until when to wait for a second
  int64_t clock_us[2]; // local clock minus the source's, likewise
  int64_t clock_turn_us;
  int64_t alert_until_us; // until then, nothing unverified is mixed

  weft_neighbour *neighbours;         // (neighbours_max)
  weft_policy_want *wants;            // (neighbours_max, window)
  weft_policy_neighbour *policy_view; // (neighbours_max)
  weft_clock *clocks;                 // (neighbours_max)
  uint16_t *due;                      // (neighbours_max)
  weft_wait *waits;                   // (neighbours_max), not live
  uint8_t *marks;                     // (neighbours_max, window)
  uint32_t degree;                    // neighbours that are neither FREE nor LOST
  uint32_t doubtful;                  // those in doubt, which `degree` includes
  int64_t suppliers_us;               // when `suppliers` and the slots' `helpers` were counted
  uint32_t used;                      // highest number ever used, plus one
  uint32_t due_count, lost_count, owed_count;
  uint32_t ask_count;         // our unanswered requests, at all neighbours
  weft_origin sought_by;      // the refused newcomer whose address has fewest places here
  weft_candidate *candidates; // (addresses_max)
  uint32_t candidate_count;
  uint32_t dial;           // how many more neighbours to dial
  uint64_t reached_before; // what reached() was at the last look
  int64_t exchange_us, dial_us, replace_us, room_us;
  int64_t moved_us; // exchange.c: when a look last found progress
  int64_t share_us; // share.c: when it last looked

  int64_t pace_us;        // no data is sent before this time
  uint64_t pace_rest;     // bits * 1e6 that pace_us does not include yet
  uint32_t version;       // counts changes that neighbours should be told of
  uint32_t progress;      // counts packets gained
  uint64_t salt;          // weft_policy_view
  uint32_t share_horizon; // `horizon` at share_us, modulo 2^32
  uint16_t suppliers;     // how many suppliers share what is lacking here
  uint16_t sated;         // neighbours without credit
  uint16_t sought;        // refused newcomers that still want a place here
  uint16_t missed; // segments before `tail` that were skipped, which has not been reported yet
  bool idle : 1;   // the policy has found nothing to send since the last change
  bool ask_idle : 1;
  bool few : 1;       // bulk: few packets are missing of all that it takes and that exists
  bool skipped : 1;   // a segment was skipped since exchange.c last looked
  bool called : 1;    // some candidate is calling us
  bool calling : 1;   // and is to be called back now
  bool sought_on : 1; // VoD: it sought, and a look has found no progress since
  bool own_scratch : 1, playing : 1, stalled : 1;
  bool rereads : 1; // the application may be asked for any segment before `released` again
  bool tell_stall, tell_resume;
  weft_engine_statistics statistics;
};

#endif
