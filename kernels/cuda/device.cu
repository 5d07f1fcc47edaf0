// SPDX-License-Identifier: Apache-2.0
// GPUs: opening them, their streams, and arenas of pinned and device memory that keep freed blocks,
// because the runtime's own calls wait for the whole device.
#include "kernels/cuda/device.cuh"

#include <mutex>
#include <new>
#include <string.h>

#include "kernels/cuda/current.cuh"
#include "kernels/cuda/gf256.cuh"

namespace {

enum { ArenaBuckets = 1024, ArenaClasses = 256 };

struct Block {
  void *memory;
  size_t bytes;
  Block *next;
};

// Blocks of one memory: live ones found by address, free ones kept by size class.
struct Arena {
  Block *live[ArenaBuckets];
  Block *free[ArenaClasses];
  size_t used, peak; // bytes of live blocks, and their maximum (weft_device_pinned_peak)
};

constexpr size_t PitchMost = INT32_MAX; // that the runtime's copies of several rows take

// Four classes per doubling, so that a block is at most a quarter larger than asked. Larger ones,
// of which a quarter may be what the device lacks, have the size that the runtime gives anyway;
// blocks of their classes differ in size.
size_t class_bytes(size_t bytes, unsigned *index) {
  const size_t exact_from = static_cast<size_t>(256) << 20, grain = static_cast<size_t>(2) << 20;
  size_t step = 64;
  unsigned at = 0;
  while (bytes > 8 * step) {
    step *= 2;
    at += 4;
  }
  const size_t steps = bytes <= 4 * step ? 4 : (bytes + step - 1) / step; // 4..8
  *index = at + static_cast<unsigned>(steps) - 4;
  return bytes < exact_from ? steps * step : (bytes + grain - 1) / grain * grain;
}

size_t bucket_of(const void *memory) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(memory) >> 9;
  return static_cast<size_t>((bits ^ (bits >> 10) ^ (bits >> 20)) % ArenaBuckets);
}

weft_status memory_get(weft_mem mem, size_t bytes, void **out) {
  if (mem == WEFT_MEM_PINNED)
    return WEFT_CUDA(cudaHostAlloc(out, bytes, cudaHostAllocPortable));
  return WEFT_CUDA(cudaMalloc(out, bytes));
}

void memory_put(weft_mem mem, void *memory) {
  // A context that is lost frees nothing, and there is nobody to tell.
  if (mem == WEFT_MEM_PINNED)
    (void)cudaFreeHost(memory);
  else
    (void)cudaFree(memory);
  (void)cudaGetLastError();
}

} // namespace

// What may still run on a stream when the next kernel begins (weft_device_may_overlap).
struct Running {
  void *stream; // NULL: a free place
  bool known;
  weft_device_span reads, writes;
};

struct weft_device {
  enum { Streams = 64 }; // those beyond never overlap

  const weft_allocator *allocator;
  weft_cuda_context context;
  int sm;
  char name[256];
  weft_device_shape shape;
  cudaMemPool_t pool;           // scratch in stream order
  std::mutex mutex;             // of all below
  Arena arenas[2];              // PINNED, DEVICE
  weft_device_kernels *kernels; // compiled at run time; has a lock of its own
  uint8_t *tables;
  cudaTextureObject_t table_texture;
  std::mutex running_mutex;
  Running running[Streams];
};

static Running *running_on(weft_device *device, const void *stream) {
  for (Running &r : device->running)
    if (r.stream == stream)
      return &r;
  return nullptr;
}

static bool apart(weft_device_span a, weft_device_span b) {
  return a.high <= b.low || b.high <= a.low;
}

bool weft_device_may_overlap(const weft_exec *exec, weft_device_span reads, weft_device_span writes,
                             bool lets_next) {
  std::lock_guard<std::mutex> lock(exec->device->running_mutex);
  Running *before = exec->stream ? running_on(exec->device, exec->stream) : nullptr;
  if (!before)
    return false;
  const bool may = before->known && apart(before->writes, reads) && apart(before->writes, writes) &&
                   apart(before->reads, writes);
  *before = {exec->stream, lets_next, reads, writes};
  return may;
}

