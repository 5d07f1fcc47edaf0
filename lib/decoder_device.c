// SPDX-License-Identifier: Apache-2.0
// Decoders whose payloads are on a device. Elimination stays on the CPU (decoder_eliminate.c): it
// is a few hundred byte products per byte of a vector, and the caller waits for it, while the
// device would answer only after a round trip. Payloads are never reduced in place: slots hold
// vectors and payloads as received, zero where nothing has been received, and
//
//   blocks = rows of M * slots    (M's columns without pivot meet zeros)
//   recoded packets = random weights * [vectors | payloads]
//
// Both are ordinary products, of many decoders in one launch, whatever their ranks.
#include <string.h>

#include "lib/batch.h"
#include "lib/decoder.h"
#include "lib/staging.h"

enum { ALIGN = 16, LINE = 64, ROWS_STEP = 32 };

weft_status weft_decoder_take_slots(weft_decoder *decoder) {
  const size_t n = decoder->id.blocks, k = decoder->id.block_bytes;
  void *memory;
  decoder->lead = (ALIGN - n % ALIGN) % ALIGN;
  decoder->stride = (decoder->lead + n + k + ALIGN - 1) / ALIGN * ALIGN;
  WEFT_TRY(weft_device_alloc(decoder->ctx->device, WEFT_MEM_DEVICE, n * decoder->stride, &memory));
  decoder->slots = memory;
  return WEFT_OK;
}

// Lists the pieces that clear slots without pivot; with NULL only counts them.
static size_t list_clearing(const weft_decoder *decoder, weft_device_piece *pieces) {
  enum { CLEAR_BYTES = 32 * 1024 }; // per piece, so that many blocks share the work
  const size_t n = decoder->id.blocks;
  size_t used = 0, run;
  for (size_t p = 0; p < n; p += run) {
    for (run = 1; p + run < n && decoder->unknown[p + run] == decoder->unknown[p];)
      run++;
    const size_t bytes = decoder->unknown[p] ? run * decoder->stride : 0;
    for (size_t at = 0; at < bytes; at += CLEAR_BYTES, used++)
      if (pieces)
        pieces[used] =
            (weft_device_piece){.to = decoder->slots + p * decoder->stride + at,
                                .bytes = bytes - at < CLEAR_BYTES ? bytes - at : CLEAR_BYTES};
  }
  return used;
}

weft_status weft_decoders_clear(weft_call *call, weft_decoder *const *decoders, size_t count) {
  size_t needed = 0, used = 0;
  for (size_t i = 0; i < count; i++)
    needed += decoders[i]->zeroed ? 0 : list_clearing(decoders[i], NULL);
  if (needed > 0) {
    weft_kept *kept;
    WEFT_TRY(weft_call_keep(call->queue->ctx, call, needed * sizeof(weft_device_piece), &kept));
    weft_device_piece *pieces = (weft_device_piece *)(void *)kept->bytes;
    for (size_t i = 0; i < count; i++)
      used += decoders[i]->zeroed ? 0 : list_clearing(decoders[i], pieces + used);
    WEFT_TRY(weft_device_copy_pieces(&call->exec, pieces, used));
  }
  for (size_t i = 0; i < count; i++)
    decoders[i]->zeroed = true;
  return WEFT_OK;
}

// --- recoding ---

// Whether each vector is directly followed by its payload.
static bool is_one_piece(const weft_batch *batch, size_t n) {
  return !batch->payload_rows && batch->coefficients_mem == batch->mem &&
         batch->payload == batch->coefficients + n &&
         (batch->count == 1 || batch->payload_stride == batch->coefficients_stride);
}

// Returns how many slots are mixed: the same for all decoders of one n, so that they share a
// launch.
static size_t rows_of(const weft_decoder *decoder, size_t widest) {
  return widest < decoder->id.blocks ? widest : decoder->id.blocks;
}

static size_t widest_of(weft_decoder *const *decoders, size_t count) {
  size_t widest = 0;
  for (size_t i = 0; i < count; i++)
    widest = decoders[i]->widest > widest ? decoders[i]->widest : widest;
  return (widest + ROWS_STEP - 1) / ROWS_STEP * ROWS_STEP;
}

typedef struct mixing {
  weft_decoder *const *decoders;
  const weft_batch *batches;
  size_t count, widest;
  uint8_t *weights; // (batch->count, rows) for each decoder, dense
  weft_mem mem;     // of weights
  weft_gemm *products;
} mixing;

static size_t weights_bytes(const mixing *m) {
  size_t bytes = 0;
  for (size_t i = 0; i < m->count; i++)
    bytes += m->batches[i].count * rows_of(m->decoders[i], m->widest);
  return bytes;
}

