// SPDX-License-Identifier: Apache-2.0
// What the suites of lib/ share (fixture.h).
#define _POSIX_C_SOURCE 200809L
#include "tests/lib/fixture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test_rng.h"
#include "tests/support/test_rows.h"

uint64_t fixture_seed;
const char *fixture_row = "none";
static test_rng rng;

void fixture_start(uint64_t salt) {
  fixture_seed = test_seed();
  rng = test_rng_new(fixture_seed, salt);
}

uint64_t fixture_next(void) { return test_rng_next(&rng); }
size_t fixture_below(size_t bound) { return test_rng_below(&rng, bound); }
void fixture_fill(uint8_t *out, size_t bytes) { test_rng_fill(&rng, out, bytes); }

void *fixture_malloc(size_t bytes) {
  void *memory = malloc(bytes > 0 ? bytes : 1);
  ck_assert_msg(memory != NULL, "the test itself has no memory");
  return memory;
}

// Returns the index-th row of this machine, best first.
static weft_backend_info row_info(int index) {
  for (size_t i = 0; i < weft_backend_count_all(); i++) {
    weft_backend_info info;
    if (weft_backend_describe(i, &info) == WEFT_OK && info.available && index-- == 0)
      return info;
  }
  return (weft_backend_info){.name = NULL};
}

// Counts in a child process: main calls this, and a device that main had opened would be unusable
// in the processes that Check forks for the tests.
static int rows_of_machine(void) {
  const pid_t asked = fork();
  if (asked == 0) {
    int count = 0;
    while (row_info(count).name)
      count++;
    _exit(count);
  }
  int status = 0;
  const bool answered = asked > 0 && waitpid(asked, &status, 0) == asked && WIFEXITED(status);
  return answered ? WEXITSTATUS(status) : 1; // on failure, the first test reports it
}

int fixture_row_count(void) {
  const int all = rows_of_machine();
  return all > 2 && test_only_ends() ? 2 : all;
}

const char *fixture_row_name(int index) {
  return row_info(index > 0 && test_only_ends() ? rows_of_machine() - 1 : index).name;
}

weft_ctx *fixture_ctx(const char *row, size_t threads) {
  weft_ctx *ctx;
  fixture_row = row ? row : "default";
  EXPECT_OK(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = row, .threads = threads}));
  fixture_row = weft_ctx_backend(ctx);
  return ctx;
}

weft_segment_id fixture_id(size_t blocks, size_t block_bytes) {
  return (weft_segment_id){.stream = 0x7765667400000000u,
                           .segment = 42,
                           .blocks = (uint32_t)blocks,
                           .block_bytes = (uint32_t)block_bytes};
}

fixture_source fixture_source_new(weft_ctx *ctx, size_t blocks, size_t block_bytes, size_t bytes,
                                  const weft_encoder_options *options) {
  fixture_source source = {.id = fixture_id(blocks, block_bytes)};
  const size_t capacity = blocks * block_bytes;
  source.data = fixture_malloc(capacity);
  fixture_fill(source.data, bytes);
  memset(source.data + bytes, 0, capacity - bytes);
  // From a buffer of exactly the true length, so that sanitizers catch a read past the end.
  uint8_t *exact = fixture_malloc(bytes);
  memcpy(exact, source.data, bytes);
  const weft_segment_options segment = {.id = source.id, .data = exact, .bytes = bytes};
  EXPECT_OK(weft_segment_new(ctx, &segment, NULL, &source.segment));
  free(exact);
  EXPECT_OK(weft_encoder_new(source.segment, options, &source.encoder));
  return source;
}

void fixture_source_free(fixture_source *source) {
  weft_encoder_free(source->encoder);
  weft_segment_free(source->segment);
  free(source->data);
}

weft_decoder *fixture_decoder(weft_ctx *ctx, const weft_segment_id *id) {
  weft_decoder *decoder;
  EXPECT_OK(weft_decoder_new(ctx, &(weft_decoder_options){.id = *id}, &decoder));
  return decoder;
}

size_t fixture_feed(weft_encoder *encoder, weft_decoder *decoder) {
  uint8_t *datagram = NULL;
  size_t fed = 0, capacity = 0;
  while (!weft_decoder_complete(decoder)) {
    size_t bytes;
    weft_status status;
    while ((status = weft_encoder_next(encoder, datagram ? datagram : (uint8_t *)&bytes, capacity,
                                       &bytes)) == WEFT_E_BUFFER) {
      capacity += 4096;
      free(datagram);
      datagram = fixture_malloc(capacity);
    }
    EXPECT_OK(status);
    const size_t rank = weft_decoder_rank(decoder);
    const weft_status added = weft_decoder_add_datagram(decoder, datagram, bytes);
    EXPECT(added == WEFT_OK || added == WEFT_DEPENDENT);
    EXPECT(weft_decoder_rank(decoder) == rank + (added == WEFT_OK));
    fed++;
  }
  free(datagram);
  return fed;
}

void fixture_check_decoded(const fixture_source *source, weft_decoder *decoder) {
  const size_t n = source->id.blocks, k = source->id.block_bytes;
  EXPECT(weft_decoder_complete(decoder));
  EXPECT(weft_decoder_rank(decoder) == n);
  EXPECT(weft_decoder_prefix(decoder) == n);
  for (size_t i = 0; i < n; i++) {
    const uint8_t *block;
    EXPECT(weft_decoder_has_block(decoder, i));
    EXPECT_OK(weft_decoder_block(decoder, i, &block));
    EXPECT(memcmp(block, source->data + i * k, k) == 0);
  }
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  for (size_t i = 0; i < count; i++)
    hash = (hash ^ at[i]) * 0x100000001B3u;
  return hash;
}

uint64_t fixture_state(weft_decoder *decoder) {
  static const uint8_t key[32] = {1};
  uint8_t *datagram = fixture_malloc(WEFT_WIRE_HEADER_BYTES + WEFT_MAX_BLOCKS + (1u << 16));
  const size_t rank = weft_decoder_rank(decoder), prefix = weft_decoder_prefix(decoder);
  uint64_t hash = mix(mix(0xCBF29CE484222325u, &rank, sizeof rank), &prefix, sizeof prefix);
  for (size_t i = 0; i < WEFT_MAX_BLOCKS; i++) {
    const bool has = weft_decoder_has_block(decoder, i);
    hash = mix(hash, &has, sizeof has);
  }
  EXPECT_OK(weft_decoder_fix_random(decoder, key));
  for (size_t i = 0; i < rank; i++) {
    size_t bytes;
    EXPECT_OK(weft_decoder_recode(decoder, datagram,
                                  WEFT_WIRE_HEADER_BYTES + WEFT_MAX_BLOCKS + (1u << 16), &bytes));
    hash = mix(hash, datagram, bytes);
  }
  free(datagram);
  return hash;
}
