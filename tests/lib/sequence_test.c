// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls on segments, encoders, decoders and recoders, checked against a model
// of a few lines: every byte, rank and status follows the definitions, whatever came before, and
// refused calls in between change nothing. Use --runs_per_test for new sequences.
#include "tests/lib/sequence.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"

enum { ROUNDS_ALONE = 60, ROUNDS_TOGETHER = 20, STEPS = 150 };

// Checks that the payloads match the packets, that the packets point to them, and that no byte
// around them changed.
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

void world_check_next(world_encoder *e, const weft_packet *packet) {
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
  for (; e->next_seed != packet->seed; e->next_seed++) { // skipped seeds give only zeros
    weft_packet none = *packet;
    none.seed = e->next_seed;
    EXPECT_OK(weft_packet_coefficients(&none, vector));
    for (size_t i = 0; i < n; i++)
      EXPECT(vector[i] == 0);
  }
  e->next_seed++;
}

static world_encoder *some_encoder(world *w) { return &w->encoder[fixture_below(ENCODERS)]; }

static void encode_next(world *w) {
  world_encoder *e = some_encoder(w);
  const size_t n = e->of->id.blocks, k = e->of->id.block_bytes;
  // Enough for any mode.
  const size_t capacity = weft_packet_bytes(&e->of->id, WEFT_PACKET_VECTOR) + 10;
  uint8_t *datagram = fixture_malloc(capacity), *payload = fixture_malloc(k);
  uint8_t vector[MODEL_BLOCKS];
  size_t bytes;
  weft_packet packet;
  EXPECT_OK(weft_encoder_next(e->encoder, datagram, capacity, &bytes));
  EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
  EXPECT(bytes == weft_packet_bytes(&e->of->id, packet.mode));
  world_check_next(e, &packet);
  EXPECT_OK(weft_packet_coefficients(&packet, vector));
  model_combine(vector, e->of->data, n, k, payload);
  EXPECT(memcmp(payload, packet.payload, k) == 0);
  free(payload);
  free(datagram);
}

// Omits an optional output of the batch: the coefficients or the packets.
static void leave_out(world_batch *b, const world_encoder *e) {
  const bool dense = e->options.density_q16 == 0;
  if (e->options.seeded && fixture_below(2))
    b->batch.coefficients = NULL;
  if (fixture_below(3) == 0 && (dense || !e->options.seeded) &&
      (b->batch.coefficients || e->next_block == e->of->id.blocks))
    b->batch.packets = NULL;
}

// Fills in what omitted packets must have been.
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
  world_encoder *of[ENCODERS]; // possibly the same one twice
  const size_t count = fixture_below(ENCODERS + 1);
  for (size_t i = 0; i < count; i++) {
    world_encoder *e = of[i] = &w->encoder[fixture_below(ENCODERS)];
    world_batch_new(&b[i], &e->of->id, fixture_below(BATCH + 1));
    leave_out(&b[i], e);
    encoders[i] = e->encoder;
    batches[i] = b[i].batch;
  }
  if (count == 1 && fixture_below(2))
    EXPECT_OK(weft_encoder_batch(encoders[0], batches, world_some_queue(w)));
  else
    EXPECT_OK(weft_encoder_batches(encoders, batches, count, world_some_queue(w)));
  world_wait(w);
  for (size_t i = 0; i < count; i++) {
    describe(&b[i], of[i]);
    for (size_t j = 0; j < batches[i].count; j++)
      world_check_next(of[i], &b[i].packets[j]);
    check_batch(&b[i], of[i]->of);
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
  EXPECT_OK(weft_encoder_combine(e->encoder, b.batch.count, vectors, stride, &b.batch,
                                 world_some_queue(w)));
  world_wait(w);
  for (size_t i = 0; i < b.batch.count; i++)
    b.packets[i] = (weft_packet){.id = e->of->id,
                                 .mode = WEFT_PACKET_VECTOR,
                                 .coefficients = vectors + i * stride,
                                 .payload = b.rows[i]};
  check_batch(&b, e->of);
  free(vectors);
  world_batch_free(&b);
}

// --- mixing ---

// Checks that recoded packets are nonzero vectors in the span of what was added.
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
  world_decoder *d = world_some_decoder(w);
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
  const world_decoder *d[DECODERS]; // possibly the same one twice
  const size_t count = fixture_below(DECODERS + 1);
  bool pending = false;
  for (size_t i = 0; i < count; i++) {
    d[i] = &w->decoder[fixture_below(DECODERS)];
    world_batch_new(&b[i], &d[i]->of->id, fixture_below(BATCH + 1));
    decoders[i] = d[i]->decoder;
    batches[i] = b[i].batch;
    pending = pending || (d[i]->span.rank == 0 && batches[i].count > 0);
  }
  EXPECT_STATUS(weft_decoders_recode(decoders, batches, count, world_some_queue(w)),
                pending ? WEFT_PENDING : WEFT_OK);
  world_wait(w);
  for (size_t i = 0; i < count; i++) {
    if (pending)
      EXPECT(world_batch_untouched(&b[i]));
    else
      check_mixed(&b[i], d[i]->of, &d[i]->span);
    world_batch_free(&b[i]);
  }
}

static void recode_datagram(world *w) {
  const world_decoder *d = world_some_decoder(w);
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
  world_packet p;
  world_packet_new(&p, fixture_below(8) ? r->of : &w->source[fixture_below(SOURCES)]);
  EXPECT_STATUS(weft_recoder_add(r->recoder, &p.packet), world_recoder_takes(r, &p));
  world_check_recoder(r);
  free(p.payload);
}

// --- the sequence ---

static void run(const char *row, size_t threads, size_t steps) {
  static void (*const calls[])(world *) = {
      encode_next,     encode_batches,     combine,         world_add_one,   world_add_one,
      world_add_one,   world_add_many,     world_ask_block, world_ask_block, world_read_range,
      world_read_many, recode_batch,       recode_many,     recode_datagram, recoder_add,
      recoder_add,     world_decode_batch, world_refused,   world_refused,   world_refused,
      world_add_run,   world_reset,        world_fix_random};
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
  for (int round = 0; round < ROUNDS_ALONE; round++)
    run(NULL, 1, STEPS);
}
END_TEST

START_TEST(any_sequence_on_some_threads) {
  fixture_start(920 + (uint64_t)_i);
  for (int round = 0; round < ROUNDS_TOGETHER; round++)
    run(NULL, 2 + fixture_below(2), STEPS);
}
END_TEST

// Only host rows: for them all kinds of memory are one, and an unsuitable kind can be refused. A
// device would fail for good on memory declared as the wrong kind; its rows are tested in
// tests/cuda/lib_test.
START_TEST(any_sequence_on_every_host_row) {
  fixture_start(950 + (uint64_t)_i);
  for (int round = 0; round < 3; round++)
    run(test_looped_row((size_t)_i)->name, 1 + fixture_below(2), STEPS);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sequences");
  TCase *alone = tcase_create("alone"), *calls = tcase_create("calls");
  tcase_set_tags(alone, "one-thread");
  tcase_add_loop_test(alone, any_sequence_on_the_best_row, 0, 2);
  tcase_add_loop_test(calls, any_sequence_on_some_threads, 0, 2);
  tcase_add_loop_test(calls, any_sequence_on_every_host_row, 0, (int)test_looped_row_count());
  suite_add_tcase(suite, alone);
  suite_add_tcase(suite, calls);
  return test_main(suite);
}
