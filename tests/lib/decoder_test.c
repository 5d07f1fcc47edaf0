// SPDX-License-Identifier: Apache-2.0
// The progressive decoder step by step: what it refuses, when blocks become known, where its bytes
// are stored, and that deferring payloads changes nothing that a caller can see.
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_guard.h"
#include "tests/support/test_main.h"

// --- refusals ---

typedef struct refusal {
  weft_ctx *ctx;
  fixture_source source;
  weft_decoder *decoder;
  uint8_t datagram[256];
  size_t bytes;
} refusal;

// Returns a decoder that holds `rank` packets of 12 blocks; `datagram` contains one more packet,
// which is innovative unless the decoder is complete.
static refusal refusal_new(size_t rank, const weft_encoder_options *options) {
  refusal r = {.ctx = fixture_ctx(NULL, 1)};
  r.source = fixture_source_new(r.ctx, 12, 21, 250, options);
  r.decoder = fixture_decoder(r.ctx, &r.source.id);
  // About one packet in some hundred is dependent by chance; another decoder detects those.
  weft_decoder *const other = fixture_decoder(r.ctx, &r.source.id);
  for (;;) {
    EXPECT_OK(weft_encoder_next(r.source.encoder, r.datagram, sizeof r.datagram, &r.bytes));
    const size_t before = weft_decoder_rank(other);
    weft_decoder_add_datagram(other, r.datagram, r.bytes);
    if (before == rank && (weft_decoder_rank(other) > rank || weft_decoder_complete(other)))
      break;
    if (before < rank)
      weft_decoder_add_datagram(r.decoder, r.datagram, r.bytes);
  }
  weft_decoder_free(other);
  return r;
}

static void refusal_free(refusal *r) {
  weft_decoder_free(r->decoder);
  fixture_source_free(&r->source);
  weft_ctx_free(r->ctx);
}

static void refuse(refusal *r, const uint8_t *datagram, size_t bytes, weft_status wanted) {
  const uint64_t before = fixture_state(r->decoder);
  uint8_t *exact = fixture_malloc(bytes);
  memcpy(exact, datagram, bytes);
  EXPECT_STATUS(weft_decoder_add_datagram(r->decoder, exact, bytes), wanted);
  free(exact);
  EXPECT(fixture_state(r->decoder) == before);
}

START_TEST(damaged_headers_are_refused) {
  fixture_start(100);
  const weft_encoder_options options[] = {{.seeded = false},
                                          {.seeded = true},
                                          {.systematic = true},
                                          {.seeded = true, .density_q16 = 9000}};
  refusal r = refusal_new(5, &options[_i]);
  for (size_t bit = 0; bit < 8 * WEFT_WIRE_HEADER_BYTES; bit++) {
    const size_t byte = bit / 8;
    r.datagram[byte] ^= (uint8_t)(1u << bit % 8);
    weft_status wanted = byte == 0 ? WEFT_E_VERSION : byte < 8 ? WEFT_E_MALFORMED : WEFT_E_FOREIGN;
    // The length depends on n only if the packet carries its vector; otherwise another n is
    // well-formed.
    const size_t n = (size_t)r.datagram[2] << 8 | r.datagram[3];
    const size_t index = options[_i].systematic ? 5 : 0;
    if ((byte == 2 || byte == 3) && (options[_i].seeded || options[_i].systematic) &&
        n <= WEFT_MAX_BLOCKS && n > index)
      wanted = WEFT_E_FOREIGN;
    refuse(&r, r.datagram, r.bytes, wanted);
    r.datagram[byte] ^= (uint8_t)(1u << bit % 8);
  }
  EXPECT_OK(weft_decoder_add_datagram(r.decoder, r.datagram, r.bytes));
  refusal_free(&r);
}
END_TEST

START_TEST(truncated_and_padded_are_refused) {
  fixture_start(101);
  refusal r = refusal_new(3, NULL);
  for (size_t bytes = 0; bytes < r.bytes; bytes++)
    refuse(&r, r.datagram, bytes, WEFT_E_MALFORMED);
  refuse(&r, r.datagram, r.bytes + 1, WEFT_E_MALFORMED);
  refusal_free(&r);
}
END_TEST

