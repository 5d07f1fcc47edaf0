// SPDX-License-Identifier: Apache-2.0
// The codec's operations as cases.
#include "bench/rlnc_cases.h"

#include <stdlib.h>
#include <string.h>

#include "bench/buffers.h"
#include "bench/check.h"

// Memory of the recoder, recorded so that it is of the same kind as the data it is compared with,
// and can be evicted.
typedef struct kept_memory {
  bool keeping; // while the recoder is made
  weft_bench_region region[4];
  size_t count;
} kept_memory;

struct weft_bench_codec {
  const weft_bench_shape *shape;
  const char *row;
  size_t threads;
  size_t segments; // each has its own payloads and output
  weft_ctx *ctx;
  kept_memory recoder_memory;
  weft_segment *segment;
  weft_encoder *encoder; // fresh coefficients
  weft_encoder *seeded;
  weft_recoder *recoder; // holds n packets
  weft_packet *packets;  // (n) the decodable set
  weft_packet *made;     // (m) filled in by a batch call
  uint8_t *made_mixing;  // (m, n) their coefficients
  weft_batch batch;      // destination of these
  uint8_t *out;          // (max(m, n), k), or (segments, n, k) for several segments
  weft_decode_job *jobs; // (segments)
  uint8_t *payloads;     // (segments, n, k)
};

static void *take(void *user, size_t bytes, size_t align) {
  kept_memory *const kept = user;
  if (!kept->keeping)
    return weft_bench_allocator.alloc(NULL, bytes, align);
  void *const memory = weft_bench_place(bytes);
  if (memory && kept->count < sizeof kept->region / sizeof *kept->region)
    kept->region[kept->count++] = (weft_bench_region){memory, bytes};
  return memory;
}

static void give(void *user, void *memory) {
  (void)user;
  free(memory);
}

static void make_coders(weft_bench_codec *codec) {
  const weft_bench_shape *const shape = codec->shape;
  const weft_segment_options options = {.id = weft_bench_segment_id(shape),
                                        .data = shape->data,
                                        .bytes = shape->n * shape->k,
                                        .mem = WEFT_MEM_HOST,
                                        .borrow = true};
  const weft_encoder_options seeded = {.seeded = true, .first_seed = 1};
  weft_bench_must("segment", weft_segment_new(codec->ctx, &options, NULL, &codec->segment));
  weft_bench_must("encoder", weft_encoder_new(codec->segment, NULL, &codec->encoder));
  weft_bench_must("encoder", weft_encoder_new(codec->segment, &seeded, &codec->seeded));
  codec->recoder_memory.keeping = true;
  weft_bench_must("recoder", weft_recoder_new(codec->ctx, &options.id, shape->n, &codec->recoder));
  codec->recoder_memory.keeping = false;
  weft_bench_shape_packets(shape, codec->packets);
  for (size_t i = 0; i < shape->n; i++)
    weft_bench_must("recoder", weft_recoder_add(codec->recoder, &codec->packets[i]));
}

// Every segment has its own payloads and output, as in a server.
static void make_jobs(weft_bench_codec *codec) {
  const weft_bench_shape *const shape = codec->shape;
  const size_t bytes = shape->n * shape->k;
  for (size_t s = 0; s < codec->segments; s++) {
    memcpy(codec->payloads + s * bytes, shape->payloads, bytes);
    codec->jobs[s] = (weft_decode_job){.blocks = shape->n,
                                       .block_bytes = shape->k,
                                       .coefficients = shape->square,
                                       .coefficients_stride = shape->n,
                                       .payload = codec->payloads + s * bytes,
                                       .payload_stride = shape->k,
                                       .out = codec->out + s * bytes,
                                       .out_stride = shape->k,
                                       .mem = WEFT_MEM_HOST};
  }
}

weft_bench_codec *weft_bench_codec_new(const weft_bench_shape *shape,
                                       const weft_bench_machine *machine, const char *row,
                                       size_t threads, weft_split split, size_t segments) {
  const size_t rows = shape->m > shape->n * segments ? shape->m : shape->n * segments;
  weft_bench_codec *const codec = weft_bench_alloc(1, sizeof *codec);
  *codec = (weft_bench_codec){
      .shape = shape,
      .row = row,
      .threads = threads,
      .segments = segments,
      .packets = weft_bench_alloc(shape->n, sizeof(weft_packet)),
      .made = weft_bench_alloc(shape->m, sizeof(weft_packet)),
      .made_mixing = weft_bench_alloc(shape->m, shape->n),
      .out = weft_bench_alloc(rows, shape->k),
      .jobs = weft_bench_alloc(segments, sizeof(weft_decode_job)),
      .payloads = weft_bench_alloc(segments * shape->n, shape->k),
  };
  const weft_allocator memory = {take, give, &codec->recoder_memory};
  const weft_ctx_options options = {
      .backend = row, .threads = threads, .split = split, .allocator = &memory};
  codec->batch = (weft_batch){.packets = codec->made,
                              .coefficients = codec->made_mixing,
                              .coefficients_stride = shape->n,
                              .payload = codec->out,
                              .payload_stride = shape->k,
                              .mem = WEFT_MEM_HOST};
  weft_bench_pin_workers(machine, threads);
  weft_bench_must(row, weft_ctx_new(&codec->ctx, &options));
  weft_bench_pin(machine, 0);
  make_coders(codec);
  make_jobs(codec);
  return codec;
}

