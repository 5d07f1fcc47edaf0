// SPDX-License-Identifier: Apache-2.0
// Faults on demand: every call of the CUDA runtime goes through runtime.cuh, and a test can make
// the n-th of them fail, without a device that really breaks. No CUDA types.
#ifndef WEFT_KERNELS_CUDA_RUNTIME_H
#define WEFT_KERNELS_CUDA_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of the wrapped calls from now on, in all threads, the one after `skip` others fails with `error`
// (a cudaError_t value) instead of running; with `lasting`, so do all after it. 0: inject nothing.
void weft_cuda_inject(size_t skip, int error, int lasting);

// Wrapped calls since the last weft_cuda_inject, those that were made to fail included.
size_t weft_cuda_calls(void);

#ifdef __cplusplus
}
#endif
#endif
