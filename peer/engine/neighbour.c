// SPDX-License-Identifier: Apache-2.0
// Neighbours: coming and going, what each wants, round trips, and what is on its way to each.
#include <string.h>

#include "peer/engine/internal.h"

enum {
  ROUND_TRIP_GUESS_US = 200000, // before the first measurement
  ROUND_TRIP_MOST_US = 2000000, // limits what a neighbour can pretend: waits depend on it
  PROBE_US = 400000,            // between HELLOs to a neighbour in doubt
  MAP_APART_US = 2000           // between maps to one neighbour, at least
};

// --- Coming and going

static void start(weft_engine *e, size_t index, const weft_neighbour_options *options,
                  int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  const weft_neighbour old = *n;
  *n = (weft_neighbour){.state = WEFT_NEIGHBOUR_GREETING,
                        .generation = (uint16_t)(old.generation + 1),
                        .wants = old.wants,
                        .marks = old.marks,
                        .blocks = old.blocks,
                        .flight = old.flight,
                        .asks = old.asks,
                        .owed = old.owed,
                        .heard_us = now_us,
                        .hello_us = now_us,
                        .brake_us = now_us,
                        .spoke_us = now_us,
                        .added_us = now_us,
                        .gave_us = INT64_MIN / 2,
                        .caller = WEFT_NO_NEIGHBOUR,
                        .ack_due_us = WEFT_ENGINE_NEVER,
                        .unanswered_us = WEFT_ENGINE_NEVER,
                        .round_trip_us = ROUND_TRIP_GUESS_US};
  if (options) {
    n->address = options->address;
    n->origin = options->origin;
    n->is_source = options->is_source;
    n->dialled = options->dialled;
    weft_exchange_met(e, n);
  }
  memset(n->wants, 0, e->window * sizeof *n->wants);
  memset(n->marks, 0, e->window);
  if (n->blocks)
    memset(n->blocks, 0, e->window * e->blocks_stride);
  weft_ledbat_start(e, n, now_us);
  weft_share_start(e, n, &old);
  weft_wait_start(e, index, &old, now_us);
  e->policy_view[index] = (weft_policy_neighbour){
      .suppliers = 1, .source = n->is_source, .wants = n->wants, .blocks = n->blocks};
  weft_requests_start(e, index);
}

weft_status weft_engine_add_neighbour(weft_engine *e, const weft_neighbour_options *options,
                                      int64_t now_us, size_t *neighbour) {
  if (options && options->address.length > WEFT_PEER_ADDRESS_BYTES)
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < e->options->neighbours_max; i++) {
    if (e->neighbours[i].state != WEFT_NEIGHBOUR_FREE)
      continue;
    start(e, i, options, now_us);
    e->degree++;
    e->farewell = e->leaving; // it may lack what is here: then this peer is not finished
    e->used = e->used > i ? e->used : (uint32_t)i + 1;
    e->due[i] = 0;
    weft_neighbour_due(e, i, WEFT_DUE_HELLO);
    weft_neighbour_timer(e, i);
    if (e->joined_us < 0) {
      e->joined_us = now_us;
      weft_shortage_start(e, now_us);
    }
    if (e->exchange_us == WEFT_ENGINE_NEVER && e->options->addresses_max)
      e->exchange_us = now_us + weft_exchange_wait(e, now_us);
    *neighbour = i;
    return WEFT_OK;
  }
  return WEFT_E_STATE;
}

void weft_neighbour_show(weft_engine *e, const weft_neighbour *n) {
  const size_t flights = weft_flights_max(e->options);
  weft_policy_neighbour *view = &e->policy_view[n - e->neighbours];
  // A neighbour whose map has not come would seem to lack everything, and to have no other
  // supplier: most of that it has already.
  const bool known = n->state == WEFT_NEIGHBOUR_OPEN && !n->doubtful && n->mapped;
  view->open = known && !weft_share_sated(e, n) && n->flight_count < flights &&
               (!e->options->congestion || weft_ledbat_room(e, n));
  view->known = known;
  view->oldest = n->oldest;
  view->first = n->first;
  view->count = (uint32_t)(n->accept_end - n->first);
}

