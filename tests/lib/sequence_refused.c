// SPDX-License-Identifier: Apache-2.0
// Calls that must be refused, each with the status that the headers promise; their handles and
// outputs stay unchanged.
#include <stdlib.h>
#include <string.h>

#include "tests/lib/sequence.h"

static weft_mem no_memory(void) { return (weft_mem)(WEFT_MEM_DEVICE + 1 + fixture_below(5)); }

// --- segments and handles ---

static void segments(world *w) {
  uint8_t data[8] = {0};
  const weft_segment_id id = {.blocks = 2, .block_bytes = 4};
  weft_segment_options options = {.id = id, .data = data, .bytes = sizeof data};
  weft_segment *out = (weft_segment *)(void *)data;
  weft_status expected = WEFT_E_ARGUMENT;
  weft_queue *queue = NULL;
  switch (fixture_below(8)) {
  case 0:
    options.data = NULL;
    break;
  case 1:
    options.bytes = fixture_below(2) ? 0 : world_out_of_range(9);
    break;
  case 2:
    options.id.blocks = fixture_below(2) ? 0 : (uint32_t)(WEFT_MAX_BLOCKS + 1 + fixture_below(9));
    break;
  case 3:
    options.id.block_bytes = fixture_below(2) ? 0 : UINT32_MAX - (uint32_t)fixture_below(9);
    break;
  case 4:
    options.mem = no_memory();
    break;
  case 5:
    options.mem = WEFT_MEM_DEVICE;
    expected = WEFT_E_UNSUPPORTED;
    break;
  case 6:
    queue = w->foreign;
    break;
  default:
    EXPECT_STATUS(weft_segment_new(NULL, &options, NULL, &out), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_segment_new(w->ctx, NULL, NULL, &out), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_segment_new(w->ctx, &options, NULL, NULL), WEFT_E_ARGUMENT);
    out = w->source[0].segment; // a call that fails sets NULL, whatever the value was
    EXPECT_STATUS(weft_segments_new(w->ctx, NULL, 1, NULL, &out), WEFT_E_ARGUMENT);
    EXPECT(!out);
    out = w->source[0].segment;
    EXPECT_STATUS(weft_segments_new(NULL, &options, 1, NULL, &out), WEFT_E_ARGUMENT);
    EXPECT(!out);
    EXPECT_OK(weft_segments_new(w->ctx, NULL, 0, NULL, NULL));
    return;
  }
  EXPECT_STATUS(weft_segment_new(w->ctx, &options, queue, &out), expected);
  EXPECT(!out);
  const weft_segment_options two[2] = {{.id = id, .data = data, .bytes = 5}, options};
  weft_segment *both[2];
  EXPECT_STATUS(weft_segments_new(w->ctx, two, 2, queue, both), expected);
  EXPECT(!both[0] && !both[1]);
}

