// SPDX-License-Identifier: Apache-2.0
// What both tensor kernels for storage products share: the product as it travels with a launch, and
// the steps between rows of bytes and fragments.
#ifndef WEFT_KERNELS_CUDA_STORAGE_TENSOR_CUH
#define WEFT_KERNELS_CUDA_STORAGE_TENSOR_CUH

#include "kernels/cuda/storage.h"
#include "kernels/cuda/tensor_pack.cuh"

enum {
  WEFT_STORAGE_QUARTER = 16,     // sources: 128 bits of the inner dimension
  WEFT_STORAGE_WARPS = 4,        // of a block
  WEFT_STORAGE_POSITIONS = 128,  // of a warp's tile
  WEFT_STORAGE_QUAD = 4,         // coded blocks whose bytes a thread packs together
  WEFT_STORAGE_PARAMETERS = 1024 // coefficients of a launch
};

struct weft_storage_args {
  const uint8_t *x[WEFT_STORAGE_SOURCES];
  uint8_t *y[WEFT_STORAGE_OUTPUTS];
  uint8_t a[WEFT_STORAGE_PARAMETERS]; // (m, k) dense
  uint64_t len, tiles;                // bytes; warps' tiles
  uint32_t m, k;
  weft_tensor_powers power;
  bool accumulate;
};

// Outputs that a launch of weft_storage_wgmma takes at most.
enum { WEFT_STORAGE_WGMMA_OUTPUTS = 16 };

// The same product by wgmma; WEFT_E_UNSUPPORTED for devices, lengths and matrices that it does not
// take, and then nothing has been enqueued.
weft_status weft_storage_wgmma(const weft_exec *exec, const weft_storage_args &args);
// Whether it takes products of this length, unless the matrix is too dense.
bool weft_storage_wgmma_suits(const weft_exec *exec, uint64_t len, bool accumulate);

// a * 2^shift + b on the floating-point pipe, which has twice the rate of integer products: small
// integers are denormal floats, whose sums are exact, bit for bit, below 2^24.
__device__ __forceinline__ uint32_t weft_storage_shift_add(int a, float power, int b) {
  return __float_as_uint(__fmaf_rn(__int_as_float(a), power, __int_as_float(b)));
}

#endif
