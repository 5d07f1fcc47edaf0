// SPDX-License-Identifier: Apache-2.0
// The swarm's run: events in order, each handed to one node's engine.
#include "sim/swarm.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "sim/graph.h"
#include "sim/link.h"
#include "sim/queue.h"
#include "weft/peer_rng.h"

enum { HASHED_BYTES = 64 }; // of every datagram: its header and the first coefficients
static const int64_t STALL_US = INT64_C(600000000);

typedef struct edge {
  uint32_t node;    // at the other end
  size_t neighbour; // our number there
  int64_t delay_us;
} edge;

typedef struct node {
  weft_engine *engine;
  weft_rng_chacha engine_chacha, link_chacha;
  weft_rng link_rng;
  weft_sim_uplink uplink;
  edge *edges; // (degree), by the engine's neighbour number
  size_t degree;
  uint64_t sequence;
  int64_t timer_us; // the timer event that counts; older ones are passed over
  int64_t done_us;
  uint64_t delivered_bytes;
  crypto_generichash_state hash;
} node;

struct weft_swarm {
  weft_ctx *ctx;
  weft_swarm_options options;
  weft_engine_options engine_options; // of every node
  uint64_t loss_q32;
  size_t nodes;
  node *node;
  weft_sim_queue queue;
  uint8_t *segment; // n * k bytes on their way in or out
  bool fed_all;
  int64_t now_us, progress_us, stall_us;
  weft_swarm_result result;
};

// --- Setting up

static bool options_valid(const weft_swarm_options *o) {
  return o->peers >= 1 && o->peers <= WEFT_SWARM_MAX_PEERS && o->degree >= 2 &&
         o->degree <= WEFT_ENGINE_MAX_NEIGHBOURS && o->source_bits_per_s > 0 &&
         o->peer_bits_per_s > 0 && o->delay_min_us >= 0 && o->delay_min_us <= o->delay_max_us &&
         o->loss >= 0 && o->loss < 1 && o->source_codec && o->peer_codec && o->policy && o->feed &&
         o->deliver;
}

static weft_status new_node(weft_swarm *swarm, size_t index) {
  const weft_swarm_options *o = &swarm->options;
  node *n = &swarm->node[index];
  // Two generators a node: what the network does must not shift what the engine draws.
  weft_rng_chacha_seed(&n->engine_chacha, o->seed, 2 * index + 1);
  weft_rng_chacha_seed(&n->link_chacha, o->seed, 2 * index + 2);
  n->link_rng = weft_rng_chacha_table(&n->link_chacha);
  const weft_rng engine_rng = weft_rng_chacha_table(&n->engine_chacha);
  n->uplink.bits_per_s = index == 0 ? o->source_bits_per_s : o->peer_bits_per_s;
  n->done_us = WEFT_SWARM_NEVER;
  n->timer_us = WEFT_ENGINE_NEVER;
  (void)crypto_generichash_init(&n->hash, NULL, 0, WEFT_SWARM_HASH_BYTES);
  n->edges = calloc(o->degree, sizeof *n->edges);
  if (!n->edges)
    return WEFT_E_NOMEM;
  swarm->engine_options = (weft_engine_options){.stream = o->seed,
                                                .blocks = o->blocks,
                                                .block_bytes = o->block_bytes,
                                                .window = o->window,
                                                .batch = o->batch,
                                                .neighbours_max = o->degree,
                                                .codec = o->peer_codec,
                                                .policy = o->policy};
  const weft_engine_self self = {.source = index == 0,
                                 .upload_bits_per_s = n->uplink.bits_per_s,
                                 .rng = engine_rng,
                                 .codec = index == 0 ? o->source_codec : o->peer_codec};
  return weft_engine_new(swarm->ctx, &swarm->engine_options, &self, &n->engine);
}

