// SPDX-License-Identifier: Apache-2.0
// What the files of the engine share: its state, its timers, and who does what to the window.
#ifndef WEFT_PEER_ENGINE_INTERNAL_H
#define WEFT_PEER_ENGINE_INTERNAL_H

#include "peer/engine/messages.h"
#include "peer/engine/messages_parse.h"
#include "peer/engine/shortage.h"
#include "weft/peer_engine.h"

#define WEFT_NO_SEGMENT UINT64_MAX
#define WEFT_NO_NEIGHBOUR UINT16_MAX
// What the fields of a weft_policy_want hold; a rank is at most 1024, flights are bounded.
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
                           // one that loads: when it was to be loaded
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
} weft_slot;

// What the source signed of the segment at a slot.
typedef struct weft_proof {
  uint8_t digest[WEFT_DIGEST_BYTES];
  uint8_t signature[WEFT_SIGNATURE_BYTES];
} weft_proof;

typedef struct weft_flight {
  int64_t at_us;
  uint32_t segment; // modulo 2^32
  uint16_t count;
} weft_flight;

// A request of ours that is not answered yet.
typedef struct weft_ask {
  weft_request request;
  int64_t hope_us;  // when it was asked, or the newest sign since that the answer will come
  uint16_t order;   // of this neighbour's, modulo 2^16
  bool sent, begun; // begun: a part of the answer came
} weft_ask;

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
  WEFT_DUE_REFER_ASK = 1024
};

// Of one segment of our window at one neighbour.
enum {
  WEFT_MARK_BRAKE = 1,        // to be told to stop
  WEFT_MARK_HAS_MANIFEST = 2, // it was sent to it, or came from it
  WEFT_MARK_MANIFEST = 4,     // to be sent
  WEFT_MARK_REVEALED = 8,     // to be told that there is a checksum
  WEFT_MARK_CHECKSUM = 16,    // to be sent
  WEFT_MARK_SPENT = 32,       // a packet of its added nothing: its next map says so
  WEFT_MARK_ASKED = 64        // its checksum was asked for and has not come
};

typedef struct weft_ledbat {
  uint32_t sent, acked_sent, acked_received; // coded packets, modulo 2^32
  uint32_t base[2];                          // smallest delay of this minute and of the last
  uint32_t recent[4];                        // delays of the last acknowledgements
  uint8_t recent_at, recent_count;
  int64_t base_us, cut_us, acked_us; // minute began; window was halved; last acknowledgement
  uint64_t window;                   // bytes
  int64_t queueing_us;
} weft_ledbat;

typedef struct weft_neighbour { // in the order of use: a simulator has millions
  uint8_t state, lost;
  bool open_event : 1, knows_end : 1, timed : 1, is_source : 1, dialled : 1, doubtful : 1;
  bool leaving : 1, full : 1;         // full: its uplink has no rest
  uint8_t bye;                        // reason
  uint16_t generation;                // of this number
  uint16_t epoch;                     // of its maps
  bool mapped;                        // a map came
  bool end_due;                       // the manifest that ends the stream is to be sent
  uint16_t load_credit;               // share.c: packets that may be loaded for it
  uint64_t first, accept_end, oldest; // it wants first .. accept_end - 1, holds from oldest on
  int64_t heard_us, brake_us;
  int64_t unanswered_us; // the first that called for a word since, NEVER: nothing did; in doubt:
                         // since when
  int64_t gave_us;       // its last coded packet
  int64_t round_trip_us; // smoothed
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
  uint8_t *marks;     // (window), our segments
  uint8_t *blocks;    // (window, stride) uncoded
  weft_ask *asks;     // (requests_max)
  weft_request *owed; // (requests_max)
  int64_t hello_us, added_us, pace_us;
  uint32_t pace_sent, pace_stamp; // newest PACE
  uint64_t innovative_before;
  uint16_t asked;      // packets, of all asks
  uint16_t ask_window; // packets that it answers in time: grows with answers, halves without
  uint16_t ask_gain;   // answers towards the next step
  uint16_t ask_order;  // of the next ask
  weft_peer_address address;
  bool refer_asked; // it was asked for addresses and has not answered
  uint8_t forged;   // signatures that were none, more than good ones
  uint8_t answers;  // that it was given at once, since share_us
} weft_neighbour;

