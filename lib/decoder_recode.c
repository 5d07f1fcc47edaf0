// SPDX-License-Identifier: Apache-2.0
// Uses a decoder as a recoder, at any rank. A random combination w of the matrix's rows is w itself
// in the pivot columns and w * C in the others; its payload is w * T over the slots. Both come from
// one product, since C and T share the rows of M.
#include <string.h>

#include "lib/batch.h"
#include "lib/decoder.h"

// Swaps the contents of the pivot columns, which are the packet's weights over the slots, with
// `weights`, which are the packet's coefficients there.
static void swap(const uint16_t *restrict pivots, size_t rank, uint8_t *restrict vector,
                 uint8_t *restrict weights) {
  for (size_t j = 0; j < rank; j++) {
    const uint8_t over_slots = vector[pivots[j]];
    vector[pivots[j]] = weights[j];
    weights[j] = over_slots;
  }
}

weft_status weft_decoder_combine(weft_decoder *decoder, size_t count, uint8_t *out,
                                 size_t out_stride, uint8_t *weights, weft_pool *pool) {
  const weft_ctx *ctx = decoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, pool);
  const size_t rank = decoder->rank;
  WEFT_TRY(weft_decoder_clear(decoder));
  weft_random_nonzero(&decoder->random, weights, count * rank);
  const uint8_t *rows[WEFT_MAX_BLOCKS];
  for (size_t j = 0; j < rank; j++)
    rows[j] = weft_decoder_row(decoder, decoder->pivots[j]);
  const weft_gemm product = {.m = count,
                             .k = rank,
                             .len = decoder->id.blocks,
                             .a = weights,
                             .a_stride = rank,
                             .x = {.ptr = rows},
                             .y = {.base = out, .stride = out_stride}};
  WEFT_TRY(weft_mix_vectors(ctx, &exec, &product));
  for (size_t i = 0; i < count; i++)
    swap(decoder->pivots, rank, out + i * out_stride, weights + i * rank);
  return WEFT_OK;
}

static weft_status multiply(weft_decoder *decoder, size_t count, const uint8_t *weights,
                            weft_rows payloads, weft_pool *pool) {
  const weft_ctx *ctx = decoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, pool);
  const uint8_t *slots[WEFT_MAX_BLOCKS];
  for (size_t j = 0; j < decoder->rank; j++)
    slots[j] = weft_decoder_slot(decoder, decoder->pivots[j]);
  const weft_gemm product = {.m = count,
                             .k = decoder->rank,
                             .len = decoder->id.block_bytes,
                             .a = weights,
                             .a_stride = decoder->rank,
                             .x = {.ptr = slots},
                             .y = payloads};
  return ctx->host->gemm(ctx->host, &exec, &product, 1);
}

// weights: (batch->count, rank)
static weft_status recode(weft_decoder *decoder, const weft_batch *batch, uint8_t *weights,
                          weft_pool *pool) {
  WEFT_TRY(weft_decoder_combine(decoder, batch->count, batch->coefficients,
                                batch->coefficients_stride, weights, pool));
  WEFT_TRY(multiply(decoder, batch->count, weights, weft_batch_rows(batch, 0), pool));
  weft_batch_describe_vectors(batch, &decoder->id);
  return WEFT_OK;
}

weft_status weft_decoder_recode_on_host(weft_decoder *decoder, const weft_batch *batch,
                                        weft_pool *pool) {
  if (batch->count == 1)
    return recode(decoder, batch, decoder->factors, pool);
  if (batch->count > SIZE_MAX / decoder->rank)
    return WEFT_E_NOMEM;
  uint8_t *weights = weft_ctx_take(decoder->ctx, batch->count * decoder->rank, 64);
  if (!weights)
    return WEFT_E_NOMEM;
  const weft_status status = recode(decoder, batch, weights, pool);
  weft_ctx_give(decoder->ctx, weights);
  return status;
}

weft_status weft_decoder_recode_batch(weft_decoder *decoder, const weft_batch *batch) {
  if (!decoder || !batch)
    return WEFT_E_ARGUMENT;
  if (batch->count == 0)
    return WEFT_OK;
  if (weft_decoder_on_device(decoder))
    return weft_decoders_recode(&decoder, batch, 1, NULL);
  WEFT_TRY(weft_batch_check_payloads(batch, &decoder->id, false));
  WEFT_TRY(weft_batch_check_coefficients(batch, &decoder->id, false));
  if (decoder->rank == 0)
    return WEFT_PENDING;
  return weft_decoder_recode_on_host(decoder, batch, decoder->ctx->pool);
}

weft_status weft_decoder_recode(weft_decoder *decoder, uint8_t *datagram, size_t capacity,
                                size_t *written) {
  if (!decoder || !datagram || !written)
    return WEFT_E_ARGUMENT;
  if (capacity < weft_packet_bytes(&decoder->id, WEFT_PACKET_VECTOR))
    return WEFT_E_BUFFER;
  weft_packet packet;
  const weft_batch batch = weft_batch_in_datagram(&decoder->id, &packet, datagram);
  WEFT_TRY(weft_decoder_recode_batch(decoder, &batch));
  return weft_packet_write(&packet, datagram, capacity, written);
}
