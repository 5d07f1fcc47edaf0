// SPDX-License-Identifier: Apache-2.0
// Handles that start again: with another segment of their shape, or with random numbers derived
// from a key. A new handle must then give the same results.
#include <stdlib.h>
#include <string.h>

#include "tests/lib/sequence.h"

enum { KEY_BYTES = 32, TIMES = 3 };

// --- resets ---

// Returns any source of the same shape, possibly the same one.
static const world_source *some_alike(const world *w, const world_source *of) {
  const world_source *found;
  do
    found = &w->source[fixture_below(SOURCES)];
  while (found->id.blocks != of->id.blocks);
  return found;
}

static void reset_decoder(const world *w, world_decoder *d) {
  d->of = some_alike(w, d->of);
  d->span = (model_span){.n = d->of->id.blocks};
  memset(d->seen, 0, sizeof d->seen);
  EXPECT_OK(weft_decoder_reset(d->decoder, &d->of->id));
}

static void reset_recoder(const world *w, world_recoder *r) {
  r->of = some_alike(w, r->of);
  r->span = (model_span){.n = r->of->id.blocks};
  r->held = r->count = 0;
  EXPECT_OK(weft_recoder_reset(r->recoder, &r->of->id));
}

void world_reset(world *w) {
  if (fixture_below(2))
    reset_decoder(w, world_some_decoder(w));
  else
    reset_recoder(w, &w->recoder[fixture_below(RECODERS)]);
}

// --- keys ---

// Compares coded packets of two encoders with the same key: one makes batches of one, the other
// datagrams.
static void fix_encoder(world *w) {
  world_encoder *e = &w->encoder[fixture_below(ENCODERS)];
  const weft_encoder_options options = {.density_q16 = e->options.density_q16};
  const size_t n = e->of->id.blocks, k = e->of->id.block_bytes;
  const size_t room = weft_packet_bytes(&e->of->id, WEFT_PACKET_VECTOR);
  uint8_t key[KEY_BYTES], *datagram = fixture_malloc(room);
  weft_encoder *fresh;
  size_t bytes;
  world_batch b;
  fixture_fill(key, sizeof key);
  EXPECT_OK(weft_encoder_new(e->of->segment, &options, &fresh));
  EXPECT_OK(weft_encoder_fix_random(fresh, key));
  EXPECT_OK(weft_encoder_fix_random(e->encoder, key));
  world_batch_new(&b, &e->of->id, 1 + fixture_below(BATCH));
  EXPECT_OK(weft_encoder_batch(e->encoder, &b.batch, NULL));
  for (size_t i = 0; i < b.batch.count; i++) {
    weft_packet packet;
    world_check_next(e, &b.packets[i]);
    if (b.packets[i].mode != WEFT_PACKET_VECTOR)
      continue;
    EXPECT_OK(weft_encoder_next(fresh, datagram, room, &bytes));
    EXPECT_OK(weft_packet_parse(datagram, bytes, &packet));
    EXPECT(memcmp(packet.coefficients, b.packets[i].coefficients, n) == 0);
    EXPECT(memcmp(packet.payload, b.packets[i].payload, k) == 0);
  }
  world_batch_free(&b);
  weft_encoder_free(fresh);
  free(datagram);
}

// Compares recoded packets of two decoders or two recoders that must be identical.
typedef weft_status recode_call(void *handle, uint8_t *datagram, size_t capacity, size_t *written);

static weft_status of_decoder(void *handle, uint8_t *datagram, size_t capacity, size_t *written) {
  return weft_decoder_recode(handle, datagram, capacity, written);
}

static weft_status of_recoder(void *handle, uint8_t *datagram, size_t capacity, size_t *written) {
  return weft_recoder_next(handle, datagram, capacity, written);
}

static void check_alike(recode_call *recode, void *used, void *fresh, const weft_segment_id *id,
                        weft_status expected) {
  const size_t room = weft_packet_bytes(id, WEFT_PACKET_VECTOR);
  uint8_t *mine = fixture_malloc(room), *other = fixture_malloc(room);
  size_t bytes;
  for (int time = 0; time < TIMES; time++) {
    EXPECT_STATUS(recode(used, mine, room, &bytes), expected);
    EXPECT_STATUS(recode(fresh, other, room, &bytes), expected);
    EXPECT(expected != WEFT_OK || memcmp(mine, other, room) == 0);
  }
  free(mine);
  free(other);
}

// What a decoder recodes depends only on the key and on what arrived, before or after the key was
// set or a reset.
static void fix_decoder(world *w) {
  world_decoder *d = world_some_decoder(w);
  weft_decoder *fresh;
  uint8_t key[KEY_BYTES];
  world_packet p;
  fixture_fill(key, sizeof key);
  EXPECT_OK(weft_decoder_fix_random(d->decoder, key));
  if (fixture_below(2)) {
    reset_decoder(w, d);
    for (size_t left = fixture_below(d->of->id.blocks + 1); left > 0; left--) {
      world_packet_new(&p, d->of);
      EXPECT_STATUS(weft_decoder_add(d->decoder, &p.packet), world_decoder_takes(d, &p));
      free(p.payload);
    }
  }
  const weft_decoder_options options = {.id = d->of->id, .eager = fixture_below(2) != 0};
  EXPECT_OK(weft_decoder_new(fixture_below(2) ? w->ctx : w->other, &options, &fresh));
  EXPECT_OK(weft_decoder_fix_random(fresh, key));
  for (size_t i = 0; i < d->span.rank; i++) {
    world_packet_of(&p, d->of, d->took[i]);
    EXPECT_OK(weft_decoder_add(fresh, &p.packet));
    free(p.payload);
  }
  check_alike(of_decoder, d->decoder, fresh, &d->of->id, d->span.rank ? WEFT_OK : WEFT_PENDING);
  weft_decoder_free(fresh);
}

// A recoder that has already mixed packets in used earlier random numbers to do so; it is reset
// first.
static void fix_recoder(world *w) {
  world_recoder *r = &w->recoder[fixture_below(RECODERS)];
  weft_recoder *fresh;
  uint8_t key[KEY_BYTES];
  world_packet p;
  fixture_fill(key, sizeof key);
  EXPECT_OK(weft_recoder_fix_random(r->recoder, key));
  if (r->count > r->held || fixture_below(2))
    reset_recoder(w, r);
  EXPECT_OK(
      weft_recoder_new(fixture_below(2) ? w->ctx : w->other, &r->of->id, r->capacity, &fresh));
  EXPECT_OK(weft_recoder_fix_random(fresh, key));
  for (size_t i = 0; i < r->held; i++) {
    world_packet_of(&p, r->of, r->took[i]);
    EXPECT_OK(weft_recoder_add(fresh, &p.packet));
    free(p.payload);
  }
  for (size_t left = fixture_below(2 * r->capacity + 1); left > 0; left--) {
    world_packet_new(&p, r->of);
    const weft_status expected = world_recoder_takes(r, &p);
    EXPECT_STATUS(weft_recoder_add(r->recoder, &p.packet), expected);
    EXPECT_STATUS(weft_recoder_add(fresh, &p.packet), expected);
    free(p.payload);
  }
  EXPECT(weft_recoder_held(fresh) == r->held);
  check_alike(of_recoder, r->recoder, fresh, &r->of->id, r->held ? WEFT_OK : WEFT_PENDING);
  weft_recoder_free(fresh);
}

void world_fix_random(world *w) {
  static void (*const calls[])(world *) = {fix_encoder, fix_decoder, fix_recoder};
  calls[fixture_below(sizeof calls / sizeof calls[0])](w);
}