void weft_neighbour_due(weft_engine *e, size_t index, unsigned what) {
  e->due_count += e->due[index] == 0;
  e->due[index] = (uint16_t)(e->due[index] | what);
}

void weft_neighbour_mark(weft_engine *e, size_t index, uint64_t segment, unsigned mark,
                         unsigned due) {
  uint8_t *marks = &e->neighbours[index].marks[weft_place(e, segment)];
  *marks = (uint8_t)(*marks | mark);
  weft_neighbour_due(e, index, due);
}

void weft_neighbour_drop(weft_engine *e, size_t index, weft_lost_reason reason) {
  weft_neighbour *n = &e->neighbours[index];
  e->lost_count += !n->open_event;
  n->open_event = false;
  e->doubtful -= n->doubtful;
  n->doubtful = false;
  n->state = WEFT_NEIGHBOUR_LOST; // free once the event has been reported
  n->lost = (uint8_t)reason;
  e->due_count -= e->due[index] != 0;
  e->due[index] = 0;
  e->clocks[index] = (weft_clock){.timer_us = WEFT_ENGINE_NEVER, .map_us = WEFT_ENGINE_NEVER};
  weft_neighbour_show(e, n);
  weft_requests_forget(e, index);
  for (size_t at = 0; at < e->window; at++) // its number may soon be another's
    if (e->slots[at].solo == index)
      e->slots[at].solo = WEFT_NO_NEIGHBOUR;
  e->degree--;
  if (e->sought)
    e->sought--;
  weft_exchange_lost(e, n);
  weft_meet_lost(e, index);
  weft_window_advance(e); // the window may have waited for this neighbour
}

void weft_neighbour_ban(weft_engine *e, size_t index) {
  if (e->neighbours[index].state == WEFT_NEIGHBOUR_LOST ||
      e->neighbours[index].state == WEFT_NEIGHBOUR_FREE)
    return;
  e->statistics.banned++;
  weft_neighbour_drop(e, index, WEFT_LOST_BANNED);
}

weft_status weft_engine_remove_neighbour(weft_engine *e, size_t neighbour) {
  if (neighbour >= e->options->neighbours_max ||
      e->neighbours[neighbour].state == WEFT_NEIGHBOUR_FREE ||
      e->neighbours[neighbour].state == WEFT_NEIGHBOUR_LOST)
    return WEFT_E_STATE;
  weft_neighbour_drop(e, neighbour, WEFT_LOST_LEFT);
  e->neighbours[neighbour].state = WEFT_NEIGHBOUR_FREE; // the caller knows
  e->lost_count--;
  return WEFT_OK;
}

void weft_neighbour_open(weft_engine *e, size_t index, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  if (n->state != WEFT_NEIGHBOUR_GREETING)
    return;
  n->state = WEFT_NEIGHBOUR_OPEN;
  n->open_event = true;
  e->lost_count++; // counts both kinds of event
  e->clocks[index].map_us = now_us;
  weft_neighbour_due(e, index, WEFT_DUE_MAP);
  weft_exchange_opened(e, index);
  weft_neighbour_show(e, n);
  e->idle = e->ask_idle = false;
}

void weft_engine_leave(weft_engine *e) {
  e->leaving = e->farewell = true;
  for (size_t i = 0; i < e->used; i++) {
    weft_neighbour *n = &e->neighbours[i];
    if (n->state == WEFT_NEIGHBOUR_FREE || n->state == WEFT_NEIGHBOUR_LOST)
      continue;
    e->due[i] = 0;
    n->bye = WEFT_BYE_LEAVING;
    n->leaving = true;
  }
  e->due_count = 0;
  for (size_t i = 0; i < e->used; i++)
    if (e->neighbours[i].leaving)
      weft_neighbour_due(e, i, WEFT_DUE_BYE);
}

