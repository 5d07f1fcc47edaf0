// SPDX-License-Identifier: Apache-2.0
// Batches of coded packets: chooses coefficients, and has the context's row multiply them with the
// segments. On a device that supports it, coefficients are generated where they are used
// (weft_backend.expand).
// Ho et al., "A Random Linear Network Coding Approach to Multicast" (2006); Chou, Wu and Jain,
// "Practical Network Coding" (2003), for segments and for vectors that travel with the packets.
#include <string.h>

#include "lib/batch.h"
#include "lib/coefficients.h"
#include "lib/encoder.h"
#include "lib/expand.h"
#include "lib/staging.h"

// One encoder's part of a call.
typedef struct part {
  weft_encoder *encoder;
  const weft_batch *batch;
  size_t systematic;              // leading packets that are source blocks
  bool expanded;                  // the device makes the coded packets' coefficients
  uint8_t *coefficients;          // (count, n); where expanded, of the coded ones only
  size_t stride;                  // bytes
  weft_mem mem;                   // of coefficients
  size_t next_block;              // state to restore on failure
  uint64_t next_seed, first_seed; // first_seed: of the first coded packet
} part;

static size_t coded_of(const part *p) { return p->batch->count - p->systematic; }
static size_t blocks_of(const part *p) { return p->encoder->segment->id.blocks; }

// --- describing the packets ---

// Returns the next sparse seed, skipping those whose coefficients are all zero. Writes the seed's
// coefficients to `coefficients` unless it is NULL.
static uint64_t next_sparse_seed(weft_encoder *encoder, uint8_t *coefficients) {
  const weft_segment_id *id = &encoder->segment->id;
  const uint16_t density_q16 = encoder->options.density_q16;
  for (;;) {
    const uint64_t seed = encoder->next_seed++;
    if (coefficients)
      weft_coefficients_sparse(id, seed, density_q16, coefficients);
    if (coefficients ? !weft_all_zero(coefficients, id->blocks)
                     : !weft_coefficients_sparse_none(id, seed, density_q16))
      return seed;
  }
}

// Describes the next packet: mode, index and seed. The coefficients of a sparse seeded packet are
// written to `coefficients` unless it is NULL.
static weft_packet describe(weft_encoder *encoder, uint8_t *coefficients) {
  const weft_encoder_options *options = &encoder->options;
  weft_packet packet = {.id = encoder->segment->id, .mode = WEFT_PACKET_VECTOR};
  if (encoder->next_block < packet.id.blocks) {
    packet.mode = WEFT_PACKET_SYSTEMATIC;
    packet.index = (uint32_t)encoder->next_block++;
  } else if (options->seeded && options->density_q16 == 0) {
    packet.mode = WEFT_PACKET_DENSE;
    packet.seed = encoder->next_seed++;
  } else if (options->seeded) {
    packet.mode = WEFT_PACKET_SPARSE;
    packet.density_q16 = options->density_q16;
    packet.seed = next_sparse_seed(encoder, coefficients);
  }
  return packet;
}

static void draw(weft_encoder *encoder, const weft_packet *packet, uint8_t *coefficients) {
  const size_t n = packet->id.blocks;
  if (packet->mode == WEFT_PACKET_SPARSE)
    return; // drawn by `describe`
  if (packet->mode != WEFT_PACKET_VECTOR)
    weft_expand_packet(encoder->ctx, packet, coefficients);
  else if (encoder->options.density_q16 == 0)
    weft_random_nonzero(&encoder->random, coefficients, n);
  else
    weft_random_sparse(&encoder->random, encoder->options.density_q16, coefficients, n);
}

