// SPDX-License-Identifier: Apache-2.0
// A lane's buckets, and the order in which the events of a window are processed.
#include "sim/core/lane.h"

#include <stdlib.h>
#include <string.h>

enum {
  DIGIT_BITS = 11,
  DIGITS = 1 << DIGIT_BITS,
  SMALL = 48, // up to this many entries insertion sort is faster than counting sort
  STEPS = 4   // of a prefetch
};
// How many entries each step runs ahead.
static const size_t AHEAD[STEPS] = {20, 13, 7, 3};

weft_status weft_sim_lane_init(weft_sim_lane *lane) {
  lane->pool.capacity =
      lane->actors < 20000 ? 4096 - sizeof(weft_sim_chunk) : 65536 - sizeof(weft_sim_chunk);
  for (size_t i = 0; i < 2; i++) {
    lane->letters[i] = calloc(lane->total, sizeof *lane->letters[i]);
    if (!lane->letters[i])
      return WEFT_E_NOMEM;
  }
  return WEFT_OK;
}

void weft_sim_lane_clear(weft_sim_lane *lane) {
  for (size_t i = 0; i < WEFT_SIM_RING; i++) {
    weft_sim_log_clear(&lane->ring[i].messages, &lane->pool);
    weft_sim_log_clear(&lane->ring[i].wakes, &lane->pool);
  }
  for (size_t p = 0; p < 2; p++) {
    for (size_t i = 0; lane->letters[p] && i < lane->total; i++)
      weft_sim_log_clear(&lane->letters[p][i], &lane->pool);
    free(lane->letters[p]);
  }
  free(lane->entries);
  free(lane->spare);
  free(lane->run);
  weft_sim_chunks_free(&lane->pool);
}

static void fail(weft_sim_lane *lane, weft_status status) {
  if (lane->status == WEFT_OK)
    lane->status = status;
}

// Returns the bucket for a time; NULL: that window is over.
static weft_sim_bucket *bucket_of(weft_sim_lane *lane, int64_t time_us) {
  int64_t window = time_us / lane->window_us;
  if (window < lane->window + lane->in_turn)
    return NULL;
  if (window >= lane->window + WEFT_SIM_RING)
    window = lane->window + WEFT_SIM_RING - 1; // and is sorted in again from there
  return &lane->ring[window % WEFT_SIM_RING];
}

static weft_sim_message *append(weft_sim_lane *lane, weft_sim_log *log,
                                const weft_sim_message *message) {
  weft_sim_message *m =
      weft_sim_log_append(log, &lane->pool, weft_sim_record_bytes(message->bytes));
  if (m)
    *m = *message;
  else
    fail(lane, WEFT_E_NOMEM);
  return m;
}

void *weft_sim_send(weft_sim_lane *lane, const weft_sim_message *message) {
  weft_sim_bucket *bucket = bucket_of(lane, message->time_us);
  if (!bucket) {
    fail(lane, WEFT_E_STATE);
    return NULL;
  }
  const size_t to = message->destination % lane->total;
  weft_sim_message *m = append(
      lane, to == lane->index ? &bucket->messages : &lane->letters[lane->parity][to], message);
  return m ? m + 1 : NULL;
}

void weft_sim_wake(weft_sim_lane *lane, uint32_t actor, int64_t at_us) {
  weft_sim_bucket *bucket = bucket_of(lane, at_us);
  if (!bucket) {
    fail(lane, WEFT_E_STATE);
    return;
  }
  uint32_t *wake = weft_sim_log_append(&bucket->wakes, &lane->pool, 2 * sizeof *wake);
  if (!wake)
    fail(lane, WEFT_E_NOMEM);
  else
    wake[0] = (uint32_t)(actor / lane->total);
}

static void copy_to_bucket(weft_sim_lane *lane, const weft_sim_message *message) {
  weft_sim_bucket *bucket = bucket_of(lane, message->time_us);
  if (!bucket) {
    fail(lane, WEFT_E_STATE);
    return;
  }
  weft_sim_message *m = append(lane, &bucket->messages, message);
  if (m)
    memcpy(m + 1, message + 1, message->bytes);
}

void weft_sim_lane_take(weft_sim_lane *lane, const void *records, size_t bytes) {
  const uint8_t *at = records, *end = at + bytes;
  while (at < end) {
    const weft_sim_message *m = (const weft_sim_message *)(const void *)at;
    copy_to_bucket(lane, m);
    at += weft_sim_record_bytes(m->bytes);
  }
}

// --- The order of a window

static bool reserve(weft_sim_lane *lane, size_t count) {
  if (count <= lane->entries_capacity)
    return true;
  const size_t capacity = count + count / 2 + 64;
  free(lane->entries);
  free(lane->spare);
  lane->entries = malloc(capacity * sizeof *lane->entries);
  lane->spare = malloc(capacity * sizeof *lane->spare);
  lane->entries_capacity = lane->entries && lane->spare ? capacity : 0;
  return lane->entries_capacity > 0;
}

