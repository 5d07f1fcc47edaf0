// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls on segments, encoders, decoders and recoders, against a model of a few
// lines: every byte, rank and status is what the definitions say, whatever came before; and calls
// that are refused in between change nothing. Repeat with --runs_per_test for new sequences.
#include "tests/lib/sequence.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"

enum { ROUNDS = 40, STEPS = 150 };

// The payloads are what the packets say, packets point to them, and nothing beside them changed.
static void check_batch(const world_batch *b, const world_source *of) {
  const size_t n = of->id.blocks, k = of->id.block_bytes, count = b->batch.count;
  uint8_t *payload = fixture_malloc(k), vector[MODEL_BLOCKS];
  for (size_t i = 0; i < count; i++) {
    const weft_packet *packet = &b->packets[i];
    EXPECT(packet->payload == b->rows[i]);
    EXPECT(memcmp(&packet->id, &of->id, sizeof of->id) == 0);
    EXPECT_OK(weft_packet_coefficients(packet, vector));
    if (b->batch.coefficients)
      EXPECT(memcmp(vector, b->coefficients + i * (count > 1 ? b->batch.coefficients_stride : 0),
                    n) == 0);
    model_combine(vector, of->data, n, k, payload);
    EXPECT(memcmp(payload, b->rows[i], k) == 0);
    memset(b->rows[i], WORLD_ASIDE, k);
    if (b->batch.coefficients)
      memset(b->coefficients + i * (count > 1 ? b->batch.coefficients_stride : 0), WORLD_ASIDE, n);
  }
  EXPECT(world_batch_untouched(b));
  free(payload);
}

// --- encoders ---

// What the next packet of an encoder has to be.
static void check_next(world_encoder *e, const weft_packet *packet) {
  uint8_t vector[MODEL_BLOCKS];
  const size_t n = e->of->id.blocks;
  EXPECT_OK(weft_packet_coefficients(packet, vector));
  size_t nonzero = 0;
  for (size_t i = 0; i < n; i++)
    nonzero += vector[i] != 0;
  EXPECT(nonzero > 0);
  if (e->next_block < n) {
    EXPECT(packet->mode == WEFT_PACKET_SYSTEMATIC && packet->index == e->next_block++);
    return;
  }
  EXPECT(e->options.density_q16 != 0 || nonzero == n);
  if (!e->options.seeded) {
    EXPECT(packet->mode == WEFT_PACKET_VECTOR);
    return;
  }
  if (e->options.density_q16 == 0) {
    EXPECT(packet->mode == WEFT_PACKET_DENSE && packet->seed == e->next_seed++);
    return;
  }
  EXPECT(packet->mode == WEFT_PACKET_SPARSE && packet->density_q16 == e->options.density_q16);
  for (; e->next_seed != packet->seed; e->next_seed++) { // what is passed over stands for nothing
    weft_packet none = *packet;
    none.seed = e->next_seed;
    EXPECT_OK(weft_packet_coefficients(&none, vector));
    for (size_t i = 0; i < n; i++)
      EXPECT(vector[i] == 0);
  }
  e->next_seed++;
}

static weft_queue *some_queue(const world *w) { return fixture_below(2) ? w->queue : NULL; }

// With a queue what a call makes is there only when that is idle.
static void wait_for_queue(const world *w) { EXPECT_OK(weft_queue_wait(w->queue)); }

static world_encoder *some_encoder(world *w) { return &w->encoder[fixture_below(ENCODERS)]; }

static void encode_next(world *w) {
  world_encoder *e = some_encoder(w);
  const size_t n = e->of->id.blocks, k = e->of->id.block_bytes;
  const size_t capacity = weft_packet_bytes(&e->of->id, WEFT_PACKET_VECTOR) + 10; // any mode's
  uint8_t *datagram = fixture_malloc(capacity), *payload = fixture_malloc(k);
  uint8_t vector[MODEL_BLOCKS];
  size_t bytes;
  weft_packet packet;
  EXPECT_OK(weft_encoder_next(e->encoder, datagram, capacity, &bytes));
  EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
  EXPECT(bytes == weft_packet_bytes(&e->of->id, packet.mode));
  check_next(e, &packet);
  EXPECT_OK(weft_packet_coefficients(&packet, vector));
  model_combine(vector, e->of->data, n, k, payload);
  EXPECT(memcmp(payload, packet.payload, k) == 0);
  free(payload);
  free(datagram);
}

