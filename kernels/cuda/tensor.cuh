// SPDX-License-Identifier: Apache-2.0
// The binary tensor product on device pointers: what tensor_rows.cu calls. All of it only enqueues.
#ifndef WEFT_KERNELS_CUDA_TENSOR_CUH
#define WEFT_KERNELS_CUDA_TENSOR_CUH

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tensor_layout.h"

// Makes the tiles at job.y of the rows at job.x of every product.
weft_status weft_tensor_prepare(const weft_exec *exec, const weft_tensor_batch &batch);
weft_status weft_karatsuba_prepare(const weft_exec *exec, const weft_tensor_batch &batch);

// Y = or ^= A * X for every product, X in tiles.
weft_status weft_tensor_wgmma(const weft_exec *exec, const weft_tensor_batch &batch);
weft_status weft_tensor_mma(const weft_exec *exec, const weft_tensor_batch &batch);
weft_status weft_karatsuba_wgmma(const weft_exec *exec, const weft_tensor_batch &batch);

// A way to multiply, with the layout of its tiles.
struct weft_tensor_technique {
  uint32_t step, steps_max;         // source blocks per step; steps per panel
  uint32_t pair_bytes, chunk_bytes; // of a pair of tiles and of a chunk, per step
  weft_status (*prepare)(const weft_exec *exec, const weft_tensor_batch &batch);
  weft_status (*multiply)(const weft_exec *exec, const weft_tensor_batch &batch);
};

// Cuts a batch for blocks with `shared_bytes` of dynamic shared memory, or says that it is too
// long.
weft_status weft_tensor_cut(const weft_tensor_batch &batch, const weft_tensor_sizes &sizes,
                            uint32_t sms, uint32_t shared_bytes, weft_tensor_plan *plan);

#endif