// Both ends of an edge, with one delay for both ways.
static weft_status connect(weft_swarm *swarm, uint32_t a, uint32_t b, const weft_rng *rng) {
  size_t at_a, at_b;
  WEFT_TRY(weft_engine_add_neighbour(swarm->node[a].engine, NULL, 0, &at_a));
  WEFT_TRY(weft_engine_add_neighbour(swarm->node[b].engine, NULL, 0, &at_b));
  const int64_t min = swarm->options.delay_min_us, max = swarm->options.delay_max_us;
  const int64_t delay = min + (int64_t)weft_rng_below(rng, (uint64_t)(max - min) + 1);
  swarm->node[a].edges[at_a] = (edge){.node = b, .neighbour = at_b, .delay_us = delay};
  swarm->node[b].edges[at_b] = (edge){.node = a, .neighbour = at_a, .delay_us = delay};
  swarm->node[a].degree++;
  swarm->node[b].degree++;
  return WEFT_OK;
}

static weft_status connect_all(weft_swarm *swarm) {
  weft_rng_chacha chacha;
  weft_rng_chacha_seed(&chacha, swarm->options.seed, 0);
  const weft_rng rng = weft_rng_chacha_table(&chacha);
  weft_sim_graph graph;
  WEFT_TRY(weft_sim_graph_new(swarm->nodes, swarm->options.degree, &rng, &graph));
  weft_status status = WEFT_OK;
  for (uint32_t a = 0; a < graph.nodes && status == WEFT_OK; a++)
    for (uint32_t i = 0; i < graph.degree[a] && status == WEFT_OK; i++) {
      const uint32_t b = graph.neighbour[a * graph.degree_max + i];
      if (a < b)
        status = connect(swarm, a, b, &rng);
    }
  weft_sim_graph_free(&graph);
  return status;
}

static weft_status build(weft_swarm *swarm) {
  const weft_swarm_options *o = &swarm->options;
  const size_t segment_bytes = (size_t)o->blocks * o->block_bytes;
  swarm->node = calloc(swarm->nodes, sizeof *swarm->node);
  swarm->segment = malloc(segment_bytes ? segment_bytes : 1);
  if (!swarm->node || !swarm->segment)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < swarm->nodes; i++)
    WEFT_TRY(new_node(swarm, i));
  const uint64_t slowest =
      o->source_bits_per_s < o->peer_bits_per_s ? o->source_bits_per_s : o->peer_bits_per_s;
  const double segment_us = (double)segment_bytes * 8e6 / (double)slowest;
  swarm->stall_us = STALL_US + (int64_t)(100.0 * segment_us / (1.0 - o->loss));
  return connect_all(swarm);
}

weft_status weft_swarm_new(weft_ctx *ctx, const weft_swarm_options *options, weft_swarm **out) {
  if (!ctx || !options || !out || !options_valid(options))
    return WEFT_E_ARGUMENT;
  weft_swarm *swarm = calloc(1, sizeof *swarm);
  if (!swarm)
    return WEFT_E_NOMEM;
  swarm->ctx = ctx;
  swarm->options = *options;
  swarm->nodes = options->peers + 1;
  swarm->loss_q32 = (uint64_t)(options->loss * (double)WEFT_SIM_CERTAIN);
  const weft_status status = build(swarm);
  if (status != WEFT_OK)
    weft_swarm_free(swarm);
  else
    *out = swarm;
  return status;
}

void weft_swarm_free(weft_swarm *swarm) {
  if (!swarm)
    return;
  for (size_t i = 0; swarm->node && i < swarm->nodes; i++) {
    weft_engine_free(swarm->node[i].engine);
    free(swarm->node[i].edges);
  }
  weft_sim_queue_clear(&swarm->queue);
  free(swarm->node);
  free(swarm->segment);
  free(swarm);
}

// --- The network

static bool is_data(const weft_datagram *d) { return d->data[1] <= WEFT_PACKET_SPARSE; }

static void count_lost(weft_swarm *swarm, const weft_datagram *d) {
  weft_swarm_result *r = &swarm->result;
  if (!is_data(d)) {
    r->lost_control++;
    r->lost_control_bytes += d->bytes;
    return;
  }
  r->lost_packets++;
  r->lost_payload_bytes += swarm->options.block_bytes;
  r->lost_header_bytes += d->bytes - swarm->options.block_bytes;
}

