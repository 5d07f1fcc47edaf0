// SPDX-License-Identifier: Apache-2.0
// Congestion control of each neighbour: LEDBAT (RFC 6817) on the one-way delay of the last packet
// of each burst, and bursts spread over the round trip. Losses alone do not shrink the window as
// TCP's would: coded packets need no retransmission, and links that lose a few percent by nature
// would starve. Losses of more than an eighth count as congestion, or of more than one in 32 where
// packets queue.
#include "peer/engine/internal.h"

enum {
  TARGET_US = 60000, // of queueing delay
  START_PACKETS = 16,
  LEAST_PACKETS = 2,
  BURSTS = 8,            // of which a window consists, if they are not closer than
  APART_US = 1000,       // for which a neighbour rests at least
  LONGEST_US = 100000,   // and at most
  LATE_US = 2000,        // how much of a rest that was too long is made up for
  LOSSES_OF = 8,         // one in so many may be lost,
  LOSSES_QUEUED_OF = 32, // or in so many where packets queue
  EXCESS = 4,            // excess losses tolerated: packets,
  EXCESS_OF = 8,         // plus this fraction of the window
  EXCESS_MOST = INT16_MAX / LOSSES_OF / 2,
  BASE_MS = 60000,         // how long one base delay counts
  DRIFT_US = 30000,        // two clocks drift apart by less meanwhile
  SAMPLES = 4,             // acknowledgements of which the least counts
  GROWS_BY = 32,           // a settled window's least growth in a round trip: one in so many
  MOST_PACKETS = INT16_MAX // of a window: what is missing is counted modulo 2^16
};

uint64_t weft_coded_bytes(const weft_engine *e) {
  const weft_engine_options *o = e->options;
  return WEFT_WIRE_SESSION_HEADER_BYTES + o->blocks + o->block_bytes + o->datagram_overhead;
}

// Times modulo 2^32, and delays, are compared as signed differences. A delay is the difference of
// two clocks, which may wrap and drift: so only differences of delays mean anything.
static bool below(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }
static bool below16(uint16_t a, uint16_t b) { return (int16_t)(uint16_t)(a - b) < 0; }

// Of 1024 us, modulo 2^32.
static uint32_t milliseconds(int64_t us) { return (uint32_t)(us >> 10); }

void weft_ledbat_start(weft_engine *e, weft_neighbour *n, int64_t now_us) {
  n->ledbat = (weft_ledbat){.base = {UINT32_MAX, UINT32_MAX},
                            .base_ms = milliseconds(now_us),
                            .turn_us = (uint32_t)now_us,
                            .acked_us = now_us,
                            .slow_start = true,
                            .window = START_PACKETS * (uint32_t)weft_coded_bytes(e)};
  const uint32_t burst = (uint32_t)(2 * e->options->batch * weft_coded_bytes(e));
  if (n->ledbat.window < burst)
    n->ledbat.window = burst;
}

// --- Bursts
//
// All that a window has room for, sent at once, would overflow the queue of a router that is no
// longer than a few bursts, though the path is idle for the rest of the round trip.

// In what time a window's packets are sent. Less than a round trip: what is acknowledged late must
// not hold up what follows. A window that doubles sends twice what is acknowledged; the sooner it
// does, the less of it seems missing because of jitter.
static int64_t spread_us(const weft_neighbour *n) {
  return n->ledbat.slow_start ? n->round_trip_us / 3 : n->round_trip_us * INT64_C(4) / 5;
}

void weft_ledbat_sent(const weft_engine *e, weft_neighbour *n, size_t packets, int64_t now_us) {
  weft_ledbat *l = &n->ledbat;
  const uint32_t now = (uint32_t)now_us, late = now - LATE_US;
  const bool first = l->sent == l->acked_sent; // next_us may be from long ago
  if (first)
    l->acked_us = now_us; // the wait begins now
  l->sent += (uint32_t)packets;
  if (!e->options->congestion || !n->timed)
    return;
  const int64_t bytes = (int64_t)(packets * weft_coded_bytes(e));
  const int64_t rest_us = bytes * spread_us(n) / l->window;
  l->next_us = first || below(l->next_us, late) ? late : l->next_us;
  l->next_us += (uint32_t)(rest_us < LONGEST_US ? rest_us : LONGEST_US);
  l->rests = below(now + APART_US, l->next_us);
}

bool weft_ledbat_room(const weft_engine *e, const weft_neighbour *n) {
  const uint64_t flight = (uint32_t)(n->ledbat.sent - n->ledbat.acked_sent) * weft_coded_bytes(e);
  return flight < n->ledbat.window && !n->ledbat.rests;
}

