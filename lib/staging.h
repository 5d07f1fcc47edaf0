// SPDX-License-Identifier: Apache-2.0
// Runs a call's products on the caller's memory, whatever its kind. Device rows read and write
// PINNED and DEVICE memory directly; ordinary memory is staged through buffers. Nothing here waits
// for the device.
#ifndef WEFT_LIB_STAGING_H
#define WEFT_LIB_STAGING_H

#include "lib/ctx.h"

// Copies `bytes` bytes to DEVICE memory. Ordinary memory is first copied to a staging buffer, so
// the caller may reuse it on return.
weft_status weft_call_upload(weft_call *call, void *to, const void *from, weft_mem from_mem,
                             size_t bytes);

// Runs the row's gemm with a, x and y in any memory; modifies `gemms`. A y in ordinary memory is
// filled in once the queue is found idle. A pinned y is computed in device memory in pieces; the
// queue's second stream copies each piece out while the next one is computed.
weft_status weft_call_products(weft_call *call, weft_gemm *gemms, size_t count);

#endif
