// SPDX-License-Identifier: Apache-2.0
// cuda-table-0: log/exp tables in shared memory, copied there from global memory by every block.
#include "kernels/cuda/log_exp.cuh"

namespace {

__device__ void copy(uint8_t *shared) {
  for (uint32_t i = threadIdx.x; i < 512; i += blockDim.x)
    shared[i] = weft_cuda_global_tables.exp[i];
  for (uint32_t i = threadIdx.x; i < 256; i += blockDim.x)
    shared[512 + i] = weft_cuda_global_tables.log[i];
}

typedef weft_cuda_log_exp<weft_cuda_shared_place<copy>> Policy;

} // namespace

WEFT_CUDA_TABLE_ROW(table_0, Policy, true, weft_cuda_pack_raw, WEFT_OK)
