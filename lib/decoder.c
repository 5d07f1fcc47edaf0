// SPDX-License-Identifier: Apache-2.0
// The public calls of the progressive decoder: packets in, blocks out.
#include "lib/decoder.h"

#include <string.h>

#include "lib/coefficients.h"

// --- creating ---

// Returns the most bytes of the handle and the small arrays behind it.
static size_t handle_bytes(size_t n) {
  return sizeof(weft_decoder) + n * (sizeof(uint8_t *) + sizeof(uint16_t) + 4) + WEFT_VECTOR_STEP;
}

// Resets the decoder. Rows of the matrix without a pivot, and slots, may hold anything.
static void clear(weft_decoder *decoder, const weft_segment_id *id) {
  decoder->id = *id;
  decoder->rank = decoder->cleared = decoder->reduced = decoder->prefix = decoder->widest = 0;
  decoder->zeroed = false;
  memset(decoder->unknown, 0xFF, id->blocks);
}

static weft_decoder *new_handle(weft_ctx *ctx, const weft_segment_id *id) {
  const size_t n = id->blocks;
  weft_decoder *decoder = weft_ctx_take(ctx, handle_bytes(n), _Alignof(weft_decoder));
  if (!decoder)
    return NULL;
  *decoder =
      (weft_decoder){.ctx = ctx, .width = weft_vector_width(ctx, n), .first_item = WEFT_NO_ITEM};
  decoder->rows = (uint8_t **)(decoder + 1);
  decoder->pivots = (uint16_t *)(decoder->rows + n);
  decoder->unknown = (uint8_t *)(decoder->pivots + n);
  decoder->vector = decoder->unknown + n;
  decoder->work = decoder->vector + n;
  decoder->factors = decoder->work + decoder->width;
  memset(decoder->work, 0, decoder->width);
  weft_random_init(&decoder->random);
  clear(decoder, id);
  return decoder;
}

_Static_assert(sizeof(weft_decoder) % _Alignof(uint8_t *) == 0, "pointers follow the handle");

weft_status weft_decoder_new(weft_ctx *ctx, const weft_decoder_options *options,
                             weft_decoder **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx || !options || !weft_segment_id_valid(&options->id))
    return WEFT_E_ARGUMENT;
  const size_t n = options->id.blocks, k = options->id.block_bytes;
  const bool on_device = options->mem == WEFT_MEM_DEVICE;
  const size_t stride = options->blocks && options->blocks_stride ? options->blocks_stride : k;
  if (stride < k || !weft_stride_valid(n, stride, k))
    return WEFT_E_ARGUMENT;
  if (options->mem == WEFT_MEM_PINNED || (on_device && (options->blocks || options->eager)))
    return WEFT_E_ARGUMENT;
  WEFT_TRY(weft_mem_check(options->mem, ctx->device != NULL));
  weft_decoder *decoder = new_handle(ctx, &options->id);
  if (!decoder)
    return WEFT_E_NOMEM;
  decoder->eager = options->eager;
  decoder->own_blocks = !options->blocks;
  decoder->stride = options->blocks ? stride : weft_row_stride(k);
  decoder->mem = options->mem;
  decoder->matrix_stride = weft_row_stride(n);
  decoder->matrix = weft_ctx_take(ctx, n * decoder->matrix_stride, WEFT_LINE);
  weft_status status = decoder->matrix ? WEFT_OK : WEFT_E_NOMEM;
  for (size_t p = 0; status == WEFT_OK && p < n; p++)
    decoder->rows[p] = weft_decoder_row(decoder, p);
  if (status == WEFT_OK && on_device) {
    status = weft_decoder_take_slots(decoder);
  } else if (status == WEFT_OK) {
    decoder->blocks =
        options->blocks ? options->blocks : weft_ctx_take(ctx, n * decoder->stride, WEFT_LINE);
    status = decoder->blocks ? WEFT_OK : WEFT_E_NOMEM;
  }
  if (status != WEFT_OK) {
    weft_decoder_free(decoder);
    return status;
  }
  *out = decoder;
  return WEFT_OK;
}

void weft_decoder_free(weft_decoder *decoder) {
  if (!decoder)
    return;
  weft_ctx *ctx = decoder->ctx;
  if (decoder->own_blocks)
    weft_ctx_give(ctx, decoder->blocks);
  weft_free(ctx, WEFT_MEM_DEVICE, decoder->slots);
  weft_ctx_give(ctx, decoder->matrix);
  weft_ctx_give(ctx, decoder);
}

weft_status weft_decoder_reset(weft_decoder *decoder, const weft_segment_id *id) {
  if (!decoder || !id || !weft_segment_id_alike(id, &decoder->id))
    return WEFT_E_ARGUMENT;
  clear(decoder, id);
  return WEFT_OK;
}

weft_status weft_decoder_fix_random(weft_decoder *decoder, const uint8_t *key) {
  if (!decoder || !key)
    return WEFT_E_ARGUMENT;
  weft_random_fix(&decoder->random, key);
  return WEFT_OK;
}