static void overlap_ends(weft_device *device, const void *stream) {
  std::lock_guard<std::mutex> lock(device->running_mutex);
  Running *before = stream ? running_on(device, stream) : nullptr;
  if (before)
    before->known = false;
}

void weft_device_overlap_ends(const weft_exec *exec) { overlap_ends(exec->device, exec->stream); }

static Arena *arena_of(weft_device *device, weft_mem mem) {
  return &device->arenas[mem == WEFT_MEM_DEVICE];
}

weft_device_scope::weft_device_scope(const weft_device *device)
    : status_(weft_cuda_context_enter(&device->context, &before_, &changed_)) {}

weft_device_scope::~weft_device_scope() {
  if (changed_)
    weft_cuda_context_put_back(before_);
}

extern "C" size_t weft_device_count(void) {
  int count = 0;
  if (WEFT_CUDA(cudaGetDeviceCount(&count)) != WEFT_OK || count < 0)
    return 0; // no driver, or no device
  return static_cast<size_t>(count);
}

extern "C" const char *weft_device_absence(void) {
  int count = 0;
  const cudaError_t injected = weft_cuda_injected();
  const cudaError_t error = injected != cudaSuccess ? injected : cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (error == cudaSuccess)
    return count > 0 ? "" : "no CUDA device";
  return cudaGetErrorString(error);
}

static weft_status attribute(int *out, cudaDeviceAttr which, int index) {
  return WEFT_CUDA(cudaDeviceGetAttribute(out, which, index));
}

