// SPDX-License-Identifier: Apache-2.0
// Sets up, runs and ends a swarm.
#define _POSIX_C_SOURCE 200809L
#include "sim/swarm/swarm.h"

#include <stdlib.h>
#include <string.h>

#include "sim/swarm/internal.h"

static const int64_t STALL_US = INT64_C(600000000);

// --- Codecs and engines of a lane

static weft_status make_codecs(weft_sim_share *share) {
  const weft_sim_swarm *swarm = share->swarm;
  const weft_sim_parameters *o = &swarm->parameters;
  const weft_sim_hooks *hooks = &swarm->options.hooks;
  if (o->scheme == WEFT_SIM_RAREST) {
    share->plain = (weft_codec_blocks){.ctx = share->ctx};
    share->codec = share->source_codec = share->polluted_codec =
        weft_codec_blocks_table(&share->plain);
  } else if (o->fidelity == WEFT_SIM_BYTES) {
    share->rlnc = (weft_codec_rlnc){.ctx = share->ctx, .coded_only = o->coded_only};
    share->made_codec = weft_codec_rlnc_table(&share->rlnc);
    share->codec = share->source_codec = share->made_codec;
    if (o->gather_segments) {
      WEFT_TRY(weft_gatherer_new(share->ctx, &share->gatherer));
      weft_gatherer_stay(share->gatherer); // so that the run is repeatable
      share->codec = weft_gatherer_table(share->gatherer);
    }
    if (hooks->codec) {
      share->codec = *hooks->codec(hooks->user, share->number, false, &share->made_codec);
      share->source_codec = *hooks->codec(hooks->user, share->number, true, &share->made_codec);
    }
    share->polluted_codec = share->codec; // network.c corrupts its packets on their way out
  } else {
    share->code = (weft_sim_codec){.fidelity = o->fidelity,
                                   .arena = share->arena,
                                   .blocks = o->blocks,
                                   .batch = o->batch,
                                   .neighbours = o->neighbours_max,
                                   .coded_only = o->coded_only};
    share->polluted_code = share->code;
    share->polluted_code.pollutes = true;
    WEFT_TRY(weft_sim_codec_init(&share->code));
    WEFT_TRY(weft_sim_codec_init(&share->polluted_code));
    share->codec = share->source_codec = weft_sim_codec_table(&share->code);
    share->polluted_codec = weft_sim_codec_table(&share->polluted_code);
  }
  return WEFT_OK;
}

static const weft_policy *policy_of(weft_sim_scheme scheme) {
  static const weft_policy *const policies[] = {
      [WEFT_SIM_PUSH] = &weft_policy_push,
      [WEFT_SIM_PULL] = &weft_policy_pull,
      [WEFT_SIM_SOURCE_ONLY] = &weft_policy_source_only,
      [WEFT_SIM_RAREST] = &weft_policy_rarest,
      [WEFT_SIM_OWN] = &weft_policy_push, // placeholder until options.policy is set
  };
  return policies[scheme];
}

weft_engine_options weft_sim_engine_options(const weft_sim_parameters *o, const weft_codec *codec) {
  static const weft_engine_mode modes[] = {[WEFT_SIM_BULK] = WEFT_MODE_BULK,
                                           [WEFT_SIM_VOD] = WEFT_MODE_VOD,
                                           [WEFT_SIM_LIVE] = WEFT_MODE_LIVE};
  return (weft_engine_options){
      .stream = o->seed,
      .blocks = o->blocks,
      .block_bytes = o->block_bytes,
      .mode = modes[o->mode],
      .window = o->window,
      .ahead = o->ahead,
      .batch = o->batch,
      .neighbours_max = o->neighbours_max,
      .neighbours_target = o->topology == WEFT_SIM_GRAPH ? 0 : o->neighbours,
      .addresses_max = o->topology == WEFT_SIM_GRAPH ? 0 : o->addresses,
      .gather = o->gather_segments,
      .flights_max = o->flights,
      .requests_max = o->requests,
      .datagram_overhead = o->overhead_bytes,
      .congestion = o->congestion,
      .rate_bits_per_s = o->mode == WEFT_SIM_BULK ? 0 : o->rate_bits_per_s,
      .lag_us = o->lag_us,
      .startup_us = o->startup_us,
      .checksum_us = o->checksum_us,
      .timers = {.map_us = o->map_us,
                 .map_idle_us = o->map_idle_us,
                 .silent_us = o->silent_us,
                 .exchange_us = o->exchange_us},
      .codec = codec,
      .policy = policy_of(o->scheme),
      .trust = o->manifests || o->checksum_us || o->polluters > 0 ? &weft_trust_counted : NULL};
}