START_TEST(duplicate_and_dependent_are_dropped) {
  fixture_start(102);
  for (size_t rank = 1; rank <= 12; rank++) {
    refusal r = refusal_new(rank - 1, NULL);
    EXPECT_OK(weft_decoder_add_datagram(r.decoder, r.datagram, r.bytes));
    refuse(&r, r.datagram, r.bytes, WEFT_DEPENDENT);
    for (int i = 0; i < 20; i++) { // its own recoded packets are in its span
      uint8_t own[256];
      size_t bytes;
      EXPECT_OK(weft_decoder_recode(r.decoder, own, sizeof own, &bytes));
      refuse(&r, own, bytes, WEFT_DEPENDENT);
    }
    memset(r.datagram + WEFT_WIRE_HEADER_BYTES, 0, 12);
    refuse(&r, r.datagram, r.bytes, WEFT_DEPENDENT); // a vector of zeros
    refusal_free(&r);
  }
}
END_TEST

// A packet that is refused because of its coefficients has its payload left unread: it is in an
// unreadable page.
START_TEST(payloads_of_dropped_packets_are_not_touched) {
  fixture_start(105);
  test_guard none = test_guard_new(0);
  for (size_t rank = 1; rank <= 12; rank++) {
    refusal r = refusal_new(rank, NULL);
    uint8_t own[256];
    size_t bytes;
    weft_packet packet;
    EXPECT_OK(weft_decoder_recode(r.decoder, own, sizeof own, &bytes));
    EXPECT_OK(weft_packet_parse(own, bytes, &packet));
    packet.payload = none.begin;
    const uint64_t before = fixture_state(r.decoder);
    EXPECT_STATUS(weft_decoder_add(r.decoder, &packet), WEFT_DEPENDENT);
    packet.id.segment++;
    EXPECT_STATUS(weft_decoder_add(r.decoder, &packet), WEFT_E_FOREIGN);
    EXPECT(fixture_state(r.decoder) == before);
    refusal_free(&r);
  }
  test_guard_free(&none);
}
END_TEST

START_TEST(rank_never_exceeds_n) {
  fixture_start(103);
  refusal r = refusal_new(12, NULL);
  for (int i = 0; i < 50; i++) {
    refuse(&r, r.datagram, r.bytes, WEFT_DEPENDENT);
    EXPECT(weft_decoder_rank(r.decoder) == 12);
    EXPECT_OK(weft_encoder_next(r.source.encoder, r.datagram, sizeof r.datagram, &r.bytes));
  }
  fixture_check_decoded(&r.source, r.decoder);
  refuse(&r, r.datagram, r.bytes, WEFT_DEPENDENT);
  refusal_free(&r);
}
END_TEST

