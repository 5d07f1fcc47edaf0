// SPDX-License-Identifier: Apache-2.0
// What the suites of storage codes share: codes on a row, stripes of exact size, and encoding by
// the definition, with which everything is compared.
#ifndef WEFT_TESTS_STORAGE_STRIPES_H
#define WEFT_TESTS_STORAGE_STRIPES_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/test_rng.h"
#include "weft/storage.h"

typedef struct code_case {
  const char *name;
  size_t k, m, w, packet_bytes;
} code_case;

// Records what is being tried, for messages of failed checks.
void trying(const char *row, const code_case *c);
const char *tried(void);

// Check writes to a file for every assertion; these call it only on failure.
#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (%s)", #condition, tried());                                                \
  } while (0)
#define EXPECT_STATUS(expression, wanted)                                                          \
  do {                                                                                             \
    const weft_status got_ = (expression);                                                         \
    if (got_ != (wanted))                                                                          \
      ck_abort_msg("%s = %s, not %s (%s)", #expression, weft_status_name(got_),                    \
                   weft_status_name(wanted), tried());                                             \
  } while (0)
#define EXPECT_OK(expression) EXPECT_STATUS(expression, WEFT_OK)

weft_ctx *context_on(const char *row, size_t threads); // NULL: the best row
weft_code *code_on(weft_ctx *ctx, const code_case *c);

// A stripe whose shards are separate blocks of exact size; data random, parity 0xA5. If `guarded`,
// every shard ends at an inaccessible page.
typedef struct stripe {
  weft_stripe view;
  size_t shards;
  uint8_t *shard[WEFT_MAX_SHARDS];
  void *block[WEFT_MAX_SHARDS];
  void *guard[WEFT_MAX_SHARDS];
} stripe;

size_t shard_bytes(const weft_code *code, size_t id, size_t bytes);
void stripe_init(stripe *s, const weft_code *code, size_t bytes, test_rng *rng, int guarded);
void stripe_clear(stripe *s);
void stripe_copy(stripe *to, const stripe *from, const weft_code *code);
void stripe_spoil(stripe *s, const weft_code *code, size_t id); // as after a loss
int stripe_same_shard(const stripe *a, const stripe *b, const weft_code *code, size_t id);
int stripe_same(const stripe *a, const stripe *b, const weft_code *code);

// Encodes by the definition, symbol by symbol.
void encode_by_definition(const weft_code *code, stripe *s);
// Makes a random stripe, encodes it, and compares every byte with the definition.
void stripe_encode(stripe *s, weft_code *code, size_t bytes, test_rng *rng, int guarded);

// Chooses `count` distinct ids below n.
void choose_ids(test_rng *rng, uint8_t *ids, size_t count, size_t n);

#endif
