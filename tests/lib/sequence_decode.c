// SPDX-License-Identifier: Apache-2.0
// Random calls that add packets and read blocks: on one decoder or many, and batch decoding.
#include "tests/lib/sequence.h"

#include <stdlib.h>
#include <string.h>

// --- decoders ---

// A block that has been handed out keeps its place and its bytes.
static void check_seen(const world_decoder *d) {
  const size_t k = d->of->id.block_bytes;
  for (size_t i = 0; i < d->of->id.blocks; i++)
    if (d->seen[i])
      EXPECT(memcmp(d->seen[i], d->of->data + i * k, k) == 0);
}

static void add(const world *w, world_decoder *d) {
  world_packet p;
  world_packet_new(&p, fixture_below(8) ? d->of : &w->source[fixture_below(SOURCES)]);
  const weft_status expected = world_decoder_takes(d, &p);
  const size_t capacity = weft_packet_bytes(&p.packet.id, p.packet.mode);
  uint8_t *datagram = fixture_malloc(capacity);
  size_t bytes;
  if (fixture_below(2)) {
    EXPECT_STATUS(weft_decoder_add(d->decoder, &p.packet), expected);
  } else {
    EXPECT_OK(weft_packet_write(&p.packet, datagram, capacity, &bytes));
    EXPECT_STATUS(weft_decoder_add_datagram(d->decoder, datagram, bytes), expected);
  }
  free(datagram);
  free(p.payload);
}

void world_add_one(world *w) { add(w, world_some_decoder(w)); }

// Adds enough packets to bring a decoder of many blocks to any rank, often the full one.
void world_add_run(world *w) {
  world_decoder *d = world_some_decoder(w);
  const size_t n = d->of->id.blocks;
  for (size_t left = fixture_below(2) ? fixture_below(n + 1) : n + n / 4; left > 0; left--)
    add(w, d);
}

// Adds packets to several decoders in one call, often several for one of them.
void world_add_many(world *w) {
  enum { MANY = 24 };
  weft_arrival arrivals[MANY];
  world_packet packets[MANY];
  world_decoder *to[MANY];
  const size_t count = fixture_below(fixture_below(2) ? 9 : MANY + 1);
  for (size_t i = 0; i < count; i++) {
    to[i] = i > 0 && fixture_below(2) ? to[i - 1] : world_some_decoder(w);
    world_packet_new(&packets[i], fixture_below(8) ? to[i]->of : &w->source[0]);
    arrivals[i] = (weft_arrival){to[i]->decoder, packets[i].packet, WEFT_E_STATE};
  }
  EXPECT_OK(weft_decoders_add(arrivals, count, WEFT_MEM_HOST, world_some_queue(w)));
  world_wait(w);
  for (size_t i = 0; i < count; i++) {
    EXPECT_STATUS(arrivals[i].status, world_decoder_takes(to[i], &packets[i]));
    free(packets[i].payload);
  }
}

void world_ask_block(world *w) {
  world_decoder *d = world_some_decoder(w);
  const size_t n = d->of->id.blocks, k = d->of->id.block_bytes, i = fixture_below(n);
  const uint8_t none = 0, *block = &none;
  const weft_status status = weft_decoder_block(d->decoder, i, &block);
  if (!model_span_has_unit(&d->span, i)) {
    EXPECT_STATUS(status, WEFT_PENDING);
    EXPECT(block == &none);
    return;
  }
  EXPECT_OK(status);
  EXPECT(memcmp(block, d->of->data + i * k, k) == 0);
  EXPECT(!d->blocks || block == d->blocks + i * d->stride);
  EXPECT(!d->seen[i] || d->seen[i] == block);
  d->seen[i] = block;
  check_seen(d);
}

void world_read_range(world *w) {
  world_decoder *d = world_some_decoder(w);
  const size_t total = (size_t)d->of->id.blocks * d->of->id.block_bytes;
  const size_t offset = fixture_below(total + 1), bytes = fixture_below(total - offset + 1);
  uint8_t *out = fixture_malloc(bytes);
  memset(out, WORLD_ASIDE, bytes);
  const weft_status status = weft_decoder_read(d->decoder, offset, bytes, out);
  if (d->span.rank < d->of->id.blocks) {
    EXPECT_STATUS(status, WEFT_PENDING);
    EXPECT(world_aside(out, bytes));
  } else {
    EXPECT_OK(status);
    EXPECT(memcmp(out, d->of->data + offset, bytes) == 0);
    // All blocks are in the caller's rows.
    for (size_t i = 0; d->blocks && i < d->of->id.blocks; i++)
      d->seen[i] = d->blocks + i * d->stride;
    check_seen(d);
  }
  free(out);
}

