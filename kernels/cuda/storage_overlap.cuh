// SPDX-License-Identifier: Apache-2.0
// Launches of storage kernels, which begin while the one before them in the stream ends. A kernel
// waits for that one's last write before it reads (griddepcontrol.wait); or, where it touches
// nothing of the other's, only before it is over itself, so that memory never rests between them.
#ifndef WEFT_KERNELS_CUDA_STORAGE_OVERLAP_CUH
#define WEFT_KERNELS_CUDA_STORAGE_OVERLAP_CUH

#include "kernels/cuda/device.cuh"

// What decides when a kernel waits.
struct weft_storage_touch {
  weft_device_span reads, writes;
  size_t blocks, fit; // of the grid; of these that fit the device at most
};

// Whether the kernel, which is launched next, waits at its end.
bool weft_storage_overlaps(const weft_exec *exec, const weft_storage_touch &touch);

// `args` as for cudaLaunchKernelExC.
weft_status weft_storage_launch(const weft_exec *exec, const void *kernel, dim3 grid,
                                unsigned threads, size_t shared_bytes, void **args);

#endif
