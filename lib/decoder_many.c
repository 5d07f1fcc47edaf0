// SPDX-License-Identifier: Apache-2.0
// Calls on many decoders at once: packets are gathered by decoder, and each thread of the context
// takes decoders of its own. Payloads for a device are brought into slots by one launch behind it.
#include <string.h>

#include "lib/batch.h"
#include "lib/decoder.h"

enum { LINE = 64 };

// One arrival's way into its slot.
typedef struct landing {
  uint32_t next; // arrival of the same decoder, or WEFT_NO_ARRIVAL
  size_t slot;   // where it was innovative
  uint8_t *undo; // (n)
  // Pinned memory for what the device cannot read in one piece where it lies: the vector alone, or
  // with the payload behind it. NULL: nothing.
  uint8_t *staged;
} landing;

typedef struct adding {
  weft_arrival *arrivals;
  size_t count;
  weft_mem mem;
  landing *landings;
  weft_decoder **decoders;
  size_t decoder_count;
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
  return mem == WEFT_MEM_DEVICE && !weft_decoder_on_device(first) ? WEFT_E_UNSUPPORTED : WEFT_OK;
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

static size_t staged_bytes(const adding *a, const weft_arrival *arrival) {
  const weft_segment_id *id = &arrival->decoder->id;
  if (a->mem == WEFT_MEM_HOST)
    return (size_t)id->blocks + id->block_bytes;
  return is_one_piece(arrival) ? 0 : id->blocks;
}

static void eliminate(void *user, size_t index) {
  const adding *a = user;
  weft_decoder *decoder = a->decoders[index];
  const size_t n = decoder->id.blocks;
  for (uint32_t i = decoder->first_arrival; i != WEFT_NO_ARRIVAL; i = a->landings[i].next) {
    weft_arrival *arrival = &a->arrivals[i];
    landing *l = &a->landings[i];
    arrival->status = weft_decoder_accept(decoder, &arrival->packet, l->undo, &l->slot);
    if (arrival->status != WEFT_OK || !l->staged)
      continue;
    memcpy(l->staged, decoder->vector, n);
    if (a->mem == WEFT_MEM_HOST)
      memcpy(l->staged + n, arrival->packet.payload, decoder->id.block_bytes);
  }
}

// What is to be copied into slots; gives how many pieces.
static size_t list_pieces(const adding *a, weft_device_piece *pieces) {
  size_t used = 0;
  for (size_t i = 0; i < a->count; i++) {
    const weft_arrival *arrival = &a->arrivals[i];
    const landing *l = &a->landings[i];
    if (arrival->status != WEFT_OK)
      continue;
    const size_t n = arrival->decoder->id.blocks, k = arrival->decoder->id.block_bytes;
    uint8_t *to = weft_decoder_device_slot(arrival->decoder, l->slot);
    const bool apart = l->staged && a->mem != WEFT_MEM_HOST;
    pieces[used++] = (weft_device_piece){to, l->staged ? l->staged : arrival->packet.coefficients,
                                         apart ? n : n + k};
    if (apart)
      pieces[used++] = (weft_device_piece){to + n, arrival->packet.payload, k};
  }
  return used;
}

// All memory is taken before anything changes.
static weft_status land(adding *a, weft_call *call, uint8_t *undo) {
  weft_ctx *ctx = call->queue->ctx;
  size_t bytes = 2 * a->count * sizeof(weft_device_piece);
  for (size_t i = 0; i < a->count; i++)
    bytes += staged_bytes(a, &a->arrivals[i]);
  weft_kept *kept;
  WEFT_TRY(weft_call_keep(ctx, call, bytes, &kept));
  weft_device_piece *pieces = (weft_device_piece *)(void *)kept->bytes;
  uint8_t *staged = (uint8_t *)(pieces + 2 * a->count);
  for (size_t i = 0; i < a->count; i++) {
    const size_t some = staged_bytes(a, &a->arrivals[i]);
    a->landings[i].undo = undo;
    a->landings[i].staged = some > 0 ? staged : NULL;
    undo += a->arrivals[i].decoder->id.blocks;
    staged += some;
  }
  weft_pool_run(ctx->pool, a->decoder_count, eliminate, a);
  WEFT_TRY(weft_decoders_clear(call, a->decoders, a->decoder_count));
  return weft_device_copy_pieces(&call->exec, pieces, list_pieces(a, pieces));
}

// Payloads may not have come: what was eliminated for them is taken back, the newest first.
static void take_back(const adding *a, weft_status why) {
  for (size_t i = a->count; i-- > 0;) {
    weft_arrival *arrival = &a->arrivals[i];
    if (arrival->status == WEFT_OK)
      weft_decoder_undo(arrival->decoder, a->landings[i].slot, a->landings[i].undo);
    arrival->status = why;
    arrival->decoder->zeroed = false;
  }
}

static weft_status add_all_on_device(adding *a, weft_ctx *ctx, weft_queue *queue, uint8_t *undo) {
  weft_call call;
  WEFT_TRY(weft_call_begin(ctx, queue, &call));
  for (size_t i = 0; i < a->count; i++)
    a->arrivals[i].status = WEFT_PENDING;
  const weft_status status = weft_call_end(ctx, &call, land(a, &call, undo));
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
  const size_t each = sizeof *a.landings + sizeof *a.decoders;
  size_t bytes = count * each;
  for (size_t i = 0; on_device(&a) && i < count; i++)
    bytes += arrivals[i].decoder->id.blocks;
  uint8_t *memory = weft_ctx_take(ctx, bytes, LINE);
  if (!memory)
    return WEFT_E_NOMEM;
  a.landings = (landing *)(void *)memory;
  a.decoders = (weft_decoder **)(a.landings + count);
  gather_by_decoder(&a);
  weft_status status = WEFT_OK;
  if (on_device(&a))
    status = add_all_on_device(&a, ctx, queue, memory + count * each);
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
  WEFT_TRY(weft_batch_check_coefficients(batch, &decoder->id));
  if (batch->coefficients_mem == WEFT_MEM_DEVICE && !on_device)
    return WEFT_E_UNSUPPORTED;
  return decoder->rank == 0 ? WEFT_PENDING : WEFT_OK;
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
  return reading->mem == WEFT_MEM_DEVICE && !weft_decoder_on_device(decoder) ? WEFT_E_UNSUPPORTED
                                                                             : WEFT_OK;
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
    WEFT_TRY(weft_call_begin(ctx, queue, &call));
    return weft_call_end(ctx, &call, weft_decoders_read_on_device(&call, readings, count));
  }
  for (size_t i = 0; i < count && status == WEFT_OK; i++)
    if (readings[i].status == WEFT_OK)
      status = readings[i].status = read_on_host(&readings[i]);
  return status;
}
