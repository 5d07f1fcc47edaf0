// SPDX-License-Identifier: Apache-2.0
// The loop-based product (paper, 4.2.1): Russian peasant on words of four bytes. Bit by bit, the
// data is added where the coefficient's bit is set, then doubled. Tuned: the doublings of a word
// serve the eight coded rows of a thread, and bits are kept as masks, so that adding is one LOP3.
#ifndef WEFT_KERNELS_CUDA_LOOP_CUH
#define WEFT_KERNELS_CUDA_LOOP_CUH

#include "kernels/cuda/log_domain.cuh"

struct weft_cuda_loop {
  enum { ROWS = 8, BYTES = 16, ACC = 4, CHUNK = 64, COEF_WORDS = 8 };
  enum { TABLE_BYTES = 0, GROUP_BYTES = WEFT_CUDA_COLUMN_PAD };
  typedef weft_cuda_no_tables Tables;
  typedef uint4 Data;

  __device__ weft_cuda_loop(const uint8_t *, const Tables &) {}
  __device__ static void fill(uint8_t *, const Tables &) {}
  __device__ static uint32_t coefficient(const uint8_t *a, size_t at) { return a[at]; }
  __device__ static void expand(uint32_t *block, uint32_t r, uint32_t c, const uint8_t *) {
#pragma unroll
    for (uint32_t bit = 0; bit < 8; bit++)
      block[bit * ROWS + r] = 0u - ((c >> bit) & 1u);
  }
  __device__ static size_t offset(uint32_t column, uint32_t lane) { return column + 16 * lane; }
  __device__ static Data load(const uint8_t *x) { return *reinterpret_cast<const uint4 *>(x); }

  __device__ static void one(uint32_t (&acc)[ROWS][ACC], const Data &data, const uint32_t *block) {
    uint32_t x[4] = {data.x, data.y, data.z, data.w};
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
      const uint4 *quads = reinterpret_cast<const uint4 *>(block + bit * ROWS);
      const uint4 low = quads[0], high = quads[1];
      const uint32_t mask[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int w = 0; w < 4; w++)
          acc[r][w] ^= x[w] & mask[r];
      if (bit < 7)
#pragma unroll
        for (int w = 0; w < 4; w++)
          x[w] = weft_gf256_double4(x[w]);
    }
  }
  __device__ static void mac(uint32_t (&acc)[ROWS][ACC], const Data &first, const Data &second,
                             const uint32_t *block0, const uint32_t *block1) {
    one(acc, first, block0);
    one(acc, second, block1);
  }
  __device__ static uint32_t word(const uint32_t (&acc)[ACC], uint32_t w) { return acc[w]; }
};

#endif