// Leaves out what may be left out: what the packets are made of, or what they are.
static void leave_out(world_batch *b, const world_encoder *e) {
  const bool dense = e->options.density_q16 == 0;
  if (e->options.seeded && fixture_below(2))
    b->batch.coefficients = NULL;
  if (fixture_below(3) == 0 && (dense || !e->options.seeded) &&
      (b->batch.coefficients || e->next_block == e->of->id.blocks))
    b->batch.packets = NULL;
}

// What packets that were not described have to be.
static void describe(world_batch *b, const world_encoder *e) {
  const size_t left = e->of->id.blocks - e->next_block;
  for (size_t i = 0; i < b->batch.count && !b->batch.packets; i++) {
    weft_packet *packet = &b->packets[i];
    *packet = (weft_packet){.id = e->of->id, .mode = WEFT_PACKET_VECTOR, .payload = b->rows[i]};
    if (i < left) {
      packet->mode = WEFT_PACKET_SYSTEMATIC;
      packet->index = (uint32_t)(e->next_block + i);
    } else if (e->options.seeded) {
      packet->mode = WEFT_PACKET_DENSE;
      packet->seed = e->next_seed + (i - left);
    } else {
      packet->coefficients =
          b->coefficients + i * (b->batch.count > 1 ? b->batch.coefficients_stride : 0);
    }
  }
}

static void encode_batches(world *w) {
  world_batch b[ENCODERS];
  weft_encoder *encoders[ENCODERS];
  weft_batch batches[ENCODERS];
  const size_t first = fixture_below(ENCODERS), count = fixture_below(ENCODERS - first + 1);
  for (size_t i = 0; i < count; i++) {
    world_encoder *e = &w->encoder[first + i];
    world_batch_new(&b[i], &e->of->id, fixture_below(BATCH + 1));
    leave_out(&b[i], e);
    encoders[i] = e->encoder;
    batches[i] = b[i].batch;
  }
  if (count == 1 && fixture_below(2))
    EXPECT_OK(weft_encoder_batch(encoders[0], batches, some_queue(w)));
  else
    EXPECT_OK(weft_encoder_batches(encoders, batches, count, some_queue(w)));
  wait_for_queue(w);
  for (size_t i = 0; i < count; i++) {
    describe(&b[i], &w->encoder[first + i]);
    for (size_t j = 0; j < batches[i].count; j++)
      check_next(&w->encoder[first + i], &b[i].packets[j]);
    check_batch(&b[i], w->encoder[first + i].of);
    world_batch_free(&b[i]);
  }
}

static void combine(world *w) {
  const world_encoder *e = some_encoder(w);
  world_batch b;
  const size_t n = e->of->id.blocks, stride = n + fixture_below(4);
  world_batch_new(&b, &e->of->id, fixture_below(BATCH + 1));
  uint8_t *vectors = fixture_malloc(BATCH * stride);
  fixture_fill(vectors, BATCH * stride);
  b.batch.coefficients = NULL;
  EXPECT_OK(
      weft_encoder_combine(e->encoder, b.batch.count, vectors, stride, &b.batch, some_queue(w)));
  wait_for_queue(w);
  for (size_t i = 0; i < b.batch.count; i++)
    b.packets[i] = (weft_packet){.id = e->of->id,
                                 .mode = WEFT_PACKET_VECTOR,
                                 .coefficients = vectors + i * stride,
                                 .payload = b.rows[i]};
  check_batch(&b, e->of);
  free(vectors);
  world_batch_free(&b);
}

