// SPDX-License-Identifier: Apache-2.0
// One peer's turn: handles the messages of a window and the peer's own timers in order of time, and
// after each of them what the engine asks for.
#include <stdlib.h>
#include <string.h>

#include "sim/swarm/internal.h"

static weft_sim_peer *peer_of(const weft_sim_swarm *swarm, size_t lane, uint32_t actor) {
  return &swarm->shares[lane].peers[actor / swarm->lanes];
}

static void prefetch_bytes(const void *start, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64)
    __builtin_prefetch((const char *)start + at);
}

// Prefetches the peer; then what its engine always reads; then, in two steps, what the engine reads
// for this message.
void weft_sim_prefetch(void *user, size_t lane, uint32_t actor, const weft_sim_message *message,
                       unsigned step) {
  const weft_sim_swarm *swarm = user;
  const weft_sim_share *share = &swarm->shares[lane];
  const weft_sim_peer *p = peer_of(swarm, lane, actor);
  if (step == 0) {
    prefetch_bytes(p, offsetof(weft_sim_peer, dials));
    prefetch_bytes(weft_sim_contacts(share, p),
                   swarm->parameters.neighbours_max * sizeof(weft_sim_contact));
  } else if (p->engine && step == 1) {
    prefetch_bytes(p->engine, share->hot_bytes);
  } else if (p->engine && message) {
    const size_t from = weft_sim_number_of(share, p, message->source);
    if (from != SIZE_MAX)
      weft_engine_prefetch(p->engine, from, weft_sim_segment_of(message), step == 3);
  }
}

// --- What the engine wants done

weft_status weft_sim_add_neighbour(weft_sim_share *share, weft_sim_peer *peer, uint32_t other,
                                   bool dialled, int64_t now_us, size_t *number) {
  const weft_neighbour_options options = {
      .address = weft_sim_address(other), .is_source = other == 0, .dialled = dialled};
  WEFT_TRY(weft_engine_add_neighbour(peer->engine, &options, now_us, number));
  weft_sim_contacts(share, peer)[*number] = (weft_sim_contact){
      .peer = other,
      .delay_us = (uint32_t)weft_sim_delay_us(&share->swarm->model, peer->id, other)};
  peer->degree++;
  peer->has_stream = true;
  return WEFT_OK;
}

static void lose_neighbour(weft_sim_share *share, weft_sim_peer *p, const weft_event *event) {
  weft_sim_contact *contact = &weft_sim_contacts(share, p)[event->neighbour];
  if (event->reason == WEFT_LOST_BANNED) {
    memmove(p->banned + 1, p->banned, (WEFT_SIM_BANS - 1) * sizeof *p->banned);
    p->banned[0] = contact->peer;
  }
  contact->peer = WEFT_SIM_NOBODY;
  p->degree -= p->degree > 0;
}

// late: played after a stall, so it was due before.
static void note_play(weft_sim_share *share, weft_sim_peer *p, const weft_event *event, bool late,
                      int64_t now_us) {
  weft_sim_second *second = weft_sim_now(share, now_us);
  const bool played = event->kind == WEFT_EVENT_PLAY, watches = !p->polluter;
  second->due += watches && !late;
  second->in_time += watches && played && !late;
  second->stalls += watches && event->kind == WEFT_EVENT_STALL;
  weft_sim_viewer *viewer = &share->viewers[p - share->peers];
  if (played && viewer->startup_us < 0)
    viewer->startup_us = now_us - viewer->joined_us;
  if (played && p->sought_us >= 0)
    viewer->seek_wait_us += now_us - p->sought_us;
  p->stall_us = event->kind == WEFT_EVENT_STALL ? now_us : -1;
  p->sought_us = played ? -1 : p->sought_us;
  if (!p->sampled)
    return;
  const weft_sim_trace note = {.time_us = now_us,
                               .peer = p->id,
                               .other = p->id,
                               .kind = played                           ? WEFT_SIM_TRACE_PLAY
                                       : event->kind == WEFT_EVENT_SKIP ? WEFT_SIM_TRACE_SKIP
                                                                        : WEFT_SIM_TRACE_STALL,
                               .segment = event->segment};
  weft_sim_note(share, &note);
}

