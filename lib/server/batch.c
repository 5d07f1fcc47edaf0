// SPDX-License-Identifier: Apache-2.0
// One product of the streaming server: gathered, coded into a slab of datagrams, handed out.
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "lib/server/internal.h"

enum { DATAGRAM_ALIGN = 32 }; // a dense header is 32 bytes, so payloads are aligned as well

static weft_packet_mode mode_of(const weft_server *server) {
  return server->options.density_q16 > 0 ? WEFT_PACKET_SPARSE : WEFT_PACKET_DENSE;
}

static size_t stride_of(size_t datagram_bytes) {
  return (datagram_bytes + DATAGRAM_ALIGN - 1) / DATAGRAM_ALIGN * DATAGRAM_ALIGN;
}

static void shape_slab(const weft_server *server, weft_server_batch *batch) {
  const weft_segment_id *id = &batch->segment->id;
  batch->datagram_bytes = weft_packet_bytes(id, mode_of(server));
  batch->payload_at = batch->datagram_bytes - id->block_bytes;
  batch->stride = stride_of(batch->datagram_bytes);
  batch->slab_bytes = batch->stride * batch->packets;
}

size_t weft_batch_stride(const weft_server *server, const weft_segment_id *id) {
  return stride_of(weft_packet_bytes(id, mode_of(server)));
}

size_t weft_batch_most(const weft_server *server, const weft_segment_id *id) {
  const size_t stride = weft_batch_stride(server, id);
  const size_t fit = server->options.ready_bytes / WEFT_READY_PARTS / stride;
  const size_t most = server->options.batch_packets;
  return fit > most ? most : fit > 0 ? fit : 1;
}

weft_status weft_batch_new(weft_server *server, weft_server_segment *segment, size_t packets,
                           weft_server_batch **out) {
  const bool sparse = server->options.density_q16 > 0;
  weft_server_batch *batch = weft_server_take_memory(server, sizeof *batch);
  if (!batch)
    return WEFT_E_NOMEM;
  *batch = (weft_server_batch){
      .segment = segment, .stream = segment->id.stream, .segment_id = segment->id.segment};
  // Each want that the batch draws on has at least one packet in it.
  const size_t wants = segment->want_count < packets ? segment->want_count : packets;
  batch->wants = weft_server_take_memory(server, wants * sizeof *batch->wants);
  if (sparse)
    batch->headers = weft_server_take_memory(server, packets * sizeof *batch->headers);
  if (!batch->wants || (sparse && !batch->headers)) {
    weft_batch_free(server, batch);
    return WEFT_E_NOMEM;
  }
  weft_wants_move(server, segment, packets, batch);
  shape_slab(server, batch);
  batch->first_seed = segment->next_seed;
  // A sparse encoder skips seeds whose coefficients are all zero, so each product gets a range of
  // its own.
  segment->next_seed += sparse ? (uint64_t)1 << 32 : packets;
  batch->work = weft_cost_work(&segment->id, packets);
  batch->unreleased = packets;
  segment->refs++;
  server->stats.ready_bytes += batch->slab_bytes;
  *out = batch;
  return WEFT_OK;
}

static weft_status make_resident(weft_server_lane *lane, weft_server_segment *segment) {
  if (segment->resident[lane->index])
    return WEFT_OK;
  const size_t bytes = (size_t)segment->id.blocks * segment->id.block_bytes;
  const weft_segment_options options = {.id = segment->id,
                                        .data = segment->data,
                                        .bytes = bytes,
                                        .mem = WEFT_MEM_HOST,
                                        .borrow = true};
  WEFT_TRY(weft_segment_new(lane->ctx, &options, NULL, &segment->resident[lane->index]));
  if (lane->ctx->device) {
    pthread_mutex_lock(&lane->server->lock);
    segment->bytes += bytes;
    lane->server->stats.segment_bytes += bytes;
    pthread_mutex_unlock(&lane->server->lock);
  }
  return WEFT_OK;
}

