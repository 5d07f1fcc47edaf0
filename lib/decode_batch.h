// SPDX-License-Identifier: Apache-2.0
// Shared by batch decoding on the host and on a device.
#ifndef WEFT_LIB_DECODE_BATCH_H
#define WEFT_LIB_DECODE_BATCH_H

#include <string.h>

#include "lib/ctx.h"
#include "weft/rlnc.h"

// Copies the job's coefficients into a dense matrix.
static inline void weft_decode_matrix(const weft_decode_job *job, uint8_t *out) {
  for (size_t i = 0; i < job->blocks; i++)
    memcpy(out + i * job->blocks, job->coefficients + i * job->coefficients_stride, job->blocks);
}

// Describes the product inverse * payloads; the inverse is in memory `mem`.
static inline weft_gemm weft_decode_product(const weft_decode_job *job, const uint8_t *inverse,
                                            weft_mem mem) {
  return (weft_gemm){.m = job->blocks,
                     .k = job->blocks,
                     .len = job->block_bytes,
                     .a = inverse,
                     .a_stride = job->blocks,
                     .a_mem = mem,
                     .x = {.base = job->payload,
                           .stride = job->payload_stride,
                           .ptr = job->payload_rows,
                           .mem = job->mem},
                     .y = {.base = job->out, .stride = job->out_stride, .mem = job->mem}};
}

// Enqueues jobs, all of them WEFT_PENDING; each gets its final status once the queue has passed it.
weft_status weft_decode_on_device(weft_ctx *ctx, weft_decode_job *jobs, size_t count,
                                  weft_call *call);

#endif
