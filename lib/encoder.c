// SPDX-License-Identifier: Apache-2.0
// Creates encoders and makes single datagrams; encode_batch.c computes the products.
// Ho et al., "A Random Linear Network Coding Approach to Multicast" (2006); Chou, Wu and Jain,
// "Practical Network Coding" (2003), for segments and for vectors that travel with the packets.
#include "lib/encoder.h"

weft_status weft_encoder_new(const weft_segment *segment, const weft_encoder_options *options,
                             weft_encoder **out) {
  if (!out)
    return WEFT_E_ARGUMENT;
  *out = NULL;
  if (!segment)
    return WEFT_E_ARGUMENT;
  weft_ctx *ctx = segment->ctx;
  weft_encoder *encoder = weft_ctx_take(ctx, sizeof *encoder, _Alignof(weft_encoder));
  if (!encoder)
    return WEFT_E_NOMEM;
  encoder->segment = segment;
  encoder->ctx = ctx;
  encoder->options = options ? *options : (weft_encoder_options){0};
  encoder->next_block = encoder->options.systematic ? 0 : segment->id.blocks;
  encoder->next_seed = encoder->options.first_seed;
  weft_random_init(&encoder->random);
  *out = encoder;
  return WEFT_OK;
}

void weft_encoder_free(weft_encoder *encoder) {
  if (encoder)
    weft_ctx_give(encoder->ctx, encoder);
}

weft_status weft_encoder_fix_random(weft_encoder *encoder, const uint8_t *key) {
  if (!encoder || !key)
    return WEFT_E_ARGUMENT;
  weft_random_fix(&encoder->random, key);
  return WEFT_OK;
}

// --- one datagram ---

static weft_packet_mode next_mode(const weft_encoder *encoder) {
  if (encoder->next_block < encoder->segment->id.blocks)
    return WEFT_PACKET_SYSTEMATIC;
  if (!encoder->options.seeded)
    return WEFT_PACKET_VECTOR;
  return encoder->options.density_q16 == 0 ? WEFT_PACKET_DENSE : WEFT_PACKET_SPARSE;
}

weft_status weft_encoder_next(weft_encoder *encoder, uint8_t *datagram, size_t capacity,
                              size_t *written) {
  if (!encoder || !datagram || !written)
    return WEFT_E_ARGUMENT;
  const weft_segment_id *id = &encoder->segment->id;
  const size_t bytes = weft_packet_bytes(id, next_mode(encoder));
  if (capacity < bytes)
    return WEFT_E_BUFFER;
  uint8_t coefficients[WEFT_MAX_BLOCKS];
  weft_packet packet;
  weft_batch batch = {.count = 1,
                      .packets = &packet,
                      .coefficients = coefficients,
                      .payload = datagram + bytes - id->block_bytes};
  WEFT_TRY(weft_encoder_batch(encoder, &batch, NULL));
  return weft_packet_write(&packet, datagram, capacity, written);
}
