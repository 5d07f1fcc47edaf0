// SPDX-License-Identifier: Apache-2.0
// The pipeline for stripes in host memory: three kinds of streams, with pieces in a ring of lanes.
#include "lib/storage/device_travel.h"

#include <stdint.h>

enum {
  PIECES_IN_FLIGHT = 4,  // one arrives, one is computed, one leaves, one has left
  PIECE_MOST = 24 << 20, // bytes of all shards of a piece: long copies, short enough to overlap
  PIECE_LEAST = 4 << 20, // shorter ones are dominated by latency
  PIECES = 16,           // desired number: the first arrives and the last leaves without overlap
  PAGE = 4096,
  GRAIN_MOST = 64 << 10,
  STRIDE_MOST = INT32_MAX // limit of a copy of several rows
};

typedef weft_device_run run;

// Bytes [at, at + n) of a stripe in host memory, processed in `memory`, where shards are `step`
// apart.
typedef struct piece {
  const weft_stripe *stripe;
  size_t at, n;
  uint8_t *memory;
  size_t step;
} piece;

static size_t bytes_of(const run *r, const piece *p, size_t i) {
  const weft_code *code = r->plan->code;
  return r->plan->ids[i] < code->k ? p->n : weft_code_parity_bytes(code, p->n);
}

// Returns how many shards of a piece, from `first` on and before `end`, are evenly spaced in
// memory. They are certain to be in one allocation only if the caller has given a base and a
// stride.
static size_t evenly(const run *r, const piece *p, size_t first, size_t end, size_t *stride) {
  const size_t bytes = bytes_of(r, p, first);
  *stride = bytes;
  if (p->stripe->shards || p->stripe->mem != WEFT_MEM_PINNED || first + 1 == end)
    return 1;
  const uintptr_t base = (uintptr_t)weft_device_run_shard(r, p->stripe, first);
  const uintptr_t next = (uintptr_t)weft_device_run_shard(r, p->stripe, first + 1);
  if (next < base + bytes || next - base > STRIDE_MOST)
    return 1;
  *stride = next - base;
  size_t n = 1;
  while (first + n < end && bytes_of(r, p, first + n) == bytes &&
         (uintptr_t)weft_device_run_shard(r, p->stripe, first + n) == base + n * *stride)
    n++;
  return n;
}

// Copies shards [first, end) of the plan to the device or back, on a stream. Evenly spaced shards
// take one command, since the bus idles for some microseconds after each.
static weft_status carry(const run *r, const piece *p, size_t first, size_t end, void *stream) {
  const weft_mem mem = p->stripe->mem;
  for (size_t i = first, stride, n; i < end; i += n) {
    n = evenly(r, p, i, end, &stride);
    uint8_t *there = p->memory + i * p->step,
            *here = weft_device_run_shard(r, p->stripe, i) + p->at;
    const size_t bytes = bytes_of(r, p, i);
    WEFT_TRY(i < r->plan->inputs
                 ? weft_device_copy_rows(r->exec.device, there, p->step, WEFT_MEM_DEVICE, here,
                                         stride, mem, bytes, n, stream)
                 : weft_device_copy_rows(r->exec.device, here, stride, mem, there, p->step,
                                         WEFT_MEM_DEVICE, bytes, n, stream));
  }
  return WEFT_OK;
}

// State of a run. Pieces arrive on the call's own stream, are computed on a lane's, and leave on a
// third, so that transfers follow each other without a gap in either direction.
typedef struct travel {
  run lane[PIECES_IN_FLIGHT];
  void *memory[PIECES_IN_FLIGHT];
  piece piece[PIECES_IN_FLIGHT]; // latest of each lane
  size_t started, gone;          // pieces
  void *arrivals, *departures;
} travel;

static weft_status depart(travel *t) {
  const size_t i = t->gone++ % PIECES_IN_FLIGHT;
  const run *lane = &t->lane[i];
  const size_t k = lane->plan->inputs;
  WEFT_TRY(weft_device_stream_order(lane->exec.device, t->departures, lane->exec.stream));
  return carry(lane, &t->piece[i], k, k + lane->plan->outputs, t->departures);
}

