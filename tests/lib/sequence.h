// SPDX-License-Identifier: Apache-2.0
// A world: handles on one context, each paired with a model of what it should contain
// (sequence_model.h). Random calls are made on it: allowed ones (sequence_test.c,
// sequence_decode.c, sequence_again.c) and forbidden ones (sequence_refused.c).
#ifndef WEFT_TESTS_LIB_SEQUENCE_H
#define WEFT_TESTS_LIB_SEQUENCE_H

#include "tests/lib/fixture.h"
#include "tests/lib/sequence_model.h"

enum {
  SHAPES = 2,
  SOURCES = 4,
  ENCODERS = 4,
  DECODERS = 5,
  RECODERS = 3,
  BATCH = 6,
  WORLD_ASIDE = 0xE7
};

typedef struct world_source {
  weft_segment_id id;
  uint8_t *data; // (n, k), zeros after the true length
  uint8_t *lent; // the data of a borrowing segment
  weft_segment *segment;
} world_source;

typedef struct world_encoder {
  weft_encoder *encoder;
  const world_source *of;
  weft_encoder_options options;
  size_t next_block;
  uint64_t next_seed;
} world_encoder;

typedef struct world_decoder {
  weft_decoder *decoder;
  const world_source *of;
  model_span span;
  uint8_t *blocks; // the caller's own, or NULL
  size_t stride;
  const uint8_t *seen[MODEL_BLOCKS];        // where blocks were when first read
  uint8_t took[MODEL_BLOCKS][MODEL_BLOCKS]; // vectors of innovative packets, in order
} world_decoder;

typedef struct world_recoder {
  weft_recoder *recoder;
  const world_source *of;
  model_span span;
  size_t capacity, held;
  size_t count;                             // of packets added
  uint8_t took[MODEL_BLOCKS][MODEL_BLOCKS]; // the first of them
} world_recoder;

typedef struct world {
  weft_ctx *ctx, *other;
  weft_queue *queue, *foreign; // foreign: belongs to the other context
  world_source source[SOURCES];
  world_encoder encoder[ENCODERS];
  world_decoder decoder[DECODERS];
  world_recoder recoder[RECODERS];
} world;

// One packet and the bytes it points to.
typedef struct world_packet {
  weft_packet packet;
  uint8_t coefficients[MODEL_BLOCKS], vector[MODEL_BLOCKS];
  uint8_t *payload;
} world_packet;

void world_new(world *w, const char *row, size_t threads);
void world_free(world *w);

// Makes a random valid packet of a source; the caller frees its payload.
void world_packet_new(world_packet *p, const world_source *source);
// Makes a packet with these coefficients.
void world_packet_of(world_packet *p, const world_source *source, const uint8_t *vector);
// Returns how a handle must respond to a packet, and records the packet in the model.
weft_status world_decoder_takes(world_decoder *d, const world_packet *p);
weft_status world_recoder_takes(world_recoder *r, const world_packet *p);
// Checks the next packet of an encoder.
void world_check_next(world_encoder *e, const weft_packet *packet);
void world_check_decoder(world_decoder *d);
void world_check_recoder(const world_recoder *r);
weft_queue *world_some_queue(const world *w); // may be NULL
// Waits for the queue: results of calls with a queue exist only when it is idle.
void world_wait(const world *w);
world_decoder *world_some_decoder(world *w);
// Returns a random index that is not below `limit`.
size_t world_out_of_range(size_t limit);
// A stride of `rows` rows (at least two) that is too short for them, or too long for any object.
size_t world_invalid_stride(size_t rows, size_t row_bytes);

// A batch of up to BATCH packets in its own memory, with bytes around each row that must not
// change.
typedef struct world_batch {
  weft_batch batch;
  weft_packet packets[BATCH];
  uint8_t *rows[BATCH];
  uint8_t *payload, *coefficients, *before;
  size_t payload_bytes, coefficients_bytes;
} world_batch;

void world_batch_new(world_batch *b, const weft_segment_id *id, size_t count);
void world_batch_free(world_batch *b);
bool world_batch_untouched(const world_batch *b);
// Whether nothing has been written: all bytes are WORLD_ASIDE.
bool world_aside(const uint8_t *bytes, size_t count);

// Each makes one random call, checks the result, and updates the model.
void world_add_one(world *w);
void world_add_many(world *w);
void world_add_run(world *w);
void world_ask_block(world *w);
void world_read_range(world *w);
void world_read_many(world *w);
void world_decode_batch(world *w);
void world_reset(world *w);
void world_fix_random(world *w);

// Makes one random call that must be refused, and checks that it changed nothing.
void world_refused(world *w);

#endif