// --- Doubt: whether each is still there
//
// A neighbour that was killed says nothing. If peers always waited for half a minute of silence, as
// they must where there may be nothing to say, a swarm whose peers come and go would send half of
// its packets to the dead. So silence is measured from what a live neighbour answers: coded
// packets, which change its maps, and requests. A neighbour that does not answer these in time is
// in doubt, and is sent nothing but HELLOs until it speaks.

void weft_neighbour_expect(weft_engine *e, size_t index, int64_t at_us) {
  weft_neighbour *n = &e->neighbours[index];
  if (n->doubtful || n->unanswered_us != WEFT_ENGINE_NEVER)
    return;
  n->unanswered_us = at_us;
  weft_neighbour_timer(e, index);
}

void weft_neighbour_spoke(weft_engine *e, size_t index, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  n->heard_us = now_us;
  n->unanswered_us = WEFT_ENGINE_NEVER;
  if (!n->doubtful)
    return;
  n->doubtful = false;
  e->doubtful--;
  e->idle = e->ask_idle = false;
  weft_neighbour_show(e, n);
}

static int64_t doubt_deadline(const weft_engine *e, const weft_neighbour *n) {
  const int64_t quiet = n->heard_us + WEFT_TIMER(e, keep_us, 10000000); // it owed a keep-alive
  const int64_t patience =
      WEFT_TIMER(e, map_idle_us, 1000000) + WEFT_TIMER(e, map_us, 200000) + 2 * n->round_trip_us;
  return (n->unanswered_us < quiet ? n->unanswered_us : quiet) + patience;
}

// How long a neighbour in doubt keeps its place: less if newcomers want it.
static int64_t silent(const weft_engine *e, const weft_neighbour *n) {
  const int64_t silent_us = WEFT_TIMER(e, silent_us, 6000000);
  const bool sought =
      e->sought && e->degree >= e->options->neighbours_max && weft_room_gives_way(e, n);
  return sought && silent_us > 2 * PROBE_US ? 2 * PROBE_US : silent_us;
}

bool weft_neighbour_gone(weft_engine *e, size_t index, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  if (n->state == WEFT_NEIGHBOUR_GREETING)
    return now_us >= n->heard_us + WEFT_TIMER(e, silent_us, 6000000);
  if (!n->doubtful && now_us >= doubt_deadline(e, n)) {
    n->doubtful = true;
    n->unanswered_us = now_us;
    e->doubtful++;
    weft_requests_forget(e, index);
    weft_flight_forget(e, n, WEFT_ENGINE_NEVER);
    e->exchange_us = e->exchange_us != WEFT_ENGINE_NEVER ? now_us : e->exchange_us;
    e->ask_idle = false;
  }
  return n->doubtful && now_us >= n->unanswered_us + silent(e, n);
}

bool weft_neighbour_probe(const weft_engine *e, size_t index, int64_t now_us) {
  const weft_neighbour *n = &e->neighbours[index];
  return n->doubtful && now_us >= n->hello_us + PROBE_US;
}

// --- When each wants something next

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

// How long a fetch that lacks only a few packets waits for what a map brings: if neighbours know
// soon what was lost, or that none of them sent the last packet, they send again.
static int64_t answer_us(const weft_engine *e, const weft_neighbour *n) {
  return earlier(n->round_trip_us * INT64_C(3) / 2, WEFT_TIMER(e, map_us, 200000));
}

// When ranks that changed are announced: soon after a quarter of a segment, so that fast links do
// not run ahead of maps; else after a while, for slow ones.
int64_t weft_neighbour_map_time(const weft_engine *e, size_t index) {
  const weft_clock *clock = &e->clocks[index];
  const bool much = e->progress - clock->told_progress >= (e->options->blocks + 3) / 4;
  return clock->map_us + (much     ? MAP_APART_US
                          : e->few ? answer_us(e, &e->neighbours[index])
                                   : WEFT_TIMER(e, map_us, 200000));
}

