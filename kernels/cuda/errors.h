// SPDX-License-Identifier: Apache-2.0
// The map from CUDA's errors to weft's. By number, as a driver may return what the toolkit that
// weft was compiled with does not name; the numbers of cudaError_t and CUresult never change. No
// CUDA types, so that tests and the device double use the same map.
#ifndef WEFT_KERNELS_CUDA_ERRORS_H
#define WEFT_KERNELS_CUDA_ERRORS_H

#include "weft/status.h"

enum {
  WEFT_CUDA_OUT_OF_MEMORY = 2,
  WEFT_CUDA_NOT_READY = 600,
  // No later call on the context can succeed: CUDA wants the process to start again, or the context
  // or the runtime is gone.
  WEFT_CUDA_UNLOADING = 4,
  WEFT_CUDA_DEVICES_UNAVAILABLE = 46,
  WEFT_CUDA_ECC_UNCORRECTABLE = 214,
  WEFT_CUDA_NVLINK_UNCORRECTABLE = 220,
  WEFT_CUDA_CONTAINED = 226, // since CUDA 13
  WEFT_CUDA_ILLEGAL_ADDRESS = 700,
  WEFT_CUDA_LAUNCH_TIMEOUT = 702,
  WEFT_CUDA_CONTEXT_IS_DESTROYED = 709,
  WEFT_CUDA_ASSERT = 710,
  WEFT_CUDA_HARDWARE_STACK = 714,
  WEFT_CUDA_ILLEGAL_INSTRUCTION = 715,
  WEFT_CUDA_MISALIGNED_ADDRESS = 716,
  WEFT_CUDA_INVALID_ADDRESS_SPACE = 717,
  WEFT_CUDA_INVALID_PC = 718,
  WEFT_CUDA_LAUNCH_FAILURE = 719,
  WEFT_CUDA_TENSOR_MEMORY_LEAK = 721, // since CUDA 13
  WEFT_CUDA_MPS_RPC_FAILURE = 806,    // the MPS server, which has the context, does not answer
  WEFT_CUDA_MPS_CLIENT_TERMINATED = 810,
  WEFT_CUDA_EXTERNAL_DEVICE = 911 // since CUDA 12
};

static inline weft_status weft_cuda_status_of(int error) {
  switch (error) {
  case 0:
    return WEFT_OK;
  case WEFT_CUDA_NOT_READY:
    return WEFT_PENDING;
  case WEFT_CUDA_OUT_OF_MEMORY:
    return WEFT_E_DEVICE_NOMEM;
  case WEFT_CUDA_UNLOADING:
  case WEFT_CUDA_DEVICES_UNAVAILABLE:
  case WEFT_CUDA_ECC_UNCORRECTABLE:
  case WEFT_CUDA_NVLINK_UNCORRECTABLE:
  case WEFT_CUDA_CONTAINED:
  case WEFT_CUDA_ILLEGAL_ADDRESS:
  case WEFT_CUDA_LAUNCH_TIMEOUT:
  case WEFT_CUDA_CONTEXT_IS_DESTROYED:
  case WEFT_CUDA_ASSERT:
  case WEFT_CUDA_HARDWARE_STACK:
  case WEFT_CUDA_ILLEGAL_INSTRUCTION:
  case WEFT_CUDA_MISALIGNED_ADDRESS:
  case WEFT_CUDA_INVALID_ADDRESS_SPACE:
  case WEFT_CUDA_INVALID_PC:
  case WEFT_CUDA_LAUNCH_FAILURE:
  case WEFT_CUDA_TENSOR_MEMORY_LEAK:
  case WEFT_CUDA_MPS_RPC_FAILURE:
  case WEFT_CUDA_MPS_CLIENT_TERMINATED:
  case WEFT_CUDA_EXTERNAL_DEVICE:
    return WEFT_E_DEVICE_LOST;
  default:
    return WEFT_E_DEVICE;
  }
}

#endif
