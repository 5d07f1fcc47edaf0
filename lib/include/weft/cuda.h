// SPDX-License-Identifier: Apache-2.0
// For programs that use CUDA themselves. The only header that speaks of CUDA; it needs none of
// CUDA's.
//
// A weft_ctx works in the CUDA context of its device that is current in the thread that makes it,
// which then outlives it, else in the device's primary context, the runtime's. Any thread may use
// the weft_ctx, whatever it has current; that is the same after each call. Only a thread that has
// none may be left with the primary context of its current device, as by calls of the runtime.
// Devices that no weft_ctx names are not opened, except by weft_backend_describe (the first).
#ifndef WEFT_CUDA_H
#define WEFT_CUDA_H

#include "weft/context.h"

#ifdef __cplusplus
extern "C" {
#endif

// A queue on the caller's cudaStream_t, which belongs to the CUDA context that the weft_ctx works
// in and outlives the queue: weft's work and the caller's kernels are then ordered on it. Freeing
// the queue waits for the stream and leaves it. Errors: WEFT_E_ARGUMENT (the default stream, NULL,
// cannot be wrapped), WEFT_E_UNSUPPORTED (a host context), WEFT_E_NOMEM.
weft_status weft_queue_wrap_cuda_stream(weft_ctx *ctx, void *cuda_stream, weft_queue **out);

#ifdef __cplusplus
}
#endif
#endif