static void set_engine(weft_sim_share *share) {
  const weft_sim_swarm *swarm = share->swarm;
  const weft_sim_parameters *o = &swarm->parameters;
  share->engine = weft_sim_engine_options(o, &share->codec);
  if (swarm->options.policy)
    share->engine.policy = swarm->options.policy;
  share->source = share->engine;
  if (o->mode == WEFT_SIM_VOD && o->window <= WEFT_ENGINE_MAX_WINDOW / WEFT_ENGINE_SOURCE_WINDOWS)
    share->source.window = WEFT_ENGINE_SOURCE_WINDOWS * o->window;
  if (o->source_neighbours)
    share->source.neighbours_max = o->source_neighbours;
  if (o->topology == WEFT_SIM_BOOTSTRAP || o->topology == WEFT_SIM_INVITED)
    // Like a node: it accepts calls and makes none.
    share->source.neighbours_target = 0;
}

// Returns zeroed memory from the arena, because that asks for huge pages.
static void *zeroed(weft_sim_share *share, size_t bytes) {
  void *out = weft_sim_arena_take(share->arena, bytes, 64);
  return out ? memset(out, 0, bytes) : NULL;
}

static weft_status make_share(weft_sim_swarm *swarm, size_t number) {
  const weft_sim_parameters *o = &swarm->parameters;
  weft_sim_share *share = &swarm->shares[number];
  const weft_sim_transport *t = swarm->options.transport;
  share->swarm = swarm;
  share->number = number;
  share->index = (t ? t->rank : 0) * swarm->options.threads + number;
  share->arena = weft_sim_arena_new();
  if (!share->arena)
    return WEFT_E_NOMEM;
  const weft_allocator allocator = weft_sim_arena_allocator(share->arena);
  // The lanes are the threads: no product is split further.
  const weft_ctx_options context = {
      .backend = o->fidelity == WEFT_SIM_BYTES ? swarm->options.backend : NULL,
      .threads = 1,
      .allocator = &allocator};
  WEFT_TRY(weft_ctx_new(&share->ctx, &context));
  WEFT_TRY(make_codecs(share));
  set_engine(share);
  WEFT_TRY(weft_engine_scratch_new(share->ctx, &share->engine, &share->scratch));
  for (size_t id = share->index; id <= o->peers; id += swarm->lanes)
    share->peer_count++;
  share->hot_bytes = weft_engine_hot_bytes(&share->engine);
  share->peers = zeroed(share, (share->peer_count + 1) * sizeof *share->peers);
  share->viewers = zeroed(share, (share->peer_count + 1) * sizeof *share->viewers);
  share->contacts =
      zeroed(share, (share->peer_count + 1) * o->neighbours_max * sizeof *share->contacts);
  share->seconds = calloc(swarm->second_count, sizeof *share->seconds);
  share->segment = calloc(2, (size_t)swarm->segment_bytes);
  return share->peers && share->viewers && share->contacts && share->seconds && share->segment
             ? WEFT_OK
             : WEFT_E_NOMEM;
}