// For a decoder with a fixed key: draws the packets that a decoder in host memory would make from
// it, whatever else the call includes. Writes their weights over the slots, each at its slot's
// place among `rows`.
static weft_status draw_fixed(weft_decoder *decoder, size_t count, size_t rows, uint8_t *to) {
  const weft_ctx *ctx = decoder->ctx;
  const size_t n = decoder->id.blocks, rank = decoder->rank;
  if (count > SIZE_MAX / (n + rank))
    return WEFT_E_NOMEM;
  uint8_t *vectors = weft_ctx_take(ctx, count * (n + rank), LINE);
  if (!vectors)
    return WEFT_E_NOMEM;
  uint8_t *weights = vectors + count * n;
  const weft_status status = weft_decoder_combine(decoder, count, vectors, n, weights, ctx->pool);
  memset(to, 0, count * rows);
  for (size_t i = 0; status == WEFT_OK && i < count; i++)
    for (size_t j = 0; j < rank; j++)
      to[i * rows + decoder->pivots[j]] = weights[i * rank + j];
  weft_ctx_give(ctx, vectors);
  return status;
}

static weft_status draw_on_host(const mixing *m) {
  uint8_t *to = m->weights;
  for (size_t i = 0; i < m->count; i++) {
    weft_decoder *decoder = m->decoders[i];
    const size_t count = m->batches[i].count, rows = rows_of(decoder, m->widest);
    if (count > 0 && decoder->random.fixed)
      WEFT_TRY(draw_fixed(decoder, count, rows, to));
    else
      weft_random_nonzero(&decoder->random, to, count * rows);
    to += count * rows;
  }
  return WEFT_OK;
}

static weft_status draw_on_device(const mixing *m, const weft_call *call) {
  const weft_ctx *ctx = call->queue->ctx;
  uint8_t *to = m->weights;
  size_t run;
  for (size_t i = 0; i < m->count; i += run) {
    const size_t rows = rows_of(m->decoders[i], m->widest);
    weft_expansion expansion = {.k = rows, .fresh = true, .out = to, .out_stride = rows};
    for (run = 0; i + run < m->count && rows_of(m->decoders[i + run], m->widest) == rows; run++)
      expansion.count += m->batches[i + run].count;
    weft_random_bytes(&m->decoders[i]->random, expansion.key, sizeof expansion.key);
    if (expansion.count > 0)
      WEFT_TRY(ctx->row->expand(ctx->row, &call->exec, &expansion));
    to += expansion.count * rows;
  }
  return WEFT_OK;
}

// Describes the product that mixes bytes [from, from + len) of the slots into `to`.
static weft_gemm product_of(const mixing *m, size_t i, const uint8_t *weights, size_t from,
                            size_t len, weft_rows to) {
  const weft_decoder *decoder = m->decoders[i];
  const size_t rows = rows_of(decoder, m->widest);
  return (weft_gemm){.m = m->batches[i].count,
                     .k = rows,
                     .len = len,
                     .a = weights,
                     .a_stride = rows,
                     .a_mem = m->mem,
                     .x = {.base = weft_decoder_device_slot(decoder, 0) + from,
                           .stride = decoder->stride,
                           .mem = WEFT_MEM_DEVICE},
                     .y = to};
}

// Lists the products for all vectors first, then those for payloads, so that equal shapes are
// adjacent.
static size_t list_products(const mixing *m) {
  size_t used = 0;
  for (int payloads = 0; payloads < 2; payloads++) {
    const uint8_t *weights = m->weights;
    for (size_t i = 0; i < m->count; i++) {
      const weft_batch *batch = &m->batches[i];
      const size_t n = m->decoders[i]->id.blocks, k = m->decoders[i]->id.block_bytes;
      const weft_rows vectors = {.base = batch->coefficients,
                                 .stride = batch->count > 1 ? batch->coefficients_stride : n + k,
                                 .mem = batch->coefficients_mem};
      const bool one = is_one_piece(batch, n);
      if (payloads && one)
        m->products[used++] = product_of(m, i, weights, 0, n + k, vectors);
      else if (payloads)
        m->products[used++] = product_of(m, i, weights, n, k, weft_batch_rows(batch, 0));
      else if (!one)
        m->products[used++] = product_of(m, i, weights, 0, n, vectors);
      weights += batch->count * rows_of(m->decoders[i], m->widest);
    }
  }
  return used;
}

