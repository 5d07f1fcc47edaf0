// SPDX-License-Identifier: Apache-2.0
// A peer's arrival and departure, its requests to the tracker, and the stream's way in and out.
#include <math.h>
#include <string.h>

#include "sim/swarm/internal.h"

// --- The stream

// Makes the bytes of a segment from the seed.
static void make_bytes(const weft_sim_swarm *swarm, uint64_t segment, uint8_t *out, size_t bytes) {
  weft_sim_rng rng = {.state = weft_sim_draw(swarm->parameters.seed, 100, segment, 0)};
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    const uint64_t word = weft_sim_rng_next(&rng);
    memcpy(out + i, &word, bytes - i < sizeof word ? bytes - i : sizeof word);
  }
}

static size_t made_bytes(const weft_sim_swarm *swarm, uint64_t segment) {
  const uint64_t all = swarm->result.stream_bytes, at = segment * swarm->segment_bytes;
  return (size_t)(all - at < swarm->segment_bytes ? all - at : swarm->segment_bytes);
}

static weft_status feed(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  weft_sim_swarm *swarm = share->swarm;
  const weft_sim_hooks *hooks = &swarm->options.hooks;
  const bool real = swarm->parameters.fidelity == WEFT_SIM_BYTES;
  size_t bytes = (size_t)swarm->segment_bytes;
  bool last;
  if (hooks->feed) {
    WEFT_TRY(hooks->feed(hooks->user, share->segment, bytes, &bytes));
    last = bytes < swarm->segment_bytes;
  } else {
    last = swarm->fed_segments >= swarm->segments;
    bytes = last ? 0 : made_bytes(swarm, swarm->fed_segments);
    if (real)
      make_bytes(swarm, swarm->fed_segments, share->segment, bytes);
  }
  share->progress_us = now_us;
  swarm->fed_bytes += bytes;
  swarm->fed_all = last || bytes < swarm->segment_bytes;
  if (bytes == 0)
    return weft_engine_source_end(p->engine, now_us);
  swarm->fed_segments++;
  return weft_engine_source_put(p->engine, share->segment, bytes,
                                (int64_t)(swarm->fed_segments - 1) * swarm->segment_us, now_us);
}

// Whether the source loads segments on demand, like a real source of a file, where any part is
// available at any time. A hook feeds them in order.
static bool loads(const weft_sim_swarm *swarm) {
  return swarm->parameters.mode != WEFT_SIM_LIVE && !swarm->options.hooks.feed;
}

weft_status weft_sim_feed(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  weft_sim_swarm *swarm = share->swarm;
  if (loads(swarm))
    return WEFT_OK;
  if (swarm->parameters.mode == WEFT_SIM_BULK) {
    while (!swarm->fed_all && weft_engine_source_ready(p->engine))
      WEFT_TRY(feed(share, p, now_us));
    return WEFT_OK;
  }
  // A live segment exists once its last byte does.
  while (!swarm->fed_all && p->feed_us <= now_us) {
    WEFT_TRY(feed(share, p, now_us));
    p->feed_us += swarm->segment_us;
  }
  if (swarm->fed_all)
    p->feed_us = WEFT_SIM_NEVER;
  return WEFT_OK;
}

weft_status weft_sim_load(weft_sim_share *share, weft_sim_peer *peer, uint64_t segment,
                          int64_t now_us) {
  const weft_sim_swarm *swarm = share->swarm;
  const size_t bytes = made_bytes(swarm, segment);
  if (swarm->parameters.fidelity == WEFT_SIM_BYTES)
    make_bytes(swarm, segment, share->segment, bytes);
  return weft_engine_load(peer->engine, segment, share->segment, bytes, now_us);
}

static weft_status check(weft_sim_share *share, weft_sim_peer *p, uint64_t segment, size_t bytes) {
  const weft_sim_swarm *swarm = share->swarm;
  const weft_sim_hooks *hooks = &swarm->options.hooks;
  if (swarm->parameters.fidelity != WEFT_SIM_BYTES)
    return WEFT_OK;
  WEFT_TRY(weft_engine_read(p->engine, 0, bytes, share->segment));
  if (hooks->deliver)
    return hooks->deliver(hooks->user, p->id, share->segment, bytes);
  if (hooks->feed)
    return WEFT_OK;
  uint8_t *wanted = share->segment + swarm->segment_bytes;
  make_bytes(swarm, segment, wanted, bytes);
  for (size_t i = 0; i < bytes && memcmp(share->segment, wanted, bytes) != 0; i++)
    p->wrong_bytes += share->segment[i] != wanted[i];
  return WEFT_OK;
}

weft_status weft_sim_deliver(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us) {
  uint64_t segment;
  size_t bytes;
  while (weft_engine_readable(peer->engine, &segment, &bytes) == WEFT_OK) {
    WEFT_TRY(check(share, peer, segment, bytes));
    WEFT_TRY(weft_engine_release(peer->engine));
    peer->delivered_bytes += bytes;
  }
  if (peer->done_us == WEFT_SIM_NEVER && weft_engine_done(peer->engine)) {
    peer->done_us = now_us;
    share->unfinished--;
  }
  return WEFT_OK;
}

