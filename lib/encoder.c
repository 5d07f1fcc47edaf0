// SPDX-License-Identifier: Apache-2.0
// The encoder: chooses coefficients, and has the context's row multiply them with the segment.
// Ho et al., "A Random Linear Network Coding Approach to Multicast" (2006); Chou, Wu and Jain,
// "Practical Network Coding" (2003), for segments and vectors that travel with the packets.
#include <string.h>

#include "lib/batch.h"
#include "lib/coefficients.h"
#include "lib/ctx.h"
#include "lib/random.h"
#include "lib/segment.h"
#include "weft/rlnc.h"

struct weft_encoder {
  const weft_segment *segment;
  weft_ctx *ctx;
  weft_encoder_options options;
  size_t next_block;  // systematic: the next source block to send; n when all were
  uint64_t next_seed; // seeded: of the next coded packet
  weft_random random;
};

weft_status weft_encoder_new(const weft_segment *segment, const weft_encoder_options *options,
                             weft_encoder **out) {
  if (!segment || !out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  weft_ctx *ctx = segment->ctx;
  weft_encoder *encoder = weft_ctx_take(ctx, sizeof *encoder, _Alignof(weft_encoder));
  if (!encoder)
    return WEFT_E_NOMEM;
  encoder->segment = segment;
  encoder->ctx = ctx;
  encoder->options = options ? *options : (weft_encoder_options){0};
  encoder->next_block = encoder->options.systematic ? 0 : segment->id.blocks;
  encoder->next_seed = encoder->options.first_seed;
  weft_random_init(&encoder->random);
  *out = encoder;
  return WEFT_OK;
}

void weft_encoder_free(weft_encoder *encoder) {
  if (encoder)
    weft_ctx_give(encoder->ctx, encoder);
}

weft_status weft_encoder_fix_random(weft_encoder *encoder, const uint8_t *key) {
  if (!encoder || !key)
    return WEFT_E_ARGUMENT;
  weft_random_fix(&encoder->random, key);
  return WEFT_OK;
}

// --- the next packets' coefficients ---

// Describes the next packet and writes its n coefficients. A sparse seed that stands for all zeros
// is passed over.
static weft_packet draw(weft_encoder *encoder, uint8_t *coefficients) {
  const weft_encoder_options *options = &encoder->options;
  weft_packet packet = {.id = encoder->segment->id};
  const size_t n = packet.id.blocks;
  if (encoder->next_block < n) {
    packet.mode = WEFT_PACKET_SYSTEMATIC;
    packet.index = (uint32_t)encoder->next_block++;
    memset(coefficients, 0, n);
    coefficients[packet.index] = 1;
  } else if (!options->seeded) {
    packet.mode = WEFT_PACKET_VECTOR;
    packet.coefficients = coefficients;
    if (options->density_q16 == 0)
      weft_random_nonzero(&encoder->random, coefficients, n);
    else
      weft_random_sparse(&encoder->random, options->density_q16, coefficients, n);
  } else if (options->density_q16 == 0) {
    packet.mode = WEFT_PACKET_DENSE;
    packet.seed = encoder->next_seed++;
    weft_coefficients_dense(&packet.id, packet.seed, coefficients);
  } else {
    packet.mode = WEFT_PACKET_SPARSE;
    packet.density_q16 = options->density_q16;
    do {
      packet.seed = encoder->next_seed++;
      weft_coefficients_sparse(&packet.id, packet.seed, packet.density_q16, coefficients);
    } while (weft_all_zero(coefficients, n));
  }
  return packet;
}

// --- payloads ---

// Where the row writes payloads: the caller's memory, unless that is ordinary memory and the row a
// device's. They then go through memory that the queue hands out when it is idle.
static weft_status reachable_rows(const weft_encoder *encoder, weft_call *call,
                                  const weft_batch *batch, weft_rows *out) {
  const size_t k = encoder->segment->id.block_bytes;
  *out = weft_batch_rows(batch, 0);
  if (!encoder->ctx->device || batch->mem != WEFT_MEM_HOST)
    return WEFT_OK;
  if (batch->count > SIZE_MAX / k)
    return WEFT_E_NOMEM;
  weft_kept *kept;
  WEFT_TRY(weft_call_keep(encoder->ctx, call, batch->count * k, &kept));
  kept->results = kept->bytes;
  kept->to = *out;
  kept->rows = batch->count;
  kept->row_bytes = k;
  *out = (weft_rows){.base = kept->bytes, .stride = k, .mem = WEFT_MEM_PINNED};
  return WEFT_OK;
}

// A matrix (count, n) where the row reads it without waiting: as it is on the host, else a copy.
typedef struct matrix {
  const uint8_t *a;
  size_t stride; // bytes
  weft_mem mem;
} matrix;

static weft_status reachable_matrix(const weft_encoder *encoder, weft_call *call, size_t count,
                                    const uint8_t *a, size_t stride, matrix *out) {
  const size_t n = encoder->segment->id.blocks;
  *out = (matrix){.a = a, .stride = stride, .mem = WEFT_MEM_HOST};
  if (!encoder->ctx->device)
    return WEFT_OK;
  weft_kept *kept;
  WEFT_TRY(weft_call_keep(encoder->ctx, call, count * n, &kept));
  for (size_t i = 0; i < count; i++)
    memcpy(kept->bytes + i * n, a + i * stride, n);
  *out = (matrix){.a = kept->bytes, .stride = n, .mem = WEFT_MEM_PINNED};
  return WEFT_OK;
}

// Rows [first, first + count) of `payloads` from `count` rows of coefficients.
static weft_status multiply(const weft_encoder *encoder, weft_call *call, size_t count,
                            const uint8_t *coefficients, size_t stride, weft_rows payloads,
                            size_t first) {
  const weft_segment *segment = encoder->segment;
  const weft_backend *row = encoder->ctx->row;
  if (count == 0)
    return WEFT_OK;
  matrix a;
  WEFT_TRY(reachable_matrix(encoder, call, count, coefficients, stride, &a));
  if (payloads.ptr)
    payloads.ptr += first;
  else
    payloads.base += first * payloads.stride;
  const weft_gemm product = {.m = count,
                             .k = segment->id.blocks,
                             .len = segment->id.block_bytes,
                             .a = a.a,
                             .a_stride = a.stride,
                             .a_mem = a.mem,
                             .x = segment->blocks,
                             .x_prepared = segment->operand,
                             .y = payloads};
  return row->gemm(row, &call->exec, &product, 1);
}

// Source blocks [first, first + count) as they are.
static weft_status copy_blocks(const weft_encoder *encoder, const weft_call *call, size_t first,
                               size_t count, weft_rows payloads) {
  const weft_segment *segment = encoder->segment;
  const size_t k = segment->id.block_bytes;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *block = weft_const_row(&segment->blocks, first + i);
    if (!encoder->ctx->device)
      memcpy(weft_row(&payloads, i), block, k);
    else
      WEFT_TRY(weft_device_copy(encoder->ctx->device, weft_row(&payloads, i), payloads.mem, block,
                                WEFT_MEM_DEVICE, k, call->exec.stream));
  }
  return WEFT_OK;
}