void weft_bench_codec_free(weft_bench_codec *codec) {
  if (!codec)
    return;
  weft_recoder_free(codec->recoder);
  weft_encoder_free(codec->seeded);
  weft_encoder_free(codec->encoder);
  weft_segment_free(codec->segment);
  weft_ctx_free(codec->ctx);
  free(codec->packets), free(codec->made), free(codec->made_mixing), free(codec->out);
  free(codec->jobs), free(codec->payloads), free(codec);
}

// ---------------------------------------------------------------------------------------------
// Calls that are timed

// Prepared in advance, so that filling it in costs next to nothing in the timed call.
static weft_batch batch_of(const weft_bench_codec *codec, size_t count) {
  weft_batch batch = codec->batch;
  batch.count = count;
  return batch;
}

static void combine(const weft_bench_codec *codec, size_t count) {
  const weft_batch batch = batch_of(codec, count);
  weft_bench_must("encode", weft_encoder_combine(codec->encoder, count, codec->shape->mixing,
                                                 codec->shape->n, &batch, NULL));
}

static void call_encode(void *user) {
  const weft_bench_codec *const codec = user;
  combine(codec, codec->shape->m);
}

static void call_encode_one(void *user) { combine(user, 1); }

static void call_encode_fresh(void *user) {
  const weft_bench_codec *const codec = user;
  const weft_batch batch = batch_of(codec, codec->shape->m);
  weft_bench_must("encode", weft_encoder_batch(codec->encoder, &batch, NULL));
}

static void call_encode_seeded(void *user) {
  const weft_bench_codec *const codec = user;
  weft_batch batch = batch_of(codec, codec->shape->m);
  batch.coefficients = NULL;
  weft_bench_must("encode", weft_encoder_batch(codec->seeded, &batch, NULL));
}

static void recode(const weft_bench_codec *codec, size_t count) {
  const weft_batch batch = batch_of(codec, count);
  weft_bench_must("recode", weft_recoder_batch(codec->recoder, &batch));
}

static void call_recode(void *user) {
  const weft_bench_codec *const codec = user;
  recode(codec, codec->shape->m);
}

static void call_recode_one(void *user) { recode(user, 1); }

// From the first packet to the last decoded block, including the decoder's creation and
// destruction.
static void decode(const weft_bench_codec *codec, bool eager) {
  const weft_decoder_options options = {
      .id = weft_bench_segment_id(codec->shape), .blocks = codec->out, .eager = eager};
  weft_decoder *decoder = NULL;
  weft_bench_must("decode", weft_decoder_new(codec->ctx, &options, &decoder));
  for (size_t i = 0; i < codec->shape->n; i++)
    weft_bench_must("decode", weft_decoder_add(decoder, &codec->packets[i]));
  for (size_t i = 0; i < codec->shape->n; i++) {
    const uint8_t *block = NULL;
    weft_bench_must("decode", weft_decoder_block(decoder, i, &block));
  }
  weft_decoder_free(decoder);
}

static void call_decode_eager(void *user) { decode(user, true); }

static void call_decode_deferred(void *user) { decode(user, false); }

static void decode_jobs(const weft_bench_codec *codec, size_t count) {
  weft_bench_must("batch decode", weft_decode_batch(codec->ctx, codec->jobs, count, NULL));
  for (size_t s = 0; s < count; s++)
    weft_bench_must("batch decode", codec->jobs[s].status);
}

static void call_decode_batch(void *user) { decode_jobs(user, 1); }

static void call_decode_multi(void *user) {
  const weft_bench_codec *const codec = user;
  decode_jobs(codec, codec->segments);
}

static const struct {
  const char *name;
  void (*call)(void *user);
} operations[WEFT_BENCH_OPERATIONS] = {
    [WEFT_BENCH_ENCODE] = {"encode", call_encode},
    [WEFT_BENCH_ENCODE_FRESH] = {"encode-fresh", call_encode_fresh},
    [WEFT_BENCH_ENCODE_SEEDED] = {"encode-seeded", call_encode_seeded},
    [WEFT_BENCH_ENCODE_ONE] = {"encode-one", call_encode_one},
    [WEFT_BENCH_RECODE] = {"recode", call_recode},
    [WEFT_BENCH_RECODE_ONE] = {"recode-one", call_recode_one},
    [WEFT_BENCH_DECODE_EAGER] = {"decode-eager", call_decode_eager},
    [WEFT_BENCH_DECODE_DEFERRED] = {"decode-deferred", call_decode_deferred},
    [WEFT_BENCH_DECODE_BATCH] = {"decode-batch", call_decode_batch},
    [WEFT_BENCH_DECODE_MULTI] = {"decode-multi", call_decode_multi},
};

const char *weft_bench_operation_name(weft_bench_operation operation) {
  return operations[operation].name;
}

// ---------------------------------------------------------------------------------------------
// Checking and adding

