// SPDX-License-Identifier: Apache-2.0
// The driver behind dlopen: the few of its functions that are needed, declared here. The runtime
// has opened the same library before.
#include "kernels/cuda/current.cuh"

#include <dlfcn.h>
#include <mutex>

#include "kernels/cuda/runtime.cuh"

namespace {

struct Functions { // each gives a CUresult, whose numbers are those of cudaError_t
  int (*device)(int *device, int index);
  int (*current)(void **context);
  int (*make_current)(void *context);
  int (*device_of_current)(int *device);
  int (*primary_state)(int device, unsigned *flags, int *active);
  int (*retain_primary)(void **context, int device);
};

std::once_flag once;
Functions functions;
bool present;

template <class Function>
bool find(void *library, const char *name, Function *out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  return *out != nullptr;
}

void open_library() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  present = library && find(library, "cuDeviceGet", &functions.device) &&
            find(library, "cuCtxGetCurrent", &functions.current) &&
            find(library, "cuCtxSetCurrent", &functions.make_current) &&
            find(library, "cuCtxGetDevice", &functions.device_of_current) &&
            find(library, "cuDevicePrimaryCtxGetState", &functions.primary_state) &&
            find(library, "cuDevicePrimaryCtxRetain", &functions.retain_primary);
}

template <class Call>
weft_status ask(Call call) {
  return WEFT_CUDA(static_cast<cudaError_t>(call()));
}

// Whether the runtime would take the context for this thread, which has none, by itself. Where it
// does not say, the call at hand is no worse for it.
bool is_default(const weft_cuda_context *context) {
  int index = -1;
  return context->primary && cudaGetDevice(&index) == cudaSuccess && index == context->index;
}

} // namespace

weft_status weft_cuda_context_find(int index, weft_cuda_context *out) {
  *out = {index, nullptr, false};
  std::call_once(once, open_library);
  if (!present)
    return WEFT_E_DEVICE;
  int device = 0, at = -1, active = 0;
  unsigned flags = 0;
  void *current = nullptr, *primary = nullptr;
  WEFT_TRY(ask([&] { return functions.device(&device, index); }));
  WEFT_TRY(ask([&] { return functions.current(&current); }));
  WEFT_TRY(ask([&] { return functions.primary_state(device, &flags, &active); }));
  if (current)
    WEFT_TRY(ask([&] { return functions.device_of_current(&at); }));
  const bool here = current && at == device;
  if (active || !here)
    WEFT_TRY(ask([&] { return functions.retain_primary(&primary, device); }));
  out->handle = here ? current : primary;
  out->primary = out->handle == primary;
  return WEFT_OK;
}

weft_status weft_cuda_context_enter(const weft_cuda_context *context, void **before,
                                    bool *changed) {
  *before = nullptr;
  *changed = false;
  if (functions.current(before) == 0 && *before == context->handle)
    return WEFT_OK;
  // The runtime too would make it current and leave it there, where the next call finds it.
  const bool stays = !*before && is_default(context);
  WEFT_TRY(ask([&] { return functions.make_current(context->handle); }));
  *changed = !stays;
  return WEFT_OK;
}

void weft_cuda_context_put_back(void *before) { (void)functions.make_current(before); }
