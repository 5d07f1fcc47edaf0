// SPDX-License-Identifier: Apache-2.0
// The rows cuda-b1-wgmma and cuda-b1-mma: products brought to device pointers and tiles, cut into
// panels of up to 256 source blocks, and launched in batches of one shape.
#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/tensor.cuh"

#include <string.h>

namespace {

size_t align16(size_t bytes) { return (bytes + 15) & ~static_cast<size_t>(15); }

// The inner dimension in panels of equal steps; a product with k = 0 has none.
struct Panels {
  uint32_t count, steps; // steps of every panel
  explicit Panels(size_t k) {
    const uint32_t all = static_cast<uint32_t>((k + WEFT_TENSOR_STEP - 1) / WEFT_TENSOR_STEP);
    count = (all + WEFT_TENSOR_STEPS_MAX - 1) / WEFT_TENSOR_STEPS_MAX;
    steps = count ? (all + count - 1) / count : 0;
  }
  size_t first(uint32_t panel) const {
    return static_cast<size_t>(panel) * steps * WEFT_TENSOR_STEP;
  }
  // Source blocks of a panel; the last may have few, or none.
  uint32_t blocks(size_t k, uint32_t panel) const {
    const size_t from = first(panel), most = static_cast<size_t>(steps) * WEFT_TENSOR_STEP;
    return static_cast<uint32_t>(from >= k ? 0 : k - from < most ? k - from : most);
  }
};

size_t pairs_of(size_t len) { return (len + WEFT_TENSOR_PAIR - 1) / WEFT_TENSOR_PAIR; }

// Bytes of all panels' tiles, one panel after the other.
size_t tiles_bytes(size_t k, size_t len) {
  const Panels panels(k);
  return pairs_of(len) * panels.count * WEFT_TENSOR_PAIR_BYTES(panels.steps);
}

bool words(const void *base, size_t stride) {
  return reinterpret_cast<uintptr_t>(base) % 4 == 0 && stride % 4 == 0 && stride < 1u << 30;
}

bool same_shape(const weft_gemm &a, const weft_gemm &b) {
  return a.m == b.m && a.k == b.k && a.len == b.len && a.accumulate == b.accumulate;
}

// Device scratch of one product beside the batch's descriptors.
struct Needs {
  size_t a, tiles, x_ptr, y_ptr;
  size_t all() const { return a + tiles + x_ptr + y_ptr; }
};

Needs needs_of(const weft_gemm &gemm) {
  Needs needs = {0, 0, 0, 0};
  if (gemm.a_mem != WEFT_MEM_DEVICE)
    needs.a = align16(gemm.m * gemm.k);
  if (!gemm.x_prepared) {
    needs.tiles = tiles_bytes(gemm.k, gemm.len);
    needs.x_ptr = gemm.x.ptr ? align16(gemm.k * sizeof(uint8_t *)) : 0;
  }
  needs.y_ptr = gemm.y.ptr ? align16(gemm.m * sizeof(uint8_t *)) : 0;
  return needs;
}

weft_status check(const weft_backend *row, const weft_gemm &gemm) {
  if (gemm.m > UINT32_MAX / 2 || gemm.k > UINT32_MAX / 2 || gemm.len > UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  if (gemm.y.mem == WEFT_MEM_HOST)
    return WEFT_E_UNSUPPORTED;
  if (!gemm.x_prepared)
    return gemm.x.mem == WEFT_MEM_HOST && gemm.k ? WEFT_E_UNSUPPORTED : WEFT_OK;
  const weft_operand *x = gemm.x_prepared;
  return x->row == row && x->k == gemm.k && x->len == gemm.len ? WEFT_OK : WEFT_E_ARGUMENT;
}

// Y of a product without source blocks.
weft_status clear(const weft_exec *exec, const weft_gemm &gemm) {
  const cudaStream_t stream = weft_cuda_stream(exec);
  if (gemm.accumulate)
    return WEFT_OK;
  if (!gemm.y.ptr)
    return WEFT_CUDA(cudaMemset2DAsync(gemm.y.base, gemm.y.stride, 0, gemm.len, gemm.m, stream));
  for (size_t i = 0; i < gemm.m; i++)
    WEFT_CUDA_TRY(cudaMemsetAsync(gemm.y.ptr[i], 0, gemm.len, stream));
  return WEFT_OK;
}

// The product as the kernels see it, without x.
weft_status job_of(const weft_exec *exec, const weft_gemm &gemm, const Needs &needs,
                   uint8_t *scratch, weft_tensor_job *job) {
  memset(job, 0, sizeof *job);
  job->a = gemm.a;
  job->a_stride = gemm.a_stride;
  if (needs.a) {
    WEFT_CUDA_TRY(cudaMemcpy2DAsync(scratch, gemm.k, gemm.a, gemm.a_stride, gemm.k, gemm.m,
                                    cudaMemcpyHostToDevice, weft_cuda_stream(exec)));
    job->a = scratch;
    job->a_stride = gemm.k;
  }
  job->y = gemm.y.base;
  job->y_stride = gemm.y.stride;
  if (needs.y_ptr) {
    uint8_t *at = scratch + needs.a;
    WEFT_TRY(weft_cuda_upload(exec, at, gemm.y.ptr, gemm.m * sizeof(uint8_t *)));
    job->y_ptr = reinterpret_cast<uint8_t *const *>(at);
  }
  return WEFT_OK;
}

// Products of one shape on their way to the device.
class Batch {
public:
  Batch(const weft_exec *exec, weft_tensor_multiply kernel, size_t count, weft_tensor_job *jobs,
        weft_tensor_job *on_device)
      : exec_(exec), kernel_(kernel), count_(count), jobs_(jobs), on_device_(on_device) {}

  // Makes tiles of the rows x at `to`, a panel at a time.
  weft_status prepare(size_t k, size_t len, const weft_const_rows *x, uint8_t *const *to,
                      const uint8_t *const *const *x_ptr) {
    const Panels panels(k);
    for (uint32_t panel = 0; panel < panels.count; panel++) {
      weft_tensor_batch batch = shape(0, k, len, panels, panel);
      batch.x_words = true;
      for (size_t i = 0; i < count_; i++) {
        memset(&jobs_[i], 0, sizeof jobs_[i]);
        jobs_[i].x = x_ptr[i] ? nullptr : x[i].base + panels.first(panel) * x[i].stride;
        jobs_[i].x_ptr = x_ptr[i] ? x_ptr[i] + panels.first(panel) : nullptr;
        jobs_[i].x_stride = x[i].stride;
        jobs_[i].y = to[i] + panel * panel_bytes(panels, len);
        batch.x_words = batch.x_words && !x_ptr[i] && words(x[i].base, x[i].stride);
      }
      WEFT_TRY(send(&batch));
      WEFT_TRY(weft_tensor_prepare(exec_, batch));
    }
    return WEFT_OK;
  }

  // jobs: with a and y set, x at the first panel's tiles.
  weft_status multiply(size_t m, size_t k, size_t len, bool accumulate) {
    const Panels panels(k);
    weft_tensor_batch batch = shape(m, k, len, panels, 0);
    batch.a_words = batch.y_words = true;
    for (size_t i = 0; i < count_; i++) {
      batch.a_words = batch.a_words && words(jobs_[i].a, jobs_[i].a_stride);
      batch.y_words = batch.y_words && !jobs_[i].y_ptr && words(jobs_[i].y, jobs_[i].y_stride);
    }
    for (uint32_t panel = 0; panel < panels.count; panel++) {
      batch.n = panels.blocks(k, panel);
      batch.accumulate = accumulate || panel > 0;
      WEFT_TRY(send(&batch));
      WEFT_TRY(kernel_(exec_, batch));
      for (size_t i = 0; i < count_; i++) {
        jobs_[i].a += panels.first(1);
        jobs_[i].x += panel_bytes(panels, len);
      }
    }
    return WEFT_OK;
  }

private:
  static size_t panel_bytes(const Panels &panels, size_t len) {
    return pairs_of(len) * WEFT_TENSOR_PAIR_BYTES(panels.steps);
  }
  weft_tensor_batch shape(size_t m, size_t k, size_t len, const Panels &panels,
                          uint32_t panel) const {
    weft_tensor_batch batch = {};
    batch.count = static_cast<uint32_t>(count_);
    batch.m = static_cast<uint32_t>(m);
    batch.n = panels.blocks(k, panel);
    batch.len = static_cast<uint32_t>(len);
    batch.steps = panels.steps;
    return batch;
  }
  weft_status send(weft_tensor_batch *batch) {
    if (count_ <= WEFT_TENSOR_FEW) {
      memcpy(batch->few, jobs_, count_ * sizeof *jobs_);
      return WEFT_OK;
    }
    batch->jobs = on_device_;
    return weft_cuda_upload(exec_, on_device_, jobs_, count_ * sizeof *jobs_);
  }

  const weft_exec *exec_;
  weft_tensor_multiply kernel_;
  size_t count_;
  weft_tensor_job *jobs_, *on_device_;
};

// What the host side of a batch needs, in one allocation.
struct HostMemory {
  const weft_allocator *allocator;
  weft_tensor_job *jobs;
  weft_const_rows *x;
  uint8_t **tiles;
  const uint8_t *const **x_ptr;
  void *memory;

  HostMemory(const weft_allocator *from, size_t count) : allocator(from) {
    const size_t each = sizeof *jobs + sizeof *x + sizeof *tiles + sizeof *x_ptr;
    memory = allocator->alloc(allocator->user, count * each, 16);
    jobs = static_cast<weft_tensor_job *>(memory);
    x = reinterpret_cast<weft_const_rows *>(jobs + count);
    tiles = reinterpret_cast<uint8_t **>(x + count);
    x_ptr = static_cast<const uint8_t *const **>(static_cast<void *>(tiles + count));
  }
  ~HostMemory() {
    if (memory)
      allocator->free(allocator->user, memory);
  }
  HostMemory(const HostMemory &) = delete;
  HostMemory &operator=(const HostMemory &) = delete;
};

// `count` products of one shape, none of them empty.
weft_status same_products(const weft_backend *row, weft_tensor_multiply multiply,
                          const weft_exec *exec, const weft_gemm *gemms, size_t count) {
  const size_t descriptors = count > WEFT_TENSOR_FEW ? align16(count * sizeof(weft_tensor_job)) : 0;
  size_t bytes = descriptors;
  for (size_t i = 0; i < count; i++) {
    WEFT_TRY(check(row, gemms[i]));
    bytes += needs_of(gemms[i]).all();
  }
  const weft_gemm &like = gemms[0];
  HostMemory host(exec->allocator, count);
  if (!host.memory)
    return WEFT_E_NOMEM;
  weft_scratch scratch(exec);
  if (bytes)
    WEFT_TRY(scratch.alloc(bytes));
  uint8_t *at = scratch.as<uint8_t>() + descriptors;
  // Rows that come without tiles get them first.
  size_t raw = 0;
  for (size_t i = 0; i < count; i++) {
    const Needs needs = needs_of(gemms[i]);
    if (needs.tiles) {
      host.x[raw] = gemms[i].x;
      host.tiles[raw] = at;
      host.x_ptr[raw] = nullptr;
      if (needs.x_ptr) {
        uint8_t *const pointers = at + needs.tiles;
        WEFT_TRY(weft_cuda_upload(exec, pointers, gemms[i].x.ptr, like.k * sizeof(uint8_t *)));
        host.x_ptr[raw] = reinterpret_cast<const uint8_t *const *>(pointers);
      }
      raw++;
    }
    at += needs.all();
  }
  weft_tensor_job *on_device = scratch.as<weft_tensor_job>();
  if (raw) {
    Batch batch(exec, multiply, raw, host.jobs, on_device);
    WEFT_TRY(batch.prepare(like.k, like.len, host.x, host.tiles, host.x_ptr));
  }
  at = scratch.as<uint8_t>() + descriptors;
  for (size_t i = 0; i < count; i++) {
    const Needs needs = needs_of(gemms[i]);
    uint8_t *const rest = at + needs.tiles + needs.x_ptr;
    WEFT_TRY(job_of(exec, gemms[i], needs, rest, &host.jobs[i]));
    host.jobs[i].x = needs.tiles ? at : static_cast<const uint8_t *>(gemms[i].x_prepared->data);
    at += needs.all();
  }
  Batch batch(exec, multiply, count, host.jobs, on_device);
  return batch.multiply(like.m, like.k, like.len, like.accumulate);
}

weft_status products(const weft_backend *row, weft_tensor_multiply multiply, const weft_exec *exec,
                     const weft_gemm *gemms, size_t count) {
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  size_t end = 0;
  for (size_t i = 0; i < count; i = end) {
    for (end = i + 1; end < count && same_shape(gemms[i], gemms[end]);)
      end++;
    if (gemms[i].m == 0 || gemms[i].len == 0)
      continue;
    if (gemms[i].k) {
      WEFT_TRY(same_products(row, multiply, exec, gemms + i, end - i));
      continue;
    }
    for (size_t j = i; j < end; j++) {
      WEFT_TRY(check(row, gemms[j]));
      WEFT_TRY(clear(exec, gemms[j]));
    }
  }
  return WEFT_OK;
}

weft_status prepare(const weft_backend *row, const weft_exec *exec, size_t k, size_t len,
                    const weft_const_rows *x, weft_operand **out) {
  *out = nullptr;
  if (k > UINT32_MAX / 2 || len > UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  if (k && x->mem == WEFT_MEM_HOST)
    return WEFT_E_UNSUPPORTED;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const weft_allocator *allocator = exec->allocator;
  weft_operand *operand = static_cast<weft_operand *>(
      allocator->alloc(allocator->user, sizeof *operand, alignof(weft_operand)));
  if (!operand)
    return WEFT_E_NOMEM;
  *operand = {row, nullptr, tiles_bytes(k, len), k, len, 0};
  weft_scratch pointers(exec);
  weft_status status = WEFT_OK;
  if (operand->bytes)
    status = weft_device_alloc(exec->device, WEFT_MEM_DEVICE, operand->bytes, &operand->data);
  if (status == WEFT_OK && operand->bytes && x->ptr) {
    status = pointers.alloc(k * sizeof(uint8_t *));
    if (status == WEFT_OK)
      status = weft_cuda_upload(exec, pointers.as<void>(), x->ptr, k * sizeof(uint8_t *));
  }
  if (status == WEFT_OK && operand->bytes) {
    weft_tensor_job job;
    uint8_t *const to = static_cast<uint8_t *>(operand->data);
    const uint8_t *const *const x_ptr = x->ptr ? pointers.as<const uint8_t *const>() : nullptr;
    status = Batch(exec, nullptr, 1, &job, nullptr).prepare(k, len, x, &to, &x_ptr);
  }
  if (status != WEFT_OK) {
    weft_cuda_release(row, exec, operand);
    return status;
  }
  *out = operand;
  return WEFT_OK;
}

} // namespace

weft_status weft_tensor_cut(const weft_tensor_batch &batch, uint32_t sms, uint32_t shared_bytes,
                            weft_tensor_plan *plan) {
  const uint32_t chunk = WEFT_TENSOR_CHUNK_BYTES(batch.steps);
  const uint32_t pair = WEFT_TENSOR_PAIR_BYTES(batch.steps);
  if (shared_bytes < chunk + 2 * pair)
    return WEFT_E_UNSUPPORTED;
  const uint32_t room = (shared_bytes - 2 * pair) / chunk; // beside two stages
  plan->chunks = (batch.m + WEFT_TENSOR_CHUNK - 1) / WEFT_TENSOR_CHUNK;
  plan->pairs = (batch.len + WEFT_TENSOR_PAIR - 1) / WEFT_TENSOR_PAIR;
  uint32_t group = WEFT_TENSOR_COEF_BYTES / chunk;
  group = group < room ? group : room;
  const uint32_t most_slots = WEFT_TENSOR_SLOTS_MAX, most_stages = WEFT_TENSOR_STAGES_MAX;
  group = group < most_slots ? group : most_slots;
  group = group < plan->chunks ? group : plan->chunks;
  // Few units: smaller groups, so that every multiprocessor has some.
  const uint64_t products = static_cast<uint64_t>(batch.count) * plan->pairs;
  while (group > 1 && products * ((plan->chunks + group - 1) / group) < 2ull * sms)
    group = (group + 1) / 2;
  plan->groups = (plan->chunks + group - 1) / group;
  plan->group = (plan->chunks + plan->groups - 1) / plan->groups; // all about equal
  plan->groups = (plan->chunks + plan->group - 1) / plan->group;
  const uint64_t total = products * plan->groups;
  if (total >= UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  plan->total = static_cast<uint32_t>(total);
  // Slots for the next group's chunks come before more stages: expanding takes longer than copying.
  const uint32_t slots = 2 * plan->group < room ? 2 * plan->group : room;
  plan->slots = slots < most_slots ? slots : most_slots;
  const uint32_t stages = (shared_bytes - plan->slots * chunk) / pair;
  plan->stages = stages < most_stages ? stages : most_stages;
  plan->power = {2, 4, 8, 16, 1u << 16};
  return WEFT_OK;
}

extern "C" weft_status weft_cuda_b1_wgmma_gemm(const weft_backend *row, const weft_exec *exec,
                                               const weft_gemm *gemms, size_t count) {
  return products(row, weft_tensor_wgmma, exec, gemms, count);
}

extern "C" weft_status weft_cuda_b1_mma_gemm(const weft_backend *row, const weft_exec *exec,
                                             const weft_gemm *gemms, size_t count) {
  return products(row, weft_tensor_mma, exec, gemms, count);
}

extern "C" weft_status weft_cuda_b1_wgmma_prepare(const weft_backend *row, const weft_exec *exec,
                                                  size_t k, size_t len, const weft_const_rows *x,
                                                  weft_operand **out) {
  return prepare(row, exec, k, len, x, out);
}

extern "C" weft_status weft_cuda_b1_mma_prepare(const weft_backend *row, const weft_exec *exec,
                                                size_t k, size_t len, const weft_const_rows *x,
                                                weft_operand **out) {
  return prepare(row, exec, k, len, x, out);
}