// Sends a burst over the node's uplink; what is not lost arrives together, with its last byte.
static weft_status transmit(weft_swarm *swarm, uint32_t from, const weft_burst *burst) {
  node *n = &swarm->node[from];
  const edge *over = &n->edges[burst->neighbour];
  size_t total = 0;
  for (size_t i = 0; i < burst->count; i++)
    total += burst->datagrams[i].bytes;
  weft_sim_burst *arriving = weft_sim_burst_new(burst->count, total);
  if (!arriving)
    return WEFT_E_NOMEM;
  const int64_t left_us = weft_sim_uplink_send(&n->uplink, total, swarm->now_us);
  arriving->neighbour = over->neighbour;
  arriving->count = 0;
  size_t at = 0;
  for (size_t i = 0; i < burst->count; i++) {
    const weft_datagram *d = &burst->datagrams[i];
    if (weft_sim_lost(swarm->loss_q32, &n->link_rng)) {
      count_lost(swarm, d);
      continue;
    }
    memcpy(arriving->data + at, d->data, d->bytes);
    arriving->bytes[arriving->count++] = d->bytes;
    at += d->bytes;
  }
  const weft_sim_event event = {.time_us = left_us + over->delay_us,
                                .destination = over->node,
                                .source = from,
                                .sequence = n->sequence++,
                                .burst = arriving};
  const weft_status status =
      arriving->count ? weft_sim_queue_push(&swarm->queue, &event) : WEFT_PENDING;
  if (status != WEFT_OK)
    weft_sim_burst_free(arriving);
  return status == WEFT_PENDING ? WEFT_OK : status;
}

// --- One node's turn

static weft_status feed_source(weft_swarm *swarm) {
  const weft_swarm_options *o = &swarm->options;
  weft_engine *source = swarm->node[0].engine;
  const size_t capacity = (size_t)o->blocks * o->block_bytes;
  while (!swarm->fed_all && weft_engine_source_ready(source)) {
    size_t bytes = 0;
    WEFT_TRY(o->feed(o->user, swarm->segment, capacity, &bytes));
    swarm->result.stream_bytes += bytes;
    swarm->fed_all = bytes < capacity;
    if (bytes > 0)
      WEFT_TRY(weft_engine_source_put(source, swarm->segment, bytes, 0, swarm->now_us));
    else
      WEFT_TRY(weft_engine_source_end(source, swarm->now_us));
    swarm->progress_us = swarm->now_us;
  }
  return WEFT_OK;
}

static weft_status deliver(weft_swarm *swarm, uint32_t index) {
  const weft_swarm_options *o = &swarm->options;
  node *n = &swarm->node[index];
  uint64_t segment;
  size_t bytes;
  while (weft_engine_readable(n->engine, &segment, &bytes) == WEFT_OK) {
    WEFT_TRY(weft_engine_read(n->engine, 0, bytes, swarm->segment));
    WEFT_TRY(o->deliver(o->user, index - 1, swarm->segment, bytes));
    WEFT_TRY(weft_engine_release(n->engine));
    n->delivered_bytes += bytes;
  }
  return WEFT_OK;
}

static weft_status set_timer(weft_swarm *swarm, uint32_t index) {
  node *n = &swarm->node[index];
  int64_t deadline = weft_engine_deadline(n->engine);
  if (deadline <= swarm->now_us && deadline != WEFT_ENGINE_NEVER)
    deadline = swarm->now_us + 1; // time must pass
  if (deadline == n->timer_us)
    return WEFT_OK;
  n->timer_us = deadline;
  if (deadline == WEFT_ENGINE_NEVER)
    return WEFT_OK;
  const weft_sim_event event = {
      .time_us = deadline, .destination = index, .source = index, .sequence = n->sequence++};
  return weft_sim_queue_push(&swarm->queue, &event);
}

static weft_status take_turn(weft_swarm *swarm, uint32_t index) {
  node *n = &swarm->node[index];
  weft_engine_tick(n->engine, swarm->now_us);
  if (index == 0)
    WEFT_TRY(feed_source(swarm));
  weft_event event;
  while (weft_engine_event(n->engine, &event))
    if (event.kind == WEFT_EVENT_DECODED)
      swarm->progress_us = swarm->now_us;
  if (index != 0)
    WEFT_TRY(deliver(swarm, index));
  if (n->done_us == WEFT_SWARM_NEVER && weft_engine_done(n->engine))
    n->done_us = swarm->now_us;
  weft_burst burst;
  weft_status status;
  while ((status = weft_engine_output(n->engine, swarm->now_us, &burst)) == WEFT_OK)
    WEFT_TRY(transmit(swarm, index, &burst));
  return status == WEFT_PENDING ? set_timer(swarm, index) : status;
}

