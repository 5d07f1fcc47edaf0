// SPDX-License-Identifier: Apache-2.0
// Products of a call on whatever memory the caller has. Device rows read and write PINNED and
// DEVICE memory; what lies in ordinary memory is staged, and nothing here waits for the device.
#ifndef WEFT_LIB_STAGING_H
#define WEFT_LIB_STAGING_H

#include "lib/ctx.h"

// `bytes` bytes to DEVICE memory; ordinary memory is copied aside first, so that the caller's copy
// is not needed after return.
weft_status weft_call_upload(weft_call *call, void *to, const void *from, weft_mem from_mem,
                             size_t bytes);

// The row's gemm, with a, x and y in any memory. `gemms` is changed. Ordinary y is filled in when
// the queue is found idle. Pinned y is computed in device memory, piece by piece, and copied by the
// second stream of the queue while the next piece is computed.
weft_status weft_call_products(weft_call *call, weft_gemm *gemms, size_t count);

#endif
