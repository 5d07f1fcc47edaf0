// SPDX-License-Identifier: Apache-2.0
// The suite of the library on a device, in parts by subject, and the random calls that they share.
#ifndef WEFT_TESTS_CUDA_LIB_CASES_H
#define WEFT_TESTS_CUDA_LIB_CASES_H

#include "tests/cuda/gpu.h"

void lib_add_encode_tests(TCase *cases);
void lib_add_decode_tests(TCase *cases);
void lib_add_relay_tests(TCase *cases);
void lib_add_single_relay_tests(TCase *cases); // called by lib_add_relay_tests
void lib_add_queue_tests(TCase *cases);
void lib_add_staging_tests(TCase *cases);
void lib_add_failed_tests(TCase *cases);

#define PICK(...)                                                                                  \
  ((const size_t[]){                                                                               \
      __VA_ARGS__})[fixture_below(sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))]

// Whether a checker makes the device a thousand times slower: fewer and smaller cases then.
bool lib_reduced(void);
weft_mem lib_any_memory(void);

// --- lib_coding.c: one encoder's batch and all that belongs to it ---

typedef struct lib_coding {
  weft_ctx *ctx;
  weft_segment_id id;
  uint8_t *data; // (n, k)
  gpu_buffer source, payloads, coefficients;
  bool has_coefficients;
  weft_segment *segment;
  weft_encoder *encoder;
  weft_encoder_options options;
  weft_batch batch;
  uint8_t **rows;
} lib_coding;

// Makes a segment and an encoder, with everything about them random, and room for m packets.
void lib_coding_start(lib_coding *c, weft_ctx *ctx, weft_queue *queue, size_t n, size_t k,
                      size_t m);
// Checks what was coded, byte for byte, and frees everything.
void lib_coding_finish(lib_coding *c);

// Makes a random call of the encoder, or of the batch decoder.
void lib_encode_once(weft_ctx *ctx);
void lib_decode_once(weft_ctx *ctx, size_t most_jobs, size_t most_n);

#endif
