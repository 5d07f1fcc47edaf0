// SPDX-License-Identifier: Apache-2.0
#include "tests/storage/stripes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gf256.h"
#include "tests/support/test_guard.h"

static char what[256];

void trying(const char *row, const code_case *c) {
  snprintf(what, sizeof what, "row %s, %s k=%zu m=%zu w=%zu packet=%zu, WEFT_TEST_SEED=%#llx",
           row ? row : "best", c->name, c->k, c->m, c->w, c->packet_bytes,
           (unsigned long long)test_seed());
}

const char *tried(void) { return what; }

weft_ctx *context_on(const char *row, size_t threads) {
  weft_ctx *ctx = NULL;
  EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = row, .threads = threads}));
  return ctx;
}

weft_code *code_on(weft_ctx *ctx, const code_case *c) {
  weft_code *code = NULL;
  trying(weft_ctx_backend(ctx), c);
  EXPECT_OK(weft_code_new(
      ctx,
      &(weft_code_options){
          .name = c->name, .k = c->k, .m = c->m, .w = c->w, .packet_bytes = c->packet_bytes},
      &code));
  return code;
}

size_t shard_bytes(const weft_code *code, size_t id, size_t bytes) {
  return id < weft_code_data_shards(code) ? bytes : weft_code_parity_bytes(code, bytes);
}

void stripe_init(stripe *s, const weft_code *code, size_t bytes, test_rng *rng, int guarded) {
  memset(s, 0, sizeof *s);
  s->shards = weft_code_data_shards(code) + weft_code_parity_shards(code);
  for (size_t i = 0; i < s->shards; i++) {
    const size_t own = shard_bytes(code, i, bytes);
    if (guarded) {
      test_guard *guard = malloc(sizeof *guard);
      ck_assert_ptr_nonnull(guard);
      *guard = test_guard_new(own ? own : 1);
      s->guard[i] = guard;
      s->shard[i] = guard->end - own;
    } else {
      s->block[i] = malloc(own ? own : 1);
      ck_assert_ptr_nonnull(s->block[i]);
      s->shard[i] = s->block[i];
    }
    if (i < weft_code_data_shards(code))
      test_rng_fill(rng, s->shard[i], own);
    else
      memset(s->shard[i], 0xA5, own);
  }
  s->view = (weft_stripe){.shards = s->shard, .bytes = bytes};
}

void stripe_clear(stripe *s) {
  for (size_t i = 0; i < s->shards; i++) {
    free(s->block[i]);
    if (s->guard[i])
      test_guard_free(s->guard[i]);
    free(s->guard[i]);
  }
}

void stripe_copy(stripe *to, const stripe *from, const weft_code *code) {
  for (size_t i = 0; i < to->shards; i++)
    memcpy(to->shard[i], from->shard[i], shard_bytes(code, i, from->view.bytes));
}

void stripe_spoil(stripe *s, const weft_code *code, size_t id) {
  memset(s->shard[id], 0x5A, shard_bytes(code, id, s->view.bytes));
}

int stripe_same_shard(const stripe *a, const stripe *b, const weft_code *code, size_t id) {
  return memcmp(a->shard[id], b->shard[id], shard_bytes(code, id, a->view.bytes)) == 0;
}

int stripe_same(const stripe *a, const stripe *b, const weft_code *code) {
  for (size_t i = 0; i < a->shards; i++)
    if (!stripe_same_shard(a, b, code, i))
      return 0;
  return 1;
}

// Multiplies in GF(2^w) as polynomials, reduced by the field's own.
static unsigned multiply(unsigned a, unsigned b, unsigned w) {
  static const unsigned polynomial[] = {0, 0, 0x7, 0xB, 0x13, 0x25, 0x43, 0x89, 0x11D};
  unsigned product = 0;
  for (unsigned bit = 0; bit < w; bit++)
    product ^= ((b >> bit) & 1u) * (a << bit);
  for (unsigned bit = 2 * w - 1; bit-- > w;)
    product ^= ((product >> bit) & 1u) * (polynomial[w] << (bit - w));
  return product;
}

static unsigned bit_at(const uint8_t *shard, size_t bytes, size_t byte, unsigned bit) {
  return byte < bytes ? (unsigned)(shard[byte] >> bit) & 1u : 0; // past the end: padding
}

// Encodes one bit of each shard's symbols. In a CRS code, bit x of symbol s of a group is bit s of
// packet x.
static void encode_symbol(const weft_code *code, stripe *s, const uint8_t *parity, size_t group,
                          size_t byte, unsigned bit) {
  const size_t k = weft_code_data_shards(code), m = weft_code_parity_shards(code);
  const size_t w = weft_code_word_bits(code), packet = weft_code_unit_bytes(code) / w;
  for (size_t i = 0; i < m; i++) {
    unsigned sum = 0;
    for (size_t j = 0; j < k; j++) {
      unsigned symbol = 0;
      for (size_t x = 0; x < w; x++)
        symbol |= bit_at(s->shard[j], s->view.bytes, (group * w + x) * packet + byte, bit) << x;
      sum ^= multiply(parity[i * k + j], symbol, (unsigned)w);
    }
    for (size_t x = 0; x < w; x++) {
      uint8_t *at = &s->shard[k + i][(group * w + x) * packet + byte];
      *at = (uint8_t)((*at & ~(1u << bit)) | (((sum >> x) & 1u) << bit));
    }
  }
}

void encode_by_definition(const weft_code *code, stripe *s) {
  const size_t k = weft_code_data_shards(code), m = weft_code_parity_shards(code);
  const size_t unit = weft_code_unit_bytes(code);
  uint8_t *parity = malloc(m * k + 1);
  ck_assert_ptr_nonnull(parity);
  weft_code_parity_matrix(code, parity);
  if (unit == 1) {
    for (size_t i = 0; i < m; i++)
      for (size_t b = 0; b < s->view.bytes; b++) {
        uint8_t sum = 0;
        for (size_t j = 0; j < k; j++)
          sum ^= weft_gf256_mul(parity[i * k + j], s->shard[j][b]);
        s->shard[k + i][b] = sum;
      }
  } else {
    const size_t packet = unit / weft_code_word_bits(code);
    for (size_t group = 0; group * unit < s->view.bytes; group++)
      for (size_t byte = 0; byte < packet; byte++)
        for (unsigned bit = 0; bit < 8; bit++)
          encode_symbol(code, s, parity, group, byte, bit);
  }
  free(parity);
}

void stripe_encode(stripe *s, weft_code *code, size_t bytes, test_rng *rng, int guarded) {
  stripe expected;
  stripe_init(&expected, code, bytes, rng, 0);
  stripe_init(s, code, bytes, rng, guarded);
  stripe_copy(s, &expected, code);
  encode_by_definition(code, &expected);
  EXPECT_OK(weft_code_encode(code, &s->view, 1, NULL));
  EXPECT(stripe_same(&expected, s, code));
  stripe_clear(&expected);
}

void choose_ids(test_rng *rng, uint8_t *ids, size_t count, size_t n) {
  uint8_t all[WEFT_MAX_SHARDS];
  for (size_t i = 0; i < n; i++)
    all[i] = (uint8_t)i;
  for (size_t i = 0; i < count; i++) {
    const size_t j = i + test_rng_below(rng, n - i);
    const uint8_t chosen = all[j];
    all[j] = all[i];
    ids[i] = all[i] = chosen;
  }
}
