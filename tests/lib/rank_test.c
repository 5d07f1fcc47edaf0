// SPDX-License-Identifier: Apache-2.0
// Are coefficients as independent as they should be? A square random matrix over GF(256) is regular
// with probability prod over i >= 1 of (1 - 256^-i) = 0.9960784; with entries uniform over the
// nonzero elements the same holds up to terms of the order 255^-(n - 1), since a sum of w such
// terms is zero with probability (1 + 255 * (-1/255)^w) / 256. And a generator that is linear over
// GF(2) with s bits of state never gives more than s independent vectors.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_main.h"

enum { SMALL = 16, LARGE = 128, EXTRA = 8, TRIALS = 20000 };

typedef void draw_function(void *source, uint8_t *vector, size_t n);

// Counts the independent vectors among `count` drawn ones.
static size_t rank_of(weft_ctx *ctx, size_t n, size_t count, draw_function *draw, void *source) {
  const weft_segment_id id = fixture_id(n, 1);
  weft_decoder *decoder = fixture_decoder(ctx, &id);
  uint8_t vector[LARGE], payload = 0;
  const weft_packet packet = {
      .id = id, .mode = WEFT_PACKET_VECTOR, .coefficients = vector, .payload = &payload};
  for (size_t i = 0; i < count; i++) {
    draw(source, vector, n);
    const weft_status status = weft_decoder_add(decoder, &packet);
    EXPECT(status == WEFT_OK || status == WEFT_DEPENDENT);
    EXPECT(weft_decoder_rank(decoder) <= n);
  }
  const size_t rank = weft_decoder_rank(decoder);
  weft_decoder_free(decoder);
  return rank;
}

static double closed_form(void) {
  double regular = 1;
  for (int i = 1; i <= 8; i++)
    regular *= 1 - pow(256, -i);
  return regular;
}

// Whether a source of coefficients passes the check. Bounds: six standard deviations of the number
// of singular matrices (binomial), and probabilities below 1e-9 for the rest.
static bool source_is_sound(weft_ctx *ctx, draw_function *draw, void *source) {
  size_t singular = 0, defect_two = 0;
  for (size_t i = 0; i < TRIALS; i++) {
    const size_t rank = rank_of(ctx, SMALL, SMALL, draw, source);
    singular += rank < SMALL;
    defect_two += rank + 1 < SMALL; // 256^-4: once in 200,000 runs of this loop
  }
  const double p = 1 - closed_form(), mean = TRIALS * p, deviation = sqrt(TRIALS * p * (1 - p));
  if (fabs((double)singular - mean) > 6 * deviation || defect_two > 1)
    return false;
  for (int i = 0; i < 4; i++)
    if (rank_of(ctx, LARGE, LARGE + EXTRA, draw, source) < LARGE)
      return false;
  return true;
}

static void draw_uniform(void *source, uint8_t *vector, size_t n) {
  (void)source;
  fixture_fill(vector, n);
}

START_TEST(uniform_matrices_follow_the_closed_form) {
  fixture_start(200);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  EXPECT(fabs(closed_form() - 0.99607844) < 2e-5);
  EXPECT(source_is_sound(ctx, draw_uniform, NULL));
  weft_ctx_free(ctx);
}
END_TEST

// --- weft's own coefficients ---

static void draw_encoder(void *source, uint8_t *vector, size_t n) {
  weft_encoder *const *encoders = source; // one for SMALL and one for LARGE
  weft_packet packet;
  uint8_t payload;
  const weft_batch batch = {
      .count = 1, .packets = &packet, .coefficients = vector, .payload = &payload};
  EXPECT_OK(weft_encoder_batch(encoders[n == LARGE], &batch, NULL));
  for (size_t i = 0; i < n; i++)
    EXPECT(vector[i] != 0);
}

START_TEST(dense_coefficients_are_sound) {
  fixture_start(201);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  for (int seeded = 0; seeded < 2; seeded++) {
    const weft_encoder_options options = {.seeded = seeded != 0, .first_seed = fixture_next()};
    fixture_source small = fixture_source_new(ctx, SMALL, 1, SMALL, &options);
    fixture_source large = fixture_source_new(ctx, LARGE, 1, LARGE, &options);
    weft_encoder *encoders[2] = {small.encoder, large.encoder};
    EXPECT(source_is_sound(ctx, draw_encoder, encoders));
    fixture_source_free(&large);
    fixture_source_free(&small);
  }
  weft_ctx_free(ctx);
}
END_TEST

// Draws packets recoded by a complete decoder, whose coefficients are uniform.
static void draw_recoder(void *source, uint8_t *vector, size_t n) {
  weft_decoder *const *decoders = source;
  uint8_t payload;
  const weft_batch batch = {.count = 1, .coefficients = vector, .payload = &payload};
  EXPECT_OK(weft_decoder_recode_batch(decoders[n == LARGE], &batch));
}

