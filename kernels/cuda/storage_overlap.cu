// SPDX-License-Identifier: Apache-2.0
// When a storage kernel waits for the one before it, and its launch with leave to begin early.
#include "kernels/cuda/storage_overlap.cuh"

namespace {

// Beyond these a kernel that waits at its start is as quick or quicker, as measured on an H200:
// where code is long, blocks that begin together share what they fetch of it.
struct Limits {
  size_t sums, work; // work: sums times inputs
};
constexpr Limits limits[] = {
    {64, 2000},           // WEFT_STORAGE_BITS: 1 to 4 % slower beyond
    {64, SIZE_MAX},       // WEFT_STORAGE_FACTORS: up to 8 % quicker within, 0.5 % slower beyond
    {SIZE_MAX, SIZE_MAX}, // WEFT_STORAGE_WGMMA: 0.3 to 0.8 % quicker
};

} // namespace

bool weft_storage_overlaps(const weft_exec *exec, const weft_storage_touch &touch) {
  const Limits &most = limits[touch.kind];
  const bool may =
      weft_device_may_overlap(exec, touch.reads, touch.writes, touch.blocks > touch.fit);
  return may && touch.sums <= most.sums && touch.k * touch.sums <= most.work;
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
