// SPDX-License-Identifier: Apache-2.0
// The counter behind injected faults.
#include "kernels/cuda/runtime.cuh"

#include <atomic>

#include "kernels/cuda/errors.h"

static std::atomic<size_t> calls{0};
static std::atomic<size_t> fault_at{0};
static std::atomic<int> fault{0};
static std::atomic<bool> fault_lasts{false};

extern "C" void weft_cuda_inject(size_t skip, int error, int lasting) {
  fault = 0;
  calls = 0;
  fault_at = skip;
  fault_lasts = lasting != 0;
  fault = error;
}

extern "C" size_t weft_cuda_calls(void) { return calls; }

cudaError_t weft_cuda_injected() {
  const size_t call = calls.fetch_add(1, std::memory_order_relaxed);
  const int error = fault.load(std::memory_order_relaxed);
  if (error == 0)
    return cudaSuccess;
  const size_t at = fault_at;
  const bool hit = call == at || (fault_lasts && call > at);
  return hit ? static_cast<cudaError_t>(error) : cudaSuccess;
}

weft_status weft_cuda_status(cudaError_t error) {
  static_assert(static_cast<int>(cudaErrorMemoryAllocation) == WEFT_CUDA_OUT_OF_MEMORY &&
                    static_cast<int>(cudaErrorNotReady) == WEFT_CUDA_NOT_READY &&
                    static_cast<int>(cudaErrorIllegalAddress) == WEFT_CUDA_ILLEGAL_ADDRESS &&
                    static_cast<int>(cudaErrorLaunchFailure) == WEFT_CUDA_LAUNCH_FAILURE &&
                    static_cast<int>(cudaErrorMpsRpcFailure) == WEFT_CUDA_MPS_RPC_FAILURE,
                "errors.h has other numbers than CUDA");
  return weft_cuda_status_of(error);
}