// Describes all packets of the part, draws the coefficients that the CPU draws, and stores the
// seeds of coded packets in `seeds` unless it is NULL. Dense seeds count up, so that all threads
// can draw at once.
static void fill_in(part *p, weft_seed *seeds) {
  const weft_batch *batch = p->batch;
  const size_t stride = batch->count > 1 ? batch->coefficients_stride : blocks_of(p);
  const bool counts_up = p->systematic == 0 && p->encoder->options.density_q16 == 0;
  const bool drawn = counts_up && !p->expanded && p->encoder->options.seeded;
  if (drawn)
    weft_expand_counted(p->encoder->ctx, p->encoder->ctx->pool, &p->encoder->segment->id,
                        p->first_seed, batch->count, p->coefficients, p->stride);
  if (counts_up && p->expanded && !batch->packets) {
    const weft_segment_id *id = &p->encoder->segment->id;
    for (size_t i = 0; seeds && i < batch->count; i++)
      seeds[i] = (weft_seed){id->stream, id->segment, p->first_seed + i};
    if (p->encoder->options.seeded)
      p->encoder->next_seed += batch->count;
    return;
  }
  for (size_t i = 0; i < batch->count; i++) {
    uint8_t *const to = !p->expanded && !drawn ? p->coefficients + i * p->stride : NULL;
    weft_packet packet = describe(p->encoder, to);
    if (to)
      draw(p->encoder, &packet, to);
    else if (seeds && i >= p->systematic)
      seeds[i - p->systematic] = (weft_seed){packet.id.stream, packet.id.segment, packet.seed};
    if (packet.mode == WEFT_PACKET_VECTOR && batch->coefficients_mem != WEFT_MEM_DEVICE)
      packet.coefficients = batch->coefficients + i * stride;
    packet.payload = weft_batch_payload(batch, i);
    if (batch->packets)
      batch->packets[i] = packet;
  }
}

// --- where coefficients are made and stored ---

// Whether the device makes the part's coefficients. The CPU draws them if the caller wants them in
// ordinary memory, or a key fixes them. It also draws sparse fresh ones, as none may be all zeros,
// and those next to source blocks that go to ordinary memory, which are products like the rest
// then.
static bool can_expand(const part *p) {
  const weft_encoder *encoder = p->encoder;
  const weft_batch *batch = p->batch;
  if (!encoder->ctx->device || !encoder->ctx->row->expand)
    return false;
  if (batch->coefficients && (batch->coefficients_mem == WEFT_MEM_HOST || p->systematic > 0))
    return false;
  if (p->systematic > 0 && batch->mem == WEFT_MEM_HOST)
    return false;
  return encoder->options.seeded || (encoder->options.density_q16 == 0 && !encoder->random.fixed);
}

// Allocates room for the coefficients of a part that the CPU draws.
static weft_status take_room(weft_call *call, part *p) {
  const weft_batch *batch = p->batch;
  const size_t n = blocks_of(p);
  if (batch->coefficients && batch->coefficients_mem != WEFT_MEM_DEVICE) {
    p->coefficients = batch->coefficients;
    p->stride = batch->count > 1 ? batch->coefficients_stride : n;
    p->mem = batch->coefficients_mem;
    return WEFT_OK;
  }
  if (batch->count > SIZE_MAX / n)
    return WEFT_E_NOMEM;
  p->stride = n;
  weft_kept *kept;
  // Rows with gaps are copied to the device as they are (hand_out), so they must be pinned.
  const bool gaps = batch->coefficients && batch->count > 1 && batch->coefficients_stride != n;
  WEFT_TRY((gaps ? weft_call_keep : weft_call_keep_source)(call->queue->ctx, call, batch->count * n,
                                                           &kept));
  p->coefficients = kept->bytes;
  p->mem = kept->mem;
  return WEFT_OK;
}

// --- coefficients made on the device ---

static bool same_kind(const part *a, const part *b) {
  const weft_encoder_options *x = &a->encoder->options, *y = &b->encoder->options;
  return b->expanded && blocks_of(a) == blocks_of(b) && x->seeded == y->seeded &&
         x->density_q16 == y->density_q16;
}