static bool decodes(weft_bench_operation operation) { return operation >= WEFT_BENCH_DECODE_EAGER; }

// Returns the number of output blocks of one call.
static size_t blocks_of(const weft_bench_codec *codec, weft_bench_operation operation) {
  const weft_bench_shape *const shape = codec->shape;
  switch (operation) {
  case WEFT_BENCH_ENCODE_ONE:
  case WEFT_BENCH_RECODE_ONE:
    return 1;
  case WEFT_BENCH_DECODE_MULTI:
    return shape->n * codec->segments;
  default:
    return decodes(operation) ? shape->n : shape->m;
  }
}

// Returns the coefficients over the source blocks that belong to the call's output.
static void claimed(const weft_bench_codec *codec, weft_bench_operation operation, size_t blocks,
                    uint8_t *out) {
  const size_t n = codec->shape->n;
  if (operation == WEFT_BENCH_ENCODE || operation == WEFT_BENCH_ENCODE_ONE)
    memcpy(out, codec->shape->mixing, blocks * n);
  else
    for (size_t i = 0; i < blocks; i++)
      weft_bench_must("coefficients", weft_packet_coefficients(&codec->made[i], out + i * n));
}

static const char *check(const weft_bench_codec *codec, weft_bench_operation operation,
                         size_t blocks) {
  const weft_bench_shape *const shape = codec->shape;
  const size_t bytes = shape->n * shape->k;
  const char *what = WEFT_BENCH_CHECKED_NONE;
  if (decodes(operation)) {
    for (size_t s = 0; s < blocks / shape->n; s++)
      what = weft_bench_check_source(operations[operation].name, codec->out + s * bytes,
                                     shape->data, bytes);
    return what;
  }
  uint8_t *const mixing = weft_bench_alloc(blocks, shape->n);
  claimed(codec, operation, blocks, mixing);
  what = weft_bench_check_product(operations[operation].name, blocks, shape->n, shape->k, mixing,
                                  shape->n, shape->data, shape->k, codec->out, shape->k);
  free(mixing);
  return what;
}

// Lists what a call reads and writes; returns the number of regions.
static size_t regions_of(const weft_bench_codec *codec, weft_bench_operation operation,
                         size_t out_bytes, weft_bench_region *out) {
  const weft_bench_shape *const shape = codec->shape;
  const size_t segment = shape->n * shape->k, matrix = shape->n * shape->n;
  size_t count = 0;
  out[count++] = (weft_bench_region){codec->out, out_bytes};
  switch (operation) {
  case WEFT_BENCH_RECODE:
  case WEFT_BENCH_RECODE_ONE:
    for (size_t i = 0; i < codec->recoder_memory.count; i++)
      out[count++] = codec->recoder_memory.region[i];
    out[count++] = (weft_bench_region){codec->made_mixing, shape->m * shape->n};
    break;
  case WEFT_BENCH_DECODE_BATCH:
  case WEFT_BENCH_DECODE_MULTI:
    out[count++] = (weft_bench_region){codec->payloads, out_bytes};
    out[count++] = (weft_bench_region){shape->square, matrix};
    break;
  case WEFT_BENCH_DECODE_EAGER:
  case WEFT_BENCH_DECODE_DEFERRED:
    out[count++] = (weft_bench_region){shape->payloads, segment};
    out[count++] = (weft_bench_region){shape->square, matrix};
    break;
  default:
    out[count++] = (weft_bench_region){shape->data, segment};
    out[count++] = (weft_bench_region){shape->mixing, shape->m * shape->n};
    out[count++] = (weft_bench_region){codec->made_mixing, shape->m * shape->n};
  }
  return count;
}

int weft_bench_add_operation(weft_bench_group *group, weft_bench_codec *codec,
                             weft_bench_operation operation, const char *variant, int ceiling) {
  const weft_bench_shape *const shape = codec->shape;
  const size_t blocks = blocks_of(codec, operation), out_bytes = blocks * shape->k;
  const size_t segments = operation == WEFT_BENCH_DECODE_MULTI ? codec->segments : 1;
  const size_t in_bytes = segments * shape->n * shape->k;
  memset(codec->out, 0xa5, out_bytes);
  operations[operation].call(codec);
  weft_bench_candidate work = {.call = operations[operation].call, .user = codec};
  work.region_count = regions_of(codec, operation, out_bytes, work.regions);
  return weft_bench_group_add(
      group, &(weft_bench_case){
                 .operation = operations[operation].name,
                 .row = codec->row,
                 .variant = variant,
                 .n = shape->n,
                 .k = shape->k,
                 .m = blocks,
                 .threads = codec->threads,
                 // Counts products on payloads only: work on coefficients is overhead.
                 .amount = {[WEFT_BENCH_OUTPUT] = (double)out_bytes,
                            [WEFT_BENCH_PRODUCTS] = (double)out_bytes * (double)shape->n,
                            [WEFT_BENCH_INPUT] = (double)in_bytes},
                 .ceiling = ceiling,
                 .bound_by = WEFT_BENCH_PRODUCTS,
                 .work = work,
                 .checked = check(codec, operation, blocks),
             });
}
