// SPDX-License-Identifier: Apache-2.0
// cuda-table-0-init: as cuda-table-0, but every block makes the tables itself, by doubling.
#include "kernels/cuda/log_exp.cuh"

namespace {

__device__ void compute(uint8_t *shared) {
  for (uint32_t i = threadIdx.x; i < 255; i += blockDim.x) {
    uint32_t power = 1;
    for (uint32_t step = 0; step < i; step++)
      power = (power << 1) ^ (power & 0x80 ? 0x11Du : 0);
    shared[i] = shared[255 + i] = static_cast<uint8_t>(power);
    shared[512 + power] = static_cast<uint8_t>(i);
  }
}

typedef weft_cuda_log_exp<weft_cuda_shared_place<compute>> Policy;

} // namespace

WEFT_CUDA_TABLE_ROW(table_0_init, Policy, true, weft_cuda_pack_raw, WEFT_OK)
