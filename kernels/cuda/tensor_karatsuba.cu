// SPDX-License-Identifier: Apache-2.0
// Prepares data for the product of tensor_karatsuba.cuh and launches it, one kernel per number of
// steps.
#include "kernels/cuda/tensor.cuh"
#include "kernels/cuda/tensor_karatsuba.cuh"
#include "kernels/cuda/tensor_read.cuh"

namespace {

// A warp takes 32 source blocks x 128 positions at a time, a lane the 4 positions
// 4 * (r + 8 * w) onwards, r = lane % 8.
__global__ void __launch_bounds__(32 * WEFT_TENSOR_PREPARE_WARPS)
    prepare_kernel(const __grid_constant__ weft_tensor_batch batch, uint32_t pairs) {
  const uint32_t lane = threadIdx.x & 31, r = lane & 7, w = lane >> 3;
  const uint32_t groups = 2 * batch.steps, plane = groups * 1024;
  const uint64_t per_product = static_cast<uint64_t>(pairs) * groups;
  const uint64_t tasks = per_product * batch.count;
  for (uint64_t task = blockIdx.x * WEFT_TENSOR_PREPARE_WARPS + (threadIdx.x >> 5); task < tasks;
       task += static_cast<uint64_t>(gridDim.x) * WEFT_TENSOR_PREPARE_WARPS) {
    const uint32_t product = static_cast<uint32_t>(task / per_product);
    const uint32_t rest = static_cast<uint32_t>(task - product * per_product);
    const uint32_t pair = rest / groups, jg = rest - pair * groups;
    const weft_tensor_job &job = batch.jobs ? batch.jobs[product] : batch.few[product];
    const uint32_t at = pair * WEFT_TENSOR_PAIR + 4 * lane;
    uint32_t low[16], high[16];
    {
      uint32_t a[16], b[16];
      weft_tensor_read(a, batch, job, 32 * jg, at);
      weft_tensor_read(b, batch, job, 32 * jg + 16, at);
#pragma unroll
      for (int i = 0; i < 16; i++) {
        low[i] = weft_tensor_select(0x0f0f0f0fu, a[i], b[i] << 4);
        high[i] = weft_tensor_select(0x0f0f0f0fu, a[i] >> 4, b[i]);
      }
    }
    uint32_t out_low[4][4], out_high[4][4];
    weft_tensor_transpose(low, out_low);
    weft_tensor_transpose(high, out_high);
    uint8_t *to = job.y + static_cast<size_t>(pair) * 2 * WEFT_KARATSUBA_TILE_BYTES(batch.steps) +
                  jg * 1024 + w * 256 + r * 16;
#pragma unroll
    for (uint32_t byte = 0; byte < 4; byte++) { // byte = s + 2h
      const uint32_t(&l)[4] = out_low[byte];
      const uint32_t(&h)[4] = out_high[byte];
      uint8_t *row = to + (byte & 1) * 128 + (byte >> 1) * WEFT_KARATSUBA_TILE_BYTES(batch.steps);
      *reinterpret_cast<uint4 *>(row) = make_uint4(h[0], h[1], h[2], h[3]);
      *reinterpret_cast<uint4 *>(row + plane) =
          make_uint4(h[0] ^ l[0], h[1] ^ l[1], h[2] ^ l[2], h[3] ^ l[3]);
      *reinterpret_cast<uint4 *>(row + 2 * plane) = make_uint4(l[0], l[1], l[2], l[3]);
    }
  }
}

} // namespace

weft_status weft_karatsuba_prepare(const weft_exec *exec, const weft_tensor_batch &batch) {
  return weft_tensor_prepare_by(prepare_kernel, exec, batch);
}

weft_status weft_karatsuba_wgmma(const weft_exec *exec, const weft_tensor_batch &batch) {
  static void (*const kernels[])(weft_tensor_args) = {
      weft_karatsuba_kernel<1>, weft_karatsuba_kernel<2>, weft_karatsuba_kernel<3>,
      weft_karatsuba_kernel<4>};
  static_assert(sizeof kernels / sizeof *kernels == WEFT_KARATSUBA_STEPS_MAX, "one for each");
  if (batch.steps < 1 || batch.steps > WEFT_KARATSUBA_STEPS_MAX)
    return WEFT_E_ARGUMENT;
  return weft_wgmma_launch(exec, batch,
                           {WEFT_KARATSUBA_CHUNK, WEFT_KARATSUBA_CHUNK_BYTES(batch.steps),
                            WEFT_KARATSUBA_TILE_BYTES(batch.steps), 2},
                           2 * 256 * sizeof(uint4), kernels[batch.steps - 1]);
}
