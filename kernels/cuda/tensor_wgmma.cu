// SPDX-License-Identifier: Apache-2.0
// Launches the product of tensor_wgmma.cuh, one kernel per number of steps, and its like.
#include "kernels/cuda/tensor.cuh"
#include "kernels/cuda/tensor_wgmma.cuh"

weft_status weft_wgmma_launch(const weft_exec *exec, const weft_tensor_batch &batch,
                              const weft_tensor_sizes &sizes, uint32_t aside_bytes,
                              void (*kernel)(weft_tensor_args)) {
  const weft_device_shape *shape = weft_device_get_shape(exec->device);
  const uint32_t sms = static_cast<uint32_t>(shape->sms);
  const uint32_t most = static_cast<uint32_t>(shape->block_shared_bytes) -
                        static_cast<uint32_t>(sizeof(weft_wgmma_shared)) - aside_bytes;
  weft_tensor_args args = {batch, {}};
  WEFT_TRY(weft_tensor_cut(batch, sizes, sms, most, &args.plan));
  const size_t shared =
      size_t{args.plan.slots} * sizes.chunk_bytes + size_t{args.plan.stages} * sizes.stage_bytes;
  WEFT_TRY(weft_device_allow_shared(exec, kernel));
  const uint32_t blocks = args.plan.total < sms ? args.plan.total : sms;
  kernel<<<blocks, WEFT_WGMMA_THREADS, shared, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

weft_status weft_tensor_wgmma(const weft_exec *exec, const weft_tensor_batch &batch) {
  static void (*const kernels[])(weft_tensor_args) = {
      weft_wgmma_kernel<1>, weft_wgmma_kernel<2>, weft_wgmma_kernel<3>, weft_wgmma_kernel<4>,
      weft_wgmma_kernel<5>, weft_wgmma_kernel<6>, weft_wgmma_kernel<7>, weft_wgmma_kernel<8>};
  static_assert(sizeof kernels / sizeof *kernels == WEFT_TENSOR_STEPS_MAX, "one for each");
  if (batch.steps < 1 || batch.steps > WEFT_TENSOR_STEPS_MAX)
    return WEFT_E_ARGUMENT;
  return weft_wgmma_launch(exec, batch,
                           {WEFT_TENSOR_CHUNK, WEFT_TENSOR_CHUNK_BYTES(batch.steps),
                            WEFT_TENSOR_PAIR_BYTES(batch.steps), 1},
                           0, kernels[batch.steps - 1]);
}
