// SPDX-License-Identifier: Apache-2.0
// The world that sequences of calls are made on (sequence.h).
#include "tests/lib/sequence.h"

#include <stdlib.h>
#include <string.h>

// --- packets and batches ---

weft_queue *world_some_queue(const world *w) { return fixture_below(2) ? w->queue : NULL; }

void world_wait(const world *w) { EXPECT_OK(weft_queue_wait(w->queue)); }

world_decoder *world_some_decoder(world *w) { return &w->decoder[fixture_below(DECODERS)]; }

size_t world_out_of_range(size_t limit) {
  const size_t beyond[] = {limit, limit + 1, SIZE_MAX, SIZE_MAX - limit, SIZE_MAX / 2};
  return beyond[fixture_below(sizeof beyond / sizeof beyond[0])];
}

size_t world_invalid_stride(size_t rows, size_t row_bytes) {
  const size_t beyond[] = {SIZE_MAX, SIZE_MAX - row_bytes + 1, (size_t)PTRDIFF_MAX + 1,
                           (size_t)PTRDIFF_MAX / rows + 1, SIZE_MAX / rows + 1};
  return fixture_below(2) ? fixture_below(row_bytes)
                          : beyond[fixture_below(sizeof beyond / sizeof beyond[0])];
}

void world_packet_new(world_packet *p, const world_source *source) {
  const size_t n = source->id.blocks, k = source->id.block_bytes;
  *p = (world_packet){.packet = {.id = source->id, .mode = (weft_packet_mode)fixture_below(4)}};
  p->packet.index = (uint32_t)fixture_below(n);
  p->packet.seed = fixture_next();
  p->packet.density_q16 = (uint16_t)(1 + fixture_below(65535));
  if (p->packet.mode == WEFT_PACKET_VECTOR)
    for (size_t i = 0; i < n; i++) // often sparse, sometimes zero
      p->vector[i] = fixture_below(3) ? 0 : (uint8_t)fixture_next();
  p->packet.coefficients = p->vector;
  EXPECT_OK(weft_packet_coefficients(&p->packet, p->coefficients));
  p->payload = fixture_malloc(k);
  model_combine(p->coefficients, source->data, n, k, p->payload);
  p->packet.payload = p->payload;
}

void world_packet_of(world_packet *p, const world_source *source, const uint8_t *vector) {
  const size_t n = source->id.blocks, k = source->id.block_bytes;
  *p = (world_packet){.packet = {.id = source->id, .mode = WEFT_PACKET_VECTOR}};
  memcpy(p->coefficients, vector, n);
  p->packet.coefficients = p->coefficients;
  p->payload = fixture_malloc(k);
  model_combine(vector, source->data, n, k, p->payload);
  p->packet.payload = p->payload;
}

void world_batch_new(world_batch *b, const weft_segment_id *id, size_t count) {
  const size_t n = id->blocks, k = id->block_bytes;
  const size_t stride = k + fixture_below(3), vectors = n + fixture_below(3);
  *b = (world_batch){.payload_bytes = (count + 1) * stride, .coefficients_bytes = count * vectors};
  b->payload = fixture_malloc(b->payload_bytes);
  b->coefficients = fixture_malloc(b->coefficients_bytes);
  memset(b->payload, WORLD_ASIDE, b->payload_bytes);
  memset(b->coefficients, WORLD_ASIDE, b->coefficients_bytes);
  const size_t turn = fixture_below(count + 1); // rotates the pointers
  for (size_t i = 0; i < count; i++)
    b->rows[i] = b->payload + (i + turn) % (count + 1) * stride;
  const bool pointers = fixture_below(2) != 0;
  b->batch = (weft_batch){.count = count,
                          .packets = b->packets,
                          .coefficients = b->coefficients,
                          .coefficients_stride = count == 1 ? fixture_below(n) : vectors,
                          .payload_rows = pointers ? b->rows : NULL,
                          .payload = pointers ? NULL : b->payload,
                          .payload_stride = count == 1 || pointers ? fixture_below(k) : stride,
                          .mem = fixture_below(2) ? WEFT_MEM_HOST : WEFT_MEM_PINNED};
  for (size_t i = 0; !pointers && i < count; i++)
    b->rows[i] = b->payload + i * stride;
}

