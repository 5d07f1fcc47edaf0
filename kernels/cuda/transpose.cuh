// SPDX-License-Identifier: Apache-2.0
// Bytes of four words as a matrix of 4 x 4.
#ifndef WEFT_KERNELS_CUDA_TRANSPOSE_CUH
#define WEFT_KERNELS_CUDA_TRANSPOSE_CUH

#include <stdint.h>

// Byte j of word i becomes byte i of word j.
__device__ __forceinline__ void weft_transpose(uint32_t (&w)[4]) {
  const uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410);
  w[3] = __byte_perm(c, d, 0x7632);
}

#endif