START_TEST(recoded_coefficients_are_sound) {
  fixture_start(202);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  fixture_source small = fixture_source_new(ctx, SMALL, 1, SMALL, NULL);
  fixture_source large = fixture_source_new(ctx, LARGE, 1, LARGE, NULL);
  weft_decoder *decoders[2] = {fixture_decoder(ctx, &small.id), fixture_decoder(ctx, &large.id)};
  fixture_feed(small.encoder, decoders[0]);
  fixture_feed(large.encoder, decoders[1]);
  EXPECT(source_is_sound(ctx, draw_recoder, decoders));
  weft_decoder_free(decoders[1]);
  weft_decoder_free(decoders[0]);
  fixture_source_free(&large);
  fixture_source_free(&small);
  weft_ctx_free(ctx);
}
END_TEST

// --- sources that must be caught ---

static void draw_xorshift(void *source, uint8_t *vector, size_t n) {
  uint64_t *x = source;
  for (size_t i = 0; i < n; i++) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    vector[i] = (uint8_t)*x;
  }
}

START_TEST(xorshift64_is_caught) {
  fixture_start(203);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  uint64_t state = fixture_next() | 1;
  EXPECT(rank_of(ctx, LARGE, 1000, draw_xorshift, &state) <= 64);
  EXPECT(!source_is_sound(ctx, draw_xorshift, &state));
  weft_ctx_free(ctx);
}
END_TEST

// Draws vectors with seven of eight coefficients zero.
static void draw_biased(void *source, uint8_t *vector, size_t n) {
  (void)source;
  fixture_fill(vector, n);
  for (size_t i = 0; i < n; i++)
    if (fixture_below(8) != 0)
      vector[i] = 0;
}

START_TEST(sparse_source_is_caught) {
  fixture_start(204);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  EXPECT(!source_is_sound(ctx, draw_biased, NULL));
  weft_ctx_free(ctx);
}
END_TEST

// --- what sparse packets cost ---

// Returns how many packets more than n a receiver needs on average, as a share of n.
static double share_more(weft_ctx *ctx, size_t n, double density, size_t receivers) {
  const weft_encoder_options options = {.seeded = true,
                                        .first_seed = fixture_next(),
                                        .density_q16 = (uint16_t)lround(density * 65536)};
  fixture_source source = fixture_source_new(ctx, n, 1, n, &options);
  weft_decoder *decoder = fixture_decoder(ctx, &source.id);
  size_t packets = 0;
  for (size_t i = 0; i < receivers; i++) {
    EXPECT_OK(weft_decoder_reset(decoder, &source.id));
    for (; !weft_decoder_complete(decoder); packets++) {
      uint8_t datagram[WEFT_PACKET_ROOM_BYTES(LARGE, 1)];
      size_t bytes;
      EXPECT_OK(weft_encoder_next(source.encoder, datagram, sizeof datagram, &bytes));
      const weft_status status = weft_decoder_add_datagram(decoder, datagram, bytes);
      EXPECT(status == WEFT_OK || status == WEFT_DEPENDENT);
    }
  }
  weft_decoder_free(decoder);
  fixture_source_free(&source);
  return (double)packets / (double)(receivers * n) - 1;
}

// The figures of rlnc.h: 0.1 to 0.4 %, 13 to 23 %, 87 to 107 %.
START_TEST(sparse_packets_cost_what_the_header_says) {
  static const size_t sizes[] = {16, 64, 256}, receivers[] = {2000, 1000, 300};
  fixture_start(205);
  weft_ctx *ctx = fixture_ctx(NULL, 1);
  for (size_t i = 0; i < 3; i++) {
    const size_t n = sizes[i];
    const double density = 2 * log((double)n) / (double)n;
    EXPECT(share_more(ctx, n, density, receivers[i]) < 0.01);
    const double half = share_more(ctx, n, density / 2, receivers[i]);
    EXPECT(half > 0.07 && half < 0.3);
    const double quarter = share_more(ctx, n, density / 4, receivers[i]);
    EXPECT(quarter > 0.7 && quarter < 1.3);
  }
  weft_ctx_free(ctx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rank");
  TCase *tcase = tcase_create("coefficients");
  tcase_add_test(tcase, uniform_matrices_follow_the_closed_form);
  tcase_add_test(tcase, dense_coefficients_are_sound);
  tcase_add_test(tcase, recoded_coefficients_are_sound);
  tcase_add_test(tcase, xorshift64_is_caught);
  tcase_add_test(tcase, sparse_source_is_caught);
  tcase_add_test(tcase, sparse_packets_cost_what_the_header_says);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
