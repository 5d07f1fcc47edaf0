// SPDX-License-Identifier: Apache-2.0
// Runs one window after another, each on all lanes at once, and exchanges the messages of lanes and
// ranks in between.
#define _POSIX_C_SOURCE 200809L
#include "sim/core/core.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/pool.h"
#include "sim/core/lane.h"

// The head of a parcel, which is everything one rank sends another after a window: whether the rank
// failed, what the window and the exchange before cost it, and the bytes for each lane there.
typedef struct parcel_head {
  uint64_t status;
  uint64_t longest_ns, packed_ns, met_ns;
  uint64_t bytes[]; // (threads)
} parcel_head;

struct weft_sim_core {
  weft_sim_core_options options;
  weft_pool *pool;
  weft_sim_lane *lanes; // (threads)
  size_t total;         // lanes of all ranks
  int64_t window;
  size_t parity;
  weft_sim_effort effort;
  uint64_t met_ns; // duration of this rank's last exchange
  // Parcels, by rank.
  uint8_t **parcels;
  size_t *parcel_bytes, *parcel_capacity, *in_bytes;
  const void **in;
};

static void *system_take(void *user, size_t bytes, size_t align) {
  void *out;
  (void)user;
  return posix_memalign(&out, align < sizeof(void *) ? sizeof(void *) : align, bytes) ? NULL : out;
}

static void system_give(void *user, void *memory) {
  (void)user;
  free(memory);
}

static weft_status build(weft_sim_core *core) {
  const weft_sim_core_options *o = &core->options;
  const weft_allocator allocator = {.alloc = system_take, .free = system_give};
  const size_t ranks = o->transport ? o->transport->ranks : 1;
  core->total = ranks * o->threads;
  core->lanes = system_take(NULL, o->threads * sizeof *core->lanes, WEFT_SIM_LINES);
  core->parcels = calloc(ranks, sizeof *core->parcels);
  core->parcel_bytes = calloc(ranks, sizeof *core->parcel_bytes);
  core->parcel_capacity = calloc(ranks, sizeof *core->parcel_capacity);
  core->in = calloc(ranks, sizeof *core->in);
  core->in_bytes = calloc(ranks, sizeof *core->in_bytes);
  if (core->lanes)
    memset(core->lanes, 0, o->threads * sizeof *core->lanes);
  if (!core->lanes || !core->parcels || !core->parcel_bytes || !core->parcel_capacity ||
      !core->in || !core->in_bytes)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < o->threads; i++) {
    weft_sim_lane *lane = &core->lanes[i];
    lane->number = i;
    lane->index = (o->transport ? o->transport->rank : 0) * o->threads + i;
    lane->total = core->total;
    lane->actors = (uint32_t)(o->actors / core->total + 1);
    lane->window_us = o->window_us;
    WEFT_TRY(weft_sim_lane_init(lane));
  }
  return weft_pool_new(&core->pool, o->threads, &allocator);
}

weft_status weft_sim_core_new(const weft_sim_core_options *options, weft_sim_core **out) {
  if (!options || !out || options->actors < 1 || options->threads < 1 || options->window_us < 1 ||
      !options->turn)
    return WEFT_E_ARGUMENT;
  weft_sim_core *core = calloc(1, sizeof *core);
  if (!core)
    return WEFT_E_NOMEM;
  core->options = *options;
  const weft_status status = build(core);
  if (status != WEFT_OK)
    weft_sim_core_free(core);
  else
    *out = core;
  return status;
}

void weft_sim_core_free(weft_sim_core *core) {
  if (!core)
    return;
  for (size_t i = 0; core->lanes && i < core->options.threads; i++)
    weft_sim_lane_clear(&core->lanes[i]);
  for (size_t r = 0; core->parcels && core->options.transport && r < core->options.transport->ranks;
       r++)
    free(core->parcels[r]);
  weft_pool_free(core->pool);
  free(core->lanes);
  free(core->parcels);
  free(core->parcel_bytes);
  free(core->parcel_capacity);
  free(core->in);
  free(core->in_bytes);
  free(core);
}

