// SPDX-License-Identifier: Apache-2.0
// What is counted for peers and lanes, and the sums over all of them.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "sim/core/reserve.h"
#include "sim/swarm/internal.h"

enum { KEPT_MAX = 400000 }; // samples and trace entries of the whole run, each

// Makes room for one more item of `bytes` bytes; false: enough are kept, or there is no memory. A
// lane that reaches KEPT_MAX goes on to the end of that window. The first KEPT_MAX items of all
// lanes together, which the result keeps, are then complete and do not depend on the number of
// lanes.
static bool grow(const weft_sim_share *share, void *array, weft_sim_kept *kept, size_t bytes) {
  if (kept->count == KEPT_MAX)
    kept->full_us = share->begin_us;
  if (kept->count >= KEPT_MAX && share->begin_us > kept->full_us) {
    kept->cut = true;
    return false;
  }
  const bool fits = weft_sim_reserve(array, &kept->capacity, kept->count, 1, bytes) == WEFT_OK;
  kept->cut = kept->cut || !fits;
  return fits;
}

void weft_sim_note(weft_sim_share *share, const weft_sim_trace *trace) {
  if (grow(share, &share->trace, &share->traces, sizeof *trace))
    share->trace[share->traces.count++] = *trace;
}

void weft_sim_take_sample(weft_sim_share *share, weft_sim_peer *peer, int64_t now_us) {
  weft_engine_statistics s;
  weft_engine_get_statistics(peer->engine, &s);
  const bool bulk = share->swarm->parameters.mode == WEFT_SIM_BULK;
  if (grow(share, &share->samples, &share->sampled, sizeof *share->samples))
    share->samples[share->sampled.count++] =
        (weft_sim_sample){.time_us = now_us,
                          .peer = peer->id,
                          .degree = peer->degree,
                          .innovative = s.received_innovative,
                          .ahead = bulk ? s.segments : weft_engine_buffered(peer->engine)};
}

// Adds one engine's statistics. startup_us and lag_us do not add up and are left out; of
// waited_max_us the sum has the maximum.
static void add_statistics(weft_engine_statistics *sum, const weft_engine_statistics *one) {
  const int64_t marks[] = {sum->startup_us, sum->lag_us};
  const int64_t most =
      sum->waited_max_us > one->waited_max_us ? sum->waited_max_us : one->waited_max_us;
  enum { WORDS = sizeof *sum / sizeof(uint64_t) };
  uint64_t to[WORDS], from[WORDS];
  memcpy(to, sum, sizeof *sum);
  memcpy(from, one, sizeof *one);
  for (size_t i = 0; i < WORDS; i++)
    to[i] += from[i];
  memcpy(sum, to, sizeof *sum);
  sum->startup_us = marks[0];
  sum->lag_us = marks[1];
  sum->waited_max_us = most;
}

