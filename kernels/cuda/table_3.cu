// SPDX-License-Identifier: Apache-2.0
// cuda-table-3: one byte-wide exp in shared memory, zeros found without a test (log(0) = 510 makes
// the sum land in zeros). Limited by bank conflicts: 32 lanes look up 128 words at random.
#include "kernels/cuda/log_domain.cuh"

namespace {

struct OneByteCopy {
  enum { SCALE = 1, TABLE_BYTES = 1024 };
  typedef weft_cuda_no_tables Tables;
  uint32_t base;
  __device__ OneByteCopy(const uint8_t *shared, const Tables &)
      : base(weft_cuda_shared_at(shared)) {}
  __device__ static void fill(uint8_t *shared) {
    for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x)
      shared[i] = weft_cuda_global_tables.exp[i];
  }
  __device__ uint32_t lane() const { return base; }
  __device__ uint32_t at(uint32_t index) const { return weft_cuda_shared_byte(index); }
};

typedef weft_cuda_log_domain<OneByteCopy> Policy;

} // namespace

WEFT_CUDA_TABLE_ROW(table_3, Policy, false, weft_cuda_pack_launch<Policy::Layout>, WEFT_OK)