static void make_peers(weft_sim_share *share) {
  const weft_sim_swarm *swarm = share->swarm;
  const weft_sim_model *model = &swarm->model;
  for (size_t i = 0; i < share->peer_count; i++) {
    weft_sim_peer *p = &share->peers[i];
    const uint32_t id = (uint32_t)(share->index + i * swarm->lanes);
    p->id = id;
    p->class_index = (uint8_t)weft_sim_class_of(model, id);
    p->nat = weft_sim_behind_nat(model, id);
    p->free_rider = weft_sim_is_free_rider(model, id);
    p->polluter = weft_sim_is_polluter(model, id);
    p->sampled = id < swarm->parameters.sampled;
    // Two generators per peer: what the network draws must not shift what the engine draws.
    p->engine_rng.state = weft_sim_draw(swarm->parameters.seed, 101, id, 0);
    p->link_rng.state = weft_sim_draw(swarm->parameters.seed, 102, id, 0);
    p->hash = id;
    p->done_us = WEFT_SIM_NEVER;
    p->deadline_us = p->own_us = WEFT_SIM_NEVER;
    p->tracker_us = p->sample_us = p->seek_us = p->feed_us = WEFT_SIM_NEVER;
    share->viewers[i] = (weft_sim_viewer){.peer = id,
                                          .class_index = p->class_index,
                                          .free_rider = p->free_rider,
                                          .polluter = p->polluter,
                                          .nat = p->nat,
                                          .joined_us = WEFT_SIM_NEVER,
                                          .left_us = WEFT_SIM_NEVER,
                                          .done_us = WEFT_SIM_NEVER,
                                          .startup_us = -1,
                                          .lag_us = -1};
    share->unfinished += id != 0 && model->arrive_us[id] != WEFT_SIM_NEVER;
    p->wake_us = model->arrive_us[id];
    if (p->wake_us < swarm->end_us) {
      const int64_t far = model->window_us * 2000;
      p->wake_us = p->wake_us < far ? p->wake_us : far;
      weft_sim_core_wake(swarm->core, id, p->wake_us);
    }
  }
}

// --- The swarm

static void set_times(weft_sim_swarm *swarm) {
  const weft_sim_parameters *o = &swarm->parameters;
  weft_sim_result *r = &swarm->result;
  swarm->segment_bytes = (uint64_t)o->blocks * o->block_bytes;
  r->stream_bytes = o->mode == WEFT_SIM_BULK
                        ? o->bulk_bytes
                        : (uint64_t)((double)o->rate_bits_per_s / 8e6 * (double)o->duration_us);
  swarm->segments = (r->stream_bytes + swarm->segment_bytes - 1) / swarm->segment_bytes;
  r->segments = swarm->segments;
  r->window_us = swarm->model.window_us;
  swarm->stall_us = STALL_US;
  if (o->mode == WEFT_SIM_BULK) {
    uint64_t slowest = o->source_bits_per_s;
    for (size_t i = 0; i < o->class_count; i++)
      slowest = o->classes[i].up_bits_per_s < slowest ? o->classes[i].up_bits_per_s : slowest;
    swarm->stall_us +=
        (int64_t)(100.0 * (double)swarm->segment_bytes * 8e6 / (double)slowest / (1 - o->loss));
    swarm->end_us = WEFT_SIM_NEVER / 2;
    swarm->second_count = 3600; // and more once these have passed
    return;
  }
  swarm->segment_us = (int64_t)((double)swarm->segment_bytes * 8e6 / (double)o->rate_bits_per_s);
  r->segment_us = swarm->segment_us;
  swarm->end_us = o->duration_us;
  swarm->second_count = (size_t)(o->duration_us / 1000000) + 1;
}

static weft_status make_graph(weft_sim_swarm *swarm) {
  const weft_sim_parameters *o = &swarm->parameters;
  if (o->topology != WEFT_SIM_GRAPH)
    return WEFT_OK;
  weft_sim_rng state = {.state = weft_sim_draw(o->seed, 103, 0, 0)};
  const weft_rng rng = weft_sim_rng_table(&state);
  for (uint32_t i = 0; i <= o->peers; i++)
    swarm->model.arrive_us[i] = 0;
  return weft_sim_graph_new((size_t)o->peers + 1, o->neighbours, &rng, &swarm->graph);
}

// Checks that a backend given by name exists even if no bytes are real. Otherwise a misspelled name
// would be noticed only once they are.
static weft_status check_backend(const weft_sim_swarm *swarm) {
  const weft_ctx_options named = {.backend = swarm->options.backend, .threads = 1};
  weft_ctx *ctx = NULL;
  if (!named.backend || swarm->parameters.fidelity == WEFT_SIM_BYTES)
    return WEFT_OK; // every lane's context checks it
  const weft_status status = weft_ctx_new(&ctx, &named);
  weft_ctx_free(ctx);
  return status;
}

