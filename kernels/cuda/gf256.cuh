// SPDX-License-Identifier: Apache-2.0
// GF(2^8) with 0x11D for device code: the tables, made by the compiler, and small arithmetic.
// (kernels/gf256.h holds the host's tables; a kernel cannot link to those.)
#ifndef WEFT_KERNELS_CUDA_GF256_CUH
#define WEFT_KERNELS_CUDA_GF256_CUH

#include <stddef.h>
#include <stdint.h>

enum { WEFT_CUDA_LOG_ZERO = 510 }; // log of 0 where sums with it must land in zeros

struct weft_cuda_tables {
  // 2^i for i < 510 (so exp[255] = 1), zeros from 510 on: sums of two logs are 0..508, and
  // 510..1020 with a zero.
  uint8_t exp[1024];
  uint8_t log[256]; // log of 0 is 255, which no other byte has
};

constexpr weft_cuda_tables weft_cuda_make_tables() {
  weft_cuda_tables tables = {};
  unsigned power = 1;
  for (int i = 0; i < WEFT_CUDA_LOG_ZERO; i++) {
    tables.exp[i] = static_cast<uint8_t>(power);
    if (i < 255)
      tables.log[power] = static_cast<uint8_t>(i);
    power = (power << 1) ^ (power & 0x80 ? 0x11Du : 0);
  }
  tables.log[0] = 255;
  return tables;
}

#ifdef __CUDACC__
// The tables in global memory; one copy in every file that uses them.
static __device__ const weft_cuda_tables weft_cuda_global_tables = weft_cuda_make_tables();

// PRMT with its sign mode, which __byte_perm masks away.
__device__ __forceinline__ uint32_t weft_prmt(uint32_t low, uint32_t high, uint32_t selectors) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selectors));
  return bytes;
}

// Doubles each of four bytes: the top bits, spread to whole bytes, choose where 0x1D goes.
__device__ __forceinline__ uint32_t weft_gf256_double4(uint32_t x) {
  const uint32_t carry = weft_prmt(x, 0, 0xba98); // each byte's sign, eight times
  return ((x + x) & 0xfefefefeu) ^ (carry & 0x1d1d1d1du);
}

#endif
#endif