static weft_status take_events(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  weft_event event;
  bool late = false; // playback stalled for the next segment
  while (weft_engine_event(p->engine, &event))
    switch (event.kind) {
    case WEFT_EVENT_DECODED:
      share->progress_us = now_us;
      if (event.segment == share->surplus_segment)
        p->surplus += (uint32_t)share->surplus;
      break;
    case WEFT_EVENT_NEIGHBOUR_OPEN:
      break;
    case WEFT_EVENT_RESUME:
      late = true;
      break;
    case WEFT_EVENT_NEIGHBOUR_LOST:
      lose_neighbour(share, p, &event);
      break;
    case WEFT_EVENT_PLAY:
    case WEFT_EVENT_SKIP:
    case WEFT_EVENT_STALL:
      note_play(share, p, &event, late && event.kind == WEFT_EVENT_PLAY, now_us);
      late = late && event.kind != WEFT_EVENT_PLAY;
      break;
    case WEFT_EVENT_LOAD:
      WEFT_TRY(weft_sim_load(share, p, event.segment, now_us));
      break;
    case WEFT_EVENT_LONELY: // ask the tracker a moment later, together with other timers
      if (share->swarm->parameters.topology == WEFT_SIM_TRACKER &&
          p->tracker_us != WEFT_SIM_NEVER && p->tracker_us > now_us + 200000)
        p->tracker_us = now_us + 200000;
      p->own_us = p->tracker_us < p->own_us ? p->tracker_us : p->own_us;
      break;
    case WEFT_EVENT_DIAL:
      WEFT_TRY(weft_sim_dial_to(share, p, &event.address, event.calls_back, now_us));
      break;
    }
  share->surplus = 0; // another peer's, from here on
  return WEFT_OK;
}

weft_status weft_sim_drain(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us) {
  WEFT_TRY(take_events(share, peer, now_us));
  if (peer->id != 0)
    WEFT_TRY(weft_sim_deliver(share, peer, now_us));
  else if (share->swarm->parameters.mode == WEFT_SIM_BULK)
    WEFT_TRY(weft_sim_feed(share, peer, now_us));
  weft_burst burst;
  weft_status status;
  while ((status = weft_engine_output(peer->engine, now_us, &burst)) == WEFT_OK)
    WEFT_TRY(weft_sim_transmit(share, peer, &burst, now_us));
  if (status != WEFT_PENDING)
    return status;
  const int64_t deadline = weft_engine_deadline(peer->engine);
  // Time must advance.
  peer->deadline_us = deadline != WEFT_ENGINE_NEVER && deadline <= now_us ? now_us + 1 : deadline;
  return WEFT_OK;
}

// --- A turn

static weft_status grow_inbox(weft_sim_share *share, size_t count) {
  if (count <= share->inbox_capacity)
    return WEFT_OK;
  free(share->inbox);
  share->inbox_capacity = 2 * count;
  share->inbox = malloc(share->inbox_capacity * sizeof *share->inbox);
  if (share->inbox)
    return WEFT_OK;
  share->inbox_capacity = 0;
  return WEFT_E_NOMEM;
}

// Puts messages in the order in which they pass the downlink; those that pass after this window are
// sent again for later.
static weft_status receive(weft_sim_share *share, weft_sim_peer *p, const weft_sim_turn *turn,
                           size_t *count) {
  size_t n = 0;
  WEFT_TRY(grow_inbox(share, turn->count));
  for (size_t i = 0; i < turn->count; i++) {
    weft_sim_message *m = (weft_sim_message *)turn->messages[i]; // the turn may change it
    const int64_t passed_us = weft_sim_pass_downlink(share, p, m);
    if (passed_us >= turn->end_us) {
      weft_sim_message later = *m;
      later.time_us = passed_us;
      later.kind |= WEFT_SIM_PASSED;
      void *room = weft_sim_send(share->lane, &later);
      if (!room)
        return WEFT_E_NOMEM;
      memcpy(room, weft_sim_content(m), m->bytes);
    } else if (passed_us >= 0) {
      size_t j = n++;
      for (; j > 0 && share->inbox[j - 1].time_us > passed_us; j--)
        share->inbox[j] = share->inbox[j - 1];
      share->inbox[j] = (weft_sim_arrived_message){.time_us = passed_us, .message = m};
    }
  }
  *count = n;
  return WEFT_OK;
}