// Starts one piece. A departure is enqueued only once the arrivals of all pieces before the next
// one in its lane are enqueued: a stream waits for everything that the other one holds at that
// time.
static weft_status run_piece(travel *t, const weft_stripe *stripe, size_t at, size_t n,
                             size_t step) {
  const size_t i = t->started % PIECES_IN_FLIGHT;
  const run *lane = &t->lane[i];
  const size_t k = lane->plan->inputs, all = k + lane->plan->outputs;
  piece *p = &t->piece[i];
  *p = (piece){stripe, at, n, t->memory[i], step};
  if (t->started++ >= PIECES_IN_FLIGHT)
    WEFT_TRY(weft_device_stream_order(lane->exec.device, t->arrivals, t->departures));
  WEFT_TRY(carry(lane, p, 0, k, t->arrivals));
  WEFT_TRY(weft_device_stream_order(lane->exec.device, lane->exec.stream, t->arrivals));
  uint8_t *shards[WEFT_MAX_SHARDS] = {NULL};
  for (size_t s = 0; s < all; s++)
    shards[s] = p->memory + s * step;
  run here = *lane;
  here.in_order = true;
  const weft_stripe there = {.shards = shards, .bytes = n, .mem = WEFT_MEM_DEVICE};
  WEFT_TRY(weft_device_run_resident(&here, &there));
  return t->started - t->gone == PIECES_IN_FLIGHT ? depart(t) : WEFT_OK;
}

// Returns the bytes per shard in a piece: a sixteenth of everything, within bounds. Sets *place to
// the distance between shards.
static size_t piece_step(const run *r, const weft_stripe *stripes, size_t count, size_t *place) {
  const weft_code *code = r->plan->code;
  const size_t all = r->plan->inputs + r->plan->outputs, unit = weft_code_unit_bytes(code);
  size_t bytes = 0, longest = 0;
  for (size_t i = 0; i < count; i++) {
    const size_t whole = weft_code_parity_bytes(code, stripes[i].bytes);
    longest = longest > whole ? longest : whole;
    bytes += whole;
  }
  size_t step = bytes / PIECES;
  step = step < PIECE_LEAST / all ? PIECE_LEAST / all : step;
  step = step > PIECE_MOST / all ? PIECE_MOST / all : step;
  size_t grain = unit; // whole units and, unless these are long, whole pages, which suit the bus
  while (grain % PAGE != 0 && grain < GRAIN_MOST)
    grain += unit;
  step = step < grain ? grain : step / grain * grain;
  step = step < longest ? step : longest;
  *place = (step + PAGE - 1) / PAGE * PAGE;
  return step;
}

static weft_status open_travel(const run *r, size_t bytes, travel *t) {
  *t = (travel){.arrivals = r->exec.stream};
  WEFT_TRY(weft_queue_side(r->call->queue, PIECES_IN_FLIGHT, &t->departures));
  for (size_t i = 0; i < PIECES_IN_FLIGHT; i++) {
    run *lane = &t->lane[i];
    *lane = *r;
    WEFT_TRY(weft_queue_side(r->call->queue, i, &lane->exec.stream));
    WEFT_TRY(weft_device_stream_order(r->exec.device, lane->exec.stream, t->arrivals));
    WEFT_TRY(weft_device_scratch(&lane->exec, bytes, &t->memory[i]));
    WEFT_TRY(weft_device_stream_order(r->exec.device, t->arrivals, lane->exec.stream));
  }
  return WEFT_OK;
}

// Ends a run. Waiting for the call's stream then waits for all of it.
static weft_status close_travel(const run *r, travel *t, weft_status status) {
  weft_device *device = r->exec.device;
  while (status == WEFT_OK && t->gone < t->started)
    status = depart(t);
  if (status == WEFT_OK)
    status = weft_device_stream_order(device, t->arrivals, t->departures);
  if (status != WEFT_OK) { // work already enqueued may still use memory that is freed below
    (void)weft_device_stream_wait(device, t->arrivals);
    if (t->departures)
      (void)weft_device_stream_wait(device, t->departures);
  }
  for (size_t i = 0; i < PIECES_IN_FLIGHT; i++) {
    if (!t->memory[i])
      continue;
    const weft_status left = weft_device_stream_order(device, t->lane[i].exec.stream, t->arrivals);
    if (left != WEFT_OK)
      (void)weft_device_stream_wait(device, t->arrivals);
    weft_device_scratch_free(&t->lane[i].exec, t->memory[i]);
    const weft_status joined =
        weft_device_stream_order(device, t->arrivals, t->lane[i].exec.stream);
    if (joined != WEFT_OK) // memory kept for the lane is freed once its stream is idle
      (void)weft_device_stream_wait(device, t->lane[i].exec.stream);
    status = status != WEFT_OK ? status : left != WEFT_OK ? left : joined;
  }
  return status;
}

weft_status weft_device_run_travelling(const run *r, const weft_stripe *stripes, size_t count) {
  const size_t all = r->plan->inputs + r->plan->outputs;
  size_t place;
  const size_t step = piece_step(r, stripes, count, &place);
  travel t;
  weft_status status = open_travel(r, all * place, &t);
  for (size_t s = 0; s < count; s++)
    for (size_t at = 0; at < stripes[s].bytes && status == WEFT_OK; at += step) {
      const size_t left = stripes[s].bytes - at;
      status = run_piece(&t, &stripes[s], at, left < step ? left : step, place);
    }
  return close_travel(r, &t, status);
}