// When a neighbour wants something next; apart and small, since all are looked at after each event.
typedef struct weft_clock {
  int64_t timer_us;       // but for maps
  int64_t map_us;         // when it was last announced what is here; NEVER: it is not open
  uint32_t told;          // the engine's version then
  uint32_t told_progress; // packets gained by then
} weft_clock;

typedef struct weft_candidate {
  weft_peer_address address;
  uint8_t failures;
  bool dialling;
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
  size_t tell;       // slots with something to tell
  int64_t gather_us; // when full segments are looked at again

  // Playback (playback.c).
  uint64_t play;          // next to be played
  uint64_t timed_segment; // the newest whose time is known, and what followed from it
  int64_t timed_us, segment_us;
  weft_shortage shortage;
  uint64_t due_segment; // live: the media time of `play`, kept since each deadline wants it
  int64_t due_us;
  int64_t origin_us;    // VoD: local time less media time
  int64_t offset_us[2]; // live: smallest seen in this minute and the last
  int64_t offset_turn_us, stall_us, joined_us, ask_us;
  int64_t begin_us;    // live: one time is known, and a second is waited for until then
  int64_t clock_us[2]; // local less the source's clock, the same way
  int64_t clock_turn_us;
  int64_t alert_until_us; // mixes nothing that is not verified

  weft_neighbour *neighbours;         // (neighbours_max)
  weft_policy_want *wants;            // (neighbours_max, window)
  weft_policy_neighbour *policy_view; // (neighbours_max)
  weft_clock *clocks;                 // (neighbours_max)
  uint16_t *due;                      // (neighbours_max)
  uint8_t *marks;                     // (neighbours_max, window)
  uint32_t degree;                    // neighbours that are neither FREE nor LOST
  uint32_t doubtful;                  // of these, those that may be gone
  int64_t suppliers_us;               // when these and `helpers` were counted
  size_t used;                        // one more than the last number ever used
  size_t next_owed;
  uint32_t due_count, lost_count, owed_count;
  uint32_t ask_count;         // requests of ours that are not answered, at all neighbours
  weft_candidate *candidates; // (addresses_max)
  uint32_t candidate_count;
  uint32_t dial;                           // neighbours to be had
  uint64_t skipped_before, horizon_before; // at the last look
  int64_t exchange_us, dial_us, replace_us, room_us;
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
  bool idle : 1;          // the policy found nothing since the last change
  bool ask_idle : 1;
  bool own_scratch, playing, stalled, tell_stall, tell_resume;
  weft_engine_statistics statistics;
};

static inline int64_t weft_or(int64_t value, int64_t otherwise) {
  return value ? value : otherwise;
}
#define WEFT_TIMER(engine, name, otherwise) weft_or((engine)->options->timers.name, (otherwise))
// Live: how far behind the source it plays.
static inline int64_t weft_lag_us(const weft_engine *e) {
  return weft_or(e->options->lag_us, 3000000);
}

static inline bool weft_is_live(const weft_engine *e) { return e->options->mode == WEFT_MODE_LIVE; }
static inline bool weft_is_paced(const weft_engine *e) {
  return e->options->mode != WEFT_MODE_BULK;
}
static inline bool weft_loads(const weft_engine *e) {
  return e->self.source && e->self.stream_bytes;
}
static inline uint64_t weft_segment_bytes(const weft_engine *e) { return e->segment_bytes; }

// Where a segment stands: segment % window, which costs less where the window is a power of two.
static inline size_t weft_place(const weft_engine *e, uint64_t segment) {
  return (size_t)(e->window_mask ? segment & e->window_mask : segment % e->window);
}

