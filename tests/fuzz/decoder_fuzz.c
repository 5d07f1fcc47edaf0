// SPDX-License-Identifier: Apache-2.0
// Fuzzes the decoder's packet path. The input is a small program: a shape, then steps that feed
// packets (valid ones, whose payload is computed from a known segment, and damaged ones) to a
// deferring and an eager decoder, read blocks at odd moments, and relay through a recoder. Whatever
// the steps, known blocks are those of the segment, and refused packets leave the rank unchanged.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *weft_fuzz_missing(void); // in the replay program (tools/fuzz/replay_main.c)

enum { BLOCKS_MAX = 16, BYTES_MAX = 40, DATAGRAM_MAX = 24 + BLOCKS_MAX + BYTES_MAX + 16 };

// What the inputs have covered so far.
static bool complete_of[BLOCKS_MAX + 1]; // by number of blocks
static bool saw_dependent, saw_refused, saw_mixed_in;

typedef struct machine {
  const uint8_t *at, *end; // the remaining steps
  weft_segment_id id;
  uint8_t source[BLOCKS_MAX * BYTES_MAX];
  weft_encoder *encoder;
  weft_decoder *deferred, *eager;
  weft_recoder *recoder;
} machine;

static void require(bool condition) {
  if (!condition)
    abort();
}

static uint8_t next(machine *m) { return m->at < m->end ? *m->at++ : 0; }

static uint64_t next_u64(machine *m) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++)
    value = value << 8 | next(m);
  return value;
}

static void check_blocks(machine *m, weft_decoder *decoder) {
  const size_t k = m->id.block_bytes;
  size_t prefix = 0;
  for (size_t i = 0; i < m->id.blocks; i++) {
    const uint8_t *block;
    const bool known = weft_decoder_has_block(decoder, i);
    require(weft_decoder_block(decoder, i, &block) == (known ? WEFT_OK : WEFT_PENDING));
    if (known)
      require(memcmp(block, m->source + i * k, k) == 0);
    prefix += known && prefix == i;
  }
  require(weft_decoder_prefix(decoder) == prefix);
  require(weft_decoder_complete(decoder) == (weft_decoder_rank(decoder) == m->id.blocks));
}

// Feeds a packet to both decoders, which must agree.
static void feed(machine *m, const uint8_t *datagram, size_t bytes) {
  const size_t rank = weft_decoder_rank(m->deferred);
  const weft_status status = weft_decoder_add_datagram(m->deferred, datagram, bytes);
  require(weft_decoder_add_datagram(m->eager, datagram, bytes) == status);
  require(weft_decoder_rank(m->deferred) == rank + (status == WEFT_OK));
  require(weft_decoder_rank(m->eager) == weft_decoder_rank(m->deferred));
  require(rank + (status == WEFT_OK) <= m->id.blocks);
  const size_t held = weft_recoder_held(m->recoder);
  const weft_status mixed = weft_recoder_add_datagram(m->recoder, datagram, bytes);
  require((mixed == WEFT_OK || mixed == WEFT_DEPENDENT) ==
          (status == WEFT_OK || status == WEFT_DEPENDENT));
  saw_dependent = saw_dependent || status == WEFT_DEPENDENT;
  saw_refused = saw_refused || (status != WEFT_OK && status != WEFT_DEPENDENT);
  saw_mixed_in =
      saw_mixed_in || (mixed == WEFT_OK && weft_recoder_held(m->recoder) < m->id.blocks &&
                       weft_recoder_held(m->recoder) == held);
}

// Feeds a packet chosen by the program, with its correct payload.
static void feed_true(machine *m, weft_packet_mode mode) {
  uint8_t vector[BLOCKS_MAX], payload[BYTES_MAX], datagram[DATAGRAM_MAX];
  weft_packet packet = {.id = m->id, .mode = mode, .payload = payload, .coefficients = vector};
  size_t bytes;
  if (mode == WEFT_PACKET_VECTOR)
    for (size_t i = 0; i < BLOCKS_MAX && i < m->id.blocks; i++)
      vector[i] = next(m);
  else if (mode == WEFT_PACKET_SYSTEMATIC)
    packet.index = next(m) % m->id.blocks;
  else
    packet.seed = next_u64(m);
  packet.density_q16 = (uint16_t)(1 + 255 * next(m));
  uint8_t coefficients[BLOCKS_MAX];
  require(weft_packet_coefficients(&packet, coefficients) == WEFT_OK);
  const weft_batch batch = {.count = 1, .payload = payload};
  require(weft_encoder_combine(m->encoder, 1, coefficients, m->id.blocks, &batch, NULL) == WEFT_OK);
  require(weft_packet_write(&packet, datagram, sizeof datagram, &bytes) == WEFT_OK);
  feed(m, datagram, bytes);
}

