// SPDX-License-Identifier: Apache-2.0
// Runs plans and parity updates on a device context. Where the bytes are stored decides how they
// reach the device.
#ifndef WEFT_LIB_STORAGE_DEVICE_RUN_H
#define WEFT_LIB_STORAGE_DEVICE_RUN_H

#include "lib/storage/code.h"

// Runs a plan for stripes in any memory. For DEVICE stripes, and for PINNED ones with a queue, the
// work is only enqueued. Stripes in host memory pass through device memory in pieces, on several
// streams; if they are small, or the device fails before the call returns, the host row computes
// them instead.
weft_status weft_device_run_plan(weft_plan *plan, const weft_stripe *stripes, size_t count,
                                 bool in_order, weft_queue *queue);

// Adds to parity shards [first, first + count) of a stripe in DEVICE memory (without `accumulate`:
// sets them to) column `index` of the code times the XOR of `sources` shards of stripe->bytes
// bytes.
weft_status weft_device_add_columns(const weft_code *code, size_t first, size_t count, size_t index,
                                    const uint8_t *const *x, size_t sources,
                                    const weft_stripe *stripe, bool accumulate, weft_call *call);

// Reports which parity shards of a stripe in DEVICE memory do not match its data. Waits.
weft_status weft_device_verify(weft_code *code, const weft_stripe *stripe, bool *differs,
                               weft_queue *queue);

// Computes matrix(count, k) as weft_generator_solve does, but by inversion on the device; for codes
// over GF(2^8), on a row that implements `invert`. Waits. WEFT_E_SINGULAR, WEFT_E_NOMEM,
// WEFT_E_DEVICE*.
weft_status weft_device_solve(const weft_code *code, const uint8_t *inputs, const uint8_t *outputs,
                              size_t count, uint8_t *matrix);

#endif
