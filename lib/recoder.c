// SPDX-License-Identifier: Apache-2.0
// The recoder: keeps packets as they came and mixes them, without elimination.
#include <string.h>

#include "lib/batch.h"
#include "lib/coefficients.h"
#include "lib/ctx.h"
#include "lib/random.h"
#include "weft/rlnc.h"

enum { LINE = 64 };

struct weft_recoder {
  weft_ctx *ctx;
  weft_segment_id id;
  size_t capacity, held;
  size_t next_mixed;     // which held packet takes the next one in, once all places are taken
  uint8_t *coefficients; // (capacity, n), dense
  uint8_t *payloads;     // (capacity, k), dense
  weft_random random;
};

weft_status weft_recoder_new(weft_ctx *ctx, const weft_segment_id *id, size_t capacity,
                             weft_recoder **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!ctx || !id || !weft_segment_id_valid(id) || capacity < 1 || capacity > id->blocks)
    return WEFT_E_ARGUMENT;
  weft_recoder *recoder = weft_ctx_take(ctx, sizeof *recoder, _Alignof(weft_recoder));
  if (!recoder)
    return WEFT_E_NOMEM;
  *recoder = (weft_recoder){.ctx = ctx, .id = *id, .capacity = capacity};
  weft_random_init(&recoder->random);
  recoder->coefficients = weft_ctx_take(ctx, capacity * id->blocks, LINE);
  recoder->payloads = weft_ctx_take(ctx, capacity * id->block_bytes, LINE);
  if (!recoder->coefficients || !recoder->payloads) {
    weft_recoder_free(recoder);
    return WEFT_E_NOMEM;
  }
  *out = recoder;
  return WEFT_OK;
}

void weft_recoder_free(weft_recoder *recoder) {
  if (!recoder)
    return;
  weft_ctx *ctx = recoder->ctx;
  weft_ctx_give(ctx, recoder->coefficients);
  weft_ctx_give(ctx, recoder->payloads);
  weft_ctx_give(ctx, recoder);
}

weft_status weft_recoder_fix_random(weft_recoder *recoder, const uint8_t *key) {
  if (!recoder || !key)
    return WEFT_E_ARGUMENT;
  weft_random_fix(&recoder->random, key);
  return WEFT_OK;
}

size_t weft_recoder_held(const weft_recoder *recoder) { return recoder->held; }

// y ^= factor * x
static weft_status add_scaled(const weft_recoder *recoder, uint8_t factor, const uint8_t *x,
                              uint8_t *y, size_t len) {
  const weft_ctx *ctx = recoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, ctx->pool);
  const weft_gemm product = {.m = 1,
                             .k = 1,
                             .len = len,
                             .a = &factor,
                             .a_stride = 1,
                             .x = {.base = x, .stride = len},
                             .y = {.base = y, .stride = len},
                             .accumulate = true};
  return ctx->host->gemm(ctx->host, &exec, &product, 1);
}

// Mixes a packet into one that is held, which must not become zero by it: if the two are multiples
// of each other and the factor is the wrong one, any other factor will do.
static weft_status mix_in(weft_recoder *recoder, const uint8_t *coefficients,
                          const uint8_t *payload) {
  const size_t n = recoder->id.blocks, k = recoder->id.block_bytes;
  const size_t place = recoder->next_mixed;
  uint8_t mixed[WEFT_MAX_BLOCKS];
  uint8_t factor;
  do {
    weft_random_nonzero(&recoder->random, &factor, 1);
    memcpy(mixed, recoder->coefficients + place * n, n);
    WEFT_TRY(add_scaled(recoder, factor, coefficients, mixed, n));
  } while (weft_all_zero(mixed, n));
  WEFT_TRY(add_scaled(recoder, factor, payload, recoder->payloads + place * k, k));
  memcpy(recoder->coefficients + place * n, mixed, n);
  recoder->next_mixed = (place + 1) % recoder->capacity;
  return WEFT_OK;
}

weft_status weft_recoder_add(weft_recoder *recoder, const weft_packet *packet) {
  if (!recoder || !packet || !packet->payload)
    return WEFT_E_ARGUMENT;
  if (!weft_segment_id_equal(&packet->id, &recoder->id))
    return WEFT_E_FOREIGN;
  WEFT_TRY(weft_packet_check(packet));
  uint8_t coefficients[WEFT_MAX_BLOCKS];
  WEFT_TRY(weft_packet_coefficients(packet, coefficients));
  const size_t n = recoder->id.blocks, k = recoder->id.block_bytes;
  if (weft_all_zero(coefficients, n))
    return WEFT_DEPENDENT;
  if (recoder->held == recoder->capacity)
    return mix_in(recoder, coefficients, packet->payload);
  memcpy(recoder->coefficients + recoder->held * n, coefficients, n);
  memcpy(recoder->payloads + recoder->held * k, packet->payload, k);
  recoder->held++;
  return WEFT_OK;
}