// How many packets a burst may have: a part of the window, or as many as go out before the
// neighbour rests. A whole batch would queue on a slow path by itself.
size_t weft_ledbat_burst(const weft_engine *e, const weft_neighbour *n) {
  const size_t batch = e->options->batch;
  if (!e->options->congestion)
    return batch;
  const uint64_t window = n->ledbat.window / weft_coded_bytes(e);
  const uint64_t part = window / BURSTS > LEAST_PACKETS ? window / BURSTS : LEAST_PACKETS;
  const uint64_t soon = window * APART_US / (uint64_t)(spread_us(n) + 1);
  const uint64_t most = soon > part ? soon : part;
  return most < batch ? (size_t)most : batch;
}

// Whether a delay exceeds the least by more than the whole round trip takes: packets cannot have
// queued for so long, so one of the clocks stood still (a virtual machine that was suspended), and
// all earlier delays mean nothing. Otherwise the window would stay at its least for a minute or
// two.
static bool clock_stepped(const weft_ledbat *l, uint32_t delay, int64_t round_trip_us) {
  const uint32_t base = below(l->base[1], l->base[0]) ? l->base[1] : l->base[0];
  return l->recent_count && round_trip_us >= 0 && !below(delay, base) &&
         (int64_t)(delay - base) > round_trip_us + DRIFT_US;
}

static uint32_t learn_delay(weft_ledbat *l, uint32_t delay, int64_t round_trip_us, int64_t now_us) {
  const uint32_t base_ms = milliseconds(now_us) - l->base_ms;
  // Nothing was sent since then, while clocks drifted; or this is another clock.
  if (base_ms >= 2 * BASE_MS || clock_stepped(l, delay, round_trip_us))
    l->recent_count = l->recent_at = 0;
  if (base_ms >= BASE_MS || l->recent_count == 0) {
    l->base[1] = l->recent_count == 0 ? delay : l->base[0];
    l->base[0] = delay;
    l->base_ms = milliseconds(now_us);
  }
  if (below(delay, l->base[0]))
    l->base[0] = delay;
  l->recent[l->recent_at] = delay;
  l->recent_at = (l->recent_at + 1u) & 3; // a mask: gcc's sanitizers warn of a remainder
  l->recent_count = (uint8_t)(l->recent_count < SAMPLES ? l->recent_count + 1 : SAMPLES);
  uint32_t least = delay; // the smallest of the last few: jitter is no queue
  for (unsigned i = 0; i < l->recent_count; i++)
    least = below(l->recent[i], least) ? l->recent[i] : least;
  const uint32_t base = below(l->base[1], l->base[0]) ? l->base[1] : l->base[0];
  return below(least, base) ? 0 : least - base; // the last few may be from the minute before
}

static bool queues(const weft_ledbat *l) { return l->queueing_us > TARGET_US / 8; }

// --- Losses
//
// What an acknowledgement lacks was lost, or was overtaken by the PACE that is acknowledged: on a
// path of 400 ms and 10 ms of jitter, a third of all that is on its way. Only what is lost stays
// missing, so the fewest count that were missing in any of a few acknowledgements, as with delays.

static uint16_t missing(const weft_ledbat *l) {
  return (uint16_t)(l->acked_sent - l->acked_received);
}

// What the last acknowledgement lacks beyond the most that was ever missing.
static int16_t more(const weft_ledbat *l) {
  return (int16_t)(uint16_t)(missing(l) - l->missing_most);
}

// Counts an acknowledgement and what it lacks. Returns whether it ends a round trip, or as good as:
// a window that doubles into a queue cannot wait for that.
static bool ends_turn(const weft_neighbour *n, weft_ledbat *l, int64_t now_us) {
  if (l->acks == 0 || below16(missing(l), l->missing[0]))
    l->missing[0] = missing(l);
  l->acks = (l->acks < SAMPLES ? l->acks + 1u : SAMPLES) & 7u;
  return (uint32_t)now_us - l->turn_us > (uint32_t)n->round_trip_us ||
         (l->slow_start && l->acks == SAMPLES && queues(l));
}

// Begins another round trip. Returns the fewest that were missing in the last one, or in the last
// two if it had few acknowledgements.
static uint16_t turn(weft_ledbat *l, int64_t now_us) {
  const bool before = l->acks < SAMPLES && below16(l->missing[1], l->missing[0]);
  const uint16_t fewest = l->missing[before];
  l->missing[1] = l->missing[0];
  l->acks = 0;
  l->turn_us = (uint32_t)now_us;
  return fewest;
}

// An acknowledgement that waited counts some of the next burst: so only what is missing beyond the
// most that was ever missing counts as lost.
static int64_t newly_lost(weft_ledbat *l, uint16_t missing, int64_t noise) {
  const int16_t lost = (int16_t)(uint16_t)(missing - l->missing_most);
  if (lost > 0)
    l->missing_most = missing;
  else if (-lost > noise) // a network may duplicate packets
    l->missing_most = (uint16_t)(missing + noise);
  return lost > 0 ? lost : 0;
}