// --- batches ---

static weft_status code_batch(weft_encoder *encoder, const weft_batch *batch, weft_call *call) {
  const size_t n = encoder->segment->id.blocks;
  const size_t first = encoder->next_block;
  const size_t systematic = batch->count < n - first ? batch->count : n - first;
  uint8_t *coefficients = batch->coefficients;
  size_t stride = batch->count > 1 ? batch->coefficients_stride : n;
  if (!coefficients) {
    weft_kept *kept;
    if (batch->count > SIZE_MAX / n)
      return WEFT_E_NOMEM;
    WEFT_TRY(weft_call_keep(encoder->ctx, call, batch->count * n, &kept));
    coefficients = kept->bytes;
    stride = n;
  }
  weft_rows payloads;
  WEFT_TRY(reachable_rows(encoder, call, batch, &payloads));
  for (size_t i = 0; i < batch->count; i++) {
    weft_packet packet = draw(encoder, coefficients + i * stride);
    packet.payload = weft_batch_payload(batch, i);
    if (batch->packets)
      batch->packets[i] = packet;
  }
  WEFT_TRY(copy_blocks(encoder, call, first, systematic, payloads));
  return multiply(encoder, call, batch->count - systematic, coefficients + systematic * stride,
                  stride, payloads, systematic);
}