static void handles(world *w) {
  weft_encoder *encoder;
  weft_decoder *decoder;
  weft_recoder *recoder;
  uint8_t byte;
  const world_source *s = &w->source[0];
  const size_t k = s->id.block_bytes;
  weft_decoder_options options = {.id = s->id};
  EXPECT_STATUS(weft_encoder_new(NULL, NULL, &encoder), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_new(s->segment, NULL, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_new(NULL, &options, &decoder), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_new(w->ctx, NULL, &decoder), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_new(w->ctx, &options, NULL), WEFT_E_ARGUMENT);
  options.mem = fixture_below(2) ? no_memory() : WEFT_MEM_PINNED;
  EXPECT_STATUS(weft_decoder_new(w->ctx, &options, &decoder), WEFT_E_ARGUMENT);
  options.mem = WEFT_MEM_DEVICE;
  EXPECT_STATUS(weft_decoder_new(w->ctx, &options, &decoder), WEFT_E_UNSUPPORTED);
  options.mem = WEFT_MEM_HOST;
  options.blocks = &byte;
  options.blocks_stride = k - 1;
  if (k > 1)
    EXPECT_STATUS(weft_decoder_new(w->ctx, &options, &decoder), WEFT_E_ARGUMENT);
  options.blocks_stride = (size_t)PTRDIFF_MAX / s->id.blocks + 1;
  if (s->id.blocks > 1)
    EXPECT_STATUS(weft_decoder_new(w->ctx, &options, &decoder), WEFT_E_ARGUMENT);
  const size_t capacity = fixture_below(2) ? 0 : world_out_of_range(s->id.blocks + 1);
  EXPECT_STATUS(weft_recoder_new(w->ctx, &s->id, capacity, &recoder), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_new(w->ctx, NULL, 1, &recoder), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_new(w->ctx, &s->id, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_new(NULL, &s->id, 1, &recoder), WEFT_E_ARGUMENT);
  const uint32_t none_of[3][2] = {{0, 1}, {WEFT_MAX_BLOCKS + 1, 1}, {1, 0}};
  for (size_t i = 0; i < 3; i++) {
    const weft_segment_id none = {.blocks = none_of[i][0], .block_bytes = none_of[i][1]};
    options = (weft_decoder_options){.id = none};
    EXPECT_STATUS(weft_decoder_new(w->ctx, &options, &decoder), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_recoder_new(w->ctx, &none, 1, &recoder), WEFT_E_ARGUMENT);
    EXPECT(weft_decoder_memory_bytes(&none, true) == 0);
  }
  EXPECT(weft_decoder_memory_bytes(NULL, true) == 0);
}

// Resets to segments of another shape, and with NULL arguments; the other checks verify that
// nothing changed.
static void again(world *w) {
  const world_decoder *d = &w->decoder[fixture_below(DECODERS)];
  const world_recoder *r = &w->recoder[fixture_below(RECODERS)];
  weft_segment_id other[2] = {d->of->id, r->of->id};
  for (size_t i = 0; i < 2; i++) {
    const uint32_t change = 1 + (uint32_t)fixture_below(fixture_below(2) ? 7 : UINT32_MAX);
    *(fixture_below(2) ? &other[i].blocks : &other[i].block_bytes) ^= change;
  }
  EXPECT_STATUS(weft_decoder_reset(d->decoder, &other[0]), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_reset(r->recoder, &other[1]), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_reset(d->decoder, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_reset(r->recoder, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_reset(NULL, &d->of->id), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_reset(NULL, &r->of->id), WEFT_E_ARGUMENT);
  const uint8_t key[32] = {0};
  EXPECT_STATUS(weft_encoder_fix_random(w->encoder[0].encoder, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_fix_random(d->decoder, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_fix_random(r->recoder, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_fix_random(NULL, key), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_fix_random(NULL, key), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_fix_random(NULL, key), WEFT_E_ARGUMENT);
}

static void memory(world *w) {
  void *out = w;
  EXPECT_STATUS(weft_alloc(NULL, WEFT_MEM_HOST, 1, &out), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_alloc(w->ctx, WEFT_MEM_HOST, 0, &out), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_alloc(w->ctx, WEFT_MEM_HOST, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_alloc(w->ctx, no_memory(), 1, &out), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_alloc(w->ctx, WEFT_MEM_PINNED, 1, &out), WEFT_E_UNSUPPORTED);
  EXPECT_STATUS(weft_alloc(w->ctx, WEFT_MEM_HOST, SIZE_MAX - fixture_below(200), &out),
                WEFT_E_NOMEM);
  EXPECT(!out);
  EXPECT_STATUS(weft_queue_poll(NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_queue_wait(NULL), WEFT_E_ARGUMENT);
}

// --- batches ---

// Makes a batch of at least two packets invalid; returns the status that calls with it must return.
static weft_status spoil(world *w, world_batch *b, const weft_segment_id *id, weft_queue **queue) {
  weft_batch *batch = &b->batch;
  switch (fixture_below(queue ? 8 : 7)) {
  case 0:
    batch->payload = NULL;
    batch->payload_rows = NULL;
    break;
  case 1:
    batch->payload_rows = NULL;
    batch->payload = b->payload;
    batch->payload_stride = world_invalid_stride(batch->count, id->block_bytes);
    break;
  case 2:
    b->rows[fixture_below(batch->count)] = NULL;
    batch->payload_rows = b->rows;
    break;
  case 3:
    batch->coefficients_stride = world_invalid_stride(batch->count, id->blocks);
    break;
  case 4:
    batch->mem = no_memory();
    break;
  case 5:
    batch->coefficients_mem = no_memory();
    break;
  case 6: // one of the two, as a host row offers neither
    *(fixture_below(2) ? &batch->mem : &batch->coefficients_mem) = WEFT_MEM_DEVICE;
    return WEFT_E_UNSUPPORTED;
  default:
    *queue = w->foreign;
  }
  return WEFT_E_ARGUMENT;
}

static void encoder_batches(world *w) {
  const size_t at = fixture_below(ENCODERS), beside = (at + fixture_below(2)) % ENCODERS;
  const weft_segment_id *id = &w->encoder[at].of->id;
  weft_queue *queue = w->queue;
  world_batch b, good;
  world_batch_new(&b, id, 2 + fixture_below(BATCH - 1));
  world_batch_new(&good, &w->encoder[beside].of->id, 1);
  const weft_status expected = spoil(w, &b, id, &queue);
  if (fixture_below(2)) {
    EXPECT_STATUS(weft_encoder_batch(w->encoder[at].encoder, &b.batch, queue), expected);
  } else {
    weft_encoder *const encoders[] = {w->encoder[beside].encoder, w->encoder[at].encoder};
    const weft_batch batches[] = {good.batch, b.batch};
    EXPECT_STATUS(weft_encoder_batches(encoders, batches, 2, queue), expected);
  }
  EXPECT(world_batch_untouched(&b) && world_batch_untouched(&good));
  world_batch_free(&b);
  world_batch_free(&good);
}

static void encoder_calls(world *w) {
  const world_encoder *e = &w->encoder[fixture_below(ENCODERS)];
  const size_t n = e->of->id.blocks;
  uint8_t vectors[2 * MODEL_BLOCKS] = {0}, byte = 0;
  size_t written = 5;
  world_batch b;
  world_batch_new(&b, &e->of->id, 2);
  const weft_encoder_options *options = &e->options;
  weft_batch silent = b.batch; // nothing would tell what the payloads contain
  silent.packets = NULL;
  silent.coefficients = NULL;
  if (!options->seeded || options->density_q16 != 0 || e->next_block < n)
    EXPECT_STATUS(weft_encoder_batch(e->encoder, &silent, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_batch(NULL, &b.batch, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_batch(e->encoder, NULL, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_batches(NULL, &b.batch, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_batches(&e->encoder, NULL, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_combine(e->encoder, 2, NULL, n, &b.batch, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_combine(e->encoder, 2, vectors, n - 1, &b.batch, NULL),
                WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_combine(e->encoder, 2, vectors, SIZE_MAX - n, &b.batch, NULL),
                WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_combine(e->encoder, 1, vectors, n, &b.batch, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_combine(e->encoder, 2, vectors, n, NULL, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_combine(e->encoder, 2, vectors, n, &b.batch, w->foreign),
                WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_next(e->encoder, &byte, fixture_below(26), &written), WEFT_E_BUFFER);
  EXPECT_STATUS(weft_encoder_next(e->encoder, NULL, 1000, &written), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_encoder_next(e->encoder, &byte, 1000, NULL), WEFT_E_ARGUMENT);
  EXPECT(byte == 0 && written == 5 && world_batch_untouched(&b));
  world_batch_free(&b);
}

static void recoding(world *w) {
  const world_decoder *d = &w->decoder[fixture_below(DECODERS)];
  const world_recoder *r = &w->recoder[fixture_below(RECODERS)];
  const weft_segment_id *id = fixture_below(2) ? &d->of->id : &r->of->id;
  const bool by_decoder = id == &d->of->id;
  world_batch b;
  world_batch_new(&b, id, 2 + fixture_below(BATCH - 1));
  weft_status expected = WEFT_E_ARGUMENT;
  if (fixture_below(6) == 0)
    b.batch.coefficients = NULL;
  else
    expected = spoil(w, &b, id, NULL);
  if (!by_decoder)
    EXPECT_STATUS(weft_recoder_batch(r->recoder, &b.batch), expected);
  else if (fixture_below(2))
    EXPECT_STATUS(weft_decoder_recode_batch(d->decoder, &b.batch), expected);
  else
    EXPECT_STATUS(weft_decoders_recode(&d->decoder, &b.batch, 1, w->queue), expected);
  EXPECT(world_batch_untouched(&b));
  world_batch_free(&b);
  world_batch_new(&b, &d->of->id, 1);
  EXPECT_STATUS(weft_decoders_recode(&d->decoder, &b.batch, 1, w->foreign), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoders_recode(NULL, &b.batch, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT(world_batch_untouched(&b));
  world_batch_free(&b);
  uint8_t byte = 0;
  size_t written = 5;
  const size_t room = weft_packet_bytes(&d->of->id, WEFT_PACKET_VECTOR);
  EXPECT_STATUS(weft_decoder_recode(d->decoder, &byte, fixture_below(room), &written),
                WEFT_E_BUFFER);
  EXPECT_STATUS(weft_decoder_recode(d->decoder, NULL, room, &written), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_next(r->recoder, &byte, fixture_below(25), &written), WEFT_E_BUFFER);
  EXPECT_STATUS(weft_decoder_recode(d->decoder, &byte, room, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_recode(NULL, &byte, room, &written), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_next(r->recoder, &byte, room, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_next(r->recoder, NULL, room, &written), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_next(NULL, &byte, room, &written), WEFT_E_ARGUMENT);
  EXPECT(byte == 0 && written == 5);
}

// --- decoders ---

// Turns a valid packet into one that no handle accepts; returns the status that its datagram gives.
static weft_status damage(world_packet *p) {
  switch (fixture_below(6)) {
  case 0:
    p->packet.mode = WEFT_PACKET_VECTOR;
    p->packet.coefficients = NULL;
    return WEFT_E_ARGUMENT;
  case 1:
    p->packet.mode = WEFT_PACKET_SYSTEMATIC;
    p->packet.index = p->packet.id.blocks + (uint32_t)fixture_below(3);
    return WEFT_E_MALFORMED;
  case 2:
    p->packet.mode = WEFT_PACKET_SPARSE;
    p->packet.density_q16 = 0;
    return WEFT_E_MALFORMED;
  case 3:
    p->packet.mode = (weft_packet_mode)(4 + fixture_below(200));
    return WEFT_E_MALFORMED;
  case 4:
    p->packet.payload = NULL;
    return WEFT_E_ARGUMENT;
  default:
    p->packet.id.block_bytes ^= 1u << fixture_below(32);
    return WEFT_E_FOREIGN;
  }
}

static void packets(world *w) {
  const world_decoder *d = &w->decoder[fixture_below(DECODERS)];
  const world_recoder *r = &w->recoder[fixture_below(RECODERS)];
  world_packet p;
  uint8_t coefficients[MODEL_BLOCKS + 1], datagram[8] = {0};
  size_t written = 5;
  world_packet_new(&p, r->of);
  const bool same = memcmp(&r->of->id, &d->of->id, sizeof d->of->id) == 0;
  EXPECT_STATUS(weft_recoder_add(NULL, &p.packet), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_add(r->recoder, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_add(NULL, &p.packet), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_add(d->decoder, NULL), WEFT_E_ARGUMENT);
  const weft_status expected = damage(&p);
  EXPECT_STATUS(weft_recoder_add(r->recoder, &p.packet), expected);
  EXPECT_STATUS(weft_decoder_add(d->decoder, &p.packet),
                same || !p.packet.payload ? expected : WEFT_E_FOREIGN);
  if (p.packet.payload) {
    weft_arrival arrival = {d->decoder, p.packet, WEFT_OK};
    EXPECT_OK(weft_decoders_add(&arrival, 1, WEFT_MEM_HOST, NULL));
    EXPECT_STATUS(arrival.status, same ? expected : WEFT_E_FOREIGN);
  }
  if (expected != WEFT_E_FOREIGN && p.packet.payload) {
    EXPECT_STATUS(weft_packet_write(&p.packet, datagram, 1u << 24, &written), WEFT_E_ARGUMENT);
    EXPECT_STATUS(weft_packet_coefficients(&p.packet, coefficients), WEFT_E_ARGUMENT);
  }
  EXPECT(written == 5);
  free(p.payload);
}

// Decoders of two contexts, or none among others: no call takes them together.
static void apart(world *w) {
  const world_decoder *d = &w->decoder[fixture_below(DECODERS)];
  const bool none = fixture_below(3) == 0;
  weft_decoder *other = none ? NULL : fixture_decoder(w->other, &d->of->id);
  weft_decoder *const two[2] = {d->decoder, other};
  const weft_batch nothing[2] = {{.count = 0}, {.count = 0}};
  EXPECT_STATUS(weft_decoders_recode(two, nothing, 2, NULL), WEFT_E_ARGUMENT);
  world_packet p;
  world_packet_new(&p, d->of);
  weft_arrival arrival[2] = {{d->decoder, p.packet, WEFT_OK}, {other, p.packet, WEFT_OK}};
  EXPECT_STATUS(weft_decoders_add(arrival, 2, WEFT_MEM_HOST, NULL), WEFT_E_ARGUMENT);
  free(p.payload);
  uint8_t out = 1;
  weft_reading reading[2] = {{.decoder = d->decoder, .out = &out}, {.decoder = other, .out = &out}};
  EXPECT_STATUS(weft_decoders_read(reading, 2, NULL), WEFT_E_ARGUMENT);
  EXPECT(out == 1);
  weft_decoder_free(other);
}

static void arrivals(world *w) {
  const world_decoder *d = &w->decoder[fixture_below(DECODERS)];
  world_packet p;
  world_packet_new(&p, d->of);
  weft_arrival two[2] = {{d->decoder, p.packet, WEFT_OK}, {d->decoder, p.packet, WEFT_OK}};
  weft_mem mem = WEFT_MEM_HOST;
  weft_queue *queue = w->queue;
  weft_status expected = WEFT_E_ARGUMENT;
  size_t count = 2;
  switch (fixture_below(6)) {
  case 0:
    two[1].decoder = NULL;
    break;
  case 1:
    two[1].packet.payload = NULL;
    break;
  case 2:
    mem = no_memory();
    break;
  case 3:
    mem = WEFT_MEM_DEVICE;
    expected = WEFT_E_UNSUPPORTED;
    break;
  case 4:
    queue = w->foreign;
    break;
  default:
    count = UINT32_MAX; // refused before any of them is read
    two[0].decoder = NULL;
  }
  EXPECT_STATUS(weft_decoders_add(two, count, mem, queue), expected);
  EXPECT_STATUS(weft_decoders_add(NULL, 1, WEFT_MEM_HOST, NULL), WEFT_E_ARGUMENT);
  free(p.payload);
}

static void datagrams(world *w) {
  const world_decoder *d = &w->decoder[fixture_below(DECODERS)];
  const world_recoder *r = &w->recoder[fixture_below(RECODERS)];
  world_packet p;
  world_packet_new(&p, d->of);
  const size_t whole = weft_packet_bytes(&p.packet.id, p.packet.mode);
  uint8_t *datagram = fixture_malloc(whole + 1);
  size_t bytes;
  EXPECT_OK(weft_packet_write(&p.packet, datagram, whole, &bytes));
  datagram[whole] = 0;
  weft_status expected = WEFT_E_MALFORMED;
  if (fixture_below(3)) {
    bytes = fixture_below(2) ? whole + 1 : fixture_below(whole);
  } else {
    datagram[0]++;
    expected = WEFT_E_VERSION;
  }
  uint8_t *exact = fixture_malloc(bytes); // so that sanitizers catch a read past the end
  memcpy(exact, datagram, bytes);
  EXPECT_STATUS(weft_decoder_add_datagram(d->decoder, exact, bytes), expected);
  EXPECT_STATUS(weft_recoder_add_datagram(r->recoder, exact, bytes), expected);
  EXPECT_STATUS(weft_decoder_add_datagram(d->decoder, NULL, bytes), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_add_datagram(NULL, exact, bytes), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_add_datagram(r->recoder, NULL, bytes), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_recoder_add_datagram(NULL, exact, bytes), WEFT_E_ARGUMENT);
  free(exact);
  free(datagram);
  free(p.payload);
}

static void reading(world *w) {
  const world_decoder *d = &w->decoder[fixture_below(DECODERS)];
  const size_t n = d->of->id.blocks, k = d->of->id.block_bytes, total = n * k;
  const uint8_t *block = NULL;
  uint8_t out[2] = {1, 1};
  EXPECT_STATUS(weft_decoder_block(d->decoder, world_out_of_range(n), &block), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_block(d->decoder, 0, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_block(NULL, 0, &block), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_read(NULL, 0, 0, out), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_read(d->decoder, world_out_of_range(total + 1), 0, out),
                WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_read(d->decoder, 1, world_out_of_range(total), out), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decoder_read(d->decoder, 0, 1, NULL), WEFT_E_ARGUMENT);
  weft_reading bad[2] = {{.decoder = d->decoder, .count = 1, .out = out},
                         {.decoder = d->decoder, .count = 1, .out = out}};
  weft_queue *queue = NULL;
  weft_status expected = WEFT_E_ARGUMENT;
  switch (fixture_below(8)) {
  case 0:
    bad[1].first = world_out_of_range(n);
    break;
  case 1:
    bad[1].count = world_out_of_range(n + 1);
    bad[1].out_stride = k;
    break;
  case 7:
    if (n == 1)
      return;
    bad[1].count = n;
    bad[1].out_stride = world_invalid_stride(n, k);
    break;
  case 2:
    bad[1].out = NULL;
    break;
  case 3:
    bad[1].decoder = NULL;
    break;
  case 4:
    bad[1].mem = no_memory();
    break;
  case 5:
    bad[1].mem = WEFT_MEM_DEVICE;
    expected = WEFT_E_UNSUPPORTED;
    break;
  default:
    queue = w->foreign;
  }
  EXPECT_STATUS(weft_decoders_read(bad, 2, queue), expected);
  EXPECT(bad[0].status == expected && bad[1].status == expected);
  EXPECT(out[0] == 1 && out[1] == 1 && !block);
}

static void decode_jobs(world *w) {
  const uint8_t bytes[4] = {1, 0, 0, 1};
  const uint8_t *const rows[2] = {bytes, NULL};
  uint8_t out[4] = {9, 9, 9, 9};
  weft_decode_job job = {.blocks = 2,
                         .block_bytes = 2,
                         .coefficients = bytes,
                         .coefficients_stride = 2,
                         .payload = bytes,
                         .payload_stride = 2,
                         .out = out,
                         .out_stride = 2};
  weft_status expected = WEFT_E_ARGUMENT;
  weft_queue *queue = w->queue;
  switch (fixture_below(10)) {
  case 0:
    job.blocks = fixture_below(2) ? 0 : world_out_of_range(WEFT_MAX_BLOCKS + 1);
    break;
  case 1:
    job.block_bytes = fixture_below(2) ? 0 : world_out_of_range(WEFT_MAX_BLOCK_BYTES + 1);
    break;
  case 2:
    job.coefficients = NULL;
    break;
  case 3:
    job.payload = NULL;
    break;
  case 4:
    job.out = NULL;
    break;
  case 5:
    *(fixture_below(2) ? &job.out_stride : &job.coefficients_stride) = world_invalid_stride(2, 2);
    break;
  case 6:
    job.payload_stride = world_invalid_stride(2, 2);
    break;
  case 7:
    *(fixture_below(2) ? &job.mem : &job.coefficients_mem) = WEFT_MEM_DEVICE;
    expected = WEFT_E_UNSUPPORTED;
    break;
  case 8:
    queue = w->foreign;
    break;
  default:
    job.payload_rows = rows;
  }
  const weft_decode_job good = {.blocks = 1,
                                .block_bytes = 1,
                                .coefficients = bytes,
                                .payload = bytes,
                                .out = out,
                                .status = WEFT_E_STATE};
  weft_decode_job jobs[2] = {good, job};
  EXPECT_STATUS(weft_decode_batch(w->ctx, jobs, 2, queue), expected);
  EXPECT(jobs[0].status == expected && jobs[1].status == expected);
  EXPECT(out[0] == 9 && out[1] == 9);
  EXPECT_STATUS(weft_decode_batch(w->ctx, NULL, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT_STATUS(weft_decode_batch(NULL, jobs, 1, NULL), WEFT_E_ARGUMENT);
  EXPECT(jobs[0].status == WEFT_E_ARGUMENT);
}

void world_refused(world *w) {
  static void (*const calls[])(world *) = {
      segments, handles, memory,    encoder_batches, encoder_calls, recoding, packets,
      arrivals, apart,   datagrams, reading,         decode_jobs,   again};
  calls[fixture_below(sizeof calls / sizeof calls[0])](w);
}
