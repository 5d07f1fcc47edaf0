// SPDX-License-Identifier: Apache-2.0
// A lane: one context, one thread, the products assigned to it, and how long they take. All
// products that wait when the lane starts a flight are launched together.
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "lib/server/internal.h"

// --- choosing a lane ---

// A product that would finish within SHARE_US is not worth dividing among lanes; nor is one that
// itself takes less than WHOLE_US, since other products can keep the other lanes busy.
static const double SHARE_US = 200, WHOLE_US = 50;
// A lane with this much work has no use for more products; larger ones would serve it better.
static const double BUSY_US = 500;
// A part smaller than 1/64 of what waits is not worth a product of its own.
enum { SMALLEST_SHARE = 64 };

static double predict(const weft_server_lane *lane, double work) {
  const double us = lane->backlog_us > 0 ? weft_cost_predict(&lane->crowded, work) : 0;
  return us > 0 ? us : weft_cost_predict(&lane->alone, work);
}

// Returns the lane predicted to finish such work first, excluding those in `tried`, or NULL if none
// is left.
static weft_server_lane *first_to_finish(weft_server *server, double work, uint32_t tried,
                                         double *done_us) {
  weft_server_lane *best = NULL;
  for (size_t i = 0; i < server->lanes; i++) {
    weft_server_lane *lane = &server->lane[i];
    if (lane->failed || (tried >> i & 1u))
      continue;
    const double us = lane->backlog_us + predict(lane, work);
    if (!best || us < *done_us) {
      best = lane;
      *done_us = us;
    }
  }
  return best;
}

// Returns how many of the packets the lane makes within `room_us`; 0 if that is not worth it.
static size_t packets_within(const weft_server_lane *lane, const weft_segment_id *id,
                             size_t packets, double room_us) {
  if (room_us <= 0)
    return 0;
  const double all_us = predict(lane, weft_cost_work(id, packets));
  const double some = (double)packets * (all_us > room_us ? room_us / all_us : 1);
  const size_t part = (size_t)some;
  if (part == 0 || part < packets / SMALLEST_SHARE)
    return 0;
  // A device has a minimum duration, which the proportion above ignores.
  return predict(lane, weft_cost_work(id, part)) <= room_us ? part : 0;
}

// A lane that once seemed slow would never be used again, and its estimate never corrected: one in
// every EXPLORE_EVERY products that could go anywhere goes to the next best lane, unless that would
// take far longer.
enum { EXPLORE_EVERY = 256, EXPLORE_WORTH = 4 };

static weft_server_lane *next_best(weft_server *server, const weft_server_lane *best, double work,
                                   double us) {
  if (best->backlog_us > 0 || ++server->explored % EXPLORE_EVERY != 0)
    return NULL;
  double other_us = 0;
  weft_server_lane *other = first_to_finish(server, work, 1u << best->index, &other_us);
  return other && other->backlog_us <= 0 && other_us < EXPLORE_WORTH * us ? other : NULL;
}

// A slower lane gets what it can make before the fastest lane would have finished everything, which
// shortens the rest. All lanes therefore work while there is work, and finish together.
weft_server_share weft_server_next_share(weft_server *server, const weft_segment_id *id,
                                         size_t packets) {
  double done_us = 0;
  weft_server_lane *best = first_to_finish(server, weft_cost_work(id, packets), 0, &done_us);
  weft_server_share share = {.lane = best, .packets = packets};
  if (!best)
    return share;
  weft_server_lane *other = next_best(server, best, weft_cost_work(id, packets), done_us);
  if (other)
    return (weft_server_share){.lane = other, .packets = packets};
  if (done_us < SHARE_US || done_us - best->backlog_us < WHOLE_US)
    return share;
  size_t largest = 0;
  for (size_t i = 0; i < server->lanes; i++) {
    weft_server_lane *lane = &server->lane[i];
    if (lane == best || lane->failed)
      continue;
    const size_t part = packets_within(lane, id, packets, done_us - lane->backlog_us);
    if (part > largest) {
      largest = part;
      share = (weft_server_share){.lane = lane, .packets = part};
    }
  }
  return share;
}

bool weft_server_busy(const weft_server *server) {
  bool any = false;
  for (size_t i = 0; i < server->lanes; i++) {
    const weft_server_lane *lane = &server->lane[i];
    if (lane->failed)
      continue;
    if (lane->backlog_us < BUSY_US)
      return false;
    any = true;
  }
  return any;
}

