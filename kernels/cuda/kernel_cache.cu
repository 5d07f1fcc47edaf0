// SPDX-License-Identifier: Apache-2.0
// The kernels that a device has had compiled at run time, by exact key; the least recently used go
// first. A kernel comes from the caller's store if it holds it, so that a program compiles once.
#include <mutex>
#include <new>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/nvrtc.h"
#include "kernels/hash.h"

namespace {

enum { EntriesMax = 512 };

// A compile takes about a second, in which a device reads terabytes; half of that is what the
// general kernels lose by then.
constexpr size_t CompileAfter = size_t{1} << 40;

struct Entry {
  uint8_t *key;
  size_t key_bytes;
  uint64_t hash, used;
  size_t work, holders;       // holders: fetched it, and have not launched yet
  bool asked, refused, tried; // asked: the store, which is asked once
  cudaLibrary_t library;
  cudaKernel_t kernel;
};

} // namespace

struct weft_device_kernels {
  const weft_allocator *allocator;
  std::mutex mutex; // of all below; held while compiling
  weft_code_store store;
  size_t compile_after;
  size_t count, failed;
  uint64_t now;
  Entry entries[EntriesMax];
};

weft_device_kernels *weft_device_kernels_new(const weft_allocator *allocator) {
  void *memory =
      allocator->alloc(allocator->user, sizeof(weft_device_kernels), alignof(weft_device_kernels));
  if (!memory)
    return nullptr;
  weft_device_kernels *kernels = new (memory) weft_device_kernels();
  kernels->allocator = allocator;
  kernels->compile_after = CompileAfter;
  return kernels;
}

static void drop(weft_device_kernels *kernels, Entry *entry) {
  if (entry->library)
    (void)cudaLibraryUnload(entry->library);
  (void)cudaGetLastError();
  if (entry->key)
    kernels->allocator->free(kernels->allocator->user, entry->key);
  *entry = Entry();
}

void weft_device_kernels_free(weft_device_kernels *kernels) {
  if (!kernels)
    return;
  const weft_allocator *allocator = kernels->allocator;
  for (size_t i = 0; i < kernels->count; i++)
    drop(kernels, &kernels->entries[i]);
  kernels->~weft_device_kernels();
  allocator->free(allocator->user, kernels);
}

extern "C" void weft_device_set_code_store(weft_device *device, const weft_code_store *store) {
  weft_device_kernels *kernels = weft_device_kernels_of(device);
  std::lock_guard<std::mutex> lock(kernels->mutex);
  kernels->store = store ? *store : weft_code_store();
}

extern "C" void weft_device_compile_after(weft_device *device, size_t bytes) {
  weft_device_kernels *kernels = weft_device_kernels_of(device);
  std::lock_guard<std::mutex> lock(kernels->mutex);
  kernels->compile_after = bytes;
}

static Entry *find(weft_device_kernels *kernels, const weft_kernel_want *want, uint64_t hash) {
  for (size_t i = 0; i < kernels->count; i++) {
    Entry *entry = &kernels->entries[i];
    if (entry->hash == hash && entry->key_bytes == want->key_bytes &&
        memcmp(entry->key, want->key, want->key_bytes) == 0)
      return entry;
  }
  return nullptr;
}

// The place whose kernel was wanted least lately; NULL where every one is about to be launched.
static Entry *oldest(weft_device_kernels *kernels) {
  Entry *place = nullptr;
  for (size_t i = 0; i < kernels->count; i++) {
    Entry *entry = &kernels->entries[i];
    if (entry->holders == 0 && (!place || entry->used < place->used))
      place = entry;
  }
  return place;
}

// A place for a new key; the oldest one's when all are taken, whose kernel may still be running.
static weft_status add(weft_device_kernels *kernels, const weft_kernel_want *want, uint64_t hash,
                       Entry **out) {
  const bool full = kernels->count == EntriesMax;
  Entry *place = full ? oldest(kernels) : &kernels->entries[kernels->count];
  if (!place)
    return WEFT_E_UNSUPPORTED;
  const weft_allocator *allocator = kernels->allocator;
  uint8_t *key = static_cast<uint8_t *>(allocator->alloc(allocator->user, want->key_bytes, 16));
  if (!key)
    return WEFT_E_NOMEM;
  memcpy(key, want->key, want->key_bytes);
  if (full) {
    if (place->library)
      (void)cudaDeviceSynchronize();
    drop(kernels, place);
  }
  kernels->count += !full;
  place->key = key;
  place->key_bytes = want->key_bytes;
  place->hash = hash;
  *out = place;
  return WEFT_OK;
}

static weft_status load_code(Entry *entry, const void *code) {
  if (entry->library) // of code before, that had no such kernel or could not be tried
    (void)cudaLibraryUnload(entry->library);
  entry->library = nullptr;
  WEFT_CUDA_TRY(
      cudaLibraryLoadData(&entry->library, code, nullptr, nullptr, 0, nullptr, nullptr, 0));
  WEFT_CUDA_TRY(cudaLibraryGetKernel(&entry->kernel, entry->library, "weft_kernel"));
  // A library is loaded when something of it is needed: now, where code for another device can
  // still be refused, rather than by the first launch.
  cudaFuncAttributes needed;
  return WEFT_CUDA(cudaFuncGetAttributes(&needed, reinterpret_cast<const void *>(entry->kernel)));
}