static weft_status mix(mixing *m, weft_call *call) {
  const weft_ctx *ctx = call->queue->ctx;
  bool fixed = false;
  for (size_t i = 0; i < m->count; i++)
    fixed = fixed || m->decoders[i]->random.fixed;
  WEFT_TRY(weft_decoders_clear(call, m->decoders, m->count));
  if (fixed || !ctx->row->expand) {
    weft_kept *kept;
    WEFT_TRY(weft_call_keep_source(call->queue->ctx, call, weights_bytes(m), &kept));
    m->weights = kept->bytes;
    m->mem = kept->mem;
    WEFT_TRY(draw_on_host(m));
    return weft_call_products(call, m->products, list_products(m));
  }
  void *scratch;
  WEFT_TRY(weft_device_scratch(&call->exec, weights_bytes(m), &scratch));
  m->weights = scratch;
  m->mem = WEFT_MEM_DEVICE;
  weft_status status = draw_on_device(m, call);
  if (status == WEFT_OK)
    status = weft_call_products(call, m->products, list_products(m));
  weft_device_scratch_free(&call->exec, scratch);
  return status;
}

weft_status weft_decoders_recode_on_device(weft_call *call, weft_decoder *const *decoders,
                                           const weft_batch *batches, size_t count) {
  const weft_ctx *ctx = call->queue->ctx;
  mixing m = {.decoders = decoders, .batches = batches, .count = count};
  m.widest = widest_of(decoders, count);
  if (weights_bytes(&m) == 0) // no decoder has packets to make
    return WEFT_OK;
  m.products = weft_ctx_take(ctx, 2 * count * sizeof *m.products, _Alignof(weft_gemm));
  if (!m.products)
    return WEFT_E_NOMEM;
  const weft_status status = mix(&m, call);
  weft_ctx_give(ctx, m.products);
  for (size_t i = 0; status == WEFT_OK && i < count; i++)
    weft_batch_describe_vectors(&batches[i], &decoders[i]->id);
  return status;
}

// --- reading ---

typedef struct gathering {
  weft_reading *readings;
  uint8_t *const *to; // (count) dense rows of M
} gathering;

static void gather_rows(void *user, size_t i) {
  const gathering *g = user;
  const weft_reading *reading = &g->readings[i];
  const size_t n = reading->decoder->id.blocks;
  for (size_t j = 0; reading->status == WEFT_OK && j < reading->count; j++)
    memcpy(g->to[i] + j * n, weft_decoder_row(reading->decoder, reading->first + j), n);
}

static weft_gemm product_of_reading(const weft_reading *reading, const uint8_t *rows) {
  const weft_decoder *decoder = reading->decoder;
  const size_t n = decoder->id.blocks, k = decoder->id.block_bytes;
  return (weft_gemm){.m = reading->count,
                     .k = n,
                     .len = k,
                     .a = rows,
                     .a_stride = n,
                     .a_mem = WEFT_MEM_DEVICE,
                     .x = {.base = weft_decoder_device_slot(decoder, 0) + n,
                           .stride = decoder->stride,
                           .mem = WEFT_MEM_DEVICE},
                     .y = {.base = reading->out,
                           .stride = reading->count > 1 ? reading->out_stride : k,
                           .mem = reading->mem}};
}

// Reads all; the rows of M are uploaded in one copy. products: (count), places: (count).
static weft_status read_all(weft_call *call, weft_reading *readings, size_t count,
                            weft_gemm *products, uint8_t **places) {
  weft_ctx *ctx = call->queue->ctx;
  size_t bytes = 0, used = 0;
  for (size_t i = 0; i < count; i++)
    if (readings[i].status == WEFT_OK)
      bytes += readings[i].count * readings[i].decoder->id.blocks;
  if (bytes == 0)
    return WEFT_OK;
  weft_kept *kept;
  void *scratch;
  WEFT_TRY(weft_call_keep_source(ctx, call, bytes, &kept));
  WEFT_TRY(weft_device_scratch(&call->exec, bytes, &scratch));
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    places[i] = kept->bytes + at;
    if (readings[i].status != WEFT_OK)
      continue;
    products[used++] = product_of_reading(&readings[i], (uint8_t *)scratch + at);
    at += readings[i].count * readings[i].decoder->id.blocks;
  }
  weft_pool_run(ctx->pool, count, gather_rows, &(gathering){readings, places});
  weft_status status = weft_call_upload(call, scratch, kept->bytes, kept->mem, bytes);
  if (status == WEFT_OK)
    status = weft_call_products(call, products, used);
  weft_device_scratch_free(&call->exec, scratch);
  return status;
}

weft_status weft_decoders_read_on_device(weft_call *call, weft_reading *readings, size_t count) {
  const weft_ctx *ctx = call->queue->ctx;
  for (size_t i = 0; i < count; i++)
    if (readings[i].status == WEFT_OK)
      WEFT_TRY(weft_decoder_clear(readings[i].decoder));
  const size_t each = sizeof(weft_gemm) + sizeof(uint8_t *);
  weft_gemm *products = weft_ctx_take(ctx, count * each, _Alignof(weft_gemm));
  if (!products)
    return WEFT_E_NOMEM;
  uint8_t **places = (uint8_t **)(products + count);
  const weft_status status = read_all(call, readings, count, products, places);
  weft_ctx_give(ctx, products);
  return status;
}
