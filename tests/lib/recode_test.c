// SPDX-License-Identifier: Apache-2.0
// Recoding: chains of relays decode, and what a recoder sends matches its coefficients, for every
// row of this machine, any shape, and outputs that end at guard pages.
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/lib/sequence_model.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_main.h"

enum { HOPS = 8 };

// --- the recoder's packets ---

// Checks payload (k) = coefficients (n) * source (n, k) with the scalar row, which is the
// specification; the bitwise definition of the field would take too long for segments of these
// sizes.
static void check_payload(const fixture_source *source, weft_encoder *specification,
                          const uint8_t *coefficients, const uint8_t *payload) {
  const size_t n = source->id.blocks, k = source->id.block_bytes;
  uint8_t *wanted = fixture_malloc(k);
  const weft_batch batch = {.count = 1, .payload = wanted};
  bool any = false;
  for (size_t i = 0; i < n; i++)
    any = any || coefficients[i] != 0;
  EXPECT(any);
  EXPECT_OK(weft_encoder_combine(specification, 1, coefficients, n, &batch, NULL));
  EXPECT(memcmp(payload, wanted, k) == 0);
  free(wanted);
}

// Recodes one packet at a time, with both outputs ending at guard pages; the bytes before them do
// not change.
static void check_single(const fixture_source *source, weft_encoder *specification,
                         weft_recoder *recoder) {
  const size_t n = source->id.blocks, k = source->id.block_bytes;
  test_guard coefficients = test_guard_new(n + 1), payload = test_guard_new(k + 1);
  coefficients.end[-1 - (ptrdiff_t)n] = payload.end[-1 - (ptrdiff_t)k] = 0xEE;
  uint8_t *rows[] = {payload.end - k};
  weft_packet packet;
  for (int i = 0; i < 5; i++) {
    const weft_batch batch = {.count = 1,
                              .packets = &packet,
                              .coefficients = coefficients.end - n,
                              .payload_rows = i % 2 == 0 ? rows : NULL,
                              .payload = i % 2 == 0 ? NULL : rows[0]};
    EXPECT_OK(weft_recoder_batch(recoder, &batch));
    EXPECT(packet.payload == rows[0] && packet.coefficients == coefficients.end - n);
    check_payload(source, specification, packet.coefficients, packet.payload);
  }
  EXPECT(coefficients.end[-1 - (ptrdiff_t)n] == 0xEE && payload.end[-1 - (ptrdiff_t)k] == 0xEE);
  test_guard_free(&payload);
  test_guard_free(&coefficients);
}

static void check_batch(const fixture_source *source, weft_encoder *specification,
                        weft_recoder *recoder, bool as_rows) {
  enum { COUNT = 7, GAP = 9 };
  const size_t n = source->id.blocks, k = source->id.block_bytes;
  uint8_t *coefficients = fixture_malloc(COUNT * (n + GAP));
  uint8_t *payload = fixture_malloc(COUNT * (k + GAP)), *rows[COUNT];
  weft_packet packets[COUNT];
  memset(payload, 0xEE, COUNT * (k + GAP));
  for (size_t i = 0; i < COUNT; i++)
    rows[i] = payload + (COUNT - 1 - i) * (k + GAP);
  const weft_batch batch = {.count = COUNT,
                            .packets = packets,
                            .coefficients = coefficients,
                            .coefficients_stride = n + GAP,
                            .payload_rows = as_rows ? rows : NULL,
                            .payload = as_rows ? NULL : payload,
                            .payload_stride = k + GAP};
  EXPECT_OK(weft_recoder_batch(recoder, &batch));
  for (size_t i = 0; i < COUNT; i++) {
    EXPECT(packets[i].payload == (as_rows ? rows[i] : payload + i * (k + GAP)));
    check_payload(source, specification, packets[i].coefficients, packets[i].payload);
    for (size_t b = k; b < k + GAP; b++)
      EXPECT(packets[i].payload[b] == 0xEE); // nothing is written between rows
  }
  free(payload);
  free(coefficients);
}