void world_read_many(world *w) {
  weft_reading readings[DECODERS];
  world_decoder *of[DECODERS];
  const size_t count = fixture_below(DECODERS + 1);
  for (size_t i = 0; i < count; i++) {
    of[i] = world_some_decoder(w);
    const size_t n = of[i]->of->id.blocks, k = of[i]->of->id.block_bytes;
    readings[i] = (weft_reading){
        .decoder = of[i]->decoder, .first = fixture_below(n + 1), .status = WEFT_E_STATE};
    readings[i].count = fixture_below(n - readings[i].first + 1);
    readings[i].out_stride = readings[i].count == 1 ? fixture_below(k) : k + fixture_below(3);
    const size_t stride = readings[i].count > 1 ? readings[i].out_stride : k;
    readings[i].out = fixture_malloc(readings[i].count * stride);
    memset(readings[i].out, WORLD_ASIDE, readings[i].count * stride);
  }
  EXPECT_OK(weft_decoders_read(readings, count, world_some_queue(w)));
  world_wait(w);
  for (size_t i = 0; i < count; i++) {
    const size_t k = of[i]->of->id.block_bytes;
    bool known = true;
    for (size_t b = 0; b < readings[i].count; b++)
      known = known && model_span_has_unit(&of[i]->span, readings[i].first + b);
    EXPECT_STATUS(readings[i].status, known ? WEFT_OK : WEFT_PENDING);
    for (size_t b = 0; b < readings[i].count; b++) {
      const uint8_t *row = readings[i].out + b * readings[i].out_stride;
      const size_t gap = readings[i].count > 1 ? readings[i].out_stride - k : 0;
      EXPECT(known ? memcmp(row, of[i]->of->data + (readings[i].first + b) * k, k) == 0
                   : world_aside(row, k));
      EXPECT(world_aside(row + k, gap));
    }
    free(readings[i].out);
  }
}

// --- batch decoding ---

static bool is_regular(const uint8_t *matrix, size_t n, size_t stride) {
  model_span span = {.n = n};
  for (size_t i = 0; i < n; i++)
    (void)model_span_add(&span, matrix + i * stride);
  return span.rank == n;
}

void world_decode_batch(world *w) {
  weft_decode_job jobs[BATCH];
  const uint8_t *rows[BATCH][MODEL_BLOCKS];
  const world_source *of[BATCH];
  const size_t count = fixture_below(BATCH + 1);
  for (size_t i = 0; i < count; i++) {
    of[i] = &w->source[fixture_below(SOURCES)];
    const size_t n = of[i]->id.blocks, k = of[i]->id.block_bytes;
    const size_t columns = n + fixture_below(3), stride = k + fixture_below(3);
    uint8_t *matrix = fixture_malloc(n * columns), *payload = fixture_malloc(n * stride);
    for (size_t c = 0; c < n * columns; c++) // sparse matrices are often singular
      matrix[c] = fixture_below(4) ? (uint8_t)fixture_next() : 0;
    for (size_t r = 0; r < n; r++) {
      model_combine(matrix + r * columns, of[i]->data, n, k, payload + r * stride);
      rows[i][r] = payload + r * stride;
    }
    if (fixture_below(4) == 0 && n > 1)
      memcpy(matrix, matrix + (n - 1) * columns, n); // payloads are irrelevant then
    jobs[i] = (weft_decode_job){.blocks = n,
                                .block_bytes = k,
                                .coefficients = matrix,
                                .coefficients_stride = columns,
                                .payload = payload,
                                .payload_rows = fixture_below(2) ? rows[i] : NULL,
                                .payload_stride = stride,
                                .out = fixture_malloc(n * stride),
                                .out_stride = stride,
                                .status = WEFT_E_STATE};
    memset(jobs[i].out, WORLD_ASIDE, n * stride);
  }
  EXPECT_OK(weft_decode_batch(w->ctx, jobs, count, world_some_queue(w)));
  world_wait(w);
  for (size_t i = 0; i < count; i++) {
    const size_t n = of[i]->id.blocks, k = of[i]->id.block_bytes;
    const bool regular = is_regular(jobs[i].coefficients, n, jobs[i].coefficients_stride);
    EXPECT_STATUS(jobs[i].status, regular ? WEFT_OK : WEFT_E_SINGULAR);
    for (size_t r = 0; r < n; r++) {
      const uint8_t *row = jobs[i].out + r * jobs[i].out_stride;
      EXPECT(!regular || memcmp(row, of[i]->data + r * k, k) == 0);
      EXPECT(world_aside(row + k, jobs[i].out_stride - k));
    }
    free((void *)(uintptr_t)jobs[i].coefficients);
    free((void *)(uintptr_t)jobs[i].payload);
    free(jobs[i].out);
  }
}