bool weft_server_assign(weft_server *server, weft_server_lane *lane, weft_server_batch *batch) {
  double done_us = 0;
  if (!lane)
    lane = first_to_finish(server, batch->work, batch->tried, &done_us);
  if (!lane || server->stopping) // a lane that has ended would never run it
    return false;
  batch->lane = lane->index;
  batch->guess_us = predict(lane, batch->work);
  batch->next = NULL;
  lane->backlog_us += batch->guess_us;
  *(lane->tail ? &lane->tail->next : &lane->head) = batch;
  lane->tail = batch;
  server->running++;
  pthread_cond_signal(&lane->wake);
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

// --- finishing products; lock held ---

static void leave(weft_server_lane *lane, weft_server_batch *batch) {
  lane->server->running--;
  lane->backlog_us -= batch->guess_us;
  // Sums of doubles drift; an idle lane has no backlog.
  if (!lane->head && lane->flying_count == 0)
    lane->backlog_us = 0;
}

// Moves the batch to another lane if the caller allows that and one is left; otherwise its packets
// carry the status.
static void move_or_fail(weft_server_lane *lane, weft_server_batch *batch, weft_status status) {
  weft_server *server = lane->server;
  leave(lane, batch);
  batch->tried |= 1u << lane->index;
  if (server->options.fall_over && weft_server_assign(server, NULL, batch)) {
    server->stats.fallen_over++;
    return;
  }
  batch->status = status;
  weft_batch_ready(server, batch);
}

// A device that has reported an error is not used again: its results could be wrong.
static void fail_lane(weft_server_lane *lane, weft_status status) {
  lane->failed = true;
  lane->stats.failed = true;
  for (weft_server_batch *batch = pop(lane); batch; batch = pop(lane))
    move_or_fail(lane, batch, status);
}

// Divides a flight's duration among its products in proportion to their work.
static void count_done(weft_server_lane *lane, const weft_server_flight *flight) {
  const int64_t now = weft_server_clock(lane->server);
  // A flight that waited behind another on the same device is charged from the end of that one.
  const int64_t from =
      flight->start_us > lane->last_done_us ? flight->start_us : lane->last_done_us;
  const double us = (double)(now > from ? now - from : 1);
  lane->last_done_us = now;
  lane->stats.busy_us += (uint64_t)us;
  for (size_t i = 0; i < flight->count; i++) {
    const weft_server_batch *batch = flight->batch[i];
    // By a simulation's clock all products take equally long; predictions from such durations would
    // make lanes busy, or not, depending on how fast this machine codes.
    if (!lane->server->options.repeatable)
      weft_cost_learn(flight->crowded ? &lane->crowded : &lane->alone, batch->work,
                      us * batch->work / flight->work);
    lane->stats.batches++;
    lane->stats.packets += batch->packets;
    lane->stats.coded_bytes += batch->packets * batch->datagram_bytes;
  }
}

static bool is_of_device(weft_status status) {
  return status == WEFT_E_DEVICE || status == WEFT_E_DEVICE_LOST;
}

static void finish(weft_server_lane *lane, weft_server_batch *batch, weft_status status) {
  if (status == WEFT_OK) {
    leave(lane, batch);
    batch->status = WEFT_OK;
    weft_batch_ready(lane->server, batch);
    return;
  }
  if (is_of_device(status))
    fail_lane(lane, status);
  move_or_fail(lane, batch, status);
}

// --- the thread ---

static size_t depth_of(const weft_server_lane *lane) {
  return lane->ctx->device ? WEFT_LANE_DEPTH : 1;
}

// Ends a product, successful or failed; no lock.
static void settle(weft_server_lane *lane, weft_server_batch *batch, weft_status status) {
  if (status == WEFT_OK) {
    weft_batch_end(lane, batch);
    return;
  }
  // Another lane may have to make it, in its own kind of memory.
  weft_encoder_free(batch->encoder);
  batch->encoder = NULL;
  if (batch->slab)
    weft_batch_drop_slab(lane->server, batch);
}

static weft_status settle_flight(weft_server_lane *lane, const weft_server_flight *flight,
                                 weft_queue *queue, weft_status status) {
  const weft_status waited = weft_queue_wait(queue);
  if (status == WEFT_OK)
    status = waited;
  for (size_t i = 0; i < flight->count; i++)
    settle(lane, flight->batch[i], status);
  return status;
}

// Lock held.
static void finish_flight(weft_server_lane *lane, const weft_server_flight *flight,
                          weft_status status) {
  if (status == WEFT_OK)
    count_done(lane, flight);
  for (size_t i = 0; i < flight->count; i++)
    finish(lane, flight->batch[i], status);
}

// The packets of a product, and the coefficients that are held until its flight is made.
static size_t bytes_to_make(const weft_server_batch *batch) {
  return batch->slab_bytes + batch->packets * batch->segment->id.blocks;
}

// Takes the products for the next flight: all that wait, up to a number of bytes, so that the
// lane's flights overlap, and coefficients take little memory.
static void gather_flight(weft_server_lane *lane, weft_server_flight *flight) {
  enum { FLIGHT_BYTES = 4 << 20 };
  size_t bytes = 0;
  *flight = (weft_server_flight){.crowded = lane->flying_count > 0};
  while (lane->head && flight->count < WEFT_FLIGHT_MAX &&
         (flight->count == 0 || bytes + bytes_to_make(lane->head) <= FLIGHT_BYTES)) {
    weft_server_batch *batch = pop(lane);
    bytes += bytes_to_make(batch);
    flight->batch[flight->count++] = batch;
  }
  flight->crowded = flight->crowded || flight->count > 1;
}

// Prepares a flight's products. Those that cannot be made here leave the flight, for another lane
// or with a status. A device that has failed meanwhile is not used again: its status is returned,
// and applies to the products that are left.
static weft_status prepare_flight(weft_server_lane *lane, weft_server_flight *flight) {
  weft_status failed = WEFT_OK;
  size_t kept = 0;
  for (size_t i = 0; i < flight->count; i++) {
    weft_server_batch *batch = flight->batch[i];
    const weft_status status = failed != WEFT_OK ? failed : weft_batch_prepare(lane, batch);
    if (status == WEFT_OK) {
      flight->work += batch->work;
      flight->batch[kept++] = batch;
      continue;
    }
    failed = is_of_device(status) ? status : WEFT_OK;
    settle(lane, batch, status);
    pthread_mutex_lock(&lane->server->lock);
    finish(lane, batch, status);
    weft_server_unlock(lane->server);
  }
  flight->count = kept;
  return failed;
}

// Makes a flight's products one after the other and empties it: there was no memory for the
// coefficients of all of them at once. After a failure of the device none of the rest is tried.
static void make_apart(weft_server_lane *lane, weft_server_flight *flight, weft_queue *queue) {
  weft_server *server = lane->server;
  weft_status failed = WEFT_OK;
  for (size_t i = 0; i < flight->count; i++) {
    const weft_server_flight one = {.batch = {flight->batch[i]},
                                    .count = 1,
                                    .work = flight->batch[i]->work,
                                    .crowded = lane->flying_count > 1, // this flight is one of them
                                    .start_us = weft_server_clock(server)};
    weft_status status = failed != WEFT_OK ? failed : weft_flight_begin(lane, &one, queue);
    status = settle_flight(lane, &one, queue, status);
    failed = is_of_device(status) ? status : WEFT_OK;
    pthread_mutex_lock(&server->lock);
    finish_flight(lane, &one, status);
    weft_server_unlock(server);
  }
  flight->count = 0;
}

// Begins a flight whose products are prepared. If that fails, none of them is in progress.
static weft_status begin_flight(weft_server_lane *lane, weft_server_flight *flight,
                                weft_queue *queue) {
  const weft_status status = weft_flight_begin(lane, flight, queue);
  if ((status == WEFT_E_NOMEM || status == WEFT_E_DEVICE_NOMEM) && flight->count > 1) {
    make_apart(lane, flight, queue);
    return WEFT_OK;
  }
  return status == WEFT_OK ? WEFT_OK : settle_flight(lane, flight, queue, status);
}

static void begin_next(weft_server_lane *lane) {
  weft_server *server = lane->server;
  const size_t slot = (lane->flying_first + lane->flying_count) % depth_of(lane);
  weft_server_flight *flight = &lane->flying[slot];
  gather_flight(lane, flight);
  lane->flying_count++;
  weft_server_unlock(server);
  flight->start_us = weft_server_clock(server);
  weft_status status = prepare_flight(lane, flight);
  if (status != WEFT_OK)
    status = settle_flight(lane, flight, lane->queue[slot], status);
  else if (flight->count > 0)
    status = begin_flight(lane, flight, lane->queue[slot]);
  pthread_mutex_lock(&server->lock);
  if (status != WEFT_OK || flight->count == 0) {
    lane->flying_count--; // this flight is the newest
    if (flight->count > 0)
      finish_flight(lane, flight, status);
  }
}

static void end_oldest(weft_server_lane *lane) {
  weft_server *server = lane->server;
  const size_t slot = lane->flying_first;
  weft_server_flight *flight = &lane->flying[slot];
  weft_server_unlock(server);
  const weft_status status = settle_flight(lane, flight, lane->queue[slot], WEFT_OK);
  pthread_mutex_lock(&server->lock);
  lane->flying_first = (slot + 1) % depth_of(lane);
  lane->flying_count--;
  finish_flight(lane, flight, status);
}

static void free_buried(weft_server *server) {
  weft_server_unlock(server);
  pthread_mutex_lock(&server->lock);
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
    else if (server->buried)
      free_buried(server);
    else if (server->stopping)
      break;
    else
      pthread_cond_wait(&lane->wake, &server->lock);
  }
  weft_server_unlock(server);
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
  if (!server->options.repeatable)
    WEFT_TRY(weft_lane_calibrate(lane));
  if (pthread_cond_init(&lane->wake, NULL) != 0)
    return WEFT_E_THREAD;
  const weft_status status = weft_thread_start(&lane->thread, run, lane);
  if (status != WEFT_OK) {
    pthread_cond_destroy(&lane->wake);
    return status;
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
    pthread_mutex_lock(&lane->server->lock); // running lanes may have batches of the segment too
    weft_server_unref(lane->server, batch->segment);
    weft_server_unlock(lane->server);
    weft_batch_free(lane->server, batch);
  }
  for (size_t i = 0; i < WEFT_LANE_DEPTH; i++)
    weft_queue_free(lane->queue[i]);
}

