// SPDX-License-Identifier: Apache-2.0
// What the CUDA rows know of a device beyond device.h: its size, and memory that follows a stream.
// A stream of device.h is a cudaStream_t.
#ifndef WEFT_KERNELS_CUDA_DEVICE_CUH
#define WEFT_KERNELS_CUDA_DEVICE_CUH

extern "C" {
#include "kernels/device.h"
}
#include "kernels/cuda/runtime.cuh"

// The sizes that launches are cut to.
struct weft_device_shape {
  int sms;                // multiprocessors
  int block_shared_bytes; // most dynamic shared memory of one block, opted in
  int sm_shared_bytes;    // of one multiprocessor
  int cooperative_launch; // whether a grid may synchronise
};
const weft_device_shape *weft_device_get_shape(const weft_device *device);

// Lets blocks of a kernel have all the shared memory that there is. What is allowed holds for all
// threads of the process: a launch's own size would be taken back by another thread that launches
// the same kernel with less, between this call and the launch.
template <class... Args>
weft_status weft_device_allow_shared(const weft_exec *exec, void (*kernel)(Args...)) {
  cudaFuncAttributes now;
  WEFT_CUDA_TRY(cudaFuncGetAttributes(&now, kernel));
  const int most = weft_device_get_shape(exec->device)->block_shared_bytes -
                   static_cast<int>(now.sharedSizeBytes);
  if (now.maxDynamicSharedSizeBytes == most)
    return WEFT_OK;
  return WEFT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
}

// Addresses that a launch touches at most, [low, high).
struct weft_device_span {
  uintptr_t low = UINTPTR_MAX, high = 0; // nothing
  void add(uintptr_t at, size_t bytes) {
    low = at < low ? at : low;
    high = at + bytes > high ? at + bytes : high;
  }
};

// Kernels that let the next one in their stream begin while they end, and wait for the one before
// them only at their own end, where that is harmless. A kernel with these reads and writes is about
// to be launched on the stream: whether the one before it is such a kernel too, and neither writes
// what the other reads or writes. `lets_next`: it has more blocks than fit the device, so that the
// next one begins after the one before this is over. Never for streams that weft has not made, on
// which others may launch what it does not know.
bool weft_device_may_overlap(const weft_exec *exec, weft_device_span reads, weft_device_span writes,
                             bool lets_next);
// The next kernel on the stream waits for all before it.
void weft_device_overlap_ends(const weft_exec *exec);

// For every other kind of launch.
static inline cudaStream_t weft_cuda_stream(const weft_exec *exec) {
  weft_device_overlap_ends(exec);
  return static_cast<cudaStream_t>(exec->stream);
}

// Makes the device's context the calling thread's current one while it lives.
class weft_device_scope {
public:
  explicit weft_device_scope(const weft_device *device);
  ~weft_device_scope();
  weft_device_scope(const weft_device_scope &) = delete;
  weft_device_scope &operator=(const weft_device_scope &) = delete;
  weft_status status() const { return status_; }

private:
  void *before_; // the caller's CUcontext, to be put back if `changed_`
  bool changed_;
  weft_status status_;
};

// Scratch that is given back, in the stream's order, when the host leaves the scope.
class weft_scratch {
public:
  explicit weft_scratch(const weft_exec *exec) : exec_(exec), memory_(nullptr) {}
  ~weft_scratch() { weft_device_scratch_free(exec_, memory_); }
  weft_scratch(const weft_scratch &) = delete;
  weft_scratch &operator=(const weft_scratch &) = delete;
  weft_status alloc(size_t bytes) { return weft_device_scratch(exec_, bytes, &memory_); }
  template <class T>
  T *as() const {
    return static_cast<T *>(memory_);
  }

private:
  const weft_exec *exec_;
  void *memory_;
};

// What a device keeps for nvrtc.h: made with the device, freed before it.
struct weft_device_kernels;
weft_device_kernels *weft_device_kernels_new(const weft_allocator *allocator);
void weft_device_kernels_free(weft_device_kernels *kernels); // accepts NULL; the device is current
weft_device_kernels *weft_device_kernels_of(weft_device *device);

// weft_cuda_tables as a buffer texture of bytes. Made on first use; lives as long as the device.
weft_status weft_device_table_texture(weft_device *device, cudaTextureObject_t *out);

#endif