// Makes the coefficients of the coded packets of `count` parts of one kind, in one expansion into
// dense rows at `out`.
static weft_status expand_run(weft_call *call, part *parts, size_t count, uint8_t *out) {
  const weft_ctx *ctx = call->queue->ctx;
  const weft_encoder *encoder = parts[0].encoder;
  const size_t n = blocks_of(&parts[0]);
  weft_expansion expansion = {
      .k = n,
      .fresh = !encoder->options.seeded,
      .density_q16 = encoder->options.density_q16,
      .out = out,
      .out_stride = n,
      .first = {encoder->segment->id.stream, encoder->segment->id.segment, parts[0].first_seed}};
  for (size_t i = 0; i < count; i++)
    expansion.count += coded_of(&parts[i]);
  weft_seed *seeds = NULL;
  if (encoder->options.seeded && (count > 1 || expansion.density_q16 > 0)) {
    weft_kept *kept;
    WEFT_TRY(weft_call_keep(call->queue->ctx, call, expansion.count * sizeof *seeds, &kept));
    expansion.seeds = seeds = (weft_seed *)(void *)kept->bytes;
  }
  for (size_t i = 0; i < count; i++) {
    fill_in(&parts[i], seeds);
    if (seeds)
      seeds += coded_of(&parts[i]);
    parts[i].coefficients = out;
    parts[i].stride = n;
    parts[i].mem = WEFT_MEM_DEVICE;
    out += coded_of(&parts[i]) * n;
  }
  if (expansion.fresh)
    weft_random_bytes(&parts[0].encoder->random, expansion.key, sizeof expansion.key);
  return ctx->row->expand(ctx->row, &call->exec, &expansion);
}

// Copies coefficients to where the caller wants them, if they were made elsewhere.
static weft_status hand_out(weft_call *call, const part *p) {
  const weft_batch *batch = p->batch;
  if (!batch->coefficients || batch->coefficients == p->coefficients)
    return WEFT_OK;
  const size_t n = blocks_of(p);
  const size_t stride = batch->count > 1 ? batch->coefficients_stride : n;
  if (p->mem == WEFT_MEM_HOST)
    return weft_call_upload(call, batch->coefficients, p->coefficients, p->mem, batch->count * n);
  return weft_device_copy_rows(call->queue->ctx->device, batch->coefficients, stride,
                               batch->coefficients_mem, p->coefficients, p->stride, p->mem, n,
                               batch->count, call->exec.stream);
}

static weft_status make_coefficients(weft_call *call, part *parts, size_t count, uint8_t *scratch) {
  size_t run;
  for (size_t i = 0; i < count; i += run) {
    run = 1;
    if (!parts[i].expanded) {
      WEFT_TRY(take_room(call, &parts[i]));
      fill_in(&parts[i], NULL);
      continue;
    }
    while (i + run < count && same_kind(&parts[i], &parts[i + run]))
      run++;
    WEFT_TRY(expand_run(call, &parts[i], run, scratch));
    for (size_t j = i; j < i + run; j++)
      scratch += coded_of(&parts[j]) * blocks_of(&parts[j]);
  }
  for (size_t i = 0; i < count; i++)
    WEFT_TRY(hand_out(call, &parts[i]));
  return WEFT_OK;
}

// --- payloads ---

// Copies the systematic packets' source blocks.
static weft_status copy_blocks(const weft_call *call, const part *p) {
  const weft_segment *segment = p->encoder->segment;
  const weft_ctx *ctx = segment->ctx;
  const size_t k = segment->id.block_bytes;
  const weft_rows to = weft_batch_rows(p->batch, 0);
  if (!ctx->device) {
    for (size_t i = 0; i < p->systematic; i++)
      memcpy(weft_row(&to, i), weft_const_row(&segment->blocks, p->next_block + i), k);
    return WEFT_OK;
  }
  const uint8_t *from = weft_const_row(&segment->blocks, p->next_block); // dense
  if (!to.ptr)
    return weft_device_copy_rows(ctx->device, to.base, to.stride, to.mem, from, k, WEFT_MEM_DEVICE,
                                 k, p->systematic, call->exec.stream);
  for (size_t i = 0; i < p->systematic; i++)
    WEFT_TRY(weft_device_copy(ctx->device, to.ptr[i], to.mem, from + i * k, WEFT_MEM_DEVICE, k,
                              call->exec.stream));
  return WEFT_OK;
}