weft_status weft_recoder_add_datagram(weft_recoder *recoder, const uint8_t *datagram,
                                      size_t bytes) {
  if (!recoder || !datagram)
    return WEFT_E_ARGUMENT;
  weft_packet packet;
  WEFT_TRY(weft_packet_parse(datagram, bytes, &packet));
  return weft_recoder_add(recoder, &packet);
}

// --- mixing ---

// out (m, len) = weights (m, held) * x (held, len)
static weft_status mix(const weft_recoder *recoder, size_t m, const uint8_t *weights,
                       const uint8_t *x, size_t len, weft_rows out) {
  const weft_ctx *ctx = recoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, ctx->pool);
  const weft_gemm product = {.m = m,
                             .k = recoder->held,
                             .len = len,
                             .a = weights,
                             .a_stride = recoder->held,
                             .x = {.base = x, .stride = len},
                             .y = out};
  return ctx->host->gemm(ctx->host, &exec, &product, 1);
}

// Weights and coefficients of a batch. Held packets may depend on each other, so a mix of them can
// be zero; it is then drawn again.
static weft_status draw(weft_recoder *recoder, const weft_batch *batch, uint8_t *weights) {
  const size_t n = recoder->id.blocks, held = recoder->held;
  const weft_rows out = {.base = batch->coefficients, .stride = batch->coefficients_stride};
  weft_random_nonzero(&recoder->random, weights, batch->count * held);
  WEFT_TRY(mix(recoder, batch->count, weights, recoder->coefficients, n, out));
  for (size_t i = 0; i < batch->count; i++) {
    const weft_rows one = {.base = weft_row(&out, i), .stride = n};
    while (weft_all_zero(one.base, n)) {
      weft_random_nonzero(&recoder->random, weights + i * held, held);
      WEFT_TRY(mix(recoder, 1, weights + i * held, recoder->coefficients, n, one));
    }
  }
  return WEFT_OK;
}

// weights: (batch->count, held)
static weft_status recode(weft_recoder *recoder, const weft_batch *batch, uint8_t *weights) {
  WEFT_TRY(draw(recoder, batch, weights));
  WEFT_TRY(mix(recoder, batch->count, weights, recoder->payloads, recoder->id.block_bytes,
               weft_batch_rows(batch, 0)));
  for (size_t i = 0; batch->packets && i < batch->count; i++)
    batch->packets[i] =
        (weft_packet){.id = recoder->id,
                      .mode = WEFT_PACKET_VECTOR,
                      .coefficients = batch->coefficients + i * batch->coefficients_stride,
                      .payload = weft_batch_payload(batch, i)};
  return WEFT_OK;
}

weft_status weft_recoder_batch(weft_recoder *recoder, const weft_batch *batch) {
  if (!recoder || !batch)
    return WEFT_E_ARGUMENT;
  if (batch->count == 0)
    return WEFT_OK;
  WEFT_TRY(weft_batch_check_payloads(batch, &recoder->id, false));
  WEFT_TRY(weft_batch_check_coefficients(batch, &recoder->id));
  if (recoder->held == 0)
    return WEFT_PENDING;
  uint8_t one[WEFT_MAX_BLOCKS];
  if (batch->count == 1)
    return recode(recoder, batch, one);
  if (batch->count > SIZE_MAX / recoder->held)
    return WEFT_E_NOMEM;
  uint8_t *weights = weft_ctx_take(recoder->ctx, batch->count * recoder->held, LINE);
  if (!weights)
    return WEFT_E_NOMEM;
  const weft_status status = recode(recoder, batch, weights);
  weft_ctx_give(recoder->ctx, weights);
  return status;
}

weft_status weft_recoder_next(weft_recoder *recoder, uint8_t *datagram, size_t capacity,
                              size_t *written) {
  if (!recoder || !datagram || !written)
    return WEFT_E_ARGUMENT;
  if (capacity < weft_packet_bytes(&recoder->id, WEFT_PACKET_VECTOR))
    return WEFT_E_BUFFER;
  weft_packet packet;
  uint8_t *coefficients = datagram + WEFT_WIRE_HEADER_BYTES;
  const weft_batch batch = {.count = 1,
                            .packets = &packet,
                            .coefficients = coefficients,
                            .coefficients_stride = recoder->id.blocks,
                            .payload = coefficients + recoder->id.blocks,
                            .payload_stride = recoder->id.block_bytes};
  WEFT_TRY(weft_recoder_batch(recoder, &batch));
  return weft_packet_write(&packet, datagram, capacity, written);
}