bool weft_sim_core_owns(const weft_sim_core *core, uint32_t actor, size_t *lane) {
  const size_t index = actor % core->total, first = core->lanes[0].index;
  *lane = index - first;
  return index >= first && index < first + core->options.threads;
}

void weft_sim_core_wake(weft_sim_core *core, uint32_t actor, int64_t at_us) {
  size_t lane;
  if (weft_sim_core_owns(core, actor, &lane))
    weft_sim_wake(&core->lanes[lane], actor, at_us);
}

int64_t weft_sim_core_now(const weft_sim_core *core) {
  return core->window * core->options.window_us;
}

uint64_t weft_sim_core_under_way(const weft_sim_core *core) {
  uint64_t count = 0;
  for (size_t i = 0; i < core->options.threads; i++) {
    const weft_sim_lane *lane = &core->lanes[i];
    for (size_t b = 0; b < WEFT_SIM_RING; b++)
      count += lane->ring[b].messages.count;
    for (size_t to = 0; to < core->total; to++) // the letters of the other parity have been read
      count += lane->letters[core->parity ^ 1][to].count;
  }
  return count;
}

uint64_t weft_sim_core_bytes(const weft_sim_core *core) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < core->options.threads; i++)
    bytes +=
        core->lanes[i].pool.bytes + 2 * core->lanes[i].entries_capacity * sizeof(weft_sim_entry);
  return bytes;
}

weft_sim_effort weft_sim_core_effort(const weft_sim_core *core) { return core->effort; }

// --- A window

static uint64_t thread_ns(const weft_sim_core *core) {
  return core->options.thread_ns ? core->options.thread_ns() : 0;
}

// Takes what other lanes sent during the previous window.
static void take_letters(weft_sim_core *core, weft_sim_lane *lane) {
  const size_t before = core->parity ^ 1;
  for (size_t i = 0; i < core->options.threads; i++)
    for (const weft_sim_chunk *c = core->lanes[i].letters[before][lane->index].first; c;
         c = c->next)
      weft_sim_lane_take(lane, c->data, c->used);
  for (size_t r = 0; core->options.transport && r < core->options.transport->ranks; r++) {
    if (!core->in[r])
      continue;
    const parcel_head *head = core->in[r];
    const uint8_t *at = (const uint8_t *)(head->bytes + core->options.threads);
    for (size_t i = 0; i < lane->number; i++)
      at += head->bytes[i];
    weft_sim_lane_take(lane, at, (size_t)head->bytes[lane->number]);
  }
}

static void work(void *user, size_t index) {
  weft_sim_core *core = user;
  weft_sim_lane *lane = &core->lanes[index];
  const uint64_t start_ns = thread_ns(core);
  lane->window = core->window;
  lane->parity = core->parity;
  take_letters(core, lane);
  // The letters of the window before the last have been read by all lanes.
  for (size_t i = 0; i < core->total; i++)
    weft_sim_log_clear(&lane->letters[core->parity][i], &lane->pool);
  if (lane->status == WEFT_OK)
    weft_sim_lane_work(lane, &core->options);
  lane->worked_ns = thread_ns(core) - start_ns;
}

