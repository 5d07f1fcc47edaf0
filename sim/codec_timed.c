// SPDX-License-Identifier: Apache-2.0
#include "sim/codec_timed.h"

static weft_status open_source(void *user, const weft_segment_id *id, const uint8_t *data,
                               size_t bytes, const weft_rng *rng, void **out) {
  weft_codec_timed *t = user;
  const uint64_t start = t->clock_ns(t->user);
  const weft_status status = t->inner->open_source(t->inner->user, id, data, bytes, rng, out);
  t->make.nanoseconds += t->clock_ns(t->user) - start;
  return status;
}

static weft_status open_sink(void *user, const weft_segment_id *id, const weft_rng *rng,
                             void **out) {
  weft_codec_timed *t = user;
  const uint64_t start = t->clock_ns(t->user);
  const weft_status status = t->inner->open_sink(t->inner->user, id, rng, out);
  t->decode.nanoseconds += t->clock_ns(t->user) - start;
  return status;
}

static void close_segment(void *user, void *segment) {
  weft_codec_timed *t = user;
  t->inner->close(t->inner->user, segment);
}

static weft_status add(void *user, void *segment, const weft_packet *packet) {
  weft_codec_timed *t = user;
  const uint64_t start = t->clock_ns(t->user);
  const weft_status status = t->inner->add(t->inner->user, segment, packet);
  t->decode.nanoseconds += t->clock_ns(t->user) - start;
  return status;
}

static size_t rank(void *user, const void *segment) {
  const weft_codec_timed *t = user;
  return t->inner->rank(t->inner->user, segment);
}

static weft_status make(void *user, void *segment, const weft_batch *batch) {
  weft_codec_timed *t = user;
  const uint64_t start = t->clock_ns(t->user);
  const weft_status status = t->inner->make(t->inner->user, segment, batch);
  t->make.nanoseconds += t->clock_ns(t->user) - start;
  if (status == WEFT_OK)
    t->make.bytes += batch->count * (uint64_t)batch->packets[0].id.block_bytes;
  return status;
}

static weft_status read_bytes(void *user, void *segment, size_t offset, size_t bytes,
                              uint8_t *out) {
  weft_codec_timed *t = user;
  const uint64_t start = t->clock_ns(t->user);
  const weft_status status = t->inner->read(t->inner->user, segment, offset, bytes, out);
  t->decode.nanoseconds += t->clock_ns(t->user) - start;
  if (status == WEFT_OK)
    t->decode.bytes += bytes;
  return status;
}

static size_t memory_bytes(void *user, const weft_segment_id *id) {
  const weft_codec_timed *t = user;
  return t->inner->memory_bytes(t->inner->user, id);
}

weft_codec weft_codec_timed_table(weft_codec_timed *timed) {
  return (weft_codec){.name = timed->inner->name,
                      .user = timed,
                      .open_source = open_source,
                      .open_sink = open_sink,
                      .close = close_segment,
                      .add = add,
                      .rank = rank,
                      .make = make,
                      .read = read_bytes,
                      .memory_bytes = memory_bytes};
}