void weft_sim_count_peer(weft_sim_share *share, weft_sim_peer *p, int64_t now_us, bool left) {
  weft_engine_statistics s;
  weft_engine_get_statistics(p->engine, &s);
  for (size_t i = 0; i < sizeof s / sizeof(uint64_t); i++) {
    uint64_t word;
    memcpy(&word, (const uint8_t *)&s + i * sizeof word, sizeof word);
    p->hash = weft_sim_mix(p->hash ^ word) + i;
  }
  // The engine adds a token as a whole; packet by packet these would have met a complete segment.
  s.received_dependent -= p->surplus;
  s.received_late += p->surplus;
  const weft_sim_hooks *hooks = &share->swarm->options.hooks;
  if (hooks->ended)
    hooks->ended(hooks->user, p->id, p->degree, p->done_us, &s);
  p->hash = weft_sim_mix(p->hash + p->delivered_bytes + (uint64_t)p->done_us);
  add_statistics(p->id ? &share->totals.peers : &share->totals.source, &s);
  share->totals.delivered_bytes += p->delivered_bytes;
  share->totals.wrong_bytes += p->wrong_bytes;
  weft_sim_viewer *v = &share->viewers[p - share->peers];
  v->left = left;
  v->left_us = left ? now_us : WEFT_SIM_NEVER;
  v->done = p->done_us != WEFT_SIM_NEVER;
  v->done_us = p->done_us;
  v->lag_us = s.lag_us;
  v->due = s.due;
  v->in_time = s.in_time;
  v->skipped = s.skipped;
  v->stalls = s.stalls;
  v->stalled_us = s.stalled_us + (p->stall_us >= 0 ? now_us - p->stall_us : 0);
  v->seek_wait_us += p->sought_us >= 0 ? now_us - p->sought_us : 0;
  v->delivered_bytes = p->delivered_bytes;
  v->wrong_bytes = p->wrong_bytes;
  v->sent_bytes = p->sent_bytes;
  v->innovative = s.received_innovative;
  v->dependent = s.received_dependent;
  v->late = s.received_late;
  v->banned = s.banned;
  v->hash_failures = s.hash_failures;
}

// --- Sums

static void add_totals(weft_sim_totals *sum, const weft_sim_totals *one) {
  enum { WORDS = offsetof(weft_sim_totals, source) / sizeof(uint64_t) };
  uint64_t to[WORDS], from[WORDS];
  memcpy(to, sum, sizeof to);
  memcpy(from, one, sizeof from);
  for (size_t i = 0; i < WORDS; i++)
    to[i] += from[i];
  memcpy(sum, to, sizeof to);
  add_statistics(&sum->source, &one->source);
  add_statistics(&sum->peers, &one->peers);
}

// Adds a peer's digest as four numbers; the sums do not depend on the order of the peers.
static void add_hash(uint64_t sum[4], const weft_sim_peer *p) {
  const uint64_t text[] = {p->id, p->hash};
  uint64_t digest[4];
  (void)crypto_generichash((uint8_t *)digest, sizeof digest, (const uint8_t *)text, sizeof text,
                           NULL, 0);
  for (size_t i = 0; i < 4; i++)
    sum[i] += digest[i];
}

static int by_peer(const void *a, const void *b) {
  const weft_sim_viewer *x = a, *y = b;
  return (x->peer > y->peer) - (x->peer < y->peer);
}

static int by_sample_time(const void *a, const void *b) {
  const weft_sim_sample *x = a, *y = b;
  if (x->time_us != y->time_us)
    return x->time_us < y->time_us ? -1 : 1;
  return (x->peer > y->peer) - (x->peer < y->peer);
}

static int by_trace_time(const void *a, const void *b) {
  const weft_sim_trace *x = a, *y = b;
  if (x->time_us != y->time_us)
    return x->time_us < y->time_us ? -1 : 1;
  if (x->peer != y->peer)
    return x->peer < y->peer ? -1 : 1;
  if (x->other != y->other)
    return x->other < y->other ? -1 : 1;
  if (x->kind != y->kind)
    return x->kind < y->kind ? -1 : 1;
  if (x->segment != y->segment)
    return x->segment < y->segment ? -1 : 1;
  return (x->packets > y->packets) - (x->packets < y->packets);
}

typedef struct part {
  const void *items;
  size_t count;
} part;

