// SPDX-License-Identifier: Apache-2.0
// Functions that the engine's files share; state.h has the state that they work on, and the terms.
#ifndef WEFT_PEER_ENGINE_INTERNAL_H
#define WEFT_PEER_ENGINE_INTERNAL_H

#include "peer/engine/messages_parse.h"
#include "peer/engine/state.h"

static inline int64_t weft_or(int64_t value, int64_t otherwise) {
  return value ? value : otherwise;
}
#define WEFT_TIMER(engine, name, otherwise) weft_or((engine)->options->timers.name, (otherwise))
// Live: how far behind the source this peer plays, as far as options tell (weft_lag_allowed).
static inline int64_t weft_lag_us(const weft_engine *e) { return e->lag_us; }

static inline bool weft_is_live(const weft_engine *e) { return e->options->mode == WEFT_MODE_LIVE; }
static inline bool weft_is_paced(const weft_engine *e) {
  return e->options->mode != WEFT_MODE_BULK;
}
static inline bool weft_loads(const weft_engine *e) {
  return e->self.source && e->self.stream_bytes;
}
static inline uint64_t weft_segment_bytes(const weft_engine *e) { return e->segment_bytes; }

// The place of a segment, segment % window: faster if the window is a power of two.
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
// Number of blocks of a segment; 0 if it lies past the end of the stream.
static inline uint32_t weft_window_blocks(const weft_engine *e, uint64_t segment) {
  const size_t at = weft_place(e, segment);
  return e->number[at] == segment ? e->held[at].blocks : weft_window_count_blocks(e, segment);
}
// Gives a segment its place, empty.
void weft_window_place(weft_engine *engine, uint64_t segment);
void weft_slot_close(weft_engine *engine, weft_slot *slot); // frees its segment and what it holds
// Corrects the number of blocks of a segment, and drops what came for it.
void weft_window_reshape(weft_engine *engine, uint64_t segment, uint16_t blocks);
// Completes a segment: brakes, events, announcements.
void weft_window_complete(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_window_in_order(weft_engine *engine); // advances `missing`
void weft_window_advance(weft_engine *engine);  // drops segments that nobody here waits for
void weft_window_move(weft_engine *engine, uint64_t tail);
// Where the segments that should be held begin.
uint64_t weft_window_tail_wanted(const weft_engine *engine);
void weft_window_jump(weft_engine *engine, uint64_t segment); // restarts the window there, empty
// Learns the end of the stream. WEFT_E_FOREIGN: it contradicts what is known.
weft_status weft_window_learn_end(weft_engine *engine, uint64_t end_bytes);
void weft_window_learn_horizon(weft_engine *engine, uint64_t horizon, int64_t now_us);
// Hears of a horizon that may be unproven: with trust it is a rumour.
void weft_window_hear_horizon(weft_engine *engine, uint64_t horizon, int64_t now_us);
uint64_t weft_window_edge(const weft_engine *engine); // the end of what can be asked for
// To be called after changes that neighbours should hear of and the policy should look at.
void weft_engine_changed(weft_engine *engine);
void weft_tell(weft_engine *engine, bool *what); // sets the flag of an event

// neighbour.c
void weft_neighbour_open(weft_engine *engine, size_t index, int64_t now_us);
// Shows the policy whether the neighbour takes packets now.
void weft_neighbour_show(weft_engine *engine, const weft_neighbour *neighbour);
void weft_neighbour_due(weft_engine *engine, size_t index, unsigned what);
void weft_neighbour_mark(weft_engine *engine, size_t index, uint64_t segment, unsigned mark,
                         unsigned due);
void weft_neighbour_timer(weft_engine *engine, size_t index); // after anything it depends on
// expect: something was sent to it that a live neighbour soon answers. spoke: a message came from
// it.
void weft_neighbour_expect(weft_engine *engine, size_t index, int64_t at_us);
void weft_neighbour_spoke(weft_engine *engine, size_t index, int64_t now_us);
bool weft_neighbour_gone(weft_engine *engine, size_t index, int64_t now_us); // may put it in doubt
bool weft_neighbour_probe(const weft_engine *engine, size_t index, int64_t now_us);
// Whether it had the whole stream, as far as it said.
bool weft_neighbour_had_all(const weft_engine *engine, const weft_neighbour *neighbour);
bool weft_neighbour_repeats(const weft_engine *engine, const weft_neighbour *neighbour);
int64_t weft_neighbour_greet_time(const weft_engine *engine, const weft_neighbour *neighbour);
// When its map is due because something changed.
int64_t weft_neighbour_map_time(const weft_engine *engine, size_t index);
// When it is repeated, although nothing did.
int64_t weft_neighbour_map_again(const weft_engine *engine, size_t index);
static inline int64_t weft_neighbour_deadline(const weft_engine *e, size_t index) {
  const weft_clock *clock = &e->clocks[index];
  if (clock->told == e->version || clock->map_us == WEFT_ENGINE_NEVER)
    return clock->timer_us;
  const int64_t map_us = weft_neighbour_map_time(e, index);
  return clock->timer_us < map_us ? clock->timer_us : map_us;
}
void weft_neighbour_drop(weft_engine *engine, size_t index, weft_lost_reason reason);
void weft_neighbour_ban(weft_engine *engine, size_t index);
// Moves its window to `first`, and extends it to `end` - 1.
void weft_neighbour_range(weft_engine *engine, size_t index, uint64_t first, uint64_t end);
// Forgets what is known of a segment in its window.
void weft_neighbour_clear(const weft_engine *engine, weft_neighbour *neighbour, uint64_t segment);
// What it wants of a segment; NULL if the segment is not in its window.
static inline weft_policy_want *weft_neighbour_want(const weft_engine *e, const weft_neighbour *n,
                                                    uint64_t segment) {
  return segment >= n->first && segment < n->accept_end ? &n->wants[weft_place(e, segment)] : NULL;
}
static inline void weft_want_refresh(const weft_engine *e, weft_policy_want *want,
                                     uint64_t segment) {
  want->accepts = want->rank < weft_window_blocks(e, segment);
}
// Counts directions of ours that it got. The limit is more than a segment has.
static inline void weft_want_common(weft_policy_want *want, size_t more) {
  const size_t sum = want->common + more;
  want->common = (uint16_t)(sum < UINT16_MAX ? sum : UINT16_MAX);
}
bool weft_neighbour_complete(const weft_engine *engine, const weft_neighbour *neighbour,
                             uint64_t segment); // has, and still holds, all of it
// The most bursts that may be on their way to one neighbour.
static inline size_t weft_flights_max(const weft_engine_options *o) {
  return o->flights_max ? o->flights_max : 64;
}
int64_t weft_flight_patience(const weft_engine *engine, const weft_neighbour *neighbour);
void weft_flight_add(weft_engine *engine, weft_neighbour *neighbour, int64_t at_us,
                     uint64_t segment, size_t count);
// Forgets bursts sent at or before `until_us`: its maps count them by now.
void weft_flight_forget(weft_engine *engine, weft_neighbour *neighbour, int64_t until_us);
void weft_neighbour_heard(weft_neighbour *neighbour, const weft_stamps *stamps, int64_t now_us);
// Learns the round trip from an echo alone. Returns what this one took; -1: that is unknown.
int64_t weft_neighbour_echoed(weft_neighbour *neighbour, const weft_stamps *stamps, int64_t now_us);
// How much longer its last message took than its fastest one.
uint32_t weft_neighbour_queueing_us(const weft_neighbour *neighbour);
weft_stamps weft_neighbour_stamps(const weft_neighbour *neighbour, int64_t now_us);

// wait.c
void weft_wait_start(weft_engine *engine, size_t index, const weft_neighbour *before,
                     int64_t now_us); // before: the last neighbour with this number
void weft_wait_heard(weft_engine *engine, size_t index, bool first_word, int64_t now_us);
void weft_wait_look(weft_engine *engine, size_t index, int64_t now_us);
int64_t weft_wait_deadline(const weft_engine *engine, size_t index);
static inline bool weft_given_up(const weft_engine *e, size_t index) {
  return e->waits && e->waits[index].given_up;
}

// share.c
void weft_share_start(const weft_engine *engine, weft_neighbour *neighbour,
                      const weft_neighbour *before); // before: the last neighbour with this number
// give: counts packets sent to it, requested or not. sated: whether it has had all that it can need
// by now.
void weft_share_give(weft_engine *engine, weft_neighbour *neighbour, size_t packets);
bool weft_share_sated(const weft_engine *engine, const weft_neighbour *neighbour);
bool weft_share_load(const weft_engine *engine, weft_neighbour *neighbour); // a segment for it
// answer: counts packets that it requested. in_turn: whether its requests go before pushed packets.
void weft_share_answer(const weft_engine *engine, weft_neighbour *neighbour, size_t packets);
bool weft_share_in_turn(const weft_engine *engine, const weft_neighbour *neighbour);
void weft_share_look(weft_engine *engine, int64_t now_us); // refills credits, now and then
int64_t weft_share_deadline(const weft_engine *engine);

// congestion.c
uint64_t weft_coded_bytes(const weft_engine *engine); // of one packet, on the wire
void weft_ledbat_start(weft_engine *engine, weft_neighbour *neighbour, int64_t now_us);
void weft_ledbat_sent(const weft_engine *engine, weft_neighbour *neighbour, size_t packets,
                      int64_t now_us);
bool weft_ledbat_room(const weft_engine *engine, const weft_neighbour *neighbour);
size_t weft_ledbat_burst(const weft_engine *engine,
                         const weft_neighbour *neighbour); // packets in one burst
void weft_ledbat_acked(weft_engine *engine, size_t index, const weft_ack *ack, int64_t now_us);
void weft_ledbat_tick(weft_engine *engine, size_t index, int64_t now_us);
int64_t weft_ledbat_deadline(const weft_engine *engine, const weft_neighbour *neighbour);
size_t weft_pace_put(weft_neighbour *neighbour, int64_t now_us, uint8_t *out);
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
// Passes one arrival to the decoder: WEFT_OK or WEFT_DEPENDENT, *innovative by how much rank rose.
// `into`: a slot's segment or trial, opened by the first arrival.
weft_status weft_data_add(weft_engine *engine, void **into, const weft_engine_arrival *arrival,
                          size_t *innovative);
size_t weft_data_rank(const weft_engine *engine, const void *opened); // 0 if NULL
// Handles a segment of full rank: checks its hash if it can.
void weft_data_full(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_data_show_rank(weft_engine *engine, uint64_t segment, int64_t now_us);

// gather.c
// Whether the full segment is decoded in a batch, now or soon; false: decode it now, alone.
bool weft_gather_take(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_gather_tick(weft_engine *engine, int64_t now_us);

// manifest.c
weft_status weft_manifest_make(weft_engine *engine, uint64_t segment, const uint8_t *data,
                               size_t bytes, int64_t at_us, bool last, int64_t now_us);
// Signs the end of a stream whose last segment, before `segment`, did not say so.
weft_status weft_manifest_end(weft_engine *engine, uint64_t segment, uint64_t end_bytes);
// Checks a signature. WEFT_E_FOREIGN: it is not the source's; a neighbour that sends many such is
// banned.
weft_status weft_signature_check(weft_engine *engine, size_t index, const uint8_t *text,
                                 size_t bytes, const uint8_t signature[WEFT_SIGNATURE_BYTES]);
weft_status weft_manifest_take(weft_engine *engine, size_t index, const weft_manifest *manifest,
                               int64_t now_us);
// Whether the neighbour must first be sent the segment's manifest, which is then due.
bool weft_manifest_offer(weft_engine *engine, size_t index, uint64_t segment);
size_t weft_manifest_put(const weft_engine *engine, uint64_t segment, uint8_t *out);
// Checks whether a complete segment matches its manifest.
weft_status weft_manifest_check(weft_engine *engine, uint64_t segment, bool *matches);

// checksum.c
bool weft_checksums_on(const weft_engine *engine);
void weft_held_drop(weft_engine *engine, weft_slot *slot);
// Takes an arrival that checksums judge, or that the source sent itself.
weft_status weft_held_take(weft_engine *engine, size_t index, const weft_engine_arrival *arrival,
                           size_t *innovative, int64_t now_us);
void weft_held_settle(weft_engine *engine, uint64_t segment, int64_t now_us); // it is complete
// Checks the trial against the hash if its rank is n.
void weft_held_try(weft_engine *engine, uint64_t segment, int64_t now_us);
weft_status weft_checksum_take(weft_engine *engine, size_t index, const weft_checksum *checksum,
                               int64_t now_us);
void weft_revealed_take(weft_engine *engine, size_t index, const weft_revealed *revealed,
                        int64_t now_us);
size_t weft_checksum_put(weft_engine *engine, uint64_t segment, uint8_t *out);
void weft_checksum_tick(weft_engine *engine, int64_t now_us);
int64_t weft_checksum_deadline(const weft_engine *engine);

// request.c
// The most requests of one peer that may wait at another; 0: nothing is ever requested.
static inline size_t weft_requests_room(const weft_engine_options *o) {
  if (o->mode == WEFT_MODE_BULK && !o->policy->ask && !o->trust)
    return 0;
  return o->requests_max ? o->requests_max : 8;
}
// If they are few, one more for requests other than packets, on which the use of all packets may
// depend. If there are more, one of them soon becomes free.
static inline size_t weft_asks_room(const weft_engine_options *o) {
  const size_t room = weft_requests_room(o);
  return room && room < 4 ? room + 1 : room;
}
static inline int64_t weft_ask_every(const weft_engine *e) { // between looks at what is missing
  return WEFT_TIMER(e, ask_us, 100000);
}
// How long both ends keep a request that gets no answer, beyond the round trips.
static inline int64_t weft_ask_patience(const weft_engine *e) { return 4 * weft_ask_every(e); }
// How long before it is played an incomplete segment is requested.
static inline int64_t weft_ask_ahead(const weft_engine *e) {
  return weft_is_live(e) ? weft_lag_us(e) / 3 : 10 * weft_ask_every(e);
}
// Asks a random neighbour for the segment's manifest.
void weft_request_manifest(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_requests_tick(weft_engine *engine, int64_t now_us);
void weft_requests_again(weft_engine *engine, int64_t now_us); // plans another look soon
// The segment's time has become known: if it is due soon, it is not left to the next look.
void weft_requests_timed(weft_engine *engine, uint64_t segment, int64_t now_us);
int64_t weft_requests_deadline(const weft_engine *engine);
void weft_requests_ask(weft_engine *engine, int64_t now_us); // as the policy says

// asks.c
void weft_request_send(weft_engine *engine, size_t index, const weft_request *request,
                       int64_t now_us);
// Counts an answer. True: it is a requested block, which counts as held from now on; if it is not
// taken, weft_request_unmet makes it be requested again.
bool weft_request_answered(weft_engine *engine, size_t index, uint64_t segment, size_t count,
                           const weft_packet *packet, int64_t now_us);
void weft_request_unmet(weft_engine *engine, uint64_t segment, const weft_packet *packet);
void weft_requests_start(weft_engine *engine, size_t index); // for a new neighbour
void weft_requests_forget(weft_engine *engine, size_t index);
void weft_asks_expire(weft_engine *engine, int64_t now_us); // requests without an answer in time

// answer.c
void weft_requests_take(weft_engine *engine, size_t index, const weft_requests *requests,
                        int64_t now_us);
// Whether the neighbour may get another immediate answer, outside the pace of the uplink.
bool weft_answer_allowed(weft_engine *engine, size_t index, int64_t now_us);
// Chooses a requested burst, only from neighbours whose turn it is if `in_turn`, and takes it off
// what is owed; false: none.
bool weft_owed_next(weft_engine *engine, bool in_turn, weft_policy_choice *out, int64_t now_us);

// playback.c
// Whether times follow from the rate alone. Otherwise they follow the source's clock, as manifests
// give it: a live input can pause.
bool weft_timed_by_rate(const weft_engine *engine);
int64_t weft_segment_us(const weft_engine *engine);                        // 0: not known yet
int64_t weft_segment_by_rate(const weft_engine *engine, uint64_t segment); // requires a rate
int64_t weft_segment_at(const weft_engine *engine, uint64_t segment); // media time, as far as known
// Live: the lag that was asked for, or what a window holds if that is less, and a rate tells it.
int64_t weft_lag_allowed(const weft_engine *engine);
// The same where no rate tells it: by the times of what is known.
int64_t weft_play_lag_us(const weft_engine *engine);
// Whether windows would hold no more of a stream that has so many segments, and the next to be
// played is to make room.
bool weft_play_pressed(const weft_engine *engine, uint64_t horizon);
void weft_play_manifest(weft_engine *engine, uint64_t segment, int64_t at_us, int64_t now_us);
void weft_play_learn(weft_engine *engine, uint64_t segment, int64_t now_us);
void weft_play_tick(weft_engine *engine, int64_t now_us);
int64_t weft_play_deadline(const weft_engine *engine);
void weft_play_start(weft_engine *engine, int64_t now_us); // chooses where to begin
// VoD: whether playback cannot begin without the segment, at or after the one that is played next.
bool weft_play_begins_with(const weft_engine *engine, uint64_t segment);
// Whether the manifest of the newest segment that a neighbour claims should be requested from it.
bool weft_play_lacks_time(const weft_engine *engine);
int64_t weft_clock_offset(const int64_t pair[2]); // INT64_MAX: unknown
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
// A neighbour is at this address: the source, or perhaps a peer of which others said so.
void weft_exchange_met(weft_engine *engine, const weft_neighbour *neighbour);
// Playback moved: neighbours may be of no use now.
void weft_exchange_sought(weft_engine *engine, int64_t now_us);
weft_candidate *weft_candidate_at(const weft_engine *engine,
                                  const weft_peer_address *address); // NULL: unknown
void weft_candidate_forget(weft_engine *engine, size_t at);
// Adds a candidate, in place of the oldest if there is no room. False: it was not added.
bool weft_candidate_add(weft_engine *engine, const weft_peer_address *address);
bool weft_peer_address_same(const weft_peer_address *a, const weft_peer_address *b);
const weft_neighbour *weft_neighbour_at(const weft_engine *engine,
                                        const weft_peer_address *address); // NULL: none there

// room.c
void weft_room_look(weft_engine *engine, int64_t now_us); // parts with who should make room
// Whether the neighbour's place may go to the newcomer that seeks one.
bool weft_room_gives_way(const weft_engine *engine, const weft_neighbour *neighbour);
// Whether a viewer on demand has neighbours, but none with anything of what it needs next.
bool weft_room_stranded(const weft_engine *engine);
// Makes room for up to so many others that such a viewer, or one that is cut off, may dial.
// Returns how many.
size_t weft_room_clear(weft_engine *engine, size_t most, int64_t now_us);

// meet.c
void weft_meet_lost(weft_engine *engine, size_t index); // the neighbour's number will be reused
void weft_meet_dialled(weft_engine *engine, weft_candidate *candidate);
void weft_meet_take(weft_engine *engine, size_t index, const weft_refer *meet, int64_t now_us);
size_t weft_meet_put(weft_engine *engine, size_t index, uint8_t *out);
size_t weft_call_put(weft_engine *engine, size_t index, uint8_t *out);
void weft_meet_tick(weft_engine *engine, int64_t now_us);
int64_t weft_meet_deadline(const weft_engine *engine);

// source.c: opens a segment in its place.
weft_status weft_source_open(weft_engine *engine, uint64_t segment, const uint8_t *data,
                             size_t bytes);

// loads.c
void weft_loads_tell(weft_engine *engine, size_t index, int64_t now_us); // asks for its wants
// A neighbour requests a segment. Returns whether it is here, or is being loaded for that.
bool weft_loads_request(weft_engine *engine, size_t index, uint64_t segment, int64_t now_us);
bool weft_loads_waits(const weft_engine *engine, uint64_t segment); // for the application
void weft_loads_tick(weft_engine *engine, int64_t now_us);          // retries failed loads
void weft_rereads_start(weft_engine *engine); // if it should, once the end is known
void weft_rereads_keep(weft_engine *engine, uint64_t segment); // once it is complete
void weft_rereads_end(weft_engine *engine);

// output.c, burst.c
void weft_pace_spend(weft_engine *engine, size_t bytes, int64_t now_us);
size_t weft_control_put(weft_engine *engine, size_t index, int64_t now_us, uint8_t *out);
weft_status weft_burst_next(weft_engine *engine, int64_t now_us, weft_burst *out);
weft_policy_view weft_engine_view(const weft_engine *engine, int64_t now_us);

#endif