// Where few packets are missing, the wait doubles until one comes: neighbours may have none to
// send.
int64_t weft_neighbour_map_again(const weft_engine *e, size_t index) {
  const int64_t idle_us = WEFT_TIMER(e, map_idle_us, 1000000), map_us = e->clocks[index].map_us;
  const int64_t least_us = answer_us(e, &e->neighbours[index]), since_us = map_us - e->gain_us;
  return map_us + (e->few ? earlier(idle_us, since_us > least_us ? since_us : least_us) : idle_us);
}

// Whether it reported that it has every segment before `end`.
static bool had_until(const weft_engine *e, const weft_neighbour *n, uint64_t end) {
  for (uint64_t s = n->first; s < end; s++) {
    const weft_policy_want *want = weft_neighbour_want(e, n, s);
    if (!want || want->rank < weft_window_blocks(e, s))
      return false;
  }
  return true;
}

// Whether the neighbour may be waiting for a map that was lost. A live source announces each
// segment, but nothing follows the last one, and none asks it for what it is not known to have.
bool weft_neighbour_repeats(const weft_engine *e, const weft_neighbour *n) {
  return !weft_is_paced(e) || (e->end_known && !n->knows_end) ||
         (e->self.source ? weft_is_live(e) && !had_until(e, n, e->horizon) : !weft_engine_done(e));
}

int64_t weft_flight_patience(const weft_engine *e, const weft_neighbour *n) {
  return n->round_trip_us + WEFT_TIMER(e, map_us, 200000);
}

// When it is greeted again: until its HELLO and its first map have come, either of which may be
// lost, or a map that overtook the HELLO. An old neighbour that sends no map is not asked for ever.
int64_t weft_neighbour_greet_time(const weft_engine *e, const weft_neighbour *n) {
  const int64_t every_us = WEFT_TIMER(e, hello_us, 200000);
  if (n->state == WEFT_NEIGHBOUR_GREETING)
    return n->hello_us + every_us;
  const int64_t at = n->hello_us + (n->round_trip_us > every_us ? n->round_trip_us : every_us);
  const bool old = at > n->added_us + WEFT_TIMER(e, silent_us, 6000000);
  return n->state == WEFT_NEIGHBOUR_OPEN && !n->mapped && !old ? at : WEFT_ENGINE_NEVER;
}

void weft_neighbour_timer(weft_engine *e, size_t index) {
  const weft_neighbour *n = &e->neighbours[index];
  weft_clock *clock = &e->clocks[index];
  int64_t at = weft_neighbour_greet_time(e, n);
  if (n->state == WEFT_NEIGHBOUR_OPEN) {
    at = earlier(at, n->spoke_us + WEFT_TIMER(e, keep_us, 10000000));
    at = earlier(at, n->ack_due_us);
    if (weft_neighbour_repeats(e, n))
      at = earlier(at, weft_neighbour_map_again(e, index));
    if (n->flight_count) // bursts that no map has counted by then were lost
      at = earlier(at, n->flight[n->flight_first].at_us + weft_flight_patience(e, n));
    at = earlier(at, weft_ledbat_deadline(e, n));
    if (!n->doubtful)
      at = earlier(at, doubt_deadline(e, n));
    else
      at = earlier(at, earlier(n->unanswered_us + silent(e, n), n->hello_us + PROBE_US));
  } else {
    clock->map_us = WEFT_ENGINE_NEVER;
    if (n->state == WEFT_NEIGHBOUR_GREETING)
      at = earlier(at, n->heard_us + WEFT_TIMER(e, silent_us, 6000000));
  }
  if (n->state == WEFT_NEIGHBOUR_OPEN || n->state == WEFT_NEIGHBOUR_GREETING)
    at = earlier(at, weft_wait_deadline(e, index));
  clock->timer_us = at;
}

