// SPDX-License-Identifier: Apache-2.0
// Reports an error of the CUDA runtime and ends the program.
#ifndef WEFT_BENCH_CUDA_CHECK_CUH
#define WEFT_BENCH_CUDA_CHECK_CUH

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    const cudaError_t error = (call);                                                              \
    if (error != cudaSuccess) {                                                                    \
      printf("%s: %s\n", #call, cudaGetErrorString(error));                                        \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

#endif
