// SPDX-License-Identifier: Apache-2.0
// Rows to pairs of tiles, once per resident segment: the preprocessing of the binary tensor
// product. Limited by device memory: every byte is read once and written once.
#include "kernels/cuda/tensor.cuh"
#include "kernels/cuda/tensor_read.cuh"

namespace {

// A warp takes 16 source blocks x 128 positions at a time, a lane the 4 positions
// 4 * (r + 8 * w) onwards, r = lane % 8.
__global__ void __launch_bounds__(32 * WEFT_TENSOR_PREPARE_WARPS)
    prepare_kernel(const __grid_constant__ weft_tensor_batch batch, uint32_t pairs) {
  const uint32_t lane = threadIdx.x & 31, r = lane & 7, w = lane >> 3;
  const uint64_t per_product = static_cast<uint64_t>(pairs) * 2 * batch.steps;
  const uint64_t tasks = per_product * batch.count;
  for (uint64_t task = blockIdx.x * WEFT_TENSOR_PREPARE_WARPS + (threadIdx.x >> 5); task < tasks;
       task += static_cast<uint64_t>(gridDim.x) * WEFT_TENSOR_PREPARE_WARPS) {
    const uint32_t product = static_cast<uint32_t>(task / per_product);
    const uint32_t rest = static_cast<uint32_t>(task - product * per_product);
    const uint32_t pair = rest / (2 * batch.steps), jg = rest - pair * (2 * batch.steps);
    const weft_tensor_job &job = batch.jobs ? batch.jobs[product] : batch.few[product];
    const uint32_t at = pair * WEFT_TENSOR_PAIR + 4 * lane;
    uint32_t in[16], out[4][4];
    weft_tensor_read(in, batch, job, 16 * jg, at);
    weft_tensor_transpose(in, out);
    uint8_t *to = job.y + static_cast<size_t>(pair) * WEFT_TENSOR_PAIR_BYTES(batch.steps) +
                  jg * 1024 + w * 256 + r * 16;
#pragma unroll
    for (uint32_t byte = 0; byte < 4; byte++) // byte = s + 2h
      *reinterpret_cast<uint4 *>(to + (byte & 1) * 128 +
                                 (byte >> 1) * 64 * WEFT_TENSOR_STEP * batch.steps) =
          make_uint4(out[byte][0], out[byte][1], out[byte][2], out[byte][3]);
  }
}

} // namespace

weft_status weft_tensor_prepare(const weft_exec *exec, const weft_tensor_batch &batch) {
  return weft_tensor_prepare_by(prepare_kernel, exec, batch);
}