// Feeds a packet with one damaged header byte, or a truncated one, which must be refused. Damage
// that gives another valid mode is skipped: the packet could be accepted with a wrong payload.
static void feed_raw(machine *m) {
  uint8_t datagram[DATAGRAM_MAX], zeros[BYTES_MAX] = {0};
  const weft_packet packet = {.id = m->id, .mode = WEFT_PACKET_SYSTEMATIC, .payload = zeros};
  size_t bytes;
  require(weft_packet_write(&packet, datagram, sizeof datagram, &bytes) == WEFT_OK);
  const size_t place = next(m) % WEFT_WIRE_HEADER_BYTES;
  const uint8_t flip = next(m);
  datagram[place] ^= flip;
  if (place == 1 && datagram[1] <= WEFT_PACKET_SPARSE)
    return; // possibly a valid packet with a wrong payload
  const size_t rank = weft_decoder_rank(m->deferred);
  if (flip != 0)
    feed(m, datagram, bytes);
  else
    feed(m, datagram, bytes - 1 - next(m) % bytes);
  require(weft_decoder_rank(m->deferred) == rank);
}

static void relay(machine *m, uint8_t how) {
  uint8_t datagram[DATAGRAM_MAX];
  size_t bytes;
  const weft_status status =
      how % 3 == 0   ? weft_decoder_recode(m->deferred, datagram, sizeof datagram, &bytes)
      : how % 3 == 1 ? weft_decoder_recode(m->eager, datagram, sizeof datagram, &bytes)
                     : weft_recoder_next(m->recoder, datagram, sizeof datagram, &bytes);
  if (status == WEFT_PENDING)
    return;
  require(status == WEFT_OK);
  const size_t rank = weft_decoder_rank(m->deferred);
  feed(m, datagram, bytes);
  require(weft_decoder_rank(m->deferred) == rank); // it was in their span
}

static void run(machine *m) {
  while (m->at < m->end) {
    const uint8_t step = next(m);
    switch (step % 8) {
    case 0:
    case 1:
    case 2:
    case 3:
      feed_true(m, (weft_packet_mode)(step % 4));
      break;
    case 4:
      feed_raw(m);
      break;
    case 5:
      relay(m, step / 8);
      break;
    case 6:
      check_blocks(m, m->deferred);
      break;
    default:
      check_blocks(m, m->eager);
      break;
    }
  }
  check_blocks(m, m->deferred);
  check_blocks(m, m->eager);
  if (weft_decoder_complete(m->deferred))
    complete_of[m->id.blocks] = true;
}

const char *weft_fuzz_missing(void) {
  if (!complete_of[1] || !complete_of[2] || !complete_of[5] || !complete_of[BLOCKS_MAX])
    return "full rank with 1, 2, 5 and 16 blocks";
  if (!saw_dependent || !saw_refused)
    return "a dependent packet and one that is refused";
  return saw_mixed_in ? NULL : "a packet mixed into another that a recoder holds";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t key[32] = {3}; // so that an input always does the same
  weft_ctx *ctx;
  weft_segment *segment;
  machine m = {.at = data, .end = data + size};
  m.id = (weft_segment_id){.stream = 1, .segment = 2};
  m.id.blocks = 1 + next(&m) % BLOCKS_MAX;
  m.id.block_bytes = 1 + next(&m) % BYTES_MAX;
  for (size_t i = 0; i < sizeof m.source; i++)
    m.source[i] = (uint8_t)(i * 197 + (i >> 3) + 5);
  require(weft_ctx_new(&ctx, NULL) == WEFT_OK);
  const weft_segment_options source = {
      .id = m.id, .data = m.source, .bytes = (size_t)m.id.blocks * m.id.block_bytes};
  require(weft_segment_new(ctx, &source, NULL, &segment) == WEFT_OK);
  require(weft_encoder_new(segment, NULL, &m.encoder) == WEFT_OK);
  weft_decoder_options options = {.id = m.id};
  require(weft_decoder_new(ctx, &options, &m.deferred) == WEFT_OK);
  options.eager = true;
  require(weft_decoder_new(ctx, &options, &m.eager) == WEFT_OK);
  require(weft_recoder_new(ctx, &m.id, 1 + next(&m) % m.id.blocks, &m.recoder) == WEFT_OK);
  require(weft_decoder_fix_random(m.deferred, key) == WEFT_OK);
  require(weft_decoder_fix_random(m.eager, key) == WEFT_OK);
  require(weft_recoder_fix_random(m.recoder, key) == WEFT_OK);
  run(&m);
  weft_recoder_free(m.recoder);
  weft_decoder_free(m.eager);
  weft_decoder_free(m.deferred);
  weft_encoder_free(m.encoder);
  weft_segment_free(segment);
  weft_ctx_free(ctx);
  return 0;
}