// --- What it wants

bool weft_neighbour_complete(const weft_engine *e, const weft_neighbour *n, uint64_t segment) {
  if (n->state != WEFT_NEIGHBOUR_OPEN || !n->mapped)
    return false;
  if (segment < n->first)
    return segment >= n->oldest;
  const weft_policy_want *want = weft_neighbour_want(e, n, segment);
  return want && want->rank > 0 && want->rank >= weft_window_blocks(e, segment);
}

void weft_neighbour_clear(const weft_engine *e, weft_neighbour *n, uint64_t segment) {
  n->wants[weft_place(e, segment)] = (weft_policy_want){0};
  if (n->blocks)
    memset(n->blocks + (weft_place(e, segment)) * e->blocks_stride, 0, e->blocks_stride);
}

void weft_neighbour_range(weft_engine *e, size_t index, uint64_t first, uint64_t end) {
  weft_neighbour *n = &e->neighbours[index];
  if (end < first)
    end = first;
  if (end - first > e->window)
    end = first + e->window;
  const uint64_t old_end = n->accept_end;
  if (first < n->first || first >= old_end) { // elsewhere: nothing is known there yet
    n->first = n->accept_end = first;
  } else {
    n->first = first;
  }
  for (uint64_t s = n->accept_end > first ? n->accept_end : first; s < end; s++) {
    weft_neighbour_clear(e, n, s);
    weft_want_refresh(e, &n->wants[weft_place(e, s)], s);
  }
  if (end > n->accept_end)
    n->accept_end = end;
  weft_neighbour_show(e, n);
}

// --- Round trips

static uint32_t delay(const weft_neighbour *n) { return (uint32_t)n->stamp_us - n->stamp; }

// Learns the smallest delay. Clocks drift by less than one part in 4096, so an old minimum rises by
// that, computed from absolute times because messages may come more often than it makes a whole
// microsecond. A clock that was set back shows in stamps that fall by more than reordering
// explains; one that stood still, in a delay that is longer than the round trip.
static void learn_delay(weft_neighbour *n, const weft_stamps *stamps, int64_t round_trip_us,
                        int64_t now_us) {
  enum { DRIFT = 4096, OVERTAKEN_US = 1000000, ERROR_US = 30000 };
  const bool first = n->stamp == 0 || (int32_t)(n->stamp - stamps->stamp) > OVERTAKEN_US;
  n->delay_least += (uint32_t)(now_us / DRIFT - n->stamp_us / DRIFT);
  n->stamp = stamps->stamp;
  n->stamp_us = now_us;
  const int32_t more = (int32_t)(delay(n) - n->delay_least);
  if (first || more < 0 || (round_trip_us >= 0 && more > round_trip_us + ERROR_US))
    n->delay_least = delay(n);
}

uint32_t weft_neighbour_queueing_us(const weft_neighbour *n) {
  return n->stamp ? delay(n) - n->delay_least : 0;
}

void weft_neighbour_heard(weft_neighbour *n, const weft_stamps *stamps, int64_t now_us) {
  learn_delay(n, stamps, weft_neighbour_echoed(n, stamps, now_us), now_us);
}

int64_t weft_neighbour_echoed(weft_neighbour *n, const weft_stamps *stamps, int64_t now_us) {
  if (stamps->echo == 0)
    return -1;
  const int64_t measured = (int64_t)(uint32_t)((uint32_t)now_us - stamps->echo - stamps->held);
  if (measured > 30000000) // a clock that jumped, or a false echo
    return -1;
  const int32_t sample = measured < ROUND_TRIP_MOST_US ? (int32_t)measured : ROUND_TRIP_MOST_US;
  // Rises at once, falls slowly: if flights are forgotten too early, packets are sent twice.
  n->round_trip_us =
      n->timed && sample < n->round_trip_us ? (7 * n->round_trip_us + sample) / 8 : sample;
  n->timed = true;
  return measured;
}