void world_batch_free(world_batch *b) {
  free(b->payload);
  free(b->coefficients);
}

bool world_aside(const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != WORLD_ASIDE)
      return false;
  return true;
}

bool world_batch_untouched(const world_batch *b) {
  return world_aside(b->payload, b->payload_bytes) &&
         world_aside(b->coefficients, b->coefficients_bytes);
}

// --- what is known ---

weft_status world_decoder_takes(world_decoder *d, const world_packet *p) {
  const size_t rank = d->span.rank;
  if (memcmp(&p->packet.id, &d->of->id, sizeof d->of->id) != 0)
    return WEFT_E_FOREIGN;
  if (!model_span_add(&d->span, p->coefficients))
    return WEFT_DEPENDENT;
  memcpy(d->took[rank], p->coefficients, d->of->id.blocks);
  return WEFT_OK;
}

weft_status world_recoder_takes(world_recoder *r, const world_packet *p) {
  static const uint8_t zero[MODEL_BLOCKS];
  const size_t n = r->of->id.blocks;
  if (memcmp(&p->packet.id, &r->of->id, sizeof r->of->id) != 0)
    return WEFT_E_FOREIGN;
  if (memcmp(p->coefficients, zero, n) == 0)
    return WEFT_DEPENDENT;
  if (r->count < MODEL_BLOCKS)
    memcpy(r->took[r->count], p->coefficients, n);
  r->count++;
  r->held += r->held < r->capacity;
  (void)model_span_add(&r->span, p->coefficients);
  return WEFT_OK;
}

void world_check_decoder(world_decoder *d) {
  const size_t n = d->of->id.blocks;
  size_t prefix = 0;
  EXPECT(weft_decoder_rank(d->decoder) == d->span.rank);
  EXPECT(weft_decoder_complete(d->decoder) == (d->span.rank == n));
  for (size_t i = 0; i < n; i++) {
    const bool known = model_span_has_unit(&d->span, i);
    EXPECT(weft_decoder_has_block(d->decoder, i) == known);
    prefix += known && prefix == i;
  }
  EXPECT(weft_decoder_prefix(d->decoder) == prefix);
  EXPECT(!weft_decoder_has_block(d->decoder, world_out_of_range(n)));
}

void world_check_recoder(const world_recoder *r) {
  EXPECT(weft_recoder_held(r->recoder) == r->held);
}

// --- handles ---

static void new_source(world *w, world_source *s, const weft_segment_id *id) {
  const size_t capacity = (size_t)id->blocks * id->block_bytes;
  const size_t bytes = fixture_below(2) ? capacity : 1 + fixture_below(capacity);
  *s = (world_source){.id = *id, .data = fixture_malloc(capacity), .lent = fixture_malloc(bytes)};
  fixture_fill(s->data, bytes);
  memset(s->data + bytes, 0, capacity - bytes);
  memcpy(s->lent, s->data, bytes); // of exactly the true length
  const weft_segment_options options = {.id = *id,
                                        .data = s->lent,
                                        .bytes = bytes,
                                        .borrow = fixture_below(2) != 0,
                                        .once = fixture_below(2) != 0};
  if (fixture_below(2))
    EXPECT_OK(weft_segment_new(w->ctx, &options, fixture_below(2) ? w->queue : NULL, &s->segment));
  else
    EXPECT_OK(weft_segments_new(w->ctx, &options, 1, w->queue, &s->segment));
  if (!options.borrow)
    memset(s->lent, WORLD_ASIDE, bytes);
  EXPECT(memcmp(weft_segment_get_id(s->segment), id, sizeof *id) == 0);
}

static void new_encoder(world_encoder *e, const world_source *of) {
  static const uint16_t densities[] = {0, 0, 9000, 40000, 65535};
  *e = (world_encoder){.of = of,
                       .options = {.systematic = fixture_below(2) != 0,
                                   .seeded = fixture_below(2) != 0,
                                   .first_seed = fixture_below(2) ? fixture_next() : UINT64_MAX - 5,
                                   .density_q16 = densities[fixture_below(5)]}};
  e->next_block = e->options.systematic ? 0 : of->id.blocks;
  e->next_seed = e->options.first_seed;
  EXPECT_OK(weft_encoder_new(of->segment, &e->options, &e->encoder));
}

