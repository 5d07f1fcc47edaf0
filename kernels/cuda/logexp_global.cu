// SPDX-License-Identifier: Apache-2.0
// cuda-logexp-global: log/exp tables in global memory, served by the first cache.
#include "kernels/cuda/log_exp.cuh"

namespace {

struct Global {
  enum { TABLE_BYTES = 0 };
  typedef weft_cuda_no_tables Tables;
  __device__ Global(const uint8_t *, const Tables &) {}
  __device__ static void fill(uint8_t *) {}
  __device__ uint32_t log(uint32_t byte) const { return weft_cuda_global_tables.log[byte]; }
  __device__ uint32_t exp(uint32_t sum) const { return weft_cuda_global_tables.exp[sum]; }
};

typedef weft_cuda_log_exp<Global> Policy;

} // namespace

WEFT_CUDA_TABLE_ROW(logexp_global, Policy, true, weft_cuda_pack_raw, WEFT_OK)