// Collects all lanes' items of one kind, then all ranks'. The swarm owns the array.
static weft_status gather(weft_sim_swarm *swarm, size_t slot, size_t item_bytes,
                          part (*part_of)(const weft_sim_share *share), size_t *count) {
  weft_sim_transport *t = swarm->options.transport;
  uint64_t most = 0, own = 0;
  for (size_t i = 0; i < swarm->options.threads; i++)
    own += part_of(&swarm->shares[i]).count;
  most = own;
  uint64_t *counts = NULL;
  if (t) {
    counts = calloc(t->ranks, sizeof *counts);
    if (!counts)
      return WEFT_E_NOMEM;
    counts[t->rank] = own;
    const weft_status summed = t->sum(t->user, counts, t->ranks);
    if (summed != WEFT_OK) {
      free(counts);
      return summed;
    }
    for (size_t r = 0; r < t->ranks; r++)
      most = counts[r] > most ? counts[r] : most;
  }
  const size_t ranks = t ? t->ranks : 1;
  uint8_t *mine = calloc(most ? most : 1, item_bytes);
  uint8_t *all = t && t->rank ? NULL : calloc(most ? most * ranks : 1, item_bytes);
  if (!mine || (!all && !(t && t->rank))) {
    free(counts);
    free(mine);
    free(all);
    return WEFT_E_NOMEM;
  }
  size_t at = 0;
  for (size_t i = 0; i < swarm->options.threads; i++) {
    const part p = part_of(&swarm->shares[i]);
    if (p.count)
      memcpy(mine + at * item_bytes, p.items, p.count * item_bytes);
    at += p.count;
  }
  weft_status status = WEFT_OK;
  *count = own;
  if (!t) {
    free(all);
    all = mine;
    mine = NULL;
  } else {
    status = t->gather(t->user, mine, most * item_bytes, all);
    size_t to = 0;
    for (size_t r = 0; all && r < ranks; r++) { // close the gaps
      memmove(all + to * item_bytes, all + r * most * item_bytes, counts[r] * item_bytes);
      to += counts[r];
    }
    *count = to;
  }
  free(counts);
  free(mine);
  free(swarm->gathered[slot]);
  swarm->gathered[slot] = all;
  return status;
}

static part viewers_of(const weft_sim_share *s) {
  const size_t skip = s->peer_count && s->peers[0].id == 0; // the source
  return (part){.items = s->viewers + skip, .count = s->peer_count - skip};
}
static part samples_of(const weft_sim_share *s) {
  return (part){.items = s->samples, .count = s->sampled.count};
}
static part trace_of(const weft_sim_share *s) {
  return (part){.items = s->trace, .count = s->traces.count};
}

static weft_status sum_over_ranks(weft_sim_swarm *swarm, uint64_t *values, size_t count) {
  weft_sim_transport *t = swarm->options.transport;
  return t ? t->sum(t->user, values, count) : WEFT_OK;
}

static weft_status sum_seconds(weft_sim_swarm *swarm) {
  enum { FIELDS = sizeof(weft_sim_second) / sizeof(uint64_t) };
  const size_t words = swarm->second_count * FIELDS;
  uint64_t *sum = calloc(words, sizeof *sum);
  if (!sum)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < swarm->options.threads; i++) {
    const uint8_t *from = (const uint8_t *)swarm->shares[i].seconds;
    for (size_t w = 0; w < words; w++) {
      uint64_t word;
      memcpy(&word, from + w * sizeof word, sizeof word);
      sum[w] += word;
    }
  }
  const weft_status status = sum_over_ranks(swarm, sum, words);
  free(swarm->gathered[3]);
  swarm->gathered[3] = sum;
  swarm->result.seconds = (const weft_sim_second *)(const void *)sum;
  swarm->result.second_count = swarm->second_count;
  return status;
}