// --- After a cut
//
// Losses of packets sent before a cut come up after it, in one round trip or more. If they counted,
// one overflow would halve the window twice.

static void recover(weft_ledbat *l) {
  l->was_cut = true;
  l->turns_past = 0;
  l->cut_sent = (uint16_t)l->sent;
}

// Whether such losses may be among those of the round trip that ends: unless all acknowledgements
// whose fewest missing count, of this one or of two, were of packets sent after the cut.
static bool recovers(weft_ledbat *l) {
  const bool recovers = l->was_cut;
  const unsigned counted = l->acks < SAMPLES ? 2 : 1;
  l->was_cut = l->was_cut && l->turns_past < counted;
  if (below16((uint16_t)l->acked_sent, l->cut_sent))
    l->turns_past = 0;
  else if (l->turns_past < 2)
    l->turns_past = (l->turns_past + 1u) & 3u;
  return recovers;
}

// --- What losses mean

typedef enum loss { LOSS_NONE, LOSS_SEEMS, LOSS_IS } loss;

// Whether losses have been above the tolerated fraction for longer than chance explains: on a path
// that loses one packet in twenty, one burst of eight in twenty loses two. So losses in excess of
// that fraction are added up, from 0 (Page's test). Losses of packets sent before a cut do not
// count again.
static loss judge(const weft_engine *e, weft_neighbour *n, uint32_t sent, int64_t now_us) {
  weft_ledbat *l = &n->ledbat;
  const int64_t window = l->window / (int64_t)weft_coded_bytes(e);
  const int64_t some = EXCESS + window / EXCESS_OF, most = some < EXCESS_MOST ? some : EXCESS_MOST;
  const int64_t part = queues(l) ? LOSSES_QUEUED_OF : LOSSES_OF;
  int64_t excess = l->excess - (int64_t)sent;
  const bool seems = more(l) > 0 && excess + part * more(l) >= LOSSES_OF * most;
  if (!ends_turn(n, l, now_us)) {
    l->excess = (int16_t)(excess > INT16_MIN ? excess : INT16_MIN);
    return seems ? LOSS_SEEMS : LOSS_NONE;
  }
  const bool settles = recovers(l);
  excess += part * newly_lost(l, turn(l, now_us), window < INT16_MAX ? window : INT16_MAX);
  const bool much = !settles && excess >= LOSSES_OF * most;
  l->excess = (int16_t)(!settles && !much && excess > 0 ? excess : 0);
  if (much)
    recover(l);
  return much ? LOSS_IS : seems ? LOSS_SEEMS : LOSS_NONE;
}

// A window that doubled has doubled once more since then.
static void cut(weft_engine *e, weft_ledbat *l) {
  const uint32_t least = LEAST_PACKETS * (uint32_t)weft_coded_bytes(e);
  const uint32_t to = l->window / (l->slow_start ? 4 : 2);
  l->window = to > least ? to : least;
  l->slow_start = false;
}

// --- The window

// Doubles it in a round trip until the path queues, by less the more it does; then follows RFC
// 6817: window += gain * (target - queueing) / target * acked bytes * packet / window. A large one
// grows in proportion to itself where nothing queues: on a path of 400 ms, two packets in a round
// trip are next to nothing. It does not grow past twice what is used: an idle sender learns nothing
// about the path. Nor does it while too much seems lost, unless it doubles and nothing queues: then
// packets may have overtaken each other, and it would stay small for long. But jitter does not
// overtake half of a window: a full queue, which lets through only the PACEs that find it shorter,
// does not seem to be one.
static void grow(const weft_engine *e, weft_ledbat *l, uint32_t sent, bool seems_lost) {
  const int64_t packet = (int64_t)weft_coded_bytes(e), acked = (int64_t)sent * packet;
  const int64_t least = LEAST_PACKETS * packet, window = l->window, most = GROWS_BY * 2 * packet;
  const int64_t by = window < most || queues(l) ? window : most;
  const int64_t off = TARGET_US - (int64_t)l->queueing_us;
  l->slow_start = l->slow_start && 2 * off > TARGET_US;
  const int64_t change = l->slow_start ? acked * (2 * off - TARGET_US) / TARGET_US
                         : off >= 0
                             ? off * acked / TARGET_US * packet / by * 2
                             : -(-2 * off < TARGET_US ? -off : TARGET_US / 2) * acked / TARGET_US;
  const uint64_t used = (uint32_t)(l->sent - l->acked_sent + sent) * (uint64_t)packet;
  const bool held = seems_lost && (!l->slow_start || queues(l) || 2 * packet * more(l) > window);
  const int64_t next = change < 0 || (!held && 2 * used >= l->window) ? window + change : window;
  const int64_t largest = MOST_PACKETS * packet;
  l->window = (uint32_t)(next < least ? least : next < largest ? next : largest);
}

