// SPDX-License-Identifier: Apache-2.0
// NVRTC behind dlopen: the few of its functions that are needed, declared here.
#include "kernels/cuda/nvrtc.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <mutex>
#include <stdio.h>
#include <string.h>

#include "kernels/hash.h"

namespace {

typedef struct program_ *Program;

struct Functions {
  int (*version)(int *major, int *minor);
  int (*create)(Program *out, const char *source, const char *name, int headers,
                const char *const *header_sources, const char *const *header_names);
  int (*compile)(Program program, int count, const char *const *options);
  int (*code_bytes)(Program program, size_t *bytes);
  int (*code)(Program program, char *code);
  int (*log_bytes)(Program program, size_t *bytes);
  int (*log)(Program program, char *log);
  int (*destroy)(Program *program);
};

std::once_flag once, build_once;
Functions functions;
void *nvrtc; // NULL: there is none
char version_text[32], build_text[64];

template <class Function>
bool find(void *library, const char *name, Function *out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  return *out != nullptr;
}

// Drivers load code of every NVRTC of their own major version, and of older ones. INT_MAX: there is
// no driver, and all code can be compiled.
int driver_major() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess && version > 0 ? version / 1000 : INT_MAX;
}

bool find_functions(void *library, int most) {
  int major = 0, minor = 0;
  if (!find(library, "nvrtcVersion", &functions.version) ||
      !find(library, "nvrtcCreateProgram", &functions.create) ||
      !find(library, "nvrtcCompileProgram", &functions.compile) ||
      !find(library, "nvrtcGetCUBINSize", &functions.code_bytes) ||
      !find(library, "nvrtcGetCUBIN", &functions.code) ||
      !find(library, "nvrtcGetProgramLogSize", &functions.log_bytes) ||
      !find(library, "nvrtcGetProgramLog", &functions.log) ||
      !find(library, "nvrtcDestroyProgram", &functions.destroy) ||
      functions.version(&major, &minor) != 0 || major > most)
    return false;
  snprintf(version_text, sizeof version_text, "%d.%d", major, minor);
  return true;
}

void open_library() {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so"};
  const int most = driver_major();
  for (const char *name : names) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library && find_functions(library, most)) {
      nvrtc = library;
      return;
    }
    if (library)
      dlclose(library);
  }
}

bool open_once() {
  std::call_once(once, open_library);
  return nvrtc != nullptr;
}

// PTX begins with remarks that name the compiler's build, so the PTX of an empty source stands for
// it.
bool hash_build(uint64_t *hash) {
  int (*ptx_bytes)(Program program, size_t * bytes);
  int (*ptx)(Program program, char *text);
  char text[4096];
  size_t bytes = 0;
  Program program = nullptr;
  if (!find(nvrtc, "nvrtcGetPTXSize", &ptx_bytes) || !find(nvrtc, "nvrtcGetPTX", &ptx) ||
      functions.create(&program, "", "weft.cu", 0, nullptr, nullptr) != 0)
    return false;
  const bool told = functions.compile(program, 0, nullptr) == 0 &&
                    ptx_bytes(program, &bytes) == 0 && bytes <= sizeof text &&
                    ptx(program, text) == 0;
  functions.destroy(&program);
  if (told)
    *hash = weft_hash(text, bytes);
  return told;
}

void name_build() {
  uint64_t hash = 0;
  if (open_once() && hash_build(&hash))
    snprintf(build_text, sizeof build_text, "%s build %016" PRIx64, version_text, hash);
  else
    snprintf(build_text, sizeof build_text, "%s", version_text);
}

void copy_log(Program program, char *log, size_t log_bytes, const weft_allocator *allocator) {
  size_t bytes = 0;
  if (!log || log_bytes == 0)
    return;
  log[0] = '\0';
  if (functions.log_bytes(program, &bytes) != 0 || bytes == 0)
    return;
  char *all = static_cast<char *>(allocator->alloc(allocator->user, bytes, 16));
  if (all && functions.log(program, all) == 0) {
    const size_t some = bytes < log_bytes ? bytes : log_bytes;
    memcpy(log, all, some);
    log[some - 1] = '\0';
  }
  if (all)
    allocator->free(allocator->user, all);
}

weft_status take_code(Program program, const weft_allocator *allocator, void **code,
                      size_t *code_bytes) {
  if (functions.code_bytes(program, code_bytes) != 0 || *code_bytes == 0)
    return WEFT_E_DEVICE;
  *code = allocator->alloc(allocator->user, *code_bytes, 16);
  if (!*code)
    return WEFT_E_NOMEM;
  if (functions.code(program, static_cast<char *>(*code)) == 0)
    return WEFT_OK;
  allocator->free(allocator->user, *code);
  *code = nullptr;
  return WEFT_E_DEVICE;
}

} // namespace

extern "C" const char *weft_nvrtc_version(void) { return open_once() ? version_text : ""; }

extern "C" const char *weft_nvrtc_build(void) {
  std::call_once(build_once, name_build);
  return build_text;
}

extern "C" weft_status weft_nvrtc_compile(const weft_allocator *allocator, const char *source,
                                          int sm, void **code, size_t *code_bytes, char *log,
                                          size_t log_bytes) {
  *code = nullptr;
  *code_bytes = 0;
  if (!open_once())
    return WEFT_E_UNSUPPORTED;
  char arch[64];
  snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%s", sm, sm == 90 ? "a" : "");
  const char *const options[] = {arch, "--std=c++17"};
  Program program = nullptr;
  if (functions.create(&program, source, "weft.cu", 0, nullptr, nullptr) != 0)
    return WEFT_E_DEVICE;
  weft_status status = WEFT_OK;
  if (functions.compile(program, 2, options) != 0) {
    copy_log(program, log, log_bytes, allocator);
    status = WEFT_E_DEVICE;
  }
  if (status == WEFT_OK)
    status = take_code(program, allocator, code, code_bytes);
  functions.destroy(&program);
  return status;
}
