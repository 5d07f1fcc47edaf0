// SPDX-License-Identifier: Apache-2.0
// The counter behind injected faults, and the map from the runtime's errors to weft's.
#include "kernels/cuda/runtime.cuh"

#include <atomic>

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
  switch (error) {
  case cudaSuccess:
    return WEFT_OK;
  case cudaErrorNotReady:
    return WEFT_PENDING;
  case cudaErrorMemoryAllocation:
    return WEFT_E_DEVICE_NOMEM;
  // The context is gone with these: no later call on it can succeed.
  case cudaErrorIllegalAddress:
  case cudaErrorMisalignedAddress:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorIllegalInstruction:
  case cudaErrorHardwareStackError:
  case cudaErrorLaunchFailure:
  case cudaErrorLaunchTimeout:
  case cudaErrorAssert:
  case cudaErrorECCUncorrectable:
  case cudaErrorNvlinkUncorrectable:
  case cudaErrorContextIsDestroyed:
  case cudaErrorDevicesUnavailable:
  case cudaErrorCudartUnloading:
    return WEFT_E_DEVICE_LOST;
  default:
    return WEFT_E_DEVICE;
  }
}
