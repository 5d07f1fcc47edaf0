// SPDX-License-Identifier: Apache-2.0
// Multiplies the packets of shards by bit matrices, block by block so that the working set stays in
// the cache. A product is an XOR program or, where the row supports it, machine code generated from
// the matrix, or blocks of 8 x 8 bits.
#ifndef WEFT_LIB_STORAGE_PACKET_RUN_H
#define WEFT_LIB_STORAGE_PACKET_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "lib/storage/xor_program.h"

typedef struct weft_packet_product {
  size_t inputs, outputs;          // packets per group
  const weft_xor_code *code;       // or NULL:
  const weft_xor_program *program; // or NULL:
  const uint64_t *blocks;          // as in kernels/backend.h; only for kernels with `bits`
} weft_packet_product;

// One stripe. Packet c of group g of shard j starts at in[j] + (g * w + c) * packet_bytes and is
// input j * w + c of the product; outputs likewise. Outputs overlap neither inputs nor each other.
typedef struct weft_packet_job {
  const uint8_t *const *in; // inputs / w shards
  uint8_t *const *out;      // outputs / w shards
  size_t groups;            // in each shard
  bool far;                 // packets are in no near cache, however few the groups
} weft_packet_job;

// Whether a product by bit blocks is faster than the reduced program of the same matrix will be.
bool weft_packet_blocks_pay(const weft_host_kernel *kernel, const uint8_t *bits, size_t outputs,
                            size_t inputs, size_t packet_bytes);

// Whether inputs of this many bytes are assumed to be in no near cache; jobs without `far` are
// judged by this.
bool weft_packets_are_far(size_t input_bytes);

// Runs the product over every group of every job. Errors: WEFT_E_NOMEM; nothing is written then.
weft_status weft_packet_run(const weft_exec *exec, const weft_host_kernel *kernel,
                            const weft_packet_product *product, size_t w, size_t packet_bytes,
                            const weft_packet_job *jobs, size_t count);

#endif
