// SPDX-License-Identifier: Apache-2.0
// Launches the product of tensor_wgmma.cuh, one kernel per number of steps.
#include "kernels/cuda/tensor.cuh"
#include "kernels/cuda/tensor_wgmma.cuh"

namespace {

template <int Steps>
weft_status launch(const weft_exec *exec, const weft_tensor_args &args) {
  const size_t shared = args.plan.slots * WEFT_TENSOR_CHUNK_BYTES(Steps) +
                        args.plan.stages * WEFT_TENSOR_PAIR_BYTES(Steps);
  WEFT_TRY(weft_device_allow_shared(exec, weft_wgmma_kernel<Steps>));
  const uint32_t sms = static_cast<uint32_t>(weft_device_get_shape(exec->device)->sms);
  const uint32_t blocks = args.plan.total < sms ? args.plan.total : sms;
  weft_wgmma_kernel<Steps><<<blocks, WEFT_WGMMA_THREADS, shared, weft_cuda_stream(exec)>>>(args);
  return WEFT_CUDA_LAUNCHED();
}

} // namespace

weft_status weft_tensor_wgmma(const weft_exec *exec, const weft_tensor_batch &batch) {
  const weft_device_shape *shape = weft_device_get_shape(exec->device);
  const uint32_t shared = static_cast<uint32_t>(shape->block_shared_bytes) -
                          static_cast<uint32_t>(sizeof(weft_wgmma_shared));
  weft_tensor_args args = {batch, {}};
  const weft_tensor_sizes sizes = {WEFT_TENSOR_CHUNK, WEFT_TENSOR_CHUNK_BYTES(batch.steps),
                                   WEFT_TENSOR_PAIR_BYTES(batch.steps), 1};
  WEFT_TRY(weft_tensor_cut(batch, sizes, static_cast<uint32_t>(shape->sms), shared, &args.plan));
  switch (batch.steps) {
  case 1:
    return launch<1>(exec, args);
  case 2:
    return launch<2>(exec, args);
  case 3:
    return launch<3>(exec, args);
  case 4:
    return launch<4>(exec, args);
  case 5:
    return launch<5>(exec, args);
  case 6:
    return launch<6>(exec, args);
  case 7:
    return launch<7>(exec, args);
  case 8:
    return launch<8>(exec, args);
  default:
    return WEFT_E_ARGUMENT;
  }
}
