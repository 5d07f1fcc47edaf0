// SPDX-License-Identifier: Apache-2.0
// The recoder: keeps packets as received and mixes them, without elimination.
#include <stdbool.h>
#include <string.h>

#include "lib/batch.h"
#include "lib/coefficients.h"
#include "lib/ctx.h"
#include "lib/expand.h"
#include "lib/random.h"
#include "lib/vectors.h"
#include "weft/rlnc.h"

enum {
  // Held payloads are stored in blocks of columns, so that the product for one packet reads
  // adjacent memory; as many bytes as such a product processes at a time (kernels/tile.h).
  COLUMNS = 4096,
  TOGETHER = 16 // parts of a packet that one call multiplies
};

struct weft_recoder {
  weft_ctx *ctx;
  weft_segment_id id;
  size_t capacity, held;
  size_t next_mixed; // the held packet that the next one is mixed into, once all places are taken
  size_t parts; // parts of a packet: its coefficients, then its payload in pieces of COLUMNS bytes
  bool backwards; // the last single packet was mixed from the last held one to the first
  uint8_t *bytes; // part by part: (capacity, stride of the part)
  // Part by part, (2, capacity): the rows in order, then in reverse.
  const uint8_t **rows;
  weft_random random;
};

typedef struct part {
  uint8_t *base;
  size_t stride;      // bytes, a multiple of WEFT_LINE
  size_t offset, len; // its byte range of the coefficients or the payload
  const uint8_t *const *rows;
} part;

// Part 0 is the coefficients.
static part part_of(const weft_recoder *recoder, size_t index) {
  const size_t n = recoder->id.blocks, k = recoder->id.block_bytes;
  const uint8_t *const *rows = recoder->rows + index * 2 * recoder->capacity;
  if (index == 0)
    return (part){recoder->bytes, weft_row_stride(n), 0, n, rows};
  const size_t offset = (index - 1) * COLUMNS;
  const size_t len = k - offset < COLUMNS ? k - offset : COLUMNS;
  uint8_t *base = recoder->bytes + recoder->capacity * (weft_row_stride(n) + offset);
  return (part){base, weft_row_stride(len), offset, len, rows};
}

static uint8_t *coefficients_of(const weft_recoder *recoder, size_t i) {
  return recoder->bytes + i * weft_row_stride(recoder->id.blocks);
}

static weft_status take_memory(weft_recoder *recoder) {
  const size_t n = recoder->id.blocks, k = recoder->id.block_bytes, capacity = recoder->capacity;
  recoder->parts = 1 + (k + COLUMNS - 1) / COLUMNS;
  recoder->bytes =
      weft_ctx_take(recoder->ctx, capacity * (weft_row_stride(n) + weft_row_stride(k)), WEFT_LINE);
  recoder->rows = weft_ctx_take(recoder->ctx, recoder->parts * 2 * capacity * sizeof *recoder->rows,
                                _Alignof(uint8_t *));
  if (!recoder->bytes || !recoder->rows)
    return WEFT_E_NOMEM;
  for (size_t p = 0; p < recoder->parts; p++) {
    const part at = part_of(recoder, p);
    const uint8_t **rows = recoder->rows + p * 2 * capacity;
    for (size_t i = 0; i < capacity; i++)
      rows[i] = rows[2 * capacity - 1 - i] = at.base + i * at.stride;
  }
  return WEFT_OK;
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
  weft_random_init(&recoder->random);
  const weft_status status = take_memory(recoder);
  if (status != WEFT_OK) {
    weft_recoder_free(recoder);
    return status;
  }
  *out = recoder;
  return WEFT_OK;
}

void weft_recoder_free(weft_recoder *recoder) {
  if (!recoder)
    return;
  weft_ctx *ctx = recoder->ctx;
  weft_ctx_give(ctx, recoder->bytes);
  weft_ctx_give(ctx, recoder->rows);
  weft_ctx_give(ctx, recoder);
}

weft_status weft_recoder_fix_random(weft_recoder *recoder, const uint8_t *key) {
  if (!recoder || !key)
    return WEFT_E_ARGUMENT;
  weft_random_fix(&recoder->random, key);
  recoder->backwards = false; // it decides which weight goes to which packet
  return WEFT_OK;
}