// --- The tracker and its answers

// Tells a viewer where the source is: it is there as long as the stream.
static void name_source(weft_sim_peer *p) {
  const weft_peer_address source = weft_sim_address(0);
  weft_engine_set_source_address(p->engine, &source);
}

static void ask_tracker(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  const weft_sim_swarm *swarm = share->swarm;
  if (swarm->parameters.mode == WEFT_SIM_VOD)
    name_source(p);
  for (size_t i = 0; i < WEFT_SIM_ANSWER; i++) {
    const uint32_t other = weft_sim_find_peer(&swarm->model, p->id, now_us, &p->link_rng);
    if (other == p->id)
      continue;
    const weft_peer_address address = weft_sim_address(other);
    weft_engine_add_address(p->engine, &address);
  }
}

// Dials the one address that a joiner was given, like a node: again and again until it is a
// neighbour, as long as the joiner needs it.
static weft_status ask_source(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  const weft_peer_address source = weft_sim_address(0);
  if (share->swarm->parameters.mode == WEFT_SIM_VOD)
    name_source(p);
  if (!weft_engine_needs_source(p->engine, now_us))
    return WEFT_OK;
  return weft_sim_dial_to(share, p, &source, false, now_us);
}

// Dials some peer that is present, which is all that a joiner knows, or one that lost all others.
static weft_status ask_peer(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  const uint32_t other = weft_sim_find_peer(&share->swarm->model, p->id, now_us, &p->link_rng);
  const weft_peer_address address = weft_sim_address(other);
  return p->degree || other == p->id ? WEFT_OK
                                     : weft_sim_dial_to(share, p, &address, false, now_us);
}

// --- The peer's timers other than its engine's

int64_t weft_sim_own_time(const weft_sim_share *share, const weft_sim_peer *p) {
  (void)share;
  int64_t next = p->tracker_us < p->seek_us ? p->tracker_us : p->seek_us;
  next = p->feed_us < next ? p->feed_us : next;
  const int64_t dial_us = weft_sim_dial_time(p);
  return dial_us < next ? dial_us : next;
}

// Returns when the peer seeks next. Gaps are uniform with the requested mean: without a logarithm,
// the same on every machine. The first is what is left of such a gap at a random moment; otherwise
// short stays would have too few seeks.
static int64_t seek_after(const weft_sim_share *share, weft_sim_peer *p, int64_t now_us,
                          bool first) {
  const double per_hour = share->swarm->parameters.seeks_per_hour;
  if (per_hour <= 0 || p->id == 0)
    return WEFT_SIM_NEVER;
  const double chance = weft_sim_unit(weft_sim_rng_next(&p->link_rng));
  const double gap_s = 3600 / per_hour * 2 * (first ? 1 - sqrt(1 - chance) : chance);
  return weft_sim_after(now_us + 1, gap_s * 1e6);
}

static void seek(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  const uint64_t to = weft_sim_rng_below(&p->link_rng, share->swarm->segments);
  weft_sim_viewer *viewer = &share->viewers[p - share->peers];
  p->seek_us = seek_after(share, p, now_us, false);
  if (weft_engine_seek(p->engine, to, now_us) != WEFT_OK)
    return;
  viewer->seek_wait_us += p->sought_us >= 0 ? now_us - p->sought_us : 0;
  p->sought_us = viewer->startup_us >= 0 ? now_us : -1; // otherwise that is part of its start-up
  p->stall_us = -1;
}

weft_status weft_sim_own_timers(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  const weft_sim_swarm *swarm = share->swarm;
  if (p->feed_us <= now_us)
    WEFT_TRY(weft_sim_feed(share, p, now_us));
  if (p->tracker_us <= now_us && swarm->parameters.topology == WEFT_SIM_BOOTSTRAP) {
    WEFT_TRY(ask_source(share, p, now_us));
    p->tracker_us = now_us + WEFT_SIM_BOOTSTRAP_US;
  } else if (p->tracker_us <= now_us && swarm->parameters.topology == WEFT_SIM_INVITED) {
    WEFT_TRY(ask_peer(share, p, now_us));
    p->tracker_us = now_us + WEFT_SIM_BOOTSTRAP_US;
  } else if (p->tracker_us <= now_us) {
    if (p->degree < swarm->parameters.neighbours)
      ask_tracker(share, p, now_us);
    p->tracker_us = now_us + WEFT_SIM_TRACKER_US;
  }
  if (p->seek_us <= now_us)
    seek(share, p, now_us);
  return weft_sim_dial_timers(share, p, now_us);
}

// --- Arrival and departure