static weft_status build(weft_sim_swarm *swarm) {
  const weft_sim_options *o = &swarm->options;
  WEFT_TRY(check_backend(swarm));
  const weft_status status = weft_sim_model_init(&swarm->model, &swarm->parameters);
  if (o->trace_line)
    *o->trace_line = swarm->model.trace_line;
  WEFT_TRY(status);
  set_times(swarm);
  WEFT_TRY(make_graph(swarm));
  const weft_sim_core_options core = {.actors = swarm->parameters.peers + 1,
                                      .threads = o->threads,
                                      .window_us = swarm->model.window_us,
                                      .transport = o->transport,
                                      .user = swarm,
                                      .turn = weft_sim_take_turn,
                                      .prefetch = weft_sim_prefetch,
                                      .thread_ns = o->thread_ns};
  WEFT_TRY(weft_sim_core_new(&core, &swarm->core));
  swarm->lanes = o->threads * (o->transport ? o->transport->ranks : 1);
  void *shares = NULL;
  if (posix_memalign(&shares, 128, o->threads * sizeof *swarm->shares) != 0)
    return WEFT_E_NOMEM;
  swarm->shares = shares;
  memset(shares, 0, o->threads * sizeof *swarm->shares);
  for (size_t i = 0; i < o->threads; i++) {
    WEFT_TRY(make_share(swarm, i));
    make_peers(&swarm->shares[i]);
  }
  return WEFT_OK;
}

// Lets all ranks know whether each could build its part: a rank that went on without another would
// wait for it forever. WEFT_E_STOPPED: another rank failed, and reports why.
static weft_status agree(const weft_sim_transport *t, weft_status status) {
  uint64_t failed = status != WEFT_OK;
  if (!t)
    return status;
  WEFT_TRY(t->sum(t->user, &failed, 1));
  return status == WEFT_OK && failed ? WEFT_E_STOPPED : status;
}

// Checks that all ranks have the same number of threads: each unpacks parcels by its own number of
// lanes.
static weft_status same_threads(const weft_sim_options *o) {
  uint64_t sum = o->threads;
  if (!o->transport)
    return WEFT_OK;
  WEFT_TRY(o->transport->sum(o->transport->user, &sum, 1));
  return sum == o->threads * o->transport->ranks ? WEFT_OK : WEFT_E_ARGUMENT;
}

weft_status weft_sim_swarm_new(const weft_sim_options *options, weft_sim_swarm **out) {
  if (!options || !out || !options->parameters || options->threads < 1)
    return WEFT_E_ARGUMENT;
  const weft_sim_parameters *p = options->parameters;
  if (p->peers < 1 || p->peers > WEFT_SIM_MAX_PEERS || p->class_count < 1 || p->neighbours < 1 ||
      p->neighbours_max < p->neighbours || p->delay_min_us < 1 ||
      (p->scheme == WEFT_SIM_OWN && !options->policy))
    return WEFT_E_ARGUMENT;
  weft_sim_swarm *swarm = calloc(1, sizeof *swarm);
  if (!swarm)
    return weft_sim_part(options->transport, WEFT_E_NOMEM);
  swarm->options = *options;
  swarm->parameters = *p;
  weft_status status = same_threads(options);
  if (status == WEFT_OK)
    status = build(swarm);
  status = agree(options->transport, status);
  if (status != WEFT_OK)
    weft_sim_swarm_free(swarm);
  else
    *out = swarm;
  return status;
}

static void free_share(weft_sim_share *share) {
  for (size_t i = 0; share->peers && i < share->peer_count; i++)
    weft_engine_free(share->peers[i].engine);
  weft_engine_scratch_free(share->scratch);
  weft_gatherer_free(share->gatherer);
  if (share->code.arena) {
    weft_sim_codec_clear(&share->code);
    weft_sim_codec_clear(&share->polluted_code);
  }
  weft_ctx_free(share->ctx);
  weft_sim_arena_free(share->arena); // peers, viewers and contacts too
  free(share->seconds);
  free(share->samples);
  free(share->trace);
  free(share->segment);
  free(share->inbox);
}

void weft_sim_swarm_free(weft_sim_swarm *swarm) {
  if (!swarm)
    return;
  for (size_t i = 0; swarm->shares && i < swarm->options.threads; i++)
    free_share(&swarm->shares[i]);
  weft_sim_core_free(swarm->core);
  weft_sim_model_clear(&swarm->model);
  weft_sim_graph_free(&swarm->graph);
  for (size_t i = 0; i < sizeof swarm->gathered / sizeof *swarm->gathered; i++)
    free(swarm->gathered[i]);
  free(swarm->shares);
  free(swarm);
}

static bool keep_on(void *user, int64_t now_us) {
  weft_sim_swarm *swarm = user;
  const weft_sim_hooks *hooks = &swarm->options.hooks;
  return !hooks->keep_on || hooks->keep_on(hooks->user, now_us);
}

