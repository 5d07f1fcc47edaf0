// SPDX-License-Identifier: Apache-2.0
// A lane: one context, one thread, the products assigned to it, and what they are known to take.
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "lib/server/internal.h"

// --- who makes it ---

bool weft_server_assign(weft_server *server, weft_server_batch *batch) {
  weft_server_lane *best = NULL;
  double best_us = 0, best_guess_us = 0;
  for (size_t i = 0; i < server->lanes; i++) {
    weft_server_lane *lane = &server->lane[i];
    if (lane->failed || (batch->tried >> i & 1u))
      continue;
    const double guess_us = weft_cost_predict(&lane->cost, batch->work);
    const double done_us = lane->backlog_us + guess_us;
    if (!best || done_us < best_us) {
      best = lane;
      best_us = done_us;
      best_guess_us = guess_us;
    }
  }
  if (!best)
    return false;
  batch->lane = best->index;
  batch->guess_us = best_guess_us;
  batch->next = NULL;
  best->backlog_us += best_guess_us;
  *(best->tail ? &best->tail->next : &best->head) = batch;
  best->tail = batch;
  server->running++;
  pthread_cond_signal(&best->wake);
  return true;
}

static weft_server_batch *pop(weft_server_lane *lane) {
  weft_server_batch *batch = lane->head;
  if (batch) {
    lane->head = batch->next;
    if (!lane->head)
      lane->tail = NULL;
    batch->next = NULL;
  }
  return batch;
}

// --- how it ends; lock held ---

static void leave(weft_server_lane *lane, weft_server_batch *batch) {
  lane->server->running--;
  lane->backlog_us -= batch->guess_us;
  // Sums of doubles drift; an idle lane has no backlog.
  if (!lane->head && lane->flying_count == 0)
    lane->backlog_us = 0;
}

// To another lane where the caller wants that and there is one; else its packets carry the status.
static void move_or_fail(weft_server_lane *lane, weft_server_batch *batch, weft_status status) {
  weft_server *server = lane->server;
  leave(lane, batch);
  batch->tried |= 1u << lane->index;
  if (server->options.fall_over && weft_server_assign(server, batch)) {
    server->stats.fallen_over++;
    return;
  }
  batch->status = status;
  weft_batch_ready(server, batch);
}

// A device that reported an error is not asked again: its answers could be wrong.
static void fail_lane(weft_server_lane *lane, weft_status status) {
  lane->failed = true;
  lane->stats.failed = true;
  for (weft_server_batch *batch = pop(lane); batch; batch = pop(lane))
    move_or_fail(lane, batch, status);
}

static void count_done(weft_server_lane *lane, weft_server_batch *batch) {
  const int64_t now = weft_server_clock(lane->server);
  // A product that waited behind another on the same device is charged from that one's end.
  const int64_t from = batch->start_us > lane->last_done_us ? batch->start_us : lane->last_done_us;
  const double us = (double)(now > from ? now - from : 1);
  lane->last_done_us = now;
  weft_cost_learn(&lane->cost, batch->work, us);
  lane->stats.batches++;
  lane->stats.packets += batch->packets;
  lane->stats.coded_bytes += batch->packets * batch->datagram_bytes;
  lane->stats.busy_us += (uint64_t)us;
}

static void finish(weft_server_lane *lane, weft_server_batch *batch, weft_status status) {
  if (status == WEFT_OK) {
    count_done(lane, batch);
    leave(lane, batch);
    batch->status = WEFT_OK;
    weft_batch_ready(lane->server, batch);
    return;
  }
  if (status == WEFT_E_DEVICE || status == WEFT_E_DEVICE_LOST)
    fail_lane(lane, status);
  move_or_fail(lane, batch, status);
}

// --- the thread ---

static size_t depth_of(const weft_server_lane *lane) {
  return lane->ctx->device ? WEFT_LANE_DEPTH : 1;
}

// The last step of a product, without the lock: its bytes are there, or a status is.
static weft_status settle(weft_server_lane *lane, weft_server_batch *batch, weft_queue *queue,
                          weft_status status) {
  const weft_status waited = weft_queue_wait(queue);
  if (status == WEFT_OK)
    status = waited;
  if (status == WEFT_OK) {
    weft_batch_end(lane, batch);
    return status;
  }
  // Another lane may have to make it, in memory of its own kind.
  weft_encoder_free(batch->encoder);
  batch->encoder = NULL;
  if (batch->slab)
    weft_batch_drop_slab(lane->server, batch);
  return status;
}

static void begin_next(weft_server_lane *lane) {
  weft_server *server = lane->server;
  weft_server_batch *batch = pop(lane);
  const size_t slot = (lane->flying_first + lane->flying_count) % depth_of(lane);
  lane->flying[slot] = batch;
  lane->flying_count++;
  pthread_mutex_unlock(&server->lock);
  batch->start_us = weft_server_clock(server);
  weft_status status = weft_batch_begin(lane, batch, lane->queue[slot]);
  if (status != WEFT_OK)
    status = settle(lane, batch, lane->queue[slot], status);
  pthread_mutex_lock(&server->lock);
  if (status != WEFT_OK) {
    lane->flying_count--; // it was the newest
    finish(lane, batch, status);
  }
}

