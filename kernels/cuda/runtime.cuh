// SPDX-License-Identifier: Apache-2.0
// The one way to the CUDA runtime: runs a call unless a test has made it fail, and says what went
// wrong as a weft_status.
#ifndef WEFT_KERNELS_CUDA_RUNTIME_CUH
#define WEFT_KERNELS_CUDA_RUNTIME_CUH

#include <cuda_runtime.h>

#include "kernels/cuda/runtime.h"
#include "weft/status.h"

// The error that a test wants the next call to have, or cudaSuccess.
cudaError_t weft_cuda_injected();

weft_status weft_cuda_status(cudaError_t error);

template <class Call>
weft_status weft_cuda_call(Call call) {
  const cudaError_t injected = weft_cuda_injected();
  const cudaError_t error = injected != cudaSuccess ? injected : call();
  if (error != cudaSuccess)
    cudaGetLastError(); // a later launch must not be blamed for it
  return weft_cuda_status(error);
}

#define WEFT_CUDA(expression) weft_cuda_call([&] { return (expression); })
#define WEFT_CUDA_TRY(expression) WEFT_TRY(WEFT_CUDA(expression))

// After kernel<<<...>>>(...): whether the launch was accepted.
#define WEFT_CUDA_LAUNCHED() WEFT_CUDA(cudaGetLastError())

#endif
