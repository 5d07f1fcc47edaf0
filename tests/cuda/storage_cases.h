// SPDX-License-Identifier: Apache-2.0
// The suite of storage codes on a device, in parts by subject, and what they share: stripes
// compared with the same code on a host row.
#ifndef WEFT_TESTS_CUDA_STORAGE_CASES_H
#define WEFT_TESTS_CUDA_STORAGE_CASES_H

#include "tests/cuda/gpu.h"
#include "weft/storage.h"

// Each adds its tests to a case.
void storage_add_many_stripes(TCase *cases); // storage_stripes.c
void storage_add_groups(TCase *cases);
void storage_add_calls_follow(TCase *cases); // storage_concurrent.c
void storage_add_contexts(TCase *cases);
void storage_add_own_matrix(TCase *cases); // storage_own_matrix.c
void storage_add_inverse(TCase *cases);    // storage_faults.c
void storage_add_zero_copy(TCase *cases);
void storage_add_fails_over(TCase *cases);

// --- storage_pair.c ---

enum { STORAGE_SHAPES = 9 };
extern const weft_code_options storage_shapes[STORAGE_SHAPES]; // every code, small and odd ones

// Whether a checker makes the device a thousand times slower: fewer and smaller cases then.
bool storage_reduced(void);
void storage_same_bytes(const uint8_t *got, const uint8_t *wanted, size_t bytes);

// One stripe: the expected one (host), and the same in some memory of the device context.
typedef struct storage_pair {
  weft_code *code, *device_code;
  size_t k, m, bytes, whole; // whole: of a parity shard
  uint8_t *expect;           // (k + m, whole)
  gpu_buffer buffer;         // likewise
  uint8_t *shards[2][WEFT_MAX_SHARDS];
  weft_stripe host, stripe;
} storage_pair;

void storage_pair_new(storage_pair *p, weft_ctx *scalar, weft_ctx *ctx,
                      const weft_code_options *options, size_t bytes, weft_mem mem);
void storage_pair_compare(const storage_pair *p, const char *what);
void storage_pair_free(storage_pair *p);
// Spoils these shards on the device, recovers them there, and compares the result.
void storage_pair_lose(storage_pair *p, weft_ctx *ctx, const uint8_t *lost, size_t count,
                       weft_queue *queue);
// Encodes, loses up to m shards and recovers them, updates one, and verifies before and after
// damage.
void storage_pair_exercise(storage_pair *p, weft_ctx *ctx, weft_queue *queue);

#endif
