// SPDX-License-Identifier: Apache-2.0
// What the suites of lib/ share: the rows of this machine, reproducible data, and checks that
// report the row and the seed when they fail.
#ifndef WEFT_TESTS_LIB_FIXTURE_H
#define WEFT_TESTS_LIB_FIXTURE_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

// The random numbers of the current test: fixture_start begins with the run's seed, and `salt`
// makes tests differ.
extern uint64_t fixture_seed;
extern const char *fixture_row; // of the last context created here
void fixture_start(uint64_t salt);
uint64_t fixture_next(void);
size_t fixture_below(size_t bound);
void fixture_fill(uint8_t *out, size_t bytes);

// Checks report to Check only if they fail: a message for each of a million checks would take
// minutes.
#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (row %s, WEFT_TEST_SEED=%#llx)", #condition, fixture_row,                   \
                   (unsigned long long)fixture_seed);                                              \
  } while (0)
#define EXPECT_STATUS(expression, wanted)                                                          \
  do {                                                                                             \
    const weft_status got_ = (expression);                                                         \
    if (got_ != (wanted))                                                                          \
      ck_abort_msg("%s = %s, not %s (row %s, WEFT_TEST_SEED=%#llx)", #expression,                  \
                   weft_status_name(got_), weft_status_name(wanted), fixture_row,                  \
                   (unsigned long long)fixture_seed);                                              \
  } while (0)
#define EXPECT_OK(expression) EXPECT_STATUS(expression, WEFT_OK)

// The rows that this machine can run, best first; the best and the specification where
// test_only_ends (tests/support/test_rows.h).
int fixture_row_count(void);
const char *fixture_row_name(int index);

weft_ctx *fixture_ctx(const char *row, size_t threads);
weft_segment_id fixture_id(size_t blocks, size_t block_bytes);
void *fixture_malloc(size_t bytes); // never NULL

// A segment of random data with a true length of `bytes`, and an encoder on it.
typedef struct fixture_source {
  weft_segment_id id;
  uint8_t *data; // (n * k), zeros after the true length
  weft_segment *segment;
  weft_encoder *encoder;
} fixture_source;

fixture_source fixture_source_new(weft_ctx *ctx, size_t blocks, size_t block_bytes, size_t bytes,
                                  const weft_encoder_options *options);
void fixture_source_free(fixture_source *source);

weft_decoder *fixture_decoder(weft_ctx *ctx, const weft_segment_id *id);
// Feeds datagrams of the encoder to the decoder until that is complete; returns how many it took.
size_t fixture_feed(weft_encoder *encoder, weft_decoder *decoder);
// Compares every byte of a complete decoder with the source.
void fixture_check_decoded(const fixture_source *source, weft_decoder *decoder);

// Returns a hash of everything that a caller can learn from the decoder: rank, known blocks, and
// recoded packets, which depend on its whole matrix and all payloads.
uint64_t fixture_state(weft_decoder *decoder);

#endif