static weft_status open_on(weft_device *device) {
  const int index = device->context.index;
  int major = 0, minor = 0;
  WEFT_TRY(attribute(&major, cudaDevAttrComputeCapabilityMajor, index));
  WEFT_TRY(attribute(&minor, cudaDevAttrComputeCapabilityMinor, index));
  device->sm = major * 10 + minor;
  weft_device_shape *shape = &device->shape;
  WEFT_TRY(attribute(&shape->sms, cudaDevAttrMultiProcessorCount, index));
  WEFT_TRY(attribute(&shape->block_shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
  WEFT_TRY(attribute(&shape->sm_shared_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, index));
  WEFT_TRY(attribute(&shape->cooperative_launch, cudaDevAttrCooperativeLaunch, index));
  cudaDeviceProp properties;
  WEFT_CUDA_TRY(cudaGetDeviceProperties(&properties, index));
  memcpy(device->name, properties.name, sizeof device->name - 1); // the last byte stays 0

  cudaMemPoolProps pool = {};
  pool.allocType = cudaMemAllocationTypePinned; // CUDA's word for memory that does not move
  pool.location.type = cudaMemLocationTypeDevice;
  pool.location.id = index;
  WEFT_CUDA_TRY(cudaMemPoolCreate(&device->pool, &pool));
  uint64_t keep = UINT64_MAX; // bytes to hold on to instead of returning them at every wait
  WEFT_CUDA_TRY(cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold, &keep));
  int no = 0; // scratch of one stream must not make it wait for another that used it before
  WEFT_CUDA_TRY(
      cudaMemPoolSetAttribute(device->pool, cudaMemPoolReuseAllowInternalDependencies, &no));
  device->kernels = weft_device_kernels_new(device->allocator);
  return device->kernels ? WEFT_OK : WEFT_E_NOMEM;
}

extern "C" weft_status weft_device_open(weft_device **out, size_t index,
                                        const weft_allocator *allocator) {
  *out = nullptr;
  int count = 0;
  WEFT_CUDA_TRY(cudaGetDeviceCount(&count));
  if (index >= static_cast<size_t>(count))
    return WEFT_E_ARGUMENT;
  void *memory = allocator->alloc(allocator->user, sizeof(weft_device), alignof(weft_device));
  if (!memory)
    return WEFT_E_NOMEM;
  weft_device *device = new (memory) weft_device();
  device->allocator = allocator;
  weft_status status = weft_cuda_context_find(static_cast<int>(index), &device->context);
  if (status == WEFT_OK) {
    weft_device_scope scope(device);
    status = scope.status() == WEFT_OK ? open_on(device) : scope.status();
  }
  if (status != WEFT_OK) {
    weft_device_close(device);
    return status;
  }
  *out = device;
  return WEFT_OK;
}

// Gives the blocks of a list back to the runtime.
static void list_trim(weft_device *device, weft_mem mem, Block **list) {
  while (Block *block = *list) {
    *list = block->next;
    memory_put(mem, block->memory);
    device->allocator->free(device->allocator->user, block);
  }
}

// Gives the runtime back every free block of an arena; the caller holds the lock.
static void arena_trim(weft_device *device, weft_mem mem) {
  for (Block *&list : arena_of(device, mem)->free)
    list_trim(device, mem, &list);
}

extern "C" void weft_device_close(weft_device *device) {
  if (!device)
    return;
  const weft_allocator *allocator = device->allocator;
  if (device->context.handle) { // else nothing was made
    weft_device_scope scope(device);
    (void)cudaDeviceSynchronize();
    weft_device_kernels_free(device->kernels);
    if (device->table_texture)
      (void)cudaDestroyTextureObject(device->table_texture);
    if (device->tables)
      memory_put(WEFT_MEM_DEVICE, device->tables);
    for (weft_mem mem : {WEFT_MEM_PINNED, WEFT_MEM_DEVICE}) {
      for (Block *&list : arena_of(device, mem)->live)
        list_trim(device, mem, &list);
      arena_trim(device, mem);
    }
    if (device->pool)
      (void)cudaMemPoolDestroy(device->pool);
    (void)cudaGetLastError();
  }
  device->~weft_device();
  allocator->free(allocator->user, device);
}

extern "C" int weft_device_sm(const weft_device *device) { return device->sm; }
extern "C" int weft_device_block_bytes(const weft_device *device) {
  return device->shape.block_shared_bytes;
}
extern "C" const char *weft_device_name(const weft_device *device) { return device->name; }

const weft_device_shape *weft_device_get_shape(const weft_device *device) { return &device->shape; }

weft_device_kernels *weft_device_kernels_of(weft_device *device) { return device->kernels; }

// A new block from the runtime; when that has none left, once more without the kept ones.
static weft_status block_new(weft_device *device, weft_mem mem, size_t bytes, Block **out) {
  const weft_allocator *allocator = device->allocator;
  Block *block =
      static_cast<Block *>(allocator->alloc(allocator->user, sizeof(Block), alignof(Block)));
  if (!block)
    return WEFT_E_NOMEM;
  block->bytes = bytes;
  weft_status status = memory_get(mem, bytes, &block->memory);
  if (status == WEFT_E_DEVICE_NOMEM) {
    arena_trim(device, mem);
    if (mem == WEFT_MEM_DEVICE)
      (void)cudaMemPoolTrimTo(device->pool, 0);
    status = memory_get(mem, bytes, &block->memory);
  }
  if (status != WEFT_OK) {
    allocator->free(allocator->user, block);
    return status;
  }
  *out = block;
  return WEFT_OK;
}

// A kept block of the class that is large enough, or NULL. Those that are too small go back: the
// one that is made instead will do for them too.
static Block *block_kept(weft_device *device, weft_mem mem, unsigned index, size_t bytes) {
  Block **list = &arena_of(device, mem)->free[index], **link = list;
  while (*link && (*link)->bytes < bytes)
    link = &(*link)->next;
  Block *block = *link;
  if (block)
    *link = block->next;
  else
    list_trim(device, mem, list);
  return block;
}

extern "C" weft_status weft_device_alloc(weft_device *device, weft_mem mem, size_t bytes,
                                         void **out) {
  *out = nullptr;
  if (mem == WEFT_MEM_HOST || bytes > SIZE_MAX / 4)
    return WEFT_E_ARGUMENT;
  unsigned index;
  const size_t rounded = class_bytes(bytes, &index);
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  std::lock_guard<std::mutex> lock(device->mutex);
  Block *block = block_kept(device, mem, index, rounded);
  if (!block)
    WEFT_TRY(block_new(device, mem, rounded, &block));
  Arena *arena = arena_of(device, mem);
  Block **list = &arena->live[bucket_of(block->memory)];
  block->next = *list;
  *list = block;
  arena->used += block->bytes;
  arena->peak = arena->peak > arena->used ? arena->peak : arena->used;
  *out = block->memory;
  return WEFT_OK;
}

extern "C" void weft_device_free(weft_device *device, weft_mem mem, void *memory) {
  if (!memory)
    return;
  std::lock_guard<std::mutex> lock(device->mutex);
  Arena *arena = arena_of(device, mem);
  Block **link = &arena->live[bucket_of(memory)];
  while (*link && (*link)->memory != memory)
    link = &(*link)->next;
  Block *block = *link;
  if (!block)
    return; // not ours: freeing it elsewhere is the caller's business
  *link = block->next;
  arena->used -= block->bytes;
  unsigned index;
  class_bytes(block->bytes, &index);
  block->next = arena->free[index];
  arena->free[index] = block;
}

extern "C" void weft_device_trim(weft_device *device) {
  weft_device_scope scope(device);
  if (scope.status() != WEFT_OK)
    return;
  std::lock_guard<std::mutex> lock(device->mutex);
  (void)
      cudaDeviceSynchronize(); // streams may still use blocks that are free for later work on them
  arena_trim(device, WEFT_MEM_PINNED);
  arena_trim(device, WEFT_MEM_DEVICE);
  (void)cudaMemPoolTrimTo(device->pool, 0);
  (void)cudaGetLastError();
}

extern "C" size_t weft_device_pinned_peak(weft_device *device) {
  std::lock_guard<std::mutex> lock(device->mutex);
  Arena *arena = arena_of(device, WEFT_MEM_PINNED);
  const size_t peak = arena->peak;
  arena->peak = arena->used;
  return peak;
}

extern "C" weft_status weft_device_stream_new(weft_device *device, void **out) {
  *out = nullptr;
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  cudaStream_t stream;
  WEFT_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  *out = stream;
  std::lock_guard<std::mutex> lock(device->running_mutex);
  Running *place = running_on(device, nullptr);
  if (place)
    *place = {stream, false, {}, {}};
  return WEFT_OK;
}

extern "C" void weft_device_stream_free(weft_device *device, void *stream) {
  if (!stream)
    return;
  { // before another thread's new stream can have the same handle
    std::lock_guard<std::mutex> lock(device->running_mutex);
    Running *place = running_on(device, stream);
    if (place)
      *place = {};
  }
  weft_device_scope scope(device);
  (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream));
  (void)cudaGetLastError();
}

