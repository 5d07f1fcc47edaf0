// SPDX-License-Identifier: Apache-2.0
// cuda-table-bytes16: 16 byte-wide private copies (paper, 5.1.3): four entries of a copy share a
// word, and the copy keeps to its own banks, so the address of entry i is (i / 4) * 64 + i % 4.
// No scaling of the logs gives that as one add: the address arithmetic is the price.
#include "kernels/cuda/log_domain.cuh"

namespace {

struct SixteenByteCopies {
  enum { COPIES = 16, SCALE = 1, TABLE_BYTES = 1024 * COPIES };
  typedef weft_cuda_no_tables Tables;
  uint32_t own;
  __device__ SixteenByteCopies(const uint8_t *shared, const Tables &)
      : own(weft_cuda_shared_at(shared) + 4 * (threadIdx.x % COPIES)) {}
  __device__ static void fill(uint8_t *shared) {
    for (uint32_t i = threadIdx.x; i < 1024 * COPIES; i += blockDim.x)
      shared[i] = weft_cuda_global_tables.exp[i / (4 * COPIES) * 4 + i % 4];
  }
  __device__ uint32_t lane() const { return 0; }
  __device__ uint32_t at(uint32_t index) const {
    const uint32_t quad = index & ~3u; // index + 15 * quad = quad * 16 + index % 4
    return weft_cuda_shared_byte(quad * (COPIES - 1) + index + own);
  }
};

typedef weft_cuda_log_domain<SixteenByteCopies> Policy;

} // namespace

WEFT_CUDA_TABLE_ROW(table_bytes16, Policy, false, weft_cuda_pack_launch<Policy::Layout>, WEFT_OK)
