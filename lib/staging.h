// SPDX-License-Identifier: Apache-2.0
// Runs a call's products on the caller's memory, whatever its kind. Device rows read and write
// PINNED and DEVICE memory directly; ordinary memory is staged through pinned chunks (chunks.h).
// Nothing here waits for the device unless that takes more chunks than a queue may have.
#ifndef WEFT_LIB_STAGING_H
#define WEFT_LIB_STAGING_H

#include "lib/ctx.h"

// Copies `bytes` bytes to DEVICE memory. Ordinary memory may be reused by the caller on return.
weft_status weft_call_upload(weft_call *call, void *to, const void *from, weft_mem from_mem,
                             size_t bytes);

// Runs the row's gemm with a and y in any memory, on a device with x in DEVICE memory; modifies
// `gemms`, none of which accumulates. A y in ordinary memory is filled in once the queue is found
// idle, or sooner. A pinned or large y is computed in device memory in pieces; the queue's second
// stream copies each piece out while the next one is computed.
weft_status weft_call_products(weft_call *call, weft_gemm *gemms, size_t count);

#endif