extern "C" weft_status weft_device_stream_poll(weft_device *device, void *stream) {
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  return WEFT_CUDA(cudaStreamQuery(static_cast<cudaStream_t>(stream)));
}

extern "C" weft_status weft_device_stream_wait(weft_device *device, void *stream) {
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  return WEFT_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}

static cudaMemcpyKind kind_of(weft_mem to, weft_mem from) {
  if (to == WEFT_MEM_DEVICE)
    return from == WEFT_MEM_DEVICE ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return from == WEFT_MEM_DEVICE ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

extern "C" weft_status weft_device_copy(weft_device *device, void *to, weft_mem to_mem,
                                        const void *from, weft_mem from_mem, size_t bytes,
                                        void *stream) {
  if (bytes == 0)
    return WEFT_OK;
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  overlap_ends(device, stream); // the driver may copy by a kernel
  return WEFT_CUDA(cudaMemcpyAsync(to, from, bytes, kind_of(to_mem, from_mem),
                                   static_cast<cudaStream_t>(stream)));
}

extern "C" weft_status weft_device_copy_rows(weft_device *device, void *to, size_t to_stride,
                                             weft_mem to_mem, const void *from, size_t from_stride,
                                             weft_mem from_mem, size_t bytes, size_t rows,
                                             void *stream) {
  if (rows == 0 || bytes == 0)
    return WEFT_OK;
  if (rows == 1 || (to_stride == bytes && from_stride == bytes))
    return weft_device_copy(device, to, to_mem, from, from_mem, bytes * rows, stream);
  if (to_stride > PitchMost || from_stride > PitchMost) {
    for (size_t i = 0; i < rows; i++)
      WEFT_TRY(weft_device_copy(device, static_cast<uint8_t *>(to) + i * to_stride, to_mem,
                                static_cast<const uint8_t *>(from) + i * from_stride, from_mem,
                                bytes, stream));
    return WEFT_OK;
  }
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  overlap_ends(device, stream);
  return WEFT_CUDA(cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, rows,
                                     kind_of(to_mem, from_mem), static_cast<cudaStream_t>(stream)));
}