size_t weft_decoder_memory_bytes(const weft_segment_id *id, bool own_blocks) {
  if (!id || !weft_segment_id_valid(id))
    return 0;
  const size_t n = id->blocks;
  return handle_bytes(n) + n * weft_row_stride(n) +
         (own_blocks ? n * weft_row_stride(id->block_bytes) : 0) + weft_decoder_reduce_bytes(id);
}

// --- packets ---

weft_status weft_decoder_add(weft_decoder *decoder, const weft_packet *packet) {
  if (!decoder || !packet || !packet->payload)
    return WEFT_E_ARGUMENT;
  if (weft_decoder_on_device(decoder)) {
    weft_arrival arrival = {.decoder = decoder, .packet = *packet};
    WEFT_TRY(weft_decoders_add(&arrival, 1, WEFT_MEM_HOST, NULL));
    return arrival.status;
  }
  size_t slot = 0;
  WEFT_TRY(weft_decoder_accept(decoder, packet, false, &slot));
  memcpy(weft_decoder_slot(decoder, slot), packet->payload, decoder->id.block_bytes);
  // If memory runs out, the payload stays deferred, and the error is reported when a block is read.
  if (decoder->eager)
    (void)weft_decoder_reduce(decoder, decoder->ctx->pool);
  return WEFT_OK;
}

weft_status weft_decoder_add_datagram(weft_decoder *decoder, const uint8_t *datagram,
                                      size_t bytes) {
  if (!decoder || !datagram)
    return WEFT_E_ARGUMENT;
  weft_packet packet;
  WEFT_TRY(weft_packet_parse(datagram, bytes, &packet));
  return weft_decoder_add(decoder, &packet);
}

// --- what is known ---

size_t weft_decoder_rank(const weft_decoder *decoder) { return decoder->rank; }

bool weft_decoder_complete(const weft_decoder *decoder) {
  return decoder->rank == decoder->id.blocks;
}

weft_status weft_decoder_settle(weft_decoder *decoder, size_t index, weft_pool *pool) {
  WEFT_TRY(weft_decoder_clear(decoder));
  // Once a complete decoder is read, all blocks are in their rows, as rlnc.h promises.
  if (weft_decoder_complete(decoder) || !weft_decoder_is_clean(decoder, index))
    return weft_decoder_reduce(decoder, pool);
  return WEFT_OK;
}

weft_status weft_decoder_block(weft_decoder *decoder, size_t index, const uint8_t **out) {
  if (!decoder || !out || index >= decoder->id.blocks)
    return WEFT_E_ARGUMENT;
  if (weft_decoder_on_device(decoder))
    return WEFT_E_UNSUPPORTED;
  if (!weft_decoder_has_block(decoder, index))
    return WEFT_PENDING;
  WEFT_TRY(weft_decoder_settle(decoder, index, decoder->ctx->pool));
  *out = weft_decoder_slot(decoder, index);
  return WEFT_OK;
}

// Reads the blocks that hold the bytes, and copies the part that is wanted.
static weft_status read_from_device(weft_decoder *decoder, size_t offset, size_t bytes,
                                    uint8_t *out) {
  const size_t k = decoder->id.block_bytes, first = offset / k;
  if (bytes == 0)
    return WEFT_OK;
  const size_t count = (offset + bytes - 1) / k - first + 1;
  uint8_t *blocks = weft_ctx_take(decoder->ctx, count * k, WEFT_LINE);
  if (!blocks)
    return WEFT_E_NOMEM;
  weft_reading reading = {
      .decoder = decoder, .first = first, .count = count, .out = blocks, .out_stride = k};
  weft_status status = weft_decoders_read(&reading, 1, NULL);
  if (status == WEFT_OK)
    status = reading.status;
  if (status == WEFT_OK)
    memcpy(out, blocks + offset % k, bytes);
  weft_ctx_give(decoder->ctx, blocks);
  return status;
}

weft_status weft_decoder_read(weft_decoder *decoder, size_t offset, size_t bytes, uint8_t *out) {
  if (!decoder || (!out && bytes > 0))
    return WEFT_E_ARGUMENT;
  const size_t k = decoder->id.block_bytes, total = decoder->id.blocks * k;
  if (offset > total || bytes > total - offset)
    return WEFT_E_ARGUMENT;
  if (!weft_decoder_complete(decoder))
    return WEFT_PENDING;
  if (weft_decoder_on_device(decoder))
    return read_from_device(decoder, offset, bytes, out);
  WEFT_TRY(weft_decoder_reduce(decoder, decoder->ctx->pool));
  while (bytes > 0) {
    const size_t at = offset % k;
    const size_t now = bytes < k - at ? bytes : k - at;
    memcpy(out, weft_decoder_slot(decoder, offset / k) + at, now);
    out += now;
    offset += now;
    bytes -= now;
  }
  return WEFT_OK;
}