// --- calibration ---

enum {
  CALIBRATION_BLOCKS = 64,
  CALIBRATION_BLOCK_BYTES = 1024,
  CALIBRATION_STEP = 4,         // factor from one size to the next
  CALIBRATION_PACKETS = 16384,  // 16 MiB coded: enough to hide a GPU's fixed cost
  CALIBRATION_ENOUGH_US = 2000, // a product this long gives the rate
  CALIBRATION_TIMES = 3,        // runs of each size
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
  weft_status status = weft_batch_new(server, segment, packets, &batch);
  if (status != WEFT_OK) {
    server->stats.pending_packets -= packets;
    return status;
  }
  batch->lane = lane->index;
  const weft_server_flight flight = {.batch = {batch}, .count = 1};
  const int64_t start = weft_server_clock(server);
  status = weft_batch_prepare(lane, batch);
  if (status == WEFT_OK)
    status = weft_flight_begin(lane, &flight, lane->queue[0]);
  status = settle_flight(lane, &flight, lane->queue[0], status);
  *us = weft_server_clock(server) - start;
  server->stats.ready_bytes -= batch->slab_bytes;
  weft_batch_free(server, batch);
  return status;
}

// Times several runs and keeps the fastest: disturbances only ever add time, and a lane that seems
// slow would not be tried again soon.
static weft_status quickest_product(weft_server_lane *lane, weft_server_segment *segment,
                                    size_t packets, int64_t *us) {
  for (int i = 0; i <= CALIBRATION_TIMES; i++) {
    int64_t once_us = 0;
    WEFT_TRY(time_product(lane, segment, packets, &once_us));
    if (i <= 1 || once_us < *us) // the first run warms up memory, code and device
      *us = once_us;
  }
  return WEFT_OK;
}