weft_status weft_recoder_reset(weft_recoder *recoder, const weft_segment_id *id) {
  if (!recoder || !id || !weft_segment_id_alike(id, &recoder->id))
    return WEFT_E_ARGUMENT;
  recoder->id = *id;
  recoder->held = recoder->next_mixed = 0;
  recoder->backwards = false;
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

// Mixes a packet into a held one, which must not become zero: if the two are multiples of each
// other and the factor happens to cancel them, any other factor will do.
static weft_status mix_in(weft_recoder *recoder, const uint8_t *coefficients,
                          const uint8_t *payload) {
  const size_t n = recoder->id.blocks;
  const size_t place = recoder->next_mixed;
  uint8_t mixed[WEFT_MAX_BLOCKS];
  uint8_t factor;
  do {
    weft_random_nonzero(&recoder->random, &factor, 1);
    memcpy(mixed, coefficients_of(recoder, place), n);
    WEFT_TRY(add_scaled(recoder, factor, coefficients, mixed, n));
  } while (weft_all_zero(mixed, n));
  for (size_t p = 1; p < recoder->parts; p++) {
    const part at = part_of(recoder, p);
    uint8_t *y = at.base + place * at.stride;
    WEFT_TRY(add_scaled(recoder, factor, payload + at.offset, y, at.len));
  }
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
  weft_expand_packet(recoder->ctx, packet, coefficients);
  const size_t n = recoder->id.blocks;
  if (weft_all_zero(coefficients, n))
    return WEFT_DEPENDENT;
  if (recoder->held == recoder->capacity)
    return mix_in(recoder, coefficients, packet->payload);
  uint8_t *row = coefficients_of(recoder, recoder->held);
  memcpy(row, coefficients, n);
  memset(row + n, 0, weft_vector_width(recoder->ctx, n) - n);
  for (size_t p = 1; p < recoder->parts; p++) {
    const part at = part_of(recoder, p);
    memcpy(at.base + recoder->held * at.stride, packet->payload + at.offset, at.len);
  }
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

// Sets up out (m, len of the part) = weights (m, held) * the part of all held packets. Assigned
// member by member: a compound literal of this size is cleared by a microcoded loop and then copied
// in pieces that cannot be forwarded from stores in flight: 3 % of a whole call for one packet.
static void set_product(weft_gemm *product, const weft_recoder *recoder, const part *at, size_t m,
                        const uint8_t *weights, weft_rows out) {
  product->m = m;
  product->k = recoder->held;
  product->len = at->len;
  product->a = weights;
  product->a_stride = recoder->held;
  product->a_mem = WEFT_MEM_HOST;
  product->x.base = NULL;
  product->x.stride = 0;
  product->x.ptr = at->rows;
  product->x.mem = WEFT_MEM_HOST;
  product->x_prepared = NULL;
  product->y.base = out.base;
  product->y.stride = out.stride;
  product->y.ptr = out.ptr;
  product->y.mem = out.mem;
  product->accumulate = false;
  product->factors = NULL;
}

static weft_status multiply(const weft_recoder *recoder, const weft_gemm *products, size_t count) {
  const weft_ctx *ctx = recoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, ctx->pool);
  return ctx->host->gemm(ctx->host, &exec, products, count);
}

static weft_status multiply_vectors(const weft_recoder *recoder, const weft_gemm *product) {
  const weft_ctx *ctx = recoder->ctx;
  const weft_exec exec = weft_ctx_host_exec(ctx, ctx->pool);
  return weft_mix_vectors(ctx, &exec, product);
}

// Mixes one packet. A packet on demand is bound by reading everything held. Each one goes through
// the held packets in the opposite direction to the one before, starting with what the nearest
// cache still holds; otherwise a segment slightly too large for a cache would find nothing in it.
static weft_status mix_one(weft_recoder *recoder, const uint8_t *weights, uint8_t *coefficients,
                           uint8_t *payload) {
  const bool backwards = recoder->backwards = !recoder->backwards;
  const size_t turned = 2 * recoder->capacity - recoder->held, n = recoder->id.blocks;
  const size_t step = weft_vector_step(recoder->ctx);
  uint8_t narrow[WEFT_VECTOR_STEP];
  weft_gemm products[TOGETHER];
  for (size_t first = 0; first < recoder->parts; first += TOGETHER) {
    const size_t left = recoder->parts - first, count = left < TOGETHER ? left : TOGETHER;
    for (size_t i = 0; i < count; i++) {
      const size_t p = backwards ? recoder->parts - 1 - first - i : first + i;
      part at = part_of(recoder, p);
      uint8_t *out = p == 0 ? coefficients : payload + at.offset;
      if (p == 0 && n < step) { // as in weft_mix_vectors, but in one call with the others
        out = narrow;
        at.len = step;
      }
      at.rows += backwards ? turned : 0;
      set_product(&products[i], recoder, &at, 1, weights,
                  (weft_rows){.base = out, .stride = at.len});
    }
    WEFT_TRY(multiply(recoder, products, count));
  }
  if (n < step)
    memcpy(coefficients, narrow, n);
  return WEFT_OK;
}

// Held packets may be linearly dependent, so a mix of them can be zero; then it is drawn again.
static weft_status recode_one(weft_recoder *recoder, uint8_t *coefficients, uint8_t *payload) {
  uint8_t weights[WEFT_MAX_BLOCKS];
  do {
    weft_random_nonzero(&recoder->random, weights, recoder->held);
    WEFT_TRY(mix_one(recoder, weights, coefficients, payload));
  } while (weft_all_zero(coefficients, recoder->id.blocks));
  return WEFT_OK;
}

// Computes the coefficients of fresh packets, none of them zero. weights: (batch->count, held)
static weft_status mix_coefficients(weft_recoder *recoder, const weft_batch *batch,
                                    uint8_t *weights) {
  const size_t n = recoder->id.blocks, held = recoder->held;
  const weft_rows out = {.base = batch->coefficients, .stride = batch->coefficients_stride};
  const part at = part_of(recoder, 0);
  weft_gemm all, again;
  set_product(&all, recoder, &at, batch->count, weights, out);
  weft_random_nonzero(&recoder->random, weights, batch->count * held);
  WEFT_TRY(multiply_vectors(recoder, &all));
  for (size_t i = 0; i < batch->count; i++) {
    const weft_rows row = {.base = weft_row(&out, i), .stride = n};
    set_product(&again, recoder, &at, 1, weights + i * held, row);
    while (weft_all_zero(row.base, n)) {
      weft_random_nonzero(&recoder->random, weights + i * held, held);
      WEFT_TRY(multiply_vectors(recoder, &again));
    }
  }
  return WEFT_OK;
}

// rows: (batch->count), scratch for payloads given as pointers.
static weft_status mix_payloads(const weft_recoder *recoder, const weft_batch *batch,
                                const uint8_t *weights, uint8_t **rows) {
  for (size_t p = 1; p < recoder->parts; p++) {
    const part at = part_of(recoder, p);
    weft_rows out = weft_batch_rows(batch, 0);
    if (out.ptr) {
      for (size_t i = 0; i < batch->count; i++)
        rows[i] = batch->payload_rows[i] + at.offset;
      out.ptr = rows;
    } else {
      out.base += at.offset;
    }
    weft_gemm product;
    set_product(&product, recoder, &at, batch->count, weights, out);
    WEFT_TRY(multiply(recoder, &product, 1));
  }
  return WEFT_OK;
}

static weft_status recode_many(weft_recoder *recoder, const weft_batch *batch) {
  const size_t pointers = batch->payload_rows ? sizeof *batch->payload_rows : 0;
  if (batch->count > SIZE_MAX / (recoder->held + pointers))
    return WEFT_E_NOMEM;
  // The pointers, which need alignment, then the weights.
  const size_t bytes = batch->count * (pointers + recoder->held);
  uint8_t **rows = weft_ctx_take(recoder->ctx, bytes, WEFT_LINE);
  if (!rows)
    return WEFT_E_NOMEM;
  uint8_t *weights = (uint8_t *)rows + batch->count * pointers;
  weft_status status = mix_coefficients(recoder, batch, weights);
  if (status == WEFT_OK)
    status = mix_payloads(recoder, batch, weights, rows);
  weft_ctx_give(recoder->ctx, rows);
  return status;
}

static weft_status recode(weft_recoder *recoder, const weft_batch *batch) {
  if (batch->count > 1)
    return recode_many(recoder, batch);
  return recode_one(recoder, batch->coefficients,
                    batch->payload_rows ? batch->payload_rows[0] : batch->payload);
}

weft_status weft_recoder_batch(weft_recoder *recoder, const weft_batch *batch) {
  if (!recoder || !batch)
    return WEFT_E_ARGUMENT;
  if (batch->count == 0)
    return WEFT_OK;
  WEFT_TRY(weft_batch_check_payloads(batch, &recoder->id, false));
  WEFT_TRY(weft_batch_check_coefficients(batch, &recoder->id, false));
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