static void new_decoder(world *w, world_decoder *d, const world_source *of) {
  const size_t n = of->id.blocks, k = of->id.block_bytes;
  *d = (world_decoder){.of = of, .span = {.n = n}, .stride = k + fixture_below(4)};
  weft_decoder_options options = {.id = of->id, .eager = fixture_below(2) != 0};
  if (fixture_below(2)) {
    d->blocks = fixture_malloc(n * d->stride);
    memset(d->blocks, WORLD_ASIDE, n * d->stride);
    options.blocks = d->blocks;
    options.blocks_stride = d->stride == k && fixture_below(2) ? 0 : d->stride;
  }
  EXPECT_OK(weft_decoder_new(w->ctx, &options, &d->decoder));
}

static void new_recoder(world *w, world_recoder *r, const world_source *of) {
  *r = (world_recoder){
      .of = of, .span = {.n = of->id.blocks}, .capacity = 1 + fixture_below(of->id.blocks)};
  EXPECT_OK(weft_recoder_new(w->ctx, &of->id, r->capacity, &r->recoder));
}

// Returns a block size: usually short, sometimes longer than the parts in which a recoder stores
// payloads.
static size_t some_block_bytes(void) {
  return fixture_below(12) ? 1 + fixture_below(90) : 4000 + fixture_below(5000);
}

// Returns a number of blocks: usually small, sometimes enough for groups of rows and for vectors of
// several cache lines.
static size_t some_blocks(void) {
  const size_t most = fixture_below(14) ? 12 : MODEL_BLOCKS;
  return most > 12 && fixture_below(2) ? most - fixture_below(9) : 1 + fixture_below(most);
}

void world_new(world *w, const char *row, size_t threads) {
  size_t blocks[SHAPES];
  bool small = true;
  for (size_t i = 0; i < SHAPES; i++) {
    blocks[i] = some_blocks();
    small = small && blocks[i] <= 12;
  }
  const size_t k = small ? some_block_bytes() : 1 + fixture_below(90);
  *w = (world){.other = fixture_ctx(NULL, 1)};
  w->ctx = fixture_ctx(row, threads);
  EXPECT_OK(weft_queue_new(w->ctx, &w->queue));
  EXPECT_OK(weft_queue_new(w->other, &w->foreign));
  for (size_t i = 0; i < SOURCES; i++) {
    weft_segment_id id = fixture_id(blocks[i % SHAPES], k);
    id.segment += i; // no packet belongs to two segments, even of the same shape
    new_source(w, &w->source[i], &id);
  }
  for (size_t i = 0; i < ENCODERS; i++)
    new_encoder(&w->encoder[i], &w->source[i % SOURCES]);
  for (size_t i = 0; i < DECODERS; i++)
    new_decoder(w, &w->decoder[i], &w->source[i % SOURCES]);
  for (size_t i = 0; i < RECODERS; i++)
    new_recoder(w, &w->recoder[i], &w->source[i % SOURCES]);
}

void world_free(world *w) {
  for (size_t i = 0; i < RECODERS; i++)
    weft_recoder_free(w->recoder[i].recoder);
  for (size_t i = 0; i < DECODERS; i++) {
    const world_decoder *d = &w->decoder[i];
    const size_t k = d->of->id.block_bytes;
    weft_decoder_free(d->decoder);
    for (size_t row = 0; d->blocks && row < d->of->id.blocks; row++)
      EXPECT(world_aside(d->blocks + row * d->stride + k, d->stride - k));
    free(d->blocks);
  }
  for (size_t i = 0; i < ENCODERS; i++)
    weft_encoder_free(w->encoder[i].encoder);
  for (size_t i = 0; i < SOURCES; i++) {
    weft_segment_free(w->source[i].segment);
    free(w->source[i].data);
    free(w->source[i].lent);
  }
  weft_queue_free(w->queue);
  weft_queue_free(w->foreign);
  weft_ctx_free(w->ctx);
  weft_ctx_free(w->other);
}
