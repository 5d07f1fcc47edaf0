// SPDX-License-Identifier: Apache-2.0
// Runs products of packets by bit matrices over shards, block by block so that what is worked on
// stays in the cache: as XOR programs; as machine code made of the matrix, or as blocks of 8 x 8
// bits, where the row has those.
#ifndef WEFT_LIB_STORAGE_PACKET_RUN_H
#define WEFT_LIB_STORAGE_PACKET_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "lib/storage/xor_program.h"

typedef struct weft_packet_product {
  size_t inputs, outputs;          // packets of a group
  const weft_xor_code *code;       // or NULL:
  const weft_xor_program *program; // or NULL:
  const uint64_t *blocks;          // of kernels/backend.h; only for kernels with `bits`
} weft_packet_product;

// One stripe. Packet c of group g of shard j starts at in[j] + (g * w + c) * packet_bytes and is
// input j * w + c of the product; outputs likewise. Outputs overlap neither inputs nor each other.
typedef struct weft_packet_job {
  const uint8_t *const *in; // inputs / w shards
  uint8_t *const *out;      // outputs / w shards
  size_t groups;            // in each shard
  bool far;                 // packets are in no near cache, however few groups these are
} weft_packet_job;

// Whether a product by blocks is quicker than a program of the same matrix will be, once reduced.
bool weft_packet_blocks_pay(const weft_host_kernel *kernel, const uint8_t *bits, size_t outputs,
                            size_t inputs, size_t packet_bytes);

// Whether inputs of so many bytes are in no near cache, as those of a job are without being told.
bool weft_packets_are_far(size_t input_bytes);

// Runs the product over every group of every job. Errors: WEFT_E_NOMEM; nothing is written then.
weft_status weft_packet_run(const weft_exec *exec, const weft_host_kernel *kernel,
                            const weft_packet_product *product, size_t w, size_t packet_bytes,
                            const weft_packet_job *jobs, size_t count);

#endif
