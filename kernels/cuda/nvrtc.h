// SPDX-License-Identifier: Apache-2.0
// Kernels that are compiled at run time, by NVRTC where the machine has it: the library is opened
// when first needed, so nothing links to it. What was compiled is kept for each device by the key
// of its want; a store that the caller supplies keeps the code for longer (kernels do no file I/O
// themselves).
#ifndef WEFT_KERNELS_CUDA_NVRTC_H
#define WEFT_KERNELS_CUDA_NVRTC_H

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/device.h"

// Compiles CUDA source to machine code for `sm` ("90a" is used for 90). *code comes from the
// allocator. WEFT_E_UNSUPPORTED: there is no NVRTC; WEFT_E_DEVICE: it refused the source, and `log`
// (may be NULL) begins with what it said.
weft_status weft_nvrtc_compile(const weft_allocator *allocator, const char *source, int sm,
                               void **code, size_t *code_bytes, char *log, size_t log_bytes);
// "13.0", or "" without NVRTC. Static.
const char *weft_nvrtc_version(void);
// Tells builds of one version apart too: updates mend what a compiler gets wrong, and have its
// number. "13.0 build 1f0c9a5e77b3d842", or "" without NVRTC. Static; asked for first, it takes
// some tens of milliseconds.
const char *weft_nvrtc_build(void);

// A kernel that may be wanted: `key` says exactly which, `source` writes its text (from the
// allocator, zero-terminated) when it has to be compiled. `work` is what this use amounts to, in
// bytes; compiling waits until all uses together repay it (weft_device_compile_after).
typedef struct weft_kernel_want {
  const void *key;
  size_t key_bytes;
  weft_status (*source)(void *user, const weft_allocator *allocator, char **out);
  void *user;
  size_t work;
  bool now; // compile at once
  // Whether a kernel that has just been loaded does what it should; NULL: it is believed.
  weft_status (*passes)(void *user, void *kernel, bool *out);
} weft_kernel_want;

// The function `weft_kernel` of the source on the device, as a cudaKernel_t: at hand from before,
// from the store, or compiled. NULL with WEFT_OK: not yet worth it. It stays until it is given
// back. WEFT_E_UNSUPPORTED, which leaves the work to a general kernel: there is no NVRTC, or the
// source does not compile, or what came of it does not load or pass, or there is no room to try it
// now, or all that are kept are about to be launched.
weft_status weft_device_kernel(weft_device *device, const weft_kernel_want *want, void **kernel);
// Gives back what weft_device_kernel gave, once for each time, when all launches of it are
// enqueued: it goes no sooner than these are over. NULL: nothing.
void weft_device_kernel_done(weft_device *device, void *kernel);

// How many kernels did not pass on this device: what its compiler got wrong.
size_t weft_device_kernels_failed(weft_device *device);

#ifdef __cplusplus
}

// A kernel in a block that launches it: given back where the block ends.
struct weft_held_kernel {
  weft_device *device = nullptr;
  void *kernel = nullptr;
  weft_held_kernel() = default;
  explicit weft_held_kernel(weft_device *of) : device(of) {}
  weft_held_kernel(const weft_held_kernel &) = delete;
  weft_held_kernel &operator=(const weft_held_kernel &) = delete;
  ~weft_held_kernel() { weft_device_kernel_done(device, kernel); }
};
#endif
#endif