static size_t collect(weft_sim_lane *lane, const weft_sim_bucket *bucket) {
  size_t count = 0;
  for (const weft_sim_chunk *c = bucket->messages.first; c; c = c->next)
    for (size_t at = 0; at < c->used;) {
      const weft_sim_message *m =
          (const weft_sim_message *)(const void *)((const uint8_t *)c->data + at);
      lane->entries[count++] =
          (weft_sim_entry){.actor = (uint32_t)(m->destination / lane->total), .message = m};
      at += weft_sim_record_bytes(m->bytes);
    }
  for (const weft_sim_chunk *c = bucket->wakes.first; c; c = c->next)
    for (size_t i = 0; i < c->used / 8; i++)
      lane->entries[count++] = (weft_sim_entry){.actor = ((const uint32_t *)c->data)[2 * i]};
  return count;
}

// Sorts by actor. The sort is stable, so order_run has little left to do.
static void sort_by_actor(weft_sim_lane *lane, size_t count) {
  weft_sim_entry *from = lane->entries, *to = lane->spare;
  if (count <= SMALL) {
    for (size_t i = 1; i < count; i++) {
      const weft_sim_entry e = from[i];
      size_t j = i;
      for (; j > 0 && from[j - 1].actor > e.actor; j--)
        from[j] = from[j - 1];
      from[j] = e;
    }
    return;
  }
  for (unsigned shift = 0; shift < 32 && (lane->actors - 1) >> shift; shift += DIGIT_BITS) {
    uint32_t start[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++)
      start[from[i].actor >> shift & (DIGITS - 1)]++;
    for (size_t d = 0; d < DIGITS; d++) {
      const uint32_t here = start[d];
      start[d] = sum;
      sum += here;
    }
    for (size_t i = 0; i < count; i++)
      to[start[from[i].actor >> shift & (DIGITS - 1)]++] = from[i];
    weft_sim_entry *swap = from;
    from = to;
    to = swap;
  }
  lane->entries = from;
  lane->spare = to;
}

static bool before(const weft_sim_message *a, const weft_sim_message *b) {
  if (a->time_us != b->time_us)
    return a->time_us < b->time_us;
  if (a->source != b->source)
    return a->source < b->source;
  return (int32_t)(a->sequence - b->sequence) < 0; // sequence numbers may wrap
}

// Puts the messages of entries [first, last), which belong to one actor, in order; returns their
// number.
static size_t order_run(weft_sim_lane *lane, size_t first, size_t last, int64_t end_us) {
  size_t count = 0;
  if (last - first > lane->run_capacity) {
    const size_t capacity = 2 * (last - first);
    free(lane->run);
    lane->run = malloc(capacity * sizeof *lane->run);
    lane->run_capacity = lane->run ? capacity : 0;
    if (!lane->run) {
      fail(lane, WEFT_E_NOMEM);
      return 0;
    }
  }
  for (size_t i = first; i < last; i++) {
    const weft_sim_message *m = lane->entries[i].message;
    if (!m)
      continue;
    if (m->time_us >= end_us) { // it waited in the ring's last window
      copy_to_bucket(lane, m);
      continue;
    }
    size_t j = count++;
    for (; j > 0 && before(m, lane->run[j - 1]); j--)
      lane->run[j] = lane->run[j - 1];
    lane->run[j] = m;
  }
  return count;
}

static void prefetch(weft_sim_lane *lane, const weft_sim_core_options *o, size_t count, size_t next,
                     size_t done[STEPS]) {
  for (unsigned step = 0; step < STEPS; step++) {
    const size_t end = next + AHEAD[step] < count ? next + AHEAD[step] : count;
    for (; done[step] < end; done[step]++) {
      const weft_sim_entry *e = &lane->entries[done[step]];
      if (step == 0 && e->message) {
        __builtin_prefetch(e->message);
        __builtin_prefetch((const char *)e->message + 64);
      }
      if (step < 2 && done[step] > 0 && e[-1].actor == e->actor)
        continue; // same turn as the entry before
      o->prefetch(o->user, lane->number, (uint32_t)(e->actor * lane->total + lane->index),
                  e->message, step);
    }
  }
}

static void take_turns(weft_sim_lane *lane, const weft_sim_core_options *o, size_t count) {
  weft_sim_turn turn = {.lane = lane->number,
                        .begin_us = lane->window * lane->window_us,
                        .end_us = (lane->window + 1) * lane->window_us};
  size_t done[STEPS] = {0};
  for (size_t first = 0; first < count && lane->status == WEFT_OK;) {
    size_t last = first + 1;
    while (last < count && lane->entries[last].actor == lane->entries[first].actor)
      last++;
    if (o->prefetch)
      prefetch(lane, o, count, last, done);
    turn.actor = (uint32_t)(lane->entries[first].actor * lane->total + lane->index);
    turn.count = order_run(lane, first, last, turn.end_us);
    turn.messages = lane->run;
    const weft_status status = o->turn(o->user, lane, &turn);
    if (status != WEFT_OK)
      fail(lane, status);
    first = last;
  }
}

void weft_sim_lane_work(weft_sim_lane *lane, const weft_sim_core_options *options) {
  weft_sim_bucket *slot = &lane->ring[lane->window % WEFT_SIM_RING], bucket = *slot;
  *slot = (weft_sim_bucket){0};
  lane->in_turn = true;
  if (!reserve(lane, bucket.messages.count + bucket.wakes.count)) {
    fail(lane, WEFT_E_NOMEM);
  } else {
    const size_t count = collect(lane, &bucket);
    sort_by_actor(lane, count);
    take_turns(lane, options, count);
  }
  lane->in_turn = false;
  weft_sim_log_clear(&bucket.messages, &lane->pool);
  weft_sim_log_clear(&bucket.wakes, &lane->pool);
}