static weft_status sum_totals(weft_sim_swarm *swarm) {
  weft_sim_result *r = &swarm->result;
  r->totals = (weft_sim_totals){0};
  uint64_t hash[4] = {0}, memory_bytes = weft_sim_core_bytes(swarm->core), cuts = 0;
  for (size_t i = 0; i < swarm->options.threads; i++) {
    weft_sim_share *share = &swarm->shares[i];
    add_totals(&r->totals, &share->totals);
    for (size_t p = 0; p < share->peer_count; p++)
      add_hash(hash, &share->peers[p]);
    memory_bytes += weft_sim_arena_bytes(share->arena);
    cuts += share->traces.cut || share->sampled.cut;
  }
  uint64_t words[sizeof r->totals / sizeof(uint64_t)];
  memcpy(words, &r->totals, sizeof words);
  WEFT_TRY(sum_over_ranks(swarm, words, sizeof words / sizeof *words));
  WEFT_TRY(sum_over_ranks(swarm, hash, 4));
  WEFT_TRY(sum_over_ranks(swarm, &memory_bytes, 1));
  WEFT_TRY(sum_over_ranks(swarm, &cuts, 1));
  r->memory_bytes = memory_bytes;
  r->trace_cut = cuts > 0;
  r->effort = weft_sim_core_effort(swarm->core);
  WEFT_TRY(sum_over_ranks(swarm, &r->effort.lanes_ns, 1));
  int64_t most[] = {r->totals.source.waited_max_us, r->totals.peers.waited_max_us};
  if (swarm->options.transport)
    WEFT_TRY(swarm->options.transport->most(swarm->options.transport->user, most, 2));
  memcpy(&r->totals, words, sizeof words);
  r->totals.source.waited_max_us = most[0];
  r->totals.peers.waited_max_us = most[1];
  for (size_t i = 0; i < sizeof r->hash; i++)
    r->hash[i] = (uint8_t)(hash[i / 8] >> 8 * (i % 8));
  return WEFT_OK;
}

static void keep_first(weft_sim_result *r, size_t *count) {
  r->trace_cut = r->trace_cut || *count > KEPT_MAX;
  *count = *count < KEPT_MAX ? *count : KEPT_MAX;
}

static weft_status collect(weft_sim_swarm *swarm) {
  weft_sim_result *r = &swarm->result;
  r->end_us = weft_sim_core_now(swarm->core);
  for (size_t i = 0; i < swarm->options.threads; i++) {
    weft_sim_share *share = &swarm->shares[i];
    for (size_t p = 0; p < share->peer_count; p++)
      if (share->peers[p].engine) {
        weft_sim_count_peer(share, &share->peers[p], r->end_us, false);
        weft_engine_free(share->peers[p].engine);
        share->peers[p].engine = NULL;
        share->peers[p].state = WEFT_SIM_GONE;
      }
  }
  WEFT_TRY(sum_totals(swarm));
  WEFT_TRY(sum_seconds(swarm));
  WEFT_TRY(gather(swarm, 0, sizeof(weft_sim_viewer), viewers_of, &r->viewer_count));
  WEFT_TRY(gather(swarm, 1, sizeof(weft_sim_sample), samples_of, &r->sample_count));
  WEFT_TRY(gather(swarm, 2, sizeof(weft_sim_trace), trace_of, &r->trace_count));
  r->viewers = swarm->gathered[0];
  r->samples = swarm->gathered[1];
  r->trace = swarm->gathered[2];
  if (r->viewers)
    qsort(swarm->gathered[0], r->viewer_count, sizeof(weft_sim_viewer), by_peer);
  if (r->samples)
    qsort(swarm->gathered[1], r->sample_count, sizeof(weft_sim_sample), by_sample_time);
  if (r->trace)
    qsort(swarm->gathered[2], r->trace_count, sizeof(weft_sim_trace), by_trace_time);
  keep_first(r, &r->sample_count);
  keep_first(r, &r->trace_count);
  if (r->viewers)
    WEFT_TRY(weft_sim_count_audience(r->viewers, r->viewer_count, r->end_us, swarm->gathered[3],
                                     r->second_count, &r->totals.online_most));
  if (swarm->options.hooks.feed) {
    r->stream_bytes = swarm->fed_bytes;
    r->segments = swarm->fed_segments;
  }
  return WEFT_OK;
}

weft_status weft_sim_swarm_result(weft_sim_swarm *swarm, weft_sim_result *out) {
  WEFT_TRY(weft_sim_part(swarm->options.transport, collect(swarm)));
  *out = swarm->result;
  return WEFT_OK;
}
