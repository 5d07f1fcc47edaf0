// SPDX-License-Identifier: Apache-2.0
// The calling thread's current context, by the driver: the runtime's cudaSetDevice would replace a
// context of the caller's own, and initialise devices that the program never used.
#ifndef WEFT_KERNELS_CUDA_CURRENT_CUH
#define WEFT_KERNELS_CUDA_CURRENT_CUH

#include "weft/status.h"

// Where a device's work is done.
struct weft_cuda_context {
  int index;    // of the device, as the runtime counts
  void *handle; // CUcontext; NULL: none
  bool primary; // the runtime's own
};

// The context of the device that is current in this thread, else the device's primary one, which is
// initialised if need be. Never given back: the runtime holds primary contexts for as long as the
// process lives. Expects that the runtime has found devices.
weft_status weft_cuda_context_find(int index, weft_cuda_context *out);

// Makes the context the thread's current one. *changed: `before` (NULL: none) is to be put back.
weft_status weft_cuda_context_enter(const weft_cuda_context *context, void **before, bool *changed);
void weft_cuda_context_put_back(void *before);

#endif
