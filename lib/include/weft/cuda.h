// SPDX-License-Identifier: Apache-2.0
// For programs that have CUDA streams of their own. The only header that speaks of CUDA; it needs
// none of CUDA's.
#ifndef WEFT_CUDA_H
#define WEFT_CUDA_H

#include "weft/context.h"

#ifdef __cplusplus
extern "C" {
#endif

// A queue on the caller's cudaStream_t, which belongs to the context's device and outlives the
// queue: weft's work and the caller's kernels are then ordered on it. Freeing the queue waits for
// the stream and leaves it. Errors: WEFT_E_ARGUMENT (the default stream, NULL, cannot be wrapped),
// WEFT_E_UNSUPPORTED (a host context), WEFT_E_NOMEM.
weft_status weft_queue_wrap_cuda_stream(weft_ctx *ctx, void *cuda_stream, weft_queue **out);

#ifdef __cplusplus
}
#endif
#endif