// The general kernel works instead, from now on; but want of host memory and a lost device are for
// the caller to know.
static weft_status refuse(Entry *entry, weft_status status) {
  entry->kernel = nullptr;
  entry->refused = status != WEFT_E_NOMEM && status != WEFT_E_DEVICE_LOST;
  return entry->refused ? WEFT_E_UNSUPPORTED : status;
}

// A kernel that does not pass, or that the device cannot try, is never used. One that there is no
// room to try stays loaded for the next time: making it again would take a second.
static weft_status try_out(weft_device_kernels *kernels, const weft_kernel_want *want,
                           Entry *entry) {
  bool passes = true;
  weft_status status = WEFT_OK;
  if (want->passes)
    status = want->passes(want->user, entry->kernel, &passes);
  if (status == WEFT_E_NOMEM || status == WEFT_E_DEVICE_NOMEM)
    return WEFT_E_UNSUPPORTED;
  entry->tried = status == WEFT_OK && passes;
  kernels->failed += status == WEFT_OK && !passes;
  return entry->tried ? WEFT_OK : refuse(entry, status);
}

static bool repaid(const weft_device_kernels *kernels, const Entry *entry) {
  return kernels->compile_after != SIZE_MAX && entry->work >= kernels->compile_after;
}

// Everything but the source that decides what is compiled, and whether it loads.
static void name_machine(const weft_device *device, char *out, size_t bytes) {
  int driver = 0;
  (void)cudaDriverGetVersion(&driver);
  snprintf(out, bytes, "%s sm_%d driver %d nvrtc %s", weft_device_name(device),
           weft_device_sm(device), driver, weft_nvrtc_build());
}

// Loads or compiles; the caller holds the lock.
static weft_status make(weft_device *device, weft_device_kernels *kernels,
                        const weft_kernel_want *want, Entry *entry) {
  const weft_allocator *allocator = kernels->allocator;
  const bool compile = want->now || repaid(kernels, entry);
  if (!compile && !kernels->store.load)
    return WEFT_OK;
  char machine[400] = "";
  if (kernels->store.load || kernels->store.save)
    name_machine(device, machine, sizeof machine);
  char *source = nullptr;
  WEFT_TRY(want->source(want->user, allocator, &source));
  void *code = nullptr;
  size_t bytes = 0;
  weft_status status = WEFT_OK;
  if (kernels->store.load && kernels->store.load(kernels->store.user, allocator, machine, source,
                                                 &code, &bytes) != WEFT_OK)
    code = nullptr; // as if it were not there
  if (code && load_code(entry, code) != WEFT_OK) {
    allocator->free(allocator->user, code);
    code = nullptr;
    entry->kernel = nullptr;
  }
  if (!code && compile) {
    status =
        weft_nvrtc_compile(allocator, source, weft_device_sm(device), &code, &bytes, nullptr, 0);
    if (status == WEFT_OK)
      status = load_code(entry, code);
    if (status == WEFT_OK && kernels->store.save)
      kernels->store.save(kernels->store.user, machine, source, code, bytes);
    if (status != WEFT_OK)
      status = refuse(entry, status);
  }
  if (code)
    allocator->free(allocator->user, code);
  allocator->free(allocator->user, source);
  return status;
}

extern "C" weft_status weft_device_kernel(weft_device *device, const weft_kernel_want *want,
                                          void **kernel) {
  *kernel = nullptr;
  weft_device_kernels *kernels = weft_device_kernels_of(device);
  const uint64_t hash = weft_hash(want->key, want->key_bytes);
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  std::lock_guard<std::mutex> lock(kernels->mutex);
  Entry *entry = find(kernels, want, hash);
  if (!entry)
    WEFT_TRY(add(kernels, want, hash, &entry));
  entry->used = ++kernels->now;
  entry->work += want->work < SIZE_MAX - entry->work ? want->work : 0;
  if (entry->refused)
    return WEFT_E_UNSUPPORTED;
  // The store is asked once, compiling is done when it has become worth it.
  if (!entry->kernel && (!entry->asked || want->now || repaid(kernels, entry)))
    WEFT_TRY(make(device, kernels, want, entry));
  entry->asked = true; // not where there was no memory for the source
  if (entry->kernel && !entry->tried)
    WEFT_TRY(try_out(kernels, want, entry));
  *kernel = entry->kernel;
  entry->holders += entry->kernel != nullptr;
  return WEFT_OK;
}

extern "C" void weft_device_kernel_done(weft_device *device, void *kernel) {
  if (!kernel)
    return;
  weft_device_kernels *kernels = weft_device_kernels_of(device);
  std::lock_guard<std::mutex> lock(kernels->mutex);
  for (size_t i = 0; i < kernels->count; i++)
    if (kernels->entries[i].kernel == kernel) {
      kernels->entries[i].holders--;
      return;
    }
}

extern "C" size_t weft_device_kernels_failed(weft_device *device) {
  weft_device_kernels *kernels = weft_device_kernels_of(device);
  std::lock_guard<std::mutex> lock(kernels->mutex);
  return kernels->failed;
}