// Writes the headers while the product runs, which does not touch them. Dense packets differ only
// in their seeds, which count up; for sparse ones the encoder has recorded which seeds it used.
static weft_status write_headers(weft_server_batch *batch) {
  weft_packet packet = {.id = batch->segment->id, .mode = WEFT_PACKET_DENSE};
  for (size_t i = 0; i < batch->packets; i++) {
    packet.seed = batch->first_seed + i;
    if (batch->headers)
      packet = batch->headers[i];
    packet.payload = NULL;
    size_t written = 0;
    WEFT_TRY(weft_packet_write(&packet, batch->slab + i * batch->stride, batch->stride, &written));
  }
  return WEFT_OK;
}

// --- slabs: host lanes keep theirs for reuse; a device caches its own memory ---

static void *take_spare(weft_server_lane *lane, size_t room) {
  void *slab = NULL;
  pthread_mutex_lock(&lane->server->lock);
  size_t i = lane->spares;
  while (i > 0 && lane->spare[i - 1].room != room)
    i--;
  if (i > 0) {
    slab = lane->spare[i - 1].slab;
    memmove(&lane->spare[i - 1], &lane->spare[i], (lane->spares-- - i) * sizeof *lane->spare);
  }
  pthread_mutex_unlock(&lane->server->lock);
  return slab;
}

// Keeps a spare slab. Moves the oldest to `gone` if there are too many, and returns how many: sizes
// that are no longer used make room for new ones. Up to WEFT_FEW_SPARES are kept regardless of
// size; more only while they are small, since many small slabs are in use at once.
static size_t keep_spare(weft_server_lane *lane, weft_server_spare spare,
                         weft_server_spare gone[WEFT_LANE_SPARES]) {
  size_t bytes = spare.room, out = 0;
  pthread_mutex_lock(&lane->server->lock);
  const size_t most = lane->server->options.ready_bytes / WEFT_READY_PARTS;
  for (size_t i = 0; i < lane->spares; i++)
    bytes += lane->spare[i].room;
  while (lane->spares - out >= WEFT_FEW_SPARES &&
         (lane->spares - out == WEFT_LANE_SPARES || bytes > most)) {
    gone[out] = lane->spare[out];
    bytes -= gone[out++].room;
  }
  lane->spares -= out;
  memmove(&lane->spare[0], &lane->spare[out], lane->spares * sizeof *lane->spare);
  lane->spare[lane->spares++] = spare;
  pthread_mutex_unlock(&lane->server->lock);
  return out;
}

bool weft_server_free_spares(weft_server *server) {
  bool any = false;
  for (size_t i = 0; i < server->lanes; i++) {
    weft_server_lane *lane = &server->lane[i];
    weft_server_spare spare[WEFT_LANE_SPARES];
    pthread_mutex_lock(&server->lock);
    const size_t count = lane->spares;
    memcpy(spare, lane->spare, sizeof spare);
    lane->spares = 0;
    pthread_mutex_unlock(&server->lock);
    for (size_t j = 0; j < count; j++)
      weft_free(lane->ctx, WEFT_MEM_HOST, spare[j].slab);
    any = any || count > 0;
  }
  return any;
}

// Whether a slab of this size can be used for other products too.
static bool is_rounded(size_t room) { return (room & (room - 1)) == 0; }

// Provides a slab whose size is rounded up so that it can be reused, as fresh pages cost the host
// more than coding into them; but not if memory is `scarce`.
static weft_status take_slab(weft_server_lane *lane, weft_server_batch *batch, bool scarce) {
  void *slab = NULL;
  batch->slab_mem = lane->ctx->device ? WEFT_MEM_PINNED : WEFT_MEM_HOST;
  batch->slab_room = batch->slab_bytes;
  if (!lane->ctx->device && !scarce) {
    batch->slab_room = (size_t)1 << 12;
    while (batch->slab_room < batch->slab_bytes)
      batch->slab_room *= 2;
    slab = take_spare(lane, batch->slab_room);
  }
  if (!slab)
    WEFT_TRY(weft_alloc(lane->ctx, batch->slab_mem, batch->slab_room, &slab));
  batch->slab = slab;
  return WEFT_OK;
}