START_TEST(packets_with_bad_fields) {
  fixture_start(104);
  refusal r = refusal_new(4, NULL);
  uint8_t payload[21] = {0};
  const uint64_t before = fixture_state(r.decoder);
  weft_packet packet = {.id = r.source.id, .mode = WEFT_PACKET_VECTOR, .payload = payload};
  EXPECT_STATUS(weft_decoder_add(r.decoder, &packet), WEFT_E_ARGUMENT);
  packet.mode = WEFT_PACKET_SYSTEMATIC;
  packet.index = 12;
  EXPECT_STATUS(weft_decoder_add(r.decoder, &packet), WEFT_E_MALFORMED);
  packet.index = 0;
  packet.payload = NULL;
  EXPECT_STATUS(weft_decoder_add(r.decoder, &packet), WEFT_E_ARGUMENT);
  packet.payload = payload;
  packet.mode = WEFT_PACKET_SPARSE;
  EXPECT_STATUS(weft_decoder_add(r.decoder, &packet), WEFT_E_MALFORMED);
  packet.mode = (weft_packet_mode)9;
  EXPECT_STATUS(weft_decoder_add(r.decoder, &packet), WEFT_E_MALFORMED);
  EXPECT_STATUS(weft_decoder_add(r.decoder, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_add_datagram(r.decoder, NULL, 3), WEFT_E_ARGUMENT);
  EXPECT(fixture_state(r.decoder) == before);
  refusal_free(&r);
}
END_TEST

// --- when blocks become known ---

START_TEST(systematic_blocks_are_released_at_once) {
  fixture_start(110);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  const weft_encoder_options options = {.systematic = true};
  fixture_source source = fixture_source_new(ctx, 20, 50, 1000, &options);
  weft_decoder *decoder = fixture_decoder(ctx, &source.id);
  uint8_t datagram[256];
  for (size_t i = 0; i < 20; i++) {
    size_t bytes;
    weft_packet packet;
    const uint8_t *block;
    EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
    EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
    EXPECT(packet.mode == WEFT_PACKET_SYSTEMATIC && packet.index == i);
    EXPECT_STATUS(weft_decoder_block(decoder, i, &block), WEFT_PENDING);
    EXPECT_OK(weft_decoder_add(decoder, &packet));
    EXPECT(weft_decoder_prefix(decoder) == i + 1);
    EXPECT_OK(weft_decoder_block(decoder, i, &block));
    EXPECT(memcmp(block, source.data + i * 50, 50) == 0);
  }
  size_t bytes;
  weft_packet packet;
  EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
  EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
  EXPECT(packet.mode == WEFT_PACKET_VECTOR);
  weft_decoder_free(decoder);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// Whether block i follows from the vectors received, checked independently by a second elimination.
static bool follows(const uint8_t *vectors, size_t count, const weft_segment_id *id, size_t i,
                    weft_ctx *ctx) {
  weft_segment_id small = *id;
  small.block_bytes = 1;
  weft_decoder *decoder = fixture_decoder(ctx, &small);
  const uint8_t payload = 0;
  weft_packet packet = {.id = small, .mode = WEFT_PACKET_VECTOR, .payload = &payload};
  for (size_t v = 0; v < count; v++) {
    packet.coefficients = vectors + v * id->blocks;
    weft_decoder_add(decoder, &packet);
  }
  packet.mode = WEFT_PACKET_SYSTEMATIC;
  packet.index = (uint32_t)i;
  const bool result = weft_decoder_add(decoder, &packet) == WEFT_DEPENDENT;
  weft_decoder_free(decoder);
  return result;
}

// Coefficient vectors of random support make blocks known one by one, long before full rank. Blocks
// are requested at random moments, and a block that was released once must never change. Most steps
// call nothing that brings elimination up to date, so that several packets are pending.
START_TEST(release_while_coded_packets_arrive) {
  fixture_start(111 + (uint64_t)_i);
  weft_ctx *ctx =
      fixture_ctx(_i < fixture_row_count() ? fixture_row_name(_i) : NULL, 1 + (size_t)_i % 3);
  const size_t n = 1 + fixture_below(24), k = 1 + fixture_below(700);
  fixture_source source = fixture_source_new(ctx, n, k, n * k, NULL);
  uint8_t *storage = fixture_malloc(n * (k + 3)), *payload = fixture_malloc(k);
  memset(storage, 0xCD, n * (k + 3));
  uint8_t vectors[24 * 24 * 8];
  const uint8_t *released[24] = {NULL};
  weft_decoder *decoder;
  const weft_decoder_options options = {
      .id = source.id, .blocks = storage, .blocks_stride = k + 3, .eager = _i % 4 == 3};
  EXPECT_OK(weft_decoder_new(ctx, &options, &decoder));
  for (size_t count = 0; !weft_decoder_complete(decoder) && count < 24 * 8;) {
    uint8_t *vector = vectors + count * n;
    memset(vector, 0, n);
    const size_t window = 1 + fixture_below(n), start = fixture_below(n - window + 1);
    for (size_t i = start; i < start + window; i++)
      vector[i] = fixture_below(3) != 0 ? (uint8_t)fixture_next() : 0;
    const weft_batch batch = {.count = 1, .payload = payload};
    EXPECT_OK(weft_encoder_combine(source.encoder, 1, vector, n, &batch, NULL));
    const weft_packet packet = {
        .id = source.id, .mode = WEFT_PACKET_VECTOR, .coefficients = vector, .payload = payload};
    const bool looks = fixture_below(5) == 0;
    const uint64_t before = looks ? fixture_state(decoder) : 0;
    const size_t rank = weft_decoder_rank(decoder);
    const weft_status status = weft_decoder_add(decoder, &packet);
    EXPECT(status == WEFT_OK || status == WEFT_DEPENDENT);
    EXPECT(weft_decoder_rank(decoder) == rank + (status == WEFT_OK));
    EXPECT(!looks || (fixture_state(decoder) == before) == (status == WEFT_DEPENDENT));
    count += status == WEFT_OK;
    size_t prefix = 0;
    while (prefix < n && weft_decoder_has_block(decoder, prefix))
      prefix++;
    EXPECT(weft_decoder_prefix(decoder) == prefix);
    const uint64_t reduced_before = looks ? fixture_state(decoder) : 0;
    for (size_t i = 0; i < n; i++) {
      const uint8_t *block;
      EXPECT(weft_decoder_has_block(decoder, i) == follows(vectors, count, &source.id, i, ctx));
      if (!weft_decoder_has_block(decoder, i))
        EXPECT_STATUS(weft_decoder_block(decoder, i, &block), WEFT_PENDING);
      else if (looks && (fixture_below(3) == 0 || released[i])) {
        EXPECT_OK(weft_decoder_block(decoder, i, &block));
        EXPECT(block == storage + i * (k + 3));
        EXPECT(!released[i] || released[i] == block);
        EXPECT(memcmp(block, source.data + i * k, k) == 0);
        released[i] = block;
      }
    }
    // Reducing payloads changes nothing but the storage.
    EXPECT(!looks || fixture_state(decoder) == reduced_before);
    for (size_t i = 0; i < n; i++)
      if (released[i])
        EXPECT(memcmp(released[i], source.data + i * k, k) == 0);
  }
  while (!weft_decoder_complete(decoder))
    fixture_feed(source.encoder, decoder);
  fixture_check_decoded(&source, decoder);
  for (size_t i = 0; i < n; i++)
    for (size_t b = 0; b < 3; b++)
      EXPECT(storage[i * (k + 3) + k + b] == 0xCD);
  weft_decoder_free(decoder);
  for (size_t i = 0; i < n; i++) // the caller's storage outlives the decoder
    EXPECT(memcmp(storage + i * (k + 3), source.data + i * k, k) == 0);
  free(payload);
  free(storage);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// An eager and a deferring decoder that get the same packets agree after each of them, to the byte;
// the eager one has the blocks in their rows before anybody reads them.
START_TEST(eager_equals_deferred) {
  fixture_start(140 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx(fixture_row_name(_i), 2);
  const size_t n = 24, k = 600;
  const weft_encoder_options options = {.density_q16 = 16000};
  fixture_source source = fixture_source_new(ctx, n, k, n * k, &options);
  weft_decoder *deferred = fixture_decoder(ctx, &source.id), *eager;
  uint8_t *rows = fixture_malloc(n * k);
  EXPECT_OK(weft_decoder_new(
      ctx, &(weft_decoder_options){.id = source.id, .blocks = rows, .eager = true}, &eager));
  while (!weft_decoder_complete(deferred)) {
    uint8_t datagram[24 + 24 + 600];
    size_t bytes;
    EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
    const weft_status status = weft_decoder_add_datagram(deferred, datagram, bytes);
    EXPECT_STATUS(weft_decoder_add_datagram(eager, datagram, bytes), status);
    for (size_t i = 0; i < n; i++)
      if (weft_decoder_has_block(eager, i))
        EXPECT(memcmp(rows + i * k, source.data + i * k, k) == 0);
    EXPECT(fixture_state(eager) == fixture_state(deferred));
  }
  fixture_check_decoded(&source, eager);
  fixture_check_decoded(&source, deferred);
  EXPECT(fixture_state(eager) == fixture_state(deferred));
  weft_decoder_free(eager);
  free(rows);
  weft_decoder_free(deferred);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// Once a block of a complete decoder has been requested, all blocks are in the caller's storage,
// including those received as systematic packets.
START_TEST(one_block_of_all_brings_the_others) {
  fixture_start(161);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  const weft_encoder_options options = {.systematic = true};
  const size_t n = 8, k = 33;
  for (size_t kept = 0; kept < n; kept++) { // the only source block that is not lost
    fixture_source source = fixture_source_new(ctx, n, k, n * k, &options);
    uint8_t *storage = fixture_malloc(n * k), datagram[128];
    weft_decoder *decoder;
    EXPECT_OK(weft_decoder_new(ctx, &(weft_decoder_options){.id = source.id, .blocks = storage},
                               &decoder));
    for (size_t i = 0; !weft_decoder_complete(decoder); i++) {
      size_t bytes;
      EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
      if (i == kept || i >= n)
        (void)weft_decoder_add_datagram(decoder, datagram, bytes);
    }
    const uint8_t *block;
    EXPECT_OK(weft_decoder_block(decoder, kept, &block));
    EXPECT(memcmp(storage, source.data, n * k) == 0);
    weft_decoder_free(decoder);
    free(storage);
    fixture_source_free(&source);
  }
  weft_ctx_free(ctx);
}
END_TEST

START_TEST(read_any_range) {
  fixture_start(160);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  fixture_source source = fixture_source_new(ctx, 7, 13, 80, NULL);
  weft_decoder *decoder = fixture_decoder(ctx, &source.id);
  uint8_t out[91];
  EXPECT_STATUS(weft_decoder_read(decoder, 0, 1, out), WEFT_PENDING);
  fixture_feed(source.encoder, decoder);
  for (size_t begin = 0; begin <= 91; begin++)
    for (size_t end = begin; end <= 91; end++) {
      EXPECT_OK(weft_decoder_read(decoder, begin, end - begin, out));
      EXPECT(memcmp(out, source.data + begin, end - begin) == 0);
    }
  EXPECT_STATUS(weft_decoder_read(decoder, 91, 1, out), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_read(decoder, 92, 1, out), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_read(decoder, 1, SIZE_MAX, out), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_block(decoder, 7, &(const uint8_t *){NULL}), WEFT_E_ARGUMENT);
  weft_decoder_free(decoder);
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// --- recoding ---

START_TEST(recoding_needs_rank_and_room) {
  fixture_start(170);
  refusal r = refusal_new(0, NULL);
  uint8_t out[57];
  size_t bytes;
  EXPECT_STATUS(weft_decoder_recode(r.decoder, out, sizeof out, &bytes), WEFT_PENDING);
  EXPECT_OK(weft_decoder_add_datagram(r.decoder, r.datagram, r.bytes));
  EXPECT_STATUS(weft_decoder_recode(r.decoder, out, 56, &bytes), WEFT_E_BUFFER);
  EXPECT_OK(weft_decoder_recode(r.decoder, out, 57, &bytes));
  EXPECT(bytes == 57);
  weft_batch batch = {.count = 1, .payload = out};
  EXPECT_STATUS(weft_decoder_recode_batch(r.decoder, &batch), WEFT_E_ARGUMENT);
  batch.coefficients = out;
  batch.mem = WEFT_MEM_DEVICE;
  EXPECT_STATUS(weft_decoder_recode_batch(r.decoder, &batch), WEFT_E_UNSUPPORTED);
  refusal_free(&r);
}
END_TEST

// The same key gives the same sequence of packets, another key a different one.
START_TEST(fixed_randomness_repeats) {
  fixture_start(171);
  refusal r = refusal_new(9, NULL);
  uint8_t first[128], second[128], key[32] = {7};
  size_t bytes;
  for (int i = 0; i < 3; i++) {
    EXPECT_OK(weft_decoder_fix_random(r.decoder, key));
    for (int j = 0; j < 600; j++) // across refills
      EXPECT_OK(weft_decoder_recode(r.decoder, i == 0 ? first : second, 128, &bytes));
    EXPECT(i == 0 || (memcmp(first, second, bytes) == 0) == (i == 1));
    key[31] = (uint8_t)i;
  }
  EXPECT_OK(weft_encoder_fix_random(r.source.encoder, key));
  EXPECT_OK(weft_encoder_next(r.source.encoder, first, 128, &bytes));
  EXPECT_OK(weft_encoder_fix_random(r.source.encoder, key));
  EXPECT_OK(weft_encoder_next(r.source.encoder, second, 128, &bytes));
  EXPECT(memcmp(first, second, bytes) == 0);
  EXPECT_OK(weft_encoder_next(r.source.encoder, second, 128, &bytes));
  EXPECT(memcmp(first, second, bytes) != 0);
  weft_recoder *recoder;
  EXPECT_OK(weft_recoder_new(r.ctx, &r.source.id, 12, &recoder));
  for (int i = 0; i < 5; i++) {
    EXPECT_OK(weft_encoder_next(r.source.encoder, second, 128, &bytes));
    EXPECT_OK(weft_recoder_add_datagram(recoder, second, bytes));
  }
  for (int i = 0; i < 4; i++) { // after none, one, three and six single packets
    EXPECT_OK(weft_recoder_fix_random(recoder, key));
    for (int j = 0; j <= i; j++) {
      EXPECT_OK(weft_recoder_next(recoder, second, 128, &bytes));
      if (i == 0)
        memcpy(first, second, bytes);
      EXPECT(j > 0 || memcmp(first, second, bytes) == 0);
    }
  }
  weft_recoder_free(recoder);
  refusal_free(&r);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("decoder");
  TCase *tcase = tcase_create("refusals");
  tcase_add_loop_test(tcase, damaged_headers_are_refused, 0, 4);
  tcase_add_test(tcase, truncated_and_padded_are_refused);
  tcase_add_test(tcase, duplicate_and_dependent_are_dropped);
  tcase_add_test(tcase, payloads_of_dropped_packets_are_not_touched);
  tcase_add_test(tcase, rank_never_exceeds_n);
  tcase_add_test(tcase, packets_with_bad_fields);
  suite_add_tcase(suite, tcase);
  tcase = tcase_create("release");
  tcase_add_test(tcase, systematic_blocks_are_released_at_once);
  tcase_add_loop_test(tcase, release_while_coded_packets_arrive, 0, 60);
  tcase_add_loop_test(tcase, eager_equals_deferred, 0, fixture_row_count());
  tcase_add_test(tcase, one_block_of_all_brings_the_others);
  tcase_add_test(tcase, read_any_range);
  suite_add_tcase(suite, tcase);
  tcase = tcase_create("recoding");
  tcase_add_test(tcase, recoding_needs_rank_and_room);
  tcase_add_test(tcase, fixed_randomness_repeats);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