static void end_oldest(weft_server_lane *lane) {
  weft_server *server = lane->server;
  const size_t slot = lane->flying_first;
  weft_server_batch *batch = lane->flying[slot];
  pthread_mutex_unlock(&server->lock);
  const weft_status status = settle(lane, batch, lane->queue[slot], WEFT_OK);
  pthread_mutex_lock(&server->lock);
  lane->flying_first = (slot + 1) % depth_of(lane);
  lane->flying_count--;
  finish(lane, batch, status);
}

static void *run(void *user) {
  weft_server_lane *lane = user;
  weft_server *server = lane->server;
  pthread_mutex_lock(&server->lock);
  for (;;) {
    if (lane->head && lane->flying_count < depth_of(lane) && !server->stopping)
      begin_next(lane);
    else if (lane->flying_count > 0)
      end_oldest(lane);
    else if (server->stopping)
      break;
    else
      pthread_cond_wait(&lane->wake, &server->lock);
  }
  pthread_mutex_unlock(&server->lock);
  return NULL;
}

// --- life ---

weft_status weft_lane_start(weft_server *server, size_t index, weft_ctx *ctx) {
  weft_server_lane *lane = &server->lane[index];
  lane->server = server;
  lane->index = index;
  lane->ctx = ctx;
  lane->stats.backend = weft_ctx_backend(ctx);
  for (size_t i = 0; i < depth_of(lane); i++)
    WEFT_TRY(weft_queue_new(ctx, &lane->queue[i]));
  WEFT_TRY(weft_lane_calibrate(lane));
  if (pthread_cond_init(&lane->wake, NULL) != 0)
    return WEFT_E_THREAD;
  if (pthread_create(&lane->thread, NULL, run, lane) != 0) {
    pthread_cond_destroy(&lane->wake);
    return WEFT_E_THREAD;
  }
  lane->started = true;
  return WEFT_OK;
}

void weft_lane_stop(weft_server_lane *lane) {
  if (lane->started) {
    pthread_cond_signal(&lane->wake);
    pthread_join(lane->thread, NULL);
    pthread_cond_destroy(&lane->wake);
  }
  for (weft_server_batch *batch = pop(lane); batch; batch = pop(lane)) {
    weft_server_unref(lane->server, batch->segment);
    weft_batch_free(lane->server, batch);
  }
  for (size_t i = 0; i < WEFT_LANE_DEPTH; i++)
    weft_queue_free(lane->queue[i]);
}

// --- calibration ---

enum {
  CALIBRATION_BLOCKS = 64,
  CALIBRATION_BLOCK_BYTES = 1024,
  CALIBRATION_STEP = 4,         // each size is this times the last
  CALIBRATION_PACKETS = 16384,  // 16 MiB coded: enough that a GPU's floor does not show
  CALIBRATION_ENOUGH_US = 2000, // a product this long tells the rate
};

// Makes one product of the calibration segment and returns how long it took.
static weft_status time_product(weft_server_lane *lane, weft_server_segment *segment,
                                size_t packets, int64_t *us) {
  weft_server *server = lane->server;
  weft_server_want want = {.packets = (uint32_t)packets};
  segment->wants = &want;
  segment->want_count = 1;
  segment->want_packets = packets;
  server->stats.pending_packets += packets;
  weft_server_batch *batch = NULL;
  weft_status status = weft_batch_new(server, segment, &batch);
  if (status != WEFT_OK) {
    server->stats.pending_packets -= packets;
    return status;
  }
  batch->lane = lane->index;
  const int64_t start = weft_server_clock(server);
  status = weft_batch_begin(lane, batch, lane->queue[0]);
  status = settle(lane, batch, lane->queue[0], status);
  *us = weft_server_clock(server) - start;
  server->stats.ready_bytes -= batch->slab_bytes;
  weft_batch_free(server, batch);
  return status;
}

weft_status weft_lane_calibrate(weft_server_lane *lane) {
  weft_server *server = lane->server;
  const size_t bytes = (size_t)CALIBRATION_BLOCKS * CALIBRATION_BLOCK_BYTES;
  weft_server_segment segment = {
      .id = {.blocks = CALIBRATION_BLOCKS, .block_bytes = CALIBRATION_BLOCK_BYTES}};
  segment.data = weft_server_take_memory(server, bytes);
  if (!segment.data)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < bytes; i++)
    segment.data[i] = (uint8_t)(i * 167 + (i >> 8) * 89 + 1);
  const size_t limit = server->options.batch_packets;
  server->options.batch_packets = CALIBRATION_PACKETS;
  const size_t held = server->stats.segment_bytes;
  weft_status status = WEFT_OK;
  int64_t us = 0;
  for (size_t packets = 1;
       status == WEFT_OK && packets <= CALIBRATION_PACKETS && us < CALIBRATION_ENOUGH_US;
       packets *= CALIBRATION_STEP) {
    status = time_product(lane, &segment, packets, &us); // warms up: memory, code, the device
    if (status == WEFT_OK)
      status = time_product(lane, &segment, packets, &us);
    if (status == WEFT_OK)
      weft_cost_learn(&lane->cost, weft_cost_work(&segment.id, packets), us > 0 ? (double)us : 1);
  }
  server->options.batch_packets = limit;
  server->stats.segment_bytes = held;
  weft_segment_free(segment.resident[lane->index]);
  weft_server_give_memory(server, segment.data);
  return status;
}