void weft_batch_drop_slab(weft_server *server, weft_server_batch *batch) {
  weft_server_lane *lane = &server->lane[batch->lane];
  weft_server_spare gone[WEFT_LANE_SPARES] = {{batch->slab, batch->slab_room}};
  batch->slab = NULL;
  const bool keep = !lane->ctx->device && is_rounded(batch->slab_room);
  const size_t count = keep ? keep_spare(lane, gone[0], gone) : 1;
  for (size_t i = 0; i < count; i++)
    weft_free(lane->ctx, batch->slab_mem, gone[i].slab);
}

static weft_status prepare(weft_server_lane *lane, weft_server_batch *batch, bool scarce) {
  WEFT_TRY(make_resident(lane, batch->segment));
  if (!batch->slab)
    WEFT_TRY(take_slab(lane, batch, scarce));
  const weft_encoder_options options = {.seeded = true,
                                        .first_seed = batch->first_seed,
                                        .density_q16 = lane->server->options.density_q16};
  return weft_encoder_new(batch->segment->resident[lane->index], &options, &batch->encoder);
}

weft_status weft_batch_prepare(weft_server_lane *lane, weft_server_batch *batch) {
  const weft_status status = prepare(lane, batch, false);
  if (status != WEFT_E_NOMEM)
    return status;
  (void)weft_server_free_spares(lane->server);
  if (batch->slab && !lane->ctx->device) { // may be twice as large as it must
    weft_free(lane->ctx, batch->slab_mem, batch->slab);
    batch->slab = NULL;
  }
  return prepare(lane, batch, true);
}

static weft_status begin(const weft_server_flight *flight, weft_queue *queue) {
  weft_encoder *encoders[WEFT_FLIGHT_MAX];
  weft_batch coded[WEFT_FLIGHT_MAX];
  for (size_t i = 0; i < flight->count; i++) {
    const weft_server_batch *batch = flight->batch[i];
    encoders[i] = batch->encoder;
    coded[i] = (weft_batch){.count = batch->packets,
                            .packets = batch->headers,
                            .payload = batch->slab + batch->payload_at,
                            .payload_stride = batch->stride,
                            .mem = batch->slab_mem};
  }
  WEFT_TRY(weft_encoder_batches(encoders, coded, flight->count, queue));
  for (size_t i = 0; i < flight->count; i++)
    WEFT_TRY(write_headers(flight->batch[i]));
  return WEFT_OK;
}

weft_status weft_flight_begin(weft_server_lane *lane, const weft_server_flight *flight,
                              weft_queue *queue) {
  const weft_status status = begin(flight, queue);
  if (status != WEFT_E_NOMEM || !weft_server_free_spares(lane->server))
    return status;
  return begin(flight, queue);
}

void weft_batch_end(weft_server_lane *lane, weft_server_batch *batch) {
  weft_encoder_free(batch->encoder);
  batch->encoder = NULL;
  weft_server_give_memory(lane->server, batch->headers);
  batch->headers = NULL;
}

void weft_batch_ready(weft_server *server, weft_server_batch *batch) {
  weft_server_unref(server, batch->segment);
  batch->segment = NULL;
  batch->next = NULL;
  *(server->ready_tail ? &server->ready_tail->next : &server->ready_head) = batch;
  server->ready_tail = batch;
  weft_server_signal(server);
}

void weft_batch_free(weft_server *server, weft_server_batch *batch) {
  if (!batch)
    return;
  if (batch->slab)
    weft_batch_drop_slab(server, batch);
  weft_server_give_memory(server, batch->headers);
  weft_server_give_memory(server, batch->wants);
  weft_server_give_memory(server, batch);
}