weft_status weft_encoder_batch(weft_encoder *encoder, const weft_batch *batch, weft_queue *queue) {
  if (!encoder || !batch)
    return WEFT_E_ARGUMENT;
  if (batch->count == 0)
    return WEFT_OK;
  WEFT_TRY(weft_batch_check_payloads(batch, &encoder->segment->id, encoder->ctx->device != NULL));
  if (batch->coefficients || !encoder->options.seeded)
    WEFT_TRY(weft_batch_check_coefficients(batch, &encoder->segment->id));
  else if (!batch->packets) // nothing would tell what the payloads are
    return WEFT_E_ARGUMENT;
  weft_call call;
  WEFT_TRY(weft_call_begin(encoder->ctx, queue, &call));
  const size_t next_block = encoder->next_block;
  const uint64_t next_seed = encoder->next_seed;
  weft_status status = code_batch(encoder, batch, &call);
  status = weft_call_end(encoder->ctx, &call, status);
  if (status != WEFT_OK) { // these packets were not made: the next call makes them
    encoder->next_block = next_block;
    encoder->next_seed = next_seed;
  }
  return status;
}

weft_status weft_encoder_combine(weft_encoder *encoder, size_t count, const uint8_t *coefficients,
                                 size_t coefficients_stride, const weft_batch *payloads,
                                 weft_queue *queue) {
  if (!encoder || !payloads || payloads->count != count || (count > 0 && !coefficients) ||
      (count > 1 && coefficients_stride < encoder->segment->id.blocks))
    return WEFT_E_ARGUMENT;
  if (count == 0)
    return WEFT_OK;
  WEFT_TRY(
      weft_batch_check_payloads(payloads, &encoder->segment->id, encoder->ctx->device != NULL));
  weft_call call;
  WEFT_TRY(weft_call_begin(encoder->ctx, queue, &call));
  const size_t stride = count > 1 ? coefficients_stride : encoder->segment->id.blocks;
  weft_rows rows;
  weft_status status = reachable_rows(encoder, &call, payloads, &rows);
  if (status == WEFT_OK)
    status = multiply(encoder, &call, count, coefficients, stride, rows, 0);
  return weft_call_end(encoder->ctx, &call, status);
}

// --- one datagram ---

static weft_packet_mode next_mode(const weft_encoder *encoder) {
  if (encoder->next_block < encoder->segment->id.blocks)
    return WEFT_PACKET_SYSTEMATIC;
  if (!encoder->options.seeded)
    return WEFT_PACKET_VECTOR;
  return encoder->options.density_q16 == 0 ? WEFT_PACKET_DENSE : WEFT_PACKET_SPARSE;
}

weft_status weft_encoder_next(weft_encoder *encoder, uint8_t *datagram, size_t capacity,
                              size_t *written) {
  if (!encoder || !datagram || !written)
    return WEFT_E_ARGUMENT;
  const weft_segment_id *id = &encoder->segment->id;
  const size_t bytes = weft_packet_bytes(id, next_mode(encoder));
  if (capacity < bytes)
    return WEFT_E_BUFFER;
  uint8_t coefficients[WEFT_MAX_BLOCKS];
  weft_packet packet;
  weft_batch batch = {.count = 1,
                      .packets = &packet,
                      .coefficients = coefficients,
                      .payload = datagram + bytes - id->block_bytes};
  WEFT_TRY(weft_encoder_batch(encoder, &batch, NULL));
  return weft_packet_write(&packet, datagram, capacity, written);
}
