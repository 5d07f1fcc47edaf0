// SPDX-License-Identifier: Apache-2.0
// When a storage kernel waits for the one before it, and its launch with leave to begin early.
#include "kernels/cuda/storage_overlap.cuh"

bool weft_storage_overlaps(const weft_exec *exec, const weft_storage_touch &touch) {
  return weft_device_may_overlap(exec, touch.reads, touch.writes, touch.blocks > touch.fit);
}

weft_status weft_storage_launch(const weft_exec *exec, const void *kernel, dim3 grid,
                                unsigned threads, size_t shared_bytes, void **args) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(exec->stream);
  config.attrs = &early;
  config.numAttrs = 1;
  const weft_status status = WEFT_CUDA(cudaLaunchKernelExC(&config, kernel, args));
  if (status != WEFT_OK)
    weft_device_overlap_ends(exec);
  return status;
}
