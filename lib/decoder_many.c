// SPDX-License-Identifier: Apache-2.0
// Calls on many decoders at once: packets are gathered by decoder, and each thread of the context
// takes decoders of its own. Payloads for a device are brought into slots by one launch behind it.
#include <stdatomic.h>
#include <string.h>

#include "lib/batch.h"
#include "lib/decoder.h"

enum { LINE = 64 };

// One arrival's way into its slot.
typedef struct landing {
  uint32_t next; // arrival of the same decoder, or WEFT_NO_ARRIVAL
  size_t slot;   // where it was innovative
} landing;

typedef struct adding {
  weft_arrival *arrivals;
  size_t count;
  weft_mem mem;
  landing *landings;
  weft_decoder **decoders;
  size_t decoder_count;
  // On a device.
  size_t most_blocks; // the largest n
  uint8_t *undo;      // (count, most_blocks)
  // Pinned memory for what the device cannot read where it lies in one piece: vectors, or in host
  // memory payloads behind them too.
  uint8_t *staged;
  size_t staged_stride;
  weft_device_piece *pieces; // pinned
  atomic_size_t piece_count;
} adding;

static bool on_device(const adding *a) { return weft_decoder_on_device(a->arrivals[0].decoder); }

static weft_status check_arrivals(const weft_arrival *arrivals, size_t count, weft_mem mem) {
  if (!arrivals || count >= WEFT_NO_ARRIVAL)
    return WEFT_E_ARGUMENT;
  const weft_decoder *first = arrivals[0].decoder;
  for (size_t i = 0; i < count; i++) {
    const weft_decoder *decoder = arrivals[i].decoder;
    if (!decoder || !arrivals[i].packet.payload || decoder->ctx != first->ctx ||
        decoder->mem != first->mem)
      return WEFT_E_ARGUMENT;
  }
  return weft_mem_check(mem, weft_decoder_on_device(first));
}

// Chains the arrivals of each decoder in their order.
static void gather_by_decoder(adding *a) {
  for (uint32_t i = 0; i < a->count; i++) {
    weft_decoder *decoder = a->arrivals[i].decoder;
    a->landings[i].next = WEFT_NO_ARRIVAL;
    if (decoder->first_arrival == WEFT_NO_ARRIVAL) {
      decoder->first_arrival = i;
      a->decoders[a->decoder_count++] = decoder;
    } else {
      a->landings[decoder->last_arrival].next = i;
    }
    decoder->last_arrival = i;
  }
}

static void scatter(const adding *a) {
  for (size_t i = 0; i < a->decoder_count; i++)
    a->decoders[i]->first_arrival = WEFT_NO_ARRIVAL;
}

// --- in host memory ---

static void add_on_host(void *user, size_t index) {
  const adding *a = user;
  weft_decoder *decoder = a->decoders[index];
  for (uint32_t i = decoder->first_arrival; i != WEFT_NO_ARRIVAL; i = a->landings[i].next)
    a->arrivals[i].status = weft_decoder_add(decoder, &a->arrivals[i].packet);
}

static void add_all_on_host(adding *a, weft_pool *pool) {
  bool eager = false; // their reductions use the pool themselves
  for (size_t i = 0; i < a->decoder_count; i++)
    eager = eager || a->decoders[i]->eager;
  weft_pool_run(eager ? NULL : pool, a->decoder_count, add_on_host, a);
}

// --- on a device ---

static bool is_one_piece(const weft_arrival *arrival) {
  const weft_packet *packet = &arrival->packet;
  return packet->mode == WEFT_PACKET_VECTOR && packet->coefficients &&
         packet->coefficients + arrival->decoder->id.blocks == packet->payload;
}

// Lists what is to be copied into the slot of an innovative arrival.
static void list_pieces(adding *a, size_t i) {
  const weft_arrival *arrival = &a->arrivals[i];
  const weft_decoder *decoder = arrival->decoder;
  const size_t n = decoder->id.blocks, k = decoder->id.block_bytes;
  uint8_t *to = weft_decoder_device_slot(decoder, a->landings[i].slot);
  uint8_t *staged = a->staged + i * a->staged_stride;
  const bool on_host = a->mem == WEFT_MEM_HOST, one = on_host || is_one_piece(arrival);
  const size_t at = atomic_fetch_add(&a->piece_count, one ? 1 : 2);
  if (!one || on_host)
    memcpy(staged, decoder->vector, n);
  if (on_host)
    memcpy(staged + n, arrival->packet.payload, k);
  if (one) {
    a->pieces[at] = (weft_device_piece){to, on_host ? staged : arrival->packet.coefficients, n + k};
    return;
  }
  a->pieces[at] = (weft_device_piece){to, staged, n};
  a->pieces[at + 1] = (weft_device_piece){to + n, arrival->packet.payload, k};
}