// A failure of the machine, as against a datagram that the engine had no use for.
static bool is_failure(weft_status status) {
  return status >= WEFT_E_NOMEM || status == WEFT_E_ARGUMENT || status == WEFT_E_BUFFER;
}

static weft_status arrive(weft_swarm *swarm, const weft_sim_event *event) {
  node *n = &swarm->node[event->destination];
  const weft_sim_burst *burst = event->burst;
  const uint8_t *at = burst->data;
  for (size_t i = 0; i < burst->count; i++) {
    const size_t bytes = burst->bytes[i];
    const weft_status status =
        weft_engine_input(n->engine, burst->neighbour, at, bytes, swarm->now_us);
    if (is_failure(status))
      return status;
    (void)crypto_generichash_update(&n->hash, at, bytes < HASHED_BYTES ? bytes : HASHED_BYTES);
    at += bytes;
  }
  return WEFT_OK;
}

static weft_status handle(weft_swarm *swarm, const weft_sim_event *event) {
  node *n = &swarm->node[event->destination];
  if (!event->burst && event->time_us != n->timer_us)
    return WEFT_OK; // an old timer
  swarm->now_us = event->time_us;
  swarm->result.events++;
  // One digest per node, over its own events in their order, whoever else has events meanwhile.
  const uint64_t words[] = {(uint64_t)event->time_us, event->source, event->burst != NULL,
                            event->sequence};
  (void)crypto_generichash_update(&n->hash, (const uint8_t *)words, sizeof words);
  if (event->burst)
    WEFT_TRY(arrive(swarm, event));
  else
    n->timer_us = WEFT_ENGINE_NEVER;
  return take_turn(swarm, event->destination);
}

weft_status weft_swarm_run(weft_swarm *swarm) {
  for (uint32_t i = 0; i < swarm->nodes; i++)
    WEFT_TRY(take_turn(swarm, i));
  weft_sim_event event;
  while (weft_sim_queue_pop(&swarm->queue, &event)) {
    const weft_status status = handle(swarm, &event);
    weft_sim_burst_free(event.burst);
    WEFT_TRY(status);
    if (swarm->options.keep_on && !swarm->options.keep_on(swarm->options.user, swarm->now_us))
      return WEFT_PENDING;
    if (swarm->now_us - swarm->progress_us > swarm->stall_us)
      return WEFT_E_STATE;
  }
  return WEFT_OK;
}

// --- Results

weft_swarm_node weft_swarm_get_node(const weft_swarm *swarm, size_t index) {
  const node *n = &swarm->node[index];
  weft_swarm_node out = {
      .degree = n->degree, .done_us = n->done_us, .delivered_bytes = n->delivered_bytes};
  weft_engine_get_statistics(n->engine, &out.statistics);
  return out;
}

weft_swarm_result weft_swarm_get_result(const weft_swarm *swarm) {
  weft_swarm_result result = swarm->result;
  result.end_us = swarm->now_us;
  crypto_generichash_state all;
  (void)crypto_generichash_init(&all, NULL, 0, sizeof result.hash);
  for (size_t i = 0; i < swarm->nodes; i++) {
    crypto_generichash_state one = swarm->node[i].hash; // the node's own goes on
    weft_engine_statistics statistics;
    uint8_t digest[WEFT_SWARM_HASH_BYTES];
    weft_engine_get_statistics(swarm->node[i].engine, &statistics);
    (void)crypto_generichash_update(&one, (const uint8_t *)&statistics, sizeof statistics);
    (void)crypto_generichash_final(&one, digest, sizeof digest);
    (void)crypto_generichash_update(&all, digest, sizeof digest);
  }
  (void)crypto_generichash_final(&all, result.hash, sizeof result.hash);
  return result;
}