static int64_t next_own(const weft_sim_share *share, const weft_sim_peer *p) {
  const weft_sim_model *model = &share->swarm->model;
  if (p->state == WEFT_SIM_GONE)
    return WEFT_SIM_NEVER;
  if (p->state == WEFT_SIM_ABSENT)
    return model->arrive_us[p->id];
  int64_t next = model->leave_us[p->id];
  next = p->sample_us < next ? p->sample_us : next;
  next = p->deadline_us < next ? p->deadline_us : next;
  return p->own_us < next ? p->own_us : next;
}

// Takes a sample. That is not an event and changes nothing in the peer, so sampling does not affect
// the run.
static void look_at(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  weft_sim_take_sample(share, p, now_us);
  p->sample_us = now_us + WEFT_SIM_SAMPLE_US;
}

static weft_status own_event(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  p->hash = weft_sim_mix(p->hash + (uint64_t)now_us);
  share->totals.events++;
  if (p->state == WEFT_SIM_ABSENT)
    return weft_sim_join(share, p, now_us);
  if (share->swarm->model.leave_us[p->id] <= now_us)
    return weft_sim_leave(share, p, now_us);
  if (p->deadline_us <= now_us)
    weft_engine_tick(p->engine, now_us);
  if (p->own_us <= now_us) {
    WEFT_TRY(weft_sim_own_timers(share, p, now_us));
    p->own_us = weft_sim_own_time(share, p);
  }
  return weft_sim_drain(share, p, now_us);
}

static weft_status work_through(weft_sim_share *share, weft_sim_peer *p, size_t count) {
  int64_t now_us = share->begin_us;
  for (size_t i = 0;;) {
    int64_t own_us = next_own(share, p);
    own_us = own_us < now_us ? now_us : own_us; // a deadline that moved into the past
    if (i < count && share->inbox[i].time_us <= own_us) {
      weft_sim_message *m = share->inbox[i].message;
      now_us = share->inbox[i++].time_us;
      if (p->state != WEFT_SIM_ONLINE) {
        weft_sim_lose(share, m, true); // it left after its downlink took the message
        continue;
      }
      WEFT_TRY(weft_sim_arrive(share, p, m, now_us));
      WEFT_TRY(weft_sim_drain(share, p, now_us));
    } else if (own_us < share->end_us) {
      now_us = own_us;
      if (p->state == WEFT_SIM_ONLINE && p->sample_us <= now_us)
        look_at(share, p, now_us);
      else
        WEFT_TRY(own_event(share, p, now_us));
    } else {
      return WEFT_OK;
    }
  }
}

weft_status weft_sim_take_turn(void *user, weft_sim_lane *lane, const weft_sim_turn *turn) {
  weft_sim_swarm *swarm = user;
  weft_sim_share *share = &swarm->shares[turn->lane];
  weft_sim_peer *p = peer_of(swarm, turn->lane, turn->actor);
  size_t count;
  share->lane = lane;
  share->begin_us = turn->begin_us;
  share->end_us = turn->end_us;
  WEFT_TRY(receive(share, p, turn, &count));
  WEFT_TRY(work_through(share, p, count));
  int64_t next = next_own(share, p);
  if (next == WEFT_SIM_NEVER || next >= swarm->end_us)
    return WEFT_OK;
  if (p->wake_us < turn->end_us || next < p->wake_us) {
    // A wake beyond the core's ring of windows is split: the peer looks again on the way.
    const int64_t far = turn->begin_us + (turn->end_us - turn->begin_us) * 2000;
    p->wake_us = next < far ? next : far;
    weft_sim_wake(lane, p->id, p->wake_us);
  }
  return WEFT_OK;
}