// window.c
uint32_t weft_window_count_blocks(const weft_engine *engine, uint64_t segment);
size_t weft_window_bytes(const weft_engine *engine, uint64_t segment); // true length
static inline uint64_t weft_window_total(const weft_engine *e) { return e->total; }
void weft_window_set_end(weft_engine *engine, uint64_t end_bytes);
static inline weft_slot *weft_window_slot(const weft_engine *e, uint64_t segment) {
  return &e->slots[weft_place(e, segment)];
}
static inline weft_proof *weft_window_proof(const weft_engine *e, uint64_t segment) {
  return &e->proofs[weft_place(e, segment)];
}
static inline weft_policy_segment *weft_window_held(const weft_engine *e, uint64_t segment) {
  return &e->held[weft_place(e, segment)];
}
static inline bool weft_window_has(const weft_engine *e, uint64_t segment) {
  return e->number[weft_place(e, segment)] == segment;
}
// n of a segment; 0 if it lies past the end of the stream.
static inline uint32_t weft_window_blocks(const weft_engine *e, uint64_t segment) {
  const size_t at = weft_place(e, segment);
  return e->number[at] == segment ? e->held[at].blocks : weft_window_count_blocks(e, segment);
}
// Gives a place to a segment, empty.
void weft_window_place(weft_engine *engine, uint64_t segment);
void weft_slot_close(weft_engine *engine, weft_slot *slot); // its segment and what is held
// A segment became complete: brakes, events, announcements.
void weft_window_complete(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_window_in_order(weft_engine *engine); // moves `missing` on
void weft_window_advance(weft_engine *engine);  // drops segments that nobody here waits for
void weft_window_move(weft_engine *engine, uint64_t tail);
void weft_window_jump(weft_engine *engine, uint64_t segment); // goes on there, with nothing
// Learns the end of the stream, or that it is longer than known.
weft_status weft_window_learn_end(weft_engine *engine, uint64_t end_bytes);
void weft_window_learn_horizon(weft_engine *engine, uint64_t horizon, int64_t now_us);
void weft_window_hear_horizon(weft_engine *engine, uint64_t horizon, int64_t now_us);
uint64_t weft_window_edge(const weft_engine *engine); // the end of what can be asked for
// Something changed that neighbours should hear of and the policy should look at again.
void weft_engine_changed(weft_engine *engine);
void weft_tell(weft_engine *engine, bool *what); // an event of a slot

// neighbour.c
void weft_neighbour_open(weft_engine *engine, size_t index, int64_t now_us);
// Tells the policy whether the neighbour takes packets now.
void weft_neighbour_show(weft_engine *engine, const weft_neighbour *neighbour);
void weft_neighbour_due(weft_engine *engine, size_t index, unsigned what);
void weft_neighbour_mark(weft_engine *engine, size_t index, uint64_t segment, unsigned mark,
                         unsigned due);
void weft_neighbour_timer(weft_engine *engine, size_t index); // after anything it depends on
// Something was sent that a living neighbour soon answers; and a word came.
void weft_neighbour_expect(weft_engine *engine, size_t index, int64_t at_us);
void weft_neighbour_spoke(weft_engine *engine, size_t index, int64_t now_us);
bool weft_neighbour_gone(weft_engine *engine, size_t index, int64_t now_us); // looks, and doubts
bool weft_neighbour_probe(const weft_engine *engine, size_t index, int64_t now_us);
bool weft_neighbour_repeats(const weft_engine *engine, const weft_neighbour *neighbour);
// When its map is due because something changed.
int64_t weft_neighbour_map_time(const weft_engine *engine, const weft_clock *clock);
static inline int64_t weft_neighbour_deadline(const weft_engine *e, size_t index) {
  const weft_clock *clock = &e->clocks[index];
  if (clock->told == e->version || clock->map_us == WEFT_ENGINE_NEVER)
    return clock->timer_us;
  const int64_t map_us = weft_neighbour_map_time(e, clock);
  return clock->timer_us < map_us ? clock->timer_us : map_us;
}
void weft_neighbour_drop(weft_engine *engine, size_t index, weft_lost_reason reason);
void weft_neighbour_ban(weft_engine *engine, size_t index);
// Its window begins at `first` and ends before `end` now.
void weft_neighbour_range(weft_engine *engine, size_t index, uint64_t first, uint64_t end);
// NULL: the segment is not in its window.
static inline weft_policy_want *weft_neighbour_want(const weft_engine *e, const weft_neighbour *n,
                                                    uint64_t segment) {
  return segment >= n->first && segment < n->accept_end ? &n->wants[weft_place(e, segment)] : NULL;
}
static inline void weft_want_refresh(const weft_engine *e, weft_policy_want *want,
                                     uint64_t segment) {
  want->accepts = want->rank < weft_window_blocks(e, segment);
}
bool weft_neighbour_complete(const weft_engine *engine, const weft_neighbour *neighbour,
                             uint64_t segment); // whether it has the whole segment, and still holds
int64_t weft_flight_patience(const weft_engine *engine, const weft_neighbour *neighbour);
void weft_flight_add(weft_engine *engine, weft_neighbour *neighbour, int64_t at_us,
                     uint64_t segment, size_t count);
// Forgets bursts sent at or before `until_us`: announcements count them now.
void weft_flight_forget(weft_engine *engine, weft_neighbour *neighbour, int64_t until_us);
void weft_neighbour_heard(weft_neighbour *neighbour, const weft_stamps *stamps, int64_t now_us);
weft_stamps weft_neighbour_stamps(const weft_neighbour *neighbour, int64_t now_us);

// share.c
void weft_share_start(const weft_engine *engine, weft_neighbour *neighbour,
                      const weft_neighbour *before); // at its place
// Packets were sent to it, asked for or not; and whether that is all that it can need by now.
void weft_share_give(weft_engine *engine, weft_neighbour *neighbour, size_t packets);
bool weft_share_sated(const weft_engine *engine, const weft_neighbour *neighbour);
bool weft_share_load(const weft_engine *engine, weft_neighbour *neighbour); // a segment for it
// Packets that it asked for; and whether its requests go before what others are to be sent.
void weft_share_answer(const weft_engine *engine, weft_neighbour *neighbour, size_t packets);
bool weft_share_in_turn(const weft_engine *engine, const weft_neighbour *neighbour);
void weft_share_look(weft_engine *engine, int64_t now_us); // now and then
int64_t weft_share_deadline(const weft_engine *engine);

// congestion.c
uint64_t weft_coded_bytes(const weft_engine *engine); // on the wire
void weft_ledbat_start(weft_engine *engine, weft_neighbour *neighbour, int64_t now_us);
bool weft_ledbat_room(const weft_engine *engine, const weft_neighbour *neighbour);
void weft_ledbat_acked(weft_engine *engine, size_t index, const weft_ack *ack, int64_t now_us);
void weft_ledbat_silence(weft_engine *engine, size_t index, int64_t now_us);
void weft_pace_took(weft_engine *engine, size_t index, const weft_pace *pace, int64_t now_us);

// data.c
typedef struct weft_engine_arrival {
  uint64_t segment;
  uint32_t blocks;
  size_t count;              // packets
  const weft_packet *packet; // or
  const void *token;
  const uint8_t *datagram; // of the packet
  size_t bytes;            // of the datagram or token
} weft_engine_arrival;
weft_status weft_data_take(weft_engine *engine, size_t index, const weft_engine_arrival *arrival,
                           int64_t now_us);
// Gives one arrival to the decoder: WEFT_OK or WEFT_DEPENDENT, *innovative by how much rank rose.
// `into`: a slot's segment or trial, opened with the first.
weft_status weft_data_add(weft_engine *engine, void **into, const weft_engine_arrival *arrival,
                          size_t *innovative);
size_t weft_data_rank(const weft_engine *engine, const void *opened); // 0 of NULL
// Every packet is there: checks the hash if it can.
void weft_data_full(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_data_show_rank(weft_engine *engine, uint64_t segment, int64_t now_us);

// gather.c
// Whether the full segment is decoded with others, now or soon; false: at once, by itself.
bool weft_gather_take(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_gather_tick(weft_engine *engine, int64_t now_us);

// request.c
// Whether the neighbour may have another answer at once, past the pace of the uplink.
bool weft_answer_allowed(weft_engine *engine, size_t index, int64_t now_us);

// manifest.c
weft_status weft_manifest_make(weft_engine *engine, uint64_t segment, const uint8_t *data,
                               size_t bytes, int64_t at_us, bool last, int64_t now_us);
// Of the end of a stream whose last segment, before `segment`, did not say so.
weft_status weft_manifest_end(weft_engine *engine, uint64_t segment, uint64_t end_bytes);
// WEFT_E_FOREIGN: the source did not sign this. Whoever sends many such is banned.
weft_status weft_signature_check(weft_engine *engine, size_t index, const uint8_t *text,
                                 size_t bytes, const uint8_t signature[WEFT_SIGNATURE_BYTES]);
weft_status weft_manifest_take(weft_engine *engine, size_t index, const weft_manifest *manifest,
                               int64_t now_us);
// Whether the neighbour must be sent the segment's manifest first; then it is due.
bool weft_manifest_offer(weft_engine *engine, size_t index, uint64_t segment);
size_t weft_manifest_put(const weft_engine *engine, uint64_t segment, uint8_t *out);
// Whether a complete segment is what its manifest says.
weft_status weft_manifest_check(weft_engine *engine, uint64_t segment, bool *matches);

// checksum.c
bool weft_checksums_on(const weft_engine *engine);
void weft_held_drop(weft_engine *engine, weft_slot *slot);
// Takes an arrival that is to be judged, or that the source sent itself.
weft_status weft_held_take(weft_engine *engine, size_t index, const weft_engine_arrival *arrival,
                           size_t *innovative, int64_t now_us);
void weft_held_settle(weft_engine *engine, uint64_t segment, int64_t now_us); // it is complete
// Tries what came against the hash, if its rank is n.
void weft_held_try(weft_engine *engine, uint64_t segment, int64_t now_us);
weft_status weft_checksum_take(weft_engine *engine, size_t index, const weft_checksum *checksum,
                               int64_t now_us);
void weft_revealed_take(weft_engine *engine, size_t index, const weft_revealed *revealed,
                        int64_t now_us);
size_t weft_checksum_put(weft_engine *engine, uint64_t segment, uint8_t *out);
void weft_checksum_tick(weft_engine *engine, int64_t now_us);
int64_t weft_checksum_deadline(const weft_engine *engine);

// request.c
void weft_request_send(weft_engine *engine, size_t index, const weft_request *request,
                       int64_t now_us);
void weft_requests_take(weft_engine *engine, size_t index, const weft_requests *requests,
                        int64_t now_us);
void weft_request_answered(weft_engine *engine, size_t index, uint64_t segment, size_t count,
                           const weft_packet *packet, int64_t now_us);
void weft_requests_start(weft_engine *engine, size_t index); // of a new neighbour
void weft_requests_forget(weft_engine *engine, size_t index);
void weft_requests_tick(weft_engine *engine, int64_t now_us);
// The segment's time is known now: what is due soon does not wait for the next look.
void weft_requests_timed(weft_engine *engine, uint64_t segment, int64_t now_us);
int64_t weft_requests_deadline(const weft_engine *engine);
void weft_requests_ask(weft_engine *engine, int64_t now_us); // as the policy says
// A burst that somebody asked for whose turn it is, or anybody; false: none. Takes what it names
// off what is owed.
bool weft_owed_next(weft_engine *engine, bool in_turn, weft_policy_choice *out, int64_t now_us);

// playback.c
// By the rate alone; else by the source's own clock, which its manifests tell: a live input can
// pause.
bool weft_timed_by_rate(const weft_engine *engine);
int64_t weft_segment_us(const weft_engine *engine);                        // 0: not known yet
int64_t weft_segment_by_rate(const weft_engine *engine, uint64_t segment); // there is one
int64_t weft_segment_at(const weft_engine *engine, uint64_t segment); // media time, as far as known
void weft_play_manifest(weft_engine *engine, uint64_t segment, int64_t at_us, int64_t now_us);
void weft_play_learn(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_play_tick(weft_engine *engine, int64_t now_us);
int64_t weft_play_deadline(const weft_engine *engine);
void weft_play_start(weft_engine *engine, int64_t now_us); // chooses where to begin
int64_t weft_clock_offset(const int64_t pair[2]);          // INT64_MAX: unknown
void weft_clock_learn(int64_t pair[2], int64_t *turn_us, int64_t sample, int64_t now_us);

// exchange.c
void weft_refer_take(weft_engine *engine, size_t index, const weft_refer *refer, int64_t now_us);
size_t weft_refer_put(weft_engine *engine, size_t index, uint8_t flags, uint8_t *out);
void weft_exchange_tick(weft_engine *engine, int64_t now_us);
int64_t weft_exchange_deadline(const weft_engine *engine);
bool weft_exchange_event(weft_engine *engine, weft_event *out);
int64_t weft_exchange_wait(const weft_engine *engine, int64_t now_us); // until the next look
void weft_exchange_opened(weft_engine *engine, size_t index);
void weft_exchange_lost(weft_engine *engine, const weft_neighbour *neighbour);

// source.c
void weft_loads_tell(weft_engine *engine, size_t index, int64_t now_us); // what the neighbour wants

// output.c, burst.c
void weft_pace_spend(weft_engine *engine, size_t bytes, int64_t now_us);
size_t weft_control_put(weft_engine *engine, size_t index, int64_t now_us, uint8_t *out);
weft_status weft_burst_next(weft_engine *engine, int64_t now_us, weft_burst *out);
weft_policy_view weft_engine_view(const weft_engine *engine, int64_t now_us);

#endif