// Returns the rate by which the peer's engine paces itself.
static uint64_t given_bits_per_s(const weft_sim_parameters *o, const weft_sim_peer *p) {
  if (p->id == 0)
    return o->source_bits_per_s;
  return p->free_rider ? WEFT_SIM_RIDER_BITS_PER_S : o->classes[p->class_index].up_bits_per_s;
}

static weft_status new_engine(weft_sim_share *share, weft_sim_peer *p) {
  const weft_sim_swarm *swarm = share->swarm;
  const weft_sim_parameters *o = &swarm->parameters;
  weft_engine_self self = {.source = p->id == 0,
                           .upload_bits_per_s = given_bits_per_s(o, p),
                           .rng = weft_sim_rng_table(&p->engine_rng),
                           .scratch = share->scratch};
  if (p->id == 0 && loads(swarm))
    self.stream_bytes = swarm->result.stream_bytes;
  if (p->id == 0)
    self.codec = &share->source_codec;
  else if (p->polluter)
    self.codec = &share->polluted_codec;
  self.address = weft_sim_address(p->id);
  return weft_engine_new(share->ctx, p->id == 0 ? &share->source : &share->engine, &self,
                         &p->engine);
}

weft_status weft_sim_join(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  const weft_sim_swarm *swarm = share->swarm;
  const weft_sim_parameters *o = &swarm->parameters;
  WEFT_TRY(new_engine(share, p));
  p->state = WEFT_SIM_ONLINE;
  p->has_stream = p->id == 0 || o->topology != WEFT_SIM_INVITED;
  for (size_t i = 0; i < o->neighbours_max; i++)
    weft_sim_contacts(share, p)[i].peer = WEFT_SIM_NOBODY;
  for (size_t i = 0; i < WEFT_SIM_DIALS; i++)
    p->dials[i].peer = WEFT_SIM_NOBODY;
  for (size_t i = 0; i < WEFT_SIM_BANS; i++)
    p->banned[i] = WEFT_SIM_NOBODY;
  p->tracker_us = p->id && o->topology != WEFT_SIM_GRAPH ? now_us : WEFT_SIM_NEVER;
  // Peers that come together ask the tracker once all have come. Otherwise everybody would dial the
  // few that came first, the source among them, and of 100,000 peers none would get a message out.
  // The source asks as well: otherwise it has no neighbours, by chance, in one of twenty large
  // swarms.
  if (o->topology == WEFT_SIM_TRACKER && o->arrival == WEFT_SIM_TOGETHER)
    p->tracker_us = now_us + WEFT_SIM_TOGETHER_US;
  p->sample_us = p->sampled ? now_us : WEFT_SIM_NEVER;
  p->seek_us = seek_after(share, p, now_us, true);
  p->stall_us = p->sought_us = -1;
  p->feed_us = WEFT_SIM_NEVER;
  if (p->id == 0)
    p->feed_us = o->mode == WEFT_SIM_LIVE ? now_us + swarm->segment_us : WEFT_SIM_NEVER;
  p->deadline_us = WEFT_SIM_NEVER;
  share->totals.viewers += p->id != 0 && !p->polluter;
  weft_sim_viewer *viewer = &share->viewers[p - share->peers];
  viewer->came = true;
  viewer->joined_us = now_us;
  if (p->sampled)
    weft_sim_note(
        share, &(weft_sim_trace){
                   .time_us = now_us, .peer = p->id, .other = p->id, .kind = WEFT_SIM_TRACE_JOIN});
  const weft_sim_graph *graph = &swarm->graph;
  for (size_t i = 0; graph->degree && i < graph->degree[p->id]; i++) {
    size_t number;
    WEFT_TRY(weft_sim_add_neighbour(share, p, graph->neighbour[p->id * graph->degree_max + i], true,
                                    now_us, &number));
  }
  WEFT_TRY(weft_sim_own_timers(share, p, now_us));
  p->own_us = weft_sim_own_time(share, p);
  return weft_sim_drain(share, p, now_us);
}

weft_status weft_sim_leave(weft_sim_share *share, weft_sim_peer *p, int64_t now_us) {
  const weft_sim_swarm *swarm = share->swarm;
  const bool fails = swarm->model.leave_us[p->id] == swarm->parameters.failure_us &&
                     weft_sim_is_failing(&swarm->model, p->id);
  if (!fails && weft_sim_unit(weft_sim_rng_next(&p->link_rng)) < swarm->parameters.polite) {
    weft_engine_leave(p->engine);
    WEFT_TRY(weft_sim_drain(share, p, now_us));
  }
  if (p->sampled)
    weft_sim_note(
        share, &(weft_sim_trace){
                   .time_us = now_us, .peer = p->id, .other = p->id, .kind = WEFT_SIM_TRACE_LEAVE});
  weft_sim_count_peer(share, p, now_us, true);
  share->unfinished -= p->done_us == WEFT_SIM_NEVER; // the run no longer waits for it
  weft_engine_free(p->engine);
  p->engine = NULL;
  p->state = WEFT_SIM_GONE;
  return WEFT_OK;
}
