// SPDX-License-Identifier: Apache-2.0
// Plans and parity updates on a device context: where the bytes lie decides how they get there.
#ifndef WEFT_LIB_STORAGE_DEVICE_RUN_H
#define WEFT_LIB_STORAGE_DEVICE_RUN_H

#include "lib/storage/code.h"

// Runs a plan for stripes in any memory. DEVICE stripes, and PINNED ones with a queue, only
// enqueue. What is in host memory travels through device memory in pieces, on several streams; if
// the device fails before the call returns, or they are small, the host row computes them.
weft_status weft_device_run_plan(weft_plan *plan, const weft_stripe *stripes, size_t count,
                                 bool in_order, weft_queue *queue);

// Parity shards [first, first + count) of a stripe in DEVICE memory ^= (or =, without accumulate)
// column `index` of the code times the exclusive-or of `sources` shards of stripe->bytes bytes.
weft_status weft_device_add_columns(const weft_code *code, size_t first, size_t count, size_t index,
                                    const uint8_t *const *x, size_t sources,
                                    const weft_stripe *stripe, bool accumulate, weft_call *call);

// Which parity shards of a stripe in DEVICE memory do not match its data. Waits.
weft_status weft_device_verify(weft_code *code, const weft_stripe *stripe, bool *differs,
                               weft_queue *queue);

// matrix(count, k) as weft_generator_solve makes it, by inversion on the device, for codes over
// GF(2^8) on a row that inverts. Waits. WEFT_E_SINGULAR, WEFT_E_NOMEM, WEFT_E_DEVICE*.
weft_status weft_device_solve(const weft_code *code, const uint8_t *inputs, const uint8_t *outputs,
                              size_t count, uint8_t *matrix);

#endif
