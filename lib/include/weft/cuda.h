// SPDX-License-Identifier: Apache-2.0
// For programs that use CUDA themselves. This is the only header concerned with CUDA; it includes
// none of CUDA's headers.
//
// A weft_ctx works in the CUDA context of its device that is current in the thread that creates it;
// that CUDA context must outlive it. If the thread has none current, the weft_ctx uses the device's
// primary context, which is the runtime's. Any thread may use the weft_ctx, whatever CUDA context
// is current in it, and each call leaves the current context unchanged. The one exception: a thread
// with no current context may be left with the primary context of its current device, as calls of
// the runtime do. Devices that no weft_ctx uses are not opened, except that weft_backend_describe
// opens the first.
#ifndef WEFT_CUDA_H
#define WEFT_CUDA_H

#include "weft/context.h"

#ifdef __cplusplus
extern "C" {
#endif

// A queue on the caller's cudaStream_t. The stream must belong to the CUDA context that the
// weft_ctx works in, and must outlive the queue. weft's work and the caller's kernels are then
// ordered on the stream. Freeing the queue waits for the stream and does not destroy it. Errors:
// WEFT_E_ARGUMENT (the default stream, NULL, cannot be wrapped), WEFT_E_UNSUPPORTED (a host
// context), WEFT_E_NOMEM.
weft_status weft_queue_wrap_cuda_stream(weft_ctx *ctx, void *cuda_stream, weft_queue **out);

#ifdef __cplusplus
}
#endif
#endif