// --- decoders ---

static world_decoder *some_decoder(world *w) { return &w->decoder[fixture_below(DECODERS)]; }

static weft_status expected_of(world_decoder *d, const world_packet *p) {
  if (memcmp(&p->packet.id, &d->of->id, sizeof d->of->id) != 0)
    return WEFT_E_FOREIGN;
  return model_span_add(&d->span, p->coefficients) ? WEFT_OK : WEFT_DEPENDENT;
}

// A block that has been handed out stays where it is, as it is.
static void check_seen(const world_decoder *d) {
  const size_t k = d->of->id.block_bytes;
  for (size_t i = 0; i < d->of->id.blocks; i++)
    if (d->seen[i])
      EXPECT(memcmp(d->seen[i], d->of->data + i * k, k) == 0);
}

static void add_one(world *w) {
  world_decoder *d = some_decoder(w);
  world_packet p;
  world_packet_new(&p, fixture_below(8) ? d->of : &w->source[fixture_below(SOURCES)]);
  const weft_status expected = expected_of(d, &p);
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

static void add_many(world *w) {
  enum { MANY = 9 };
  weft_arrival arrivals[MANY];
  world_packet packets[MANY];
  world_decoder *to[MANY];
  const size_t count = fixture_below(MANY + 1);
  for (size_t i = 0; i < count; i++) {
    to[i] = some_decoder(w);
    world_packet_new(&packets[i], fixture_below(8) ? to[i]->of : &w->source[0]);
    arrivals[i] = (weft_arrival){to[i]->decoder, packets[i].packet, WEFT_E_STATE};
  }
  EXPECT_OK(weft_decoders_add(arrivals, count, WEFT_MEM_HOST, some_queue(w)));
  wait_for_queue(w);
  for (size_t i = 0; i < count; i++) {
    EXPECT_STATUS(arrivals[i].status, expected_of(to[i], &packets[i]));
    free(packets[i].payload);
  }
}

static void ask_block(world *w) {
  world_decoder *d = some_decoder(w);
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

static void read_range(world *w) {
  world_decoder *d = some_decoder(w);
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
    for (size_t i = 0; d->blocks && i < d->of->id.blocks; i++) // all blocks are in their rows
      d->seen[i] = d->blocks + i * d->stride;
    check_seen(d);
  }
  free(out);
}

static void read_many(world *w) {
  weft_reading readings[DECODERS];
  world_decoder *of[DECODERS];
  const size_t count = fixture_below(DECODERS + 1);
  for (size_t i = 0; i < count; i++) {
    of[i] = some_decoder(w);
    const size_t n = of[i]->of->id.blocks, k = of[i]->of->id.block_bytes;
    readings[i] = (weft_reading){
        .decoder = of[i]->decoder, .first = fixture_below(n + 1), .status = WEFT_E_STATE};
    readings[i].count = fixture_below(n - readings[i].first + 1);
    readings[i].out_stride = readings[i].count == 1 ? fixture_below(k) : k + fixture_below(3);
    const size_t stride = readings[i].count > 1 ? readings[i].out_stride : k;
    readings[i].out = fixture_malloc(readings[i].count * stride);
    memset(readings[i].out, WORLD_ASIDE, readings[i].count * stride);
  }
  EXPECT_OK(weft_decoders_read(readings, count, some_queue(w)));
  wait_for_queue(w);
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

// --- mixing ---

// Recoded packets are vectors, none of them zero, of what was taken in.
static void check_mixed(world_batch *b, const world_source *of, const model_span *span) {
  static const uint8_t zero[MODEL_BLOCKS];
  const world_encoder none = {.of = of, .next_block = of->id.blocks};
  describe(b, &none);
  for (size_t i = 0; i < b->batch.count; i++) {
    EXPECT(b->packets[i].mode == WEFT_PACKET_VECTOR);
    EXPECT(memcmp(b->packets[i].coefficients, zero, of->id.blocks) != 0);
    EXPECT(model_span_has(span, b->packets[i].coefficients));
  }
  check_batch(b, of);
}

static void recode_batch(world *w) {
  world_decoder *d = some_decoder(w);
  const world_recoder *r = &w->recoder[fixture_below(RECODERS)];
  const bool by_decoder = fixture_below(2) != 0;
  const world_source *of = by_decoder ? d->of : r->of;
  const model_span *span = by_decoder ? &d->span : &r->span;
  world_batch b;
  world_batch_new(&b, &of->id, fixture_below(BATCH + 1));
  if (fixture_below(2))
    b.batch.packets = NULL;
  const weft_status status = by_decoder ? weft_decoder_recode_batch(d->decoder, &b.batch)
                                        : weft_recoder_batch(r->recoder, &b.batch);
  if (span->rank == 0 && b.batch.count > 0) {
    EXPECT_STATUS(status, WEFT_PENDING);
    EXPECT(world_batch_untouched(&b));
  } else {
    EXPECT_OK(status);
    check_mixed(&b, of, span);
  }
  world_batch_free(&b);
}

static void recode_many(world *w) {
  world_batch b[DECODERS];
  weft_decoder *decoders[DECODERS];
  weft_batch batches[DECODERS];
  const size_t first = fixture_below(DECODERS), count = fixture_below(DECODERS - first + 1);
  bool pending = false;
  for (size_t i = 0; i < count; i++) {
    const world_decoder *d = &w->decoder[first + i];
    world_batch_new(&b[i], &d->of->id, fixture_below(BATCH + 1));
    decoders[i] = d->decoder;
    batches[i] = b[i].batch;
    pending = pending || (d->span.rank == 0 && batches[i].count > 0);
  }
  EXPECT_STATUS(weft_decoders_recode(decoders, batches, count, some_queue(w)),
                pending ? WEFT_PENDING : WEFT_OK);
  wait_for_queue(w);
  for (size_t i = 0; i < count; i++) {
    if (pending)
      EXPECT(world_batch_untouched(&b[i]));
    else
      check_mixed(&b[i], w->decoder[first + i].of, &w->decoder[first + i].span);
    world_batch_free(&b[i]);
  }
}

static void recode_datagram(world *w) {
  const world_decoder *d = some_decoder(w);
  const world_recoder *r = &w->recoder[fixture_below(RECODERS)];
  const bool by_decoder = fixture_below(2) != 0;
  const world_source *of = by_decoder ? d->of : r->of;
  const model_span *span = by_decoder ? &d->span : &r->span;
  const size_t capacity = weft_packet_bytes(&of->id, WEFT_PACKET_VECTOR);
  uint8_t *datagram = fixture_malloc(capacity), *payload = fixture_malloc(of->id.block_bytes);
  size_t bytes = 7;
  const weft_status status = by_decoder
                                 ? weft_decoder_recode(d->decoder, datagram, capacity, &bytes)
                                 : weft_recoder_next(r->recoder, datagram, capacity, &bytes);
  if (span->rank == 0) {
    EXPECT_STATUS(status, WEFT_PENDING);
    EXPECT(bytes == 7);
  } else {
    weft_packet packet;
    EXPECT_OK(status);
    EXPECT(bytes == capacity);
    EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
    EXPECT(packet.mode == WEFT_PACKET_VECTOR && model_span_has(span, packet.coefficients));
    model_combine(packet.coefficients, of->data, of->id.blocks, of->id.block_bytes, payload);
    EXPECT(memcmp(payload, packet.payload, of->id.block_bytes) == 0);
  }
  free(payload);
  free(datagram);
}

static void recoder_add(world *w) {
  world_recoder *r = &w->recoder[fixture_below(RECODERS)];
  static const uint8_t zero[MODEL_BLOCKS];
  world_packet p;
  world_packet_new(&p, fixture_below(8) ? r->of : &w->source[fixture_below(SOURCES)]);
  weft_status expected = WEFT_OK;
  if (memcmp(&p.packet.id, &r->of->id, sizeof r->of->id) != 0)
    expected = WEFT_E_FOREIGN;
  else if (memcmp(p.coefficients, zero, r->of->id.blocks) == 0)
    expected = WEFT_DEPENDENT;
  EXPECT_STATUS(weft_recoder_add(r->recoder, &p.packet), expected);
  if (expected == WEFT_OK) {
    r->held += r->held < r->capacity;
    (void)model_span_add(&r->span, p.coefficients);
  }
  world_check_recoder(r);
  free(p.payload);
}

// --- batch decoding ---

static bool is_regular(const uint8_t *matrix, size_t n, size_t stride) {
  model_span span = {.n = n};
  for (size_t i = 0; i < n; i++)
    (void)model_span_add(&span, matrix + i * stride);
  return span.rank == n;
}

static void decode_batch(world *w) {
  weft_decode_job jobs[BATCH];
  const uint8_t *rows[BATCH][MODEL_BLOCKS];
  const world_source *of[BATCH];
  const size_t count = fixture_below(BATCH + 1);
  for (size_t i = 0; i < count; i++) {
    of[i] = &w->source[fixture_below(SOURCES)];
    const size_t n = of[i]->id.blocks, k = of[i]->id.block_bytes;
    const size_t columns = n + fixture_below(3), stride = k + fixture_below(3);
    uint8_t *matrix = fixture_malloc(n * columns), *payload = fixture_malloc(n * stride);
    for (size_t c = 0; c < n * columns; c++) // as sparse ones are often singular
      matrix[c] = fixture_below(4) ? (uint8_t)fixture_next() : 0;
    for (size_t r = 0; r < n; r++) {
      model_combine(matrix + r * columns, of[i]->data, n, k, payload + r * stride);
      rows[i][r] = payload + r * stride;
    }
    if (fixture_below(4) == 0 && n > 1)
      memcpy(matrix, matrix + (n - 1) * columns, n); // payloads do not matter then
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
  EXPECT_OK(weft_decode_batch(w->ctx, jobs, count, some_queue(w)));
  wait_for_queue(w);
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

// --- the sequence ---

static void run(const char *row, size_t threads, size_t steps) {
  static void (*const calls[])(world *) = {
      encode_next, encode_batches, combine,       add_one,         add_one,
      add_one,     add_many,       ask_block,     ask_block,       read_range,
      read_many,   recode_batch,   recode_many,   recode_datagram, recoder_add,
      recoder_add, decode_batch,   world_refused, world_refused,   world_refused};
  world w;
  world_new(&w, row, threads);
  for (size_t step = 0; step < steps; step++) {
    calls[fixture_below(sizeof calls / sizeof calls[0])](&w);
    for (size_t i = 0; i < DECODERS; i++)
      world_check_decoder(&w.decoder[i]);
    for (size_t i = 0; i < RECODERS; i++)
      world_check_recoder(&w.recoder[i]);
  }
  world_free(&w);
}

START_TEST(any_sequence_on_the_best_row) {
  fixture_start(900 + (uint64_t)_i);
  for (int round = 0; round < ROUNDS; round++)
    run(NULL, 1 + fixture_below(3), STEPS);
}
END_TEST

// Of hosts: there all kinds of memory are one, and a kind that is not the row's can be refused. To
// a device, memory that is named for what it is not is lost; its rows have tests/cuda/lib_test.
START_TEST(any_sequence_on_every_host_row) {
  fixture_start(950 + (uint64_t)_i);
  for (int round = 0; round < 3; round++)
    run(test_host_row((size_t)_i)->name, 1 + fixture_below(2), STEPS);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sequences");
  TCase *tcase = tcase_create("calls");
  tcase_add_loop_test(tcase, any_sequence_on_the_best_row, 0, 4);
  tcase_add_loop_test(tcase, any_sequence_on_every_host_row, 0, (int)test_host_row_count());
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
