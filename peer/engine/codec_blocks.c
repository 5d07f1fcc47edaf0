// SPDX-License-Identifier: Apache-2.0
// The codec without coding: a segment is its blocks, and packets are copies of them.
#include <string.h>

#include "weft/peer_codec.h"

typedef struct plain_segment {
  weft_segment_id id;
  size_t held;
  uint8_t *blocks; // (n, k)
  uint8_t has[WEFT_MAX_BLOCKS / 8];
} plain_segment;

static void close_segment(void *user, void *opened) {
  const weft_codec_blocks *b = user;
  weft_free(b->ctx, WEFT_MEM_HOST, opened);
}

static weft_status open_sink(void *user, const weft_segment_id *id, const weft_rng *rng,
                             void **out) {
  const weft_codec_blocks *b = user;
  (void)rng;
  const size_t bytes = (size_t)id->blocks * id->block_bytes;
  void *memory;
  WEFT_TRY(weft_alloc(b->ctx, WEFT_MEM_HOST, sizeof(plain_segment) + bytes, &memory));
  plain_segment *s = memory;
  *s = (plain_segment){.id = *id, .blocks = (uint8_t *)memory + sizeof *s};
  *out = s;
  return WEFT_OK;
}

static weft_status open_source(void *user, const weft_segment_id *id, const uint8_t *data,
                               size_t bytes, const weft_rng *rng, void **out) {
  WEFT_TRY(open_sink(user, id, rng, out));
  plain_segment *s = *out;
  memcpy(s->blocks, data, bytes);
  memset(s->blocks + bytes, 0, (size_t)id->blocks * id->block_bytes - bytes);
  for (size_t i = 0; i < id->blocks; i++)
    s->has[i / 8] = (uint8_t)(s->has[i / 8] | 1u << i % 8);
  s->held = id->blocks;
  return WEFT_OK;
}

static weft_status add(void *user, void *opened, const weft_packet *packet) {
  plain_segment *s = opened;
  (void)user;
  if (packet->mode != WEFT_PACKET_SYSTEMATIC || packet->id.blocks != s->id.blocks)
    return WEFT_E_FOREIGN;
  const size_t i = packet->index, k = s->id.block_bytes;
  if (s->has[i / 8] >> i % 8 & 1)
    return WEFT_DEPENDENT;
  memcpy(s->blocks + i * k, packet->payload, k);
  s->has[i / 8] = (uint8_t)(s->has[i / 8] | 1u << i % 8);
  s->held++;
  return WEFT_OK;
}

static size_t rank(void *user, const void *opened) {
  const plain_segment *s = opened;
  (void)user;
  return s->held;
}

static weft_status make(void *user, void *opened, const weft_batch *batch) {
  const plain_segment *s = opened;
  const size_t k = s->id.block_bytes;
  (void)user;
  for (size_t i = 0; i < batch->count; i++) {
    const uint32_t index = batch->packets[i].index;
    if (index >= s->id.blocks || !(s->has[index / 8] >> index % 8 & 1))
      return WEFT_E_ARGUMENT;
    uint8_t *to = batch->payload_rows[i];
    memcpy(to, s->blocks + index * k, k);
    batch->packets[i] =
        (weft_packet){.id = s->id, .mode = WEFT_PACKET_SYSTEMATIC, .index = index, .payload = to};
  }
  return WEFT_OK;
}

static weft_status read_bytes(void *user, void *opened, size_t offset, size_t bytes, uint8_t *out) {
  const plain_segment *s = opened;
  (void)user;
  if (s->held < s->id.blocks)
    return WEFT_PENDING;
  memcpy(out, s->blocks + offset, bytes);
  return WEFT_OK;
}

static void has(void *user, const void *opened, uint8_t *bitmap) {
  const plain_segment *s = opened;
  (void)user;
  for (size_t i = 0; i < (s->id.blocks + 7) / 8; i++)
    bitmap[i] |= s->has[i];
}

static size_t memory_bytes(void *user, const weft_segment_id *id) {
  (void)user;
  return sizeof(plain_segment) + (size_t)id->blocks * id->block_bytes;
}

weft_codec weft_codec_blocks_table(weft_codec_blocks *blocks) {
  return (weft_codec){.name = "blocks",
                      .user = blocks,
                      .open_source = open_source,
                      .open_sink = open_sink,
                      .close = close_segment,
                      .add = add,
                      .rank = rank,
                      .make = make,
                      .read = read_bytes,
                      .memory_bytes = memory_bytes,
                      .has = has};
}