void weft_ledbat_acked(weft_engine *e, size_t index, const weft_ack *ack, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  weft_ledbat *l = &n->ledbat;
  const uint32_t sent = ack->sent - l->acked_sent;
  if ((int32_t)sent <= 0 || (int32_t)(l->sent - ack->sent) < 0)
    return; // overtaken by a newer one, or about packets that were never sent
  const int64_t round_trip_us =
      weft_neighbour_echoed(n, &(weft_stamps){.echo = ack->stamp, .held = ack->held}, now_us);
  l->acked_sent = ack->sent;
  l->acked_received = ack->received;
  l->acked_us = now_us;
  l->queueing_us = learn_delay(l, ack->delay, round_trip_us, now_us);
  const loss losses = judge(e, n, sent, now_us);
  if (losses == LOSS_IS)
    cut(e, l);
  else
    grow(e, l, sent, losses == LOSS_SEEMS);
  e->idle = false;
  weft_neighbour_show(e, n);
  weft_neighbour_timer(e, index);
}

size_t weft_pace_put(weft_neighbour *n, int64_t now_us, uint8_t *out) {
  const uint32_t stamp = (uint32_t)now_us;
  n->ledbat.paced_us = stamp;
  return weft_pace_write(&(weft_pace){.sent = n->ledbat.sent, .stamp = stamp ? stamp : 1}, out);
}

void weft_pace_took(weft_engine *e, size_t index, const weft_pace *pace, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  const int32_t more = (int32_t)(pace->sent - n->pace_sent);
  const bool again = more == 0 && (int32_t)(pace->stamp - n->pace_stamp) > 0;
  if (n->pace_stamp && more <= 0 && !again)
    return; // overtaken
  n->pace_sent = pace->sent;
  n->pace_stamp = pace->stamp;
  n->pace_us = (uint32_t)now_us;
  if (n->ack_due_us == WEFT_ENGINE_NEVER)
    n->ack_due_us = now_us + WEFT_TIMER(e, ack_us, 10000);
}

// --- Silence
//
// A burst ends with one packet, the PACE, and one packet acknowledges it. If either is lost while
// the window is full, no other burst follows that would be acknowledged: so the PACE is repeated.
// If that were left to the long silence, a viewer with one neighbour, on a path that loses two
// packets in a hundred, would have nothing for over a second several times a minute.

// A time modulo 2^32 that is less than half an hour from the last acknowledgement.
static int64_t around_ack(const weft_ledbat *l, uint32_t us) {
  return l->acked_us + (int32_t)(us - (uint32_t)l->acked_us);
}

static int64_t repeat_time(const weft_engine *e, const weft_neighbour *n) {
  return around_ack(&n->ledbat, n->ledbat.paced_us) + 2 * n->round_trip_us +
         WEFT_TIMER(e, ack_us, 10000);
}

static int64_t silence_time(const weft_neighbour *n) {
  return n->ledbat.acked_us + 1000000 + 4 * n->round_trip_us;
}

int64_t weft_ledbat_deadline(const weft_engine *e, const weft_neighbour *n) {
  const weft_ledbat *l = &n->ledbat;
  const int64_t next_us = l->rests ? around_ack(l, l->next_us) : WEFT_ENGINE_NEVER;
  if (!e->options->congestion || l->sent == l->acked_sent)
    return next_us;
  const int64_t repeat_us = repeat_time(e, n), silence_us = silence_time(n);
  const int64_t ack_us = repeat_us < silence_us ? repeat_us : silence_us;
  return next_us < ack_us ? next_us : ack_us;
}

static void end_rest(weft_engine *e, weft_neighbour *n) {
  n->ledbat.rests = false;
  e->idle = false;
  weft_neighbour_show(e, n);
}

// Ends a rest; repeats a PACE, or, after a long silence, counts all that is on its way as lost.
void weft_ledbat_tick(weft_engine *e, size_t index, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  weft_ledbat *l = &n->ledbat;
  if (l->rests && now_us >= around_ack(l, l->next_us))
    end_rest(e, n);
  if (now_us < weft_ledbat_deadline(e, n))
    return;
  if (now_us < silence_time(n)) {
    weft_neighbour_due(e, index, WEFT_DUE_PACE);
    return;
  }
  const uint16_t flight = (uint16_t)(l->sent - l->acked_sent); // missing, which is no news
  l->missing_most = (uint16_t)(l->missing_most + flight);
  l->missing[1] = (uint16_t)(l->missing[1] + flight);
  l->acks = 0;
  l->acked_sent = l->sent;
  l->acked_us = now_us;
  l->window = LEAST_PACKETS * (uint32_t)weft_coded_bytes(e);
  l->slow_start = true;
  e->idle = false;
  weft_neighbour_show(e, n);
}