static weft_gemm product_of(const weft_segment *segment, size_t count, const uint8_t *coefficients,
                            size_t stride, weft_mem mem, weft_rows payloads) {
  return (weft_gemm){.m = count,
                     .k = segment->id.blocks,
                     .len = segment->id.block_bytes,
                     .a = coefficients,
                     .a_stride = stride,
                     .a_mem = mem,
                     .x = segment->blocks,
                     .x_prepared = segment->operand,
                     .y = payloads};
}

// Whether each packet is computed only from the blocks with nonzero coefficients. A product of
// several packets reads each block once for many of them, and takes as long as gathering two fifths
// to a fourth of the blocks for each (Zen 4, avx2 to gfni512).
static bool is_gathered(const part *p, size_t packets) {
  enum { MOST_OF_MANY = (UINT16_MAX + 1) / 4 };
  const size_t density_q16 = p->encoder->options.density_q16;
  const weft_segment *segment = p->encoder->segment;
  return density_q16 > 0 && segment->ptr && !segment->operand &&
         (packets == 1 || density_q16 <= MOST_OF_MANY);
}

// Lists the blocks with nonzero coefficients in `x`, these coefficients in `a`, and their number in
// product->k.
static void gather(const weft_segment *segment, const uint8_t *coefficients, weft_gemm *product,
                   const uint8_t **x, uint8_t *a) {
  size_t found = 0;
  for (size_t i = 0; i < segment->id.blocks; i++) {
    x[found] = segment->ptr[i];
    a[found] = coefficients[i];
    found += coefficients[i] != 0;
  }
  product->k = product->a_stride = found;
  product->a = a;
  product->x.ptr = x;
}

// Products of one packet each, and their operands.
typedef struct gathering {
  size_t rows; // capacity in products
  weft_gemm *products;
  const uint8_t **x; // (rows, n)
  uint8_t *a;        // (rows, n)
} gathering;

static weft_status multiply_rows(weft_call *call, const weft_segment *segment,
                                 const weft_gemm *product, const gathering *g) {
  const size_t n = segment->id.blocks;
  for (size_t first = 0; first < product->m; first += g->rows) {
    const size_t left = product->m - first, now = left < g->rows ? left : g->rows;
    for (size_t i = 0; i < now; i++) {
      weft_gemm *one = &g->products[i];
      *one = *product;
      one->m = 1;
      one->y.base = weft_row(&product->y, first + i);
      one->y.ptr = NULL;
      gather(segment, product->a + (first + i) * product->a_stride, one, g->x + i * n,
             g->a + i * n);
    }
    WEFT_TRY(weft_call_products(call, g->products, now));
  }
  return WEFT_OK;
}

// Computes `product` packet by packet; threads share several packets if there is memory for that.
static weft_status multiply_gathered(weft_call *call, const weft_segment *segment,
                                     const weft_gemm *product) {
  enum { TOGETHER = 32 };
  const weft_ctx *ctx = segment->ctx;
  const size_t n = segment->id.blocks;
  const size_t each = sizeof(weft_gemm) + n * (sizeof(uint8_t *) + 1);
  const uint8_t *x[WEFT_MAX_BLOCKS];
  uint8_t a[WEFT_MAX_BLOCKS];
  weft_gemm one;
  gathering g = {1, &one, x, a};
  void *memory = NULL;
  if (product->m > 1 && weft_pool_threads(ctx->pool) > 1)
    memory = weft_ctx_take(ctx, TOGETHER * each, _Alignof(weft_gemm));
  if (memory) {
    g.rows = TOGETHER;
    g.products = memory;
    g.x = (const uint8_t **)(g.products + TOGETHER);
    g.a = (uint8_t *)(g.x + TOGETHER * n);
  }
  const weft_status status = multiply_rows(call, segment, product, &g);
  weft_ctx_give(ctx, memory);
  return status;
}

