// SPDX-License-Identifier: Apache-2.0
// Eliminates the packets of a call, each thread of the context those of its own decoders, and has
// the device copy what is innovative to its slots (decoder_land.h).
#include "lib/decoder_land.h"

#include <string.h>

#include "lib/chunks.h"

// Whether vector and payload of an arrival can be copied to the slot in one piece.
static bool is_ready(const weft_adding *a, const weft_arrival *arrival) {
  const weft_packet *packet = &arrival->packet;
  return a->mem != WEFT_MEM_HOST && packet->mode == WEFT_PACKET_VECTOR && packet->coefficients &&
         packet->coefficients + arrival->decoder->id.blocks == packet->payload;
}

static uint8_t *staged_at(const weft_adding *a, uint32_t item) {
  return a->staged + item * a->staged_stride;
}

// Copies what the device cannot read to staging memory; the vector comes from the decoder. Returns
// the number of pieces that the arrival then consists of.
static size_t stage(const weft_adding *a, uint32_t item) {
  const weft_arrival *arrival = &a->arrivals[item];
  const weft_segment_id *id = &arrival->decoder->id;
  if (is_ready(a, arrival))
    return 1;
  memcpy(staged_at(a, item), arrival->decoder->vector, id->blocks);
  if (a->in_slices)
    return 0;
  if (a->mem != WEFT_MEM_HOST)
    return 2;
  memcpy(staged_at(a, item) + id->blocks, arrival->packet.payload, id->block_bytes);
  return 1;
}

// Lists the pieces to copy into the slot of an innovative arrival; returns the next free entry.
static weft_device_piece *list_pieces(const weft_adding *a, uint32_t item, size_t slot,
                                      weft_device_piece *piece) {
  const weft_arrival *arrival = &a->arrivals[item];
  const size_t n = arrival->decoder->id.blocks, k = arrival->decoder->id.block_bytes;
  uint8_t *to = weft_decoder_device_slot(arrival->decoder, slot);
  if (is_ready(a, arrival)) {
    *piece++ = (weft_device_piece){to, arrival->packet.coefficients, n + k};
  } else if (a->mem == WEFT_MEM_HOST) {
    *piece++ = (weft_device_piece){to, staged_at(a, item), n + k};
  } else {
    *piece++ = (weft_device_piece){to, staged_at(a, item), n};
    *piece++ = (weft_device_piece){to + n, arrival->packet.payload, k};
  }
  return piece;
}

// Prefetches the next vector, which is wherever the packet was received, while this one is
// eliminated.
static void prefetch_vector(const weft_adding *a, uint32_t item) {
  if (item == WEFT_NO_ITEM || a->arrivals[item].packet.mode != WEFT_PACKET_VECTOR)
    return;
  const uint8_t *vector = a->arrivals[item].packet.coefficients;
  for (size_t c = 0; vector && c < a->arrivals[item].decoder->id.blocks; c += WEFT_LINE)
    __builtin_prefetch(vector + c);
}

static void eliminate(void *user, size_t index) {
  weft_adding *a = user;
  weft_decoder *decoder = a->by.decoders[index];
  const weft_status ready = weft_decoder_clear(decoder); // pending pivots can then be undone
  weft_landing *at = a->landings + a->first_landing[index];
  size_t pieces = 0;
  for (uint32_t i = decoder->first_item; i != WEFT_NO_ITEM; i = a->by.next[i], at++) {
    size_t slot = 0;
    prefetch_vector(a, a->by.next[i]);
    at->status = ready;
    if (ready == WEFT_OK)
      at->status = weft_decoder_accept(decoder, &a->arrivals[i].packet, true, &slot);
    at->slot = (uint32_t)slot;
    if (at->status == WEFT_OK)
      pieces += stage(a, i);
  }
  if (a->in_slices)
    return;
  weft_device_piece *piece = a->pieces + atomic_fetch_add(&a->piece_count, pieces);
  at = a->landings + a->first_landing[index];
  for (uint32_t i = decoder->first_item; i != WEFT_NO_ITEM; i = a->by.next[i], at++)
    if (at->status == WEFT_OK)
      piece = list_pieces(a, i, at->slot, piece);
}

static void tell(const weft_adding *a) {
  const weft_landing *at = a->landings;
  for (size_t d = 0; d < a->by.count; d++)
    for (uint32_t i = a->by.decoders[d]->first_item; i != WEFT_NO_ITEM; i = a->by.next[i])
      a->arrivals[i].status = at++->status;
}