static weft_status pack(weft_sim_core *core, size_t rank, weft_status status) {
  const size_t threads = core->options.threads;
  const size_t head_bytes = sizeof(parcel_head) + threads * sizeof(uint64_t);
  size_t bytes = head_bytes;
  for (size_t to = rank * threads; to < (rank + 1) * threads; to++)
    for (size_t i = 0; i < threads; i++)
      for (weft_sim_chunk *c = core->lanes[i].letters[core->parity][to].first; c; c = c->next)
        bytes += c->used;
  if (bytes > core->parcel_capacity[rank]) {
    free(core->parcels[rank]);
    core->parcels[rank] = malloc(bytes + bytes / 2);
    core->parcel_capacity[rank] = core->parcels[rank] ? bytes + bytes / 2 : 0;
    if (!core->parcels[rank])
      return WEFT_E_NOMEM;
  }
  parcel_head *head = (parcel_head *)(void *)core->parcels[rank];
  uint8_t *at = core->parcels[rank] + head_bytes;
  head->status = (uint64_t)status;
  for (size_t k = 0; k < threads; k++) {
    uint8_t *start = at;
    for (size_t i = 0; i < threads; i++)
      for (weft_sim_chunk *c = core->lanes[i].letters[core->parity][rank * threads + k].first; c;
           c = c->next) {
        memcpy(at, c->data, c->used);
        at += c->used;
      }
    head->bytes[k] = (uint64_t)(at - start);
  }
  core->parcel_bytes[rank] = bytes;
  return WEFT_OK;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Exchanges parcels with all ranks. A failure of any rank, or a false from keep_on, ends the run on
// all of them.
static weft_status meet_ranks(weft_sim_core *core, uint64_t longest_ns, weft_status status) {
  weft_sim_transport *t = core->options.transport;
  const uint64_t start_ns = thread_ns(core);
  for (size_t r = 0; r < t->ranks; r++)
    if (r != t->rank)
      WEFT_TRY(weft_sim_part(t, pack(core, r, status)));
  const uint64_t packed_at_ns = thread_ns(core), packed_ns = packed_at_ns - start_ns;
  for (size_t r = 0; r < t->ranks; r++)
    if (r != t->rank) {
      parcel_head *head = (parcel_head *)(void *)core->parcels[r];
      head->longest_ns = longest_ns;
      head->packed_ns = packed_ns;
      head->met_ns = core->met_ns;
    }
  core->parcel_bytes[t->rank] = 0;
  WEFT_TRY(weft_sim_part(t, t->exchange(t->user, (const void *const *)core->parcels,
                                        core->parcel_bytes, core->in, core->in_bytes)));
  core->in[t->rank] = NULL;
  uint64_t longest_all_ns = longest_ns, packed_all_ns = packed_ns, met_all_ns = core->met_ns;
  for (size_t r = 0; r < t->ranks; r++) {
    const parcel_head *head = core->in[r];
    if (!head)
      continue;
    if (status == WEFT_OK)
      status = (weft_status)head->status;
    longest_all_ns = larger(longest_all_ns, head->longest_ns);
    packed_all_ns = larger(packed_all_ns, head->packed_ns);
    // Ranks that arrived early waited, perhaps in a busy loop; the one that arrived last did not.
    met_all_ns = head->met_ns < met_all_ns ? head->met_ns : met_all_ns;
  }
  core->effort.longest_ns += longest_all_ns;
  core->effort.between_ns += packed_all_ns + met_all_ns;
  core->met_ns = thread_ns(core) - packed_at_ns;
  return status;
}

// Adds up what the window cost this rank; returns the time of its longest lane.
static uint64_t count_effort(weft_sim_core *core) {
  uint64_t longest_ns = 0;
  for (size_t i = 0; i < core->options.threads; i++) {
    core->effort.lanes_ns += core->lanes[i].worked_ns;
    longest_ns = larger(longest_ns, core->lanes[i].worked_ns);
  }
  core->effort.windows++;
  return longest_ns;
}

weft_status weft_sim_core_run(weft_sim_core *core, int64_t until_us,
                              bool (*keep_on)(void *user, int64_t now_us)) {
  const weft_sim_core_options *o = &core->options;
  while (weft_sim_core_now(core) < until_us) {
    weft_pool_run(core->pool, o->threads, work, core);
    const uint64_t longest_ns = count_effort(core);
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < o->threads && status == WEFT_OK; i++)
      status = core->lanes[i].status;
    if (status == WEFT_OK && keep_on && !keep_on(o->user, weft_sim_core_now(core)))
      status = WEFT_PENDING;
    if (o->transport && o->transport->ranks > 1)
      status = meet_ranks(core, longest_ns, status);
    else
      core->effort.longest_ns += longest_ns;
    WEFT_TRY(status);
    core->window++;
    core->parity ^= 1;
  }
  for (size_t i = 0; i < o->threads; i++)
    core->lanes[i].window = core->window;
  return WEFT_OK;
}