// Checks every fill level, up to a few more packets than the recoder has places.
static void check_shape(weft_ctx *ctx, weft_ctx *scalar, size_t n, size_t k, size_t capacity) {
  fixture_source source = fixture_source_new(ctx, n, k, n * k, NULL);
  const weft_segment_options options = {
      .id = source.id, .data = source.data, .bytes = n * k, .borrow = true};
  weft_segment *segment;
  weft_encoder *specification;
  weft_recoder *recoder;
  EXPECT_OK(weft_segment_new(scalar, &options, NULL, &segment));
  EXPECT_OK(weft_encoder_new(segment, NULL, &specification));
  EXPECT_OK(weft_recoder_new(ctx, &source.id, capacity, &recoder));
  const size_t room = weft_packet_bytes(&source.id, WEFT_PACKET_VECTOR);
  uint8_t *datagram = fixture_malloc(room);
  for (size_t fed = 1; fed <= capacity + 3; fed++) {
    size_t bytes;
    weft_packet packet;
    EXPECT_OK(weft_encoder_next(source.encoder, datagram, room, &bytes));
    EXPECT_OK(weft_recoder_add_datagram(recoder, datagram, bytes));
    EXPECT(weft_recoder_held(recoder) == (fed < capacity ? fed : capacity));
    if (fed % 5 != 1 && fed < capacity)
      continue;
    check_single(&source, specification, recoder);
    check_batch(&source, specification, recoder, fed % 2 == 0);
    EXPECT_OK(weft_recoder_next(recoder, datagram, room, &bytes));
    EXPECT(bytes == room);
    EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
    check_payload(&source, specification, packet.coefficients, packet.payload);
  }
  free(datagram);
  weft_recoder_free(recoder);
  weft_encoder_free(specification);
  weft_segment_free(segment);
  fixture_source_free(&source);
}

// Recoded payloads are correct for block sizes around a vector, a cache line, and the blocks of
// columns in which held payloads are stored.
START_TEST(recoded_payloads_are_the_product) {
  static const struct {
    size_t n, k, capacity;
  } shapes[] = {{1, 1, 1},     {2, 63, 2},    {3, 64, 1},   {5, 65, 3},   {16, 1000, 16},
                {65, 200, 9},  {7, 4095, 7},  {7, 4096, 5}, {6, 4097, 6}, {9, 8192, 4},
                {4, 12345, 3}, {300, 70, 11}, {2, 65537, 2}};
  fixture_start(82);
  weft_ctx *scalar = fixture_ctx("scalar", 1);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), _i % 2 == 0 ? 1 : 3);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    check_shape(ctx, scalar, shapes[s].n, shapes[s].k, shapes[s].capacity);
  weft_ctx_free(ctx);
  weft_ctx_free(scalar);
}
END_TEST

// --- hops ---