static void eliminate(void *user, size_t index) {
  adding *a = user;
  weft_decoder *decoder = a->decoders[index];
  for (uint32_t i = decoder->first_arrival; i != WEFT_NO_ARRIVAL; i = a->landings[i].next) {
    weft_arrival *arrival = &a->arrivals[i];
    arrival->status = weft_decoder_accept(decoder, &arrival->packet, a->undo + i * a->most_blocks,
                                          &a->landings[i].slot);
    if (arrival->status == WEFT_OK)
      list_pieces(a, i);
  }
}

// All memory is taken before anything changes.
static weft_status land(adding *a, weft_call *call, size_t most_bytes) {
  enum { ALIGN = 16 };
  weft_ctx *ctx = call->queue->ctx;
  const size_t staged = a->most_blocks + (a->mem == WEFT_MEM_HOST ? most_bytes : 0);
  a->staged_stride = (staged + ALIGN - 1) / ALIGN * ALIGN;
  weft_kept *kept;
  WEFT_TRY(weft_call_keep(ctx, call, a->count * (2 * sizeof(weft_device_piece) + a->staged_stride),
                          &kept));
  a->pieces = (weft_device_piece *)(void *)kept->bytes;
  a->staged = (uint8_t *)(a->pieces + 2 * a->count);
  weft_pool_run(ctx->pool, a->decoder_count, eliminate, a);
  WEFT_TRY(weft_decoders_clear(call, a->decoders, a->decoder_count));
  return weft_device_copy_pieces(&call->exec, a->pieces, atomic_load(&a->piece_count));
}

// Payloads may not have come: what was eliminated for them is taken back, the newest first.
static void take_back(const adding *a, weft_status why) {
  for (size_t i = a->count; i-- > 0;) {
    weft_arrival *arrival = &a->arrivals[i];
    if (arrival->status == WEFT_OK)
      weft_decoder_undo(arrival->decoder, a->landings[i].slot, a->undo + i * a->most_blocks);
    arrival->status = why;
    arrival->decoder->zeroed = false;
  }
}

static weft_status add_all_on_device(adding *a, weft_ctx *ctx, weft_queue *queue,
                                     size_t most_bytes) {
  weft_call call;
  WEFT_TRY(weft_call_begin(ctx, queue, &call));
  for (size_t i = 0; i < a->count; i++)
    a->arrivals[i].status = WEFT_PENDING;
  const weft_status status = weft_call_end(ctx, &call, land(a, &call, most_bytes));
  if (status != WEFT_OK)
    take_back(a, status);
  return status;
}

weft_status weft_decoders_add(weft_arrival *arrivals, size_t count, weft_mem mem,
                              weft_queue *queue) {
  if (count == 0)
    return WEFT_OK;
  WEFT_TRY(check_arrivals(arrivals, count, mem));
  weft_ctx *ctx = arrivals[0].decoder->ctx;
  if (queue && queue->ctx != ctx)
    return WEFT_E_ARGUMENT;
  adding a = {.arrivals = arrivals, .count = count, .mem = mem};
  atomic_init(&a.piece_count, 0);
  size_t most_bytes = 0;
  for (size_t i = 0; on_device(&a) && i < count; i++) {
    const weft_segment_id *id = &arrivals[i].decoder->id;
    a.most_blocks = id->blocks > a.most_blocks ? id->blocks : a.most_blocks;
    most_bytes = id->block_bytes > most_bytes ? id->block_bytes : most_bytes;
  }
  const size_t each = sizeof *a.landings + sizeof *a.decoders;
  if (count > SIZE_MAX / (each + 2 * a.most_blocks + most_bytes + 64))
    return WEFT_E_NOMEM;
  uint8_t *memory = weft_ctx_take(ctx, count * (each + a.most_blocks), LINE);
  if (!memory)
    return WEFT_E_NOMEM;
  a.landings = (landing *)(void *)memory;
  a.decoders = (weft_decoder **)(a.landings + count);
  a.undo = memory + count * each;
  gather_by_decoder(&a);
  weft_status status = WEFT_OK;
  if (on_device(&a))
    status = add_all_on_device(&a, ctx, queue, most_bytes);
  else
    add_all_on_host(&a, ctx->pool);
  scatter(&a);
  weft_ctx_give(ctx, memory);
  return status;
}

