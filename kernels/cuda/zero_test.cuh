// SPDX-License-Identifier: Apache-2.0
// Products in the log domain where log(0) = 255 must be tested for (table-based-1 and -2): bytes
// for logs, one byte-wide exp in shared memory. PER_WORD: one test tells whether any of four bytes
// is zero; else every byte is tested.
#ifndef WEFT_KERNELS_CUDA_ZERO_TEST_CUH
#define WEFT_KERNELS_CUDA_ZERO_TEST_CUH

#include "kernels/cuda/log_domain.cuh"

struct weft_cuda_byte_log_layout {
  __device__ static uint32_t logs(uint32_t word) {
    uint32_t out = 0;
    for (int i = 0; i < 32; i += 8)
      out |= static_cast<uint32_t>(weft_cuda_global_tables.log[(word >> i) & 255]) << i;
    return out;
  }
  __device__ static void write(const weft_cuda_pack &pack, uint32_t j, uint32_t column,
                               uint2 bytes) {
    *reinterpret_cast<uint2 *>(pack.out + j * pack.out_stride + column) =
        make_uint2(logs(bytes.x), logs(bytes.y));
  }
};

template <bool PER_WORD>
struct weft_cuda_zero_test {
  enum { ROWS = 8, BYTES = 8, ACC = 8, CHUNK = 128, COEF_WORDS = 1, Zero = 255 };
  enum { TABLE_BYTES = 512, GROUP_BYTES = WEFT_CUDA_COLUMN_PAD };
  typedef weft_cuda_no_tables Tables;
  typedef uint2 Data;
  typedef weft_cuda_byte_log_layout Layout;
  uint32_t base;

  __device__ weft_cuda_zero_test(const uint8_t *shared, const Tables &)
      : base(weft_cuda_shared_at(shared)) {}
  __device__ static void fill(uint8_t *shared, const Tables &) {
    for (uint32_t i = threadIdx.x; i < TABLE_BYTES; i += blockDim.x)
      shared[i] = weft_cuda_global_tables.exp[i];
  }
  __device__ static uint32_t coefficient(const uint8_t *a, size_t at) { return a[at]; }
  __device__ static void expand(uint32_t *block, uint32_t r, uint32_t c, const uint8_t *) {
    block[r] = weft_cuda_global_tables.log[c];
  }
  __device__ static size_t offset(uint32_t column, uint32_t lane) { return column + 8 * lane; }
  __device__ static Data load(const uint8_t *x) { return *reinterpret_cast<const uint2 *>(x); }

  template <bool TEST>
  __device__ void four(uint32_t (&acc)[ROWS][ACC], int at, uint32_t logs,
                       const uint32_t *block) const {
    uint32_t log[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      log[i] = (logs >> (8 * i)) & 255;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const uint32_t c = block[r];
      if (c == Zero) // the same for the whole warp
        continue;
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (!TEST || log[i] != Zero)
          acc[r][at + i] ^= weft_cuda_shared_byte(base + log[i] + c);
    }
  }

  __device__ void word_of_four(uint32_t (&acc)[ROWS][ACC], int at, uint32_t logs,
                               const uint32_t *block) const {
    const uint32_t bytes = ~logs; // a zero byte here is a zero's log
    if (PER_WORD && ((bytes - 0x01010101u) & logs & 0x80808080u) == 0)
      four<false>(acc, at, logs, block);
    else
      four<true>(acc, at, logs, block);
  }

  __device__ void mac(uint32_t (&acc)[ROWS][ACC], const Data &first, const Data &second,
                      const uint32_t *block0, const uint32_t *block1) const {
    word_of_four(acc, 0, first.x, block0);
    word_of_four(acc, 4, first.y, block0);
    word_of_four(acc, 0, second.x, block1);
    word_of_four(acc, 4, second.y, block1);
  }

  __device__ static uint32_t word(const uint32_t (&acc)[ACC], uint32_t w) {
    return weft_cuda_word_of(acc + 4 * w);
  }
};

#endif
