// SPDX-License-Identifier: Apache-2.0
// Reads rows and turns them, for the kernels that make tiles of them, and launches these.
#ifndef WEFT_KERNELS_CUDA_TENSOR_READ_CUH
#define WEFT_KERNELS_CUDA_TENSOR_READ_CUH

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tensor_layout.h"
#include "kernels/cuda/transpose.cuh"

enum { WEFT_TENSOR_PREPARE_WARPS = 8 }; // of a block of such a kernel

// Four bytes at `at` of a row; zero beyond its end.
__device__ __forceinline__ uint32_t weft_tensor_bytes_of(const weft_tensor_batch &batch,
                                                         const uint8_t *row, uint32_t at) {
  if (batch.x_words && at + 4 <= batch.len)
    return __ldg(reinterpret_cast<const uint32_t *>(row + at));
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4 && at + i < batch.len; i++)
    word |= static_cast<uint32_t>(row[at + i]) << (8 * i);
  return word;
}

// Four positions of 16 blocks to the 16-byte rows of those positions.
__device__ __forceinline__ void weft_tensor_transpose(const uint32_t (&in)[16],
                                                      uint32_t (&out)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t w[4] = {in[4 * i], in[4 * i + 1], in[4 * i + 2], in[4 * i + 3]};
    weft_transpose(w);
#pragma unroll
    for (int position = 0; position < 4; position++)
      out[position][i] = w[position];
  }
}

// Four bytes at `at` of blocks j0..j0+15; zero outside (n, len).
__device__ __forceinline__ void weft_tensor_read(uint32_t (&in)[16], const weft_tensor_batch &batch,
                                                 const weft_tensor_job &job, uint32_t j0,
                                                 uint32_t at) {
  if (batch.x_words && !batch.x_ptr && at + 4 <= batch.len && j0 + 16 <= batch.n) {
    const uint8_t *from = job.x + j0 * batch.x_stride + at;
#pragma unroll
    for (uint32_t i = 0; i < 16; i++)
      in[i] = __ldg(reinterpret_cast<const uint32_t *>(from + i * batch.x_stride));
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < 16; i++) {
    const uint32_t j = j0 + i;
    in[i] = j < batch.n ? weft_tensor_bytes_of(
                              batch, batch.x_ptr ? batch.x_ptr[j] : job.x + j * batch.x_stride, at)
                        : 0;
  }
}

// Launches `kernel`, whose warps take 2 * steps tasks for each pair of tiles one after the other.
template <typename Kernel>
weft_status weft_tensor_prepare_by(Kernel *kernel, const weft_exec *exec,
                                   const weft_tensor_batch &batch) {
  const uint32_t pairs = (batch.len + WEFT_TENSOR_PAIR - 1) / WEFT_TENSOR_PAIR;
  const uint64_t tasks = static_cast<uint64_t>(pairs) * 2 * batch.steps * batch.count;
  if (tasks == 0)
    return WEFT_OK;
  const uint64_t blocks = (tasks + WEFT_TENSOR_PREPARE_WARPS - 1) / WEFT_TENSOR_PREPARE_WARPS;
  const uint64_t most = 64ull * static_cast<uint64_t>(weft_device_get_shape(exec->device)->sms);
  kernel<<<static_cast<unsigned>(blocks < most ? blocks : most), 32 * WEFT_TENSOR_PREPARE_WARPS, 0,
           weft_cuda_stream(exec)>>>(batch, pairs);
  return WEFT_CUDA_LAUNCHED();
}

#endif