// --- recoding ---

static weft_status check_batch(const weft_decoder *decoder, const weft_decoder *first,
                               const weft_batch *batch) {
  if (!decoder || decoder->ctx != first->ctx || decoder->mem != first->mem)
    return WEFT_E_ARGUMENT;
  if (batch->count == 0)
    return WEFT_OK;
  const bool on_device = weft_decoder_on_device(decoder);
  WEFT_TRY(weft_batch_check_payloads(batch, &decoder->id, on_device));
  return weft_batch_check_coefficients(batch, &decoder->id, on_device);
}

weft_status weft_decoders_recode(weft_decoder *const *decoders, const weft_batch *batches,
                                 size_t count, weft_queue *queue) {
  if (count == 0)
    return WEFT_OK;
  if (!decoders || !batches || !decoders[0])
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(check_batch(decoders[i], decoders[0], &batches[i]));
  weft_ctx *ctx = decoders[0]->ctx;
  if (queue && queue->ctx != ctx)
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++) // what is wrong is told before what is not there yet
    if (batches[i].count > 0 && decoders[i]->rank == 0)
      return WEFT_PENDING;
  if (!weft_decoder_on_device(decoders[0])) {
    for (size_t i = 0; i < count; i++)
      WEFT_TRY(weft_decoder_recode_batch(decoders[i], &batches[i]));
    return WEFT_OK;
  }
  weft_call call;
  WEFT_TRY(weft_call_begin(ctx, queue, &call));
  return weft_call_end(ctx, &call, weft_decoders_recode_on_device(&call, decoders, batches, count));
}

// --- reading ---

static weft_status check_reading(const weft_reading *reading, const weft_decoder *first) {
  const weft_decoder *decoder = reading->decoder;
  if (!decoder || decoder->ctx != first->ctx || decoder->mem != first->mem)
    return WEFT_E_ARGUMENT;
  const size_t n = decoder->id.blocks;
  if (reading->first > n || reading->count > n - reading->first ||
      (reading->count > 0 && !reading->out) ||
      (reading->count > 1 && reading->out_stride < decoder->id.block_bytes))
    return WEFT_E_ARGUMENT;
  return weft_mem_check(reading->mem, weft_decoder_on_device(decoder));
}

static bool all_known(const weft_reading *reading) {
  bool known = true;
  for (size_t i = 0; known && i < reading->count; i++)
    known = weft_decoder_has_block(reading->decoder, reading->first + i);
  return known;
}

static weft_status read_on_host(const weft_reading *reading) {
  for (size_t i = 0; i < reading->count; i++) {
    const uint8_t *block;
    WEFT_TRY(weft_decoder_block(reading->decoder, reading->first + i, &block));
    memcpy(reading->out + i * reading->out_stride, block, reading->decoder->id.block_bytes);
  }
  return WEFT_OK;
}

weft_status weft_decoders_read(weft_reading *readings, size_t count, weft_queue *queue) {
  if (count == 0)
    return WEFT_OK;
  if (!readings || !readings[0].decoder)
    return WEFT_E_ARGUMENT;
  const weft_decoder *first = readings[0].decoder;
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(check_reading(&readings[i], first));
  weft_ctx *ctx = first->ctx;
  if (queue && queue->ctx != ctx)
    return WEFT_E_ARGUMENT;
  for (size_t i = 0; i < count; i++)
    readings[i].status = all_known(&readings[i]) ? WEFT_OK : WEFT_PENDING;
  weft_status status = WEFT_OK;
  if (weft_decoder_on_device(first)) {
    weft_call call;
    status = weft_call_begin(ctx, queue, &call);
    if (status == WEFT_OK)
      status = weft_call_end(ctx, &call, weft_decoders_read_on_device(&call, readings, count));
  }
  for (size_t i = 0; i < count; i++) // what follows an error is not read either
    if (readings[i].status == WEFT_OK) {
      if (status == WEFT_OK && !weft_decoder_on_device(first))
        status = read_on_host(&readings[i]);
      readings[i].status = status;
    }
  return status;
}