static weft_status make_payloads(weft_call *call, const part *parts, size_t count,
                                 weft_gemm *products) {
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    const part *p = &parts[i];
    // A copy from the device to ordinary memory would wait, so source blocks are products there.
    const bool as_products = call->queue->ctx->device && p->batch->mem == WEFT_MEM_HOST;
    const size_t first = as_products ? 0 : p->systematic;
    if (p->systematic > 0 && !as_products)
      WEFT_TRY(copy_blocks(call, p));
    const size_t skip = p->expanded ? 0 : first;
    weft_gemm *product = &products[used++];
    *product =
        product_of(p->encoder->segment, p->batch->count - first, p->coefficients + skip * p->stride,
                   p->stride, p->mem, weft_batch_rows(p->batch, first));
    if (is_gathered(p, product->m)) {
      WEFT_TRY(multiply_gathered(call, p->encoder->segment, product));
      used--;
    }
  }
  return weft_call_products(call, products, used);
}

// --- calls ---

static weft_status check(const weft_encoder *encoder, const weft_ctx *ctx,
                         const weft_batch *batch) {
  if (!encoder || encoder->ctx != ctx)
    return WEFT_E_ARGUMENT;
  if (batch->count == 0)
    return WEFT_OK;
  const weft_encoder_options *options = &encoder->options;
  const weft_segment_id *id = &encoder->segment->id;
  WEFT_TRY(weft_batch_check_payloads(batch, id, ctx->device != NULL));
  if (batch->coefficients || !options->seeded)
    return weft_batch_check_coefficients(batch, id, ctx->device != NULL);
  // Something must tell the caller what the payloads are.
  const bool counts_up = options->density_q16 == 0 && encoder->next_block == id->blocks;
  return batch->packets || counts_up ? WEFT_OK : WEFT_E_ARGUMENT;
}

static weft_status code(weft_call *call, part *parts, size_t count) {
  const weft_ctx *ctx = call->queue->ctx;
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++)
    if (parts[i].expanded) {
      if (coded_of(&parts[i]) > (SIZE_MAX - bytes) / blocks_of(&parts[i]))
        return WEFT_E_NOMEM;
      bytes += coded_of(&parts[i]) * blocks_of(&parts[i]);
    }
  weft_gemm one; // the common case of a packet on demand
  weft_gemm *products =
      count > 1 ? weft_ctx_take(ctx, count * sizeof *products, _Alignof(weft_gemm)) : &one;
  if (!products)
    return WEFT_E_NOMEM;
  void *scratch = NULL;
  weft_status status = bytes > 0 ? weft_device_scratch(&call->exec, bytes, &scratch) : WEFT_OK;
  if (status == WEFT_OK)
    status = make_coefficients(call, parts, count, scratch);
  if (status == WEFT_OK)
    status = make_payloads(call, parts, count, products);
  if (scratch)
    weft_device_scratch_free(&call->exec, scratch);
  if (products != &one)
    weft_ctx_give(ctx, products);
  return status;
}

// Returns the encoders to their state before the parts, in reverse: an encoder may occur several
// times.
static void go_back(const part *parts, size_t count) {
  for (size_t i = count; i-- > 0;) {
    parts[i].encoder->next_block = parts[i].next_block;
    parts[i].encoder->next_seed = parts[i].next_seed;
  }
}

static weft_status code_call(weft_ctx *ctx, part *parts, size_t count, weft_queue *queue) {
  weft_call call;
  WEFT_TRY(weft_call_begin(ctx, queue, &call));
  weft_status status = code(&call, parts, count);
  status = weft_call_end(ctx, &call, status);
  if (status != WEFT_OK)
    go_back(parts, count); // the next call makes these packets
  return status;
}