// Extends every lane's seconds before the lanes get there: the end of bulk is not known in advance.
static weft_status make_seconds(weft_sim_swarm *swarm, int64_t until_us) {
  const size_t needed = (size_t)(until_us / 1000000) + 1;
  if (needed <= swarm->second_count)
    return WEFT_OK;
  const size_t old = swarm->second_count, count = needed + needed / 2;
  for (size_t i = 0; i < swarm->options.threads; i++) {
    weft_sim_share *share = &swarm->shares[i];
    weft_sim_second *more = realloc(share->seconds, count * sizeof *more);
    if (!more)
      return WEFT_E_NOMEM;
    memset(more + old, 0, (count - old) * sizeof *more);
    share->seconds = more;
  }
  swarm->second_count = count;
  return WEFT_OK;
}

static weft_status run_until(weft_sim_swarm *swarm, int64_t until_us) {
  const int64_t end_us = until_us + swarm->model.window_us; // windows are whole
  WEFT_TRY(weft_sim_part(swarm->options.transport, make_seconds(swarm, end_us)));
  return weft_sim_core_run(swarm->core, until_us, keep_on);
}

// Runs until nothing is under way, so that every byte sent is accounted for. Engines that still
// exchange messages after a minute are cut short.
static weft_status let_arrive(weft_sim_swarm *swarm, int64_t now_us) {
  weft_sim_transport *t = swarm->options.transport;
  for (int64_t until_us = now_us; until_us < now_us + 60000000;) {
    uint64_t under_way = weft_sim_core_under_way(swarm->core);
    if (t)
      WEFT_TRY(t->sum(t->user, &under_way, 1));
    if (under_way == 0)
      return WEFT_OK;
    until_us += 10000;
    WEFT_TRY(run_until(swarm, until_us));
  }
  return WEFT_OK;
}

// Runs until all peers that have not left have everything, which all ranks determine together.
// While all peers that have come are done, waiting for more to come is not a stall.
static weft_status run_bulk(weft_sim_swarm *swarm) {
  weft_sim_transport *t = swarm->options.transport;
  const uint32_t all = weft_sim_arrived(&swarm->model, WEFT_SIM_NEVER - 1);
  int64_t until_us = 0, progress_us = 0;
  for (;;) {
    until_us += 100000;
    WEFT_TRY(run_until(swarm, until_us));
    uint64_t left = 0, last = 0;
    for (size_t i = 0; i < swarm->options.threads; i++) {
      left += swarm->shares[i].unfinished;
      if ((uint64_t)swarm->shares[i].progress_us > last)
        last = (uint64_t)swarm->shares[i].progress_us;
    }
    uint64_t sums[2] = {left, (int64_t)last > progress_us};
    if (t)
      WEFT_TRY(t->sum(t->user, sums, 2));
    if (sums[0] == 0)
      return let_arrive(swarm, until_us);
    const uint32_t there = weft_sim_arrived(&swarm->model, until_us);
    const int64_t came_us = swarm->model.arrive_us[there]; // of the last arrival
    if (sums[1] || came_us > progress_us || sums[0] <= all - there)
      progress_us = until_us;
    if (until_us - progress_us > swarm->stall_us) {
      swarm->result.no_progress = true;
      return WEFT_E_STATE;
    }
  }
}

weft_status weft_sim_swarm_run(weft_sim_swarm *swarm) {
  if (swarm->parameters.mode == WEFT_SIM_BULK)
    return run_bulk(swarm);
  return weft_sim_core_run(swarm->core, swarm->end_us, keep_on);
}

void weft_sim_swarm_progress(const weft_sim_swarm *swarm, uint64_t *events, uint64_t *packets) {
  *events = *packets = 0;
  for (size_t i = 0; i < swarm->options.threads; i++) {
    *events += swarm->shares[i].totals.events;
    *packets += swarm->shares[i].totals.packets;
  }
}

const char *weft_sim_swarm_backend(const weft_sim_swarm *swarm) {
  static const char *const names[] = {
      [WEFT_SIM_COEFFICIENTS] = "coefficients", [WEFT_SIM_RANK] = "rank"};
  return swarm->parameters.fidelity == WEFT_SIM_BYTES ? weft_ctx_backend(swarm->shares[0].ctx)
                                                      : names[swarm->parameters.fidelity];
}
