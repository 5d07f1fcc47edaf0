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
  size_t next_mixed; // which held packet takes the next one in, once all places are taken
  // (capacity + 1, stride) rows of a payload and its coefficients, so that one product mixes both;
  // the last is where a single packet is mixed.
  uint8_t *rows;
  size_t stride; // bytes
  weft_random random;
};

static uint8_t *payload_of(const weft_recoder *recoder, size_t i) {
  return recoder->rows + i * recoder->stride;
}

static uint8_t *coefficients_of(const weft_recoder *recoder, size_t i) {
  return payload_of(recoder, i) + recoder->id.block_bytes;
}

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
  recoder->stride = ((size_t)id->block_bytes + id->blocks + LINE - 1) / LINE * LINE;
  weft_random_init(&recoder->random);
  recoder->rows = weft_ctx_take(ctx, (capacity + 1) * recoder->stride, LINE);
  if (!recoder->rows) {
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
  weft_ctx_give(ctx, recoder->rows);
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
    memcpy(mixed, coefficients_of(recoder, place), n);
    WEFT_TRY(add_scaled(recoder, factor, coefficients, mixed, n));
  } while (weft_all_zero(mixed, n));
  WEFT_TRY(add_scaled(recoder, factor, payload, payload_of(recoder, place), k));
  memcpy(coefficients_of(recoder, place), mixed, n);
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
  memcpy(coefficients_of(recoder, recoder->held), coefficients, n);
  memcpy(payload_of(recoder, recoder->held), packet->payload, k);
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

// out (m, len) = weights (m, held) * x (held, len), x being a part of every row
static weft_status mix(const weft_recoder *recoder, size_t m, const uint8_t *weights,
                       const uint8_t *x, size_t len, weft_rows out) {
  const weft_ctx *ctx = recoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, ctx->pool);
  const weft_gemm product = {.m = m,
                             .k = recoder->held,
                             .len = len,
                             .a = weights,
                             .a_stride = recoder->held,
                             .x = {.base = x, .stride = recoder->stride},
                             .y = out};
  return ctx->host->gemm(ctx->host, &exec, &product, 1);
}

// One packet on demand is bound by reading all that is held, so both parts are mixed in one pass
// and then put where they belong. Held packets may depend on each other, so a mix of them can be
// zero; it is then drawn again.
static weft_status recode_one(weft_recoder *recoder, uint8_t *coefficients, uint8_t *payload) {
  const size_t n = recoder->id.blocks, k = recoder->id.block_bytes;
  const weft_rows mixed = {.base = payload_of(recoder, recoder->capacity),
                           .stride = recoder->stride};
  uint8_t weights[WEFT_MAX_BLOCKS];
  do {
    weft_random_nonzero(&recoder->random, weights, recoder->held);
    WEFT_TRY(mix(recoder, 1, weights, recoder->rows, k + n, mixed));
  } while (weft_all_zero(mixed.base + k, n));
  memcpy(payload, mixed.base, k);
  memcpy(coefficients, mixed.base + k, n);
  return WEFT_OK;
}

// weights: (batch->count, held). Payloads go straight to where the caller wants them.
static weft_status recode_many(weft_recoder *recoder, const weft_batch *batch, uint8_t *weights) {
  const size_t n = recoder->id.blocks, held = recoder->held;
  const weft_rows out = {.base = batch->coefficients, .stride = batch->coefficients_stride};
  const uint8_t *coefficients = coefficients_of(recoder, 0);
  weft_random_nonzero(&recoder->random, weights, batch->count * held);
  WEFT_TRY(mix(recoder, batch->count, weights, coefficients, n, out));
  for (size_t i = 0; i < batch->count; i++) {
    const weft_rows one = {.base = weft_row(&out, i), .stride = n};
    while (weft_all_zero(one.base, n)) {
      weft_random_nonzero(&recoder->random, weights + i * held, held);
      WEFT_TRY(mix(recoder, 1, weights + i * held, coefficients, n, one));
    }
  }
  return mix(recoder, batch->count, weights, recoder->rows, recoder->id.block_bytes,
             weft_batch_rows(batch, 0));
}

static weft_status recode(weft_recoder *recoder, const weft_batch *batch) {
  if (batch->count == 1)
    return recode_one(recoder, batch->coefficients,
                      batch->payload_rows ? batch->payload_rows[0] : batch->payload);
  if (batch->count > SIZE_MAX / recoder->held)
    return WEFT_E_NOMEM;
  uint8_t *weights = weft_ctx_take(recoder->ctx, batch->count * recoder->held, LINE);
  if (!weights)
    return WEFT_E_NOMEM;
  const weft_status status = recode_many(recoder, batch, weights);
  weft_ctx_give(recoder->ctx, weights);
  return status;
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
  WEFT_TRY(recode(recoder, batch));
  weft_batch_describe_vectors(batch, &recoder->id);
  return WEFT_OK;
}

weft_status weft_recoder_next(weft_recoder *recoder, uint8_t *datagram, size_t capacity,
                              size_t *written) {
  if (!recoder || !datagram || !written)
    return WEFT_E_ARGUMENT;
  if (capacity < weft_packet_bytes(&recoder->id, WEFT_PACKET_VECTOR))
    return WEFT_E_BUFFER;
  weft_packet packet;
  const weft_batch batch = weft_batch_in_datagram(&recoder->id, &packet, datagram);
  WEFT_TRY(weft_recoder_batch(recoder, &batch));
  return weft_packet_write(&packet, datagram, capacity, written);
}