static weft_status eliminate_all(weft_adding *a, weft_call *call) {
  a->begun = true;
  weft_pool_run(call->queue->ctx->pool, a->by.count, eliminate, a);
  tell(a);
  return weft_decoders_clear(call, a->by.decoders, a->by.count);
}

// Innovative arrivals that are copied to the device together.
typedef struct landed {
  uint32_t item, slot;
} landed;

typedef struct slice {
  const weft_adding *a;
  const landed *landed;
  weft_device_piece *pieces; // (count) pinned
  uint8_t *staged;           // pinned
  size_t stride;
} slice;

static void fill_in(void *user, size_t i) {
  const slice *s = user;
  const weft_arrival *arrival = &s->a->arrivals[s->landed[i].item];
  const size_t n = arrival->decoder->id.blocks, k = arrival->decoder->id.block_bytes;
  uint8_t *to = s->staged + i * s->stride;
  memcpy(to, staged_at(s->a, s->landed[i].item), n);
  memcpy(to + n, arrival->packet.payload, k);
  s->pieces[i] =
      (weft_device_piece){weft_decoder_device_slot(arrival->decoder, s->landed[i].slot), to, n + k};
}

// Copies what has landed to its slots, a chunk of pinned memory at a time.
static weft_status send_slices(const weft_adding *a, weft_call *call, const landed *all,
                               size_t count, size_t most_bytes) {
  const size_t stride = weft_row_stride(a->most_blocks + most_bytes);
  const size_t each = sizeof(weft_device_piece) + stride, fit = WEFT_STAGED_CHUNK / each;
  weft_status status = WEFT_OK;
  for (size_t first = 0, some; first < count && status == WEFT_OK; first += some) {
    some = fit == 0 ? 1 : count - first < fit ? count - first : fit;
    weft_stage stage;
    uint8_t *memory;
    weft_stage_open(&stage, call, call->exec.stream, some * each);
    status = weft_stage_take(&stage, some * each, &memory);
    if (status == WEFT_OK) {
      weft_device_piece *pieces = (weft_device_piece *)(void *)(memory + some * stride);
      slice s = {a, all + first, pieces, memory, stride};
      weft_pool_run(call->queue->ctx->pool, some, fill_in, &s);
      status = weft_device_copy_pieces(&call->exec, pieces, some);
    }
    weft_stage_close(&stage);
  }
  return status;
}

static weft_status land_in_slices(weft_adding *a, weft_call *call, size_t most_bytes) {
  weft_ctx *ctx = call->queue->ctx;
  a->in_slices = true;
  a->staged_stride = weft_row_stride(a->most_blocks);
  landed *all = weft_ctx_take(ctx, a->count * (sizeof *all + a->staged_stride), WEFT_LINE);
  if (!all)
    return WEFT_E_NOMEM;
  a->staged = (uint8_t *)(all + a->count);
  weft_status status = eliminate_all(a, call);
  size_t used = 0;
  const weft_landing *at = a->landings;
  for (size_t d = 0; d < a->by.count; d++)
    for (uint32_t i = a->by.decoders[d]->first_item; i != WEFT_NO_ITEM; i = a->by.next[i], at++)
      if (at->status == WEFT_OK)
        all[used++] = (landed){i, at->slot};
  if (status == WEFT_OK)
    status = send_slices(a, call, all, used, most_bytes);
  weft_ctx_give(ctx, all);
  return status;
}

// Adds all arrivals. Memory that is needed at once is allocated before anything changes.
weft_status weft_decoders_land(weft_adding *a, weft_call *call, size_t most_bytes) {
  weft_ctx *ctx = call->queue->ctx;
  atomic_init(&a->piece_count, 0);
  a->staged_stride = weft_row_stride(a->most_blocks + (a->mem == WEFT_MEM_HOST ? most_bytes : 0));
  const size_t bytes = a->count * (2 * sizeof(weft_device_piece) + a->staged_stride);
  if (a->mem == WEFT_MEM_HOST && bytes > WEFT_STAGED_MOST)
    return land_in_slices(a, call, most_bytes);
  weft_kept *kept;
  WEFT_TRY(weft_call_keep(ctx, call, bytes, &kept));
  a->pieces = (weft_device_piece *)(void *)kept->bytes;
  a->staged = (uint8_t *)(a->pieces + 2 * a->count);
  WEFT_TRY(eliminate_all(a, call));
  return weft_device_copy_pieces(&call->exec, a->pieces, atomic_load(&a->piece_count));
}
