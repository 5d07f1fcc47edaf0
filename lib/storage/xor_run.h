// SPDX-License-Identifier: Apache-2.0
// Runs XOR programs over shards of packets, block by block so that what a program works on stays in
// the cache, with the row's own kernel.
#ifndef WEFT_LIB_STORAGE_XOR_RUN_H
#define WEFT_LIB_STORAGE_XOR_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "lib/storage/xor_program.h"

// One stripe. Packet c of group g of shard j starts at in[j] + (g * w + c) * packet_bytes and is
// input j * w + c of the program; outputs likewise. Outputs overlap neither inputs nor each other.
typedef struct weft_xor_job {
  const uint8_t *const *in; // inputs / w shards
  uint8_t *const *out;      // outputs / w shards
  size_t groups;            // in each shard
} weft_xor_job;

// Runs the program over every group of every job. Errors: WEFT_E_NOMEM; nothing is written then.
weft_status weft_xor_run(const weft_exec *exec, const weft_host_kernel *kernel,
                         const weft_xor_program *program, size_t w, size_t packet_bytes,
                         const weft_xor_job *jobs, size_t count);

#endif