extern "C" weft_status weft_device_stream_order(weft_device *device, void *later, void *earlier) {
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  overlap_ends(device, later); // the next kernel there may need what `earlier` writes
  cudaEvent_t event;
  WEFT_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  weft_status status = WEFT_CUDA(cudaEventRecord(event, static_cast<cudaStream_t>(earlier)));
  if (status == WEFT_OK)
    status = WEFT_CUDA(cudaStreamWaitEvent(static_cast<cudaStream_t>(later), event, 0));
  (void)cudaEventDestroy(event); // the runtime frees it once nothing waits for it
  (void)cudaGetLastError();      // the next launch must not be blamed
  return status;
}

extern "C" weft_status weft_device_scratch(const weft_exec *exec, size_t bytes, void **out) {
  *out = nullptr;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const size_t some = bytes ? bytes : 1;
  weft_status status =
      WEFT_CUDA(cudaMallocFromPoolAsync(out, some, exec->device->pool, weft_cuda_stream(exec)));
  if (status == WEFT_E_DEVICE_NOMEM) {
    std::lock_guard<std::mutex> lock(exec->device->mutex);
    arena_trim(exec->device, WEFT_MEM_DEVICE);
    status =
        WEFT_CUDA(cudaMallocFromPoolAsync(out, some, exec->device->pool, weft_cuda_stream(exec)));
  }
  if (status != WEFT_OK)
    *out = nullptr;
  return status;
}

extern "C" void weft_device_scratch_free(const weft_exec *exec, void *memory) {
  if (!memory)
    return;
  weft_device_scope scope(exec->device);
  (void)cudaFreeAsync(memory, weft_cuda_stream(exec));
  (void)cudaGetLastError();
}

static weft_status table_texture_new(weft_device *device) {
  void *table = device->tables;
  if (!table) {
    WEFT_TRY(memory_get(WEFT_MEM_DEVICE, sizeof(weft_cuda_tables), &table));
    device->tables = static_cast<uint8_t *>(table);
  }
  static constexpr weft_cuda_tables field = weft_cuda_make_tables();
  WEFT_CUDA_TRY(cudaMemcpy(table, &field, sizeof field, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = table;
  resource.res.linear.desc = cudaCreateChannelDesc<unsigned char>();
  resource.res.linear.sizeInBytes = sizeof field;
  cudaTextureDesc description = {};
  description.readMode = cudaReadModeElementType;
  return WEFT_CUDA(
      cudaCreateTextureObject(&device->table_texture, &resource, &description, nullptr));
}

weft_status weft_device_table_texture(weft_device *device, cudaTextureObject_t *out) {
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  std::lock_guard<std::mutex> lock(device->mutex);
  if (!device->table_texture)
    WEFT_TRY(table_texture_new(device));
  *out = device->table_texture;
  return WEFT_OK;
}