weft_stamps weft_neighbour_stamps(const weft_neighbour *n, int64_t now_us) {
  const uint32_t stamp = (uint32_t)now_us;
  return (weft_stamps){.stamp = stamp ? stamp : 1, // 0 stands for none
                       .echo = n->stamp,
                       .held = n->stamp ? (uint32_t)(now_us - n->stamp_us) : 0};
}

// --- What is on its way

void weft_flight_add(weft_engine *e, weft_neighbour *n, int64_t at_us, uint64_t segment,
                     size_t count) {
  const size_t flights = weft_flights_max(e->options);
  if (n->flight_count == flights) { // a request may be served beyond the limit
    weft_flight_forget(e, n, n->flight[n->flight_first].at_us);
  }
  const size_t at = (n->flight_first + n->flight_count) % flights;
  n->flight[at] =
      (weft_flight){.at_us = at_us, .segment = (uint32_t)segment, .count = (uint16_t)count};
  n->flight_count++;
  if (n->flight_count == 1)
    weft_neighbour_timer(e, (size_t)(n - e->neighbours));
  weft_policy_want *want = weft_neighbour_want(e, n, segment);
  if (want) {
    const size_t sum = want->in_flight + count;
    want->in_flight = (sum < WEFT_WANT_FLIGHT ? sum : WEFT_WANT_FLIGHT) & WEFT_WANT_FLIGHT;
    weft_want_common(want, count);
  }
  weft_neighbour_show(e, n);
}

void weft_flight_forget(weft_engine *e, weft_neighbour *n, int64_t until_us) {
  const size_t flights = weft_flights_max(e->options);
  while (n->flight_count && n->flight[n->flight_first].at_us <= until_us) {
    const weft_flight *flight = &n->flight[n->flight_first];
    const uint64_t segment = n->first + (uint32_t)(flight->segment - (uint32_t)n->first);
    weft_policy_want *want = weft_neighbour_want(e, n, segment);
    if (want) // otherwise another segment is in its place by now
      want->in_flight = (want->in_flight > flight->count ? want->in_flight - flight->count : 0) &
                        WEFT_WANT_FLIGHT;
    n->flight_first = (uint16_t)((n->flight_first + 1) % flights);
    n->flight_count--;
  }
  weft_neighbour_show(e, n);
}

// --- Statistics

// Judged by what the neighbour has, as in weft_engine_finished: one that waits for nothing more
// says nothing more. It may never report what its application has yet to take, nor repeat a
// farewell that was lost.
bool weft_neighbour_had_all(const weft_engine *e, const weft_neighbour *n) {
  if (n->finished || !n->mapped || !e->end_known)
    return n->finished;
  return had_until(e, n, weft_window_total(e));
}

weft_status weft_engine_get_neighbour(const weft_engine *e, size_t neighbour,
                                      weft_neighbour_statistics *out) {
  if (neighbour >= e->options->neighbours_max)
    return WEFT_E_STATE;
  const weft_neighbour *n = &e->neighbours[neighbour];
  if (n->state == WEFT_NEIGHBOUR_FREE || n->state == WEFT_NEIGHBOUR_LOST)
    return WEFT_E_STATE;
  *out = (weft_neighbour_statistics){.open = n->state == WEFT_NEIGHBOUR_OPEN,
                                     .is_source = n->is_source,
                                     .had_all = weft_neighbour_had_all(e, n),
                                     .anew = n->anew,
                                     .round_trip_us = n->round_trip_us,
                                     .queueing_us = n->ledbat.queueing_us,
                                     .window_bytes = e->options->congestion ? n->ledbat.window : 0,
                                     .sent_packets = n->ledbat.sent,
                                     .received_packets = n->received_packets,
                                     .received_innovative = n->received_innovative,
                                     .first = n->first,
                                     .suppliers = e->policy_view[neighbour].suppliers};
  return WEFT_OK;
}