// Packets pass through a chain of relays, alternately decoders and recoders of random capacity;
// every link loses packets, and every relay sends as soon as it holds anything.
START_TEST(eight_recoding_hops) {
  fixture_start(60 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  const size_t n = 1 + fixture_below(48), k = 1 + fixture_below(300);
  const weft_encoder_options options = {.seeded = _i % 2 == 0, .systematic = _i % 3 == 0};
  fixture_source source = fixture_source_new(ctx, n, k, n * k, &options);
  weft_decoder *relays[HOPS] = {NULL}, *sink = fixture_decoder(ctx, &source.id);
  weft_recoder *mixers[HOPS] = {NULL};
  for (size_t h = 0; h < HOPS; h++)
    if (h % 2 == 0)
      relays[h] = fixture_decoder(ctx, &source.id);
    else
      EXPECT_OK(weft_recoder_new(ctx, &source.id, h == 1 ? n : n - fixture_below((n + 1) / 2),
                                 &mixers[h]));
  const size_t capacity = WEFT_WIRE_HEADER_BYTES + 48 + 300 + 16;
  uint8_t *datagram = fixture_malloc(capacity);
  size_t sent = 0;
  while (!weft_decoder_complete(sink)) {
    EXPECT(sent++ < 200 * (n + HOPS)); // recoding from part of the segment must get through
    for (size_t h = 0; h <= HOPS; h++) {
      size_t bytes;
      weft_status status = h == 0 ? weft_encoder_next(source.encoder, datagram, capacity, &bytes)
                           : relays[h - 1] != NULL
                               ? weft_decoder_recode(relays[h - 1], datagram, capacity, &bytes)
                               : weft_recoder_next(mixers[h - 1], datagram, capacity, &bytes);
      if (status == WEFT_PENDING || fixture_below(10) == 0)
        continue;
      EXPECT_OK(status);
      weft_decoder *to = h == HOPS ? sink : relays[h];
      status = to ? weft_decoder_add_datagram(to, datagram, bytes)
                  : weft_recoder_add_datagram(mixers[h], datagram, bytes);
      EXPECT(status == WEFT_OK || status == WEFT_DEPENDENT);
    }
  }
  fixture_check_decoded(&source, sink);
  for (size_t h = 0; h < HOPS; h++) {
    weft_decoder_free(relays[h]);
    weft_recoder_free(mixers[h]);
  }
  weft_decoder_free(sink);
  free(datagram);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// --- bytes ---

// A decoder and a recoder with fixed random numbers; the recoder has half as many places as there
// are blocks.
typedef struct mixers {
  weft_decoder *decoder;
  weft_recoder *recoder;
} mixers;

static mixers mixers_new(weft_ctx *ctx, const weft_segment_id *id) {
  const uint8_t key[32] = {7};
  mixers r = {.decoder = fixture_decoder(ctx, id)};
  EXPECT_OK(weft_recoder_new(ctx, id, (id->blocks + 1u) / 2, &r.recoder));
  EXPECT_OK(weft_decoder_fix_random(r.decoder, key));
  EXPECT_OK(weft_recoder_fix_random(r.recoder, key));
  return r;
}

// Writes the packets of both, batches and single ones, to `out`, which ends at a guard page.
static void mix(const mixers *r, const weft_segment_id *id, const test_guard *out, size_t room) {
  enum { BATCH = 67 }; // more than one product of narrow rows handles
  uint8_t *at = out->end - (2 * BATCH + 2) * room;
  size_t bytes;
  weft_batch batch = {.count = BATCH,
                      .coefficients = at,
                      .coefficients_stride = room,
                      .payload = at + room - id->block_bytes,
                      .payload_stride = room};
  EXPECT_OK(weft_decoder_recode_batch(r->decoder, &batch));
  batch.coefficients += BATCH * room;
  batch.payload += BATCH * room;
  EXPECT_OK(weft_recoder_batch(r->recoder, &batch));
  at = out->end - 2 * room;
  EXPECT_OK(weft_decoder_recode(r->decoder, at, room, &bytes));
  EXPECT_OK(weft_recoder_next(r->recoder, at + room, room, &bytes));
}

// Each row makes the same bytes as scalar, for coefficients of any length, including those shorter
// than a vector.
START_TEST(recoded_packets_are_those_of_scalar) {
  enum { PACKETS = 2 * 67 + 2 };
  weft_ctx *scalar = fixture_ctx("scalar", 1);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 1);
  for (size_t n = 1; n <= 70; n += n < 40 ? 1 : 15) {
    fixture_start(n);
    const size_t k = 1 + fixture_below(90);
    fixture_source source = fixture_source_new(ctx, n, k, n * k, NULL);
    const size_t room = weft_packet_bytes(&source.id, WEFT_PACKET_VECTOR);
    test_guard mine = test_guard_new(PACKETS * room), wanted = test_guard_new(PACKETS * room);
    uint8_t *datagram = fixture_malloc(room);
    const mixers a = mixers_new(ctx, &source.id), b = mixers_new(scalar, &source.id);
    while (!weft_decoder_complete(b.decoder)) {
      size_t bytes;
      EXPECT_OK(weft_encoder_next(source.encoder, datagram, room, &bytes));
      EXPECT(weft_decoder_add_datagram(a.decoder, datagram, bytes) ==
             weft_decoder_add_datagram(b.decoder, datagram, bytes));
      EXPECT_OK(weft_recoder_add_datagram(a.recoder, datagram, bytes));
      EXPECT_OK(weft_recoder_add_datagram(b.recoder, datagram, bytes));
      if (weft_decoder_rank(b.decoder) != n / 2 + 1 && !weft_decoder_complete(b.decoder))
        continue;
      memset(mine.end - PACKETS * room, 0, PACKETS * room);
      memset(wanted.end - PACKETS * room, 0, PACKETS * room);
      mix(&a, &source.id, &mine, room);
      mix(&b, &source.id, &wanted, room);
      EXPECT(memcmp(mine.end - PACKETS * room, wanted.end - PACKETS * room, PACKETS * room) == 0);
    }
    fixture_check_decoded(&source, a.decoder);
    for (int i = 0; i < 2; i++) {
      weft_decoder_free(i ? a.decoder : b.decoder);
      weft_recoder_free(i ? a.recoder : b.recoder);
    }
    free(datagram);
    test_guard_free(&wanted);
    test_guard_free(&mine);
    fixture_source_free(&source);
  }
  weft_ctx_free(ctx);
  weft_ctx_free(scalar);
}
END_TEST

// A recoder that holds dependent packets still never sends a zero vector, and adding a multiple of
// a held packet to it does not cancel it.
START_TEST(recoder_never_sends_zero) {
  fixture_start(80);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  const weft_segment_id id = fixture_id(3, 4);
  weft_recoder *recoder;
  EXPECT_OK(weft_recoder_new(ctx, &id, 2, &recoder));
  uint8_t datagram[64], vector[3] = {0, 0, 0}, payload[4] = {1, 2, 3, 4};
  weft_packet packet = {
      .id = id, .mode = WEFT_PACKET_VECTOR, .coefficients = vector, .payload = payload};
  size_t bytes;
  EXPECT_STATUS(weft_recoder_next(recoder, datagram, sizeof datagram, &bytes), WEFT_PENDING);
  EXPECT_STATUS(weft_recoder_add(recoder, &packet), WEFT_DEPENDENT);
  EXPECT(weft_recoder_held(recoder) == 0);
  vector[1] = 9;
  for (int i = 0; i < 3000; i++) {
    EXPECT_OK(weft_recoder_add(recoder, &packet));
    EXPECT(weft_recoder_held(recoder) == (i == 0 ? 1 : 2));
    EXPECT_OK(weft_recoder_next(recoder, datagram, sizeof datagram, &bytes));
    const uint8_t *c = datagram + WEFT_WIRE_HEADER_BYTES;
    EXPECT(c[0] == 0 && c[1] != 0 && c[2] == 0);
  }
  enum { SENT = 2000 };
  uint8_t *vectors = fixture_malloc(SENT * 3), *payloads = fixture_malloc(SENT * 4);
  const weft_batch batch = {.count = SENT,
                            .coefficients = vectors,
                            .coefficients_stride = 3,
                            .payload = payloads,
                            .payload_stride = 4};
  EXPECT_OK(weft_recoder_batch(recoder, &batch)); // otherwise one in 255 would be zero
  for (size_t i = 0; i < SENT; i++)
    EXPECT(vectors[3 * i + 1] != 0);
  free(vectors);
  free(payloads);
  weft_recoder *narrow; // holds only one packet
  EXPECT_OK(weft_recoder_new(ctx, &id, 1, &narrow));
  for (int i = 0; i < 3000; i++) { // after a zero, the next packet would hide it
    EXPECT_OK(weft_recoder_add(narrow, &packet));
    // Would yield only zeros from then on.
    EXPECT_OK(weft_recoder_next(narrow, datagram, sizeof datagram, &bytes));
  }
  weft_recoder_free(narrow);
  packet.id.segment++;
  EXPECT_STATUS(weft_recoder_add(recoder, &packet), WEFT_E_FOREIGN);
  weft_recoder_free(recoder);
  weft_ctx_free(ctx);
}
END_TEST

// Two of four packets are held, and one of the others is mixed into each: what is sent contains
// packets 2 and 0 in a fixed ratio, and packets 3 and 1 as well.
START_TEST(further_packets_are_mixed_in_in_turn) {
  enum { SENT = 5 };
  fixture_start(82);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  const weft_segment_id id = fixture_id(4, 4);
  weft_recoder *recoder;
  EXPECT_OK(weft_recoder_new(ctx, &id, 2, &recoder));
  uint8_t vectors[4 * SENT], payload[4 * SENT] = {0};
  weft_packet packet = {.id = id, .payload = payload};
  for (packet.index = 0; packet.index < 4; packet.index++)
    EXPECT_OK(weft_recoder_add(recoder, &packet));
  const weft_batch batch = {.count = SENT,
                            .coefficients = vectors,
                            .coefficients_stride = 4,
                            .payload = payload,
                            .payload_stride = 4};
  EXPECT_OK(weft_recoder_batch(recoder, &batch));
  for (size_t i = 0; i < SENT; i++)
    for (size_t c = 0; c < 2; c++) {
      const uint8_t *v = vectors + 4 * i + c;
      EXPECT(v[0] != 0 && v[2] != 0);
      EXPECT(model_times(v[2], vectors[c]) == model_times(vectors[c + 2], v[0]));
    }
  weft_recoder_free(recoder);
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(recoded_batches_decode) {
  fixture_start(81);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 2);
  const size_t n = 20, k = 90;
  fixture_source source = fixture_source_new(ctx, n, k, n * k, NULL);
  weft_decoder *relay = fixture_decoder(ctx, &source.id);
  fixture_feed(source.encoder, relay);
  weft_recoder *mixer;
  EXPECT_OK(weft_recoder_new(ctx, &source.id, n, &mixer));
  uint8_t coefficients[24 * 21], payload[24 * 91];
  weft_packet packets[24];
  const weft_batch batch = {.count = 24,
                            .packets = packets,
                            .coefficients = coefficients,
                            .coefficients_stride = 21,
                            .payload = payload,
                            .payload_stride = 91};
  weft_decoder *first = fixture_decoder(ctx, &source.id),
               *second = fixture_decoder(ctx, &source.id);
  EXPECT_OK(weft_decoder_recode_batch(relay, &batch));
  // The mixer holds n innovative packets: n arbitrary ones would be dependent once in 255 runs.
  for (size_t i = 0; i < 24; i++)
    if (weft_decoder_add(first, &packets[i]) == WEFT_OK)
      EXPECT_OK(weft_recoder_add(mixer, &packets[i]));
  fixture_check_decoded(&source, first);
  EXPECT_OK(weft_recoder_batch(mixer, &batch));
  for (size_t i = 0; i < 24; i++)
    weft_decoder_add(second, &packets[i]);
  fixture_check_decoded(&source, second);
  // Each further packet is mixed into a held one, which costs at most one rank.
  for (size_t i = 0; i < 4; i++)
    EXPECT_OK(weft_recoder_add(mixer, &packets[i]));
  EXPECT(weft_recoder_held(mixer) == n);
  weft_decoder *third = fixture_decoder(ctx, &source.id);
  EXPECT_OK(weft_recoder_batch(mixer, &batch));
  for (size_t i = 0; i < 24; i++)
    weft_decoder_add(third, &packets[i]);
  EXPECT(weft_decoder_rank(third) >= n - 4);
  if (weft_decoder_complete(third))
    fixture_check_decoded(&source, third);
  weft_decoder_free(third);
  weft_decoder_free(second);
  weft_decoder_free(first);
  weft_recoder_free(mixer);
  weft_decoder_free(relay);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("recode");
  TCase *tcase = tcase_create("packets");
  tcase_add_loop_test(tcase, recoded_payloads_are_the_product, 0, fixture_row_count());
  tcase_add_loop_test(tcase, recoded_packets_are_those_of_scalar, 0, fixture_row_count());
  tcase_add_test(tcase, recoder_never_sends_zero);
  tcase_add_test(tcase, further_packets_are_mixed_in_in_turn);
  suite_add_tcase(suite, tcase);
  tcase = tcase_create("hops");
  tcase_add_loop_test(tcase, eight_recoding_hops, 0, 20);
  tcase_add_loop_test(tcase, recoded_batches_decode, 0, fixture_row_count());
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
