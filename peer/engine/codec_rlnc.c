// SPDX-License-Identifier: Apache-2.0
// The RLNC codec of the peer: an encoder at the source, a decoder that recodes everywhere else.
#include "weft/peer_codec.h"

#include <string.h>

#include "peer/engine/checksum_rows.h"

typedef struct coded_segment {
  weft_segment *segment; // the source's
  weft_encoder *encoder;
  weft_decoder *decoder; // everyone else's
  weft_segment_id id;
} coded_segment;

static void close_segment(void *user, void *opened) {
  const weft_codec_rlnc *rlnc = user;
  coded_segment *s = opened;
  if (!s)
    return;
  weft_encoder_free(s->encoder);
  weft_segment_free(s->segment);
  weft_decoder_free(s->decoder);
  weft_free(rlnc->ctx, WEFT_MEM_HOST, s);
}

static weft_status new_segment(const weft_codec_rlnc *rlnc, coded_segment **out) {
  void *memory;
  WEFT_TRY(weft_alloc(rlnc->ctx, WEFT_MEM_HOST, sizeof **out, &memory));
  *out = memory;
  **out = (coded_segment){0};
  return WEFT_OK;
}

static weft_status open_source(void *user, const weft_segment_id *id, const uint8_t *data,
                               size_t bytes, const weft_rng *rng, void **out) {
  const weft_codec_rlnc *rlnc = user;
  coded_segment *s;
  WEFT_TRY(new_segment(rlnc, &s));
  const weft_segment_options segment = {.id = *id, .data = data, .bytes = bytes};
  (void)rng; // packets carry seeds that count up: nothing is random
  const weft_encoder_options coding = {.systematic = !rlnc->coded_only, .seeded = true};
  weft_status status = weft_segment_new(rlnc->ctx, &segment, NULL, &s->segment);
  if (status == WEFT_OK)
    status = weft_encoder_new(s->segment, &coding, &s->encoder);
  if (status != WEFT_OK)
    close_segment(user, s);
  else
    *out = s;
  return status;
}

static weft_status open_sink(void *user, const weft_segment_id *id, const weft_rng *rng,
                             void **out) {
  const weft_codec_rlnc *rlnc = user;
  coded_segment *s;
  WEFT_TRY(new_segment(rlnc, &s));
  s->id = *id;
  const weft_decoder_options options = {.id = *id};
  weft_status status = weft_decoder_new(rlnc->ctx, &options, &s->decoder);
  if (status == WEFT_OK) {
    uint8_t key[WEFT_RNG_KEY_BYTES];
    rng->fill(rng->user, key, sizeof key);
    status = weft_decoder_fix_random(s->decoder, key);
  }
  if (status != WEFT_OK)
    close_segment(user, s);
  else
    *out = s;
  return status;
}

static weft_status add(void *user, void *opened, const weft_packet *packet) {
  coded_segment *s = opened;
  (void)user;
  return s->decoder ? weft_decoder_add(s->decoder, packet) : WEFT_DEPENDENT;
}

static size_t rank(void *user, const void *opened) {
  const coded_segment *s = opened;
  (void)user;
  return s->decoder ? weft_decoder_rank(s->decoder) : weft_segment_get_id(s->segment)->blocks;
}

static weft_status make(void *user, void *opened, const weft_batch *batch) {
  coded_segment *s = opened;
  (void)user;
  return s->decoder ? weft_decoder_recode_batch(s->decoder, batch)
                    : weft_encoder_batch(s->encoder, batch, NULL);
}

static weft_status read_bytes(void *user, void *opened, size_t offset, size_t bytes, uint8_t *out) {
  coded_segment *s = opened;
  (void)user;
  return s->decoder ? weft_decoder_read(s->decoder, offset, bytes, out) : WEFT_E_STATE;
}

static size_t memory_bytes(void *user, const weft_segment_id *id) {
  (void)user;
  return sizeof(coded_segment) + weft_decoder_memory_bytes(id, true);
}

// --- Checksums

// Computes the sums of each source block; a new encoder puts the blocks out in order.
static weft_status sum_blocks(const coded_segment *s, uint64_t seed, uint8_t *payload,
                              uint8_t *sums) {
  const weft_segment_id *id = weft_segment_get_id(s->segment);
  const weft_encoder_options plain = {.systematic = true, .seeded = true};
  weft_encoder *encoder;
  WEFT_TRY(weft_encoder_new(s->segment, &plain, &encoder));
  weft_status status = WEFT_OK;
  for (size_t i = 0; i < id->blocks && status == WEFT_OK; i++) {
    weft_packet packet;
    const weft_batch one = {.count = 1, .packets = &packet, .payload_rows = &payload};
    status = weft_encoder_batch(encoder, &one, NULL);
    if (status == WEFT_OK)
      weft_checksum_of(seed, payload, id->block_bytes, sums + i * WEFT_CHECKSUM_ROWS);
  }
  weft_encoder_free(encoder);
  return status;
}

static weft_status sum_decoded(const coded_segment *s, uint64_t seed, uint8_t *sums,
                               const weft_segment_id *id) {
  for (size_t i = 0; i < id->blocks; i++) {
    const uint8_t *block;
    WEFT_TRY(weft_decoder_block(s->decoder, i, &block));
    weft_checksum_of(seed, block, id->block_bytes, sums + i * WEFT_CHECKSUM_ROWS);
  }
  return WEFT_OK;
}

static weft_status checksum(void *user, void *opened, uint64_t seed, uint8_t *sums) {
  const weft_codec_rlnc *rlnc = user;
  const coded_segment *s = opened;
  if (s->decoder)
    return sum_decoded(s, seed, sums, &s->id);
  void *payload;
  WEFT_TRY(
      weft_alloc(rlnc->ctx, WEFT_MEM_HOST, weft_segment_get_id(s->segment)->block_bytes, &payload));
  const weft_status status = sum_blocks(s, seed, payload, sums);
  weft_free(rlnc->ctx, WEFT_MEM_HOST, payload);
  return status;
}

static bool verify(void *user, const weft_packet *packet, uint64_t seed, const uint8_t *sums) {
  uint8_t coefficients[WEFT_MAX_BLOCKS], is[WEFT_CHECKSUM_ROWS], should[WEFT_CHECKSUM_ROWS];
  (void)user;
  if (weft_packet_coefficients(packet, coefficients) != WEFT_OK)
    return false;
  weft_checksum_of(seed, packet->payload, packet->id.block_bytes, is);
  weft_checksum_combine(coefficients, packet->id.blocks, sums, should);
  return memcmp(is, should, sizeof is) == 0;
}

weft_codec weft_codec_rlnc_table(weft_codec_rlnc *rlnc) {
  return (weft_codec){.name = "rlnc",
                      .user = rlnc,
                      .open_source = open_source,
                      .open_sink = open_sink,
                      .close = close_segment,
                      .add = add,
                      .rank = rank,
                      .make = make,
                      .read = read_bytes,
                      .memory_bytes = memory_bytes,
                      .checksum = checksum,
                      .verify = verify};
}