static part part_of(weft_encoder *encoder, const weft_batch *batch) {
  const size_t left = encoder->segment->id.blocks - encoder->next_block;
  part p = {.encoder = encoder,
            .batch = batch,
            .systematic = batch->count < left ? batch->count : left,
            .next_block = encoder->next_block,
            .next_seed = encoder->next_seed,
            .first_seed = encoder->next_seed};
  p.expanded = can_expand(&p) && coded_of(&p) > 0;
  return p;
}

weft_status weft_encoder_batch(weft_encoder *encoder, const weft_batch *batch, weft_queue *queue) {
  if (!encoder || !batch)
    return WEFT_E_ARGUMENT;
  WEFT_TRY(check(encoder, encoder->ctx, batch));
  if (batch->count == 0)
    return WEFT_OK;
  part p = part_of(encoder, batch);
  return code_call(encoder->ctx, &p, 1, queue);
}

// Makes the parts of all nonempty batches. An encoder's work in one batch depends on the batches
// before, so encoders are advanced through them, and then reset.
static weft_status parts_of(weft_encoder *const *encoders, const weft_batch *batches, size_t count,
                            part *parts, size_t *used) {
  const weft_ctx *ctx = encoders[0]->ctx;
  weft_status status = WEFT_OK;
  *used = 0;
  for (size_t i = 0; i < count && status == WEFT_OK; i++) {
    status = check(encoders[i], ctx, &batches[i]);
    if (status != WEFT_OK || batches[i].count == 0)
      continue;
    part *p = &parts[(*used)++];
    *p = part_of(encoders[i], &batches[i]);
    p->encoder->next_block += p->systematic;
    if (p->encoder->options.seeded) // sparse seeds are counted where they are drawn
      p->encoder->next_seed += coded_of(p);
  }
  go_back(parts, *used);
  return status;
}

weft_status weft_encoder_batches(weft_encoder *const *encoders, const weft_batch *batches,
                                 size_t count, weft_queue *queue) {
  if (count == 0)
    return WEFT_OK;
  if (!encoders || !batches || !encoders[0])
    return WEFT_E_ARGUMENT;
  weft_ctx *ctx = encoders[0]->ctx;
  part *parts = weft_ctx_take(ctx, count * sizeof *parts, _Alignof(part));
  if (!parts)
    return WEFT_E_NOMEM;
  size_t used;
  weft_status status = parts_of(encoders, batches, count, parts, &used);
  if (status == WEFT_OK && used > 0)
    status = code_call(ctx, parts, used, queue);
  weft_ctx_give(ctx, parts);
  return status;
}

weft_status weft_encoder_combine(weft_encoder *encoder, size_t count, const uint8_t *coefficients,
                                 size_t coefficients_stride, const weft_batch *payloads,
                                 weft_queue *queue) {
  if (!encoder || !payloads || payloads->count != count || (count > 0 && !coefficients) ||
      !weft_stride_valid(count, coefficients_stride, encoder->segment->id.blocks))
    return WEFT_E_ARGUMENT;
  if (count == 0)
    return WEFT_OK;
  const bool has_device = encoder->ctx->device != NULL;
  WEFT_TRY(weft_mem_check(payloads->coefficients_mem, has_device));
  WEFT_TRY(weft_batch_check_payloads(payloads, &encoder->segment->id, has_device));
  weft_call call;
  WEFT_TRY(weft_call_begin(encoder->ctx, queue, &call));
  const size_t stride = count > 1 ? coefficients_stride : encoder->segment->id.blocks;
  weft_gemm product = product_of(encoder->segment, count, coefficients, stride,
                                 payloads->coefficients_mem, weft_batch_rows(payloads, 0));
  return weft_call_end(encoder->ctx, &call, weft_call_products(&call, &product, 1));
}