weft_status weft_lane_calibrate(weft_server_lane *lane) {
  weft_server *server = lane->server;
  const size_t bytes = (size_t)CALIBRATION_BLOCKS * CALIBRATION_BLOCK_BYTES;
  weft_server_segment segment = {
      .id = {.blocks = CALIBRATION_BLOCKS, .block_bytes = CALIBRATION_BLOCK_BYTES},
      .batch_packets = SIZE_MAX}; // it is in no list and never counts as full
  segment.data = weft_server_take_memory(server, bytes);
  if (!segment.data)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < bytes; i++)
    segment.data[i] = (uint8_t)(i * 167 + (i >> 8) * 89 + 1);
  const size_t held = server->stats.segment_bytes;
  weft_status status = WEFT_OK;
  int64_t us = 0;
  for (size_t packets = 1;
       status == WEFT_OK && packets <= CALIBRATION_PACKETS && us < CALIBRATION_ENOUGH_US;
       packets *= CALIBRATION_STEP) {
    status = quickest_product(lane, &segment, packets, &us);
    if (status == WEFT_OK)
      weft_cost_learn(&lane->alone, weft_cost_work(&segment.id, packets), us > 0 ? (double)us : 1);
  }
  server->stats.segment_bytes = held;
  weft_segment_free(segment.resident[lane->index]);
  weft_server_give_memory(server, segment.data);
  return status;
}
